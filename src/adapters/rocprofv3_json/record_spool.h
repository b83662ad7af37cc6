// Records that wait for the tables they refer to.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "adapters/rocprofv3_json/record.h"
#include "base/temp_file.h"
#include "pasta/result.h"

namespace pasta::adapters::rocprofv3_json {

// First in, first out; few in memory, the others on disk.
class RecordSpool {
 public:
  explicit RecordSpool(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // kIo when the disk is full.
  Status add(const Record& record) {
    recent_.push_back(record);
    if (recent_.size() < kInMemory) return {};
    if (!file_) {
      auto file = base::TempFile::create(folder_);
      if (!file) return tl::unexpected(std::move(file).error());
      file_.emplace(std::move(*file));
    }
    PASTA_TRY(file_->append(std::as_bytes(std::span(recent_))));
    recent_.clear();
    return {};
  }

  // Hands every record to `take`, which gives a Status, and is empty then.
  template <class Take>
  Status drain(Take&& take) {
    if (file_) {
      std::vector<Record> chunk(kInMemory);
      for (std::uint64_t at = 0; at < file_->size(); at += kInMemory * sizeof(Record)) {
        PASTA_TRY(file_->read_at(at, std::as_writable_bytes(std::span(chunk))));
        for (const Record& record : chunk) PASTA_TRY(take(record));
      }
      file_.reset();
    }
    for (const Record& record : recent_) PASTA_TRY(take(record));
    recent_.clear();
    return {};
  }

 private:
  static constexpr std::size_t kInMemory = std::size_t{1} << 14;  // 4 MiB

  std::filesystem::path folder_;
  std::vector<Record> recent_;
  std::optional<base::TempFile> file_;
};

}  // namespace pasta::adapters::rocprofv3_json
