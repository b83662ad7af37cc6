// Whether a warp of a GPU says the same of its accesses as the host does, and patches make the same
// of them: warps CASES [SEED]. Addresses and lanes are made up, in scenes: of each so many.
#pragma nv_diag_suppress 20011, 20014  // what is for both is also made for the host alone

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device/access.h"
#include "device/divergence.h"
#include "device/gpu_patch.h"
#include "device/gpu_warp.h"
#include "device/hotpages.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/reuse.h"
#include "device/warp.h"
#include "lanes/scenes.h"

namespace {

using namespace pasta::device;
using namespace pasta::device::testing;

struct Facts {
  std::uint64_t sectors, bytes, parts, pattern, step, span, passes[2], crowd;
  std::uint64_t groups, group_sectors, group_parts;  // of lanes that have a KiB in common
};

// Of these addresses as those of shared memory, which has fewer.
constexpr std::uint64_t kEndOfShared = 1u << 27;

// `facts` are 0; `shared` is the same warp in shared memory.
#pragma nv_exec_check_disable
template <class AnyWarp>
PASTA_DEVICE void find_facts(const AnyWarp& warp, const AnyWarp& shared, Facts& facts) {
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
  const std::uint32_t bytes = warp.bytes(warp.active);
  const Passes passes = shared.passes();
  const unsigned crowd = warp.crowd();
  warp.add(warp.active, facts.sectors, sectors);
  warp.add(warp.active, facts.bytes, bytes);
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
  const std::uint64_t address = cases[at].address[lane];
  const GpuWarp<false> warp(Space::kGlobal, Access::kRead, 0, 0, address, cases[at].width,
                            cases[at].active);
  const GpuWarp<false> shared(Space::kShared, Access::kRead, 0, 0, address % kEndOfShared,
                              cases[at].width, cases[at].active);
  find_facts(warp, shared, facts[at]);
}

Facts on_host(const Case& of) {
  Warp warp;
  warp.width = of.width;
  warp.active = of.active;
  std::memcpy(warp.address, of.address, sizeof warp.address);
  Facts facts{};
  Warp shared = warp;
  for (std::uint64_t& address : shared.address) address %= kEndOfShared;
  find_facts(warp, shared, facts);
  facts.step = static_cast<std::uint32_t>(facts.step);
  return facts;
}

template <class Patch>
__global__ void patched(void* given, const Case* cases, unsigned count) {
  const unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  if (at >= count || (cases[at].active >> lane & 1) == 0) return;
  const Case& one = cases[at];
  const std::uint64_t address = one.address[lane];
  const std::uint32_t lanes = __activemask();
  if (one.width > kSectorBytes) {
    on_access<Patch, true>(given, one.site, one.space, one.access, address, one.width, lanes);
  } else if (one.space == Space::kGlobal) {
    on_access<Patch>(given, one.site, Space::kGlobal, one.access, address, one.width, lanes);
  } else if (one.space == Space::kShared) {
    on_access<Patch>(given, one.site, Space::kShared, one.access, address, one.width, lanes);
  } else {
    on_access<Patch>(given, one.site, Space::kLocal, one.access, address, one.width, lanes);
  }
}

// Which row of a table of places is whose is a matter of who comes first, too.
void sort_places(PatchResult& result) {
  for (ResultTable& table : result.tables) {
    if (table.id != TableId::kSites) continue;
    std::vector<std::vector<std::uint64_t>> rows;
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const auto begin = table.numbers.begin() + static_cast<std::ptrdiff_t>(i * table.columns);
      rows.emplace_back(begin, begin + table.columns);
    }
    std::ranges::sort(rows);
    table.numbers.clear();
    for (const auto& row : rows) table.numbers.insert(table.numbers.end(), row.begin(), row.end());
    table.names.clear();
  }
}

