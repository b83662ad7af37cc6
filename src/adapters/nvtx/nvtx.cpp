// What NVTX calls in a program once NVTX_INJECTION64_PATH names the collector. Compiled into that
// library alone, where the headers of NVTX are found.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "adapters/common/operator_text.h"
#include "adapters/common/python/call_places.h"
#include "adapters/common/python/source_locations.h"
#include "adapters/nvtx/names.h"
#include "adapters/nvtx/text.h"
#include "trace/spool_writer.h"

// Of the library that this is in.
extern "C" {
struct pasta_collector;
const pasta_collector* pasta_collector_v1();
}

namespace pasta::adapters::nvtx {
namespace {

using trace::Said;
using trace::SpoolPush;

constexpr std::string_view kStartEndLane = "NVTX start-end ranges";
constexpr std::size_t kWideRoom = 4096;
constexpr std::size_t kArgumentsRoom = 4096;

void tell_unkept() {
  SpoolPush spool;
  if (spool) spool.note(Reason::kNotKept, 1, "long names of NVTX beyond 8 MiB of a process");
}

// Text that may have been wide.
class Message {
 public:
  explicit Message(const char* text) : view_(text == nullptr ? "" : text) {}
  explicit Message(const wchar_t* text)
      : view_(wide_, text == nullptr ? 0 : to_utf8(text, wide_, sizeof wide_)) {}
  Message(std::int32_t type, const nvtxMessageValue_t& value) {
    if (type == NVTX_MESSAGE_TYPE_ASCII && value.ascii != nullptr) {
      view_ = value.ascii;
    } else if (type == NVTX_MESSAGE_TYPE_UNICODE && value.unicode != nullptr) {
      view_ = {wide_, to_utf8(value.unicode, wide_, sizeof wide_)};
    } else if (type == NVTX_MESSAGE_TYPE_REGISTERED && value.registered != nullptr) {
      const auto* text = reinterpret_cast<const Text*>(value.registered);
      view_ = text->view();
      if (text == unkept()) tell_unkept();
    }
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  [[nodiscard]] std::string_view view() const { return view_; }

 private:
  std::string_view view_;
  char wide_[kWideRoom];
};

Domain& domain_of(nvtxDomainHandle_t handle) {
  return handle == nullptr ? default_domain() : *reinterpret_cast<Domain*>(handle);
}

void add_payload(JsonMembers& members, const nvtxEventAttributes_t& given) {
  constexpr std::string_view kKey = "payload";
  switch (given.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return members.add_number(kKey, std::uint64_t{given.payload.ullValue});
    case NVTX_PAYLOAD_TYPE_INT64:
      return members.add_number(kKey, std::int64_t{given.payload.llValue});
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return members.add_number(kKey, given.payload.dValue);
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return members.add_number(kKey, std::uint64_t{given.payload.uiValue});
    case NVTX_PAYLOAD_TYPE_INT32:
      return members.add_number(kKey, std::int64_t{given.payload.iValue});
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return members.add_number(kKey, given.payload.fValue);
    default:
      return;
  }
}

#ifdef NVTX_PAYLOAD_TYPE_EXT
// Where what it is said of was made in the program's Python; text that stays.
std::string_view place_of(const nvtxEventAttributes_t& given) {
  if (given.payloadType != NVTX_PAYLOAD_TYPE_EXT || !common::python::wants_call_places()) return {};
  // As many as the reserved field says.
  const auto* data = reinterpret_cast<const nvtxPayloadData_t*>(given.payload.ullValue);
  for (std::int32_t i = 0; data != nullptr && i < given.reserved0; ++i, ++data) {
    const std::size_t at = find_location(data->schemaId);
    const Text* text = nullptr;
    if (at == kNoLocation || data->payload == nullptr || data->size < at ||
        data->size - at < sizeof(void*)) {
      continue;
    }
    std::memcpy(&text, static_cast<const char*>(data->payload) + at, sizeof(void*));
    if (text == unkept()) tell_unkept();
    if (text == nullptr || text == unkept()) continue;
    const Text* place = text->place.load(std::memory_order_acquire);
    if (place == nullptr) {
      char memory[common::python::kLongestPlace];
      place = keep(common::python::place_of_locations(text->view(), memory, sizeof memory));
      // Where names have no room any more, it is not made out again and again.
      if (place == nullptr) place = unkept();
      // Another thread has made the same.
      text->place.store(place, std::memory_order_release);
    }
    return place->view();
  }
  return {};
}
#else
std::string_view place_of(const nvtxEventAttributes_t&) { return {}; }
#endif

// What a call says of a range or a mark, as the reader of stored NVTX events says it.
class Call {
 public:
  explicit Call(const char* text) : message_(text) { take(default_domain(), nullptr); }
  explicit Call(const wchar_t* text) : message_(text) { take(default_domain(), nullptr); }
  Call(Domain& domain, const nvtxEventAttributes_t* given)
      : message_(given == nullptr ? std::int32_t{NVTX_MESSAGE_UNKNOWN} : given->messageType,
                 given == nullptr ? nvtxMessageValue_t{} : given->message) {
    take(domain, given);
  }
  [[nodiscard]] const Said& said() const { return said_; }

