#!/usr/bin/env python3
"""Writes a synthetic PyTorch (Kineto) trace of any size, fast, with known totals.

    generate_trace.py --events 30000000 -o big.json        about 4 GiB
    generate_trace.py --bytes 1G | pastaprof report -

A trace is a repetition of one training iteration. All times and ids of an iteration are written as
a prefix, which tells the iteration, and fixed digits: so a further iteration is one replacement
of two marks in a block of bytes, and the disk is the limit. A few variants of the iteration take
turns, so that names and durations are not all alike.

What the trace holds is known exactly and printed as JSON on standard error (or --facts FILE): a
benchmark can check the answer besides timing it.
"""

import argparse
import json
import random
import sys

SEED = 20
VARIANTS = 5
OPERATORS_PER_ITERATION = 480
ITERATION_US = 1_000_000  # the six digits below the time prefix
FIRST_ITERATION = 1
TIME_MARK = b"@T"
ID_MARK = b"@C"
EPOCH_US = 1_700_000_000  # prefix of iteration 0: a plausible absolute time

KERNELS = [
    ("aten::linear", "aten::addmm", "ampere_sgemm_128x64_tn"),
    ("aten::matmul", "aten::mm", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"),
    ("aten::conv2d", "aten::cudnn_convolution",
     "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_cudnn"),
    ("aten::layer_norm", "aten::native_layer_norm",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
     "(int, float, float const*, float const*, float const*, float*, float*, float*)"),
    ("aten::gelu", "aten::gelu",
     "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, "
     "at::detail::Array<char*, 2> >(int)"),
    ("aten::softmax", "aten::_softmax",
     "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
     "(float*, float const*, int, int, int)"),
    ("aten::add_", "aten::add_",
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"),
    ("aten::sum", "aten::sum", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"),
    ("c10d::allreduce_", "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    ("aten::copy_", "aten::copy_", None),  # a copy instead of a kernel
]


def time_text(ns):
    """Nanoseconds into the iteration as the digits that follow the time prefix."""
    return f"{TIME_MARK.decode()}{ns // 1000:06d}.{ns % 1000:03d}"


def duration_text(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


class Iteration:
    """The records of one iteration with marks in place of what differs, and their totals."""

    def __init__(self, seed):
        rng = random.Random(seed)
        host, device = [], []
        self.kernels = self.kernel_ns = self.copies = self.copy_ns = 0
        host_ns, device_ns = 1000, 20_000
        step_ns = ITERATION_US * 1000
        slot_ns = (step_ns - 50_000_000) // OPERATORS_PER_ITERATION
        for number in range(OPERATORS_PER_ITERATION):
            outer, inner, kernel = rng.choices(KERNELS, weights=[8, 8, 4, 3, 6, 2, 8, 3, 1, 2])[0]
            ident = f"{ID_MARK.decode()}{number:04d}"
            start = number * slot_ns + host_ns
            length = rng.randrange(8_000, 40_000)
            launch, launch_ns = start + length // 2, rng.randrange(3_000, length // 2 - 500)
            device_ns = max(device_ns, launch + rng.randrange(2_000, 9_000))
            work_ns = rng.randrange(1_500, slot_ns - 10_000)
            host.append(
                f'{{"ph":"X","cat":"cpu_op","name":"{outer}","pid":100,"tid":100,'
                f'"ts":{time_text(start)},"dur":{duration_text(length)},'
                f'"args":{{"External id":{ident}}}}}')
            host.append(
                f'{{"ph":"X","cat":"cpu_op","name":"{inner}","pid":100,"tid":100,'
                f'"ts":{time_text(start + 200)},"dur":{duration_text(length - 400)},'
                f'"args":{{"External id":{ident}}}}}')
            host.append(
                f'{{"ph":"X","cat":"cuda_runtime","name":'
                f'"{"cudaLaunchKernel" if kernel else "cudaMemcpyAsync"}","pid":100,"tid":100,'
                f'"ts":{time_text(launch)},"dur":{duration_text(launch_ns)},'
                f'"args":{{"cbid":211,"correlation":{ident}}}}}')
            host.append(
                f'{{"ph":"s","id":{ident},"pid":100,"tid":100,"ts":{time_text(launch)},'
                f'"cat":"ac2g","name":"ac2g"}}')
            if kernel:
                stream = 20 if kernel.startswith("nccl") else 7
                device.append(
                    f'{{"ph":"X","cat":"kernel","name":"{kernel}","pid":0,"tid":{stream},'
                    f'"ts":{time_text(device_ns)},"dur":{duration_text(work_ns)},"args":'
                    f'{{"device":0,"stream":{stream},"correlation":{ident},'
                    f'"grid":[{rng.randrange(1, 4096)},1,1],"block":[256,1,1]}}}}')
                self.kernels += 1
                self.kernel_ns += work_ns
            else:
                stream = 7
                device.append(
                    f'{{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)",'
                    f'"pid":0,"tid":7,"ts":{time_text(device_ns)},"dur":{duration_text(work_ns)},'
                    f'"args":{{"device":0,"stream":7,"correlation":{ident},"bytes":1048576}}}}')
                self.copies += 1
                self.copy_ns += work_ns
            device.append(
                f'{{"ph":"f","id":{ident},"pid":0,"tid":{stream},"ts":{time_text(device_ns)},'
                f'"cat":"ac2g","name":"ac2g","bp":"e"}}')
            device_ns += work_ns + 500
        host.append(
            f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{ID_MARK.decode()}",'
            f'"pid":100,"tid":100,"ts":{time_text(0)},"dur":{duration_text(step_ns - 1000)},'
            f'"args":{{}}}}')
        assert device_ns < step_ns, "the iteration does not hold its own work"
        self.events = len(host) + len(device)
        self.host = (",\n".join(host) + ",\n").encode()
        self.device = (",\n".join(device) + ",\n").encode()

    def write(self, block, number):
        return block.replace(TIME_MARK, b"%d" % (EPOCH_US + number)).replace(ID_MARK, b"%d" % number)


HEAD = b"""{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Synthetic GPU","numSms":108}],
"distributedInfo":{"backend":"nccl","rank":0,"world_size":1},"displayTimeUnit":"ms",
"traceEvents":[
"""
# The last record has no comma after it: it also names the process.
TAIL = b'{"ph":"M","name":"process_name","pid":100,"tid":0,"args":{"name":"python"}}\n]}\n'


def generate(write, iterations, order):
    """Writes the trace through `write(bytes)`; returns its facts."""
    variants = [Iteration(SEED + n) for n in range(VARIANTS)]
    size = 0
    facts = {"events": 1, "kernels": 0, "kernel_sum_ns": 0, "copies": 0, "copy_sum_ns": 0}

    def put(data):
        nonlocal size
        size += len(data)
        write(data)

    numbers = range(FIRST_ITERATION, FIRST_ITERATION + iterations)
    put(HEAD)
    if order == "kineto":
        for number in numbers:
            put(variants[number % VARIANTS].write(variants[number % VARIANTS].host, number))
        for number in numbers:
            put(variants[number % VARIANTS].write(variants[number % VARIANTS].device, number))
    else:
        for number in numbers:
            variant = variants[number % VARIANTS]
            put(variant.write(variant.host + variant.device, number))
    put(TAIL)
    for number in numbers:
        variant = variants[number % VARIANTS]
        facts["events"] += variant.events
        facts["kernels"] += variant.kernels
        facts["kernel_sum_ns"] += variant.kernel_ns
        facts["copies"] += variant.copies
        facts["copy_sum_ns"] += variant.copy_ns
    return {"bytes": size, "iterations": iterations, **facts}


def parse_size(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(float(text[:-1]) * units[text[-1].upper()]) if text[-1].upper() in units else int(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--events", type=int, help="about so many records (whole iterations)")
    amount.add_argument("--bytes", type=parse_size, help="about so many bytes; 500M, 4G")
    parser.add_argument("--order", choices=["kineto", "time"], default="kineto",
                        help="kineto: all host records, then all device records, as PyTorch writes "
                             "them; time: iteration after iteration")
    parser.add_argument("-o", "--output", help="file to write (default: standard output)")
    parser.add_argument("--facts", help="file for the totals (default: standard error)")
    arguments = parser.parse_args()

    sample = Iteration(SEED)
    per_iteration = (sample.events if arguments.events
                     else len(sample.write(sample.host + sample.device, 1000)))
    iterations = max(1, round((arguments.events or arguments.bytes) / per_iteration))
    if arguments.output:
        with open(arguments.output, "wb", buffering=0) as out:
            facts = generate(out.write, iterations, arguments.order)
    else:
        facts = generate(sys.stdout.buffer.write, iterations, arguments.order)
    text = json.dumps(facts)
    if arguments.facts:
        with open(arguments.facts, "w", encoding="utf-8") as out:
            out.write(text + "\n")
    else:
        print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
