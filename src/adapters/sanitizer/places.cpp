#include "adapters/sanitizer/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "adapters/sanitizer/cubin.h"

namespace pasta::adapters::sanitizer {
namespace {

// By the 9 bits of their operation.
std::string_view operation_name(std::uint64_t operation) {
  switch (operation) {
    case 0x03b:
      return "LDSM";
    case 0x044:
      return "STSM";
    case 0x180:
      return "LD";
    case 0x181:
      return "LDG";
    case 0x183:
      return "LDL";
    case 0x184:
      return "LDS";
    case 0x185:
      return "ST";
    case 0x186:
      return "STG";
    case 0x187:
      return "STL";
    case 0x188:
      return "STS";
    case 0x18a:
    case 0x18b:
    case 0x1a2:
      return "ATOM";
    case 0x18c:
    case 0x18d:
      return "ATOMS";
    case 0x18e:
    case 0x1a6:
      return "RED";
    case 0x1a3:
    case 0x1a8:
    case 0x1a9:
      return "ATOMG";
    case 0x1ae:
      return "LDGSTS";
    case 0x1ba:
      return "UBLKCP";
    case 0x1bb:
      return "UBLKRED";
    case 0x1bd:
      return "STAS";
    case 0x1be:
      return "REDAS";
    default:
      return {};
  }
}

// Bytes from front to back; beyond their end everything is 0.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes, std::uint64_t at = 0)
      : bytes_(bytes), at_(at) {}
  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] bool is_over() const { return at_ >= bytes_.size(); }
  void jump(std::uint64_t at) { at_ = at; }
  template <class T>
  T take() {
    T value{};
    if (!read_at(bytes_, at_, value)) at_ = bytes_.size();
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  std::int64_t signed_number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(value);
    }
  }
  std::string_view text() {
    const std::string_view found = text_at(bytes_, at_);
    at_ += found.size() + 1;
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t at_;
};

// Of the standard, and NVIDIA's own.
enum Standard : std::uint8_t {
  kExtended,
  kCopy,
  kAdvanceAddress,
  kAdvanceLine,
  kSetFile,
  kSetColumn,
  kNegate,
  kBlock,
  kAddConstant,
  kFixedAdvance
};
enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress = 2, kInlinedCall = 0x90 };

constexpr std::size_t kMostRows = std::size_t{1} << 22;  // of a program

}  // namespace

// A program's table of lines: DWARF 2 to 4, whose sequences begin at addresses that are relocated,
// each to the kernel that it is of.
class Places::Reader {
 public:
  Reader(const Cubin& cubin, Places& places) : places_(places) {
    const auto* lines = cubin.find(".debug_line");
    if (lines == nullptr) return;
    bytes_ = lines->bytes;
    for (const auto& section : cubin.sections()) {
      if (section.name != ".rela.debug_line" && section.name != ".rel.debug_line") continue;
      const std::size_t size = section.type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
      Elf64_Rel relocation;
      for (std::uint64_t at = 0; read_at(section.bytes, at, relocation); at += size) {
        kernels_[relocation.r_offset] =
            cubin.symbol(static_cast<std::uint32_t>(ELF64_R_SYM(relocation.r_info)));
      }
    }
  }

  void read() {
    for (std::uint64_t at = 0; at < bytes_.size();) {
      Cursor head(bytes_, at);
      const auto length = head.take<std::uint32_t>();
      if (length == 0 || length >= 0xfffffff0u) return;
      const std::uint64_t end = std::min<std::uint64_t>(head.at() + length, bytes_.size());
      const auto version = head.take<std::uint16_t>();
      if (version >= 2 && version <= 4) unit(head, end, version);
      at = end;
    }
  }

