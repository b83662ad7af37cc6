// What records.h says of the layouts of rocprofiler-sdk, held to the vendor's headers where there
// are any, of whichever version those are. Compiling it is the test.
#if __has_include(<rocprofiler-sdk/rocprofiler.h>)
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include <cstddef>
#include <iterator>
#include <utility>

#include "adapters/rocprofiler/records.h"
#include "device/samples.h"

#define SAME(Ours, field, Theirs, their_field)                                         \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, their_field) &&              \
                    sizeof(std::declval<Ours>().field) == sizeof(Theirs::their_field), \
                #Theirs "::" #their_field)

namespace pasta::adapters::rocprofiler {
namespace {

template <class Enum>
constexpr bool is(Enum ours, long theirs) {
  return static_cast<long>(ours) == theirs;
}

#if ROCPROFILER_VERSION_MAJOR >= 1
using OurCall = CallRecord1;
using OurCopy = CopyRecord1;
using OurScratch = ScratchRecord1;
using OurCallback = Callback1;
using OurClient = ClientId1;
using OurCounter = CounterRecord06;
using TheirCounter = rocprofiler_counter_record_t;
using TheirCounted = rocprofiler_dispatch_counting_service_data_t;
#elif ROCPROFILER_VERSION_MINOR >= 6
using OurCall = CallRecord05;
using OurCopy = CopyRecord05;
using OurScratch = ScratchRecord06;
using OurCallback = Callback05;
using OurClient = ClientId05;
using OurCounter = CounterRecord06;
using TheirCounter = rocprofiler_record_counter_t;
using TheirCounted = rocprofiler_dispatch_counting_service_data_t;
#else
using OurCall = CallRecord05;
using OurCopy = CopyRecord05;
using OurScratch = ScratchRecord05;
using OurCallback = Callback05;
using OurClient = ClientId05;
using OurCounter = CounterRecord05;
using TheirCounter = rocprofiler_record_counter_t;
using TheirCounted = rocprofiler_profile_counting_dispatch_data_t;
#endif

static_assert(sizeof(RecordHeader) == sizeof(rocprofiler_record_header_t));
SAME(RecordHeader, category, rocprofiler_record_header_t, category);
SAME(RecordHeader, kind, rocprofiler_record_header_t, kind);
SAME(RecordHeader, payload, rocprofiler_record_header_t, payload);
static_assert(is(RecordHeader::kTracing, ROCPROFILER_BUFFER_CATEGORY_TRACING) &&
              is(RecordHeader::kPcSampling, ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING) &&
              is(RecordHeader::kCounters, ROCPROFILER_BUFFER_CATEGORY_COUNTERS));

#define SAME_CALL(Theirs)                             \
  static_assert(sizeof(OurCall) == sizeof(Theirs));   \
  SAME(OurCall, size, Theirs, size);                  \
  SAME(OurCall, kind, Theirs, kind);                  \
  SAME(OurCall, operation, Theirs, operation);        \
  SAME(OurCall, correlation, Theirs, correlation_id); \
  SAME(OurCall, start, Theirs, start_timestamp);      \
  SAME(OurCall, end, Theirs, end_timestamp);          \
  SAME(OurCall, thread, Theirs, thread_id)
SAME_CALL(rocprofiler_buffer_tracing_hip_api_record_t);
SAME_CALL(rocprofiler_buffer_tracing_hsa_api_record_t);
SAME_CALL(rocprofiler_buffer_tracing_rccl_api_record_t);
#undef SAME_CALL

using TheirDispatch = rocprofiler_kernel_dispatch_info_t;
static_assert(sizeof(Dispatch) == sizeof(TheirDispatch));
SAME(Dispatch, agent, TheirDispatch, agent_id);
SAME(Dispatch, queue, TheirDispatch, queue_id);
SAME(Dispatch, kernel, TheirDispatch, kernel_id);
SAME(Dispatch, id, TheirDispatch, dispatch_id);
SAME(Dispatch, private_bytes, TheirDispatch, private_segment_size);
SAME(Dispatch, group_bytes, TheirDispatch, group_segment_size);
SAME(Dispatch, workgroup, TheirDispatch, workgroup_size);
SAME(Dispatch, grid, TheirDispatch, grid_size);
SAME(Dispatch, reserved, TheirDispatch, reserved_padding);

using TheirKernel = rocprofiler_buffer_tracing_kernel_dispatch_record_t;
static_assert(sizeof(KernelRecord) == sizeof(TheirKernel));
SAME(KernelRecord, kind, TheirKernel, kind);
SAME(KernelRecord, operation, TheirKernel, operation);
SAME(KernelRecord, correlation, TheirKernel, correlation_id);
SAME(KernelRecord, thread, TheirKernel, thread_id);
SAME(KernelRecord, start, TheirKernel, start_timestamp);
SAME(KernelRecord, end, TheirKernel, end_timestamp);
SAME(KernelRecord, dispatch, TheirKernel, dispatch_info);

using TheirCopy = rocprofiler_buffer_tracing_memory_copy_record_t;
static_assert(sizeof(OurCopy) == sizeof(TheirCopy));
SAME(OurCopy, operation, TheirCopy, operation);
SAME(OurCopy, correlation, TheirCopy, correlation_id);
SAME(OurCopy, thread, TheirCopy, thread_id);
SAME(OurCopy, start, TheirCopy, start_timestamp);
SAME(OurCopy, end, TheirCopy, end_timestamp);
SAME(OurCopy, target_agent, TheirCopy, dst_agent_id);
SAME(OurCopy, source_agent, TheirCopy, src_agent_id);
SAME(OurCopy, bytes, TheirCopy, bytes);
static_assert(is(kHostToHost, ROCPROFILER_MEMORY_COPY_HOST_TO_HOST) &&
              is(kHostToDevice, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE) &&
              is(kDeviceToHost, ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST) &&
              is(kDeviceToDevice, ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE));

using TheirScratch = rocprofiler_buffer_tracing_scratch_memory_record_t;
SAME(OurScratch, operation, TheirScratch, operation);
SAME(OurScratch, correlation, TheirScratch, correlation_id);
SAME(OurScratch, agent, TheirScratch, agent_id);
SAME(OurScratch, queue, TheirScratch, queue_id);
SAME(OurScratch, thread, TheirScratch, thread_id);
SAME(OurScratch, start, TheirScratch, start_timestamp);
SAME(OurScratch, end, TheirScratch, end_timestamp);
SAME(OurScratch, flags, TheirScratch, flags);
static_assert(sizeof(OurScratch) <= sizeof(TheirScratch));

#if ROCPROFILER_VERSION_MAJOR >= 1 || ROCPROFILER_VERSION_MINOR >= 6
#if ROCPROFILER_VERSION_MAJOR >= 1
using OurAllocation = AllocationRecord1;
#else
using OurAllocation = AllocationRecord06;
#endif
using TheirAllocation = rocprofiler_buffer_tracing_memory_allocation_record_t;
static_assert(sizeof(OurAllocation) == sizeof(TheirAllocation));
SAME(OurAllocation, operation, TheirAllocation, operation);
SAME(OurAllocation, correlation, TheirAllocation, correlation_id);
SAME(OurAllocation, thread, TheirAllocation, thread_id);
SAME(OurAllocation, start, TheirAllocation, start_timestamp);
SAME(OurAllocation, end, TheirAllocation, end_timestamp);
SAME(OurAllocation, agent, TheirAllocation, agent_id);
SAME(OurAllocation, address, TheirAllocation, address);
SAME(OurAllocation, bytes, TheirAllocation, allocation_size);
static_assert(is(kAllocate, ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE) &&
              is(kVirtualAllocate, ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE) &&
              is(kFree, ROCPROFILER_MEMORY_ALLOCATION_FREE) &&
              is(kVirtualFree, ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE));
#endif

#if ROCPROFILER_VERSION_MAJOR == 0
using TheirPages = rocprofiler_buffer_tracing_page_migration_record_t;
#if ROCPROFILER_VERSION_MINOR >= 6
static_assert(sizeof(PageRecord06) == sizeof(TheirPages));
SAME(PageRecord06, operation, TheirPages, operation);
SAME(PageRecord06, timestamp, TheirPages, timestamp);
SAME(PageRecord06, process, TheirPages, pid);
static_assert(offsetof(PageRecord06, migration) == offsetof(TheirPages, args));
SAME(PageMigration06, first_address, rocprofiler_page_migration_page_migrate_end_t, start_addr);
SAME(PageMigration06, end_address, rocprofiler_page_migration_page_migrate_end_t, end_addr);
SAME(PageMigration06, source_agent, rocprofiler_page_migration_page_migrate_end_t, from_agent);
SAME(PageMigration06, target_agent, rocprofiler_page_migration_page_migrate_end_t, to_agent);
SAME(PageFault06, agent, rocprofiler_page_migration_page_fault_end_t, agent_id);
SAME(PageFault06, address, rocprofiler_page_migration_page_fault_end_t, address);
static_assert(is(kMigrationStart, ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE_START) &&
              is(kMigrationEnd, ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE_END) &&
              is(kFaultStart, ROCPROFILER_PAGE_MIGRATION_PAGE_FAULT_START) &&
              is(kFaultEnd, ROCPROFILER_PAGE_MIGRATION_PAGE_FAULT_END) &&
              is(kPagesDropped, ROCPROFILER_PAGE_MIGRATION_DROPPED_EVENT));
#else
static_assert(sizeof(PageRecord05) == sizeof(TheirPages));
SAME(PageRecord05, operation, TheirPages, operation);
SAME(PageRecord05, start, TheirPages, start_timestamp);
SAME(PageRecord05, end, TheirPages, end_timestamp);
SAME(PageRecord05, process, TheirPages, pid);
using TheirPageMigration = rocprofiler_buffer_tracing_page_migration_page_migrate_record_t;
using TheirPageFault = rocprofiler_buffer_tracing_page_migration_page_fault_record_t;
static_assert(offsetof(PageRecord05, migration) == offsetof(TheirPages, page_migrate));
static_assert(offsetof(PageRecord05, fault) == offsetof(TheirPages, page_fault));
SAME(PageMigration05, first_address, TheirPageMigration, start_addr);
SAME(PageMigration05, end_address, TheirPageMigration, end_addr);
SAME(PageMigration05, source_node, TheirPageMigration, from_node);
SAME(PageMigration05, target_node, TheirPageMigration, to_node);
SAME(PageFault05, node, TheirPageFault, node_id);
SAME(PageFault05, address, TheirPageFault, address);
static_assert(is(kMigration05, ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE) &&
              is(kFault05, ROCPROFILER_PAGE_MIGRATION_PAGE_FAULT));
#endif
#endif

#if ROCPROFILER_VERSION_MAJOR >= 1
SAME(CopyRecord1, target, TheirCopy, dst_address);
SAME(CopyRecord1, source, TheirCopy, src_address);

using TheirMigration = rocprofiler_buffer_tracing_kfd_page_migrate_record_t;
static_assert(sizeof(MigrationRecord) == sizeof(TheirMigration));
SAME(MigrationRecord, operation, TheirMigration, operation);
SAME(MigrationRecord, start, TheirMigration, start_timestamp);
SAME(MigrationRecord, end, TheirMigration, end_timestamp);
SAME(MigrationRecord, process, TheirMigration, pid);
SAME(MigrationRecord, first_address, TheirMigration, start_address);
SAME(MigrationRecord, end_address, TheirMigration, end_address);
SAME(MigrationRecord, source_agent, TheirMigration, src_agent);
SAME(MigrationRecord, target_agent, TheirMigration, dst_agent);
SAME(MigrationRecord, error, TheirMigration, error_code);

using TheirFault = rocprofiler_buffer_tracing_kfd_page_fault_record_t;
static_assert(sizeof(FaultRecord) == sizeof(TheirFault));
SAME(FaultRecord, start, TheirFault, start_timestamp);
SAME(FaultRecord, end, TheirFault, end_timestamp);
SAME(FaultRecord, agent, TheirFault, agent_id);
SAME(FaultRecord, address, TheirFault, address);

using TheirDropped = rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t;
static_assert(sizeof(DroppedRecord) == sizeof(TheirDropped));
SAME(DroppedRecord, timestamp, TheirDropped, timestamp);
SAME(DroppedRecord, count, TheirDropped, count);

using TheirStream = rocprofiler_callback_tracing_hip_stream_data_t;
static_assert(sizeof(StreamChange) == sizeof(TheirStream));
SAME(StreamChange, stream, TheirStream, stream_id);
static_assert(is(kStreamSet, ROCPROFILER_HIP_STREAM_SET));
#endif

using TheirCallback = rocprofiler_callback_tracing_record_t;
static_assert(sizeof(OurCallback) == sizeof(TheirCallback));
SAME(OurCallback, context, TheirCallback, context_id);
SAME(OurCallback, thread, TheirCallback, thread_id);
SAME(OurCallback, correlation, TheirCallback, correlation_id);
SAME(OurCallback, kind, TheirCallback, kind);
SAME(OurCallback, operation, TheirCallback, operation);
SAME(OurCallback, phase, TheirCallback, phase);
SAME(OurCallback, payload, TheirCallback, payload);
static_assert(is(kEnter, ROCPROFILER_CALLBACK_PHASE_ENTER) &&
              is(kEnter, ROCPROFILER_CALLBACK_PHASE_LOAD) &&
              is(kLeave, ROCPROFILER_CALLBACK_PHASE_EXIT));

using TheirSymbol = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
SAME(KernelSymbol, kernel, TheirSymbol, kernel_id);
SAME(KernelSymbol, code_object, TheirSymbol, code_object_id);
SAME(KernelSymbol, name, TheirSymbol, kernel_name);
SAME(KernelSymbol, group_bytes, TheirSymbol, group_segment_size);
SAME(KernelSymbol, private_bytes, TheirSymbol, private_segment_size);
SAME(KernelSymbol, vgprs, TheirSymbol, arch_vgpr_count);
SAME(KernelSymbol, accumulation_vgprs, TheirSymbol, accum_vgpr_count);
static_assert(sizeof(KernelSymbol) <= sizeof(TheirSymbol));
static_assert(is(kKernelSymbolRegister, ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER));

using TheirMarker = rocprofiler_callback_tracing_marker_api_data_t;
static_assert(sizeof(Marker) == sizeof(TheirMarker));
SAME(Marker, text, TheirMarker, args.roctxRangePushA.message);
SAME(Marker, range, TheirMarker, args.roctxRangeStop.id);
SAME(Marker, result, TheirMarker, retval.roctx_range_id_t_retval);
static_assert(is(kMark, ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA) &&
              is(kRangePush, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA) &&
              is(kRangePop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop) &&
              is(kRangeStart, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA) &&
              is(kRangeStop, ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop));
static_assert(is(kPause, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause) &&
              is(kResume, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume));
static_assert(is(kNameThread, ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread));

using TheirAgent = rocprofiler_agent_v0_t;
SAME(Agent, id, TheirAgent, id);
SAME(Agent, type, TheirAgent, type);
SAME(Agent, memory_banks, TheirAgent, mem_banks_count);
SAME(Agent, wave_size, TheirAgent, wave_front_size);
SAME(Agent, compute_units, TheirAgent, cu_count);
SAME(Agent, gfx_version, TheirAgent, gfx_target_version);
SAME(Agent, waves_per_unit, TheirAgent, max_waves_per_cu);
SAME(Agent, local_bytes, TheirAgent, local_mem_size);
SAME(Agent, banks, TheirAgent, mem_banks);
SAME(Agent, name, TheirAgent, name);
SAME(Agent, product_name, TheirAgent, product_name);
SAME(Agent, node, TheirAgent, node_id);
SAME(Agent, logical, TheirAgent, logical_node_id);
SAME(Agent, of_type, TheirAgent, logical_node_type_id);
#if ROCPROFILER_VERSION_MAJOR >= 1
SAME(Agent, uuid, TheirAgent, uuid);
#elif ROCPROFILER_VERSION_MINOR >= 6
static_assert(offsetof(Agent, uuid) == offsetof(TheirAgent, uuid));
#endif
static_assert(is(Agent::kCpu, ROCPROFILER_AGENT_TYPE_CPU) &&
              is(Agent::kGpu, ROCPROFILER_AGENT_TYPE_GPU));
static_assert(sizeof(MemoryBank) == sizeof(rocprofiler_agent_mem_bank_t));
SAME(MemoryBank, bytes, rocprofiler_agent_mem_bank_t, size_in_bytes);

using TheirInfo = rocprofiler_counter_info_v0_t;
static_assert(sizeof(CounterInfo) == sizeof(TheirInfo));
SAME(CounterInfo, id, TheirInfo, id);
SAME(CounterInfo, name, TheirInfo, name);
static_assert(sizeof(OurCounter) == sizeof(TheirCounter));
SAME(OurCounter, id, TheirCounter, id);
SAME(OurCounter, value, TheirCounter, counter_value);
static_assert(sizeof(CountedDispatch) == sizeof(TheirCounted));
SAME(CountedDispatch, correlation, TheirCounted, correlation_id);
SAME(CountedDispatch, start, TheirCounted, start_timestamp);
SAME(CountedDispatch, end, TheirCounted, end_timestamp);
SAME(CountedDispatch, dispatch, TheirCounted, dispatch_info);

#if ROCPROFILER_VERSION_MAJOR >= 1
using TheirTrap = rocprofiler_pc_sampling_record_host_trap_v0_t;
static_assert(sizeof(HostTrapSample) == sizeof(TheirTrap));
SAME(HostTrapSample, pc.code_object, TheirTrap, pc.code_object_id);
SAME(HostTrapSample, pc.offset, TheirTrap, pc.code_object_offset);
SAME(HostTrapSample, timestamp, TheirTrap, timestamp);
SAME(HostTrapSample, dispatch, TheirTrap, dispatch_id);
SAME(HostTrapSample, correlation, TheirTrap, correlation_id);
using TheirStochastic = rocprofiler_pc_sampling_record_stochastic_v0_t;
static_assert(sizeof(StochasticSample) == sizeof(TheirStochastic));
SAME(StochasticSample, wave, TheirStochastic, wave_in_group);  // the bits of `issued` come next
SAME(StochasticSample, pc.code_object, TheirStochastic, pc.code_object_id);
SAME(StochasticSample, pc.offset, TheirStochastic, pc.code_object_offset);
SAME(StochasticSample, timestamp, TheirStochastic, timestamp);
SAME(StochasticSample, dispatch, TheirStochastic, dispatch_id);
SAME(StochasticSample, snapshot, TheirStochastic, snapshot);
static_assert(is(kInvalidPc, ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE) &&
              is(kHostTrapPc, ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE) &&
              is(kStochasticPc, ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE));
static_assert(is(kStochastic, ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC) &&
              is(kHostTrap, ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP) &&
              is(kCycles, ROCPROFILER_PC_SAMPLING_UNIT_CYCLES) &&
              is(kTime, ROCPROFILER_PC_SAMPLING_UNIT_TIME));
static_assert(std::size(device::kStalls) ==
              ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST);
using TheirPcConfiguration = rocprofiler_pc_sampling_configuration_t;
static_assert(sizeof(PcConfiguration) == sizeof(TheirPcConfiguration));
SAME(PcConfiguration, method, TheirPcConfiguration, method);
SAME(PcConfiguration, unit, TheirPcConfiguration, unit);
SAME(PcConfiguration, least, TheirPcConfiguration, min_interval);
SAME(PcConfiguration, most, TheirPcConfiguration, max_interval);
using TheirSymbol1 = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
static_assert(sizeof(KernelSymbol1) == sizeof(TheirSymbol1));
SAME(KernelSymbol1, code_object, TheirSymbol1, code_object_id);
SAME(KernelSymbol1, entry, TheirSymbol1, kernel_address);
#endif
using TheirObject = rocprofiler_callback_tracing_code_object_load_data_t;
SAME(CodeObject, id, TheirObject, code_object_id);
SAME(CodeObject, load_base, TheirObject, load_base);
static_assert(is(kCodeObjectLoad, ROCPROFILER_CODE_OBJECT_LOAD));

static_assert(sizeof(OurClient) == sizeof(rocprofiler_client_id_t));
SAME(OurClient, name, rocprofiler_client_id_t, name);
using TheirResult = rocprofiler_tool_configure_result_t;
static_assert(sizeof(ConfigureResult) == sizeof(TheirResult));
SAME(ConfigureResult, initialize, TheirResult, initialize);
SAME(ConfigureResult, finalize, TheirResult, finalize);
SAME(ConfigureResult, data, TheirResult, tool_data);

static_assert(is(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY, 10) &&
              is(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, 11));
static_assert(is(ROCPROFILER_BUFFER_POLICY_LOSSLESS, 2));
static_assert(is(ROCPROFILER_AGENT_INFO_VERSION_0, 1) && is(ROCPROFILER_COUNTER_INFO_VERSION_0, 1));

}  // namespace
}  // namespace pasta::adapters::rocprofiler
#endif
