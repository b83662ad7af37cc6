#include "adapters/nvtx/names.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>
#include <new>

#include "trace/spool_writer.h"

namespace pasta::adapters::nvtx {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr std::size_t kAlign = 16;

struct Chunk {
  std::atomic<std::size_t> used;
  std::size_t bytes;
};

constinit std::atomic<Chunk*> g_chunk = nullptr;
constinit std::atomic<std::size_t> g_mapped = 0;

void* map(std::size_t bytes) {
  if (g_mapped.fetch_add(bytes, std::memory_order_relaxed) + bytes > kMaxNamesBytes) {
    g_mapped.fetch_sub(bytes, std::memory_order_relaxed);
    trace::SpoolPush push;
    if (push) push.note(Reason::kNotKept, 1, "names of NVTX beyond 16 MiB of a process");
    return nullptr;
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* allocate(std::size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (bytes > kChunkBytes / 4) return map(bytes);
  for (;;) {
    Chunk* chunk = g_chunk.load(std::memory_order_acquire);
    if (chunk != nullptr) {
      const std::size_t at = chunk->used.fetch_add(bytes, std::memory_order_relaxed);
      if (at + bytes <= chunk->bytes) return reinterpret_cast<char*>(chunk) + at;
    }
    void* memory = map(kChunkBytes);
    if (memory == nullptr) return nullptr;
    auto* fresh = new (memory) Chunk{};
    fresh->bytes = kChunkBytes;
    fresh->used.store(sizeof(Chunk), std::memory_order_relaxed);
    if (!g_chunk.compare_exchange_strong(chunk, fresh, std::memory_order_acq_rel)) {
      munmap(memory, kChunkBytes);  // another thread has made one
      g_mapped.fetch_sub(kChunkBytes, std::memory_order_relaxed);
    }
  }
}
static_assert(sizeof(Chunk) % kAlign == 0);

constinit const Text g_unkept = {0, nullptr};
constinit Domain g_default = {nullptr, 1, nullptr, nullptr};
constinit std::atomic<Domain*> g_domains = nullptr;
constinit std::atomic<std::uint32_t> g_domain_count = 1;

struct Location {
  std::atomic<std::uint64_t> schema;
  std::size_t offset;
};
constinit Location g_locations[64] = {};
constinit std::atomic<std::uint32_t> g_location_count = 0;

Domain* known(Domain* from, std::string_view name) {
  for (Domain* domain = from; domain != nullptr; domain = domain->next) {
    if (domain->name->view() == name) return domain;
  }
  return nullptr;
}

}  // namespace

const Text* keep(std::string_view text) noexcept {
  void* memory = allocate(sizeof(Text) + text.size());
  if (memory == nullptr) return nullptr;
  auto* kept = new (memory) Text{static_cast<std::uint32_t>(text.size()), nullptr};
  if (!text.empty()) std::memcpy(static_cast<void*>(kept + 1), text.data(), text.size());
  return kept;
}

const Text* unkept() noexcept { return &g_unkept; }

const Text* keep_registered(std::string_view text) noexcept {
  constexpr std::size_t kLong = 256;
  static constinit std::atomic<std::size_t> long_bytes = 0;
  if (text.size() > kLong &&
      long_bytes.fetch_add(text.size(), std::memory_order_relaxed) + text.size() >
          kMaxNamesBytes / 2) {
    long_bytes.fetch_sub(text.size(), std::memory_order_relaxed);
    return unkept();
  }
  return keep(text);
}

std::uint64_t new_schema() noexcept {
  // Where those that tools give begin.
  static constinit std::atomic<std::uint64_t> next = std::uint64_t{1} << 32;
  return next.fetch_add(1, std::memory_order_relaxed);
}

void keep_location(std::uint64_t schema, std::size_t offset) noexcept {
  const std::uint32_t at = g_location_count.fetch_add(1, std::memory_order_relaxed);
  if (at >= std::size(g_locations)) return;
  g_locations[at].offset = offset;
  g_locations[at].schema.store(schema, std::memory_order_release);
}

std::size_t find_location(std::uint64_t schema) noexcept {
  for (const Location& location : g_locations) {
    const std::uint64_t known = location.schema.load(std::memory_order_acquire);
    if (known == schema || known == 0) return known == 0 ? kNoLocation : location.offset;
  }
  return kNoLocation;
}

Domain& default_domain() noexcept { return g_default; }

Domain* find_domain(std::string_view name) noexcept {
  Domain* first = g_domains.load(std::memory_order_acquire);
  if (Domain* domain = known(first, name)) return domain;
  const Text* text = keep(name);
  void* memory = text == nullptr ? nullptr : allocate(sizeof(Domain));
  if (memory == nullptr) return nullptr;
  auto* made = new (memory) Domain{};
  made->number = g_domain_count.fetch_add(1, std::memory_order_relaxed) + 1;
  made->name = text;
  do {
    // Another thread may have made it meanwhile.
    if (Domain* domain = known(first, name)) return domain;
    made->next = first;
  } while (!g_domains.compare_exchange_weak(first, made, std::memory_order_acq_rel));
  return made;
}

void name_category(Domain& domain, std::uint32_t number, std::string_view name) noexcept {
  if (const Text* before = category_name(domain, number); before && before->view() == name) return;
  const Text* text = keep(name);
  void* memory = text == nullptr ? nullptr : allocate(sizeof(Category));
  if (memory == nullptr) return;
  auto* made =
      new (memory) Category{domain.categories.load(std::memory_order_acquire), number, text};
  // The newest is found first.
  while (!domain.categories.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
}

const Text* category_name(const Domain& domain, std::uint32_t number) noexcept {
  const Category* category = domain.categories.load(std::memory_order_acquire);
  while (category != nullptr && category->number != number) category = category->next;
  return category == nullptr ? nullptr : category->name;
}

}  // namespace pasta::adapters::nvtx
