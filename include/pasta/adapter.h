// The border between where events come from and what is made of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta {

// What to collect: the union of what the tools of a session need, and how to behave.
struct Plan {
  KindSet kinds = KindSet::all();
  bool strict = false;  // malformed input is an error that names the place, not a counted problem
  std::uint64_t memory_budget_bytes = std::uint64_t{256} << 20;  // for sorting; beyond it, disk
  std::filesystem::path scratch;  // folder for what does not fit into memory; empty = the system's
};

// Where an adapter puts what it saw. All members may be called from any thread; none blocks on a
// tool, and none fails: what cannot be kept is counted.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Dictionary& dictionary() = 0;
  // Facts of the source. Once, before the first push.
  virtual void describe(const SourceInfo& info) = 0;
  // A sink for one more source of an adapter that has several, as a file has that others were
  // merged into: its events, facts and problems are told apart from those of this one. After
  // describe(), before the first push; lives as long as this one. What is pushed into the sinks of
  // one adapter is in order of end_ns over all of them. Who does not tell sources apart gives
  // itself.
  virtual EventSink& add_source(const SourceInfo& info) {
    static_cast<void>(info);
    return *this;
  }
  // In order of end_ns for stored adapters, untimed events first.
  virtual void push(std::span<const Event> events) = 0;
  // An event of kind kDevice with its bytes, which are copied.
  virtual void push(Event event, std::span<const std::byte> blob) = 0;
  // Promises that no later event of this adapter ends before `end_ns`.
  virtual void advance(std::int64_t end_ns) = 0;
  // Adds to the problems of this source.
  virtual void report(const Problem& problem) = 0;
};

struct AdapterInfo {
  std::string_view name;
  std::string_view help;
  KindSet provides;  // the most it can ever give; a tool that needs more is refused by name
  bool live;         // watches a process, or reads a file
  std::string_view claims = {};  // a resource of which the vendor allows one user per process
};

// Turns one vendor's records into Events. A reader of files is an adapter whose process has ended.
// One thread at a time.
class Adapter {
 public:
  virtual ~Adapter() = default;
  [[nodiscard]] virtual const AdapterInfo& info() const = 0;
  // Returns once every event from now on will be seen. `sink` outlives stop().
  virtual Status start(const Plan& plan, EventSink& sink) = 0;
  // Pushes what is ready, a bounded amount at a time. False: nothing can ever come again.
  virtual Result<bool> pump() = 0;
  // Ends collection and pushes what is still buffered.
  virtual Status stop() = 0;
};

// A stream of bytes, already decompressed, read from front to back. One thread at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of `to`; less than its size only at the end of the stream, where it is 0.
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  // What read() cannot say: the input ended before it should have ("gzip stream ends early");
  // empty while all is well.
  [[nodiscard]] virtual std::string_view damage() const = 0;
};

// A file, or standard input, that is about to be read. `head` are the first bytes that `stream`
// will give (up to 64 KiB), for telling formats apart by content.
struct Input {
  std::string path;  // as the user gave it, for messages
  std::span<const std::byte> head;
  std::unique_ptr<ByteStream> stream;
  // Counts what is read of the file itself instead of through `stream`; may be none.
  struct ReadProgress* progress = nullptr;
};

// A reader of one file format. One line of src/adapters/builtin.cpp.
struct ReaderEntry {
  AdapterInfo info;
  bool (*sniff)(std::span<const std::byte> head);
  Result<std::unique_ptr<Adapter>> (*open)(Input input);
  // For formats that write several files for one run (a table each). Files of one folder to which
  // the same reader gives the same key are parts of one run and are opened together, in order of
  // their paths; "" is a file that stands alone. `head` is one that sniff() has accepted.
  std::string (*run_of)(std::string_view path, std::span<const std::byte> head) = nullptr;
  // Two or more inputs of one key. Their heads are valid until it returns.
  Result<std::unique_ptr<Adapter>> (*open_run)(std::vector<Input> inputs) = nullptr;
  // For formats that sniff() cannot tell from others: whether a file that was found in a folder,
  // not named, is a trace. `stream` is read from its first byte on.
  bool (*confirm)(ByteStream& stream) = nullptr;
};
std::span<const ReaderEntry> builtin_readers();

// How much of some files was read, in bytes as they are stored: of what is compressed, compressed.
struct ReadProgress {
  std::atomic<std::uint64_t> read_bytes = 0;  // grows while adapters run, from their threads
  std::uint64_t total_bytes = 0;              // of the files opened so far
  bool total_known = true;                    // none of them is a pipe
};

// The adapter for a file ("-": standard input), chosen by its content. What is recognised but
// cannot be read is refused by name with what to do instead. What is read is added to `progress`,
// which outlives the adapter.
Result<std::unique_ptr<Adapter>> open_source(std::string_view path,
                                             ReadProgress* progress = nullptr);

// A trace that a user has named, or that lies in a folder that he has named.
struct OpenedSource {
  std::vector<std::string> paths;  // several: files of one run
  std::unique_ptr<Adapter> adapter;
  bool found = false;  // in a folder: a rank of the job that the folder is
};
struct OpenedSources {
  std::vector<OpenedSource> sources;
  // Of each folder with files that are no traces, a sentence that names them.
  std::vector<std::string> left_out;
};

// The adapters for files, folders and "-", in their order; those of a folder in order of their
// names, in which numbers count as numbers. In a folder, four levels deep, all files are looked at
// but hidden ones; what is no trace is left out there, while a file that was named and is none is
// an error. kUsage when a file comes up twice by name.
Result<OpenedSources> open_sources(std::span<const std::string> operands,
                                   ReadProgress* progress = nullptr);

}  // namespace pasta
