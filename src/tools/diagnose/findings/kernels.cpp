// What kernels do and how they are launched: gemm-precision, gemm-choice, layout-conversion,
// small-kernels, tail-effect, low-occupancy-launch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/units.h"
#include "tools/common/demangle.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"
#include "tools/diagnose/matrix_kernel.h"

namespace pasta::tools::diagnose {
namespace {

// On V100, A100, H100 and MI200 the matrix units do about 8 times the FP32 (TF32) work of the
// vector units: no more than this part of a kernel's time goes away by using them.
constexpr double kMatrixUnitsSave = 7.0 / 8.0;
// Matrix instructions of the generation before reach some 60 % of what H100's own do; never is more
// than half of the time saved by the newer ones.
constexpr double kNewerKernelSaves = 0.5;

// What a double can be to become a time: sums of absurd times saturate.
constexpr double kMostNs = 9e18;

bool is_matrix(const WorkUse& use) {
  return use.key.kind == Kind::kKernel &&
         (use.type == KernelClass::kGemm || use.type == KernelClass::kConvolution);
}

std::int64_t part_of(std::int64_t ns, double part) {
  return static_cast<std::int64_t>(static_cast<double>(ns) * part);
}

// Which matrix units a device has, if that is known.
bool has_matrix_units(const View& view) {
  if (view.facts.type != DeviceType::kGpu && view.facts.type != DeviceType::kUnknown) return false;
  const std::string_view name = view.dictionary->text(view.facts.name);
  if (name.find("GTX") != std::string_view::npos) return false;  // compute 7.5 without tensor cores
  const bool amd = view.facts.warp_size == 64;
  if (amd) return view.facts.compute_major == 9 && view.facts.compute_minor >= 4;
  return view.facts.compute_major >= 7;
}

bool amd(const View& view) { return view.facts.warp_size == 64; }

// Copies that change type or layout, by the words of PyTorch, cuDNN, MIOpen and Inductor.
bool converts(std::string_view name) {
  constexpr std::string_view kWords[] = {
      "transpose",           "nchwToNhwc",         "nhwcToNchw",          "direct_copy_kernel",
      "float16_copy_kernel", "float8_copy_kernel", "SubTensorOpWithCast", "_to_copy",
      "cast_kernel",         "convertTensor"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// The same of a compute unit of CDNA 3 and 4 (gfx94x, gfx950): four SIMDs with eight waves and 512
// registers a lane each, vector and accumulation registers together, handed out by eights; 64 and
// 160 KiB of LDS.
std::int64_t resident_groups(const View& view, const LaunchAttributes& launch,
                             std::int64_t threads) {
  const std::uint32_t minor = view.facts.compute_minor;
  if (view.facts.compute_major != 9 || (minor != 4 && minor != 5)) return 0;
  const std::int64_t lds_kib = minor == 4 ? 64 : 160;
  const std::int64_t waves = (threads + 63) / 64;
  const std::int64_t registers = (launch.registers_per_thread + 7) / 8 * 8;
  std::int64_t groups = std::min<std::int64_t>(8, 512 / registers) * 4 / waves;
  const std::int64_t shared =
      std::int64_t{launch.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (shared > 0) groups = std::min(groups, lds_kib * 1024 / shared);
  // How many small groups a unit takes beside these limits is not documented for all of them.
  return groups > 16 ? 0 : std::max<std::int64_t>(groups, 1);
}

// How many blocks of a kernel a multiprocessor holds at once, at most; 0 = not known.
std::int64_t resident_blocks(const View& view, const LaunchAttributes& launch) {
  const std::int64_t threads = std::int64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || view.facts.max_threads_per_multiprocessor == 0) return 0;
  if (launch.registers_per_thread == 0) return 0;
  if (amd(view)) return resident_groups(view, launch, threads);
  std::int64_t shared_kib = 0;
  switch (view.facts.compute_major * 10 + view.facts.compute_minor) {
    case 70:
      shared_kib = 96;
      break;
    case 75:
      shared_kib = 64;
      break;
    case 80:
      shared_kib = 164;
      break;
    case 86:
    case 89:
      shared_kib = 100;
      break;
    case 90:
    case 100:
      shared_kib = 228;
      break;
    default:
      return 0;
  }
  const std::int64_t warps = (threads + 31) / 32;
  const std::int64_t registers = (launch.registers_per_thread + 7) / 8 * 8 * 32 * warps;
  const std::int64_t shared =
      std::int64_t{launch.static_shared_bytes} + launch.dynamic_shared_bytes;
  std::int64_t blocks = std::min<std::int64_t>(
      {32, view.facts.max_threads_per_multiprocessor / (warps * 32), 65536 / registers});
  if (shared > 0) blocks = std::min(blocks, shared_kib * 1024 / shared);
  return std::max<std::int64_t>(blocks, 1);
}

}  // namespace

std::optional<Finding> gemm_precision(const View& view) {
  if (!has_matrix_units(view)) return std::nullopt;
  std::int64_t inferred = 0;
  const auto vector = work_of(view, [&](const WorkUse& use) {
    if (!is_matrix(use)) return false;
    const MatrixKernel kernel = matrix_kernel(demangle(view.dictionary->text(use.key.name)));
    if (kernel.units != MatrixKernel::Units::kVector) return false;
    if (kernel.inferred) inferred = add_saturated(inferred, use.total_ns);
    return true;
  });
  const std::int64_t cost = total_of(vector);
  auto finding =
      begin(view, "gemm-precision", Basis::kInferred, {cost, part_of(cost, kMatrixUnitsSave)});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "device {} has matrix units, and {} of matrix products and convolutions run in FP32 beside "
      "them",
      view.device, amount(view, cost));
  if (inferred > 0) {
    finding->text += fmt::format("; of {} that is inferred from the types in the kernels' names",
                                 base::format_duration(view.mean(inferred)));
  }
  finding->evidence.emplace_back("inferred_time", view.mean(inferred), Unit::kNanoseconds);
  add_work(view, vector, 3, *finding);
  const bool tf32 = !amd(view) && view.facts.compute_major >= 8;
  finding->advice =
      tf32 ? "allow TF32 for FP32 products, or compute in BF16 or FP16 (automatic mixed precision)"
           : "compute in FP16 or BF16 (automatic mixed precision): these matrix units take no FP32";
  return finding;
}

std::optional<Finding> gemm_choice(const View& view) {
  // What is built for 8.0 runs on 8.6 and 8.9 as it should; only from 9.0 on are there newer
  // instructions that older kernels do not use.
  if (amd(view) || view.facts.compute_major < 8) return std::nullopt;
  const int device = static_cast<int>(view.facts.compute_major);
  int oldest = 0;
  const auto older = work_of(view, [&](const WorkUse& use) {
    if (!is_matrix(use)) return false;
    const MatrixKernel kernel = matrix_kernel(demangle(view.dictionary->text(use.key.name)));
    const bool old = kernel.units == MatrixKernel::Units::kMatrix && kernel.built_for > 0 &&
                     kernel.built_for / 10 < device;
    if (old) oldest = oldest == 0 ? kernel.built_for : std::min(oldest, kernel.built_for);
    return old;
  });
  const std::int64_t cost = total_of(older);
  auto finding =
      begin(view, "gemm-choice", Basis::kInferred, {cost, part_of(cost, kNewerKernelSaves)});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "{} of matrix kernels on device {} are built for an older architecture than its {}.{}, the "
      "oldest for {}.{}",
      amount(view, cost), view.device, view.facts.compute_major, view.facts.compute_minor,
      oldest / 10, oldest % 10);
  finding->evidence.emplace_back("built_for", static_cast<std::int64_t>(oldest));
  add_work(view, older, 3, *finding);
  finding->advice =
      "use a newer library, or shapes and alignments for which it has kernels of this architecture "
      "(multiples of 8 elements, 16 bytes); for small products the older kernel may be the better "
      "one";
  return finding;
}

std::optional<Finding> layout_conversion(const View& view) {
  const auto conversions = work_of(view, [&](const WorkUse& use) {
    return use.key.kind == Kind::kKernel && converts(view.dictionary->text(use.key.name));
  });
  const std::int64_t cost = total_of(conversions);
  auto finding = begin(view, "layout-conversion", Basis::kInferred, {cost, cost});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "device {} spends {} in {:.0f} kernels that only change type or layout (told from their "
      "names)",
      view.device, amount(view, cost),
      static_cast<double>(calls_of(conversions)) / static_cast<double>(view.iterations));
  add_work(view, conversions, 3, *finding);
  finding->advice =
      "keep one layout (channels last for convolutions) and one type through the layers around; "
      "avoid .contiguous(), and casts that a kernel could take in";
  return finding;
}

