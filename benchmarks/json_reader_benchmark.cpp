// Walking every field of a JSON file: PASTA's reader against simdjson On-Demand, in one run.
// PASTA_BENCH_JSON names the file (it may be gzipped); without it a trace is made up.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/input.h"
#include "base/json_reader.h"

namespace {

using namespace pasta;
using namespace pasta::base;

std::string made_up_trace() {
  constexpr int kEvents = 200000;
  std::string text = "{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [";
  for (int i = 0; i < kEvents; ++i) {
    const std::string n = std::to_string(i);
    text += i == 0 ? "\n  {\n" : ",\n  {\n";
    text += "    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::add_" +
            std::to_string(i % 97) + "\", \"pid\": 78, \"tid\": 78,\n    \"ts\": 1669783687" +
            std::to_string(100000 + i) + ".125, \"dur\": " + std::to_string(i % 1000) +
            ",\n    \"args\": {\n      \"External id\": " + n + ",\"Ev Idx\": " + n +
            ", \"Input Dims\": [[32, 64], []]\n    }\n  }";
  }
  return text + "\n  ]\n}\n";
}

const std::string& text() {
  static const std::string loaded = [] {
    const char* const path = std::getenv("PASTA_BENCH_JSON");
    if (path == nullptr) return made_up_trace();
    std::string bytes;
    auto input = open_input(path);
    if (!input) return bytes;
    for (std::vector<std::byte> block(std::size_t{1} << 20);;) {
      auto got = input->stream->read(block);
      if (!got) return std::string();
      bytes.append(reinterpret_cast<const char*>(block.data()), *got);
      if (*got < block.size()) return bytes;
    }
  }();
  return loaded;
}

// Both walks count values and add up the lengths of all texts: the sums must agree, and nothing
// can be optimised away.
struct Sum {
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Sum&) const = default;
};

void walk(JsonCursor& cursor, Sum& sum) {
  ++sum.values;
  switch (cursor.type()) {
    case JsonType::kObject: {
      std::string_view key;
      cursor.enter_object();
      while (cursor.next_member(key)) {
        sum.bytes += key.size();
        walk(cursor, sum);
      }
      break;
    }
    case JsonType::kArray:
      cursor.enter_array();
      while (cursor.next_element()) walk(cursor, sum);
      break;
    case JsonType::kString:
      sum.bytes += cursor.string().size();
      break;
    case JsonType::kNumber:
      sum.bytes += cursor.number().size();
      break;
    default:
      sum.bytes += cursor.skip().size();
  }
}

Status walk_document(Sum& sum) {
  auto stream = memory_stream(std::as_bytes(std::span(text())));
  JsonReader reader(*stream, {});
  auto type = reader.open();
  if (!type) return tl::unexpected<Error>(std::move(type).error());
  ++sum.values;
  std::string key;
  while (true) {
    auto more = *type == JsonType::kObject ? reader.next_member(key) : reader.next_element();
    if (!more) return tl::unexpected<Error>(std::move(more).error());
    if (!*more) return {};
    sum.bytes += key.size();
    auto member = reader.type();
    if (member && *member == JsonType::kArray) {
      ++sum.values;
      PASTA_TRY(reader.enter());
      while (true) {
        auto element = reader.next_element();
        if (!element) return tl::unexpected<Error>(std::move(element).error());
        if (!*element) break;
        Sum seen;
        PASTA_TRY(reader.record([&](JsonCursor& cursor) { walk(cursor, seen = {}); }));
        sum.values += seen.values;
        sum.bytes += seen.bytes;
      }
    } else {
      Sum seen;
      PASTA_TRY(reader.record([&](JsonCursor& cursor) { walk(cursor, seen = {}); }));
      sum.values += seen.values;
      sum.bytes += seen.bytes;
    }
  }
}

template <class Value>
void walk_simdjson(Value&& value, Sum& sum) {
  namespace ondemand = simdjson::ondemand;
  ++sum.values;
  switch (ondemand::json_type(value.type())) {
    case ondemand::json_type::object:
      for (auto field : value.get_object()) {
        sum.bytes += std::string_view(field.unescaped_key()).size();
        walk_simdjson(field.value(), sum);
      }
      break;
    case ondemand::json_type::array:
      for (auto element : value.get_array()) walk_simdjson(element.value(), sum);
      break;
    case ondemand::json_type::string:
      sum.bytes += std::string_view(value.get_string()).size();
      break;
    case ondemand::json_type::number: {
      // The token reaches up to the next one: white space behind a number is not part of it.
      std::string_view token = value.raw_json_token();
      while (!token.empty() && token.back() <= ' ') token.remove_suffix(1);
      // Read as the number it is, since that is also where it is checked.
      simdjson::ondemand::number number = value.get_number();
      benchmark::DoNotOptimize(number);
      sum.bytes += token.size();
      break;
    }
    case ondemand::json_type::boolean:
      sum.bytes += bool(value.get_bool()) ? 4 : 5;
      break;
    default:
      sum.bytes += 4;
  }
}

void BM_JsonReader(benchmark::State& state) {
  for (auto _ : state) {
    Sum sum;
    if (auto read = walk_document(sum); !read) state.SkipWithError(read.error().message.c_str());
    state.counters["values"] = static_cast<double>(sum.values);
    state.counters["bytes"] = static_cast<double>(sum.bytes);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text().size()));
}
BENCHMARK(BM_JsonReader)->Unit(benchmark::kMillisecond);

void BM_SimdjsonOnDemand(benchmark::State& state) {
  const simdjson::padded_string padded(text());
  simdjson::ondemand::parser parser;
  for (auto _ : state) {
    Sum sum;
    try {
      simdjson::ondemand::document document = parser.iterate(padded);
      walk_simdjson(document, sum);
    } catch (const simdjson::simdjson_error& error) {
      state.SkipWithError(error.what());
    }
    state.counters["values"] = static_cast<double>(sum.values);
    state.counters["bytes"] = static_cast<double>(sum.bytes);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text().size()));
}
BENCHMARK(BM_SimdjsonOnDemand)->Unit(benchmark::kMillisecond);

}  // namespace
