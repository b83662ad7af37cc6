// Whether a warp of a GPU says the same of its accesses as the host does, and patches make the same
// of them: warps CASES [SEED]. Addresses and lanes are made up: random ones, rows, columns, pieces
// and steps, whole warps and parts.
#pragma nv_diag_suppress 20011, 20014  // what is for both is also made for the host alone

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "device/access.h"
#include "device/gpu_patch.h"
#include "device/gpu_warp.h"
#include "device/hotpages.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/reuse.h"
#include "device/warp.h"

namespace {

using namespace pasta::device;

struct Case {
  std::uint64_t address[kWarpLanes];
  std::uint32_t width, active;
};
struct Facts {
  std::uint64_t sectors, footprint[2], parts, pattern, step, span, passes[2], crowd;
  std::uint64_t groups, group_sectors, group_parts;  // of lanes that have a KiB in common
};

// `facts` are 0.
#pragma nv_exec_check_disable
template <class AnyWarp>
PASTA_DEVICE void find_facts(const AnyWarp& warp, Facts& facts) {
  warp.match([](std::uint64_t address) { return static_cast<std::uint32_t>(address >> 10); },
             [&](std::uint32_t, std::uint32_t mask) {
               const std::uint32_t sectors = warp.sectors(mask), parts = warp.parts(mask);
               warp.add(mask, facts.groups, 1);
               warp.add(mask, facts.group_sectors, sectors);
               warp.add(mask, facts.group_parts, parts);
             });
  std::int64_t step = 0;
  const auto tell = [&](std::int64_t bytes) { step = bytes; };
  const Pattern pattern = warp.pattern(tell);
  const std::uint32_t sectors = warp.sectors(warp.active), parts = warp.parts(warp.active);
  const Footprint footprint = warp.footprint(warp.active);
  const Passes passes = warp.passes();
  const unsigned crowd = warp.crowd();
  warp.add(warp.active, facts.sectors, sectors);
  warp.add(warp.active, facts.footprint[0], footprint.sectors);
  warp.add(warp.active, facts.footprint[1], footprint.bytes);
  warp.add(warp.active, facts.parts, parts);
  warp.add(warp.active, facts.pattern, static_cast<std::uint32_t>(pattern));
  warp.add(warp.active, facts.step, static_cast<std::uint32_t>(step));
  warp.add(warp.active, facts.span, warp.span());
  warp.add(warp.active, facts.passes[0], passes.needed);
  warp.add(warp.active, facts.passes[1], passes.without_conflicts);
  warp.add(warp.active, facts.crowd, crowd);
}

__global__ void on_gpu(const Case* cases, Facts* facts, unsigned count) {
  const unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  if (at >= count || (cases[at].active >> lane & 1) == 0) return;
  const GpuWarp<false> warp(Space::kGlobal, Access::kRead, 0, 0, cases[at].address[lane],
                            cases[at].width, cases[at].active);
  find_facts(warp, facts[at]);
}

Case made_up(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t most) { return random() % most; };
  Case made{};
  made.width = 1u << below(5);
  switch (below(5)) {
    case 0:
      made.active = ~0u;
      break;
    case 1:
      made.active = static_cast<std::uint32_t>(random());
      break;
    case 2:
      made.active = ~0u >> below(32);
      break;
    case 3:
      made.active = 1u << below(32);
      break;
    default:
      made.active = static_cast<std::uint32_t>(random() & random() & random());
  }
  if (made.active == 0) made.active = 1;
  const std::uint64_t begin = (std::uint64_t{1} << 33) + below(1 << 16) * made.width;
  const std::uint64_t sort = below(6), step = below(40), across = 1 + below(256), turn = below(32);
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    std::uint64_t element = 0;
    switch (sort) {
      case 0:
        element = below(across);
        break;
      case 1:
        element = lane * step;
        break;
      case 2:
        element = (kWarpLanes - lane) * step;
        break;
      case 3:
        element = lane / 8 * 64 * (1 + step) + lane % 8;
        break;
      case 4:
        element = lane ^ turn;
        break;
      default:
        element = lane % (1 + turn) * step;
    }
    made.address[lane] = begin + element * made.width;
  }
  return made;
}

