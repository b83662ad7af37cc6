// Hand-made records of each kind, in the layout of each version.
#include "adapters/rocprofiler/decode.h"

#include <gtest/gtest.h>

#include <limits>

namespace pasta::adapters::rocprofiler {
namespace {

constexpr std::uint32_t kVersions[] = {500, 600, 10000};

// As its SDK makes it.
template <class Record>
Record make() {
  Record record{};
  record.size = sizeof record;
  record.kind = 11;
  record.operation = 2;
  return record;
}

Decoded told(Service service, std::uint32_t version, const void* record, Told expected) {
  Decoded to;
  EXPECT_EQ(decode(service, version, record, to), expected);
  return to;
}

TEST(Rocprofiler, ServicesAreKnownByName) {
  EXPECT_EQ(service_of("KERNEL_DISPATCH"), Service::kKernels);
  EXPECT_EQ(service_of("HIP_COMPILER_API"), Service::kRuntimeCalls);
  EXPECT_EQ(service_of("HSA_AMD_EXT_API"), Service::kDriverCalls);
  EXPECT_EQ(service_of("KFD_PAGE_FAULT"), Service::kFaults);
  for (const char* other : {"", "NONE", "HIP_RUNTIME_API_EXT", "MARKER_CORE_API", "kernel"}) {
    EXPECT_EQ(service_of(other), Service::kOther) << other;
  }
}

template <class Record>
void check_call(std::uint32_t version) {
  auto record = make<Record>();
  record.correlation.internal = 41;
  record.correlation.external = 99;
  record.start = 1000;
  record.end = 1500;
  record.thread = 77;
  const auto check = [&](Service service, ApiDomain domain) {
    const Decoded to = told(service, version, &record, Told::kEvent);
    EXPECT_EQ(to.event.kind, Kind::kApi);
    EXPECT_EQ(to.event.detail, static_cast<std::uint16_t>(domain));
    EXPECT_EQ(to.event.correlation, 41u);
    EXPECT_EQ(to.event.start_ns, 1000);
    EXPECT_EQ(to.event.end_ns, 1500);
    EXPECT_EQ(to.place.type, Place::Type::kThread);
    EXPECT_EQ(to.place.thread, 77u);
    EXPECT_EQ(to.kind, 11);
    EXPECT_EQ(to.operation, 2);
  };
  check(Service::kRuntimeCalls, ApiDomain::kRuntime);
  check(Service::kDriverCalls, ApiDomain::kDriver);
  check(Service::kCommunicationCalls, ApiDomain::kCommunication);
  record.size -= 8;
  told(Service::kRuntimeCalls, version, &record, Told::kInvalid);
}
TEST(Rocprofiler, Calls) {
  check_call<CallRecord05>(500);
  check_call<CallRecord05>(600);
  check_call<CallRecord1>(10000);
  // A record of the layout before has nothing where the thread of this one lies.
  const auto old = make<CallRecord05>();
  told(Service::kRuntimeCalls, 10000, &old, Told::kInvalid);
}

KernelRecord kernel_record() {
  auto record = make<KernelRecord>();
  record.correlation = {41, stream_mark(0)};
  record.thread = 77;
  record.start = 2000;
  record.end = 2500;
  Dispatch& dispatch = record.dispatch;
  dispatch.size = offsetof(Dispatch, reserved);  // the SDK does not count what is reserved
  dispatch.agent = 7;
  dispatch.queue = 5;
  dispatch.kernel = 9;
  dispatch.id = 12;
  dispatch.private_bytes = 128;
  dispatch.group_bytes = 1536;
  dispatch.workgroup[0] = 256;
  dispatch.workgroup[1] = dispatch.workgroup[2] = 1;
  dispatch.grid[0] = 1000;
  dispatch.grid[1] = 2;
  dispatch.grid[2] = 1;
  return record;
}

TEST(Rocprofiler, Kernels) {
  const KernelRecord record = kernel_record();
  for (const std::uint32_t version : kVersions) {
    Decoded to = told(Service::kKernels, version, &record, Told::kEvent);
    EXPECT_EQ(to.event.kind, Kind::kKernel);
    EXPECT_EQ(to.event.duration_ns(), 500);
    EXPECT_EQ(to.event.correlation, 41u);
    EXPECT_EQ(to.event.kernel.grid[0], 4u);  // the last of 232 work-items
    EXPECT_EQ(to.event.kernel.grid[1], 2u);
    EXPECT_EQ(to.event.kernel.grid[2], 1u);
    EXPECT_EQ(to.attributes.block[0], 256u);
    EXPECT_EQ(to.event.kernel.ordinal, 12u);
    EXPECT_EQ(to.attributes.local_bytes_per_thread, 128u);
    EXPECT_EQ(to.kernel, 9u);
    EXPECT_EQ(to.dispatch, 12u);
    EXPECT_EQ(to.place.type, Place::Type::kQueue);
    EXPECT_EQ(to.place.agent, 7u);
    EXPECT_TRUE(to.place.knows_queue);
    EXPECT_EQ(to.place.queue, 5u);
    EXPECT_TRUE(to.place.knows_stream);  // of number 0
    EXPECT_EQ(to.place.stream, 0u);
    split_shared(to.attributes, 512);
    EXPECT_EQ(to.attributes.static_shared_bytes, 512u);
    EXPECT_EQ(to.attributes.dynamic_shared_bytes, 1024u);
  }
}

TEST(Rocprofiler, AKernelThatSaysLittle) {
  KernelRecord record = kernel_record();
  record.correlation = {};
  record.dispatch.workgroup[1] = 0;
  record.dispatch.id = std::uint64_t{1} << 32;
  Decoded to = told(Service::kKernels, 10000, &record, Told::kEvent);
  EXPECT_EQ(to.event.correlation, 0u);
  EXPECT_EQ(to.correlation, Reason::kNone);  // it names no launch, which is no fault of it
  EXPECT_FALSE(to.place.knows_stream);
  EXPECT_EQ(to.event.kernel.grid[1], 0u);  // unknown
  EXPECT_EQ(to.event.kernel.ordinal, 0u);  // more than an event can say
  // A kernel may have had less when it was launched than its code says.
  split_shared(to.attributes, 4096);
  EXPECT_EQ(to.attributes.static_shared_bytes, 4096u);
  EXPECT_EQ(to.attributes.dynamic_shared_bytes, 0u);
}

TEST(Rocprofiler, SamplesOfProgramCounters) {
  PcSample to;
  HostTrapSample trap{};
  trap.size = sizeof trap;
  trap.dispatch = 7;
  trap.pc = {3, 0x1a0};
  EXPECT_EQ(decode_sample(kHostTrapPc, &trap, to), Told::kEvent);
  EXPECT_EQ(to.dispatch, 7u);
  EXPECT_EQ(to.pc.code_object, 3u);
  EXPECT_EQ(to.pc.offset, 0x1a0u);
  EXPECT_EQ(to.state, device::WaveState::kUnknown);

  StochasticSample hardware{};
  hardware.size = sizeof hardware;
  hardware.dispatch = 8;
  hardware.pc = {4, 0x20};
  hardware.issued = 0xfe;  // of other bits than that of issuing
  hardware.snapshot = 0xfffffff3;
  EXPECT_EQ(decode_sample(kStochasticPc, &hardware, to), Told::kEvent);
  EXPECT_EQ(to.dispatch, 8u);
  EXPECT_EQ(to.pc.offset, 0x20u);
  EXPECT_EQ(to.state, device::WaveState::kStalled);
  EXPECT_EQ(to.stall, 3u);
  hardware.issued = 1;
  EXPECT_EQ(decode_sample(kStochasticPc, &hardware, to), Told::kEvent);
  EXPECT_EQ(to.state, device::WaveState::kIssued);
  EXPECT_EQ(to.stall, 0u);

  trap.size = sizeof trap - sizeof(std::uint64_t);
  EXPECT_EQ(decode_sample(kHostTrapPc, &trap, to), Told::kInvalid);
  EXPECT_EQ(decode_sample(kInvalidPc, &trap, to), Told::kInvalid);
  EXPECT_EQ(decode_sample(9, &trap, to), Told::kUnknown);
}

TEST(Rocprofiler, TimesThatCannotBe) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  const struct {
    std::uint64_t start, end;
    Reason reason;
  } cases[] = {{0, 0, Reason::kUntimed},
               {0, 5, Reason::kUntimed},
               {5, 0, Reason::kUntimed},
               {6, 5, Reason::kNegativeDuration},
               {5, kHuge, Reason::kTimeOutOfRange},
               {kHuge, 5, Reason::kTimeOutOfRange},
               {5, 5, Reason::kNone}};
  for (const auto& one : cases) {
    KernelRecord record = kernel_record();
    record.start = one.start;
    record.end = one.end;
    const Decoded to = told(Service::kKernels, 10000, &record, Told::kEvent);
    EXPECT_EQ(to.times, one.reason) << one.start << " " << one.end;
    EXPECT_EQ(to.event.untimed(), one.reason != Reason::kNone);
    EXPECT_EQ(to.event.start_ns, one.reason == Reason::kNone ? 5 : kNoTime);
    EXPECT_EQ(to.event.duration_ns(), 0);
  }
}

TEST(Rocprofiler, CorrelationsThatAreTooLarge) {
  KernelRecord record = kernel_record();
  record.correlation.internal = kMaxVendorCorrelation;
  EXPECT_EQ(told(Service::kKernels, 10000, &record, Told::kEvent).event.correlation,
            kMaxVendorCorrelation);
  ++record.correlation.internal;
  const Decoded to = told(Service::kKernels, 10000, &record, Told::kEvent);
  EXPECT_EQ(to.event.correlation, 0u);
  EXPECT_EQ(to.correlation, Reason::kCorrelationRange);
}

TEST(Rocprofiler, Copies) {
  auto record = make<CopyRecord1>();
  record.correlation = {43, stream_mark(4)};
  record.start = 10;
  record.end = 30;
  record.bytes = 4096;
  record.source = 16;
  record.target = 32;
  const auto check = [&](std::int32_t operation, std::uint64_t source, std::uint64_t target,
                         CopyDirection direction, std::uint64_t lies_on) {
    record.operation = operation;
    record.source_agent = source;
    record.target_agent = target;
    for (const std::uint32_t version : kVersions) {
      record.size = version >= kVersion1 ? sizeof(CopyRecord1) : sizeof(CopyRecord05);
      const Decoded to = told(Service::kCopies, version, &record, Told::kEvent);
      EXPECT_EQ(to.event.kind, Kind::kCopy);
      EXPECT_EQ(to.event.detail, static_cast<std::uint16_t>(direction)) << operation;
      EXPECT_EQ(to.event.copy.bytes, 4096u);
      EXPECT_EQ(to.event.copy.src, version >= kVersion1 ? 16u : 0u);
      EXPECT_EQ(to.event.copy.dst, version >= kVersion1 ? 32u : 0u);
      EXPECT_EQ(to.place.agent, lies_on);
      EXPECT_EQ(to.place.stream, 4u);
      EXPECT_FALSE(to.place.knows_queue);
    }
  };
  check(kHostToHost, 1, 1, CopyDirection::kHostToHost, 1);
  check(kHostToDevice, 1, 7, CopyDirection::kHostToDevice, 7);
  check(kDeviceToHost, 7, 1, CopyDirection::kDeviceToHost, 7);
  check(kDeviceToDevice, 7, 7, CopyDirection::kDeviceToDevice, 7);
  check(kDeviceToDevice, 7, 8, CopyDirection::kPeerToPeer, 8);
  check(0, 7, 8, CopyDirection::kUnknown, 8);
  check(99, 7, 8, CopyDirection::kUnknown, 8);
  record.size = sizeof(CopyRecord05);
  told(Service::kCopies, 10000, &record, Told::kInvalid);
}

template <class Record>
void check_allocation(std::uint32_t version) {
  auto record = make<Record>();
  record.correlation.internal = 44;
  record.start = 10;
  record.end = 30;
  record.thread = 77;
  record.agent = 7;
  record.address = 4096;
  record.bytes = 64;
  for (const std::int32_t operation : {kAllocate, kVirtualAllocate, kFree, kVirtualFree}) {
    const bool frees = operation == kFree || operation == kVirtualFree;
    record.operation = operation;
    const Decoded to = told(Service::kAllocations, version, &record, Told::kEvent);
    EXPECT_EQ(to.event.kind, frees ? Kind::kFree : Kind::kAlloc);
    EXPECT_EQ(to.event.memory.address, 4096u);
    EXPECT_EQ(to.event.memory.bytes, frees ? 0u : 64u);  // which freeing does not tell
    EXPECT_EQ(to.agent, frees ? 0u : 7u);
    EXPECT_EQ(to.place.thread, 77u);
  }
  for (const std::int32_t operation : {0, 5, -1}) {
    record.operation = operation;
    told(Service::kAllocations, version, &record, Told::kInvalid);
  }
}
TEST(Rocprofiler, Allocations) {
  check_allocation<AllocationRecord06>(600);
  check_allocation<AllocationRecord1>(10000);
}

template <class Record>
void check_scratch(std::uint32_t version) {
  auto record = make<Record>();
  record.agent = 7;
  record.queue = 5;
  record.thread = 77;
  record.start = 10;
  record.end = 30;
  const Decoded to = told(Service::kScratch, version, &record, Told::kEvent);
  EXPECT_EQ(to.event.kind, Kind::kScope);
  EXPECT_EQ(to.event.detail, static_cast<std::uint16_t>(ScopeDomain::kRuntime));
  EXPECT_EQ(to.place.thread, 77u);
  EXPECT_EQ(to.event.duration_ns(), 20);
}
TEST(Rocprofiler, ScratchMemory) {
  check_scratch<ScratchRecord05>(500);
  check_scratch<ScratchRecord06>(600);
  check_scratch<ScratchRecord1>(10000);
}

TEST(Rocprofiler, UnifiedMemory) {
  auto migration = make<MigrationRecord>();
  migration.start = 10;
  migration.end = 30;
  migration.first_address = 4096;
  migration.end_address = 12288;
  migration.source_agent = 1;
  migration.target_agent = 7;
  Decoded to = told(Service::kMigrations, 10000, &migration, Told::kEvent);
  EXPECT_EQ(to.event.kind, Kind::kCopy);
  EXPECT_EQ(to.event.detail, static_cast<std::uint16_t>(CopyDirection::kMigration));
  EXPECT_EQ(to.event.copy.bytes, 8192u);
  EXPECT_EQ(to.place.type, Place::Type::kMemory);
  EXPECT_EQ(to.place.agent, 7u);
  migration.end_address = 0;
  told(Service::kMigrations, 10000, &migration, Told::kInvalid);

  auto fault = make<FaultRecord>();
  fault.start = 10;
  fault.end = 30;
  fault.agent = 7;
  fault.address = 4096;
  to = told(Service::kFaults, 10000, &fault, Told::kEvent);
  EXPECT_EQ(to.event.kind, Kind::kFault);
  EXPECT_EQ(to.event.memory.bytes, kUnknownBytes);
  EXPECT_EQ(to.event.memory.address, 4096u);
  EXPECT_EQ(to.agent, 7u);

  auto dropped = make<DroppedRecord>();
  dropped.count = 3;
  EXPECT_EQ(told(Service::kDropped, 10000, &dropped, Told::kLost).lost, 3u);
}

TEST(Rocprofiler, UnifiedMemoryBefore1) {
  auto whole = make<PageRecord05>();
  whole.start = 10;
  whole.end = 30;
  whole.operation = kMigration05;
  whole.migration = {4096, 12288, 1, 7};
  Decoded to = told(Service::kPages, 500, &whole, Told::kEvent);
  EXPECT_EQ(to.event.copy.bytes, 8192u);
  EXPECT_EQ(to.event.end_ns, 30);
  EXPECT_EQ(to.place.agent, 7u);
  EXPECT_TRUE(to.by_node);
  whole.migration.end_address = 0;
  told(Service::kPages, 500, &whole, Told::kInvalid);
  whole.operation = kFault05;
  whole.fault = {1, 7, 4096};
  EXPECT_EQ(told(Service::kPages, 500, &whole, Told::kEvent).event.memory.address, 4096u);
  whole.operation = 3;
  told(Service::kPages, 500, &whole, Told::kUnknown);

  auto half = make<PageRecord06>();
  half.timestamp = 10;
  half.operation = kMigrationStart;
  half.migration = {4096, 12288, 1, 7};
  const std::uint64_t pair = told(Service::kPages, 600, &half, Told::kBegins).pair;
  half.operation = kMigrationEnd;
  half.timestamp = 30;
  to = told(Service::kPages, 600, &half, Told::kEvent);
  EXPECT_EQ(to.pair, pair);
  EXPECT_EQ(to.time, 30u);
  EXPECT_EQ(to.event.copy.bytes, 8192u);
  EXPECT_FALSE(to.by_node);
  half.migration.end_address = 0;
  told(Service::kPages, 600, &half, Told::kInvalid);
  half.operation = kFaultEnd;
  half.fault = {1, 7, 4096};
  EXPECT_NE(told(Service::kPages, 600, &half, Told::kEvent).pair, pair);
  half.operation = kPagesDropped;
  half.dropped = 3;
  EXPECT_EQ(told(Service::kPages, 600, &half, Told::kLost).lost, 3u);
  half.operation = 5;
  told(Service::kPages, 600, &half, Told::kUnknown);
}

TEST(Rocprofiler, RecordsThatAreTooShort) {
  const std::uint64_t size[2] = {sizeof size, 0};
  for (const std::uint32_t version : kVersions) {
    for (int service = 1; service <= static_cast<int>(Service::kDropped); ++service) {
      told(static_cast<Service>(service), version, size, Told::kInvalid);
    }
    told(Service::kOther, version, size, Told::kUnknown);
  }
}

}  // namespace
}  // namespace pasta::adapters::rocprofiler
