// What tests of patches share: a program of which every lane says what it accesses. For tests only.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "device/host_runner.h"
#include "device/layout.h"
#include "device/result.h"

namespace pasta::device::testing {

template <class Patch>
class Program {
 public:
  Program(std::uint32_t items, std::uint32_t groups, std::vector<MemoryObject> objects,
          const typename Patch::Settings& settings = {})
      : objects_(std::move(objects)),
        launch_{.grid = {groups, 1, 1},
                .block = {items, 1, 1},
                .objects = objects_.data(),
                .object_count = static_cast<std::uint32_t>(objects_.size())},
        state_(launch_, settings) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  using Tell = std::function<void(Access, std::uint64_t address, std::uint32_t width, Space space)>;
  // What it tells n-th is of site n. Between two bodies there is a barrier.
  using Body = std::function<void(std::uint32_t group, std::uint32_t item, Tell tell)>;
  void run(const std::vector<Body>& bodies) {
    HostRunner<Patch> runner(launch_, state_.state());
    for (std::uint32_t group = 0; group < launch_.grid[0]; ++group) {
      runner.begin_group(group);
      for (std::size_t step = 0; step < bodies.size(); ++step) {
        for (std::uint32_t item = 0; item < launch_.block[0]; ++item) {
          std::uint64_t site = 100 * step;
          bodies[step](group, item,
                       [&](Access access, std::uint64_t address, std::uint32_t width, Space space) {
                         runner.access({item, site++, address, width, space, access});
                       });
        }
        runner.flush();
      }
    }
  }
  void run(const Body& body) { run(std::vector{body}); }

  [[nodiscard]] typename Patch::State& state() { return state_.state(); }
  [[nodiscard]] PatchResult result() const { return Patch::result(launch_, state_.state(), {}); }
  template <class Row>
  [[nodiscard]] std::vector<Row> rows(TableId id) const {
    for (const ResultTable& table : result().tables) {
      if (table.id == id) return rows_of<Row>(table);
    }
    return {};
  }

 private:
  std::vector<MemoryObject> objects_;
  Launch launch_;
  HostState<Patch> state_;
};

}  // namespace pasta::device::testing