Facts on_host(const Case& of) {
  Warp warp;
  warp.width = of.width;
  warp.active = of.active;
  std::memcpy(warp.address, of.address, sizeof warp.address);
  Facts facts{};
  find_facts(warp, facts);
  facts.step = static_cast<std::uint32_t>(facts.step);
  return facts;
}

constexpr unsigned kWarps = 8;  // of a group

template <class Patch>
__global__ void patched(void* given, const Case* cases, unsigned count) {
  const unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  if (at >= count || (cases[at].active >> lane & 1) == 0) return;
  on_access<Patch>(given, 0, Space::kGlobal, static_cast<Access>(at % 3), cases[at].address[lane],
                   cases[at].width, __activemask());
}

// Where cases are made up: of all sizes, some beside each other, and one 8 GiB behind, which has
// the same place in a table of pieces.
std::vector<MemoryObject> objects(std::mt19937_64& random) {
  std::vector<MemoryObject> made;
  const std::uint64_t first = (std::uint64_t{1} << 33) - 4096;
  for (std::uint64_t at = first; at < first + (4u << 20);) {
    const std::uint64_t bytes = 1 + random() % (std::uint64_t{1} << random() % 22);
    made.push_back({at, bytes, made.size() + 1});
    at += bytes + (random() % 2 == 0 ? 0 : random() % 1000);
  }
  made.push_back({std::uint64_t{1} << 34, 3u << 20, made.size() + 1});
  return made;
}

