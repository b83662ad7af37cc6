#!/usr/bin/env python3
"""Reports of AMD's and nvprof's databases, beside what the databases and others say.

    rocm_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    rocm_accuracy.py --write                            and put it into docs/accuracy.md

The second number of a line is a query on the database: of its own views where it has some (busy, top),
else of its tables. The third was stated by whoever collected it.
"""

import pathlib

import accuracy
import dump
from program import Report
from sql import Database

STATED = {
    "rpd/raptor_mytrace.rpd.gz": {"operations": 10124, "device time": 416625081, "span": 452967953,
                                  "kernels": 1228 + 7720, "copies": 350 + 804 + 22,
                                  "copies host_to_device": 350, "copies device_to_device": 804,
                                  "copies device_to_host": 22},
    "rocprof_v1/hpctraining/finite-difference/results.db": {"kernels": 1004},
    "rocpd/babeltrace_test_rocm_database.db": {"kernels": 2, "copies": 2, "samples": 20},
    "nvprof/uvm-eval/copy.nvprof": {"kernels": 3, "kernel_sum": 918846477},
}


def rpd(db):
    (_, device_time, span, _), = db.rows("SELECT * FROM busy")
    work = """SELECT count(*), sum(o.end - o.start) FROM rocpd_op o
              JOIN rocpd_string t ON t.id = o.opType_id WHERE t.string """
    kernels, kernel_sum = db.rows(work + "IN ('KernelExecution', 'Task')")[0]
    copies, copy_sum = db.rows(work + "LIKE 'Copy%'")[0]
    values = {"operations": db.one("SELECT count(*) FROM rocpd_op"), "device time": device_time,
              "span": span, "kernels": kernels, "kernel_sum": kernel_sum, "copies": copies,
              "copy_sum": copy_sum, "copy_bytes": db.one(
                  "SELECT sum(size) FROM copyop JOIN op ON op.id = copyop.id WHERE opType LIKE 'Copy%'"),
              "linked": db.one("SELECT count(DISTINCT op_id) FROM rocpd_api_ops JOIN rocpd_api ON "
                               "rocpd_api.id = api_id"),
              "calls": db.one("SELECT count(*) FROM api WHERE apiName LIKE 'hip%'"),
              "counter sclk": db.one("SELECT count(*) FROM rocpd_monitor")}
    for direction in ("HostToDevice", "DeviceToDevice", "DeviceToHost"):
        name = "".join("_" + c.lower() if c.isupper() else c for c in direction)[1:]
        values[f"copies {name}"] = db.one(f"SELECT count(*) FROM op WHERE opType = 'Copy{direction}'")
    # The view counts whole microseconds.
    for name, calls, total, *_ in db.rows("SELECT * FROM top WHERE Name NOT LIKE 'Copy%' LIMIT 8"):
        values |= {f"{name} calls": calls, f"{name} us": total}
    return values


def table(db, name, column, start, end):
    values = {}
    for kernel, calls, total, longest in db.rows(
            f"SELECT {column}, count(*), sum({end} - {start}), max({end} - {start}) FROM {name} "
            f"GROUP BY 1 ORDER BY 3 DESC"):
        kernel = kernel.strip('"').removesuffix(" [clone .kd]").removesuffix(".kd")
        values |= {f"{kernel} calls": calls, f"{kernel} total": total, f"{kernel} max": longest}
    count, total, first, last = db.rows(
        f"SELECT count(*), sum({end} - {start}), min({start}), max({end}) FROM {name}")[0]
    return {"kernels": count, "kernel_sum": total, "span": last - first} | values


def rocprof_v1(db):
    return table(db, "KERN", "KernelName", "BeginNs", "EndNs") | {
        "duration column": db.one("SELECT sum(DurationNs) FROM KERN")}


def nvprof(db):
    return table(db, "CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringTable AS s ON s._id_ = k.name", "s.value",
                 "start", "end")


