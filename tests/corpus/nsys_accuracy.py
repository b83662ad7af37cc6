#!/usr/bin/env python3
"""Reports of Nsight Systems exports, beside what SQL says of the same files.

    nsys_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    nsys_accuracy.py --write                            and put it into docs/accuracy.md

The second number of a line is that of expected_sqlite.tsv, computed by SQL, or is stated by the
project that made the file.
"""

import collections
import re
import sqlite3

import accuracy
import dump
from program import Report, read_tsv
from sql import Database

# nsys-ai's pages on comparing two profiles, and on its example of a healthy one.
STATED = {
    "nsys/nsys-ai/mfu_2gpu_before.sqlite.gz": {
        "kernel sum, ms to 2 digits": "535.20", "ncclDevKernel_SendRecv calls": "66",
        "ncclDevKernel_SendRecv total, ms to 2 digits": "25.40", "flash_fwd_kernel calls": "68"},
    "nsys/nsys-ai/mfu_2gpu_after.sqlite.gz": {
        "kernel sum, ms to 2 digits": "488.84", "ncclDevKernel_SendRecv calls": "62",
        "ncclDevKernel_SendRecv total, ms to 2 digits": "33.74", "flash_fwd_kernel calls": "60"},
    "nsys/nsys-ai/healthy_1pct.sqlite": {"idle, % to 4 digits": "0.9876"},
}
# The numbers of copyKind: (direction, way of a migration).
COPY_KINDS = {1: ("host_to_device", None), 2: ("device_to_host", None), 8: ("device_to_device", None),
              11: ("migration", "HtoD"), 12: ("migration", "DtoH")}


