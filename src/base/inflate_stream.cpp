#include "base/inflate_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace pasta::base {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr int kWindowBits = 15;
constexpr int kGzipOnly = 16;  // what zlib wants added to the window bits

std::string_view form_name(DeflateForm form) {
  return form == DeflateForm::kGzip ? "gzip stream" : "zip member";
}

}  // namespace

InflateStream::InflateStream(std::unique_ptr<ByteStream> compressed, DeflateForm form)
    : compressed_(std::move(compressed)),
      form_(form),
      zlib_(std::make_unique<z_stream>()),
      input_(kInputBytes) {
  const int bits = form == DeflateForm::kGzip ? kWindowBits + kGzipOnly : -kWindowBits;
  ready_ = inflateInit2(zlib_.get(), bits) == Z_OK;
}

InflateStream::~InflateStream() {
  if (ready_) inflateEnd(zlib_.get());
}

Status InflateStream::fill() {
  auto got = compressed_->read(input_);
  if (!got) return tl::unexpected<Error>(std::move(got).error());
  zlib_->next_in = reinterpret_cast<Bytef*>(input_.data());
  zlib_->avail_in = static_cast<uInt>(*got);
  input_end_ += *got;
  return {};
}

void InflateStream::corrupt(std::string_view why) {
  ended_ = true;
  damage_ = fmt::format("{} is corrupt at compressed byte {}: {}", form_name(form_),
                        input_end_ - zlib_->avail_in, why);
}

// Behind a member: whether another one starts. Writers of tapes pad with zeros.
Result<bool> InflateStream::next_member() {
  for (;;) {
    if (zlib_->avail_in == 0) PASTA_TRY(fill());
    if (zlib_->avail_in == 0) return false;
    if (*zlib_->next_in != 0) break;
    ++zlib_->next_in;
    --zlib_->avail_in;
  }
  constexpr Bytef kMagic = 0x1f;
  if (*zlib_->next_in != kMagic) {
    corrupt("neither the end nor another member");
    return false;
  }
  inflateReset(zlib_.get());
  return true;
}

Result<std::size_t> InflateStream::read(std::span<std::byte> to) {
  if (!ready_) return fail(ErrorCode::kIo, "zlib cannot be started: out of memory");
  std::size_t done = 0;
  while (!ended_ && done < to.size()) {
    if (zlib_->avail_in == 0) {
      PASTA_TRY(fill());
      if (zlib_->avail_in == 0) {
        ended_ = true;
        damage_ = fmt::format("{} ends early", form_name(form_));
        break;
      }
    }
    const std::size_t room =
        std::min<std::size_t>(to.size() - done, std::numeric_limits<uInt>::max());
    zlib_->next_out = reinterpret_cast<Bytef*>(to.data() + done);
    zlib_->avail_out = static_cast<uInt>(room);
    const int result = inflate(zlib_.get(), Z_NO_FLUSH);
    done += room - zlib_->avail_out;
    if (result == Z_STREAM_END) {
      if (form_ == DeflateForm::kRaw) {
        ended_ = true;
      } else {
        auto more = next_member();
        if (!more) return tl::unexpected<Error>(std::move(more).error());
        if (!*more) ended_ = true;
      }
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      corrupt(zlib_->msg != nullptr ? zlib_->msg : "not deflate data");
    }
  }
  return done;
}

}  // namespace pasta::base
