// The formats PASTA reads: the only file that names them all.
#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "adapters/folder_reader.h"
#include "adapters/foreign.h"
#include "adapters/kineto_json/kineto_json.h"
#include "adapters/nsys_sqlite/nsys_sqlite.h"
#include "adapters/nvprof_csv/nvprof_csv.h"
#include "adapters/nvprof_sqlite/nvprof_sqlite.h"
#include "adapters/pasta_file/pasta_file.h"
#include "adapters/rocpd/rocpd.h"
#include "adapters/rocprof_v1/rocprof_v1.h"
#include "adapters/rocprof_v1_csv/rocprof_v1_csv.h"
#include "adapters/rocprofv3_csv/rocprofv3_csv.h"
#include "adapters/rocprofv3_json/rocprofv3_json.h"
#include "adapters/rpd/rpd.h"
#include "adapters/spool/spool.h"
#include "adapters/sqlite_family.h"
#include "adapters/text/text.h"
#include "base/input.h"
#include "pasta/adapter.h"

namespace pasta {

// In order of how much their sniff functions prove: JSON's proves least.
std::span<const ReaderEntry> builtin_readers() {
  static const std::array kReaders = {
      ReaderEntry{adapters::pasta_file::kInfo, adapters::pasta_file::sniff,
                  adapters::pasta_file::open, adapters::pasta_file::run_of,
                  adapters::pasta_file::open_run},
      ReaderEntry{adapters::text::kInfo, adapters::text::sniff, adapters::text::open},
      adapters::sqlite_reader(adapters::rocpd::kInfo),
      adapters::sqlite_reader(adapters::rpd::kInfo),
      adapters::sqlite_reader(adapters::rocprof_v1::kInfo),
      adapters::sqlite_reader(adapters::nvprof_sqlite::kInfo),
      ReaderEntry{.info = adapters::rocprofv3_csv::kInfo,
                  .sniff = adapters::rocprofv3_csv::sniff,
                  .open = adapters::rocprofv3_csv::open,
                  .run_of = adapters::rocprofv3_csv::run_of,
                  .open_run = adapters::rocprofv3_csv::open_run,
                  .confirm = adapters::rocprofv3_csv::confirm},
      ReaderEntry{adapters::rocprof_v1_csv::kInfo, adapters::rocprof_v1_csv::sniff,
                  adapters::rocprof_v1_csv::open},
      ReaderEntry{.info = adapters::nvprof_csv::kInfo,
                  .sniff = adapters::nvprof_csv::sniff,
                  .open = adapters::nvprof_csv::open,
                  .confirm = adapters::nvprof_csv::confirm},
      ReaderEntry{adapters::rocprofv3_json::kInfo, adapters::rocprofv3_json::sniff,
                  adapters::rocprofv3_json::open},
      adapters::sqlite_reader(adapters::nsys_sqlite::kInfo),
      ReaderEntry{.info = adapters::kineto_json::kInfo,
                  .sniff = adapters::kineto_json::sniff,
                  .open = adapters::kineto_json::open,
                  .confirm = adapters::kineto_json::confirm},
  };
  return kReaders;
}

// Each also has a line among the readers.
std::span<const adapters::SqliteFamily> adapters::sqlite_families() {
  static constexpr std::array kFamilies = {
      SqliteFamily{rocpd::kInfo, rocpd::recognise, rocpd::open},
      SqliteFamily{rpd::kInfo, rpd::recognise, rpd::open},
      SqliteFamily{rocprof_v1::kInfo, rocprof_v1::recognise, rocprof_v1::open},
      SqliteFamily{nvprof_sqlite::kInfo, nvprof_sqlite::recognise, nvprof_sqlite::open},
      SqliteFamily{nsys_sqlite::kInfo, nsys_sqlite::recognise, nsys_sqlite::open},
  };
  return kFamilies;
}

std::span<const adapters::FolderReader> adapters::folder_readers() {
  static constexpr std::array kReaders = {
      FolderReader{spool::kInfo, spool::recognise, spool::open},
  };
  return kReaders;
}

const adapters::FolderReader* adapters::folder_reader(const std::string& folder) {
  for (const FolderReader& reader : folder_readers()) {
    if (reader.recognise(folder)) return &reader;
  }
  return nullptr;
}

Result<std::unique_ptr<Adapter>> adapters::read_run(const std::string& folder, std::string path,
                                                    std::string format) {
  return spool::open(folder, std::move(path), std::move(format));
}

Result<std::unique_ptr<Adapter>> adapters::follow_run(const std::string& folder, std::string path,
                                                      std::string format,
                                                      const std::atomic<bool>& over,
                                                      KindSet provides) {
  return spool::follow(folder, std::move(path), std::move(format), over, provides);
}

Result<std::unique_ptr<Adapter>> adapters::look_on_run(const std::string& folder,
                                                       const std::atomic<bool>& over) {
  return spool::look_on(folder, over);
}

Result<std::unique_ptr<Adapter>> open_source(std::string_view path, ReadProgress* progress) {
  auto opened = base::open_input(path, progress);
  if (!opened) return tl::unexpected(std::move(opened).error());
  const std::span<const std::byte> head = opened->head;
  for (const ReaderEntry& reader : builtin_readers()) {
    if (reader.sniff(head)) {
      return reader.open(Input{std::string(path), head, std::move(opened->stream), progress});
    }
  }
  if (const auto answer = adapters::recognise_foreign(head)) {
    return fail(ErrorCode::kUnsupported, fmt::format("{}: {}", path, *answer));
  }
  std::string known;
  for (const ReaderEntry& reader : builtin_readers()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", reader.info.help);
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("{}: not a trace of a kind that is known here ({})", path, known));
}

}  // namespace pasta
