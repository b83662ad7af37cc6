#!/usr/bin/env python3
"""pastaprof's numbers beside those that other programs print for the same traces.

    accuracy.py [--pastaprof PATH] [--corpus DIR]            print the comparison
    accuracy.py --write                                      and put it into docs/accuracy.md

Where another program counts another population, its rule is applied to pastaprof's events (from
`pastaprof dump`) and must give the other program's number. A number that no rule explains is an
error.
"""

import argparse
import collections
import csv
import gzip
import io
import itertools
import json
import math
import pathlib
import re
import sys

import dump
import program
from program import Report, overlap, union

RULES = {
    "last step": "HTA leaves out the last of several profiler steps: host rows from the start of the "
                 "last row named ProfilerStep on (where there are annotations on the device, that is "
                 "one of them), and device rows whose launch is not among the others.",
    "rounding": "HTA holds microseconds in binary floating point, and rounds each start up and each "
                "end down to a whole one: rows become shorter, and short ones negative, which it then "
                "subtracts.",
    "stream rows": "HTA takes every row that has a stream for a kernel: also synchronisation, which "
                   "is waiting.",
    "linked": "TraceLens counts only device rows that an arrow leads to from a call of the trace. On "
              "AMD no arrow leads to a memset.",
    "recompute": "TraceLens counts kernels that activation checkpointing runs a second time apart.",
    "double": "TraceLens holds microseconds in binary floating point: up to half a nanosecond a row.",
}


class Line:
    """One comparison of numbers as text, and why the report's own differs: rules, and the number
    that pastaprof's events give under them, which may be off by `slack` in the last place."""

    def __init__(self, file, quantity, report, theirs, rules=(), ruled=None, slack=0):
        self.file, self.quantity = file, quantity
        self.report, self.theirs, self.ruled = str(report), str(theirs), str(ruled)
        self.rules, self.slack = sorted(rules), slack

    @property
    def equal(self):
        return self.report == self.theirs

    @property
    def off(self):
        return abs(int(self.ruled) - int(self.theirs)) if self.slack else 0

    @property
    def explained(self):
        return self.equal or (bool(self.rules)
                              and (self.ruled == self.theirs or 0 < self.off <= self.slack))

    @property
    def why(self):
        if self.equal:
            return ""
        if not self.explained:
            return "**not explained**"
        off = f", {self.off} off" if self.off else ""
        return f"{' + '.join(self.rules)}: {self.ruled}{off}"


# --- HTA

HTA_SETS = {
    "alexnet": ["hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"],
    "amd_mi250": ["hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz"],
    "df_index_resolver": ["hta/df_index_resolver/df_index_resolver.json.gz"],
    "dlrm_8rank": sorted(f"param/dlrm_8rank/{name}.pt.trace.json.gz" for name in (
        "worker0_step_12.1694128201545", "worker1_step_12.1694128201556",
        "worker2_step_12.1694128201554", "worker3_step_12.1694128201557",
        "worker4_step_12.1694128201547", "worker5_step_12.1694128201549",
        "worker6_step_12.1694128201553", "worker7_step_12.1694128201553")),
    "negative_queue": ["hta/negative_queue_length_values_check/rank0.json.gz"],
    "ns_resolution": ["hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"],
    "param_resnet": ["param/resnet_kineto.json.gz"],
    "simple_add": ["hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz"],
    "tl_h100_qwen": ["tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"],
    "tl_mi300_resnet_ckpt": ["tracelens/mi300/resnet_act_checkpoint.json.gz"],
    "trace_diff_test": ["hta/trace_diff/test/test.json.gz"],
    "trace_filter_2rank": ["hta/trace_filter/sampled_rank-0.json.gz",
                           "hta/trace_filter/sampled_rank-1.json.gz"],
    "with_gpu_user_annotation": ["hta/with_gpu_user_annotation/step_based_trace_2543932.json.gz"],
}
WORK = ("kernel", "copy", "fill")


