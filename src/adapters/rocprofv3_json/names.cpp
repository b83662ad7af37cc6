#include "adapters/rocprofv3_json/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/decimal.h"

namespace pasta::adapters::rocprofv3_json {
namespace {

using base::JsonCursor;

std::uint32_t narrow(std::uint64_t value) {
  return value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
}

// {"bytes": {"value0": 203, ...}}, the lowest byte first: the 64 bits that AMD's other tools print.
std::uint64_t read_uuid(JsonCursor& cursor) {
  std::uint64_t uuid = 0;
  if (!cursor.enter_object()) return 0;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (key != "bytes" || !cursor.enter_object()) continue;
    for (unsigned shift = 0; cursor.next_member(key); shift += 8) {
      std::uint64_t byte = 0;
      base::parse_unsigned(cursor.number(), byte);
      if (shift < 64) uuid |= (byte & 0xff) << shift;
    }
  }
  return uuid;
}

std::uint64_t read_memory_bytes(JsonCursor& cursor) {
  std::uint64_t bytes = 0;
  if (!cursor.enter_array()) return 0;
  while (cursor.next_element()) {
    if (!cursor.enter_object()) continue;
    std::string_view key;
    while (cursor.next_member(key)) {
      std::uint64_t bank = 0;
      if (key == "size_in_bytes" && base::parse_unsigned(cursor.number(), bank)) bytes += bank;
    }
  }
  return bytes;
}

Name read_agent(JsonCursor& cursor) {
  std::uint64_t id = 0, type = 0, ordinal = 0, compute_units = 0, wave = 0, waves = 0, target = 0;
  const std::pair<std::string_view, std::uint64_t*> numbers[] = {
      {"id", &id},
      {"type", &type},
      {"logical_node_type_id", &ordinal},
      {"cu_count", &compute_units},
      {"wave_front_size", &wave},
      {"max_waves_per_cu", &waves},
      {"gfx_target_version", &target},
  };
  Name agent;
  std::uint64_t uuid = 0;
  std::string product;
  if (!cursor.enter_object()) return agent;
  std::string_view key;
  while (cursor.next_member(key)) {
    const auto number = std::find_if(std::begin(numbers), std::end(numbers),
                                     [&](const auto& entry) { return entry.first == key; });
    if (number != std::end(numbers)) {
      read_handle(cursor, *number->second);
    } else if (key == "name") {
      agent.text = cursor.string();
    } else if (key == "product_name") {
      product = cursor.string();
    } else if (key == "uuid") {
      uuid = read_uuid(cursor);
    } else if (key == "mem_banks") {
      agent.device.memory_bytes = read_memory_bytes(cursor);
    }
  }
  agent.id = id;
  if (!product.empty()) agent.text = std::move(product);
  if (uuid != 0) agent.uuid = fmt::format("GPU-{:016x}", uuid);
  constexpr std::uint64_t kCpu = 1;
  constexpr std::uint64_t kGpu = 2;
  agent.device.type = type == kGpu   ? DeviceType::kGpu
                      : type == kCpu ? DeviceType::kCpu
                                     : DeviceType::kUnknown;
  agent.device.ordinal = narrow(ordinal);
  agent.device.multiprocessors = narrow(compute_units);
  agent.device.warp_size = narrow(wave);
  agent.device.max_threads_per_multiprocessor = narrow(waves * wave);
  agent.device.compute_major = narrow(target / 10000);  // 90500 is gfx950
  agent.device.compute_minor = narrow(target / 100 % 100);
  return agent;
}

Name read_operations(JsonCursor& cursor) {
  Name kind;
  if (!cursor.enter_object()) return kind;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (key == "kind") {
      kind.text = cursor.string();
    } else if (key == "operations" && cursor.enter_array()) {
      while (cursor.next_element()) kind.operations.emplace_back(cursor.string());
    }
  }
  return kind;
}

Name read_symbol(JsonCursor& cursor) {
  Name kernel;
  std::uint64_t registers = 0, more_registers = 0, group_bytes = 0;
  std::string mangled;
  if (!cursor.enter_object()) return kernel;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (key == "kernel_id") {
      read_handle(cursor, kernel.id);
    } else if (key == "arch_vgpr_count") {
      read_handle(cursor, registers);
    } else if (key == "accum_vgpr_count") {
      read_handle(cursor, more_registers);
    } else if (key == "group_segment_size") {
      read_handle(cursor, group_bytes);
    } else if (key == "formatted_kernel_name") {
      kernel.text = cursor.string();
    } else if (key == "kernel_name") {
      mangled = cursor.string();
    }
  }
  if (kernel.text.empty()) {
    if (mangled.ends_with(".kd")) mangled.resize(mangled.size() - 3);
    kernel.text = std::move(mangled);
  }
  kernel.vector_registers = narrow(registers + more_registers);
  kernel.group_bytes = narrow(group_bytes);
  return kernel;
}

// {"id": {"handle": 7}, "name": "SQ_WAVES", ...} or {"key": 7, "value": "my range"}
Name read_pair(JsonCursor& cursor) {
  Name pair;
  if (!cursor.enter_object()) return pair;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (key == "id" || key == "key") {
      read_handle(cursor, pair.id);
    } else if (key == "name" || key == "value") {
      pair.text = cursor.string();
    }
  }
  return pair;
}

}  // namespace

Metadata read_metadata(JsonCursor& cursor) {
  Metadata metadata;
  if (!cursor.enter_object()) return metadata;
  std::string_view key;
  while (cursor.next_member(key)) {
    if (key == "pid") {
      metadata.has_pid = base::parse_unsigned(cursor.number(), metadata.pid);
    } else if (key == "command" && cursor.enter_array()) {
      for (bool first = true; cursor.next_element(); first = false) {
        if (first) metadata.command = cursor.string();
      }
    } else if (key == "node" && cursor.enter_object()) {
      while (cursor.next_member(key)) {
        if (key == "hostname") metadata.host = cursor.string();
      }
    }
  }
  return metadata;
}

Name read_name(JsonCursor& cursor, Table table) {
  switch (table) {
    case Table::kAgents:
      return read_agent(cursor);
    case Table::kOperationNames:
      return read_operations(cursor);
    case Table::kKernelSymbols:
      return read_symbol(cursor);
    default:
      return read_pair(cursor);
  }
}

}  // namespace pasta::adapters::rocprofv3_json
