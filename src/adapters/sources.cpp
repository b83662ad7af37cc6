// From what a user names, files and folders, to the adapters that read it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "adapters/folder_reader.h"
#include "base/input.h"
#include "base/natural_order.h"
#include "pasta/adapter.h"

namespace pasta {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderLevels = 4;
constexpr std::size_t kNamesShown = 5;
constexpr std::size_t kNamed = ~std::size_t{0};  // in place of a folder's number

// What is to be opened: a file, or the files of one run.
struct Candidate {
  std::vector<std::string> paths;
  const ReaderEntry* run_reader = nullptr;  // of a file that can be a part of a run
  std::string run;
  std::size_t folder = kNamed;  // that it was found in
};

// One that was named, and what in it is no trace.
struct Folder {
  std::string path;
  std::vector<std::string> others;
  std::size_t traces = 0;
};

struct Look {
  bool is_trace = false;
  const ReaderEntry* run_reader = nullptr;
  std::string run;
};

// What SQLite keeps beside a database belongs to it.
bool beside_database(const fs::path& path) {
  const std::string name = path.string();
  std::error_code error;
  for (const std::string_view ending : {"-wal", "-shm", "-journal"}) {
    if (name.ends_with(ending) && fs::exists(name.substr(0, name.size() - ending.size()), error)) {
      return true;
    }
  }
  return false;
}

// Opens the file for as long as it takes to know what it is. Only an error of reading is one.
Result<Look> look_at(const std::string& path, bool found) {
  auto opened = base::open_input(path);
  if (!opened) {
    // Of what is compressed in a way that cannot be read, or packed with others.
    const ErrorCode code = opened.error().code;
    if (code == ErrorCode::kUnsupported || code == ErrorCode::kBadInput) return Look{};
    return tl::unexpected<Error>(std::move(opened).error());
  }
  for (const ReaderEntry& reader : builtin_readers()) {
    if (!reader.sniff(opened->head)) continue;
    Look look{.is_trace = true, .run_reader = nullptr, .run = {}};
    if (found && reader.confirm != nullptr) look.is_trace = reader.confirm(*opened->stream);
    if (reader.run_of != nullptr && reader.open_run != nullptr) {
      look.run = reader.run_of(path, opened->head);
      if (!look.run.empty()) look.run_reader = &reader;
    }
    return look;
  }
  return Look{};
}

// Files of a folder and of those in it, but hidden ones. Folders behind links are not entered:
// they may lead back.
Status list_files(const fs::path& folder, int levels, std::vector<std::string>& files) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.') || beside_database(entry->path())) continue;
    std::error_code unknown;
    if (entry->is_directory(unknown)) {
      if (levels > 1 && !entry->is_symlink(unknown)) {
        PASTA_TRY(list_files(entry->path(), levels - 1, files));
      }
    } else if (entry->is_regular_file(unknown)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: cannot list this folder: {}", folder.string(), error.message()));
  }
  return {};
}

// "a, b and 7 more", as below `folder`.
std::string names(const std::vector<std::string>& paths, const std::string& folder) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(paths.size(), kNamesShown); ++i) {
    shown.push_back(fs::path(paths[i]).lexically_relative(folder).string());
  }
  const std::size_t rest = paths.size() - shown.size();
  return rest == 0 ? fmt::format("{}", fmt::join(shown, ", "))
                   : fmt::format("{} and {} more", fmt::join(shown, ", "), rest);
}

class Collector {
 public:
  Status add(const std::string& operand, bool look) {
    std::error_code error;
    if (operand != "-" && fs::is_directory(operand, error) &&
        adapters::folder_reader(operand) == nullptr) {
      return add_folder(operand);
    }
    Candidate candidate{.paths = {operand}, .run = {}};
    if (operand != "-") {
      if (!seen_.insert(identity(operand)).second) {
        return fail(ErrorCode::kUsage,
                    fmt::format("{} is given twice; give each file once", operand));
      }
      if (look && fs::is_regular_file(operand, error)) {
        // What is wrong with a file is said by who opens it to read it.
        if (auto seen = look_at(operand, false)) {
          candidate.run_reader = seen->run_reader;
          candidate.run = std::move(seen->run);
        }
      }
    }
    add(std::move(candidate));
    return {};
  }

  std::vector<Candidate>& candidates() { return candidates_; }
  std::vector<Folder>& folders() { return folders_; }

 private:
  // The same for all names of one file.
  static std::string identity(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    return error ? path : real.string();
  }

