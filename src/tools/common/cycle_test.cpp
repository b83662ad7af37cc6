#include "tools/common/cycle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace pasta::tools {
namespace {

using Random = std::mt19937_64;

std::size_t between(Random& random, std::size_t low, std::size_t high) {
  return low + random() % (high - low + 1);
}
bool chance(Random& random, double of) {
  return static_cast<double>(random() % 10000) < 10000 * of;
}

// A program whose iterations are known.
struct Program {
  std::size_t layers = 12, layer_kernels = 10, micro_batches = 1, iterations = 12;
  std::size_t evaluate_every = 0, evaluation_batches = 3;
  std::size_t optimizer_kernels = 40;
  bool fused_optimizer = false;    // kernels of its own; else the same simple ones as elsewhere
  bool train = true;               // else forward only
  bool input = true;               // copies from the host for each micro-batch
  bool pause = false;              // the host stands still before each iteration
  bool wait = false;               // the host waits for the device before each iteration
  bool setup = false;              // work before the first iteration
  std::size_t setup_kernels = 50;  // of that
  bool other_warm_up = false;      // the first iteration tries kernels out
  bool graph = false;              // the model is one launch
  double dropped = 0;              // share of launches that are missing
  double exchanged = 0;            // share of launches that run another kernel
};

struct Trace {
  std::vector<std::uint32_t> symbols;
  std::vector<std::uint16_t> pauses;
  std::vector<std::uint32_t> pieces;  // of device work of each; empty: one
  std::vector<std::size_t> starts;    // of the iterations
  std::size_t evaluations = 0;

  [[nodiscard]] Cycle cycle() const { return find_cycle({symbols, pauses, 0, pieces}); }
};

class Maker {
 public:
  Maker(const Program& program, Random& random) : program_(program), random_(random) {}

  Trace make() {
    if (program_.setup) {
      for (std::size_t i = 0; i < program_.setup_kernels; ++i) {
        launch(symbol(900 + i % 7, WorkSort::kOther));
      }
    }
    for (std::size_t i = 0; i < program_.iterations; ++i) {
      iterate(i);
      if (program_.evaluate_every != 0 && (i + 1) % program_.evaluate_every == 0) evaluate();
    }
    return std::move(trace_);
  }

 private:
  static std::uint32_t symbol(std::size_t name, WorkSort sort = WorkSort::kCompute) {
    return static_cast<std::uint32_t>(name << 2) | static_cast<std::uint32_t>(sort);
  }
  void launch(std::uint32_t symbol_of, std::int64_t pause = 5000, bool waited = false) {
    if (chance(random_, program_.dropped)) return;
    if (chance(random_, program_.exchanged)) symbol_of = symbol(700 + random_() % 3);
    trace_.symbols.push_back(symbol_of);
    const std::uint16_t code = pause_code(
        pause + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(pause)));
    trace_.pauses.push_back(waited ? code | kHostWaited : code);
  }
  void read_input(std::int64_t pause) {
    if (!program_.input) return;
    launch(symbol(1, WorkSort::kToDevice), pause);
    launch(symbol(1, WorkSort::kToDevice));
  }
  void forward(bool evaluation) {
    if (program_.graph) return launch(symbol(evaluation ? 801 : 800));
    launch(symbol(10));
    for (std::size_t layer = 0; layer < program_.layers; ++layer) {
      for (std::size_t i = 0; i < program_.layer_kernels; ++i) {
        // Evaluation normalises by another kernel and drops nothing out.
        if (evaluation && i == 3) continue;
        launch(symbol(20 + i + (evaluation && i == 1 ? 300 : 0)));
        for (std::size_t k = 0; trying_out_ && i == 2 && k < 5; ++k) launch(symbol(600 + k));
      }
    }
    launch(symbol(11));
    launch(symbol(12));
  }
  void backward() {
    if (program_.graph) return launch(symbol(802));
    launch(symbol(13));
    for (std::size_t layer = 0; layer < program_.layers; ++layer) {
      for (std::size_t i = 0; i < 2 * program_.layer_kernels; ++i) {
        launch(symbol(i % 5 == 0 ? 20 + i / 5 : 100 + i));
      }
    }
    launch(symbol(14));
  }
  void iterate(std::size_t index) {
    trace_.starts.push_back(trace_.symbols.size());
    const std::int64_t wait = program_.pause ? 400000 : 5000;
    if (!program_.input) launch(symbol(15), wait, program_.wait);
    for (std::size_t i = 0; i < program_.micro_batches; ++i) {
      read_input(i == 0 ? wait : 5000);
      trying_out_ = index == 0 && program_.other_warm_up;
      forward(false);
      trying_out_ = false;
      if (program_.train) backward();
    }
    if (!program_.train) {
      launch(symbol(16, WorkSort::kToHost));
      return;
    }
    for (std::size_t i = 0; i < program_.optimizer_kernels; ++i) {
      launch(program_.fused_optimizer ? symbol(200) : symbol(i % 2 == 0 ? 100 : 101));
    }
  }
  void evaluate() {
    ++trace_.evaluations;
    for (std::size_t i = 0; i < program_.evaluation_batches; ++i) {
      read_input(5000);
      forward(true);
    }
    launch(symbol(16, WorkSort::kToHost));
  }

