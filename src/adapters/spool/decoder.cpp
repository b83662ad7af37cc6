#include "adapters/spool/decoder.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "event/path_nodes.h"

namespace pasta::adapters::spool {
namespace {

using namespace trace::spool;

template <class Cell>
Cell as(const Event& cell) {
  Cell copy;
  std::memcpy(&copy, &cell, sizeof copy);
  return copy;
}

// In `to`, whose next number it must have.
template <class IdType>
bool add(std::vector<IdType>& to, std::uint32_t number, IdType id) {
  if (number != to.size()) return false;
  to.push_back(id);
  return true;
}

// Above the numbers that one image gives to its launches.
constexpr unsigned kImageShift = 40;

constexpr std::uint8_t kKnownFlags =
    kUntimed | kUnfinished | kLinked | kSkewed | kAnnotation | kInstant;

}  // namespace

Decoder::Decoder(Dictionary& dictionary, Origins& origins, std::uint32_t number, ProcessId process,
                 std::uint64_t image, std::int64_t epoch_ns, std::string path)
    : dictionary_(&dictionary),
      origins_(&origins),
      number_(number),
      process_(process),
      image_(image),
      epoch_ns_(epoch_ns),
      path_(std::move(path)),
      last_end_ns_(kNoTime) {}

void Decoder::decode(std::span<const Event> cells, std::vector<Event>& events, Blobs& blobs,
                     Problems& problems) {
  for (const Event& cell : cells) {
    const std::uint64_t at = at_++;
    if (in_text_) {
      const std::size_t take = std::min<std::size_t>(kCellBytes, text_bytes_ - text_.size());
      text_.append(reinterpret_cast<const char*>(&cell), take);
      if (text_.size() < text_bytes_) continue;
      in_text_ = false;
      if (is_blob_) {
        blob_ = std::move(text_);
      } else {
        strings_.push_back(dictionary_->string(text_));
      }
      continue;
    }
    bool understood = false;
    if (static_cast<unsigned>(cell.kind) < kKindCount) {
      Event copy = cell;
      understood = event(copy);
      if (understood && copy.kind == Kind::kDevice) {
        copy.device.blob = {++blobs.last};
        blobs.kept[blobs.last] = std::move(blob_);
        blob_.clear();
      }
      if (understood) {
        events.push_back(copy);
        last_ = copy;
        last_end_ns_ = std::max(last_end_ns_, copy.end_ns);
      }
    } else {
      understood = define(cell, problems);
    }
    if (!understood) {
      problems.add(Reason::kRecordSkipped, [&] { return fmt::format("{}: cell {}", path_, at); });
    }
  }
}

void Decoder::jump() {
  in_text_ = in_text_ && !is_blob_;
  blob_.clear();
}

bool Decoder::define(const Event& cell, Problems& problems) {
  switch (static_cast<CellKind>(cell.kind)) {
    case CellKind::kString: {
      const auto text = as<StringCell>(cell);
      if (text.id != strings_.size() || text.bytes > kMaxTextBytes) return false;
      text_.clear();
      text_bytes_ = text.bytes;
      in_text_ = text.bytes > 0;
      is_blob_ = false;
      if (!in_text_) strings_.push_back({});
      return true;
    }
    case CellKind::kBlob: {
      const auto blob = as<StringCell>(cell);
      // Some may have gone with a beginning that was taken away.
      if (blob.id <= blob_number_ || blob.bytes > kMaxTextBytes) return false;
      blob_number_ = blob.id;
      text_.clear();
      blob_.clear();
      text_bytes_ = blob.bytes;
      in_text_ = is_blob_ = blob.bytes > 0;
      return true;
    }
    case CellKind::kFrame: {
      const auto frame = as<FrameCell>(cell);
      FrameId parent{frame.parent};
      StringId name{frame.name};
      if (!map(frames_, parent) || !map(strings_, name)) return false;
      const auto domain = static_cast<ScopeDomain>(frame.domain);
      const bool node = event::is_path_node(domain, dictionary_->text(name));
      return add(frames_, frame.id, node ? dictionary_->frame({parent, name, domain}) : parent);
    }
    case CellKind::kLane: {
      const auto lane = as<LaneCell>(cell);
      StringId name{lane.name};
      DeviceId device{lane.device};
      if (!map(strings_, name) || !map(devices_, device) || lane.type > 1) return false;
      const LaneId id = dictionary_->lane({.type = static_cast<LaneType>(lane.type),
                                           .process = process_,
                                           .device = device,
                                           .context = lane.context,
                                           .native_id = lane.native_id,
                                           .native_text = lane.unbound != 0 ? name : StringId{}});
      // What the program calls it wins, whichever file is read first.
      const bool wins = lane.named != 0 || !dictionary_->lane(id).name;
      if (name && lane.unbound == 0 && wins) dictionary_->update(id, name);
      return add(lanes_, lane.id, id);
    }
    case CellKind::kDevice: {
      const auto device = as<DeviceCell>(cell);
      Device facts{.process = process_, .ordinal = device.ordinal, .uuid = {device.uuid}};
      facts.name = {device.name};
      if (!map(strings_, facts.uuid) || !map(strings_, facts.name) || device.type > 3) return false;
      if (facts.uuid) facts.process = {};
      facts.type = static_cast<DeviceType>(device.type);
      facts.multiprocessors = device.multiprocessors;
      facts.memory_bytes = device.memory_bytes;
      facts.warp_size = device.warp_size;
      facts.max_threads_per_multiprocessor = device.max_threads_per_multiprocessor;
      facts.compute_major = device.compute_major;
      facts.compute_minor = device.compute_minor;
      const DeviceId id = dictionary_->device(facts);
      dictionary_->update(id, facts);
      return add(devices_, device.id, id);
    }
    case CellKind::kAttributes: {
      const auto cells = as<AttributesCell>(cell);
      LaunchAttributes made;
      for (int i = 0; i < 3; ++i) {
        made.block[i] = cells.block[i];
        made.cluster[i] = cells.cluster[i];
      }
      made.registers_per_thread = cells.registers_per_thread;
      made.static_shared_bytes = cells.static_shared_bytes;
      made.dynamic_shared_bytes = cells.dynamic_shared_bytes;
      made.local_bytes_per_thread = cells.local_bytes_per_thread;
      made.priority = cells.priority;
      return add(attributes_, cells.id, dictionary_->attributes(made));
    }
    case CellKind::kNote: {
      const auto note = as<NoteCell>(cell);
      StringId text{note.text};
      if (!map(strings_, text) || note.reason >= static_cast<unsigned>(Reason::kCount) ||
          note.count == 0) {
        return false;
      }
      problems.add(static_cast<Reason>(note.reason), note.count, dictionary_->text(text));
      return true;
    }
    case CellKind::kOrigin: {
      const auto origin = as<OriginCell>(cell);
      FrameId path{origin.frame};
      if (origin.number == 0 || origin.number >= kScopeOfOrigin || !map(frames_, path))
        return false;
      origins_->learn(origins_->id(number_, origin.number), path);
      return true;
    }
    case CellKind::kFact: {
      const auto fact = as<FactCell>(cell);
      StringId key{fact.key}, value{fact.value};
      if (!map(strings_, key) || !map(strings_, value) || !key) return false;
      facts_[std::string(dictionary_->text(key))] = {fact.said_ns,
                                                     std::string(dictionary_->text(value))};
      return true;
    }
  }
  return false;
}

bool Decoder::event(Event& event) {
  if (event.lane.value == 0 || !map(lanes_, event.lane) || !map(strings_, event.name) ||
      !scope(event) || (event.flags & ~kKnownFlags) != 0 ||
      event.correlation > kMaxVendorCorrelation) {
    return false;
  }
  if (event.correlation != 0 && image_ != 0) {
    const std::uint64_t image = image_ << kImageShift;
    if (event.correlation >> kImageShift != 0 || image > kMaxVendorCorrelation) return false;
    event.correlation |= image;
  }
  if (event.kind == Kind::kKernel || event.kind == Kind::kDevice) {
    event.name = demangled(event.name);
  }
  event.correlation = make_correlation(process_, event.correlation);
  if (event.untimed())
    return event.start_ns == kNoTime && event.end_ns == kNoTime && payload(event);
  return event.start_ns <= event.end_ns &&
         !__builtin_add_overflow(event.start_ns, epoch_ns_, &event.start_ns) &&
         !__builtin_add_overflow(event.end_ns, epoch_ns_, &event.end_ns) && payload(event);
}

// Only calls are told of without their thread, and only device work has an origin: which it keeps
// by the number of the run, for whoever links it to its launch.
bool Decoder::scope(Event& event) const {
  if (event.scope.value == kScopeByTime) return event.kind == Kind::kApi;
  if (event.scope.value < kScopeOfOrigin) return map(frames_, event.scope);
  if (!kDeviceWork.has(event.kind) || dictionary_->lane(event.lane).type != LaneType::kQueue ||
      event.scope.value == kScopeOfOrigin) {
    return false;
  }
  event.scope = {kScopeOfOrigin | origins_->id(number_, event.scope.value - kScopeOfOrigin)};
  return true;
}

// Compilers' names of kernels, as people write them. What cannot be one stays as it is.
StringId Decoder::demangled(StringId name) {
  const auto [known, is_new] = demangled_.try_emplace(name.value, name);
  if (!is_new) return known->second;
  const std::string text(dictionary_->text(name));
  if (text.rfind("_Z", 0) != 0) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> result(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), std::free);
  if (status == 0 && result != nullptr) known->second = dictionary_->string(result.get());
  return known->second;
}

