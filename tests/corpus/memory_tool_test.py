#!/usr/bin/env python3
"""The tool memory against totals that another program computed from the same files, and what it says
was live at the peak and at the end against a second way to compute it.

Reads tests/traces/expected_memory.tsv always, and ../shared/corpus/expected_memory.tsv when the
collection lies beside the source tree.
"""

import sys

import dump
import program
from program import Report, read_tsv

# Columns of expected_memory.tsv, and of the table `devices`.
COLUMNS = {
    "alloc_events": "allocs",
    "free_events": "frees",
    "sum_alloc_bytes": "allocated_bytes",
    "sum_free_bytes": "freed_bytes",
    "net_bytes": "net",
    "peak_running_sum": "peak_seen",
    "max_Total_Allocated": "peak_total_allocated",
    "max_Total_Reserved": "peak_total_reserved",
}


def expected_value(row, name):
    if row[name] == "-":
        return None
    return abs(int(row[name])) if name == "sum_free_bytes" else int(row[name])


def compare_totals(file, report, expected, mismatches):
    rows = report.table("memory", "devices")
    assert len(rows) == len(expected), f"{file}: memory of {[row['device'] for row in rows]}"
    for row in expected:
        on_host = row["device(type,id)"].startswith("(0,")
        found = next(r for r in rows if (r["device"] == "host") == on_host)
        for name, column in COLUMNS.items():
            wanted = expected_value(row, name)
            if found[column] != wanted:
                mismatches.append((file, f"{found['device']} {column}", wanted, found[column]))
    return len(COLUMNS) * len(expected)


def live(allocations):
    """(operator, bytes, allocations) of what is in a map from address to (operator, bytes)."""
    sums = {}
    for operator, size in allocations.values():
        total, count = sums.get(operator, (0, 0))
        sums[operator] = (total + size, count + 1)
    return sorted((operator, *pair) for operator, pair in sums.items())


def compare_live(path, file, report, mismatches):
    """Keeps a whole copy of what is live at each new peak: slow, and too simple to be wrong."""
    now, running, peak, at_peak, addresses = {}, {}, {}, {}, {}
    for event in dump.events(path):
        if event.kind not in ("alloc", "free"):
            continue
        place = "host" if "device" not in event.fields else event.fields["device_row"].get("ordinal", "0")
        address = event.fields.get("address")
        addresses[place] = addresses.get(place, True) and address is not None
        allocations = now.setdefault(place, {})
        if event.kind == "alloc":
            allocations[address] = (event.operator or "(outside operators)", event.bytes)
        else:
            allocations.pop(address, None)
        running[place] = running.get(place, 0) + event.bytes * (1 if event.kind == "alloc" else -1)
        if running[place] > peak.get(place, 0):
            peak[place] = running[place]
            at_peak[place] = dict(allocations)
    for table, expected in (("peak", at_peak), ("never_freed", now)):
        rows = report.table("memory", table)
        for place, known in addresses.items():
            found = sorted((row["operator"], row["bytes"], row["allocations"]) for row in rows
                           if row["device"] == place and row["operator"] != "(not seen allocated)")
            wanted = live(expected.get(place, {})) if known else []
            if found != wanted:
                mismatches.append((file, f"{table} of {place}", wanted, found))
        shares = {}
        for row in rows if table == "peak" else ():
            shares[row["device"]] = shares.get(row["device"], 0) + row["share"]
        assert all(abs(share - 1) < 1e-9 for share in shares.values()), f"{file}: {shares}"
    return 2 * len(addresses)


def main():
    sources = [program.TRACES]
    if (program.CORPUS / "expected_memory.tsv").exists():
        sources.append(program.CORPUS)
    else:
        print(f"{program.CORPUS} is not there: only the traces under tests/traces are compared")
    mismatches, count = [], 0
    for folder in sources:
        by_file = {}
        for row in read_tsv(folder / "expected_memory.tsv"):
            by_file.setdefault(row["file"], []).append(row)
        for file, expected in by_file.items():
            report = Report(folder / file, tools=["memory"])
            count += compare_totals(file, report, expected, mismatches)
            count += compare_live(folder / file, file, report, mismatches)
    for file, name, expected, found in mismatches:
        print(f"{file}: {name}: expected {expected}, found {found}")
    print(f"{count} values compared, {len(mismatches)} differ")
    sys.exit(1 if mismatches else 0)


if __name__ == "__main__":
    main()
