// The page of a run (see spool.h), mapped so that what is written to it is seen by all who watch or
// follow the run.
#pragma once

#include <cstdint>
#include <string>

#include "pasta/result.h"
#include "trace/spool.h"

namespace pasta::trace {

class MappedRunPage {
 public:
  // kIo when it cannot be written to.
  static Result<MappedRunPage> open(const std::string& folder);
  ~MappedRunPage();
  MappedRunPage(MappedRunPage&&) noexcept;
  MappedRunPage& operator=(MappedRunPage&&) = delete;

  spool::RunPage* operator->() const { return page_; }
  // Of what ended before `ns` something may be missing from now on.
  void keeps_from(std::int64_t ns) const;

 private:
  explicit MappedRunPage(spool::RunPage* page) : page_(page) {}
  spool::RunPage* page_;
};

}  // namespace pasta::trace
