#!/usr/bin/env python3
"""Reports of JSON traces that are not PyTorch's on a GPU, beside what their files and others say.

    json_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    json_accuracy.py --write                            and put it into docs/accuracy.md

The second number of a line is computed here from the file's own records in whole numbers, or is
stated by others (docs/accuracy.md says which).
"""

import collections
import gzip
import json
from decimal import Decimal

import accuracy
from program import Report, union

GENERIC = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
# What whoever collected the traces stated about them.
STATED = {
    "tracelens/rocprof/908_results.json.gz": {
        "kernels": 43915, "kernel_sum": 4441741378, "busy": 4233112334, "span": 15122023494,
        f"{GENERIC} calls": 1310, f"{GENERIC} total": 4158756678},
    "tf_timeline/kittibox_timeline_01.json.gz": {"kernels": 4789, "kernel_sum": 1848902000},
    "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz": {"kernels": 1313},
}


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file, parse_float=Decimal)


def values_of(kernels, copies=()):
    """Of (name, start, end) in nanoseconds."""
    work = [(start, end) for _, start, end in [*kernels, *copies]]
    span = max(end for _, end in work) - min(start for start, _ in work)
    busy = union(work)[0]
    values = {"kernels": len(kernels), "kernel_sum": sum(end - start for _, start, end in kernels),
              "copies": len(copies), "copy_sum": sum(end - start for _, start, end in copies),
              "span": span, "busy": busy, "idle": span - busy}
    names = collections.defaultdict(list)
    for name, start, end in kernels:
        names[name].append(end - start)
    values["kernel names"] = len(names)
    for name, times in sorted(names.items(), key=lambda item: -sum(item[1]))[:3]:
        values |= {f"{name} calls": len(times), f"{name} total": sum(times),
                   f"{name} max": max(times)}
    return values


def rocprofv3(path):
    kernels = []
    for process in load(path)["rocprofiler-sdk-tool"]:
        names = {s["kernel_id"]: s["formatted_kernel_name"] for s in process["kernel_symbols"]}
        kernels += [(names[record["dispatch_info"]["kernel_id"]], record["start_timestamp"],
                     record["end_timestamp"])
                    for record in process["buffer_records"]["kernel_dispatch"]]
    return values_of(kernels)


def times(record):
    start, duration = int(Decimal(record["ts"]) * 1000), int(Decimal(record["dur"]) * 1000)
    return start, start + duration


def tensorflow(path):
    """Kernels from the list of all streams, copies from the list of copies."""
    events = load(path)["traceEvents"]
    lanes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    of = lambda lane: [(e["name"], *times(e)) for e in events
                       if e["ph"] == "X" and lanes[e["pid"]] == f"/device:GPU:0/{lane} Compute"]
    return values_of(of("stream:all"), of("memcpy"))


def mtia(path):
    return values_of([(e["name"], *times(e)) for e in load(path)["traceEvents"]
                      if e.get("cat") == "mtia_ccp_events"])


FILES = {
    "tracelens/rocprof/908_results.json.gz": rocprofv3,
    "tf_timeline/kittibox_timeline_01.json.gz": tensorflow,
    "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz": mtia,
}


def found(path, quantities):
    report = Report(path, options=("--opt", "kernels.top=0"))
    device = report.devices[0]
    assert len(report.devices) == 1, path
    rows = {row["name"]: row for row in report.kernels}
    values = {"kernel names": len(rows)}
    for quantity in quantities:
        name, _, column = quantity.rpartition(" ")
        if quantity in device:
            values[quantity] = device[quantity]
        elif name in rows:
            values[quantity] = rows[name][column]
    return values


def collect(corpus):
    """(file, quantity, report, of the file, stated)"""
    lines = []
    for file, read in FILES.items():
        expected = read(corpus / file)
        stated = STATED.get(file, {})
        quantities = [*expected, *(q for q in stated if q not in expected)]
        report = found(corpus / file, quantities)
        lines += [(file, q, report.get(q), expected.get(q), stated.get(q)) for q in quantities]
    return lines


def wrong(lines):
    return [line for line in lines if any(value not in (None, line[2]) for value in line[3:])]


def section(lines):
    text = """## Other JSON traces

rocprofv3's JSON, a TensorFlow timeline and Kineto of an accelerator: "file" is computed from the file's own
records in whole nanoseconds by `tests/corpus/json_accuracy.py`, which shares no code with PASTA; "stated" is
what was stated about the trace by whoever collected it. A TensorFlow timeline lists each kernel by its stream
and again for all streams, and each copy by its stream and again among the copies; PASTA takes the former, the
file's numbers here are of the latter.

| trace | quantity | report | file | stated |
|---|---|---:|---:|---:|
"""
    for file, quantity, report, expected, stated in lines:
        cells = ["" if value is None else str(value) for value in (report, expected, stated)]
        name, _, column = quantity.rpartition(" ")
        label = f"`{accuracy.shorten(name)}` {column}" if name not in ("", "kernel") else quantity
        text += f"| {file.removesuffix('.json.gz')} | {label} | {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    accuracy.run_section("json", __doc__, collect, section, lambda lines: [f"differs: {' '.join(map(str, line))}" for line in wrong(lines)])