 private:
  void unit(Cursor cursor, std::uint64_t end, std::uint16_t version) {
    const auto header = cursor.take<std::uint32_t>();
    const std::uint64_t program = cursor.at() + header;
    least_advance_ = cursor.take<std::uint8_t>();
    if (version >= 4) cursor.take<std::uint8_t>();
    cursor.take<std::uint8_t>();
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): the format has a signed byte there
    line_base_ = cursor.take<std::int8_t>();
    line_range_ = cursor.take<std::uint8_t>();
    opcode_base_ = cursor.take<std::uint8_t>();
    if (line_range_ == 0 || opcode_base_ == 0) return;
    operands_.assign(opcode_base_, 0);
    for (std::size_t i = 1; i < opcode_base_; ++i) operands_[i] = cursor.take<std::uint8_t>();
    while (!cursor.text().empty()) continue;
    first_file_ = static_cast<std::uint32_t>(places_.files_.size());
    for (;;) {
      const std::string_view name = cursor.text();
      if (name.empty()) break;
      for (int i = 0; i < 3; ++i) cursor.unsigned_number();
      // Their folders are of the machine that compiled them.
      places_.files_.emplace_back(name.substr(name.rfind('/') + 1));
    }
    cursor.jump(program);
    begin_sequence();
    while (cursor.at() < end) step(cursor);
  }

  void begin_sequence() {
    kernel_ = nullptr;
    row_ = {.offset = 0, .file = 1, .line = 1, .caller = 0};
  }

  void step(Cursor& cursor) {
    const auto opcode = cursor.take<std::uint8_t>();
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - opcode_base_;
      row_.offset += std::uint64_t{adjusted / line_range_} * least_advance_;
      advance_line(line_base_ + static_cast<std::int64_t>(adjusted % line_range_));
      copy();
      return;
    }
    switch (opcode) {
      case kExtended:
        extended(cursor);
        break;
      case kCopy:
        copy();
        break;
      case kAdvanceAddress:
        row_.offset += cursor.unsigned_number() * least_advance_;
        break;
      case kAdvanceLine:
        advance_line(cursor.signed_number());
        break;
      case kSetFile:
        row_.file = static_cast<std::uint32_t>(cursor.unsigned_number());
        break;
      case kAddConstant:
        row_.offset += std::uint64_t{(255u - opcode_base_) / line_range_} * least_advance_;
        break;
      case kFixedAdvance:
        row_.offset += cursor.take<std::uint16_t>();
        break;
      default:
        for (unsigned i = 0; i < operands_[opcode]; ++i) cursor.unsigned_number();
        break;
    }
  }

  void extended(Cursor& cursor) {
    const std::uint64_t length = cursor.unsigned_number();
    const std::uint64_t begin = cursor.at();
    if (length == 0) return;
    switch (cursor.take<std::uint8_t>()) {
      case kEndSequence:
        // What comes behind the last line is of none.
        row_.line = 0;
        copy();
        begin_sequence();
        break;
      case kSetAddress: {
        const auto known = kernels_.find(cursor.at());
        row_.offset = cursor.take<std::uint64_t>();
        if (known == kernels_.end() || known->second.empty()) {
          kernel_ = nullptr;
          break;
        }
        kernel_ = &places_.kernels_[std::string(known->second)];
        before_ = static_cast<std::uint32_t>(kernel_->rows.size());
        break;
      }
      case kInlinedCall:
        // The row of this sequence that calls, from 1.
        row_.caller = static_cast<std::uint32_t>(cursor.unsigned_number());
        break;
      default:
        break;
    }
    cursor.jump(begin + std::min(length, bytes_.size()));
  }

  void advance_line(std::int64_t by) {
    row_.line = static_cast<std::uint32_t>(static_cast<std::int64_t>(row_.line) + by);
  }

  void copy() {
    if (kernel_ == nullptr || rows_++ >= kMostRows) return;
    Row row = row_;
    row.file = first_file_ + row.file - 1;
    if (row.caller > 0) row.caller += before_;
    kernel_->rows.push_back(row);
  }

  Places& places_;
  std::span<const std::byte> bytes_;
  std::map<std::uint64_t, std::string_view> kernels_;  // by the place of their address
  std::uint64_t least_advance_ = 1;
  std::int64_t line_base_ = 0;
  unsigned line_range_ = 1, opcode_base_ = 1;
  std::vector<std::uint8_t> operands_;
  std::uint32_t first_file_ = 0;
  Row row_{};
  Kernel* kernel_ = nullptr;
  std::uint32_t before_ = 0;  // rows of the kernel that are of sequences before
  std::size_t rows_ = 0;
};

Places Places::read(std::span<const std::byte> bytes) {
  Places places;
  const auto cubin = Cubin::read(bytes);
  if (!cubin) return places;
  Reader(*cubin, places).read();
  for (const Cubin::Section& section : cubin->sections()) {
    const std::string_view kernel = kernel_of(section);
    if (kernel.empty()) continue;
    auto& instructions = places.kernels_[std::string(kernel)].instructions;
    std::uint64_t word = 0;
    for (std::uint64_t offset = 0; offset <= std::numeric_limits<std::uint32_t>::max() &&
                                   read_at(section.bytes, offset, word);
         offset += kInstructionBytes) {
      const auto operation = static_cast<std::uint16_t>(word & kOperation);
      if (operation_name(operation).empty()) continue;
      instructions.push_back({static_cast<std::uint32_t>(offset), operation});
    }
    instructions.shrink_to_fit();
  }
  return places;
}

std::string Places::line_of(const Kernel& kernel, std::uint64_t offset) const {
  const auto& rows = kernel.rows;
  const auto behind = std::ranges::upper_bound(rows, offset, std::ranges::less(), &Row::offset);
  if (behind == rows.begin()) return {};
  const auto text = [this](const Row& row) {
    return row.line == 0 || row.file >= files_.size()
               ? std::string()
               : fmt::format("{}:{}", files_[row.file], row.line);
  };
  const auto at = std::prev(behind);
  std::string name = text(*at);
  // Each caller comes before what it calls, so this ends.
  auto index = static_cast<std::size_t>(at - rows.begin());
  const std::size_t innermost = index;
  while (rows[index].caller > 0 && rows[index].caller - 1 < index) index = rows[index].caller - 1;
  if (name.empty() || index == innermost) return name;
  const std::string caller = text(rows[index]);
  return caller.empty() || caller == name ? name : fmt::format("{} from {}", name, caller);
}

std::string Places::name(std::string_view kernel, std::uint64_t offset) const {
  const auto known = kernels_.find(kernel);
  std::string name;
  if (known != kernels_.end()) name = line_of(known->second, offset);
  if (name.empty()) name = fmt::format("+0x{:x}", offset);
  if (known == kernels_.end()) return name;
  const auto& instructions = known->second.instructions;
  const auto found =
      std::ranges::lower_bound(instructions, offset, std::ranges::less(), &Instruction::offset);
  if (found == instructions.end() || found->offset != offset) return name;
  return fmt::format("{} {}", name, operation_name(found->operation));
}

}  // namespace pasta::adapters::sanitizer
