#include "adapters/cupti/decode.h"

#include <gtest/gtest.h>

#include <string_view>

#if __has_include(<cupti.h>)
#include <cupti.h>
#define PASTA_HAS_CUPTI_HEADERS
#endif

namespace pasta::adapters::cupti {
namespace {

template <class Fields>
Told decode(const Fields& fields, Decoded& told) {
  return cupti::decode(reinterpret_cast<const Record*>(&fields), told);
}

KernelRecord a_kernel() {
  KernelRecord record{};
  record.kind = RecordKind::kConcurrentKernel;
  record.name = "_Z4gemmPf";
  record.start = 1000;
  record.end = 3500;
  record.device = 1;
  record.context = 2;
  record.stream = 7;
  record.correlation = 41;
  record.grid[0] = 16, record.grid[1] = 2, record.grid[2] = 1;
  record.block[0] = 256, record.block[1] = 1, record.block[2] = 1;
  record.registers_per_thread = 40;
  record.static_shared = 1024;
  record.dynamic_shared = 2048;
  record.local_per_thread = 8;
  return record;
}

TEST(Decode, Kernel) {
  KernelRecord record = a_kernel();
  record.cluster[0] = 2, record.cluster[1] = 1, record.cluster[2] = 1;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kind, Kind::kKernel);
  EXPECT_TRUE(told.of_device_clock);
  EXPECT_STREQ(told.text, "_Z4gemmPf");
  EXPECT_EQ(told.event.start_ns, 1000);
  EXPECT_EQ(told.event.end_ns, 3500);
  EXPECT_EQ(told.event.correlation, 41u);
  EXPECT_EQ(told.event.kernel.grid[0], 16u);
  EXPECT_EQ(told.event.kernel.grid[1], 2u);
  EXPECT_EQ(told.event.kernel.graph_node, 0u);
  EXPECT_EQ(told.attributes.block[0], 256u);
  EXPECT_EQ(told.attributes.cluster[0], 2u);
  EXPECT_EQ(told.attributes.registers_per_thread, 40u);
  EXPECT_EQ(told.attributes.static_shared_bytes, 1024u);
  EXPECT_EQ(told.attributes.dynamic_shared_bytes, 2048u);
  EXPECT_EQ(told.attributes.local_bytes_per_thread, 8u);
  EXPECT_EQ(told.place.type, Place::Type::kQueue);
  EXPECT_EQ(told.place.device, 1u);
  EXPECT_EQ(told.place.context, 2u);
  EXPECT_EQ(told.place.stream, 7u);
}

TEST(Decode, KernelOfAGraph) {
  KernelRecord record = a_kernel();
  record.kind = RecordKind::kKernel;
  record.graph_node = std::uint64_t{3} << 32 | 12;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kernel.graph_node, 12u);
  record.graph_node = std::uint64_t{3} << 32;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kernel.graph_node, 3u);
}

TEST(Decode, TimesThatCuptiDoesNotKnow) {
  KernelRecord record = a_kernel();
  record.start = record.end = 0;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_TRUE(told.event.untimed());
  EXPECT_EQ(told.event.start_ns, kNoTime);
}

TEST(Decode, TimesThatCannotBe) {
  Decoded told;
  KernelRecord record = a_kernel();
  record.end = record.start - 1;
  EXPECT_EQ(decode(record, told), Told::kInvalid);
  record.start = 0;
  EXPECT_EQ(decode(record, told), Told::kInvalid);
  record = a_kernel();
  record.end = ~std::uint64_t{0};
  EXPECT_EQ(decode(record, told), Told::kInvalid);
}