bool Decoder::open(const OpenRange& range, std::uint32_t lane, Open& to) const {
  if (range.silent != 0 || range.frame == 0 || lane == 0) return false;
  to.lane = {lane};
  to.inside = {range.frame};
  return map(lanes_, to.lane) && map(frames_, to.inside) &&
         !__builtin_add_overflow(range.start_ns, epoch_ns_, &to.start_ns);
}

bool Decoder::payload(Event& event) const {
  switch (event.kind) {
    case Kind::kScope:
      return map(strings_, event.range.arguments);
    case Kind::kKernel:
      return map(attributes_, event.kernel.attributes);
    case Kind::kSync:
      return map(lanes_, event.sync.on);
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kFault:
      return map(devices_, event.memory.device) && map(strings_, event.memory.pool);
    case Kind::kCounter:
      return map(strings_, event.counter.unit) && map(devices_, event.counter.device);
    case Kind::kApi:
    case Kind::kCopy:
    case Kind::kFill:
    case Kind::kGap:
      return true;
    case Kind::kDevice:
      return event.device.blob.value == blob_number_ && blob_number_ > 0 &&
             map(strings_, event.device.format);
  }
  return false;
}

bool Decoder::unfinished(const OpenRange& range, std::uint32_t lane, std::int64_t end_ns,
                         Event& event) const {
  if (range.silent != 0) return false;
  event = {};
  event.kind = Kind::kScope;
  event.flags = kUnfinished;
  event.detail = range.domain;
  event.name = {range.name};
  event.scope = {range.scope};
  event.lane = {lane};
  event.range.sequence = range.sequence;
  event.range.arguments = {range.arguments};
  if (lane == 0 || !map(lanes_, event.lane) || !map(strings_, event.name) ||
      !map(frames_, event.scope) || !map(strings_, event.range.arguments) ||
      __builtin_add_overflow(range.start_ns, epoch_ns_, &event.start_ns)) {
    return false;
  }
  event.end_ns = std::max(end_ns, event.start_ns);
  return !is_last(event);
}

