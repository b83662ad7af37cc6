// libpastaprof: the functions of pasta/c.h.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/c.h"
#include "pasta/session.h"
#include "pasta/tool.h"
#include "pasta_version.h"
#include "plugins/c_view.h"
#include "plugins/tool_list.h"
#include "report/render.h"

namespace {

using namespace pasta;

pasta_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return PASTA_USAGE;
    case ErrorCode::kNotFound:
      return PASTA_NOT_FOUND;
    case ErrorCode::kUnsupported:
      return PASTA_UNSUPPORTED;
    case ErrorCode::kBadInput:
      return PASTA_BAD_INPUT;
    case ErrorCode::kIo:
      return PASTA_IO;
    case ErrorCode::kVendor:
      return PASTA_VENDOR;
  }
  return PASTA_VENDOR;
}

// What a session gives between two calls of pasta_next().
struct Page {
  std::vector<Event> events;
  std::map<std::uint32_t, std::vector<std::byte>> blobs;
};

class PageRecorder : public Recorder {
 public:
  explicit PageRecorder(Page& page) : page_(page) {}
  Status begin(const Dictionary&) override { return {}; }
  Status record(std::span<const Event> events) override {
    page_.events.insert(page_.events.end(), events.begin(), events.end());
    return {};
  }
  Status record_blob(BlobId id, std::span<const std::byte> bytes) override {
    page_.blobs[id.value].assign(bytes.begin(), bytes.end());
    return {};
  }
  Status end(std::span<const SourceInfo>, std::span<const std::vector<Problem>>) override {
    return {};
  }

 private:
  Page& page_;
};

struct Wanted {
  const ToolEntry* entry;
  std::vector<std::pair<std::string, std::string>> given;
};

}  // namespace

struct pasta_trace {
  Status open(std::vector<std::string> given_paths, Plan given_plan);
  Status next();
  Status report(std::span<const char* const> words);
  Status load(const char* path);

  // Calls `act`, which gives a Status, and keeps its error. Nothing is thrown across the border.
  template <class Act>
  pasta_status call(Act&& act) noexcept {
    try {
      error.clear();
      const Status status = act();
      if (status) return PASTA_OK;
      error = status.error().message;
      return status_of(status.error().code);
    } catch (const std::exception&) {
      return out_of_memory();
    }
  }
  pasta_status out_of_memory() noexcept;

  std::vector<std::string> paths;
  Plan plan;
  plugins::ToolList tools;
  std::optional<Session> session;
  std::optional<plugins::Lookup> lookup;
  Page page;
  bool ended = false;
  std::string json;
  std::string error;

 private:
  Result<Session> make_session() const;
  Result<const ToolEntry*> find(std::string_view name) const;
  Result<std::vector<Wanted>> choose(std::span<const char* const> words) const;
};

namespace {

// The library's only exceptions are those of the standard library, when memory is out.
constexpr const char* kOutOfMemory = "out of memory";

}  // namespace

pasta_status pasta_trace::out_of_memory() noexcept {
  // Short enough for the string's own storage, so that nothing is allocated.
  error.assign(kOutOfMemory);
  return PASTA_IO;
}

Result<Session> pasta_trace::make_session() const {
  Session made(plan);
  auto opened = open_sources(paths);
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  for (OpenedSource& source : opened->sources) {
    made.add(std::move(source.adapter), {}, source.found);
  }
  return made;
}

Status pasta_trace::open(std::vector<std::string> given_paths, Plan given_plan) {
  paths = std::move(given_paths);
  plan = std::move(given_plan);
  auto made = make_session();
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  made->add(std::make_unique<PageRecorder>(page));
  PASTA_TRY(made->start());
  session.emplace(std::move(*made));
  lookup.emplace(session->dictionary());
  return {};
}

Status pasta_trace::next() {
  page = {};
  if (!session) return fail(ErrorCode::kUsage, "the trace was not opened");
  while (!ended && page.events.empty()) {
    const auto more = session->pump();
    if (!more) return tl::unexpected<Error>(more.error());
    if (*more) continue;
    ended = true;
    const auto document = session->finish();
    if (!document) return tl::unexpected<Error>(document.error());
  }
  return {};
}

Status pasta_trace::load(const char* path) {
  if (path == nullptr) return fail(ErrorCode::kUsage, "no path of a plug-in given");
  return tools.load(path);
}

Result<const ToolEntry*> pasta_trace::find(std::string_view name) const {
  std::string names;
  for (const ToolEntry* entry : tools.entries()) {
    if (entry->name == name) return entry;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry->name);
  }
  return fail(ErrorCode::kUsage,
              fmt::format("there is no tool \"{}\"; the tools are {}", name, names));
}