  const Program& program_;
  Random& random_;
  Trace trace_;
  bool trying_out_ = false;
};

Program random_program(Random& random) {
  Program program;
  program.layers = between(random, 2, 24);
  program.layer_kernels = between(random, 5, 16);
  program.micro_batches = between(random, 1, 4);
  program.iterations = between(random, 5, 30);
  program.optimizer_kernels = between(random, 10, 120);
  program.fused_optimizer = chance(random, 0.5);
  program.train = chance(random, 0.8);
  program.pause = chance(random, 0.5);
  program.setup = chance(random, 0.3);
  program.other_warm_up = chance(random, 0.3);
  if (program.train && program.micro_batches == 1 && chance(random, 0.3)) {
    program.evaluate_every = between(random, 2, 6);
  }
  if (!program.train) program.micro_batches = 1;
  return program;
}

std::string describe(const Program& program, const Trace& trace, const Cycle& cycle) {
  std::string text =
      "layers " + std::to_string(program.layers) + " of " + std::to_string(program.layer_kernels) +
      ", micro-batches " + std::to_string(program.micro_batches) + ", optimizer " +
      std::to_string(program.optimizer_kernels) + (program.fused_optimizer ? " fused" : "") +
      (program.train ? "" : " forward") + (program.pause ? " pause" : "") +
      (program.setup ? " setup" : "") + (program.other_warm_up ? " warm-up" : "") + " evaluate " +
      std::to_string(program.evaluate_every) + "\n right:";
  for (const std::size_t at : trace.starts) text += " " + std::to_string(at);
  text += "\n found:";
  for (const std::size_t at : cycle.starts) text += " " + std::to_string(at);
  return text + "\n " + std::string(cycle.abstained);
}

// How many of the true begins are found within `slack`.
std::size_t found(const Trace& trace, const Cycle& cycle, std::size_t slack) {
  return static_cast<std::size_t>(std::ranges::count_if(trace.starts, [&](std::size_t right) {
    return std::ranges::any_of(
        cycle.starts, [&](std::size_t at) { return at + slack >= right && at <= right + slack; });
  }));
}

TEST(Cycle, RandomProgramsAreCutWhereTheirIterationsBegin) {
  std::string wrong;
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    Random random(seed);
    const Program program = random_program(random);
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    // Where the first begins is not sure if the program does other things before it and in it.
    const std::size_t unsure = program.setup && program.other_warm_up ? 1 : 0;
    const std::size_t most = trace.starts.size() + trace.evaluations + (program.setup ? 1 : 0);
    if (found(trace, cycle, 2) + unsure >= trace.starts.size() && cycle.starts.size() <= most) {
      continue;
    }
    ++failed;
    wrong += "seed " + std::to_string(seed) + ": " + describe(program, trace, cycle) + "\n";
  }
  // Evaluation that is about as long as training may be taken for a part of one long iteration.
  EXPECT_LE(failed, 1) << wrong;
}

TEST(Cycle, DroppedAndExchangedLaunchesDoNotHideIt) {
  std::size_t right = 0, all = 0, missed = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    Program program = random_program(random);
    program.setup = program.other_warm_up = false;
    program.evaluate_every = 0;
    program.micro_batches = 1;
    program.pause = true;
    program.dropped = 0.01;
    program.exchanged = 0.01;
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    missed += cycle.starts.size() != trace.starts.size() ? 1 : 0;
    right += found(trace, cycle, 3);
    all += trace.starts.size();
  }
  EXPECT_LE(missed, 2u);
  EXPECT_GE(right * 100, all * 93);
}

TEST(Cycle, LostLaunchesDoNotMakeIterationsOfMicroBatches) {
  std::size_t wrong = 0;
  std::string which;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Random random(seed);
    Program program = random_program(random);
    program.setup = program.other_warm_up = false;
    program.evaluate_every = 0;
    program.train = program.pause = true;
    program.layers = program.layers / 2 + 1;
    program.micro_batches = 2 + seed % 3;
    program.dropped = 0.005;
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    if (cycle.starts.size() == trace.starts.size()) continue;
    ++wrong;
    which += "seed " + std::to_string(seed) + ": " + describe(program, trace, cycle) + "\n";
  }
  EXPECT_EQ(wrong, 0u) << which;
}