TEST(Decode, Copies) {
  struct Case {
    std::uint8_t kind, source, target;
    CopyDirection direction;
    std::string_view name;
  };
  constexpr Case kCases[] = {
      {0, 0, 0, CopyDirection::kUnknown, "Memcpy"},
      {1, 2, 3, CopyDirection::kHostToDevice, "Memcpy HtoD (Pinned -> Device)"},
      {1, 1, 3, CopyDirection::kHostToDevice, "Memcpy HtoD (Pageable -> Device)"},
      {2, 3, 1, CopyDirection::kDeviceToHost, "Memcpy DtoH (Device -> Pageable)"},
      {3, 1, 4, CopyDirection::kHostToDevice, "Memcpy HtoA (Pageable -> Array)"},
      {4, 4, 1, CopyDirection::kDeviceToHost, "Memcpy AtoH (Array -> Pageable)"},
      {5, 4, 4, CopyDirection::kDeviceToDevice, "Memcpy AtoA (Array -> Array)"},
      {6, 4, 3, CopyDirection::kDeviceToDevice, "Memcpy AtoD (Array -> Device)"},
      {7, 3, 4, CopyDirection::kDeviceToDevice, "Memcpy DtoA (Device -> Array)"},
      {8, 5, 7, CopyDirection::kDeviceToDevice, "Memcpy DtoD (Managed -> Managed Static)"},
      {9, 1, 0, CopyDirection::kHostToHost, "Memcpy HtoH"},
      {200, 9, 9, CopyDirection::kUnknown, "Memcpy"},
  };
  for (const Case& expected : kCases) {
    MemcpyRecord record{};
    record.kind = RecordKind::kMemcpy;
    record.copy_kind = expected.kind;
    record.source_kind = expected.source;
    record.target_kind = expected.target;
    record.bytes = 1 << 20;
    record.start = 10;
    record.end = 20;
    record.correlation = 5;
    record.stream = 13;
    Decoded told;
    ASSERT_EQ(decode(record, told), Told::kEvent);
    EXPECT_EQ(told.event.kind, Kind::kCopy);
    EXPECT_EQ(told.of_device_clock, expected.direction != CopyDirection::kHostToHost);
    EXPECT_EQ(told.name, expected.name);
    EXPECT_EQ(told.event.detail, static_cast<std::uint16_t>(expected.direction));
    EXPECT_EQ(told.event.copy.bytes, 1u << 20);
    EXPECT_EQ(told.event.correlation, 5u);
    EXPECT_EQ(told.place.stream, 13u);
  }
}

TEST(Decode, CopyToAPeer) {
  PeerCopyRecord record{};
  record.kind = RecordKind::kPeerCopy;
  record.copy_kind = 10;
  record.source_kind = record.target_kind = 3;
  record.bytes = 77;
  record.start = 10;
  record.end = 20;
  record.correlation = 6;
  record.source_device = 1;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(std::string_view(told.name), "Memcpy PtoP (Device -> Device)");
  EXPECT_EQ(told.event.detail, static_cast<std::uint16_t>(CopyDirection::kPeerToPeer));
  EXPECT_EQ(told.event.correlation, 6u);
  EXPECT_EQ(told.event.copy.bytes, 77u);
  EXPECT_TRUE(told.of_device_clock);
}

TEST(Decode, Fill) {
  MemsetRecord record{};
  record.kind = RecordKind::kMemset;
  record.value = 0xff;
  record.bytes = 4096;
  record.start = 1;
  record.end = 2;
  record.correlation = 9;
  record.memory_kind = 3;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kind, Kind::kFill);
  EXPECT_TRUE(told.of_device_clock);
  EXPECT_EQ(std::string_view(told.name), "Memset (Device)");
  EXPECT_EQ(told.event.fill.bytes, 4096u);
  EXPECT_EQ(told.event.fill.pattern, 0xffu);
  EXPECT_EQ(told.event.correlation, 9u);
}

