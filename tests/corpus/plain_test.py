#!/usr/bin/env python3
"""Every value that a report shows, against values computed by another program with exact decimals.

Reads tests/traces/expected.tsv always, and ../shared/corpus/expected_plain.tsv when the collection
lies beside the source tree; the same for the values of memory events. Prints each mismatch and
fails on any.

    plain_test.py [--pastaprof PATH] [--corpus DIR] [--only TEXT]
"""

import argparse
import pathlib
import sys

import dump
import program
from program import Report, overlap, read_tsv, union


# The other program took no accelerator but a GPU for a device; json_test.py holds these to values of
# their own.
OTHER_RULE = {"hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"}


def of_one_device(report):
    """What the table `devices` says of the only device, by the names of expected_plain.tsv."""
    rows = report.devices
    row = rows[0] if rows else dict.fromkeys(
        ["span", "busy", "idle", "compute", "communication", "communication_overlapped", "memory"],
        0)
    return {
        "gpu_span_ns": row["span"],
        "gpu_busy_ns": row["busy"],
        "gpu_idle_ns": row["idle"],
        "comp_union_ns": row["compute"],
        "comm_union_ns": row["communication"],
        "comm_comp_overlap_ns": row["communication_overlapped"],
        "memops_union_ns": row["memory"],
    }


def over_all_devices(report, path):
    """The same over all devices of a file, which no table shows, from the events themselves; the
    rows of the table are held to the events on the way."""
    work = [e for e in dump.events(path) if e.kind in ("kernel", "copy", "fill") and not e.untimed]
    classes = {row["name"]: row["class"] for row in report.kernels}
    ranges = {"compute": [], "communication": [], "memory": []}
    for event in work:
        kind = "memory"
        if event.kind == "kernel":
            kind = "communication" if classes[event.name] == "communication" else "compute"
        ranges[kind].append((event.start, event.end))
    by_device = {}
    for event in work:
        by_device.setdefault(event.device, []).append((event.start, event.end))
    assert sorted(row["busy"] for row in report.devices) == sorted(
        union(times)[0] for times in by_device.values()), f"{path}: busy of the devices"
    assert sorted(row["span"] for row in report.devices) == sorted(
        max(t[1] for t in times) - min(t[0] for t in times) for times in by_device.values())
    span = max(e.end for e in work) - min(e.start for e in work)
    busy = union([(e.start, e.end) for e in work])[0]
    unions = {kind: union(times) for kind, times in ranges.items()}
    return {
        "gpu_span_ns": span,
        "gpu_busy_ns": busy,
        "gpu_idle_ns": span - busy,
        "comp_union_ns": unions["compute"][0],
        "comm_union_ns": unions["communication"][0],
        "comm_comp_overlap_ns": overlap(unions["compute"][1], unions["communication"][1]),
        "memops_union_ns": unions["memory"][0],
    }


def measured(path):
    """All values of a row of expected_plain.tsv that a report can show."""
    report = Report(path)
    devices, kernels = report.devices, report.kernels
    count = sum(row["kernels"] for row in devices)
    linked = report.quality["kernels_linked"]
    values = {
        "kernels": count,
        "kernel_names": len(kernels),
        "kernel_sum_ns": sum(row["kernel_sum"] for row in devices),
        "memcpy_n": sum(row["copies"] for row in devices),
        "memcpy_sum_ns": sum(row["copy_sum"] for row in devices),
        "memset_n": sum(row["fills"] for row in devices),
        "comm_kernels": sum(row["calls"] for row in kernels if row["class"] == "communication"),
        "devices": len(devices),
        "same_stream_overlaps": report.problems().get("queue_overlap", 0),
        "kernels_without_launch": 0 if linked is None else round(count * (1 - linked)),
    }
    values |= of_one_device(report) if len(devices) < 2 else over_all_devices(report, path)

    # What is said twice must be said alike.
    assert sum(row["calls"] for row in kernels) == count, f"{path}: calls of the table kernels"
    assert sum(row["total"] for row in kernels) == values["kernel_sum_ns"], f"{path}: totals"
    assert report.events.get("kernel", 0) == count, f"{path}: kernels in the head"
    for row in devices:
        assert row["busy"] + row["idle"] == row["span"], f"{path}: {row}"
    check_breakdown(report, path)
    return values


