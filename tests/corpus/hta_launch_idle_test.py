#!/usr/bin/env python3
"""Launches, queues and idle time as HTA counts them, from the events of `pastaprof dump`.

HTA's rules are applied to PASTA's events and must give HTA's numbers; docs/accuracy.md says what the
rules are. Traces with fractions of microseconds are left out: HTA rounds them, and each rounding
changes which events count as simultaneous.
"""

import collections
import gzip
import json
import unittest

import accuracy
import dump
from program import CORPUS, Report

# Sets of accuracy.HTA_SETS whose times are whole microseconds.
SETS = ("alexnet", "df_index_resolver", "dlrm_8rank", "negative_queue", "param_resnet", "simple_add",
        "trace_diff_test", "trace_filter_2rank", "with_gpu_user_annotation")
# HTA takes synchronisation for kernels; in these it splits the idle time of their streams.
WITH_SYNC_ROWS = ("alexnet", "simple_add")
LAUNCHES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync")
QUEUED = (*LAUNCHES, "cudaLaunchKernelExC")


def us(event):
    return event.start // 1000, event.end // 1000


class Trace:
    """Calls and device rows of one rank, as HTA would keep them."""

    def __init__(self, file):
        self.file = file
        self.report = Report(CORPUS / file, tools=("launches",))
        self.rank = str(self.report.trace["sources"][0]["rank"] or 0)
        events = dump.events(CORPUS / file)
        host = [e for e in events if e.kind in ("api", "scope") and not e.untimed
                and not e.annotation and "instant" not in e.flags]
        self.work = [e for e in events if e.kind in accuracy.WORK and not e.untimed]
        steps = [e for e in host if e.name.startswith("ProfilerStep#")]
        self.whole = len({e.name for e in steps}) <= 1
        if not self.whole:
            last = max(e.start for e in steps)
            host = [e for e in host if e.start < last]
            kept = {e.correlation for e in host}
            self.work = [e for e in self.work if e.correlation is not None and e.correlation in kept]
        self.calls = [e for e in host if e.kind == "api" and e.correlation is not None]
        self.launched = collections.defaultdict(list)
        for event in self.work:
            self.launched[event.correlation].append(event)

    def pairs(self, names):
        return [(call, work) for call in self.calls if call.name in names
                for work in self.launched.get(call.correlation, ())]

    def first_row_us(self):
        """Start of the first row of the file."""
        with gzip.open(CORPUS / self.file) as file:
            return next(row["ts"] for row in json.load(file)["traceEvents"] if row.get("ph") == "X")

    def streams(self):
        streams = collections.defaultdict(list)
        for event in self.work:
            streams[event.lane["id"]].append(event)
        return streams


def lines_after(lines, heading, following="### "):
    begin = lines.index(heading) + 1
    end = next((i for i in range(begin, len(lines)) if lines[i].startswith(following)), len(lines))
    return lines[begin:end]