Result<std::vector<Wanted>> pasta_trace::choose(std::span<const char* const> words) const {
  std::vector<Wanted> wanted;
  for (const char* word : words) {
    if (word == nullptr) return fail(ErrorCode::kUsage, "a tool's name is missing");
    const std::string_view text(word);
    const std::size_t colon = text.find(':');
    const auto entry = find(text.substr(0, colon));
    if (!entry) return tl::unexpected<Error>(entry.error());
    auto known = std::find_if(wanted.begin(), wanted.end(),
                              [&](const Wanted& one) { return one.entry == *entry; });
    if (known == wanted.end()) known = wanted.insert(known, Wanted{*entry, {}});
    if (colon == std::string_view::npos) continue;
    const std::string_view setting = text.substr(colon + 1);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos) {
      return fail(ErrorCode::kUsage, fmt::format("\"{}\" should be TOOL:OPTION=VALUE", text));
    }
    known->given.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  if (wanted.empty()) return fail(ErrorCode::kUsage, "no tool given");
  return wanted;
}

Status pasta_trace::report(std::span<const char* const> words) {
  json.clear();
  if (std::find(paths.begin(), paths.end(), "-") != paths.end()) {
    return fail(ErrorCode::kUsage,
                "standard input can be read once only; give a file to have a report of it");
  }
  const auto wanted = choose(words);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  auto made = make_session();
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  for (const Wanted& one : *wanted) {
    const auto options = Options::parse(one.entry->name, one.entry->options, one.given);
    if (!options) return tl::unexpected<Error>(options.error());
    auto tool = one.entry->make(*options);
    if (!tool) return tl::unexpected<Error>(std::move(tool).error());
    made->add(*one.entry, std::move(*tool));
  }
  PASTA_TRY(made->start());
  // What ends a source early is in the document's problems, unless it was to be strict.
  for (bool more = true; more;) {
    const auto pumped = made->pump();
    if (!pumped && plan.strict) return tl::unexpected<Error>(pumped.error());
    more = !pumped || *pumped;
  }
  const auto document = made->finish();
  if (!document) return tl::unexpected<Error>(document.error());
  json = report::render_json(*document);
  return {};
}

extern "C" {

const char* pasta_version(void) { return PASTA_VERSION " (" PASTA_COMMIT ")"; }
uint32_t pasta_abi_version(void) { return PASTA_ABI_VERSION; }

pasta_status pasta_open(const char* const* paths, size_t count, const pasta_open_options* options,
                        pasta_trace** trace) {
  if (trace == nullptr) return PASTA_USAGE;
  *trace = new (std::nothrow) pasta_trace();
  if (*trace == nullptr) return PASTA_IO;
  return (*trace)->call([&]() -> Status {
    std::vector<std::string> list;
    for (size_t i = 0; i < count; ++i) {
      if (paths == nullptr || paths[i] == nullptr) return fail(ErrorCode::kUsage, "a path is NULL");
      list.emplace_back(paths[i]);
    }
    Plan plan;
    if (options != nullptr) {
      if (plugins::has_member(options, &pasta_open_options::strict))
        plan.strict = options->strict != 0;
      if (plugins::has_member(options, &pasta_open_options::memory_budget_bytes) &&
          options->memory_budget_bytes != 0) {
        plan.memory_budget_bytes = options->memory_budget_bytes;
      }
    }
    return (*trace)->open(std::move(list), std::move(plan));
  });
}

void pasta_close(pasta_trace* trace) { delete trace; }

const char* pasta_error(const pasta_trace* trace) {
  return trace == nullptr ? kOutOfMemory : trace->error.c_str();
}

pasta_status pasta_next(pasta_trace* trace, const pasta_event** events, size_t* count) {
  if (trace == nullptr || events == nullptr || count == nullptr) return PASTA_USAGE;
  const pasta_status status = trace->call([&] { return trace->next(); });
  *events = plugins::c_view(trace->page.events.data());
  *count = trace->page.events.size();
  return status;
}

pasta_text pasta_blob(const pasta_trace* trace, uint32_t blob) {
  if (trace == nullptr) return {nullptr, 0};
  const auto found = trace->page.blobs.find(blob);
  if (found == trace->page.blobs.end()) return {nullptr, 0};
  return {reinterpret_cast<const char*>(found->second.data()), found->second.size()};
}

const pasta_lookup* pasta_tables(const pasta_trace* trace) {
  return trace == nullptr || !trace->lookup ? nullptr : trace->lookup->table();
}

pasta_status pasta_report(pasta_trace* trace, const char* const* tools, size_t count,
                          pasta_text* json) {
  if (trace == nullptr || json == nullptr || (tools == nullptr && count > 0)) return PASTA_USAGE;
  const pasta_status status = trace->call([&] { return trace->report({tools, count}); });
  *json = plugins::c_view(trace->json);
  return status;
}

pasta_status pasta_load_plugin(pasta_trace* trace, const char* path) {
  if (trace == nullptr) return PASTA_USAGE;
  return trace->call([&] { return trace->load(path); });
}
}
