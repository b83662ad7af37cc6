#!/usr/bin/env python3
"""One trace of several runs of a program, by CUPTI and by Compute Sanitizer: what belongs together is found.

    several_runs_check.py --pastaprof PATH --programs FOLDER --output FOLDER

Programs are what tests/gpu/build makes. What does not hold is said, and is the exit code.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

TRITON = """
import torch, triton, triton.language as tl
@triton.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, 2 * a, mask=i < n)
x = torch.rand(100_000, device="cuda")
out = torch.empty_like(x)
for _ in range(3):
    double[(98,)](x, out, 100_000, B=1024)
print(bool((out == 2 * x).all()))
"""
TRAINING = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.LayerNorm(1024), torch.nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 512, device="cuda")
for _ in range(4):
    loss = torch.softmax(net(x), -1).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
torch.cuda.synchronize()
"""
ADD, STRIDED = "add(float const*, float const*, float*, unsigned long)", "strided(float const*, float*, unsigned long)"


class Check:
    def __init__(self, arguments):
        self.pastaprof = str(pathlib.Path(arguments.pastaprof).resolve())
        self.program = str(pathlib.Path(arguments.programs, "several_runs").resolve())
        self.output = pathlib.Path(arguments.output).resolve()
        self.output.mkdir(parents=True, exist_ok=True)
        self.failures = 0

    def hold(self, name, what, is_so):
        print("held" if is_so else "FAILED", name, what, flush=True)
        self.failures += not is_so

    def run(self, name, tools, command, *options, seconds=100):
        trace = self.output / f"{name}.pasta"
        words = ["--tool", tools, "--format", "json"]
        report = self.output / f"{name}.json"
        try:
            result = subprocess.run([self.pastaprof, "run", "-f", "-o", str(trace), *words, "--report", str(report), *options,
                                     "--", *command], capture_output=True, text=True, timeout=seconds, cwd=self.output)
        except subprocess.TimeoutExpired:
            self.hold(name, f"ends within {seconds} s", False)
            return None
        (self.output / f"{name}.err").write_text(result.stderr)
        self.hold(name, f"ends as the program: {result.returncode}, {result.stdout.strip()[:80]}", result.returncode == 0)
        if result.returncode != 0 or not report.exists():
            return None
        stored = subprocess.run([self.pastaprof, "report", str(trace), *words], capture_output=True, text=True)
        self.hold(name, "its trace says the same", stored.stdout == report.read_text())
        trace.unlink()
        self.tried = [int(n) for n in re.findall(r"^tried (\d+)", result.stderr, re.M)]
        return json.loads(report.read_text())

    @staticmethod
    def table(document, tool, ident):
        part = next(p for r in document["reports"] if r["tool"] == tool for p in r["parts"] if p.get("id") == ident)
        names = [column["name"] for column in part["columns"]]
        return [dict(zip(names, row)) for row in part["rows"]]

    def joined(self, name, document):
        lost = [p["count"] for p in document["trace"]["quality"]["problems"] if p["reason"] == "not_joined"]
        events = document["trace"]["events"]
        self.hold(name, f"launches not joined: {lost}, results {events.get('device')} of kernels {events.get('kernel')}", not lost)

    def all(self):
        # More of one kernel in one run than in another.
        document = self.run("tried", "access,kernels", [self.program, "8"])
        if document:
            own = {k["kernel"]: k for k in self.table(document, "access", "kernels")}
            times = {k["name"]: k["total"] for k in self.table(document, "kernels", "kernels")}
            lost = [p["count"] for p in document["trace"]["quality"]["problems"] if p["reason"] == "not_joined"]
            more = max(0, self.tried[1] - self.tried[0])
            self.hold("tried", f"{self.tried}: not joined {lost}", lost == ([more] if more else []))
            for kernel in (ADD, STRIDED):
                self.hold("tried", f"{kernel[:8]} {own[kernel]['time']} of {times[kernel]} ns",
                          own[kernel]["launches"] == 8 and own[kernel]["time"] == times[kernel])
            sites = {s["site"] for s in self.table(document, "access", "sites")}
            lines = {"several_runs.cu:13 from several_runs.cu:18 LDG", "several_runs.cu:18 STG"}
            self.hold("tried", f"lines {sorted(sites)[:4]}", lines <= sites)
        # Whole iterations: each has the times of its own.
        document = self.run("iterations", "reuse,kernels", [self.program, "9"], "--launches", "iterations:1/4")
        if document:
            self.joined("iterations", document)
            rows = [(i["iteration"], i["launches"]) for i in self.table(document, "reuse", "iterations")]
            self.hold("iterations", str(rows), rows == [("step#3", 2), ("step#7", 2)])
        # One run for each patch.
        document = self.run("patches", "access,reuse", [self.program, "3"])
        if document:
            counts = [{k["kernel"]: (k["launches"], k["time"]) for k in self.table(document, tool, "kernels")}
                      for tool in ("access", "reuse")]
            same = all(counts[0][kernel] == counts[1][kernel] and counts[0][kernel][1] for kernel in (ADD, STRIDED))
            self.hold("patches", "both have the same launches and times", same)
        for name, source in (("triton", TRITON), ("training", TRAINING)):
            (self.output / f"{name}_program.py").write_text(source)
            document = self.run(name, "access,kernels" if name == "triton" else "reuse,kernels",
                                [sys.executable, f"{name}_program.py"], seconds=150)
            if not document:
                continue
            self.joined(name, document)
            if name == "triton":
                sites = {s["site"] for s in self.table(document, "access", "sites") if s["kernel"] == "double"}
                self.hold(name, f"lines {sorted(sites)}", {"triton_program.py:6 LDG", "triton_program.py:7 STG"} <= sites)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pastaprof", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--output", required=True)
    check = Check(parser.parse_args())
    check.all()
    print(f"{check.failures} did not hold" if check.failures else "all held")
    sys.exit(min(check.failures, 1))