TEST(Decode, Calls) {
  for (const RecordKind kind : {RecordKind::kRuntime, RecordKind::kDriver}) {
    ApiRecord record{};
    record.kind = kind;
    record.callback = 211;
    record.start = 100;
    record.end = 105;
    record.thread = 4242;
    record.correlation = 41;
    record.status = 719;
    Decoded told;
    ASSERT_EQ(decode(record, told), Told::kEvent);
    EXPECT_EQ(told.event.kind, Kind::kApi);
    EXPECT_FALSE(told.of_device_clock);
    EXPECT_EQ(told.callback, 211u);
    EXPECT_EQ(told.place.type, Place::Type::kThread);
    EXPECT_EQ(told.place.thread, 4242u);
    EXPECT_EQ(told.event.api.status, 719);
    EXPECT_EQ(told.event.detail,
              static_cast<std::uint16_t>(kind == RecordKind::kDriver ? ApiDomain::kDriver
                                                                     : ApiDomain::kRuntime));
  }
}

TEST(Decode, Memory) {
  MemoryRecord record{};
  record.kind = RecordKind::kMemory;
  record.operation = 1;
  record.memory_kind = 3;
  record.address = 0x7f00;
  record.bytes = 512;
  record.timestamp = 99;
  record.correlation = 12;
  record.pool_address = 0xabc0;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kind, Kind::kAlloc);
  EXPECT_FALSE(told.of_device_clock);
  EXPECT_EQ(told.event.memory.bytes, 512u);
  EXPECT_EQ(told.event.memory.address, 0x7f00u);
  EXPECT_EQ(told.event.start_ns, 99);
  EXPECT_EQ(told.event.end_ns, 99);
  EXPECT_EQ(told.event.flags, kInstant);
  EXPECT_EQ(told.pool, 0xabc0u);
  EXPECT_EQ(told.memory_kind, nullptr);
  EXPECT_FALSE(told.of_host);
  record.operation = 2;
  record.memory_kind = 2;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kind, Kind::kFree);
  EXPECT_STREQ(told.memory_kind, "Pinned");
  EXPECT_TRUE(told.of_host);
  record.operation = 0;
  EXPECT_EQ(decode(record, told), Told::kInvalid);
}

TEST(Decode, MemoryPool) {
  MemoryPoolRecord record{};
  record.kind = RecordKind::kMemoryPool;
  record.operation = 3;
  record.pool_type = 1;
  record.address = 0xabc0;
  record.size = 1 << 21;
  record.used_bytes = 100;
  record.timestamp = 7;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kCounters);
  EXPECT_FALSE(told.of_device_clock);
  EXPECT_EQ(told.pool, 0xabc0u);
  EXPECT_EQ(told.pool_size, 1u << 21);
  EXPECT_EQ(told.pool_used, 100u);
  EXPECT_EQ(told.event.start_ns, 7);
  record.pool_type = 2;
  EXPECT_EQ(decode(record, told), Told::kNothing);
}

TEST(Decode, WholeGraph) {
  GraphTraceRecord record{};
  record.kind = RecordKind::kGraphTrace;
  record.correlation = 70;
  record.graph = 3;
  record.start = 10;
  record.end = 90;
  record.stream = 7;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_EQ(told.event.kind, Kind::kKernel);
  EXPECT_EQ(std::string_view(told.name), "CUDA graph 3");
  EXPECT_EQ(told.event.correlation, 70u);
  EXPECT_TRUE(told.of_device_clock);
}

TEST(Decode, ExternalNumber) {
  ExternalCorrelationRecord record{};
  record.kind = RecordKind::kExternalCorrelation;
  record.external_kind = 4;
  record.external = std::uint64_t{1} << 40;
  record.correlation = 41;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kExternal);
  EXPECT_STREQ(told.text, "external id custom 1");
  EXPECT_EQ(told.external, std::uint64_t{1} << 40);
  EXPECT_EQ(told.event.correlation, 41u);
  record.external_kind = 99;
  ASSERT_EQ(decode(record, told), Told::kExternal);
  EXPECT_STREQ(told.text, "external id");
}