def rocpd(db):
    kernels, kernel_sum = db.rows("SELECT count(*), sum(end - start) FROM rocpd_kernel_dispatch")[0]
    copies, copy_sum, copy_bytes = db.rows(
        "SELECT count(*), sum(end - start), sum(size) FROM rocpd_memory_copy")[0]
    first, last = db.rows("SELECT min(start), max(end) FROM (SELECT start, end FROM rocpd_kernel_dispatch "
                          "UNION ALL SELECT start, end FROM rocpd_memory_copy)")[0]
    values = {"kernels": kernels, "kernel_sum": kernel_sum, "copies": copies, "copy_sum": copy_sum,
              "copy_bytes": copy_bytes, "span": last - first,
              "samples": db.one("SELECT count(*) FROM rocpd_sample"),
              "regions": db.one("SELECT count(*) FROM rocpd_region")}
    for name, calls, total in db.rows("SELECT display_name, count(*), sum(end - start) FROM "
                                      "rocpd_kernel_dispatch k JOIN rocpd_info_kernel_symbol s ON "
                                      "s.id = k.kernel_id GROUP BY 1"):
        values |= {f"{name} calls": calls, f"{name} total": total}
    return values


FILES = {
    "rocpd/babeltrace_test_rocm_database.db": rocpd,
    "rpd/raptor_mytrace.rpd.gz": rpd,
    "rocprof_v1/hpctraining/finite-difference/results.db": rocprof_v1,
    "nvprof/uvm-eval/copy.nvprof": nvprof,
}


def found(path, quantities):
    report = Report(path, options=("--opt", "kernels.top=0"))
    assert len(report.devices) == 1, path
    device = report.devices[0]
    rows = {row["name"]: row for row in report.kernels}
    events = dump.events(path)
    work = [e for e in events if e.kind in ("kernel", "copy", "fill")]
    values = {
        "operations": len(work), "device time": sum(e.duration for e in work),
        "linked": sum(e.linked for e in work), "calls": sum(e.kind == "api" for e in events),
        "counter sclk": sum(e.kind == "counter" and e.name == "sclk" for e in events),
        "samples": sum(e.kind == "scope" and "instant" in e.flags for e in events),
        "regions": sum(e.kind == "scope" and "instant" not in e.flags for e in events),
        "duration column": sum(e.duration for e in events if e.kind == "kernel")}
    for direction in ("host_to_device", "device_to_device", "device_to_host"):
        values[f"copies {direction}"] = sum(e.fields.get("direction") == direction for e in work)
    # The tool calls kernels by readable names, the tables of some profilers by mangled ones.
    by_name = {}
    for event in work:
        if event.kind == "kernel":
            by_name.setdefault(event.name, []).append(event.duration)
    for quantity in quantities:
        name, _, column = quantity.rpartition(" ")
        if quantity in device:
            values[quantity] = device[quantity]
        elif name in by_name:
            times = by_name[name]
            row = rows.get(name, {"calls": len(times), "total": sum(times), "max": max(times)})
            values[quantity] = row["total"] // 1000 if column == "us" else row[column]
    return values


def collect(corpus):
    """(file, quantity, report, of the database, stated)"""
    lines = []
    for file, read in FILES.items():
        with Database(corpus / file) as database:
            expected = read(database)
        stated = STATED.get(file, {})
        quantities = [*expected, *(q for q in stated if q not in expected)]
        report = found(corpus / file, quantities)
        lines += [(file, q, report.get(q), expected.get(q), stated.get(q)) for q in quantities]
    return lines


def wrong(lines):
    return [line for line in lines if any(value not in (None, line[2]) for value in line[3:])]


def section(lines):
    text = """## Databases of rocprofv3, rocmProfileData, rocprof and nvprof

"database" is what a query says: of the database's own views where it has some (`busy` and `top` of an RPD
file, which counts whole microseconds), else of its tables (`tests/corpus/rocm_accuracy.py`); "stated" is what
was stated about the file by whoever collected it. Times are in nanoseconds, `us` in microseconds. In an RPD
file, "device time" is the `GpuTime` and "span" the `WallTime` of its view `busy`; "linked" are operations
whose call is in the file.

| trace | quantity | report | database | stated |
|---|---|---:|---:|---:|
"""
    for file, quantity, report, expected, stated in lines:
        cells = ["" if value is None else str(value) for value in (report, expected, stated)]
        name, _, column = quantity.rpartition(" ")
        plain = name in ("", "device", "copies", "counter", "duration")
        label = quantity if plain else f"`{accuracy.shorten(name)}` {column}"
        text += f"| {pathlib.PurePath(file).name.removesuffix('.gz')} | {label} | {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    accuracy.run_section("rocm", __doc__, collect, section, lambda lines: [f"differs: {' '.join(map(str, line))}" for line in wrong(lines)])