 private:
  void take(const Domain& domain, const nvtxEventAttributes_t* given) {
    const common::OperatorText text = common::read_operator(message_.view());
    // Word by word, as it was written: a processor that reads both at once just afterwards waits.
    said_.name = {text.name.data(), text.name.size()};
    said_.sequence = text.sequence;
    if (text.is_operator) said_.domain = ScopeDomain::kOperator;
    if (text.is_module) said_.domain = ScopeDomain::kModule;
    said_.is_compiled = text.is_module;
    JsonMembers members(memory_, sizeof memory_);
    if (!text.sizes.empty()) members.add("Input Dims", text.sizes);
    if (!text.hlo.empty()) members.add_text("hlo_op", text.hlo);
    if (domain.name != nullptr) members.add_text("domain", domain.name->view());
    if (given != nullptr) {
      if (const Text* name = category_name(domain, given->category)) {
        members.add_text("category", name->view());
      } else if (given->category != 0) {
        members.add_number("category", std::uint64_t{given->category});
      }
      add_payload(members, *given);
      said_.place = place_of(*given);
    }
    said_.arguments = members.object();
  }

  Message message_;
  Said said_;
  char memory_[kArgumentsRoom];
};

int push(const Domain& domain, const Said& said) {
  SpoolPush spool = SpoolPush::even_stopped();
  if (!spool) return NVTX_NO_PUSH_POP_TRACKING;
  const std::uint32_t level = spool.depth(domain.number);
  spool.open(said, domain.number);
  return static_cast<int>(level);
}

int pop(const Domain& domain) {
  SpoolPush spool = SpoolPush::even_stopped();
  if (!spool) return NVTX_NO_PUSH_POP_TRACKING;
  const std::uint32_t level = spool.depth(domain.number);
  spool.close_innermost(domain.number);
  return level == 0 ? NVTX_NO_PUSH_POP_TRACKING : static_cast<int>(level - 1);
}

nvtxRangeId_t start(const Said& said) {
  SpoolPush spool = SpoolPush::opening(said.name);
  return spool ? spool.start(said, kStartEndLane) : 0;
}

void mark(const Said& said) {
  SpoolPush spool;
  if (spool) spool.mark(said);
}

void name_thread(std::uint64_t thread, std::string_view name) {
  SpoolPush spool = SpoolPush::even_stopped();
  if (spool) spool.name_thread(thread, name);
}

// --- what NVTX calls

void NVTX_API on_mark(const nvtxEventAttributes_t* given) noexcept {
  mark(Call(default_domain(), given).said());
}
void NVTX_API on_mark_text(const char* text) noexcept { mark(Call(text).said()); }
void NVTX_API on_mark_wide(const wchar_t* text) noexcept { mark(Call(text).said()); }
void NVTX_API on_domain_mark(nvtxDomainHandle_t domain,
                             const nvtxEventAttributes_t* given) noexcept {
  mark(Call(domain_of(domain), given).said());
}

nvtxRangeId_t NVTX_API on_start(const nvtxEventAttributes_t* given) noexcept {
  return start(Call(default_domain(), given).said());
}
nvtxRangeId_t NVTX_API on_start_text(const char* text) noexcept { return start(Call(text).said()); }
nvtxRangeId_t NVTX_API on_start_wide(const wchar_t* text) noexcept {
  return start(Call(text).said());
}
nvtxRangeId_t NVTX_API on_domain_start(nvtxDomainHandle_t domain,
                                       const nvtxEventAttributes_t* given) noexcept {
  return start(Call(domain_of(domain), given).said());
}
void NVTX_API on_end(nvtxRangeId_t range) noexcept {
  SpoolPush spool = SpoolPush::even_stopped();
  if (spool) spool.finish(range);
}
void NVTX_API on_domain_end(nvtxDomainHandle_t, nvtxRangeId_t range) noexcept { on_end(range); }

int NVTX_API on_push(const nvtxEventAttributes_t* given) noexcept {
  return push(default_domain(), Call(default_domain(), given).said());
}
int NVTX_API on_push_text(const char* text) noexcept {
  return push(default_domain(), Call(text).said());
}
int NVTX_API on_push_wide(const wchar_t* text) noexcept {
  return push(default_domain(), Call(text).said());
}
int NVTX_API on_domain_push(nvtxDomainHandle_t domain,
                            const nvtxEventAttributes_t* given) noexcept {
  return push(domain_of(domain), Call(domain_of(domain), given).said());
}
int NVTX_API on_pop() noexcept { return pop(default_domain()); }
int NVTX_API on_domain_pop(nvtxDomainHandle_t domain) noexcept { return pop(domain_of(domain)); }

void NVTX_API on_name_category(std::uint32_t category, const char* name) noexcept {
  name_category(default_domain(), category, Message(name).view());
}
void NVTX_API on_name_category_wide(std::uint32_t category, const wchar_t* name) noexcept {
  name_category(default_domain(), category, Message(name).view());
}
void NVTX_API on_domain_name_category(nvtxDomainHandle_t domain, std::uint32_t category,
                                      const char* name) noexcept {
  name_category(domain_of(domain), category, Message(name).view());
}
void NVTX_API on_domain_name_category_wide(nvtxDomainHandle_t domain, std::uint32_t category,
                                           const wchar_t* name) noexcept {
  name_category(domain_of(domain), category, Message(name).view());
}

void NVTX_API on_name_thread(std::uint32_t thread, const char* name) noexcept {
  name_thread(thread, Message(name).view());
}
void NVTX_API on_name_thread_wide(std::uint32_t thread, const wchar_t* name) noexcept {
  name_thread(thread, Message(name).view());
}

nvtxDomainHandle_t NVTX_API on_domain_create(const char* name) noexcept {
  return reinterpret_cast<nvtxDomainHandle_t>(find_domain(Message(name).view()));
}
nvtxDomainHandle_t NVTX_API on_domain_create_wide(const wchar_t* name) noexcept {
  return reinterpret_cast<nvtxDomainHandle_t>(find_domain(Message(name).view()));
}
// Who created the domain too still uses it; and so may ranges that are open.
void NVTX_API on_domain_destroy(nvtxDomainHandle_t) noexcept {}

nvtxStringHandle_t registered(std::string_view text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<Text*>(keep_registered(text)));
}
nvtxStringHandle_t NVTX_API on_register(nvtxDomainHandle_t, const char* text) noexcept {
  return registered(Message(text).view());
}
nvtxStringHandle_t NVTX_API on_register_wide(nvtxDomainHandle_t, const wchar_t* text) noexcept {
  return registered(Message(text).view());
}

// Of resources only threads are on lanes of ours.
nvtxResourceHandle_t NVTX_API on_resource(nvtxDomainHandle_t,
                                          nvtxResourceAttributes_t* given) noexcept {
  static constinit char handle = 0;
  if (given != nullptr && given->identifierType == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE) {
    const Message message(given->messageType, given->message);
    name_thread(given->identifier.ullValue, message.view());
  }
  return reinterpret_cast<nvtxResourceHandle_t>(&handle);
}
void NVTX_API on_resource_destroy(nvtxResourceHandle_t) noexcept {}

// --- where NVTX finds it

class Table {
 public:
  Table(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module) {
    if (callbacks.GetModuleFunctionTable(module, &places_, &count_) == 0) count_ = 0;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  template <class Function>
  void set(int id, Function function) {
    if (static_cast<unsigned>(id) >= count_ || places_[id] == nullptr) return;
    *places_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }

 private:
  NvtxFunctionTable places_ = nullptr;
  unsigned count_ = 0;
};

bool set_core(const NvtxExportTableCallbacks& callbacks) {
  Table core(callbacks, NVTX_CB_MODULE_CORE);
  core.set(NVTX_CBID_CORE_MarkEx, on_mark);
  core.set(NVTX_CBID_CORE_MarkA, on_mark_text);
  core.set(NVTX_CBID_CORE_MarkW, on_mark_wide);
  core.set(NVTX_CBID_CORE_RangeStartEx, on_start);
  core.set(NVTX_CBID_CORE_RangeStartA, on_start_text);
  core.set(NVTX_CBID_CORE_RangeStartW, on_start_wide);
  core.set(NVTX_CBID_CORE_RangeEnd, on_end);
  core.set(NVTX_CBID_CORE_RangePushEx, on_push);
  core.set(NVTX_CBID_CORE_RangePushA, on_push_text);
  core.set(NVTX_CBID_CORE_RangePushW, on_push_wide);
  core.set(NVTX_CBID_CORE_RangePop, on_pop);
  core.set(NVTX_CBID_CORE_NameCategoryA, on_name_category);
  core.set(NVTX_CBID_CORE_NameCategoryW, on_name_category_wide);
  core.set(NVTX_CBID_CORE_NameOsThreadA, on_name_thread);
  core.set(NVTX_CBID_CORE_NameOsThreadW, on_name_thread_wide);
  return !core.empty();
}

void set_domains(const NvtxExportTableCallbacks& callbacks) {
  Table domains(callbacks, NVTX_CB_MODULE_CORE2);
  domains.set(NVTX_CBID_CORE2_DomainMarkEx, on_domain_mark);
  domains.set(NVTX_CBID_CORE2_DomainRangeStartEx, on_domain_start);
  domains.set(NVTX_CBID_CORE2_DomainRangeEnd, on_domain_end);
  domains.set(NVTX_CBID_CORE2_DomainRangePushEx, on_domain_push);
  domains.set(NVTX_CBID_CORE2_DomainRangePop, on_domain_pop);
  domains.set(NVTX_CBID_CORE2_DomainResourceCreate, on_resource);
  domains.set(NVTX_CBID_CORE2_DomainResourceDestroy, on_resource_destroy);
  domains.set(NVTX_CBID_CORE2_DomainNameCategoryA, on_domain_name_category);
  domains.set(NVTX_CBID_CORE2_DomainNameCategoryW, on_domain_name_category_wide);
  domains.set(NVTX_CBID_CORE2_DomainRegisterStringA, on_register);
  domains.set(NVTX_CBID_CORE2_DomainRegisterStringW, on_register_wide);
  domains.set(NVTX_CBID_CORE2_DomainCreateA, on_domain_create);
  domains.set(NVTX_CBID_CORE2_DomainCreateW, on_domain_create_wide);
  domains.set(NVTX_CBID_CORE2_DomainDestroy, on_domain_destroy);
}

#ifdef NVTX_PAYLOAD_TYPE_EXT
// XLA describes its payloads so. Which text says where something was made is told by its name.
std::uint64_t NVTX_API on_schema(nvtxDomainHandle_t,
                                 const nvtxPayloadSchemaAttr_t* given) noexcept {
  if (given == nullptr) return 0;
  const auto says = [&](std::uint64_t field) { return (given->fieldMask & field) != 0; };
  const bool is_numbered = says(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) && given->schemaId != 0;
  const std::uint64_t number = is_numbered ? given->schemaId : new_schema();
  if (!says(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES) ||
      !says(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES) || given->entries == nullptr) {
    return number;
  }
  for (std::size_t i = 0; i < given->numEntries; ++i) {
    const nvtxPayloadSchemaEntry_t& entry = given->entries[i];
    if (entry.type != NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE ||
        entry.name == nullptr || (i > 0 && entry.offset == 0)) {
      continue;
    }
    const std::string_view name(entry.name);
    if (name == "Source locations" || name == "Common source locations") {
      keep_location(number, entry.offset);
      break;
    }
  }
  return number;
}
#endif

}  // namespace
}  // namespace pasta::adapters::nvtx

#ifdef NVTX_PAYLOAD_TYPE_EXT
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  namespace nvtx = pasta::adapters::nvtx;
  if (module == nullptr || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
      module->segmentsCount == 0 || module->segments == nullptr ||
      pasta_collector_v1() == nullptr) {
    return 0;
  }
  const nvtxExtModuleSegment_t& segment = module->segments[0];
  if (segment.slotCount <= NVTX3EXT_CBID_nvtxPayloadSchemaRegister) return 0;
  segment.functionSlots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] =
      reinterpret_cast<std::intptr_t>(nvtx::on_schema);
  return 1;
}
#endif

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t export_table) {
  namespace nvtx = pasta::adapters::nvtx;
  // Not watched: NVTX forgets us, and its calls cost nothing.
  if (export_table == nullptr || pasta_collector_v1() == nullptr) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  if (!nvtx::set_core(*callbacks)) return 0;
  nvtx::set_domains(*callbacks);
  return 1;
}