TEST(Decode, Overhead) {
  OverheadRecord record{};
  record.kind = RecordKind::kOverhead;
  record.overhead = 4 << 16;
  record.object = 2;
  record.ids[0] = 1;
  record.ids[1] = 4242;
  record.start = 5;
  record.end = 50;
  Decoded told;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_STREQ(told.text, "Runtime Triggered Module Loading");
  EXPECT_FALSE(told.of_device_clock);
  EXPECT_EQ(told.event.detail, static_cast<std::uint16_t>(ScopeDomain::kRuntime));
  EXPECT_EQ(told.place.type, Place::Type::kThread);
  EXPECT_EQ(told.place.thread, 4242u);
  record.overhead = 1;
  record.object = 3;
  ASSERT_EQ(decode(record, told), Told::kEvent);
  EXPECT_STREQ(told.text, "Driver Compiler");
  EXPECT_EQ(told.place.type, Place::Type::kQueue);
  EXPECT_EQ(told.place.device, 1u);
  EXPECT_EQ(told.place.stream, kNoStream);
  record.object = 1;
  EXPECT_EQ(decode(record, told), Told::kNothing);
}

TEST(Decode, ContextsStreamsAndOthers) {
  Decoded told;
  const ContextRecord context = {RecordKind::kContext, 3, 1};
  ASSERT_EQ(decode(context, told), Told::kContext);
  EXPECT_EQ(told.place.context, 3u);
  EXPECT_EQ(told.place.device, 1u);
  EXPECT_EQ(decode(StreamRecord{RecordKind::kStream, 3, 7, 0}, told), Told::kNothing);
  EXPECT_EQ(decode(Record{RecordKind{12}}, told), Told::kUnknown);
  EXPECT_EQ(decode(Record{RecordKind{-1}}, told), Told::kUnknown);
}

#ifdef PASTA_HAS_CUPTI_HEADERS

#define SAME(ours, field, theirs, theirs_field)                            \
  static_assert(offsetof(ours, field) == offsetof(theirs, theirs_field) && \
                    sizeof(ours::field) == sizeof(theirs::theirs_field),   \
                #theirs "::" #theirs_field " lies elsewhere")
#define SAME_ARRAY(ours, field, theirs, first, last)                   \
  static_assert(offsetof(ours, field) == offsetof(theirs, first) &&    \
                    offsetof(ours, field) + sizeof(ours::field) ==     \
                        offsetof(theirs, last) + sizeof(theirs::last), \
                #theirs "::" #first " lies elsewhere")

#define SAME_KERNEL(theirs)                                             \
  SAME(KernelRecord, registers_per_thread, theirs, registersPerThread); \
  SAME(KernelRecord, start, theirs, start);                             \
  SAME(KernelRecord, end, theirs, end);                                 \
  SAME(KernelRecord, device, theirs, deviceId);                         \
  SAME(KernelRecord, context, theirs, contextId);                       \
  SAME(KernelRecord, stream, theirs, streamId);                         \
  SAME_ARRAY(KernelRecord, grid, theirs, gridX, gridZ);                 \
  SAME_ARRAY(KernelRecord, block, theirs, blockX, blockZ);              \
  SAME(KernelRecord, static_shared, theirs, staticSharedMemory);        \
  SAME(KernelRecord, dynamic_shared, theirs, dynamicSharedMemory);      \
  SAME(KernelRecord, local_per_thread, theirs, localMemoryPerThread);   \
  SAME(KernelRecord, correlation, theirs, correlationId);               \
  SAME(KernelRecord, name, theirs, name);                               \
  SAME(KernelRecord, graph_node, theirs, graphNodeId);                  \
  SAME(KernelRecord, graph, theirs, graphId);                           \
  SAME_ARRAY(KernelRecord, cluster, theirs, clusterX, clusterZ)
SAME_KERNEL(CUpti_ActivityKernel8);   // CUDA 11.8
SAME_KERNEL(CUpti_ActivityKernel9);   // 12
SAME_KERNEL(CUpti_ActivityKernel10);  // 13

#define SAME_COPY(ours, theirs)                   \
  SAME(ours, copy_kind, theirs, copyKind);        \
  SAME(ours, source_kind, theirs, srcKind);       \
  SAME(ours, target_kind, theirs, dstKind);       \
  SAME(ours, bytes, theirs, bytes);               \
  SAME(ours, start, theirs, start);               \
  SAME(ours, end, theirs, end);                   \
  SAME(ours, device, theirs, deviceId);           \
  SAME(ours, context, theirs, contextId);         \
  SAME(ours, stream, theirs, streamId);           \
  SAME(ours, correlation, theirs, correlationId); \
  SAME(ours, graph_node, theirs, graphNodeId)
SAME_COPY(MemcpyRecord, CUpti_ActivityMemcpy5);
SAME_COPY(MemcpyRecord, CUpti_ActivityMemcpy6);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP3);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP4);