def hta_sections(path):
    """The CSV blocks of a file of expected_hta, by their heading."""
    sections, current = {}, None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            current = sections.setdefault(line[4:], [])
        elif current is not None:
            current.append(line)
    return sections


def csv_rows(lines):
    """The first CSV table of some lines, up to a blank line."""
    table = list(itertools.takewhile(str.strip, itertools.dropwhile(lambda l: not l.strip(), lines)))
    return list(csv.DictReader(io.StringIO("\n".join(table)))), lines[len(table) + 1:]


class HtaRow:
    """A device row as HTA holds it: times in whole microseconds."""

    def __init__(self, event, base_ns):
        self.name = event.name
        if base_ns is None:
            self.start, self.end = event.start // 1000, event.end // 1000
        else:
            start = (event.start - base_ns) / 1000
            self.start = math.ceil(start)
            self.end = math.floor(start + (event.end - event.start) / 1000)

    @property
    def kind(self):
        if re.match(r"nccl|hip(?!Mem)|hccl|.*ncclKernel", self.name):
            return "COMMUNICATION"
        if re.match(r"(hip)?Memcpy|(hip)?Memset|dma", self.name):
            return "MEMORY"
        if re.match(r"nccl|.*Memcpy|.*Memset|.*dma|.*Sync|Stream Wait Event|cuda.*LaunchKernel|"
                    r"runFunction|hip|hccl", self.name):
            return "OTHER"
        return "COMPUTATION"


def base_time(path):
    """What the file itself adds to its times, in ns: other programs compute without it."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    found = re.search(rb'"baseTimeNanoseconds"\s*:\s*(\d+)', data)
    return int(found[1]) if found else 0


def hta_population(events, path):
    """The device rows that HTA would keep, and the names of the rules that made the choice."""
    rules = set()
    rows = [e for e in events if e.kind in WORK and not e.untimed]
    host = [e for e in events if e.kind in ("api", "scope") and not e.untimed
            and "instant" not in e.flags]
    syncs = [e for e in events if e.kind == "sync" and e.lane.get("type") == "queue"]
    if syncs:
        rules.add("stream rows")
    rows += syncs
    steps = [e for e in host if e.name.startswith("ProfilerStep#")]
    if len({e.name for e in steps}) > 1:
        rules.add("last step")
        last = max(e.start for e in steps)
        kept = collections.Counter(e.correlation for e in host
                                   if e.start < last and e.correlation is not None)
        rows = [e for e in rows for _ in range(kept.get(e.correlation, 0))]
    base_ns = None
    if any(e.start % 1000 or e.end % 1000 for e in events if not e.untimed):
        rules.add("rounding")
        base_ns = base_time(path)
    return [HtaRow(e, base_ns) for e in rows], rules


def merged(rows):
    """Disjoint pieces as HTA makes them: a row of negative length that meets no other stays one."""
    pieces = []
    for row in sorted(rows, key=lambda row: row.start):
        if pieces and row.start <= pieces[-1][2]:
            pieces[-1][1] = max(pieces[-1][1], row.end)
        else:
            pieces.append([row.start, row.end, 0])
        pieces[-1][2] = max(row.end, pieces[-2][2] if len(pieces) > 1 else row.end, pieces[-1][1])
    return [(begin, end) for begin, end, _ in pieces]


def length(pieces):
    return sum(end - begin for begin, end in pieces)


def exclusive(rows):
    """Time by the set of kinds that run, as {'A overlapping B': time}. The running kinds are the
    bits of a sum, so a piece of negative length takes one kind for another, as in HTA."""
    order = ["COMPUTATION", "COMMUNICATION", "MEMORY"]
    marks = collections.Counter()
    for index, kind in enumerate(order):
        for begin, end in merged([row for row in rows if row.kind == kind]):
            marks[begin] += 1 << index
            marks[end] -= 1 << index
    times, running = collections.Counter(), 0
    points = sorted(marks)
    for at, following in zip(points, points[1:]):
        running += marks[at]
        if running > 0:
            times[" overlapping ".join(kind for index, kind in enumerate(order)
                                       if running >> index & 1)] += following - at
    return times


def own_exclusive(events, report):
    """The same of all device work, in nanoseconds, with the report's classes."""
    classes = {row["name"]: row["class"] for row in report.kernels}

    class Row:
        def __init__(self, event):
            self.start, self.end = event.start, event.end
            self.kind = ("MEMORY" if event.kind != "kernel" else "COMMUNICATION"
                         if classes[event.name] == "communication" else "COMPUTATION")

    return exclusive([Row(e) for e in events if e.kind in WORK and not e.untimed])


