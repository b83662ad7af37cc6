// What XLA tells by NVTX while it runs what it has compiled, in the shape in which it does, for a
// program of Python that loads this: ranges of the domain "TSL" with payloads of its schemas.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct Module {
  const void* others[5];
  nvtxStringHandle_t name;
  nvtxStringHandle_t common;
  std::int32_t id;
  std::int32_t frames;
};
struct Instruction {
  nvtxStringHandle_t hlo;
  nvtxStringHandle_t locations;
  nvtxStringHandle_t called;
};

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t made = nvtxDomainCreateA("TSL");
  return made;
}

nvtxStringHandle_t text(const char* of) {
  return of == nullptr ? nullptr : nvtxDomainRegisterStringA(domain(), of);
}

nvtxPayloadSchemaEntry_t entry(std::uint64_t type, const char* name, std::uint64_t offset) {
  nvtxPayloadSchemaEntry_t made{};
  made.type = type;
  made.name = name;
  made.offset = offset;
  return made;
}

std::uint64_t schema(const char* name, const nvtxPayloadSchemaEntry_t* entries, std::size_t count,
                     std::size_t bytes) {
  nvtxPayloadSchemaAttr_t given{};
  given.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
  given.name = name;
  given.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  given.entries = entries;
  given.numEntries = count;
  given.payloadStaticSize = bytes;
  return nvtxPayloadSchemaRegister(domain(), &given);
}

constexpr std::uint64_t kText = NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE;

void push(const char* title, std::uint64_t schema, const void* payload, std::size_t bytes) {
  nvtxEventAttributes_t given{};
  given.version = NVTX_VERSION;
  given.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  given.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  given.message.registered = text(title);
  const nvtxPayloadData_t data{schema, bytes, payload};
  given.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  given.reserved0 = 1;
  given.payload.ullValue = reinterpret_cast<std::uint64_t>(&data);
  nvtxDomainRangePushEx(domain(), &given);
}

}  // namespace

EXPORT void begin_module(const char* title, const char* common) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      entry(kText, "Name", offsetof(Module, name)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "Unique ID", offsetof(Module, id)),
      entry(kText, "Common source locations", offsetof(Module, common))};
  static const std::uint64_t number = schema("XlaModule", entries, 3, sizeof(Module));
  const Module payload{{}, text("jit_loss"), text(common), 12, 1};
  push(title, number, &payload, sizeof payload);
}

EXPORT void begin_thunk(const char* title, const char* locations) {
  const nvtxPayloadSchemaEntry_t entries[] = {
      entry(kText, "Source locations", offsetof(Instruction, locations)),
      entry(kText, "HLO", offsetof(Instruction, hlo)),
      entry(kText, "Called HLO", offsetof(Instruction, called))};
  static const std::uint64_t number = schema("XlaInstruction", entries, 3, sizeof(Instruction));
  const Instruction payload{text("%fusion = f32[]"), text(locations), text("\n")};
  push(title, number, &payload, sizeof payload);
}

EXPORT void end() { nvtxDomainRangePop(domain()); }