@unittest.skipUnless((CORPUS / "expected_hta").is_dir(), f"the collection {CORPUS} is not there")
class HtaLaunchesAndIdle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sets = {name: [Trace(file) for file in accuracy.HTA_SETS[name]] for name in SETS}

    def each(self):
        for name, traces in self.sets.items():
            path = CORPUS / "expected_hta" / f"{name}.txt"
            lines = path.read_text(encoding="utf-8").splitlines()
            for trace in traces:
                yield name, trace, lines

    def test_launch_statistics(self):
        """Delay is from the end of the call, and 0 where the work starts before that."""
        compared = 0
        for _, trace, lines in self.each():
            section = lines_after(lines, "### launch_stats describe")
            if f"-- {trace.rank}" not in section:
                continue
            rows = {row.split(",")[0]: row.split(",")[1:]
                    for row in lines_after(section, f"-- {trace.rank}", "-- ")}
            values = list(zip(*(
                (us(call)[1] - us(call)[0], us(work)[1] - us(work)[0],
                 max(0, us(work)[0] - us(call)[1])) for call, work in trace.pairs(LAUNCHES))))
            for column, numbers in enumerate(values):
                own = {"count": len(numbers), "mean": sum(numbers) / len(numbers),
                       "min": min(numbers), "max": max(numbers)}
                for quantity, value in own.items():
                    self.assertAlmostEqual(value, float(rows[quantity][column]), places=6,
                                           msg=f"{quantity} of column {column}")
                    compared += 1
        self.assertGreater(compared, 150)

    def test_queue_length(self):
        """HTA's mean is over changes; of launches and starts in one microsecond it takes any order."""
        compared = 0
        for _, trace, lines in self.each():
            theirs = {}
            for line in lines_after(lines, "### queue_length_summary"):
                fields = line.split(",")
                if len(fields) == 10 and fields[0] == trace.rank:
                    theirs[fields[1]] = [float(value) for value in fields[2:]]
            changes = collections.defaultdict(list)
            for call, work in trace.pairs(QUEUED):
                changes[work.lane["id"]] += [(us(call)[0], 1), (us(work)[0], -1)]
            self.assertEqual(sorted(changes), sorted(theirs))
            for stream, steps in changes.items():
                count, mean, _, least, *_, greatest = theirs[stream]
                means = []
                for order in (1, -1):  # starts first, launches first
                    length, lengths = 0, []
                    for _, step in sorted(steps, key=lambda s: (s[0], s[1] * order)):
                        length += step
                        lengths.append(length)
                    means.append(sum(lengths) / len(lengths))
                self.assertEqual(len(steps), count)
                self.assertEqual((least, max(lengths)), (0, greatest))
                self.assertLessEqual(means[0] - 1e-9, mean)
                self.assertLessEqual(mean, means[1] + 1e-9)
                compared += 1
        self.assertGreater(compared, 40)

    def test_the_reports_own_queues(self):
        """Where HTA keeps the whole trace, the report has its numbers."""
        compared = 0
        for _, trace, lines in self.each():
            names = {row["name"] for row in trace.report.table("launches", "launches")}
            if not trace.whole or not names <= set(QUEUED):
                continue
            theirs = {}
            for line in lines_after(lines, "### queue_length_summary"):
                fields = line.split(",")
                if len(fields) == 10 and fields[0] == trace.rank:
                    theirs["stream " + fields[1]] = (float(fields[2]) / 2, float(fields[-1]))
            own = {row["stream"].strip(): (row["launched"], row["max"])
                   for row in trace.report.table("launches", "queues")}
            self.assertEqual(own, theirs)
            compared += len(own)
        self.assertGreater(compared, 20)

    def test_idle_time_of_streams(self):
        """Between neighbours on a stream: the launch came after the gap began (host), or the gap is
        shorter than 30 (kernel to kernel), or neither. Work without a launch is taken to be launched
        by the first row of the file."""
        compared = 0
        for name, trace, lines in self.each():
            if name in WITH_SYNC_ROWS:
                continue
            theirs = {(row["stream"], row["idle_category"]): float(row["idle_time"]) for row in
                      accuracy.csv_rows(lines_after(lines, "### idle_time_breakdown"))[0]
                      if row["rank"] == trace.rank}
            launches = {}
            for call in trace.calls:
                launches.setdefault(call.correlation, us(call)[0])
            if any(work.correlation not in launches for work in trace.work):
                first_row = trace.first_row_us()
                launches = collections.defaultdict(lambda value=first_row: value, launches)
            own = collections.Counter()
            for stream, work in trace.streams().items():
                work.sort(key=us)
                for before, after in zip(work, work[1:]):
                    gap = us(after)[0] - us(before)[1]
                    late = launches[after.correlation] > us(before)[1]
                    category = "host_wait" if late else "kernel_wait" if gap < 30 else "other"
                    own[stream, category] += gap
            for key, time in theirs.items():
                self.assertEqual(own[key], time, key)
                compared += 1
            self.assertEqual(sum(own.values()), sum(theirs.values()))
        self.assertGreater(compared, 60)


if __name__ == "__main__":
    unittest.main()
