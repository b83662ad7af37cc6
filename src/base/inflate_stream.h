// Decompresses deflate data while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pasta/adapter.h"

// Of zlib; its header stays out of ours.
struct z_stream_s;

namespace pasta::base {

enum class DeflateForm : std::uint8_t {
  kGzip,  // any number of members, then perhaps zeros
  kRaw,   // as zip files hold it
};

// Gives what can be decompressed; where the data is cut or corrupt it ends, and damage() says so
// with the offset in the compressed data.
class InflateStream final : public ByteStream {
 public:
  InflateStream(std::unique_ptr<ByteStream> compressed, DeflateForm form);
  ~InflateStream() override;
  Result<std::size_t> read(std::span<std::byte> to) override;
  [[nodiscard]] std::string_view damage() const override { return damage_; }

 private:
  Status fill();
  Result<bool> next_member();
  void corrupt(std::string_view why);

  std::unique_ptr<ByteStream> compressed_;
  DeflateForm form_;
  std::unique_ptr<z_stream_s> zlib_;
  std::vector<std::byte> input_;
  std::uint64_t input_end_ = 0;  // offset behind what input_ holds
  bool ready_ = false;           // zlib was initialised
  bool ended_ = false;
  std::string damage_;
};

}  // namespace pasta::base
