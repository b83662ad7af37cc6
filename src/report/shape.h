// Which rows of a document's tables are shown, and in which order.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pasta/report.h"
#include "pasta/result.h"

namespace pasta::report {

class Shape {
 public:
  // `sort` is COLUMN, COLUMN:asc or COLUMN:desc, without a direction the largest number or the
  // first word of the alphabet first; `filter` is a POSIX extended regular expression, looked for
  // in the first 4096 bytes of a name. Empty: the order, and the rows, of the tools. kUsage when
  // one makes no sense.
  static Result<Shape> make(std::string_view sort, std::string_view filter);

  // Sorts the rows of every table that has the column, what is unknown last and equals as they
  // were. Drops the rows of every table with names whose name does not match; document.trace.filter
  // says so, with how many. Values stay as they are, also shares of the whole. kUsage, naming the
  // columns there are, when no table has the column or none has names.
  Status apply(Document& document) const;

 private:
  struct Pattern;
  Shape() = default;

  std::string column_;
  enum class Order : unsigned char { kNatural, kAscending, kDescending } order_ = Order::kNatural;
  std::string filter_;
  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace pasta::report