def check_breakdown(report, path):
    """The exclusive parts of a device's time add up to its span, to the nanosecond."""
    spans = {row["device"]: row["span"] for row in report.devices}
    sums = {}
    for row in report.table("summary", "breakdown"):
        sums[row["device"]] = sums.get(row["device"], 0) + row["time"]
    assert sums == spans, f"{path}: breakdown {sums}, spans {spans}"


def compare(folder, rows, mismatches):
    """Appends (file, value, expected, found) for every difference; returns the comparisons made."""
    count = 0
    for row in rows:
        values = measured(folder / row["file"])
        if row["file"] in OTHER_RULE:
            continue
        for name, value in values.items():
            if value != int(row[name]):
                mismatches.append((row["file"], name, int(row[name]), value))
        count += len(values)
    return count


def memory_of(path):
    """Rows of expected_memory.tsv out of the events: (device, totals)."""
    rows = {}
    for event in dump.events(path):
        if event.kind not in ("alloc", "free", "counter"):
            continue
        device = event.fields.get("device", "host")
        row = rows.setdefault(device, {"alloc": 0, "free": 0, "alloc_bytes": 0, "free_bytes": 0,
                                       "running": 0, "peak": 0, "Total Allocated": None,
                                       "Total Reserved": None})
        if event.kind == "counter":
            if event.name in row:
                row[event.name] = max(row[event.name] or 0, int(event.value))
            continue
        row[event.kind] += 1
        row[f"{event.kind}_bytes"] += event.bytes
        row["running"] += event.bytes if event.kind == "alloc" else -event.bytes
        row["peak"] = max(row["peak"], row["running"])
    return rows


def compare_memory(folder, rows, mismatches):
    by_file = {}
    for row in rows:
        by_file.setdefault(row["file"], []).append(row)
    count = 0
    for file, expected in by_file.items():
        found = memory_of(folder / file)
        assert len(found) == len(expected), f"{file}: memory of {sorted(found)}"
        for row in expected:
            on_host = row["device(type,id)"].startswith("(0,")
            device = next(name for name in found if (name == "host") == on_host)
            values = found[device]
            for name, value in (
                    ("memory_events", values["alloc"] + values["free"]),
                    ("alloc_events", values["alloc"]),
                    ("free_events", values["free"]),
                    ("sum_alloc_bytes", values["alloc_bytes"]),
                    ("sum_free_bytes", -values["free_bytes"]),
                    ("net_bytes", values["running"]),
                    ("peak_running_sum", values["peak"]),
                    ("max_Total_Allocated", values["Total Allocated"]),
                    ("max_Total_Reserved", values["Total Reserved"])):
                count += 1
                wanted = None if row[name] == "-" else int(row[name])
                if value != wanted:
                    mismatches.append((f"{file} {row['device(type,id)']}", name, wanted, value))
    return count


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pastaprof", default=program.PROGRAM)
    parser.add_argument("--corpus", type=pathlib.Path, default=program.CORPUS)
    parser.add_argument("--only", default="", help="only files whose path holds this text")
    arguments = parser.parse_args()
    program.PROGRAM = arguments.pastaprof

    sources = [(program.TRACES, "expected.tsv", "expected_memory.tsv")]
    if (arguments.corpus / "expected_plain.tsv").exists():
        sources.append((arguments.corpus, "expected_plain.tsv", "expected_memory.tsv"))
    else:
        print(f"{arguments.corpus} is not there: only the traces under tests/traces are compared")
    mismatches, count, files = [], 0, 0
    for folder, plain, memory in sources:
        rows = [row for row in read_tsv(folder / plain) if arguments.only in row["file"]]
        files += len(rows)
        count += compare(folder, rows, mismatches)
        rows = [row for row in read_tsv(folder / memory) if arguments.only in row["file"]]
        count += compare_memory(folder, rows, mismatches)
    for file, name, expected, found in mismatches:
        print(f"{file}: {name}: expected {expected}, found {found}")
    print(f"{count} values of {files} files compared, {len(mismatches)} differ")
    sys.exit(1 if mismatches else 0)


if __name__ == "__main__":
    main()
