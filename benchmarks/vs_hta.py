#!/usr/bin/env python3
"""The same question put to pastaprof and to HTA (HolisticTraceAnalysis), side by side.

    vs_hta.py --pastaprof build/release/src/cli/pastaprof [TRACE]

Both run as whole processes, by turns, on one PyTorch trace: HTA's TraceAnalysis with
get_temporal_breakdown and get_gpu_kernel_breakdown, and `pastaprof report` with its summary and
kernels. Prints wall time (median and best) and peak memory of both, and the ratios. HTA comes from
PyPI into a virtual environment outside the source tree, which is made on first use.

Speed is worth nothing without the right answer: after the timed runs HTA is asked once more, for all
steps of the trace (by default it leaves out the last), and its idle, compute and total time must be
pastaprof's.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DEFAULT_TRACE = (HERE.parent / "../shared/corpus/hta/df_index_resolver/df_index_resolver.json.gz")
REQUIREMENT = "HolisticTraceAnalysis==0.5.0"
GOAL_TIME, GOAL_MEMORY = 25, 5

HTA_PROGRAM = """
import json, os, sys, tempfile
from hta.trace_analysis import TraceAnalysis
with tempfile.TemporaryDirectory() as folder:
    os.symlink(sys.argv[1], os.path.join(folder, os.path.basename(sys.argv[1])))
    analysis = TraceAnalysis(trace_dir=folder, include_last_profiler_step=len(sys.argv) > 2)
    breakdown = analysis.get_temporal_breakdown(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    print("ANSWER", json.dumps([int(breakdown[column].sum()) for column in
                                ("idle_time(us)", "compute_time(us)", "kernel_time(us)")]))
"""


def hta_python(venv):
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"making {venv} with {REQUIREMENT}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", REQUIREMENT], check=True)
    return python


def measure(command):
    """Runs a command; (seconds, peak MiB, CPU seconds, standard output)."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            sys.exit(f"{command[0]} ended with {process.returncode}:\n"
                     + errors.read().decode(errors="replace")[-2000:])
        return (seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime,
                output.read().decode(errors="replace"))


def hta_answer(output):
    line = next(line for line in output.splitlines() if line.startswith("ANSWER"))
    return json.loads(line.split(" ", 1)[1])


def our_answer(output):
    summary = json.loads(output)["reports"][0]
    devices = next(part for part in summary["parts"] if part.get("id") == "devices")
    columns = [column["name"] for column in devices["columns"]]
    return [sum(row[columns.index(name)] for row in devices["rows"]) // 1000
            for name in ("idle", "compute", "span")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=pathlib.Path, default=DEFAULT_TRACE)
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--venv", type=pathlib.Path,
                        default=pathlib.Path(tempfile.gettempdir()) / "pastaprof-hta-venv")
    parser.add_argument("--check", action="store_true",
                        help=f"fail below {GOAL_TIME} times the speed or above 1/{GOAL_MEMORY} of "
                             "the memory")
    arguments = parser.parse_args()
    trace = arguments.trace.resolve()
    if not trace.exists():
        sys.exit(f"{trace} is not there; give a PyTorch trace")
    commands = {
        "HTA": [str(hta_python(arguments.venv)), "-c", HTA_PROGRAM, str(trace)],
        "pastaprof": [arguments.pastaprof, "report", str(trace), "--tool", "summary", "--tool",
                      "kernels", "--format", "json"],
    }
    runs = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, command in commands.items():
            runs[name].append(measure(command))

    print(f"{trace.name}, {arguments.runs} runs each by turns, {os.cpu_count()} CPUs")
    print(f"{'program':<10} {'median s':>9} {'best s':>8} {'CPU s':>8} {'peak MiB':>9}")
    median, peak = {}, {}
    for name, results in runs.items():
        median[name] = statistics.median(r[0] for r in results)
        peak[name] = max(r[1] for r in results)
        print(f"{name:<10} {median[name]:>9.3f} {min(r[0] for r in results):>8.3f} "
              f"{statistics.median(r[2] for r in results):>8.3f} {peak[name]:>9.1f}")
    faster = median["HTA"] / median["pastaprof"]
    smaller = peak["HTA"] / peak["pastaprof"]
    print(f"pastaprof is {faster:.1f} times faster (median of wall time) and takes 1/{smaller:.1f} "
          "of the peak memory")
    theirs = hta_answer(measure([*commands["HTA"], "all steps"])[3])
    ours = our_answer(runs["pastaprof"][-1][3])
    print(f"idle, compute and total time in us: HTA {theirs}, pastaprof {ours}")
    if theirs != ours:
        sys.exit("the answers differ")
    if arguments.check and (faster < GOAL_TIME or smaller < GOAL_MEMORY):
        sys.exit(f"goal missed: {GOAL_TIME} times and 1/{GOAL_MEMORY}")


if __name__ == "__main__":
    main()