def us(ns):
    """Nanoseconds as microseconds, without digits that are 0."""
    text = f"{ns // 1000}.{ns % 1000:03d}".rstrip("0").rstrip(".")
    return text


def whole_us(value):
    return str(int(float(value)))


def hta_lines(corpus):
    for name, files in HTA_SETS.items():
        sections = hta_sections(corpus / "expected_hta" / f"{name}.txt")
        temporal = csv_rows(sections.get("temporal_breakdown", []))[0]
        overlaps = csv_rows(sections.get("comm_comp_overlap", []))[0]
        types, rest = csv_rows(sections.get("gpu_kernel_breakdown (type, then per-kernel)", []))
        kernels = csv_rows(rest)[0] if rest else []
        all_types, report_types, all_rules = collections.Counter(), collections.Counter(), set()
        for index, file in enumerate(files):
            report = Report(corpus / file)
            (device,) = report.devices
            events = dump.events(corpus / file)
            rows, rules = hta_population(events, corpus / file)
            all_rules |= rules
            times = exclusive(rows)
            all_types += times
            report_types += own_exclusive(events, report)
            rank = report.trace["sources"][0]["rank"] or 0
            pieces = merged([row for row in rows if row.kind == "COMPUTATION"])
            compute = length(pieces)
            if temporal:
                everything = merged(rows)
                busy = length(everything)
                span = everything[-1][1] - everything[0][0]
                theirs = next(row for row in temporal if int(row["rank"]) == rank)
                for quantity, own, ruled in (
                        ("idle", device["idle"], span - busy),
                        ("compute", device["compute"], compute),
                        ("busy without compute", device["busy"] - device["compute"],
                         busy - compute),
                        ("span", device["span"], span)):
                    column = {"idle": "idle_time(us)", "compute": "compute_time(us)",
                              "span": "kernel_time(us)"}.get(quantity, "non_compute_time(us)")
                    yield Line(file, f"{quantity}, us", us(own), whole_us(theirs[column]), rules,
                               str(ruled))
            if overlaps:
                theirs = next(row for row in overlaps if int(row["rank"]) == rank)
                text = theirs["comp_comm_overlap_pctg"]
                comm = merged([row for row in rows if row.kind == "COMMUNICATION"])
                total = length(comm)
                own = (f'{100 * device["communication_overlapped"] / device["communication"]:.2f}'
                       if device["communication"] else "none")
                ruled = f"{100 * overlap(pieces, comm) / total:.2f}" if total else "none"
                yield Line(file, "communication under compute, %", own,
                           f"{float(text):.2f}" if text else "none", rules, ruled)
            for theirs in kernels:
                if int(theirs["rank"]) != rank or theirs["name"] == "others":
                    continue
                same = [r for r in rows if r.name == theirs["name"]]
                durations = [r.end - r.start for r in same]
                if theirs["kernel_type"] == "MEMORY":
                    continue  # copies by name are not in a table of the report
                own = [row for row in report.kernels if row["name"] == theirs["name"]]
                for quantity, column in (("total", "sum (us)"), ("max", "max (us)"),
                                         ("min", "min (us)")):
                    # With more than ten kernels HTA aggregates a second time: max and min are then
                    # of the one sum, which is no maximum of anything.
                    if quantity != "total" and float(theirs["sum (us)"]) == float(
                            theirs["max (us)"]) == float(theirs["min (us)"]):
                        continue
                    function = {"total": sum, "max": max, "min": min}[quantity]
                    yield Line(file, f"{quantity} of `{shorten(theirs['name'])}`, us",
                               us(sum(row[quantity] for row in own)) if own else "none",
                               whole_us(theirs[column]), rules,
                               str(function(durations)) if durations else "none")
        for theirs in types:
            kind = theirs["kernel_type"]
            label = f"{name} ({len(files)} ranks)" if len(files) > 1 else files[0]
            yield Line(label, f"time of {kind.lower()} only, us", us(report_types[kind]),
                       theirs["sum"], all_rules, str(all_types[kind]))