std::optional<Finding> small_kernels(const View& view) {
  const Chains& chains = view.chains;
  if (chains.chains == 0) return std::nullopt;
  auto finding = begin(view, "small-kernels", Basis::kInferred,
                       {chains.total_ns, chains.total_ns - chains.longest_ns});
  if (!finding) return std::nullopt;
  const auto each = static_cast<double>(view.iterations);
  finding->text = fmt::format(
      "device {} spends {} in {:.0f} elementwise kernels that follow one another with grids of one "
      "size, in {:.0f} chains: each chain could be one kernel",
      view.device, amount(view, chains.total_ns), static_cast<double>(chains.kernels) / each,
      static_cast<double>(chains.chains) / each);
  finding->evidence.emplace_back("kernels", static_cast<double>(chains.kernels) / each);
  finding->evidence.emplace_back("chains", static_cast<double>(chains.chains) / each);
  finding->evidence.emplace_back("longest_chain", chains.longest);
  finding->advice =
      "fuse them: a compiled model, fused or foreach optimizers, fused layers; what a kernel reads "
      "and writes is not in the trace, so whether a chain works on the same tensors is inferred";
  return finding;
}

std::optional<Finding> tail_effect(const View& view) {
  const std::int64_t processors = view.facts.multiprocessors;
  if (processors == 0) return std::nullopt;
  double lost = 0;
  std::int64_t cost = 0;
  std::vector<const WorkUse*> tails;
  for (const WorkUse& use : view.work) {
    if (use.key.kind != Kind::kKernel || use.key.blocks == 0 || use.calls == 0 ||
        use.type == KernelClass::kCommunication) {
      continue;
    }
    const std::int64_t resident =
        resident_blocks(view, view.dictionary->attributes(use.key.attributes));
    if (resident == 0) continue;
    const double waves =
        static_cast<double>(use.key.blocks) / static_cast<double>(processors * resident);
    // A grid that fits at once has no second wave; of many waves the last is little.
    if (waves <= 1) continue;
    const double part = 1 - waves / std::ceil(waves);
    if (part < 0.1) continue;
    tails.push_back(&use);
    cost = add_saturated(cost, use.total_ns);
    lost += part * static_cast<double>(use.total_ns);
  }
  const std::int64_t saved = std::min(cost, static_cast<std::int64_t>(std::min(lost, kMostNs)));
  auto finding = begin(view, "tail-effect", Basis::kInferred, {saved, saved});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "kernels of {} on device {} end with a wave that fills only a part of the device: {} of it "
      "are lost if all blocks take equally long",
      amount(view, cost), view.device, base::format_duration(view.mean(saved)));
  finding->evidence.emplace_back("kernel_time", view.mean(cost), Unit::kNanoseconds);
  add_work(view, tails, 3, *finding);
  const auto costliest = std::ranges::max_element(tails, {}, &WorkUse::total_ns);
  const std::string tile = macro_tile(view.dictionary->text((*costliest)->key.name));
  if (!tile.empty()) finding->evidence.emplace_back("tile", tile);
  finding->advice = fmt::format(
      "choose sizes whose blocks fill whole waves of {} multiprocessors, smaller tiles{}, or "
      "kernels "
      "that stay resident and share out the work",
      processors, tile.empty() ? "" : fmt::format(" (the costliest has {})", tile));
  return finding;
}

