#!/usr/bin/env python3
"""Trace files with the faults that real ones have: what pastaprof makes of each, in full.

The files of tests/cases carry a fault that some other program crashed on or misread. Class
MadeHere goes on where they stop: more inputs of the same kinds, written down here.
"""

import codecs
import gzip
import io
import json
import re
import sys
import tempfile
import unittest
import zipfile
import zlib
from pathlib import Path

import dump
from program import CASES, Report, Run

COMPLETE, REFUSED, WRONG_USAGE, LOSSY = 0, 1, 2, 3


class Case(unittest.TestCase):
    """What all cases are asked."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def file(self, data, name="trace.json"):
        path = Path(self.folder.name) / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def report(self, source, code, problems=None, events=None):
        """The report of a file, which must end with `code`, count `problems` exactly (reason to
        count; launches that the little inputs leave out are not counted here unless named), and
        hold `events` (kind to count)."""
        report = Report(source)
        self.assertEqual(report.code, code, f"{source.name}: {report.quality['problems']}")
        found = report.problems()
        if problems is not None:
            for reason in ("launch_not_seen", "no_correlation", "flow_without_end"):
                if reason not in problems:
                    found.pop(reason, None)
            self.assertEqual(found, problems, source.name)
        if events is not None:
            self.assertEqual(report.events, events, source.name)
        severe = {row["severity"] for row in report.quality["problems"]}
        self.assertEqual(code == LOSSY, bool(severe & {"altered", "dropped"}), severe)
        return report

    def refused(self, source, *words, options=()):
        """No answer: exit code 1, nothing on standard output, every word in the message."""
        run = Run(["report", source, *options])
        self.assertEqual(run.code, REFUSED, f"{source}: {run.err}")
        self.assertEqual(run.out, b"", source)
        for word in words:
            self.assertIn(word, run.err)
        return run

    def offset(self, text):
        found = re.search(r"byte (\d+)", text)
        self.assertIsNotNone(found, f"no byte offset in {text!r}")
        return int(found.group(1))

    def strict(self, source, first, last=None):
        """--strict refuses the file and names a byte of first..last."""
        run = self.refused(source, Path(source).name, options=["--strict"])
        self.assert_offset(run.err, first, last)

    def assert_offset(self, text, first, last=None):
        at = self.offset(text)
        self.assertTrue(first <= at <= (first if last is None else last),
                        f"byte {at} is not in {first}..{last}: {text}")

    def device(self, report):
        self.assertEqual(len(report.devices), 1)
        return report.devices[0]


class Collected(Case):
    """The files of tests/cases, numbered like the list of reports they come from."""

    def test_01_windows_path_escape(self):
        path = CASES / "01-windows-path-escape.json"
        text = path.read_text()
        report = self.report(path, COMPLETE, {"escape_kept": 2}, {"scope": 2, "kernel": 1})
        names = {e.name for e in dump.events(path)}
        self.assertEqual(names, {r"pkg\compile\__main__.py(12): go",
                                 r"D:\Work\mlp\train.py(7): step", "k_ok"})
        begin, end = text.index('"pkg'), text.index("__main__")
        self.assert_offset(report.first("escape_kept"), begin, end)
        self.strict(path, begin, end)

    def test_02_inf_bandwidth(self):
        path = CASES / "02-inf-bandwidth.json"
        report = self.report(path, LOSSY, {"bare_token": 1}, {"kernel": 1, "copy": 1})
        device = self.device(report)
        self.assertEqual((device["copies"], device["copy_sum"], device["copy_bytes"]), (1, 0, 96))
        self.assertEqual((device["busy"], device["span"]), (3000, 7000))
        at = path.read_bytes().index(b"inf}")
        self.assert_offset(report.first("bare_token"), at)
        self.strict(path, at)
        self.assertNotIn("inf", re.sub(r'"[^"]*"', "", report.run.text))

    def test_04_bare_na(self):
        path = CASES / "04-bare-na.json"
        report = self.report(path, LOSSY, {"bare_token": 1}, {"kernel": 2})
        self.assertEqual(self.device(report)["kernel_sum"], 8000)
        self.assertEqual({row["name"] for row in report.kernels}, {"k", "k N/A inside"})
        at = path.read_bytes().index(b":N/A") + 1
        self.assert_offset(report.first("bare_token"), at)
        self.strict(path, at)

    def test_05_control_char(self):
        path = CASES / "05-control-char.json"
        report = self.report(path, COMPLETE, {"control_character": 2}, {"scope": 2})
        self.assertEqual({e.name for e in dump.events(path)},
                         {"frame \x01 of a lambda", "tab\there"})
        self.assertIn(r"\u0001", dump.text(path))
        data = path.read_bytes()
        self.assert_offset(report.first("control_character"), data.index(b'"frame'),
                           data.index(b"\x01"))
        self.strict(path, data.index(b'"frame'), data.index(b"\x01"))

    def test_07_unescaped_quote(self):
        path = CASES / "07-unescaped-quote.json"
        report = self.report(path, LOSSY, {"record_skipped": 1}, {"scope": 2})
        self.assertEqual({e.name for e in dump.events(path)}, {"before", "after"})
        data = path.read_bytes()
        record, quote = data.index(b'{"ph":"X","cat":"user_annotation","name":"run'), data.index(b'inner"')
        self.assert_offset(report.first("record_skipped"), record, quote + 6)
        self.strict(path, record, quote + 6)

    def test_08_trailing_commas(self):
        path = CASES / "08-trailing-commas.json"
        report = self.report(path, COMPLETE, {"comma_repaired": 4}, {"scope": 1})
        (event,) = dump.events(path)
        self.assertEqual((event.start, event.end), (61250, 61250 + 12500))
        self.assertIn("Main", {lane["name"] for lane in report.trace["lanes"]})
        at = path.read_bytes().index(b',}')
        self.assert_offset(report.first("comma_repaired"), at, at + 1)
        self.strict(path, at, at + 1)

    def test_10_truncated_in_string(self):
        path = CASES / "10-truncated-in-string.json"
        report = self.report(path, LOSSY, {"truncated": 1}, {"scope": 1, "kernel": 1})
        self.assertEqual(report.trace["sources"][0]["rank"], 2)
        size = path.stat().st_size
        self.assert_offset(report.first("truncated"), size)
        self.strict(path, size)

    def test_11_leading_comma(self):
        path = CASES / "11-leading-comma.json"
        self.report(path, COMPLETE, {"comma_repaired": 1}, {"scope": 1})
        (event,) = dump.events(path)
        self.assertEqual((event.name, event.start, event.end), ("f", 2000042, 2001042))
        self.strict(path, 1)

    def test_13_empty_events(self):
        path = CASES / "13-empty-events.json"
        report = self.report(path, COMPLETE, {}, {})
        self.assertEqual((report.devices, report.kernels), ([], []))
        self.assertIsNone(report.trace["span_ns"])
        self.assertIsNone(report.quality["kernels_linked"])
        self.assertEqual(Run(["report", path, "--strict"]).code, COMPLETE)

    def test_14_metadata_only(self):
        path = CASES / "14-metadata-only.json"
        report = self.report(path, COMPLETE, {}, {})
        self.assertIsNone(report.trace["span_ns"])
        self.assertEqual(report.devices, [])

    def test_15_array_with_text_pids(self):
        path = CASES / "15-top-level-array-string-pid.json"
        report = self.report(path, COMPLETE, {}, {"scope": 2, "kernel": 1})
        self.assertEqual(self.device(report)["kernel_sum"], 3000)
        self.assertEqual([row["name"] for row in report.kernels], ["scale_kernel"])
        self.assertEqual(report.quality["kernels_linked"], 1.0)
        processes = {lane["process"] for lane in report.trace["lanes"]}
        self.assertEqual(processes, {"CPU functions", "CUDA functions"})
        scopes = {e.name: e.path for e in dump.events(path)}
        self.assertEqual(scopes["scale_kernel"], ["my::scale"])

    def test_16_string_timestamps(self):
        path = CASES / "16-string-timestamps.json"
        report = self.report(path, COMPLETE, {}, {"scope": 3})
        starts = {e.name: e.start for e in dump.events(path)}
        self.assertEqual(starts, {"npu_op_A": 1778659200123456876, "npu_op_B": 1778659200123457277,
                                  "npu_op_C": 1778659200123457378})
        events = sorted(dump.events(path), key=lambda e: e.start)
        self.assertEqual([b.start - a.end for a, b in zip(events, events[1:])], [1, 1])
        self.assertEqual([e.path for e in events], [[], [], []])
        self.assertEqual(report.trace["span_ns"], 457378 + 250 - 456876)

    def test_17_nanoseconds_beyond_a_double(self):
        path = CASES / "17-absolute-ns-fraction.json"
        report = self.report(path, COMPLETE, {}, {"kernel": 3})
        device = self.device(report)
        self.assertEqual((device["busy"], device["span"]), (4217, 4218))
        self.assertEqual(
            [(e.name, e.start, e.end - e.start) for e in dump.events(path)],
            [("k1", 1712195495406752750, 1216), ("k2", 1712195495406753967, 1001),
             ("k3", 1712195495406754968, 2000)])

    def test_19_large_tids(self):
        path = CASES / "19-large-tids.json"
        report = self.report(path, COMPLETE, {}, {"scope": 3})
        lanes = report.trace["lanes"]
        self.assertEqual(len(lanes), 3)
        self.assertTrue({"io", "compute"} <= {lane["name"] for lane in lanes}, lanes)
        self.assertIn("7168000000", " ".join(lane["process"] for lane in lanes))

    def test_20_tid_text_and_number(self):
        path = CASES / "20-tid-text-and-number.json"
        report = self.report(path, COMPLETE, {}, {"scope": 1, "api": 1, "kernel": 1})
        self.assertEqual(report.quality["kernels_linked"], 1.0)
        self.assertEqual(self.device(report)["kernels"], 1)
        queues = [lane for lane in report.trace["lanes"] if lane["type"] == "queue"]
        self.assertEqual(len(queues), 1)
        self.assertIn("7", queues[0]["name"])
        by_name = {e.name: e for e in dump.events(path)}
        self.assertEqual(by_name["sgemm"].start - by_name["cudaLaunchKernel"].start, 10000)
        self.assertEqual(by_name["sgemm"].correlation, by_name["cudaLaunchKernel"].correlation)

    def test_20_text_and_number_are_one_thread(self):
        # The launch has tid "3200000001"; an operator around it has the number.
        text = (CASES / "20-tid-text-and-number.json").read_text()
        text = text.replace('"traceEvents":[', '"traceEvents":[{"ph":"X","cat":"cpu_op","name":"op",'
                            '"pid":88,"tid":3200000001,"ts":9,"dur":9},')
        path = self.file(text)
        self.report(path, COMPLETE, {})
        paths = {e.name: e.path for e in dump.events(path)}
        self.assertEqual(paths["cudaLaunchKernel"], ["op"])
        self.assertEqual(paths["sgemm"], ["op"])

    def test_22_kernels_without_times(self):
        path = CASES / "22-ts-zero-kernels.json"
        report = self.report(path, COMPLETE, {"untimed": 1}, {"api": 2, "kernel": 2})
        self.assertEqual(report.quality["untimed"], 1)
        device = self.device(report)
        self.assertEqual((device["kernels"], device["kernel_sum"], device["span"]),
                         (2, 30000, 30000))
        (row,) = report.kernels
        self.assertEqual([row[name] for name in ("calls", "total", "mean", "median", "min", "max")],
                         [2, 30000, 30000, 30000, 30000, 30000])
        self.assertEqual(report.trace["span_ns"], 50000)

    def test_23_overlap_on_one_stream(self):
        report = self.report(CASES / "23-overlap-same-stream.json", COMPLETE, {"queue_overlap": 2},
                             {"kernel": 3})
        device = self.device(report)
        self.assertEqual((device["kernel_sum"], device["busy"], device["idle"]), (8750, 6000, 0))

    def test_25_kernel_before_its_launch(self):
        path = CASES / "25-kernel-before-launch.json"
        report = self.report(path, COMPLETE, {"starts_before_launch": 1}, {"api": 1, "kernel": 1})
        self.assertEqual(report.quality["kernels_linked"], 1.0)
        by_name = {e.name: e for e in dump.events(path)}
        kernel, launch = by_name["ncclDevKernel_SendRecv"], by_name["cuLaunchKernelEx"]
        self.assertEqual(kernel.start - launch.start, -2000)
        self.assertEqual(kernel.correlation, launch.correlation)
        self.assertEqual(kernel.end - kernel.start, 9000)

    def test_26_graph_launch(self):
        path = CASES / "26-graph-launch.json"
        report = self.report(path, COMPLETE, {}, {"api": 1, "kernel": 3, "copy": 1})
        self.assertEqual(report.quality["kernels_linked"], 1.0)
        events = list(dump.events(path))
        self.assertEqual(len({e.correlation for e in events}), 1)
        launch = next(e for e in events if e.kind == "api")
        self.assertEqual(min(e.start for e in events if e.kind != "api") - launch.start, 30000)

    def test_28_kernels_without_launch(self):
        report = self.report(CASES / "28-kernels-without-launch.json", COMPLETE,
                             {"launch_not_seen": 2}, {"api": 1, "kernel": 3})
        self.assertAlmostEqual(report.quality["kernels_linked"], 1 / 3)

    def test_29_no_rank(self):
        report = self.report(CASES / "29-no-rank.json", COMPLETE, {"rank_unknown": 1},
                             {"scope": 1, "kernel": 1})
        self.assertIsNone(report.trace["sources"][0]["rank"])
        self.assertEqual(report.trace["devices"][0]["name"], "Some GPU")

    def test_30_same_rank_twice(self):
        paths = [CASES / "30-same-rank-a.json", CASES / "30-same-rank-b.json"]
        run = Run(["report", *paths, "--format", "json"])
        if run.code in (REFUSED, WRONG_USAGE):
            for path in paths:
                self.assertIn(path.name, run.err)
        else:
            report = Report(*paths)
            self.assertEqual(sum(row["kernel_sum"] for row in report.devices), 13000)
            labels = {source["label"] for source in report.trace["sources"]}
            self.assertEqual(len(labels), 2)
            self.assertEqual(len({row["device"] for row in report.devices}), 2)

    def test_31_no_profiler_step(self):
        report = self.report(CASES / "31-no-profilerstep.json", COMPLETE, {},
                             {"scope": 4, "kernel": 12})
        device = self.device(report)
        self.assertEqual((device["kernel_sum"], device["busy"], device["span"]),
                         (108000, 108000, 332000))

    def test_32_gzip_of_two_members(self):
        path = CASES / "32-gzip-two-members.json.gz"
        report = self.report(path, COMPLETE, {}, {"kernel": 2})
        self.assertEqual(self.device(report)["kernel_sum"], 5000)

    def test_34_gzip_cut(self):
        path = CASES / "34-gzip-truncated.json.gz"
        whole = zlib.decompressobj(31).decompress(path.read_bytes())
        report = self.report(path, LOSSY, {"truncated": 1})
        self.assertIn("gzip stream ends early", report.first("truncated"))
        self.assertEqual(sum(report.events.values()), whole.count(b'}}'))
        self.refused(path, "gzip stream ends early", options=["--strict"])

    def test_43_unbalanced_ranges(self):
        path = CASES / "43-unbalanced-b-e.json"
        self.report(path, LOSSY, {"end_without_begin": 1, "begin_without_end": 2}, {"scope": 4})
        times = {e.name: (e.start, e.end) for e in dump.events(path)}
        self.assertEqual(times, {"inner": (20000, 30000), "outer": (10000, 55000),
                                 "open": (40000, 55000), "other": (45000, 55000)})
        unfinished = {e.name for e in dump.events(path) if e.unfinished}
        self.assertEqual(unfinished, {"outer", "open"})

    def test_44_unsorted(self):
        path = CASES / "44-unsorted.json"
        report = self.report(path, COMPLETE, {}, {"scope": 2, "api": 1, "kernel": 2})
        self.assertEqual(self.device(report)["idle"], 10000)
        events = list(dump.events(path))
        self.assertEqual([e.name for e in events if e.kind == "kernel"], ["k1", "k2"])
        paths = {e.name: e.path for e in events}
        self.assertEqual(paths["child"], ["parent"])
        self.assertEqual(paths["cudaLaunchKernel"], ["parent"])
        self.assertEqual(paths["k2"], ["parent"])

    def test_46_base_time(self):
        for rank, start in ((0, 1712195490001000001), (1, 1712195490001030001)):
            path = CASES / f"46-basetime-rank{rank}.json"
            self.report(path, COMPLETE, {}, {"kernel": 1})
            (event,) = dump.events(path)
            self.assertEqual(event.start, start)
        report = Report(CASES / "46-basetime-rank0.json", CASES / "46-basetime-rank1.json")
        self.assertEqual(report.trace["span_ns"], 50000)
        self.assertEqual([s["rank"] for s in report.trace["sources"]], [0, 1])

    def test_46_no_base_beside_one(self):
        other = self.file(re.sub(r'"baseTimeNanoseconds":\d+,', "",
                                 (CASES / "46-basetime-rank1.json").read_text()))
        report = Report(CASES / "46-basetime-rank0.json", other)
        self.assertIn("clock_unaligned", report.problems())

    def test_47_metadata_first(self):
        path = CASES / "47-metadata-first.json"
        self.report(path, COMPLETE, {}, {"scope": 1})
        (event,) = dump.events(path)
        self.assertEqual(event.end - event.start, 2000)

    def test_49_a_long_stream(self):
        # The same line again and again, through a pipe; generate_trace.py makes the really big one.
        head, line, last = (CASES / "49-repeat-me.json").read_text().splitlines()
        count = 20000
        lines = [line.replace('"ts":0', f'"ts":{2 * n}') for n in range(count)]
        last = last.replace('"ts":99', f'"ts":{2 * count}')
        data = "\n".join([head, *lines, last]).encode()
        report = Report("-", stdin=data)
        self.assertEqual(self.device(report)["kernels"], count + 1)
        # ts 0 with a duration is a time, and the first kernel counts like the others.
        self.assertEqual(self.device(report)["kernel_sum"], (count + 1) * 1000)

    def test_50_stream_zero(self):
        report = self.report(CASES / "50-stream-zero.json", COMPLETE, {},
                             {"scope": 2, "api": 1, "kernel": 1})
        device = self.device(report)
        self.assertEqual((device["device"], device["busy"], device["kernels"]), ("2", 4000, 1))

    def test_52_negative_time(self):
        path = CASES / "52-negative-ts.json"
        report = self.report(path, COMPLETE, {}, {"scope": 2})
        self.assertEqual(report.trace["span_ns"], 26500)
        self.assertEqual({e.name: e.start for e in dump.events(path)}, {"a": -25500, "b": 0})

    def test_53_collectives_of_two_ranks(self):
        paths = [CASES / f"53-collective-ids-rank{rank}.json" for rank in (0, 1)]
        report = Report(*paths)
        self.assertEqual(report.code, COMPLETE)
        self.assertEqual(sorted(row["communication"] for row in report.devices), [20000, 50000])
        self.assertEqual([row["class"] for row in report.kernels], ["communication"])
        self.assertEqual(report.trace["span_ns"], 110000)
        self.assertIn("allreduce", dump.text(paths[0]))

    def test_55_child_outlives_parent(self):
        path = CASES / "55-child-outlives-parent.json"
        report = self.report(path, COMPLETE, {"partial_overlap": 1}, {"scope": 2})
        for name in ("aten::item", "ProfilerStep#8"):
            self.assertIn(name, report.first("partial_overlap"))
        events = {e.name: e for e in dump.events(path)}
        self.assertEqual(events["aten::item"].end, 1900587)
        self.assertEqual(events["ProfilerStep#8"].end, 1914719)
        self.assertEqual([e.path for e in events.values()], [[], []])

    def test_56_pointer_in_place_of_a_file(self):
        self.refused(CASES / "56-lfs-pointer.sqlite", "Git LFS", "4194304")


def x(name="a", ts="10", dur="5", cat="cpu_op", **members):
    """One complete event as text: values are JSON text, names are plain."""
    fields = {"ph": '"X"', "cat": f'"{cat}"', "name": f'"{name}"', "pid": "1", "tid": "1",
              "ts": ts, "dur": dur, **members}
    return "{" + ",".join(f'"{key}":{value}' for key, value in fields.items()
                          if value is not None) + "}"


def kernel(name="k", ts="10", dur="5", args="", **members):
    args = f'{{"device":0,"stream":7{"," if args else ""}{args}}}'
    return x(name, ts, dur, "kernel", pid="0", tid="7", args=args, **members)


def trace(*records, between=",\n"):
    return '{"traceEvents":[\n' + between.join(records) + "\n]}\n"


class MadeHere(Case):
    """More inputs of the same kinds. Exit code 3 exactly when an event or a value was lost."""

    def names(self, path):
        return [e.name for e in dump.events(path)]

    # Text that is not quite JSON: repaired, or skipped, or absent; and counted.

    def test_escapes_deep_in_arguments(self):
        record = x(args=r'{"path":"C:\Users\q","deep":{"a":["\z",{"b":"\d"}]}}')
        path = self.file(trace(record, x("b")))
        report = self.report(path, COMPLETE, {"escape_kept": 3}, {"scope": 2})
        self.assert_offset(report.first("escape_kept"), path.read_bytes().index(b'"C:'),
                           path.read_bytes().index(b"Users"))
        self.strict(path, path.read_bytes().index(b'"C:'), path.read_bytes().index(b"Users"))

    def test_a_good_escape_beside_a_bad_one_is_kept_as_written(self):
        path = self.file(trace(x(r"C:\new\table\q")))
        self.report(path, COMPLETE, {"escape_kept": 1})
        self.assertEqual(self.names(path), [r"C:\new\table\q"])

    def test_broken_unicode_escape(self):
        path = self.file(trace(x(r"a\u12zz"), x(r"b\u12")))
        self.report(path, COMPLETE, {"escape_kept": 2}, {"scope": 2})
        self.assertEqual(set(self.names(path)), {r"a\u12zz", r"b\u12"})

    def test_good_escapes(self):
        path = self.file(trace(x(r"\" \\ \/ \b\f\n\r\t \u00e9 \ud83d\ude00 \u0000.")))
        self.report(path, COMPLETE, {}, {"scope": 1})
        self.assertEqual(self.names(path), ['" \\ / \b\f\n\r\t \u00e9 \U0001f600 \0.'])

    def test_half_a_surrogate_pair(self):
        # Legal JSON, but no text: whatever it becomes, the output must still be UTF-8 and JSON.
        for name in (r"\ud800", r"\udc00", r"\ud800\ud800", r"\ud83dx"):
            path = self.file(trace(kernel(name), x("b")))
            report = Report(path)
            self.assertEqual(report.events, {"scope": 1, "kernel": 1}, name)

    def test_not_utf8(self):
        path = self.file(trace(kernel("AB")).encode().replace(b"AB", b"\xff\xc3"))
        report = self.report(path, COMPLETE, {"invalid_utf8": 1}, {"kernel": 1})
        self.assertEqual(len(report.kernels), 1)

    def test_bare_tokens(self):
        for token in ("inf", "-inf", "Infinity", "-Infinity", "nan", "NaN", "-nan", "N/A", "None",
                      "undefined", "-nan(ind)", "1.#INF", "1.#QNAN", "True"):
            path = self.file(trace(kernel(args=f'"bandwidth":{token}'), kernel("l", "20")))
            report = self.report(path, LOSSY, None, {"kernel": 2})
            self.assertEqual(sum(report.problems().get(reason, 0)
                                 for reason in ("bare_token", "unreadable_number")), 1, token)
            self.assertEqual(self.device(report)["kernel_sum"], 10000, token)
            at = path.read_bytes().index(b"bandwidth") + len('bandwidth":')
            self.strict(path, at, at + len(token))

    def test_bare_token_in_an_array(self):
        for args in ('"grid":[1,N/A,1]', '"grid":[inf]', '"x":[nan,nan]', '"x":[[N/A],{"y":inf}]'):
            path = self.file(trace(kernel(args=args), kernel("l", "20")))
            report = self.report(path, LOSSY, None, {"kernel": 2})
            self.assertGreaterEqual(report.problems()["bare_token"], 1)

    def test_bare_token_as_a_time(self):
        for times in (("NaN", "5"), ("10", "inf"), ("inf", "inf"), ("N/A", "N/A")):
            path = self.file(trace(kernel("bad", *times), kernel("good", "20", "4")))
            report = self.report(path, LOSSY)
            self.assertEqual(report.problems()["bare_token"], 1 + (times[0] == times[1]))
            self.assertEqual(report.events, {"kernel": 2}, times)
            self.assertEqual(self.device(report)["kernel_sum"], 4000, times)
            self.assertEqual(self.device(report)["span"], 4000, times)
            self.assertEqual(report.quality["untimed"], 1, times)

    def test_control_characters_in_keys_and_values(self):
        record = x(args='{"a\x02b":1,"c":"\x1f","d":["\n"]}')
        path = self.file(trace(record))
        self.report(path, COMPLETE, {"control_character": 3}, {"scope": 1})

    def test_raw_nul(self):
        path = self.file(trace(x("a\0b")))
        self.report(path, COMPLETE, {"control_character": 1}, {"scope": 1})
        self.assertEqual(self.names(path), ["a\0b"])

    def test_unescaped_quotes(self):
        bad = {
            "in a name": x('run "inner" part'),
            "in a name, with a comma": x('f("x", "y")'),
            "in a name, with braces": x('f({"x": {"y": 1}})'),
            "in arguments": x(args='{"note":"say "hello" twice","other":1}'),
            "at the end of a name": x('run "'),
            "at the start of a name": x('"run'),
        }
        for what, record in bad.items():
            for records, kept in (([x("before"), record, x("after")], ["before", "after"]),
                                  ([record, x("after")], ["after"]),
                                  ([x("before"), record], ["before"]),
                                  ([x("b"), record, record, x("a")], ["b", "a"]),
                                  ([x("b"), record, x("m"), record, x("a")], ["b", "m", "a"])):
                path = self.file(trace(*records))
                report = self.report(path, LOSSY)
                lost = len(records) - len(kept)
                self.assertEqual(report.problems().get("record_skipped"), lost, what)
                self.assertEqual(sorted(self.names(path)), sorted(kept), what)
                at = path.read_text().index(record)
                self.strict(path, at, at + len(record))

    def test_unescaped_quote_on_one_line(self):
        path = self.file(trace(x("before"), x('run "inner" part'), x("after"), between=", "))
        self.report(path, LOSSY, {"record_skipped": 1}, {"scope": 2})

    def test_commas_too_many(self):
        for text, count in (
                (trace(x("a") + ",", x("b") + ","), 2),
                ("[" + x("a") + ",," + x("b") + "]", 1),
                ("[,,," + x("a") + "," + x("b") + ",,]", 5),
                ("{," + '"traceEvents":[' + x("a") + "," + x("b") + "],}", 2),
                (trace(x("a", args='{,"q":1,,"r":[1,,2,],}'), x("b")), 5)):
            path = self.file(text)
            report = self.report(path, COMPLETE, None, {"scope": 2})
            self.assertEqual(report.problems(), {"comma_repaired": count}, text)
            self.strict(path, 0, len(text))

    def test_commas_too_few(self):
        for text, count in (
                (trace(x("a"), x("b"), between="\n"), 1),
                (trace(x("a"), x("b"), between=""), 1),
                (trace(x("a").replace(',"pid"', ' "pid"'), x("b")), 1),
                (trace(x("a", args='{"q":[1 2],"r":"s" "t":3}'), x("b")), 2)):
            path = self.file(text)
            report = self.report(path, COMPLETE, None, {"scope": 2})
            self.assertEqual(report.problems(), {"comma_repaired": count}, text)

    def test_a_comma_between_documents_members_is_missing(self):
        path = self.file('{"schemaVersion":1 "traceEvents":[' + x() + '] "displayTimeUnit":"ms"}')
        self.report(path, COMPLETE, {"comma_repaired": 2}, {"scope": 1})

    def test_numbers_that_are_not_json(self):
        # The plain meaning or a counted absence; never another number.
        for text, ns in (("+10", 10000), ("010", 10000), (".5", 500), ("5.", 5000),
                         ("1e1", 10000), ("1E+1", 10000), ("10.0e-1", 1000), ("-0", 0)):
            path = self.file(trace(kernel("k", "1", text)))
            report = Report(path)
            total = self.device(report)["kernel_sum"]
            self.assertTrue(total == ns or (total == 0 and report.code == LOSSY),
                            f"{text}: {total} ns, exit code {report.code}")
        for text in ("--5", "1.2.3", "1e", "0x", "5us", "1,5", "e5", "-", ".", "1_000"):
            path = self.file(trace(kernel("bad", "0", text), kernel("good", "20", "4")))
            report = Report(path)
            self.assertEqual(report.code, LOSSY, f"{text}: {report.quality['problems']}")
            self.assertEqual(sum(row["total"] or 0 for row in report.kernels), 4000, text)

    def test_numbers_in_strings(self):
        path = self.file(trace(kernel("k", '"1.5e3"', '" 2.5 "')))
        self.report(path, COMPLETE, {})
        (event,) = dump.events(path)
        self.assertEqual((event.start, event.end), (1500000, 1502500))

    def test_below_one_nanosecond(self):
        path = self.file(trace(kernel("k", "1.0009", "2.0009999")))
        report = self.report(path, COMPLETE, None, {"kernel": 1})
        self.assertIn("sub_nanosecond", report.problems())
        self.assertEqual(self.device(report)["kernel_sum"], 2000)

    def test_numbers_too_large(self):
        for ts in ("1e30", "9223372036854775807", "99999999999999999999999", "1e400", "-1e30"):
            path = self.file(trace(kernel("bad", ts), kernel("good", "20", "4")))
            report = self.report(path, LOSSY, None, {"kernel": 2})
            self.assertEqual(report.problems()["time_out_of_range"], 1, ts)
            self.assertEqual(self.device(report)["kernel_sum"], 4000, ts)
        path = self.file(trace(kernel("bad", "10", "1e30"), kernel("good", "20", "4")))
        report = self.report(path, LOSSY, {"time_out_of_range": 1}, {"kernel": 2})
        self.assertEqual(self.device(report)["kernel_sum"], 4000)
        # The sum leaves 64 bits, though neither part does.
        path = self.file(trace(kernel("bad", "9223372036854775", "9223372036854775")))
        self.report(path, LOSSY, {"time_out_of_range": 1}, {"kernel": 1})

    # Structure.

    def test_negative_duration(self):
        path = self.file(trace(kernel("bad", "10", "-5"), kernel("good", "20", "4")))
        report = self.report(path, LOSSY, {"negative_duration": 1}, {"kernel": 2})
        device = self.device(report)
        self.assertEqual((device["kernels"], device["kernel_sum"], device["span"]),
                         (2, 4000, 4000))

    def test_times_are_missing(self):
        absent = [kernel("bad", None), kernel("bad", "10", None), kernel("bad", None, None),
                  kernel("bad", '""'), kernel("bad", "null"), kernel("bad", "10", "null")]
        unreadable = [kernel("bad", "{}"), kernel("bad", "[1]", "5"), kernel("bad", "true"),
                      kernel("bad", '"x"'), kernel("bad", "10", '"x"')]
        for records, code, problems in ((absent, COMPLETE, {"untimed": 1}),
                                        (unreadable, LOSSY, {"unreadable_number": 1})):
            for record in records:
                path = self.file(trace(record, kernel("good", "20", "4")))
                report = self.report(path, code, problems, {"kernel": 2})
                self.assertEqual(report.quality["untimed"], 1, record)
                device = self.device(report)
                self.assertEqual((device["kernel_sum"], device["span"]), (4000, 4000), record)

    def test_ids_of_every_type(self):
        for pid in (None, "null", "{}", "[1,2]", "1.5", "true", '""', '"a b"', "-1", "1e3",
                    "18446744073709551615", "18446744073709551616", "-9223372036854775808"):
            for members in ({"pid": pid}, {"tid": pid}, {"pid": pid, "tid": pid}):
                path = self.file(trace(x("a", **members), x("b", "11", "2", **members),
                                       x("c", "30")))
                report = Report(path)
                self.assertEqual(report.events, {"scope": 3}, members)
                paths = {e.name: e.path for e in dump.events(path)}
                self.assertEqual(paths["b"], ["a"], members)

    def test_device_work_without_a_device(self):
        path = self.file(trace(x("k", cat="kernel"), x("l", cat="kernel", args="null"),
                               x("m", cat="kernel", args="[]"), x("n", cat="kernel", args='"s"')))
        report = self.report(path, COMPLETE, None, {"kernel": 4})
        self.assertEqual(sum(row["kernels"] for row in report.devices), 4)

    def test_correlation_of_every_type(self):
        launch = '"correlation":{0}'
        for first, second, linked in (("5", '"5"', 1), ("5", "5.0", 1), ("0", "0", 0),
                                      ("null", "null", 0), ("-1", "-1", 0), ('"x"', '"x"', 0)):
            path = self.file(trace(
                x("cudaLaunchKernel", cat="cuda_runtime", args="{" + launch.format(first) + "}"),
                kernel("k", "20", "5", launch.format(second))))
            report = Report(path)
            self.assertEqual(report.events, {"api": 1, "kernel": 1}, first)
            self.assertEqual(report.quality["kernels_linked"], linked, (first, second))

    def test_correlation_beyond_48_bits(self):
        path = self.file(trace(kernel("k", "10", "5", '"correlation":1152921504606846976')))
        self.report(path, LOSSY, {"correlation_range": 1}, {"kernel": 1})

    def test_arguments_of_no_interest_may_be_anything(self):
        path = self.file(trace(x(args='{"Comms Id":10159970886766084423,"n":1e999,'
                                      '"z":-123456789012345678901234567890,"e":{},"f":[],"g":null}')))
        self.report(path, COMPLETE, {}, {"scope": 1})

    def test_names_of_every_type(self):
        for name in (None, "null", "17", "{}", "[]", '""', "true"):
            path = self.file(trace(x(**{"name": name}) if name != '""' else x("")))
            report = Report(path)
            self.assertEqual(report.events, {"scope": 1}, name)

    def test_records_that_are_no_records(self):
        for record in ("17", '"text"', "null", "[1,2]", "true", "[]"):
            path = self.file(trace(x("a"), record, x("b")))
            self.report(path, LOSSY, {"not_an_event": 1}, {"scope": 2})
        # Some writers begin with an empty record, to have a comma before each that follows.
        path = self.file(trace("{}", x("a"), x("b")))
        self.report(path, COMPLETE, {}, {"scope": 2})

    def test_a_phase_that_does_not_exist(self):
        path = self.file(trace(x("a"), x("b", ph='"Z"'), x("c", ph="null"), x("d", ph=None)))
        report = self.report(path, LOSSY, None, {"scope": 1})
        self.assertEqual(sum(report.problems().values()), 3)

    def test_duplicate_keys(self):
        path = self.file(trace(x("a", **{"args": '{"q":1},"name":"b","ts":20'})))
        report = Report(path)
        self.assertEqual(report.events, {"scope": 1})

    def test_duplicate_rows(self):
        # Equal ranges of a thread are one inside the other, which is no fault.
        path = self.file(trace(x("a"), x("a"), kernel("k"), kernel("k")))
        report = self.report(path, COMPLETE, {"duplicate": 1, "queue_overlap": 1},
                             {"scope": 2, "kernel": 2})
        self.assertEqual(self.device(report)["kernels"], 2)

    def test_deep_nesting(self):
        for depth in (100, 2000, 200000):
            for deep in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
                path = self.file(trace(x("a"), x("deep", args='{"d":' + deep + "}"), x("b")))
                report = Report(path)
                lost = report.problems().get("record_skipped", 0)
                self.assertEqual(report.events["scope"] + lost, 3, depth)
                self.assertEqual(report.code, LOSSY if lost else COMPLETE)
        # Never closed, and outside the array of events.
        self.assertIn(Run(["report", self.file("[" * 200000)]).code, (REFUSED, LOSSY))
        path = self.file('{"other":' + "[" * 200000 + "]" * 200000 + ',"traceEvents":[' + x() + "]}")
        self.assertIn(Run(["report", path]).code, (COMPLETE, REFUSED, LOSSY))

    def test_a_name_of_a_megabyte(self):
        name = "n" * (1 << 20)
        path = self.file(trace(kernel("k"), kernel(name, "20"), kernel("l", "30")))
        report = self.report(path, COMPLETE, {}, {"kernel": 3})
        self.assertIn(name, {row["name"] for row in report.kernels})

    def test_arguments_of_three_megabytes(self):
        path = self.file(trace(x("a", args='{"q":[' + ",".join(["12345678"] * 350000) + "]}"),
                               x("b")))
        self.report(path, COMPLETE, {}, {"scope": 2})

    def test_white_space_of_every_kind(self):
        text = trace(x("a"), x("b")).replace(",", " \r\n\t,\r\n \t").replace(":", " : ")
        self.report(self.file(" \n\t\r" + text + "\r\n "), COMPLETE, {}, {"scope": 2})

    def test_events_twice(self):
        # JSON leaves open what two members of one name mean: neither is dropped in silence.
        path = self.file('{"traceEvents":[' + x("a") + '],"traceEvents":[' + x("b") + "]}")
        report = Report(path)
        self.assertTrue(report.events == {"scope": 2} or report.code == LOSSY, report.events)

    def test_after_the_end(self):
        for tail in ("garbage", "}", "]", '{"traceEvents":[' + x("c") + "]}", "\0x"):
            path = self.file(trace(x("a"), x("b")) + tail)
            report = self.report(path, LOSSY, {"trailing_data": 1}, {"scope": 2})
            end = len(trace(x("a"), x("b")))
            self.assert_offset(report.first("trailing_data"), end, end + 1)

    def test_zeros_after_the_end_are_padding(self):
        path = self.file(trace(x("a"), x("b")) + "\0" * 512)
        self.report(path, COMPLETE, {}, {"scope": 2})

    def test_the_last_bracket_is_missing(self):
        # The array form may end so by its own rules; the object form may not.
        for text in ("[" + x("a") + "," + x("b"), "[" + x("a") + ",\n" + x("b") + ",\n"):
            self.report(self.file(text), COMPLETE, {}, {"scope": 2})
        for text in ('{"traceEvents":[' + x("a") + "," + x("b") + "]",
                     '{"traceEvents":[' + x("a") + "," + x("b")):
            report = self.report(self.file(text), LOSSY, {"truncated": 1}, {"scope": 2})
            self.assert_offset(report.first("truncated"), len(text.rstrip()), len(text))

    def test_begin_and_end(self):
        records = [x("o", "10", None, ph='"B"'), x("i", "20", None, ph='"B"'), x("x", "21", "2"),
                   x("i", "25", None, ph='"E"').replace('"name":"i",', ""), x("o", "30", None, ph='"E"'),
                   x("far", "15", None, ph='"B"', tid="2"), x("far", "40", None, ph='"E"', tid="2")]
        path = self.file(trace(*records))
        report = Report(path)
        self.assertEqual(report.events, {"scope": 4})
        times = {e.name: (e.start, e.end) for e in dump.events(path)}
        self.assertEqual(times, {"o": (10000, 30000), "i": (20000, 25000), "x": (21000, 23000),
                                 "far": (15000, 40000)})
        paths = {e.name: e.path for e in dump.events(path)}
        self.assertEqual(paths["x"], ["o", "i"])

    def test_an_end_of_another_name_ends_nothing(self):
        path = self.file(trace(x("a", "10", None, ph='"B"'), x("b", "20", None, ph='"E"'),
                               x("a", "30", None, ph='"E"')))
        self.report(path, LOSSY, {"end_without_begin": 1}, {"scope": 1})
        (event,) = dump.events(path)
        self.assertEqual((event.start, event.end), (10000, 30000))

    def test_instants_and_counters(self):
        path = self.file(trace(
            x("mark", "10", None, ph='"i"', s='"t"'), x("old mark", "11", None, ph='"I"'),
            x("load", "12", None, ph='"C"', args='{"value":3.5}')))
        report = self.report(path, COMPLETE, {})
        self.assertEqual(report.events.get("counter"), 1)
        self.assertEqual(sum(report.events.values()), 3)
        self.assertTrue(all(e.start == e.end for e in dump.events(path)))

    def test_members_sorted_by_name(self):
        # As json.dump(..., sort_keys=True) writes them: args stand before the phase.
        records = [x("load", "12", None, ph='"C"', args='{"value":3.5,"device":2,"other":"4"}'),
                   kernel("k", "20", "5", '"correlation":7,"grid":[2,3,4]'),
                   x("launch", "10", "3", "cuda_runtime", args='{"correlation":7}')]
        path = self.file(trace(*(json.dumps(json.loads(record), sort_keys=True)
                                 for record in records)))
        report = self.report(path, COMPLETE, {}, {"api": 1, "kernel": 1, "counter": 3})
        self.assertEqual(report.quality["kernels_linked"], 1.0)
        self.assertEqual({e.name: e.value for e in dump.events(path) if e.kind == "counter"},
                         {"load": 3.5, "load.device": 2, "load.other": 4})

    def test_counters_without_a_value(self):
        for args in (None, "{}", "[1]", "null", "5"):
            path = self.file(trace(x("c", "12", None, ph='"C"', args=args), x("a")))
            self.report(path, LOSSY, {"missing_field": 1}, {"scope": 1})
        path = self.file(trace(x("c", "12", None, ph='"C"', args='{"a":"x","b":2}'), x("a")))
        self.report(path, LOSSY, {"unreadable_number": 1}, {"scope": 1, "counter": 1})

    def test_numbers_as_floating_point(self):
        # Files that went through a program which knows only floating point.
        path = self.file(trace(
            x("cudaMemcpyAsync", "10", "3", "cuda_runtime", args='{"correlation":7.0}'),
            x("Memcpy HtoD", "20.0", "5.0", "gpu_memcpy", pid="0.0", tid="7.0",
              args='{"device":0.0,"stream":7.0,"correlation":7.0,"bytes":4096.0}'),
            x("Memcpy HtoD", "30.0", "5.0", "gpu_memcpy", pid="0", tid="7",
              args='{"device":0,"stream":7,"correlation":8,"bytes":1e3}')))
        report = self.report(path, COMPLETE, {}, {"api": 1, "copy": 2})
        self.assertEqual(self.device(report)["copy_bytes"], 5096)
        queues = [lane for lane in report.trace["lanes"] if lane["type"] == "queue"]
        self.assertEqual(len(queues), 1)

    def test_bytes_that_are_none(self):
        for size in ("-5", "1e30", '"x"', "N/A", "1.5"):
            path = self.file(trace(
                x("Memcpy", "20", "5", "gpu_memcpy", args=f'{{"device":0,"bytes":{size}}}')))
            report = self.report(path, LOSSY, None, {"copy": 1})
            self.assertIsNone(self.device(report)["copy_bytes"])

    def test_only_steps(self):
        path = self.file(trace(*(x(f"ProfilerStep#{n}", str(10 * n), "9", "user_annotation")
                                 for n in range(5))))
        report = self.report(path, COMPLETE, {}, {"scope": 5})
        self.assertEqual((report.devices, report.kernels), ([], []))

    def test_base_time_as_text(self):
        path = self.file('{"baseTimeNanoseconds":"1712195490000000000","traceEvents":['
                         + kernel("k", "1000.001") + "]}")
        self.report(path, COMPLETE, {})
        (event,) = dump.events(path)
        self.assertEqual(event.start, 1712195490001000001)

    def test_base_time_that_is_none(self):
        for base in ("null", '"x"', "{}", "1e30", "-5"):
            path = self.file('{"baseTimeNanoseconds":' + base + ',"traceEvents":['
                             + kernel("k", "10") + "]}")
            report = Report(path)
            self.assertEqual(self.device(report)["kernel_sum"], 5000, base)

    def test_metadata_of_the_wrong_shape(self):
        path = self.file('{"deviceProperties":{"id":0},"distributedInfo":[1],"schemaVersion":{},'
                         '"displayTimeUnit":7,"traceEvents":[' + kernel() + "]}")
        self.report(path, COMPLETE, None, {"kernel": 1})
        path = self.file('{"deviceProperties":[7,null,{"id":"0"},{"name":3}],"distributedInfo":'
                         '{"rank":"3","world_size":-1},"traceEvents":[' + kernel() + "]}")
        self.report(path, COMPLETE, None, {"kernel": 1})

    # The whole file.

    def test_nothing_to_read(self):
        for data in (b"", b" \n\t ", b"null", b"17", b'"text"', b"true", b"{}", b'{"a":1}',
                     b'{"traceEvents":null}', b'{"traceEvents":{}}', b'{"traceEvents":7}', b"hello",
                     b"\0" * 100, b"<xml/>", b"{'traceEvents':[]}"):
            run = self.refused(self.file(data, "odd.json"))
            self.assertIn("odd.json", run.err, data)
        self.assertIn("empty", self.refused(self.file(b"", "odd.json")).err)

    def test_an_empty_array_is_a_trace(self):
        report = self.report(self.file("[]"), COMPLETE, {}, {})
        self.assertEqual(report.devices, [])

    def test_no_such_file_or_a_folder(self):
        self.refused("/no/such/file.json", "/no/such/file.json")
        self.assertIn(Run(["report", CASES.parent / "empty" / ".."]).code, (REFUSED,))

    def test_byte_order_marks(self):
        text = trace(x("a"), x("b"))
        self.report(self.file(codecs.BOM_UTF8 + text.encode()), COMPLETE, None, {"scope": 2})
        for encoded in (codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
                        codecs.BOM_UTF16_BE + text.encode("utf-16-be")):
            self.refused(self.file(encoded, "wide.json"), "wide.json", "UTF-16")

    def test_gzip(self):
        text = trace(*(x(f"n{n}", str(10 * n)) for n in range(50))).encode()
        third = len(text) // 3
        members = (gzip.compress(text[:third]) + gzip.compress(text[third:2 * third])
                   + gzip.compress(text[2 * third:]))
        self.report(self.file(members, "t.gz"), COMPLETE, {}, {"scope": 50})
        self.report(self.file(gzip.compress(text), "named.json"), COMPLETE, {}, {"scope": 50})
        with_empty = gzip.compress(b"") + gzip.compress(text) + gzip.compress(b"")
        self.report(self.file(with_empty, "t.gz"), COMPLETE, {}, {"scope": 50})
        self.report(self.file(gzip.compress(text) + b"\0" * 700, "t.gz"), COMPLETE, {},
                    {"scope": 50})
        self.refused(self.file(gzip.compress(b""), "t.gz"), "empty")

    def test_gzip_that_is_damaged(self):
        text = trace(*(x(f"n{n}", str(10 * n)) for n in range(50))).encode()
        whole = gzip.compress(text, mtime=0)
        report = Report(self.file(whole + b"garbage", "t.gz"))
        self.assertEqual((report.code, report.events), (LOSSY, {"scope": 50}))
        for size in (1, 2, 5, 9):
            self.refused(self.file(whole[:size], "t.gz"))
        wrong_sum = bytearray(whole)
        wrong_sum[-6] ^= 1
        run = Run(["report", self.file(bytes(wrong_sum), "t.gz")])
        self.assertIn(run.code, (REFUSED, LOSSY), "a wrong checksum is no complete answer")
        for at in range(12, len(whole) - 8, 7):
            flipped = bytearray(whole)
            flipped[at] ^= 0x10
            try:
                if gzip.decompress(bytes(flipped)) == text:
                    continue  # a bit that means nothing
            except (OSError, EOFError, zlib.error):
                pass
            run = Run(["report", self.file(bytes(flipped), "t.gz")])
            self.assertIn(run.code, (REFUSED, LOSSY), f"bit flipped in byte {at}")

    def test_zip(self):
        def archive(method, *names):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", method) as packed:
                for name in names:
                    packed.writestr(name, trace(x("a"), x("b")))
            return out.getvalue()

        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.report(self.file(archive(method, "t.json"), "t.zip"), COMPLETE, {}, {"scope": 2})
            self.refused(self.file(archive(method, "a.json", "b.json"), "t.zip"), "t.zip")
            self.refused(self.file(archive(method), "t.zip"), "t.zip")

    def test_cut_at_every_byte(self):
        records = [x("a"), kernel("k", "20"), x("b \u00e9 \\n", "30", args='{"q":[1,{"r":"s"}]}'),
                   x("c", "40.125", "1e1")]
        data = trace(*records).encode()
        ends, at = [], 0
        for record in records:
            at = data.index(record.encode(), at) + len(record.encode())
            ends.append(at)
        for size in range(len(data) + 1):
            run = Run(["report", self.file(data[:size]), "--format", "json", "--tool", "summary"])
            whole = sum(end <= size for end in ends)
            if size >= len(data.rstrip()):
                self.assertEqual(run.code, COMPLETE, size)
            elif whole == 0:
                self.assertIn(run.code, (REFUSED, LOSSY), f"cut at {size}: {run.err}")
            else:
                self.assertEqual(run.code, LOSSY, f"cut at {size}: {run.err}")
            if run.code != REFUSED:
                events = json.loads(run.text)["trace"]["events"]
                self.assertEqual(sum(events.values()), whole, f"cut at {size}")

    def test_a_byte_changed_anywhere_never_ends_in_a_crash(self):
        data = trace(x("a"), kernel("k", "20"), x("b", "30", args='{"q":[1,{"r":"s"}]}')).encode()
        for at in range(len(data)):
            for byte in b'"{,\\\x00\xff':
                changed = data[:at] + bytes([byte]) + data[at + 1:]
                run = Run(["report", "-", "--tool", "summary"], stdin=changed)
                self.assertIn(run.code, (COMPLETE, REFUSED, LOSSY), f"{chr(byte)!r} at {at}")

    def test_standard_input_gives_the_same(self):
        data = trace(x("a"), kernel("k", "20")).encode()
        for form in (data, gzip.compress(data)):
            report = Report("-", stdin=form)
            self.assertEqual((report.code, report.events), (COMPLETE, {"scope": 1, "kernel": 1}))


if __name__ == "__main__":
    unittest.main()
