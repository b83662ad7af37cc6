#!/usr/bin/env python3
"""pastaprof's numbers for CSV tables beside those that Python's csv module, a database of the same
run, and the authors of the files give.

    csv_accuracy.py [--pastaprof PATH] [--corpus DIR]        print the comparison
    csv_accuracy.py --write                                  and put it into docs/accuracy.md
"""

import collections
import contextlib
import csv
import sqlite3

import accuracy
import dump
from program import Run, union

ROCPROFV3 = "rocprofv3_csv/rocm-systems-docs"
PREFILL = "rocprofv3_csv/jimw567/prefill_kernel_trace.csv"
FETCH = "rocprofv3_csv/jimw567/prefill_fetch_counter_collection.csv"
RESULTS = "rocprof_v1/hpctraining/finite-difference/results.csv"
EXTRA = "cases/35-rocprofv3-extra-column.csv"

# What corpus.md quotes, and the documentation that the files are of.
PREFILL_SAYS = {"kernels": 1128, "names": 27, "sum": 66066571, "busy": 66066571, "span": 69879339,
                "calls of mul_mat_q": 131, "time of mul_mat_q": 30831252}
EXTRA_SAYS = {"kernels": 2, "sum": 24000,
              "names": ['op<"a,b">(int)\n', "void add<float>(float*, float const*, int)"]}

# Tables without a timeline, and a word of the answer that says so.
REFUSED = {f"{ROCPROFV3}/hip_api_stats.csv": "totals", f"{ROCPROFV3}/hip_domain_stats.csv": "totals"}


class Line:
    def __init__(self, file, quantity, report, expected):
        self.file, self.quantity = file, quantity
        self.report, self.expected = str(report), str(expected)

    @property
    def equal(self):
        return self.report == self.expected


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def times(events):
    return [(e.start, e.end) for e in events if not e.untimed]


def read(path):
    return dump.events(path)


def of(events, kind):
    return [e for e in events if e.kind == kind]


def kernel_lines(file, path, start="Start_Timestamp", end="End_Timestamp", name="Kernel_Name",
                 names=lambda text: text):
    """Every kernel with name and times; the grid in blocks from work-items."""
    rows = rows_of(path)
    kernels = of(read(path), "kernel")
    yield Line(file, "kernels", len(kernels), len(rows))
    want = sorted((int(r[start]), int(r[end]), names(r[name])) for r in rows)
    yield Line(file, "sum of kernels, ns", sum(e.duration for e in kernels), sum(b - a for a, b, _ in want))
    yield Line(file, "busy, ns", union(times(kernels))[0], union([w[:2] for w in want])[0])
    same = collections.Counter((e.start, e.end, e.name) for e in kernels) & collections.Counter(want)
    yield Line(file, "kernels with the same name, start and end", sum(same.values()), len(want))