template <class Patch>
bool same_results(const char* name, const std::vector<Case>& cases, const Case* cases_there,
                  std::mt19937_64& random) {
  const auto count = static_cast<unsigned>(cases.size());
  const std::vector<MemoryObject> here = objects(random);
  Launch launch;
  launch.grid[0] = (count + kWarps - 1) / kWarps;
  launch.block[0] = kWarps * kWarpLanes;
  launch.object_count = static_cast<std::uint32_t>(here.size());
  launch.objects = here.data();
  HostState<Patch> state(launch);
  for (unsigned i = 0; i < count; ++i) {
    Warp warp;
    warp.access = static_cast<Access>(i % 3);
    warp.width = cases[i].width;
    warp.active = cases[i].active;
    warp.group_number = i / kWarps;
    std::memcpy(warp.address, cases[i].address, sizeof warp.address);
    Patch::on_access(state.state(), launch, warp);
  }
  typename Patch::Settings settings = {.copies = Patch::kCopies};
  if constexpr (requires { settings.on_gpu; }) settings.on_gpu = true;
  HostBlock table;
  const auto shared =
      table.make([&](Layout& layout) { return share<Patch>(launch, settings, layout); });
  Layout sizing;
  lay_out<Patch>(launch, shared, settings, sizing);
  std::byte *given = nullptr, *objects_there = nullptr, *table_there = nullptr;
  constexpr std::size_t kBefore = bytes_before<Patch>();
  constexpr std::size_t kResultBefore = result_bytes_before<Patch>();
  const std::size_t bytes = kBefore + kHeaderBytes<Patch> + sizing.bytes();
  cudaMalloc(&given, bytes);
  cudaMalloc(&objects_there, here.size() * sizeof(MemoryObject));
  cudaMemset(given, 0, bytes);
  given += kBefore;
  cudaMalloc(&table_there, table.bytes().size() + 1);
  cudaMemcpy(table_there, table.bytes().data(), table.bytes().size(), cudaMemcpyHostToDevice);
  Layout shared_layout(std::span(table_there, table.bytes().size()));
  const auto shared_there = share<Patch>(launch, settings, shared_layout);
  Layout there(reinterpret_cast<std::uintptr_t>(given) + kHeaderBytes<Patch>);
  GpuLaunch<Patch> header = {launch, lay_out<Patch>(launch, shared_there, settings, there), 0};
  header.launch.objects = reinterpret_cast<const MemoryObject*>(objects_there);
  cudaMemcpy(objects_there, here.data(), here.size() * sizeof(MemoryObject),
             cudaMemcpyHostToDevice);
  cudaMemcpy(given, &header, sizeof header, cudaMemcpyHostToDevice);
  cudaMemcpy(given + kHeaderBytes<Patch>, there.image().data(), there.image().size(),
             cudaMemcpyHostToDevice);
  patched<Patch><<<launch.grid[0], launch.block[0]>>>(given, cases_there, count);
  // Arrays are laid out as in a block that is aligned.
  const std::size_t copied_bytes = kResultBefore + kHeaderBytes<Patch> + sizing.bytes();
  std::vector<std::byte> room(copied_bytes + Layout::kAlign);
  void* aligned = room.data();
  std::size_t left = room.size();
  std::align(Layout::kAlign, copied_bytes, aligned, left);
  const std::span<std::byte> result(static_cast<std::byte*>(aligned), copied_bytes);
  cudaMemcpy(result.data(), given - kResultBefore, copied_bytes, cudaMemcpyDeviceToHost);
  const std::span<std::byte> block = result.subspan(kResultBefore + kHeaderBytes<Patch>);
  const cudaError_t error = cudaDeviceSynchronize();
  Layout copied(block);
  const auto found = Patch::result(launch, lay_out<Patch>(launch, shared, settings, copied), {});
  const auto wanted = Patch::result(launch, state.state(), {});
  std::size_t rows = 0;
  for (const ResultTable& table : wanted.tables) rows += table.rows();
  const bool same = error == cudaSuccess && found == wanted, enough = rows > 10;
  std::printf("%s: %zu rows, %s%s\n", name, rows,
              same ? "the same on host and GPU" : "which differ between host and GPU",
              enough ? "" : "; too few to tell: begin elsewhere");
  cudaFree(given - kBefore);
  cudaFree(objects_there);
  cudaFree(table_there);
  return same && enough;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 100'000);
  std::mt19937_64 random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::vector<Case> cases(count);
  for (Case& one : cases) one = made_up(random);
  std::vector<Facts> facts(count);
  Case* cases_there = nullptr;
  Facts* facts_there = nullptr;
  cudaMalloc(&cases_there, count * sizeof(Case));
  cudaMalloc(&facts_there, count * sizeof(Facts));
  cudaMemset(facts_there, 0, count * sizeof(Facts));
  cudaMemcpy(cases_there, cases.data(), count * sizeof(Case), cudaMemcpyHostToDevice);
  on_gpu<<<(count + kWarps - 1) / kWarps, kWarps * kWarpLanes>>>(cases_there, facts_there, count);
  cudaMemcpy(facts.data(), facts_there, count * sizeof(Facts), cudaMemcpyDeviceToHost);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 3;
  }
  unsigned differ = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Facts wanted = on_host(cases[i]);
    if (std::memcmp(&wanted, &facts[i], sizeof wanted) == 0) continue;
    if (++differ > 5) continue;
    std::printf("case %u, width %u, lanes %08x:", i, cases[i].width, cases[i].active);
    const auto* host = reinterpret_cast<const std::uint64_t*>(&wanted);
    const auto* gpu = reinterpret_cast<const std::uint64_t*>(&facts[i]);
    for (unsigned k = 0; k < sizeof wanted / sizeof *host; ++k) {
      std::printf(" %lld/%lld", static_cast<long long>(host[k]), static_cast<long long>(gpu[k]));
    }
    std::puts("");
  }
  std::printf("%u of %u cases differ between host and GPU\n", differ, count);
  const bool same = same_results<HotpagesPatch>("hotpages", cases, cases_there, random) &&
                    same_results<ReusePatch>("reuse", cases, cases_there, random) &&
                    same_results<AccessPatch>("access", cases, cases_there, random);
  // The same ones again, of which what they come to is known.
  for (unsigned i = 0; i < count; ++i) cases[i] = cases[i % (count / 100 + 1)];
  cudaMemcpy(cases_there, cases.data(), count * sizeof(Case), cudaMemcpyHostToDevice);
  const bool again = same_results<AccessPatch>("access, again", cases, cases_there, random);
  return differ == 0 && same && again ? 0 : 1;
}