#define SAME_FILL(theirs)                                 \
  SAME(MemsetRecord, value, theirs, value);               \
  SAME(MemsetRecord, bytes, theirs, bytes);               \
  SAME(MemsetRecord, start, theirs, start);               \
  SAME(MemsetRecord, end, theirs, end);                   \
  SAME(MemsetRecord, device, theirs, deviceId);           \
  SAME(MemsetRecord, context, theirs, contextId);         \
  SAME(MemsetRecord, stream, theirs, streamId);           \
  SAME(MemsetRecord, correlation, theirs, correlationId); \
  SAME(MemsetRecord, memory_kind, theirs, memoryKind);    \
  SAME(MemsetRecord, graph_node, theirs, graphNodeId)
SAME_FILL(CUpti_ActivityMemset3);
SAME_FILL(CUpti_ActivityMemset4);

SAME(ExternalCorrelationRecord, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME(ExternalCorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
SAME(ExternalCorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);

SAME(ApiRecord, callback, CUpti_ActivityAPI, cbid);
SAME(ApiRecord, start, CUpti_ActivityAPI, start);
SAME(ApiRecord, end, CUpti_ActivityAPI, end);
SAME(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiRecord, status, CUpti_ActivityAPI, returnValue);

#define SAME_MEMORY(theirs)                                   \
  SAME(MemoryRecord, operation, theirs, memoryOperationType); \
  SAME(MemoryRecord, memory_kind, theirs, memoryKind);        \
  SAME(MemoryRecord, correlation, theirs, correlationId);     \
  SAME(MemoryRecord, address, theirs, address);               \
  SAME(MemoryRecord, bytes, theirs, bytes);                   \
  SAME(MemoryRecord, timestamp, theirs, timestamp);           \
  SAME(MemoryRecord, device, theirs, deviceId);               \
  SAME(MemoryRecord, pool_address, theirs, memoryPoolConfig.address)
SAME_MEMORY(CUpti_ActivityMemory3);
SAME_MEMORY(CUpti_ActivityMemory4);

#define SAME_POOL(theirs)                                             \
  SAME(MemoryPoolRecord, operation, theirs, memoryPoolOperationType); \
  SAME(MemoryPoolRecord, pool_type, theirs, memoryPoolType);          \
  SAME(MemoryPoolRecord, device, theirs, deviceId);                   \
  SAME(MemoryPoolRecord, address, theirs, address);                   \
  SAME(MemoryPoolRecord, size, theirs, size);                         \
  SAME(MemoryPoolRecord, timestamp, theirs, timestamp);               \
  SAME(MemoryPoolRecord, used_bytes, theirs, utilizedSize)
SAME_POOL(CUpti_ActivityMemoryPool2);
SAME_POOL(CUpti_ActivityMemoryPool3);

#define SAME_GRAPH(theirs)                                    \
  SAME(GraphTraceRecord, correlation, theirs, correlationId); \
  SAME(GraphTraceRecord, start, theirs, start);               \
  SAME(GraphTraceRecord, end, theirs, end);                   \
  SAME(GraphTraceRecord, device, theirs, deviceId);           \
  SAME(GraphTraceRecord, graph, theirs, graphId);             \
  SAME(GraphTraceRecord, context, theirs, contextId);         \
  SAME(GraphTraceRecord, stream, theirs, streamId)
SAME_GRAPH(CUpti_ActivityGraphTrace);
SAME_GRAPH(CUpti_ActivityGraphTrace2);

#define SAME_OVERHEAD(theirs)                           \
  SAME(OverheadRecord, overhead, theirs, overheadKind); \
  SAME(OverheadRecord, object, theirs, objectKind);     \
  SAME(OverheadRecord, ids, theirs, objectId);          \
  SAME(OverheadRecord, start, theirs, start);           \
  SAME(OverheadRecord, end, theirs, end)
SAME_OVERHEAD(CUpti_ActivityOverhead);
SAME_OVERHEAD(CUpti_ActivityOverhead2);
SAME_OVERHEAD(CUpti_ActivityOverhead3);

#define SAME_CONTEXT(theirs)                       \
  SAME(ContextRecord, context, theirs, contextId); \
  SAME(ContextRecord, device, theirs, deviceId)
SAME_CONTEXT(CUpti_ActivityContext);
SAME_CONTEXT(CUpti_ActivityContext2);
SAME_CONTEXT(CUpti_ActivityContext3);
SAME(StreamRecord, stream, CUpti_ActivityStream, streamId);

#define KIND(ours, theirs) \
  static_assert(static_cast<int>(RecordKind::ours) == CUPTI_ACTIVITY_KIND_##theirs)
KIND(kMemcpy, MEMCPY);
KIND(kMemset, MEMSET);
KIND(kKernel, KERNEL);
KIND(kDriver, DRIVER);
KIND(kRuntime, RUNTIME);
KIND(kContext, CONTEXT);
KIND(kConcurrentKernel, CONCURRENT_KERNEL);
KIND(kOverhead, OVERHEAD);
KIND(kPeerCopy, MEMCPY2);
KIND(kStream, STREAM);
KIND(kMemory, MEMORY2);
KIND(kMemoryPool, MEMORY_POOL);
KIND(kGraphTrace, GRAPH_TRACE);
KIND(kExternalCorrelation, EXTERNAL_CORRELATION);

static_assert(CUPTI_CB_DOMAIN_DRIVER_API == 1 && CUPTI_CB_DOMAIN_RUNTIME_API == 2 &&
              CUPTI_CB_DOMAIN_RESOURCE == 3 && CUPTI_CB_DOMAIN_STATE == 6 &&
              kFatalError == CUPTI_CBID_STATE_FATAL_ERROR);
SAME(StateData, result, CUpti_StateData, notification.result);
SAME(StateData, message, CUpti_StateData, notification.message);
static_assert(kProfilerStart[0] == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart &&
              kProfilerStart[1] == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000 &&
              kProfilerStop[0] == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop &&
              kProfilerStop[1] == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000);
static_assert(kGraphNodeCreated == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED &&
              kGraphNodeCloned == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME(CallData, site, CUpti_CallbackData, callbackSite);
SAME(CallData, parameters, CUpti_CallbackData, functionParams);
SAME(CallData, context_number, CUpti_CallbackData, contextUid);
SAME(CallData, correlation, CUpti_CallbackData, correlationId);
static_assert(CUPTI_API_ENTER == 0 && CUPTI_API_EXIT == 1);
SAME(ResourceData, what, CUpti_ResourceData, resourceDescriptor);
SAME(GraphData, node, CUpti_GraphData, node);
SAME(GraphData, original_node, CUpti_GraphData, originalNode);

#endif

}  // namespace
}  // namespace pasta::adapters::cupti
