#include "adapters/common/emit.h"

namespace pasta::adapters::common {

Result<bool> emit_events(correlate::Assembler& assembler, const Problems& problems,
                         EventSink& sink) {
  auto more = assembler.emit(sink, std::size_t{1} << 16);
  if (!more || *more) return more;
  for (const Problem& problem : problems.list()) sink.report(problem);
  return false;
}

}  // namespace pasta::adapters::common