def base_ns(path):
    """What pastaprof adds to the times of the file: its table of the session's start."""
    with Database(path) as db:
        try:
            return db.one("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
        except sqlite3.OperationalError:
            return 0


def short(name):
    """The name of a function without templates, arguments and what it returns, as shortName has it."""
    while "<" in name:
        name, count = re.subn(r"<[^<>]*>", "", name)
        if not count:
            break
    name = name.split("(")[0].split(" ")[-1]
    return name.split("::")[-1]


def found(path):
    """What the report and the events behind it say, in the words of the comparison."""
    report = Report(path, options=("--opt", "kernels.top=0"))
    events = dump.events(path)
    base = base_ns(path)
    kernels = [e for e in events if e.kind == "kernel"]
    copies = [e for e in events if e.kind == "copy"]
    values = collections.OrderedDict()
    no_table = "no kernel table" in "".join(row["first"] for row in report.quality["problems"])
    values["kernel table"] = "no" if no_table else "yes"
    if no_table:
        return values
    values["kernels"] = sum(row["kernels"] for row in report.devices)
    values["kernel sum"] = sum(row["kernel_sum"] for row in report.devices)
    values["first kernel starts"] = min(e.start for e in kernels) - base
    values["last kernel ends"] = max(e.end for e in kernels) - base
    values["span of kernels"] = values["last kernel ends"] - values["first kernel starts"]
    values["devices"] = len({e.device for e in kernels})
    values["streams"] = len({e.lane["id"] for e in kernels})
    values["busy of the devices"] = "+".join(
        str(busy) for busy in sorted(row["busy"] for row in report.devices))
    for kind, (direction, way) in COPY_KINDS.items():
        of = [e for e in copies if e.fields.get("direction") == direction
              and (way is None or e.name.startswith(f"Unified memory {way}"))]
        if of:
            values[f"copies of kind {kind}: count/bytes"] = f"{len(of)}/{sum(e.bytes for e in of)}"
    values["migrations"] = sum(e.fields.get("direction") == "migration" for e in copies)
    values["fills"] = sum(row["fills"] for row in report.devices)
    calls = [e for e in events if e.kind == "api" and e.domain in ("runtime", "driver")]
    values["calls"] = len(calls)
    # By number alone, as the other side counts: processes may share numbers.
    numbers = {e.correlation.split(":")[-1] for e in calls if e.correlation}
    values["kernels without a call of their number"] = sum(
        e.correlation is None or e.correlation.split(":")[-1] not in numbers for e in kernels)
    values["ranges of NVTX"] = sum(e.kind == "scope" and e.domain in ("annotation", "operator")
                                   for e in events)
    values["overlaps in a stream"] = report.problems().get("queue_overlap", 0)
    times = collections.defaultdict(list)
    for event in kernels:
        times[short(event.name)].append(event.duration)
    top = max(times, key=lambda name: (sum(times[name]), name))
    values["top kernel"] = f"{top} x{len(times[top])} {sum(times[top])}ns"
    # What others state.
    values["kernel sum, ms to 2 digits"] = f"{values['kernel sum'] / 1e6:.2f}"
    for name in ("ncclDevKernel_SendRecv", "flash_fwd_kernel"):
        values[f"{name} calls"] = len(times[name])
        values[f"{name} total, ms to 2 digits"] = f"{sum(times[name]) / 1e6:.2f}"
    device = report.devices[0]
    values["idle, % to 4 digits"] = f"{100 * device['idle'] / device['span']:.4f}"
    return values


def expected(row):
    """A row of expected_sqlite.tsv in the words of the comparison."""
    if row["kernels"] == "(no table)":
        return {"kernel table": "no"}
    number = lambda key: 0 if row[key] == "-" else int(row[key])
    values = {
        "kernel table": "yes", "kernels": row["kernels"], "kernel sum": row["kernel_sum_ns"],
        "first kernel starts": row["min_start"], "last kernel ends": row["max_end"],
        "span of kernels": row["span_ns"], "devices": row["devices"], "streams": row["streams"]}
    busy = next(value for key, value in row.items() if key.startswith("union_busy"))
    values["busy of the devices"] = "+".join(
        map(str, sorted(int(one.split(":")[1]) for one in busy.split("+"))))
    copies = next(value for key, value in row.items() if key.startswith("memcpy"))
    for one in copies.split() if copies != "-" else ():
        kind, _, rest = one.partition(":")
        values[f"copies of kind {kind}: count/bytes"] = rest
    values |= {"migrations": number("UM_migrations"), "fills": number("memset"),
               "calls": number("runtime"), "ranges of NVTX": number("nvtx"),
               "kernels without a call of their number":
                   number("kernels_without_runtime(corr only)"),
               "overlaps in a stream": number("same_stream_overlaps"),
               "top kernel": row["top_kernel"]}
    return {key: str(value) for key, value in values.items()}


def collect(corpus):
    """(file, quantity, report, SQL, stated)"""
    lines = []
    for row in read_tsv(corpus / "expected_sqlite.tsv"):
        file = row["file"]
        if not file.startswith("nsys/") or not (corpus / file).exists():
            continue
        ours = found(corpus / file)
        theirs, stated = expected(row), STATED.get(file, {})
        for quantity in [*theirs, *(q for q in stated if q not in theirs)]:
            lines.append((file, quantity, str(ours.get(quantity)), theirs.get(quantity),
                          stated.get(quantity)))
        unexpected = [q for q in ours if q.startswith("copies of kind") and q not in theirs]
        lines += [(file, quantity, str(ours[quantity]), "none", None) for quantity in unexpected]
    return lines


def wrong(lines):
    return [line for line in lines if any(value not in (None, line[2]) for value in line[3:])]


def section(lines):
    text = f"""## Nsight Systems exports

{len(lines)} values of {len({line[0] for line in lines})} files: "SQL" is what a query of the file says, computed
apart from PASTA; "stated" is what nsys-ai's documentation says of its own files. Times are in nanoseconds of the
file. The queries count spans of kernels only, busy time of kernels, copies, fills and migrations together, and
take a kernel for launched when any process has a call of its number; here this is counted the same way.

| export | quantity | report | SQL | stated |
|---|---|---:|---:|---:|
"""
    for file, quantity, *values in lines:
        cells = ["" if value is None else accuracy.shorten(value) for value in values]
        text += f"| {file.removeprefix('nsys/').removesuffix('.gz')} | {quantity} | {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    accuracy.run_section("nsys", __doc__, collect, section, lambda lines: [f"differs: {' '.join(map(str, line))}" for line in wrong(lines)])