def shorten(name, limit=48):
    name = name.replace("|", "\\|")
    return name if len(name) <= limit else name[:limit // 2 - 1] + "…" + name[-limit // 2:]


# --- TraceLens

TRACELENS_SETS = {
    "h100/Falconsai_nsfw_image_detection__1016002_perf_report_csvs":
        "h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005_perf_report_csvs":
        "h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "h100/gaunernst_bert-small-uncased__1016001_perf_report_csvs":
        "h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "inference/sglang_decode/perf_csvs": "inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "inference/sglang_prefilldecode/perf_csvs":
        "inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    "inference/vllm_decode_full/perf_csvs": "inference/vllm_decode_full/graph_execution.json.gz",
    "mi210/gpu_only_trace/gpu_only_trace_perf_report_csvs":
        "mi210/gpu_only_trace/gpu_only_trace.json.gz",
    "mi300/Falconsai_nsfw_image_detection__1016002_perf_report_csvs":
        "mi300/Falconsai_nsfw_image_detection__1016002.json.gz",
    "mi300/facebook_timesformer-base-finetuned-k400__1016002_perf_report_csvs":
        "mi300/facebook_timesformer-base-finetuned-k400__1016002.json.gz",
    "mi300/gaunernst_bert-small-uncased__1016001_perf_report_csvs":
        "mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "mi300/resnet_act_checkpoint_recompute_perf_report_csvs":
        "mi300/resnet_act_checkpoint.json.gz",
    "perf_model/normalization/normalization_layer_test_perf_report_csvs":
        "perf_model/normalization/normalization_layer_test.json.gz",
    "torch_compile_triton/trace_perf_report_csvs": "torch_compile_triton/trace.json.gz",
}


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tracelens_lines(corpus):
    for folder, trace in TRACELENS_SETS.items():
        file = f"tracelens/{trace}"
        expected = corpus / "tracelens" / "expected" / folder
        report = Report(corpus / file)
        (device,) = report.devices
        events = dump.events(corpus / file)
        work = [e for e in events if e.kind in WORK and not e.untimed]
        amd = any(e.kind == "api" and e.name.startswith("hip") for e in events)
        linked = [e for e in work if e.linked and not (amd and e.kind == "fill")]
        again = [e for e in linked if any("torch/utils/checkpoint.py" in name
                                          and "recompute_fn" in name for name in e.path)]
        rows = read_csv(expected / "gpu_timeline.csv")
        parts = {None: linked}
        if "is_recompute" in rows[0]:
            parts = {"False": [e for e in linked if e not in set(again)], "True": again}
        own = tracelens_times(work, report)
        assert own["busy"] == device["busy"] and own["total"] == device["span"], file
        for part, kept in parts.items():
            ruled = tracelens_times(kept, report)
            rules = {name for name, used in (("linked", len(linked) != len(work)),
                                             ("recompute", part)) if used}
            for row in rows:
                key = row["type"].removesuffix("_time")
                if row.get("is_recompute") != part or key not in own:
                    continue
                theirs = round(float(row["time ms"]) * 1e6)
                quantity = key.replace("_", " ") + (
                    " of what is recomputed" if part == "True" else "")
                yield tracelens_line(file, f"{quantity}, ns", own[key] if part != "True" else None,
                                     theirs, ruled[key], rules, len(work))
        if (expected / "coll_analysis.csv").exists():
            yield from tracelens_collectives(file, read_csv(expected / "coll_analysis.csv"), linked)
        if (expected / "kernel_summary.csv").exists():
            yield from tracelens_kernels(file, read_csv(expected / "kernel_summary.csv"), report,
                                         work)


def tracelens_line(file, quantity, own, theirs, ruled, rules, rows):
    slack = max(2, rows // 2)
    if own is not None and abs(own - theirs) <= slack:
        rules, ruled = set(), own
    if ruled != theirs:
        rules = rules | {"double"}
    return Line(file, quantity, "not shown" if own is None else own, theirs, rules, ruled, slack)


def tracelens_times(rows, report):
    classes = {row["name"]: row["class"] for row in report.kernels}

    def kind(event):
        if event.kind == "copy":
            return "copy"
        return ("communication" if event.kind == "kernel"
                and classes[event.name] == "communication" else "compute")

    times = {k: union([(e.start, e.end) for e in rows if kind(e) == k])
             for k in ("compute", "communication", "copy")}
    kernels = union([(e.start, e.end) for e in rows if kind(e) != "copy"])
    busy = union([(e.start, e.end) for e in rows])[0]
    span = max(e.end for e in rows) - min(e.start for e in rows)
    return {
        "computation": times["compute"][0],
        "exposed_comm": times["communication"][0] - overlap(times["communication"][1],
                                                            times["compute"][1]),
        "exposed_memcpy": times["copy"][0] - overlap(times["copy"][1], kernels[1]),
        "busy": busy,
        "idle": span - busy,
        "total": span,
        "total_comm": times["communication"][0],
        "total_memcpy": times["copy"][0],
    }


def tracelens_collectives(file, rows, linked):
    """Calls and total time by what a communication kernel exchanges; from the events, since no
    table of a report shows them yet."""
    own = collections.defaultdict(list)
    for event in linked:
        if event.collective:
            c = event.collective
            own[(c["name"], c["element_type"], c["in_elements"])].append(event.duration)
    for row in rows:
        elements = str(int(float(row["In msg nelems"])))
        found = own[(row["Collective name"], row["dtype"], elements)]
        what = f"{row['Collective name']} of {elements} x {row['dtype']}"
        yield Line(file, f"calls of {what}", "not shown", row["operation_count"], ["linked"],
                   len(found))
        yield Line(file, f"total of {what}, us", "not shown", f"{float(row['dur_sum']):.3f}",
                   ["linked"], f"{sum(found) / 1000:.3f}")


def tracelens_kernels(file, rows, report, work):
    """Kernels by name, and by the innermost operator around their launch and name."""
    column = "Kernel duration (µs)_"
    theirs = collections.defaultdict(lambda: [0, 0.0])
    by_operator = collections.defaultdict(lambda: [0, 0.0])
    for row in rows:
        for key, table in ((row["Kernel name"], theirs),
                           ((row.get("Parent cpu_op"), row["Kernel name"]), by_operator)):
            table[key][0] += int(row[column + "count"])
            table[key][1] += float(row[column + "sum"])
    own = {row["name"]: (row["calls"], row["total"]) for row in report.kernels}
    operators = collections.defaultdict(lambda: [0, 0])
    for event in work:
        if event.kind == "kernel":
            entry = operators[(event.operator or "", event.name)]
            entry[0] += 1
            entry[1] += event.duration

    def equal(ours, calls, total):
        return ours[0] == calls and abs(ours[1] - total * 1000) <= max(1, calls / 2)

    same = sum(equal(own.get(name, (0, 0)), *value) for name, value in theirs.items())
    yield Line(file, "kernel names with equal calls and total", f"{same} of {len(own)}",
               f"{len(theirs)} of {len(theirs)}")
    if "Parent cpu_op" in rows[0]:
        same = sum(equal(operators.get(key, (0, 0)), *value) for key, value in by_operator.items())
        yield Line(file, "pairs of operator and kernel with equal calls and total",
                   f"{same} of {len(operators)}", f"{len(by_operator)} of {len(by_operator)}")


# --- Kineto's TensorBoard plug-in

def tensorboard_lines(corpus):
    file = "kineto/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"
    lines = (corpus / "kineto" / "expected" / "result_check_file.txt").read_text(
        encoding="utf-8").splitlines()
    table = json.loads(lines[3])["data"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row)) for row in table["rows"]]
    report = Report(corpus / file)
    own = {row["name"]: row for row in report.kernels}
    yield Line(file, "kernel names", str(len(own)), str(len(rows)))
    for key, column, text in (("calls", "Calls", str), ("total", "Total Duration (us)", us),
                              ("max", "Max Duration (us)", us), ("min", "Min Duration (us)", us)):
        equal = sum(row["Name"] in own and text(own[row["Name"]][key]) == str(row[column])
                    for row in rows)
        yield Line(file, f"kernel names with equal {key}", f"{equal} of {len(rows)}",
                   f"{len(rows)} of {len(rows)}")
    for row in rows[:4]:
        for key, column, text in (("calls", "Calls", str), ("total", "Total Duration (us)", us)):
            yield Line(file, f"{key} of `{shorten(row['Name'])}`"
                       + ("" if key == "calls" else ", us"),
                       text(own[row["Name"]][key]), str(row[column]))


