#!/usr/bin/env python3
"""The numbers of the tools operators and overlap beside those that other programs print.

    operators_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    operators_accuracy.py --write                            and put it into docs/accuracy.md

As in accuracy.py: where another program counts another population, its rule is applied to
pastaprof's events (the lines of `pastaprof dump`), pastaprof's own tool reads what is left, and must
then say that program's number exactly.
"""

import collections
import json
import re

import accuracy
import dump
from accuracy import Line, read_csv
from program import Report

RULES = {
    "no fills": "TraceLens does not count memset as work of an operator.",
    "calls that launch": "TraceLens keeps only the calls of an operator that launched a kernel or copy "
                         "themselves, not by way of inner operators alone.",
    "calls in hosts": "The TensorBoard plug-in takes calls into the runtime for inner operators: "
                      "their time is not the operator's own.",
    "merged calls": "The TensorBoard plug-in makes one call of an operator that calls nothing but "
                    "itself.",
    "double": "TraceLens holds microseconds in binary floating point: sums are off by some ns.",
}
SLACK = 20  # nanoseconds, of the rule "double"
# The reference files of these traces were made with further traces of the graph's capture, from
# which TraceLens takes operators that the trace itself does not have.
MERGED = {"inference/sglang_decode/perf_csvs", "inference/vllm_decode_full/perf_csvs"}


def operators(path, options=(), stdin=None):
    report = Report(path, tools=("operators",), options=options, stdin=stdin)
    return {row["name"]: row for row in report.table("operators", "operators")}


def without(kind):
    """A filter of dump lines."""
    return lambda line: None if line.startswith(kind + " ") else line


def ruled(path, change):
    """What the tool says of the lines of a dump that a rule leaves."""
    lines = (change(line) for line in dump.text(path).splitlines())
    text = "\n".join(line for line in lines if line is not None) + "\n"
    return operators("-", stdin=text.encode("utf-8"))


def calls_that_launch(path):
    """By operator: calls that launched something themselves, and the device time launched in them."""
    events = dump.events(path)
    times = collections.Counter()
    for event in events:
        if event.kind in ("kernel", "copy") and not event.untimed:
            times[event.correlation] += event.duration
    lanes = collections.defaultdict(list)
    for event in events:
        if event.untimed or not (event.kind == "api" and event.correlation in times
                                 or event.kind == "scope" and event.domain == "operator"):
            continue
        lanes[lane_of(event)].append(event)
    counts, totals = collections.Counter(), collections.Counter()

    def close(calls, before):
        while calls and calls[-1][0].end <= before:
            call, time, launched = calls.pop()
            if launched:
                counts[call.name] += 1
                totals[call.name] += time
            if calls:
                calls[-1][1] += time

    for lane in lanes.values():
        calls = []
        for event in sorted(lane, key=lambda e: (e.start, -e.end, len(e.frames))):
            close(calls, event.start)
            if event.kind == "scope":
                calls.append([event, 0, False])
            elif calls:
                calls[-1][1] += times.pop(event.correlation, 0)
                calls[-1][2] = True
        close(calls, float("inf"))
    return counts, totals


def lane_of(event):
    return tuple(sorted(event.lane.items()))


def agreement(file, what, rows, own, theirs, rules=(), rule_value=None, slack=0):
    """A line that says how many of the rows are equal, or at most `slack` off. `own` and `theirs`
    give a row's value, None for a row that is not there."""
    def equal(value):
        return sum(value(row) is not None and abs(value(row) - theirs(row)) <= slack
                   for row in rows)
    whole = f"{len(rows)} of {len(rows)}"
    return Line(file, what, f"{equal(own)} of {len(rows)}", whole, rules,
                f"{equal(rule_value)} of {len(rows)}" if rule_value else None)


def tracelens_lines(corpus):
    for folder, trace in accuracy.TRACELENS_SETS.items():
        path = corpus / "tracelens" / "expected" / folder / "ops_summary.csv"
        if not path.exists() or folder in MERGED:
            continue
        file = f"tracelens/{trace}"
        rows = collections.defaultdict(lambda: [0, 0, 0])  # by name, over what they split
        for row in read_csv(path):
            total = rows[row["name"]]
            total[0] += int(row["Count"])
            total[1] += round(float(row["total_direct_kernel_time_sum"]) * 1000)
            total[2] += round(float(row["total_subtree_kernel_time_sum"]) * 1000)
        rows = {name: total for name, total in rows.items() if not re.match("hip|cuda", name)}
        own = operators(corpus / file)
        # TraceLens writes names without the numbers at their ends.
        for name in list(own):
            own.setdefault(re.sub(r"_\d+$", "", name), own[name])
        bare = ruled(corpus / file, without("fill"))
        counts, totals = calls_that_launch(corpus / file)
        for table in (bare, counts, totals):
            for name in list(table):
                table.setdefault(re.sub(r"_\d+$", "", name), table[name])
        names = list(rows)
        yield agreement(file, "operators with equal own device time", names,
                        lambda name: own[name]["device_self"] if name in own else None,
                        lambda name: rows[name][1], ["no fills"],
                        lambda name: bare[name]["device_self"] if name in bare else None, SLACK)
        yield agreement(file, "operators with equal device time with inner ones", names,
                        lambda name: own[name]["device_total"] if name in own else None,
                        lambda name: rows[name][2], ["no fills", "calls that launch"],
                        totals.get, SLACK)
        yield agreement(file, "operators with equal calls", names,
                        lambda name: own[name]["calls"] if name in own else None,
                        lambda name: rows[name][0], ["calls that launch"], counts.get)
        name = max(rows, key=lambda name: rows[name][1])
        yield Line(file, f"own device time of `{accuracy.shorten(name)}`, ns",
                   own[name]["device_self"], rows[name][1],
                   {rule for rule, used in (
                       ("no fills", bare[name]["device_self"] != own[name]["device_self"]),
                       ("double", bare[name]["device_self"] != rows[name][1])) if used},
                   bare[name]["device_self"], slack=SLACK)