std::optional<Finding> low_occupancy_launch(const View& view) {
  const std::int64_t processors = view.facts.multiprocessors;
  if (processors == 0) return std::nullopt;
  double lost = 0;
  const auto few = work_of(view, [&](const WorkUse& use) {
    const auto blocks = static_cast<std::int64_t>(use.key.blocks);
    if (use.key.kind != Kind::kKernel || blocks == 0 || blocks >= processors ||
        use.type == KernelClass::kCommunication) {
      return false;
    }
    lost += static_cast<double>(use.total_ns) *
            (1 - static_cast<double>(blocks) / static_cast<double>(processors));
    return true;
  });
  const std::int64_t cost = total_of(few),
                     saved = std::min(cost, static_cast<std::int64_t>(std::min(lost, kMostNs)));
  auto finding = begin(view, "low-occupancy-launch", Basis::kInferred, {cost, saved});
  if (!finding) return std::nullopt;
  finding->text =
      fmt::format("kernels of {} on device {} have fewer blocks than its {} multiprocessors",
                  amount(view, cost), view.device, processors);
  finding->evidence.emplace_back("multiprocessors", processors);
  finding->evidence.emplace_back(
      "kernels", static_cast<double>(calls_of(few)) / static_cast<double>(view.iterations));
  add_work(view, few, 3, *finding);
  finding->advice =
      "give them more blocks (larger batches, split reductions), or run independent ones side by "
      "side on several streams";
  return finding;
}

}  // namespace pasta::tools::diagnose