def grid_line(file, path):
    def blocks(row):
        return ",".join(str(-(-int(row[f"Grid_Size_{a}"]) // int(row[f"Workgroup_Size_{a}"])))
                        for a in "XYZ")
    want = collections.Counter(blocks(r) for r in rows_of(path))
    got = collections.Counter(e.fields["grid"] for e in of(read(path), "kernel"))
    return Line(file, "kernels with the same grid in blocks", sum((want & got).values()), sum(want.values()))


def prefill_lines(corpus):
    path = corpus / PREFILL
    yield from kernel_lines(PREFILL, path)
    yield grid_line(PREFILL, path)
    kernels = of(read(path), "kernel")
    top = collections.Counter()
    for e in kernels:
        top[e.name] += e.duration
    name, total = top.most_common(1)[0]
    got = {"kernels": len(kernels), "names": len(top), "sum": sum(top.values()),
           "busy": union(times(kernels))[0],
           "span": max(e.end for e in kernels) - min(e.start for e in kernels),
           "calls of mul_mat_q": sum(e.name == name for e in kernels), "time of mul_mat_q": total}
    for key, value in PREFILL_SAYS.items():
        yield Line(PREFILL, f"{key}, as its author's figures", got[key], value)


def counter_lines(corpus):
    for file in (FETCH, f"{ROCPROFV3}/counter_collection.csv", f"{ROCPROFV3}/kernel_names.csv"):
        rows = rows_of(corpus / file)
        events = read(corpus / file)
        counters = of(events, "counter")
        yield Line(file, "kernels", len(of(events, "kernel")), len({r["Dispatch_Id"] for r in rows}))
        yield Line(file, "counters", len(counters), len(rows))
        yield Line(file, "sum of the counters", repr(sum(sorted(e.value for e in counters))),
                   repr(sum(sorted(float(r["Counter_Value"]) for r in rows))))
        if "Start_Timestamp" in rows[0]:
            once = {r["Dispatch_Id"]: int(r["End_Timestamp"]) - int(r["Start_Timestamp"]) for r in rows}
            yield Line(file, "sum of kernels, ns", sum(e.duration for e in of(events, "kernel")),
                       sum(once.values()))
        else:
            yield Line(file, "kernels without times", sum(e.untimed for e in of(events, "kernel")), len(rows))


def documentation_lines(corpus):
    """The tables of rocprofv3's documentation."""
    for name in ("kernel_trace", "kernel_trace_truncated"):
        file = f"{ROCPROFV3}/{name}.csv"
        yield from kernel_lines(file, corpus / file)
        yield grid_line(file, corpus / file)
    for name, kind in (("hip_compile_trace", "api"), ("hip_runtime_trace", "api"), ("hip_trace", "api"),
                       ("hsa_api_trace", "api"), ("hsa_core_api_trace", "api"), ("rccl_trace", "api"),
                       ("rocdecode_api_trace", "api"), ("rocjpeg_api_trace", "api"),
                       ("rocpd-to-csv", "api"), ("marker_api_trace", "scope"),
                       ("python_bindings", "scope"), ("memory_copy_trace", "copy"),
                       ("scratch_memory_trace", "scope")):
        file = f"{ROCPROFV3}/{name}.csv"
        rows = rows_of(corpus / file)
        column = next(c for c in ("Function", "Direction", "Operation") if c in rows[0])
        events = of(read(corpus / file), kind)
        want = collections.Counter((r[column], int(r["Start_Timestamp"]), int(r["End_Timestamp"])) for r in rows)
        got = collections.Counter((e.name, e.start, e.end) for e in events)
        yield Line(file, f"events of kind {kind}", len(events), len(rows))
        yield Line(file, "with the same name, start and end", sum((want & got).values()), len(rows))
    file = f"{ROCPROFV3}/memory_allocation_trace.csv"
    rows = rows_of(corpus / file)
    events = read(corpus / file)
    allocated = sum(int(r["Allocation_Size"]) for r in rows)
    yield Line(file, "bytes allocated", sum(e.bytes for e in of(events, "alloc")), allocated)
    yield Line(file, "bytes freed, sizes found by address", sum(e.bytes for e in of(events, "free")), allocated)
    for name in ("pc_sampling_host_trap", "pc_sampling_host_trap_debug", "pc_sampling_stochastic_debug"):
        file = f"{ROCPROFV3}/{name}.csv"
        want = collections.Counter((r["Instruction"], int(r["Sample_Timestamp"])) for r in rows_of(corpus / file))
        got = collections.Counter((e.name, e.start) for e in of(read(corpus / file), "counter"))
        yield Line(file, "samples with the same instruction and time", sum((want & got).values()),
                   sum(want.values()))


def rocprof_lines(corpus):
    path = corpus / RESULTS
    yield from kernel_lines(RESULTS, path, "BeginNs", "EndNs", "KernelName",
                            lambda text: text.removesuffix(" [clone .kd]").removesuffix(".kd"))
    kernels = of(read(path), "kernel")
    with contextlib.closing(sqlite3.connect(f"file:{path.with_suffix('.db')}?immutable=1", uri=True)) as base:
        count, total = base.execute("SELECT count(*), sum(EndNs - BeginNs) FROM KERN").fetchone()
        waited = base.execute("SELECT sum(BeginNs - DispatchNs) FROM KERN").fetchone()[0]
    yield Line(RESULTS, "kernels, by results.db of the run", len(kernels), count)
    yield Line(RESULTS, "sum of kernels, ns, by results.db", sum(e.duration for e in kernels), total)
    queued = {e.correlation: e.start for e in of(read(path), "api")}
    yield Line(RESULTS, "from dispatch to start in all, ns, by results.db",
               sum(e.start - queued[e.correlation] for e in kernels), waited)


def case_lines(corpus):
    kernels = of(read(corpus / EXTRA), "kernel")
    got = {"kernels": len(kernels), "sum": sum(e.duration for e in kernels),
           "names": sorted(e.name for e in kernels)}
    for key, value in EXTRA_SAYS.items():
        yield Line(EXTRA, key, repr(got[key]), repr(value))


def refusal_lines(corpus):
    """Every other table: one line that says what it is."""
    read_here = {PREFILL, FETCH, RESULTS, EXTRA}
    for path in sorted(corpus.rglob("*.csv")):
        file = str(path.relative_to(corpus))
        if file in read_here or (file.startswith(ROCPROFV3) and file not in REFUSED):
            continue
        run = Run(["report", path])
        word = REFUSED.get(file, "a CSV table with the columns")
        one_line = run.code == 1 and not run.out and run.err.strip().count("\n") == 0 and word in run.err
        yield Line(file, "refused in one line that says what it is",
                   "yes" if one_line else f"exit code {run.code}: {run.err}", "yes")


SECTIONS = [
    ("rocprofv3: llama.cpp, by csv and by the figures of its author", prefill_lines),
    ("rocprofv3: counters", counter_lines),
    ("rocprofv3: the tables of its documentation", documentation_lines),
    ("rocprof: results.csv, by csv and by results.db of the same run", rocprof_lines),
    ("A column more, commas, quotes and a line end in names", case_lines),
    ("Tables that hold no timeline, or are none of these programs'", refusal_lines),
]

def collect(corpus):
    return [(title, list(make(corpus))) for title, make in SECTIONS]


def section(sections):
    out = ["## CSV tables", "",
           "Made by `tests/corpus/csv_accuracy.py --write`. \"expected\" is what Python's csv module finds in",
           "the file, or who the heading names. All values are equal, or the test fails.", ""]
    for title, lines in sections:
        out += [f"### {title}", "", f"{len(lines)} values, {sum(l.equal for l in lines)} equal.", ""]
        if lines and lines[0].quantity.startswith("refused"):
            continue
        out += ["| table | quantity | report | expected |", "|---|---|---:|---:|"]
        out += [f"| {l.file} | {l.quantity} | {l.report} | {l.expected} |".replace("<", "&lt;")
                for l in lines] + [""]
    return "\n".join(out)


if __name__ == "__main__":
    accuracy.run_section("csv", __doc__, collect, section, lambda sections: [
        f"{line.file}: {line.quantity}: report {line.report}, expected {line.expected}"
        for _, lines in sections for line in lines if not line.equal])