  Status add_folder(const std::string& path) {
    const std::size_t number = folders_.size();
    Folder& folder = folders_.emplace_back();
    folder.path = path;
    std::vector<std::string> files;
    PASTA_TRY(list_files(path, kFolderLevels, files));
    std::sort(files.begin(), files.end(), base::natural_less);
    for (std::string& file : files) {
      auto look = look_at(file, true);
      if (!look) return tl::unexpected<Error>(std::move(look).error());
      // A link to a file that is here already is no trace of its own.
      if (!look->is_trace || !seen_.insert(identity(file)).second) {
        folder.others.push_back(std::move(file));
        continue;
      }
      add(Candidate{.paths = {std::move(file)},
                    .run_reader = look->run_reader,
                    .run = std::move(look->run),
                    .folder = number});
    }
    return {};
  }

  // Joins it to the run that it is a part of.
  void add(Candidate candidate) {
    if (candidate.run_reader != nullptr) {
      const auto folder = fs::path(candidate.paths[0]).parent_path().string();
      const auto [known, is_new] = runs_.emplace(
          std::tuple(folder, candidate.run_reader, candidate.run), candidates_.size());
      if (!is_new) {
        candidates_[known->second].paths.push_back(std::move(candidate.paths[0]));
        return;
      }
    }
    candidates_.push_back(std::move(candidate));
  }

  std::vector<Candidate> candidates_;
  std::map<std::tuple<std::string, const ReaderEntry*, std::string>, std::size_t> runs_;
  std::set<std::string> seen_;
  std::vector<Folder> folders_;
};

Status check_any(const Folder& folder) {
  if (folder.traces > 0) return {};
  return fail(ErrorCode::kUnsupported,
              folder.others.empty()
                  ? fmt::format("{}: an empty folder: there is no trace in it", folder.path)
                  : fmt::format("{}: no trace in this folder; `pastaprof report FILE` says what is "
                                "wrong with a file ({})",
                                folder.path, names(folder.others, folder.path)));
}

std::string left_out(const Folder& folder) {
  const bool one = folder.others.size() == 1;
  return fmt::format(
      "{}: left out {} no trace: {}", folder.path,
      one ? "a file that is" : fmt::format("{} files that are", folder.others.size()),
      names(folder.others, folder.path));
}

Result<std::unique_ptr<Adapter>> open(Candidate& candidate, ReadProgress* progress) {
  std::error_code error;
  if (candidate.paths.size() == 1 && fs::is_directory(candidate.paths[0], error)) {
    return adapters::folder_reader(candidate.paths[0])->open(candidate.paths[0]);
  }
  if (candidate.paths.size() == 1) return open_source(candidate.paths[0], progress);
  std::sort(candidate.paths.begin(), candidate.paths.end(), base::natural_less);
  std::vector<base::OpenedInput> opened;
  std::vector<Input> inputs;
  for (const std::string& path : candidate.paths) {
    auto input = base::open_input(path, progress);
    if (!input) return tl::unexpected<Error>(std::move(input).error());
    opened.push_back(std::move(*input));
  }
  for (std::size_t i = 0; i < opened.size(); ++i) {
    inputs.push_back({candidate.paths[i], opened[i].head, std::move(opened[i].stream), progress});
  }
  return candidate.run_reader->open_run(std::move(inputs));
}

}  // namespace

Result<OpenedSources> open_sources(std::span<const std::string> operands, ReadProgress* progress) {
  Collector collector;
  for (const std::string& operand : operands) {
    PASTA_TRY(collector.add(operand, operands.size() > 1));
  }
  OpenedSources all;
  for (Candidate& candidate : collector.candidates()) {
    Folder* const folder =
        candidate.folder == kNamed ? nullptr : &collector.folders()[candidate.folder];
    auto adapter = open(candidate, progress);
    if (!adapter) {
      // Such as a database of something else.
      if (folder == nullptr || adapter.error().code != ErrorCode::kUnsupported) {
        return tl::unexpected<Error>(std::move(adapter).error());
      }
      std::move(candidate.paths.begin(), candidate.paths.end(), std::back_inserter(folder->others));
      continue;
    }
    if (folder != nullptr) ++folder->traces;
    all.sources.push_back({std::move(candidate.paths), std::move(*adapter), folder != nullptr});
  }
  for (const Folder& folder : collector.folders()) {
    PASTA_TRY(check_any(folder));
    if (!folder.others.empty()) all.left_out.push_back(left_out(folder));
  }
  return all;
}

}  // namespace pasta