SECTIONS = [
    ("HTA (HolisticTraceAnalysis, commit f4d0062)", hta_lines),
    ("TraceLens (its own reference files)", tracelens_lines),
    ("Kineto's TensorBoard plug-in (its own reference file)", tensorboard_lines),
]
PAGE = program.SOURCE / "docs" / "accuracy.md"


def collect(corpus):
    return [(title, list(make(corpus))) for title, make in SECTIONS]


def markdown(sections):
    out = []
    for title, lines in sections:
        equal = sum(line.equal for line in lines)
        out += [f"### {title}", "",
                f"{len(lines)} values: {equal} equal, {len(lines) - equal} explained by a rule.", "",
                "| trace | quantity | report | other program | why they differ |",
                "|---|---|---:|---:|---|"]
        for line in lines:
            out.append(f"| {line.file.removesuffix('.json.gz')} | {line.quantity} | {line.report} "
                       f"| {line.theirs} | {line.why} |")
        out.append("")
    return "\n".join(out)


def markers(name):
    return f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"


def written_section(name):
    """What docs/accuracy.md holds between the markers of a section."""
    begin, end = markers(name)
    return PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]


def run_section(name, doc, collect, section, complaints):
    """The command line of a script that owns one section of docs/accuracy.md: prints or renews it, and
    fails on what `complaints` says of what `collect` found in the collection."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pastaprof", default=program.PROGRAM)
    parser.add_argument("--corpus", type=pathlib.Path, default=program.CORPUS)
    parser.add_argument("--write", action="store_true", help="renew the section of docs/accuracy.md")
    arguments = parser.parse_args()
    program.PROGRAM = arguments.pastaprof
    found = collect(arguments.corpus)
    text = section(found)
    if arguments.write:
        begin, end = markers(name)
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        PAGE.write_text(head.rstrip("\n") + "\n\n" + begin + text + end + rest.partition(end)[2],
                        encoding="utf-8")
    else:
        print(text)
    wrong = complaints(found)
    for line in wrong:
        print(line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


def complaints(sections):
    return [f"{line.file}: {line.quantity}: report {line.report}, by their rule {line.ruled}, theirs {line.theirs}"
            for _, lines in sections for line in lines if not line.explained]


if __name__ == "__main__":
    run_section("tables", __doc__, collect, markdown, complaints)