TEST(Cycle, AGraphForTheModelLeavesShortIterations) {
  Random random(1);
  Program program;
  program.graph = true;
  program.fused_optimizer = true;
  program.optimizer_kernels = 3;
  program.iterations = 40;
  const Trace trace = Maker(program, random).make();
  const Cycle cycle = trace.cycle();
  EXPECT_EQ(cycle.starts, trace.starts);
}

TEST(Cycle, AGraphWeighsAsMuchAsItLaunches) {
  // Two passes of hundreds of launches, then twenty that replay them from a graph.
  Trace trace;
  const auto launch = [&](std::uint32_t name, WorkSort sort, std::uint32_t pieces) {
    trace.symbols.push_back(name << 2 | static_cast<std::uint32_t>(sort));
    trace.pauses.push_back(pause_code(5000));
    trace.pieces.push_back(pieces);
  };
  for (std::size_t pass = 0; pass < 22; ++pass) {
    if (pass >= 2) trace.starts.push_back(trace.symbols.size());
    for (std::uint32_t i = 0; i < 4; ++i) launch(1, WorkSort::kToDevice, 1);
    for (std::uint32_t i = 0; pass < 2 && i < 300; ++i) launch(20 + i % 9, WorkSort::kCompute, 1);
    if (pass >= 2) launch(99, WorkSort::kCompute, 300);
    for (std::uint32_t i = 0; i < 10; ++i) launch(40 + i, WorkSort::kCompute, 1);
    launch(2, WorkSort::kToHost, 1);
  }
  const Cycle cycle = trace.cycle();
  ASSERT_GE(cycle.starts.size(), 20u) << cycle.abstained;
  EXPECT_EQ(std::vector(cycle.starts.end() - 20, cycle.starts.end()), trace.starts);
}

TEST(Cycle, LayersOfOnePassAreNoIterations) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Program program = random_program(random);
    program.iterations = 1;
    program.micro_batches = 1;
    program.evaluate_every = 0;
    program.setup = program.other_warm_up = false;
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    EXPECT_TRUE(cycle.starts.empty()) << "seed " << seed << ": " << describe(program, trace, cycle);
    EXPECT_FALSE(cycle.abstained.empty());
  }
}

TEST(Cycle, ALoopThatAProgramEndsWithHasOnlyASetUpBeforeIt) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    // Nothing comes from the host, and the set-up, of parameters, is as long as an iteration.
    const Program program = {.input = false, .pause = true, .setup = true, .setup_kernels = 400};
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    EXPECT_EQ(found(trace, cycle, 2), program.iterations) << describe(program, trace, cycle);
  }
}

TEST(Cycle, AnIterationBeginsWhereTheHostHasWaited) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    // The host is slower than the device, so that waiting takes it no time.
    const Program program = {
        .input = false, .wait = true, .setup = true, .setup_kernels = 400, .other_warm_up = true};
    const Trace trace = Maker(program, random).make();
    const Cycle cycle = trace.cycle();
    ASSERT_EQ(cycle.starts.size(), program.iterations) << describe(program, trace, cycle);
    // The first has more than the others, and other work before it.
    EXPECT_EQ(std::vector(cycle.starts.begin() + 1, cycle.starts.end()),
              std::vector(trace.starts.begin() + 1, trace.starts.end()))
        << describe(program, trace, cycle);
  }
}

TEST(Cycle, NothingIsFoundInChance) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Trace trace;
    const std::size_t size = between(random, 0, 5000), alphabet = between(random, 1, 60);
    for (std::size_t i = 0; i < size; ++i) {
      trace.symbols.push_back(static_cast<std::uint32_t>(random() % (4 * alphabet)));
      trace.pauses.push_back(pause_code(static_cast<std::int64_t>(random() % 100000)));
    }
    EXPECT_TRUE(trace.cycle().starts.empty()) << "seed " << seed;
  }
}

TEST(Cycle, OneKernelOverAndOverHasNoBegin) {
  Trace trace;
  trace.symbols.assign(5000, 4);
  trace.pauses.assign(5000, pause_code(1000));
  EXPECT_TRUE(trace.cycle().starts.empty());
}

TEST(Cycle, PausesAreKeptWithinATenth) {
  for (std::int64_t ns = 1; ns < std::int64_t{1} << 62; ns = ns * 3 + 1) {
    EXPECT_NEAR(pause_ns(pause_code(ns)), static_cast<double>(ns), 0.1 * static_cast<double>(ns));
  }
  EXPECT_EQ(pause_code(0), 0);
  EXPECT_EQ(pause_code(-5), 0);
}

}  // namespace
}  // namespace pasta::tools