def tensorboard_lines(corpus):
    file = "kineto/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
    lines = (corpus / "kineto" / "expected" / "result_check_file.txt").read_text(
        encoding="utf-8").splitlines()
    rows = {row["name"]: row for row in json.loads(lines[2])["data"]}
    own = operators(corpus / file)

    def calls_as_operators(line):
        if not line.startswith("api "):
            return line
        found = re.match(rf'api (-?\d+ -?\d+ \S+) ({dump.QUOTED})', line)
        return f"scope {found[1]} {found[2]} operator" if found else None
    inside = ruled(corpus / file, calls_as_operators)
    merged = collections.Counter()
    for event in dump.events(corpus / file):
        if event.kind == "scope" and event.domain == "operator":
            merged[event.name] += not (event.path and event.path[-1] == event.name)
    for what, column, theirs, scale, rules, rule_value in (
            ("calls", "calls", "calls", 1, ["merged calls"], lambda name: merged[name]),
            ("own device time", "device_self", "device_self_duration", 1000, (), None),
            ("device time", "device_total", "device_total_duration", 1000, (), None),
            ("host time", "host_total", "host_total_duration", 1000, (), None),
            ("own host time", "host_self", "host_self_duration", 1000, ["calls in hosts"],
             lambda name: inside[name]["host_self"])):
        def value(name):
            return own[name][column] if name in own else None
        def exact(function):
            return sum(function(name) == rows[name][theirs] * scale for name in rows)
        yield Line(file, f"operators with equal {what}", f"{exact(value)} of {len(rows)}",
                   f"{len(rows)} of {len(rows)}", rules,
                   f"{exact(rule_value)} of {len(rows)}" if rule_value else None)
    for name in list(rows)[:3]:
        for quantity, theirs in (("device_self", "device_self_duration"),
                                 ("host_total", "host_total_duration")):
            yield Line(file, f"{quantity} of `{name}`, us", accuracy.us(own[name][quantity]),
                       str(rows[name][theirs]))


def overlap_lines(corpus):
    sections = accuracy.hta_sections(corpus / "expected_hta" / "dlrm_8rank.txt")
    theirs = {int(row["rank"]): row["comp_comm_overlap_pctg"]
              for row in accuracy.csv_rows(sections["comm_comp_overlap"])[0]}
    files = accuracy.HTA_SETS["dlrm_8rank"]
    report = Report(*(corpus / file for file in files), tools=("overlap",))
    for row in report.table("overlap", "overlap"):
        rank = int(re.match(r"rank (\d+) ", row["device"])[1])
        yield Line(f"{files[rank]} (HTA)", "communication under compute, %",
                   f"{100 * row['share_overlapped']:.2f}", f"{float(theirs[rank]):.2f}")

    folder = "mi300/resnet_act_checkpoint_recompute_perf_report_csvs"
    file = "tracelens/mi300/resnet_act_checkpoint.json.gz"
    report = Report(corpus / file, tools=("overlap",))
    own = {(row["collective"], row["element_type"], row["in_bytes"]): row
           for row in report.table("overlap", "collectives")}
    for row in read_csv(corpus / "tracelens" / "expected" / folder / "coll_analysis.csv"):
        size = round(float(row["In msg size (MB)_first"]) * 2**20)
        mine = own.get((row["Collective name"], row["dtype"], size))
        what = f"{row['Collective name']} of {size} bytes"
        yield Line(f"{file} (TraceLens)", f"calls of {what}", str(mine and mine["calls"]),
                   row["operation_count"])
        for column, key in (("total", "dur_sum"), ("max", "dur_max")):
            value = round(float(row[key]) * 1000)
            yield Line(f"{file} (TraceLens)", f"{column} of {what}, ns", str(mine and mine[column]),
                       str(value))


SECTIONS = [
    ("Operators: TraceLens", tracelens_lines),
    ("Operators: Kineto's TensorBoard plug-in", tensorboard_lines),
    ("Overlap: HTA and TraceLens", overlap_lines),
]

def collect(corpus):
    return [(title, list(make(corpus))) for title, make in SECTIONS]


def section(sections):
    rules = "\n".join(f"| {name} | {text} |" for name, text in RULES.items())
    return f"""## Operators and overlap

Made by `tests/corpus/operators_accuracy.py --write`. Each operator of the other program's table is a row
of the comparison. Further rules:

| rule | what the other program does |
|---|---|
{rules}

The reference files of two traces of replayed graphs (`sglang_decode`, `vllm_decode_full`) are not
compared: they were made with further traces of the graphs' capture, which say what the replay does not.

{accuracy.markdown(sections)}"""


if __name__ == "__main__":
    accuracy.run_section("operators", __doc__, collect, section, lambda sections: [
        f"{line.file}: {line.quantity}: report {line.report}, by their rule {line.ruled}, theirs "
        f"{line.theirs}" for _, lines in sections for line in lines if not line.explained])
