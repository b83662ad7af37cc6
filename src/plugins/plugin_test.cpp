#include "plugins/plugin.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/c_view.h"

namespace pasta::plugins {
namespace {

// A plug-in in this process, whose tables the tests bend.
struct Sample {
  pasta_option option{sizeof(pasta_option), "colour", "which colour", "red"};
  const pasta_option* options[1] = {&option};
  pasta_plugin_tool tool{
      sizeof(pasta_plugin_tool),
      "sample",
      "a sample",
      PASTA_KIND_BIT(PASTA_KIND_KERNEL) | PASTA_KIND_BIT(PASTA_KIND_GAP),
      1,
      options,
      [](const pasta_setting* settings, size_t count, void** out) {
        *out = new std::string(count == 1 ? settings[0].value : "?");
        return PASTA_OK;
      },
      [](void* self, const pasta_event* events, size_t count, const pasta_context* context) {
        auto& text = *static_cast<std::string*>(self);
        for (size_t i = 0; i < count; ++i) {
          const pasta_text name = context->lookup->string(context->lookup, events[i].name);
          const pasta_text label = context->device_label(context, 1);
          text += ' ' + std::string(name.data, name.size) + '@' +
                  std::string(label.data, label.size) + '@' +
                  std::to_string(context->origin_ns(context));
        }
        return PASTA_OK;
      },
      [](void* self, const pasta_context*, pasta_text* json) {
        auto& text = *static_cast<std::string*>(self);
        text = "{\"tool\": \"sample\", \"title\": \"" + text + "\", \"parts\": []}";
        *json = {text.data(), text.size()};
        return PASTA_OK;
      },
      nullptr,
      [](void* self) { delete static_cast<std::string*>(self); }};
  const pasta_plugin_tool* tools[1] = {&tool};
  pasta_plugin plugin{sizeof(pasta_plugin), PASTA_ABI_VERSION, 1, tools};
};

template <class Struct>
Struct sized() {
  Struct made{};
  made.size = sizeof made;
  return made;
}

struct TestContext : Context {
  [[nodiscard]] const Dictionary& dictionary() const override { return names; }
  [[nodiscard]] std::span<const std::byte> blob(BlobId) const override { return {}; }
  [[nodiscard]] std::string device_label(DeviceId id) const override {
    return "device " + std::to_string(id.value);
  }
  [[nodiscard]] std::int64_t origin_ns() const override { return 42; }
  Dictionary names;
};

std::string refusal_of(const Sample& sample) {
  const auto plugin = Plugin::adopt("x.so", &sample.plugin);
  return plugin ? "taken" : plugin.error().message;
}

TEST(Plugin, RunsAsATool) {
  const Sample sample;
  auto plugin = Plugin::adopt("x.so", &sample.plugin);
  ASSERT_TRUE(plugin) << plugin.error().message;
  Plugin moved = std::move(*plugin);
  ASSERT_EQ(moved.entries().size(), 1u);
  const ToolEntry& entry = moved.entries()[0];
  EXPECT_EQ(entry.name, "sample");
  EXPECT_EQ(entry.needs, Kind::kKernel | Kind::kGap);
  ASSERT_EQ(entry.options.size(), 1u);
  EXPECT_EQ(entry.options[0].fallback, "red");

  const std::vector<std::pair<std::string, std::string>> given{{"colour", "blue"}};
  const auto options = Options::parse(entry.name, entry.options, given);
  ASSERT_TRUE(options);
  auto tool = entry.make(*options);
  ASSERT_TRUE(tool) << tool.error().message;
  TestContext context;
  context.names.device(Device{.uuid = context.names.string("GPU-1")});
  Event event{};
  event.name = context.names.string("gemm");
  ASSERT_TRUE((*tool)->consume(std::span(&event, 1), context));
  const auto report = (*tool)->finish(context);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->title, "blue gemm@device 1@42");
}

TEST(Plugin, OtherVersionsAndShortTablesAreRefused) {
  Sample other;
  other.plugin.abi_version = PASTA_ABI_VERSION + 1;
  EXPECT_EQ(refusal_of(other),
            "cannot use plug-in x.so: it was built for version 2 of the border, this program has "
            "1; build it with this program's pasta/c.h");
  for (std::size_t size = 0; size < sizeof(pasta_plugin); ++size) {
    Sample sample;
    sample.plugin.size = size;
    EXPECT_EQ(refusal_of(sample), "cannot use plug-in x.so: its table is too short");
  }
  for (std::size_t size = 0; size < sizeof(pasta_plugin_tool); ++size) {
    Sample sample;
    sample.tool.size = size;
    EXPECT_EQ(refusal_of(sample), "cannot use plug-in x.so: a tool's table is too short");
  }
  // A longer one is of a later header of the same version.
  Sample later;
  later.tool.size += 64;
  later.plugin.size += 8;
  EXPECT_EQ(refusal_of(later), "taken");
}

TEST(Plugin, AToolThatLacksSomethingIsRefused) {
  const auto refused = [](auto bend) {
    Sample sample;
    bend(sample);
    const std::string why = refusal_of(sample);
    const std::string_view head = "cannot use plug-in x.so: ";
    return why.starts_with(head) ? why.substr(head.size()) : why;
  };
  EXPECT_EQ(refused([](Sample& s) { s.tool.name = nullptr; }), "a tool has no name");
  EXPECT_EQ(refused([](Sample& s) { s.tool.name = ""; }), "a tool has no name");
  EXPECT_EQ(refused([](Sample& s) { s.tool.help = nullptr; }), "a tool has no help");
  const std::string lacks = "a tool lacks one of make, consume, finish and destroy";
  EXPECT_EQ(refused([](Sample& s) { s.tool.make = nullptr; }), lacks);
  EXPECT_EQ(refused([](Sample& s) { s.tool.consume = nullptr; }), lacks);
  EXPECT_EQ(refused([](Sample& s) { s.tool.finish = nullptr; }), lacks);
  EXPECT_EQ(refused([](Sample& s) { s.tool.destroy = nullptr; }), lacks);
  EXPECT_EQ(refused([](Sample& s) { s.tool.needs = 1u << kKindCount; }),
            "a tool needs a kind that this version does not know");
  EXPECT_EQ(refused([](Sample& s) { s.tool.options = nullptr; }), "a tool's options are missing");
  const std::string option = "an option lacks its name, help or fallback";
  EXPECT_EQ(refused([](Sample& s) { s.options[0] = nullptr; }), option);
  EXPECT_EQ(refused([](Sample& s) { s.option.fallback = nullptr; }), option);
  EXPECT_EQ(refused([](Sample& s) { s.option.size = 8; }), option);
  EXPECT_EQ(refused([](Sample& s) { s.tools[0] = nullptr; }), "a tool is missing");
  EXPECT_EQ(refused([](Sample& s) { s.plugin.tool_count = 0; }), "it has no tools");
  EXPECT_EQ(refused([](Sample& s) { s.plugin.tools = nullptr; }), "it has no tools");
  EXPECT_FALSE(Plugin::adopt("x.so", nullptr));
}

TEST(Lookup, GivesEveryTable) {
  Dictionary d;
  const StringId name = d.string("a name");
  const ProcessId process = d.process(Process{.native_id = 7});
  d.update(process, Process{.name = name, .rank = 3, .world_size = 8});
  const DeviceId device =
      d.device(Device{.process = process, .ordinal = 5, .type = DeviceType::kGpu});
  d.update(device, Device{.name = name, .memory_bytes = 99});
  const LaneId lane =
      d.lane(Lane{.type = LaneType::kQueue, .process = process, .device = device, .native_id = 14});
  const FrameId outer = d.frame({FrameId{}, name, ScopeDomain::kModule});
  const FrameId inner = d.frame({outer, name, ScopeDomain::kOperator});
  LaunchAttributes launch;
  launch.block[1] = 4;
  launch.priority = -2;
  launch.collective = d.collective({.name = name, .in_elements = 11, .group_size = 2});
  const AttributesId attributes = d.attributes(launch);

  const Lookup lookup(d);
  const pasta_lookup* t = lookup.table();
  EXPECT_EQ(t->size, sizeof(pasta_lookup));
  const auto text = [](pasta_text given) { return std::string(given.data, given.size); };
  EXPECT_EQ(text(t->string(t, name.value)), "a name");
  auto p = sized<pasta_process>();
  t->process(t, process.value, &p);
  EXPECT_EQ(p.size, sizeof p);
  EXPECT_EQ(p.native_id, 7u);
  EXPECT_EQ(text(p.name), "a name");
  EXPECT_EQ(p.rank, 3);
  EXPECT_EQ(p.world_size, 8);
  auto gpu = sized<pasta_device>();
  t->device(t, device.value, &gpu);
  EXPECT_EQ(gpu.process, process.value);
  EXPECT_EQ(gpu.ordinal, 5u);
  EXPECT_EQ(gpu.type, PASTA_DEVICE_GPU);
  EXPECT_EQ(gpu.memory_bytes, 99u);
  auto queue = sized<pasta_lane>();
  t->lane(t, lane.value, &queue);
  EXPECT_EQ(queue.type, PASTA_LANE_QUEUE);
  EXPECT_EQ(queue.device, device.value);
  EXPECT_EQ(queue.native_id, 14u);
  auto frame = sized<pasta_frame>();
  t->frame(t, inner.value, &frame);
  EXPECT_EQ(frame.parent, outer.value);
  EXPECT_EQ(frame.domain, PASTA_SCOPE_OPERATOR);
  auto a = sized<pasta_attributes>();
  t->attributes(t, attributes.value, &a);
  EXPECT_EQ(a.block[1], 4u);
  EXPECT_EQ(a.priority, -2);
  auto c = sized<pasta_collective>();
  t->collective(t, a.collective, &c);
  EXPECT_EQ(text(c.name), "a name");
  EXPECT_EQ(c.in_elements, 11u);
  EXPECT_EQ(c.group_size, 2u);
  EXPECT_EQ(t->count(t, PASTA_TABLE_FRAMES), 3u);
  EXPECT_EQ(t->count(t, PASTA_TABLE_COLLECTIVES), 2u);
}

}  // namespace
}  // namespace pasta::plugins