template <class Patch>
bool same_results(const char* name, const Scene& scene, const Case* cases_there) {
  const auto count = static_cast<unsigned>(scene.cases.size());
  const std::vector<MemoryObject>& here = scene.objects;
  const Launch launch = launch_of(scene);
  const typename Patch::Settings settings = settings_of<Patch>(true);
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
  PatchResult found = Patch::result(launch, lay_out<Patch>(launch, shared, settings, copied), {});
  PatchResult wanted = host_result<Patch>(scene, launch, settings_of<Patch>(false));
  std::size_t rows = 0;
  for (const ResultTable& table : wanted.tables) rows += table.rows();
  // Of what more lanes than a table holds do at a place, too, it has those that come first.
  if (scene.many_sites || std::is_same_v<Patch, DivergencePatch>) {
    found = without_sites(std::move(found));
    wanted = without_sites(std::move(wanted));
  }
  sort_places(found);
  sort_places(wanted);
  const bool same = error == cudaSuccess && found == wanted;
  std::printf("%s: %s: %zu rows, %s%s\n", scene.name.c_str(), name, rows,
              same ? "the same on host and GPU" : "which DIFFER between host and GPU: ",
              same || error == cudaSuccess ? "" : cudaGetErrorString(error));
  if (!same) std::printf("  %s\n", first_difference(found, wanted).c_str());
  cudaFree(given - kBefore);
  cudaFree(objects_there);
  cudaFree(table_there);
  return same;
}

// What a warp says of itself.
bool same_facts(const Scene& scene, const Case* cases_there) {
  const auto count = static_cast<unsigned>(scene.cases.size());
  std::vector<Facts> facts(count);
  Facts* facts_there = nullptr;
  cudaMalloc(&facts_there, count * sizeof(Facts));
  cudaMemset(facts_there, 0, count * sizeof(Facts));
  on_gpu<<<(count + kWarps - 1) / kWarps, kWarps * kWarpLanes>>>(cases_there, facts_there, count);
  cudaMemcpy(facts.data(), facts_there, count * sizeof(Facts), cudaMemcpyDeviceToHost);
  cudaFree(facts_there);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(3);
  }
  unsigned differ = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Facts wanted = on_host(scene.cases[i]);
    if (std::memcmp(&wanted, &facts[i], sizeof wanted) == 0) continue;
    if (++differ > 5) continue;
    std::printf("case %u, width %u, lanes %08x:", i, scene.cases[i].width, scene.cases[i].active);
    const auto* host = reinterpret_cast<const std::uint64_t*>(&wanted);
    const auto* gpu = reinterpret_cast<const std::uint64_t*>(&facts[i]);
    for (unsigned k = 0; k < sizeof wanted / sizeof *host; ++k) {
      std::printf(" %lld/%lld", static_cast<long long>(host[k]), static_cast<long long>(gpu[k]));
    }
    std::puts("");
  }
  std::printf("%s: %u of %u cases differ between host and GPU\n", scene.name.c_str(), differ,
              count);
  return differ == 0;
}

bool same(const Scene& scene, bool has_facts) {
  Case* cases_there = nullptr;
  const std::size_t bytes = scene.cases.size() * sizeof(Case);
  cudaMalloc(&cases_there, bytes);
  cudaMemcpy(cases_there, scene.cases.data(), bytes, cudaMemcpyHostToDevice);
  bool all = !has_facts || same_facts(scene, cases_there);
  all = same_results<HotpagesPatch>("hotpages", scene, cases_there) && all;
  all = same_results<ReusePatch>("reuse", scene, cases_there) && all;
  all = same_results<DivergencePatch>("divergence", scene, cases_there) && all;
  all = same_results<AccessPatch>("access", scene, cases_there) && all;
  cudaFree(cases_there);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 20'000);
  Maker maker(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  bool all = true;
  const auto try_it = [&](Scene scene, bool has_facts = true) {
    all = same(scene, has_facts) && all;
    // The same ones again, of which what they come to is known.
    for (unsigned i = 0; i < count; ++i) scene.cases[i] = scene.cases[i % (count / 100 + 1)];
    scene.name += ", again";
    all = same(scene, false) && all;
  };
  try_it(anything(maker, count));
  try_it(models(maker, count, "models", std::uint64_t{7} << 40));
  try_it(models(maker, count, "models in low memory", 64 * kMiB));
  try_it(borders(maker, count));
  try_it(many_objects(maker, count));
  // Of what lies so far apart nobody asks for banks of shared memory.
  try_it(far_apart(maker, count), false);
  try_it(alike(maker, count), false);
  try_it(many_kinds(maker, count, false));
  try_it(many_kinds(maker, count, true));
  try_it(other_memory(maker, count));
  try_it(crowds(maker, count));
  try_it(steps(maker, count), false);
  try_it(across(maker, count));
  try_it(in_order(maker, count));
  try_it(bulk_copies(maker, count), false);
  std::puts(all ? "all the same" : "some DIFFER");
  return all ? 0 : 1;
}