bool Decoder::unfinished(const trace::SpoolLane::Started& range, std::int64_t end_ns,
                         Event& event) const {
  event = {};
  event.kind = Kind::kScope;
  event.flags = kUnfinished | kAnnotation;
  event.detail = range.domain;
  event.name = {range.name};
  event.lane = {range.lane};
  event.range.sequence = range.sequence;
  event.range.arguments = {range.arguments};
  if (range.lane == 0 || !map(lanes_, event.lane) || !map(strings_, event.name) ||
      !map(strings_, event.range.arguments) ||
      __builtin_add_overflow(range.start_ns, epoch_ns_, &event.start_ns)) {
    return false;
  }
  event.end_ns = std::max(end_ns, event.start_ns);
  return true;
}

// Its writer died after it had committed the event and before it had closed the range.
bool Decoder::is_last(const Event& event) const {
  return last_.kind == Kind::kScope && last_.name == event.name && last_.lane == event.lane &&
         last_.start_ns == event.start_ns;
}

bool Decoder::gap(std::uint32_t lane, std::uint64_t lost, std::int64_t end_ns, Event& event) const {
  event = {};
  event.kind = Kind::kGap;
  event.lane = {lane};
  if (lane == 0 || !map(lanes_, event.lane)) return false;
  event.start_ns = last_end_ns_ == kNoTime ? end_ns : std::min(last_end_ns_, end_ns);
  event.end_ns = end_ns;
  event.gap.lost = lost;
  return true;
}

}  // namespace pasta::adapters::spool
