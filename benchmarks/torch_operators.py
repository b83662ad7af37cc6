#!/usr/bin/env python3
"""What watching PyTorch costs, per operator and per module, on a CPU: benchmarks/torch_operators.py PASTAPROF [PYTHON]

One process does turns of many small operators; processes of all modes take turns, and the least of their turns
counts. The operators do next to nothing, so that the difference is the cost itself."""
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, time, torch
torch.set_num_threads(1)
x, module = torch.ones(4), torch.nn.Identity()
def operators(count):
    for _ in range(count):
        torch.neg(x)
def modules(count):
    for _ in range(count):
        module(x)
for line in sys.stdin:
    said = []
    for work in (operators, modules):
        begin = time.perf_counter()
        work(20000)
        said.append((time.perf_counter() - begin) / 20000 * 1e9)
    print(*said, flush=True)
"""
MODES = {"bare": None, "not watched": ("--adapter", "annotations"), "off": ("--python", "off"), "lines": ("--python", "lines"),
         "stacks": ("--python", "stacks")}


def main():
    pastaprof = sys.argv[1]
    python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        workers = {}
        for mode, options in MODES.items():
            before = [pastaprof, "run", "-f", "-o", f"{mode}.pasta", "--report", f"{mode}.txt", *options, "--"] if options else []
            workers[mode] = subprocess.Popen([*before, python, "-c", PROGRAM], cwd=folder, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        least = {}
        for _ in range(8):
            for mode, worker in workers.items():
                worker.stdin.write("\n")
                worker.stdin.flush()
                times = [float(word) for word in worker.stdout.readline().split()]
                least[mode] = [min(pair) for pair in zip(least.get(mode, times), times)]
        for worker in workers.values():
            worker.stdin.close()
        for worker in workers.values():
            worker.wait()
    for mode, (operator, module) in least.items():
        print(f"{mode:12} an operator {operator:7.0f} ns (+{operator - least['bare'][0]:.0f}), "
              f"a module {module:7.0f} ns (+{module - least['bare'][1]:.0f})")


if __name__ == "__main__":
    main()
