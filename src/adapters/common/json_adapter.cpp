#include "adapters/common/json_adapter.h"

#include <fmt/format.h>

#include <utility>

#include "adapters/common/emit.h"

namespace pasta::adapters::common {

Status JsonAdapter::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  plan_ = plan;
  base::JsonReader::Options options;
  options.strict = plan.strict;
  options.on_problem = [this](const base::JsonProblem& problem) {
    problems_.add(problem.reason,
                  [&] { return fmt::format("byte {}: {}", problem.offset, problem.text); });
  };
  reader_ = std::make_unique<base::JsonReader>(*stream_, std::move(options));
  assembler_ = std::make_unique<correlate::Assembler>(
      sink.dictionary(), problems_,
      correlate::Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes,
                                    .scratch = plan.scratch});
  prepare();
  return {};
}

Result<bool> JsonAdapter::pump() {
  if (Status status = step(); !status) {
    return fail(status.error().code, fmt::format("{}: {}", path_, status.error().message));
  }
  return step_ != Step::kEnded;
}

Status JsonAdapter::step() {
  switch (step_) {
    case Step::kOpen: {
      auto type = reader_->open();
      if (!type) return tl::unexpected(std::move(type).error());
      step_ = Step::kRead;
      return begin(*type);
    }
    case Step::kRead: {
      auto more = read();
      if (!more) return tl::unexpected(std::move(more).error());
      return *more ? Status() : finish();
    }
    case Step::kEmit: {
      auto more = emit_events(*assembler_, problems_, *sink_);
      if (!more) return tl::unexpected(std::move(more).error());
      if (!*more) step_ = Step::kEnded;
      return {};
    }
    case Step::kEnded:
      break;
  }
  return {};
}

Status JsonAdapter::finish() {
  const auto shift_ns = document_end();
  if (!shift_ns) return tl::unexpected<Error>(shift_ns.error());
  PASTA_TRY(assembler_->finish(*shift_ns));
  SourceInfo source;
  source.path = path_;
  source.format = info_.name;
  source.first_ns = assembler_->first_ns();
  source.absolute_clock = since_1970(source.first_ns);
  complete(source);
  sink_->describe(source);
  step_ = Step::kEmit;
  return {};
}

}  // namespace pasta::adapters::common
