#!/usr/bin/env python3
"""A folder, or several files, is a job of ranks; merge keeps it as one file that says the same."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = os.environ.get("PASTAPROF", str(SOURCE / "build" / "release" / "src" / "cli" / "pastaprof"))
RANKS = sorted((SOURCE / "tests" / "traces" / "param" / "dlrm_8rank").glob("*.json.gz"))
CASES = SOURCE / "tests" / "cases"

# A process that has the number that all have in containers, a device that has the ordinal that all
# have, a launch that has the number that all have.
TEXT = """pasta-text 1
process P1 id=1 {process}
device D1 process=P1 ordinal=0 type=gpu name="Some GPU"
lane T1 thread process=P1 id=1
lane L1 queue process=P1 device=D1 id=7
api 0 10 T1 "cudaLaunchKernel" runtime correlation=P1:5
kernel 20 {end} L1 "{kernel}" correlation=P1:5 flags=linked
"""


def text(kernel="gemm", end=50, process=""):
    return TEXT.format(kernel=kernel, end=end, process=process)


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.job = self.folder / "job"
        self.job.mkdir()

    def run_it(self, *arguments, code=0, stdin=None):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, input=stdin,
                              timeout=120, cwd=self.folder, check=False)
        if done.returncode != code:
            raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stderr.decode()}")
        return done.stdout, done.stderr.decode()

    def put(self, name, content):
        path = self.job / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    def report(self, *arguments, code=0):
        out, err = self.run_it("report", *arguments, "--format", "json", code=code)
        return json.loads(out), err

    def labels(self, *arguments):
        return [source["label"] for source in self.report(*arguments)[0]["trace"]["sources"]]


class WhatIsInAFolder(Folder):
    def test_traces_are_taken_and_the_rest_is_named(self):
        self.put("rank0.txt", text())
        self.put("deep/er/rank1.txt", text())
        self.put("README.md", "# Notes\n")
        self.put("config.json", '{"lr": 0.1, "note": "traceEvents"}')
        self.put("shot.png", b"\x89PNG\r\n\x1a\n")
        self.put("empty.json", "")
        self.put(".hidden.txt", text())
        self.put(".cache/rank7.txt", text())
        document, err = self.report("job")
        self.assertEqual([s["path"] for s in document["trace"]["sources"]],
                         ["job/deep/er/rank1.txt", "job/rank0.txt"])
        self.assertEqual(err.count("\n"), 1, err)
        for name in ("README.md", "config.json", "shot.png", "empty.json", "4 files"):
            self.assertIn(name, err)
        self.assertNotIn("hidden", err)

    def test_numbers_in_names_count_as_numbers(self):
        for rank in (10, 2, 0, 1):
            self.put(f"rank{rank}.txt", text())
        self.assertEqual(self.labels("job"), ["rank 0", "rank 1", "rank 2", "rank 10"])

    def test_a_trace_whose_events_come_late_is_one(self):
        shutil.copy(CASES / "47-metadata-first.json", self.job / "rank0.json")
        self.put("rank1.json", '{"traceEvents": []}')
        self.assertEqual(self.labels("job"), ["rank 0", "rank 1"])

    def test_without_any_trace_it_is_refused(self):
        out, err = self.run_it("report", "job", code=1)
        self.assertEqual(out, b"")
        self.assertIn("empty folder", err)
        self.put("notes.md", "nothing")
        self.assertIn("notes.md", self.run_it("report", "job", code=1)[1])

    def test_a_link_does_not_make_a_rank_twice(self):
        (self.job / "latest.txt").symlink_to(self.put("rank0.txt", text()))
        (self.job / "loop").symlink_to(self.job)
        document, _ = self.report("job")
        self.assertEqual(len(document["trace"]["sources"]), 1)

    def test_a_file_twice_is_refused_whatever_it_is_called(self):
        self.put("rank0.txt", text())
        self.assertIn("given twice", self.run_it("report", "job/rank0.txt", "./job/rank0.txt", code=2)[1])

    def test_a_folder_of_one_trace_is_that_trace(self):
        path = self.put("trace.txt", text())
        self.assertEqual(self.report("job")[0], self.report(path.relative_to(self.folder))[0])


class WhichRank(Folder):
    def test_by_name(self):
        names = {"rank3.txt": 3, "run_rank_4.txt": 4, "Rank-5.dump": 5, "worker6.pt.trace.txt": 6,
                 "step9-r7.txt": 7, "local_rank0.rank8.txt": 8, "rank=9.txt": 9, "node1/rank10/trace.txt": 10}
        for name in names:
            self.put(name, text())
        document, _ = self.report("job")
        found = {s["path"][len("job/"):]: s["rank"] for s in document["trace"]["sources"]}
        self.assertEqual(found, names)

    def test_of_a_number_of(self):
        for name in ("t_0of2.txt", "t_1of2.txt"):
            self.put(name, text())
        self.assertEqual(self.labels("job"), ["rank 0", "rank 1"])
        (self.job / "t_0of2.txt").rename(self.job / "t_2of2.txt")
        self.assertEqual(self.labels("job"), ["rank 0", "rank 1"])

    def test_the_file_knows_better_than_its_name(self):
        self.put("rank1.txt", text(process="rank=0"))
        self.put("rank0.txt", text(process="rank=1"))
        document, _ = self.report("job")
        self.assertEqual([s["rank"] for s in document["trace"]["sources"]], [1, 0])

    def test_what_nothing_says_is_asked_for(self):
        for name in ("host_4711.txt", "host_4712.txt"):  # process ids are no ranks
            self.put(name, text())
        out, err = self.run_it("report", "job", code=2)
        self.assertEqual(out, b"")
        for word in ("job/host_4711.txt", "job/host_4712.txt", "--label", "rank3"):
            self.assertIn(word, err)
        self.assertEqual(err.count("\n"), 1, err)
        document, _ = self.report("job", "--label", "rank 1,rank 0")
        self.assertEqual([s["rank"] for s in document["trace"]["sources"]], [1, 0])
        self.assertEqual(self.report("job", "--label", "rank 1,rank 0", "--rank", "1")[0]["trace"]["filter"],
                         "rank 1")
        self.assertIn("job/host_4711.txt", self.run_it("report", "job", "--label", "x", code=2)[1])
        # Files that were named need not be ranks of a job.
        self.assertEqual(self.labels("job/host_4711.txt", "job/host_4712.txt"), ["host_4711.txt", "host_4712.txt"])

    def test_two_of_one_rank_are_refused_or_told_apart(self):
        paths = [CASES / "30-same-rank-a.json", CASES / "30-same-rank-b.json"]
        for path in paths:
            shutil.copy(path, self.job)
        for verb in (["report", "job"], ["merge", "job", "-o", "m.pasta"]):
            err = self.run_it(*verb, code=2)[1]
            for path in paths:
                self.assertIn(path.name, err)
        self.assertFalse((self.folder / "m.pasta").exists())
        document, _ = self.report("job", "--label", "a,b", "--tool", "kernels")
        part = next(p for p in document["reports"][0]["parts"] if p["id"] == "kernels")
        total = [c["name"] for c in part["columns"]].index("total")
        self.assertEqual(sum(row[total] for row in part["rows"]), 13_000)
        self.put("x/rank5_before.txt", text())
        self.put("x/rank5_after.txt", text())
        err = self.run_it("report", "job/x", code=2)[1]
        for word in ("rank5_before.txt", "rank5_after.txt", "by their names", "--label"):
            self.assertIn(word, err)


class NothingCollides(Folder):
    def test_equal_processes_devices_and_correlations(self):
        self.put("hostA/rank0.txt", text("ours", 50))
        self.put("hostB/rank1.txt", text("theirs", 70))
        self.run_it("merge", "job", "-o", "m.pasta")
        self.run_it("export", "job/hostB/rank1.txt", "-o", "b.pasta")
        self.run_it("export", "job/hostA/rank0.txt", "-o", "a.pasta")
        self.run_it("merge", "a.pasta", "b.pasta", "-o", "ab.pasta", "--label", "rank 0,rank 1")
        for traces in (["job"], ["m.pasta"], ["ab.pasta"]):
            document, _ = self.report(*traces, "--tool", "summary", "--tool", "launches")
            self.assertEqual([d["id"] for d in document["trace"]["devices"]], ["rank 0 gpu 0", "rank 1 gpu 0"])
            dump = self.run_it("dump", *traces)[0].decode()
            launches = re.findall(r'^api .* correlation=(\S+)', dump, re.M)
            work = dict(re.findall(r'^kernel .* "(ours|theirs)" correlation=(\S+)', dump, re.M))
            self.assertEqual(len(set(launches)), 2)
            self.assertEqual(set(launches), set(work.values()))
            self.assertEqual(len(re.findall(r"^process ", dump, re.M)), 2)

    def test_one_gpu_of_two_ranks_is_one_device(self):
        # CUDA_VISIBLE_DEVICES makes one GPU number 0 of one rank and number 1 of the other.
        for rank in (0, 1):
            self.put(f"rank{rank}.txt", text(end=50 + rank).replace(
                "process=P1 ordinal=0", f'ordinal={rank} uuid="GPU-5f9a"'))
        self.run_it("merge", "job", "-o", "m.pasta")
        for trace in ("job", "m.pasta"):
            document, _ = self.report(trace, "--tool", "summary")
            self.assertEqual(len(document["trace"]["devices"]), 1)


class Clocks(Folder):
    def test_a_common_clock_where_all_have_a_base(self):
        for rank in (0, 1):
            shutil.copy(CASES / f"46-basetime-rank{rank}.json", self.job)
        self.run_it("merge", "job", "-o", "m.pasta")
        for trace in ("job", "m.pasta"):
            dump = self.run_it("dump", trace)[0].decode()
            starts = sorted(int(start) for start in re.findall(r"^kernel (\d+) ", dump, re.M))
            self.assertEqual(starts, [1712195490001000001, 1712195490001030001])
            self.assertIsNotNone(self.report(trace)[0]["trace"]["span_ns"])

    def test_else_it_is_said(self):
        shutil.copy(CASES / "46-basetime-rank0.json", self.job)
        plain = (CASES / "46-basetime-rank1.json").read_text(encoding="utf-8")
        self.put("46-basetime-rank1.json", re.sub(r',?\s*"baseTimeNanoseconds":\s*"?\d+"?', "", plain))
        self.run_it("merge", "job", "-o", "m.pasta")
        for trace in ("job", "m.pasta"):
            document, _ = self.report(trace)
            self.assertIsNone(document["trace"]["span_ns"])
            note, = [p for p in document["trace"]["quality"]["problems"] if p["reason"] == "clock_unaligned"]
            self.assertIn("rank1", note["source"])
            self.assertEqual(note["count"], 1)


def without_paths(document):
    """A report but for what says where its traces lie."""
    for source in document["trace"]["sources"]:
        source.pop("path")
    for problem in document["trace"]["quality"]["problems"]:
        problem.pop("source")
    return json.dumps(document)


class Merge(Folder):
    TOOLS = [w for row in json.loads(subprocess.run([PROGRAM, "tools", "--format", "json"], check=True,
                                                    capture_output=True).stdout)["tools"]
             if "device" not in row["needs"]  # which only live traces have
             for w in ("--tool", row["name"])]

    def check(self, *traces, code=0):
        """merge, then report, says what report says of the traces; also through text, and merged again."""
        expected = without_paths(self.report(*traces, *self.TOOLS, code=code)[0])
        self.run_it("merge", *traces, "-o", "m.pasta", "-f", code=code)
        self.run_it("merge", "m.pasta", "-o", "again.pasta", "-f", code=code)
        self.run_it("dump", *traces, "-o", "m.txt", "-f", code=code)
        for copy in ("m.pasta", "again.pasta"):
            self.assertEqual(without_paths(self.report(copy, *self.TOOLS, code=code)[0]), expected, copy)
        # A dump numbers lanes, devices and processes in the order of its lines.
        from_text = json.loads(without_paths(self.report("m.txt", *self.TOOLS, code=code)[0]))
        expected = json.loads(expected)
        for document in (from_text, expected):
            document["trace"]["lanes"].sort(key=json.dumps)
            document["trace"]["devices"].sort(key=json.dumps)
            for report in document["reports"]:
                if report["tool"] == "processes":
                    for part in report["parts"]:
                        part.get("rows", []).sort(key=json.dumps)
                report["parts"].sort(key=json.dumps)
        self.assertEqual(from_text["reports"], expected["reports"])
        self.assertEqual(from_text["trace"], expected["trace"])
        # What is kept is kept to the byte: events, their order, and whose they are.
        dump = self.run_it("dump", *traces, code=code)[0]
        event = re.compile(rb"[a-z]+ (untimed|-?\d+) ")
        events, again = ([line for line in self.run_it("dump", *paths, code=code)[0].splitlines() if event.match(line)]
                         for paths in (traces, ["m.pasta"]))
        self.assertEqual(again, events)
        self.run_it("check", "m.pasta", code=code)

    def test_real_ranks(self):
        self.assertGreater(len(RANKS), 1)
        for path in RANKS:
            shutil.copy(path, self.job)
        self.check("job")
        self.check(*RANKS)

    def test_mixed_formats_and_losses(self):
        shutil.copy(CASES / "53-collective-ids-rank0.json", self.job)
        self.run_it("export", CASES / "53-collective-ids-rank1.json", "-o", "job/rank1.pasta")
        self.put("rank2.txt", text(process="rank=2") + "kernel 10 5 L1\n")  # a line that cannot be read
        self.put("rank3.txt", (SOURCE / "tests/fuzz_seeds/text/all.txt").read_text(encoding="utf-8")
                 .replace("rank=1 ", "rank=3 "))
        self.check("job", code=3)

    def test_events_in_are_events_out_and_lost(self):
        for path in RANKS:
            shutil.copy(path, self.job)
        parts = [self.report(path)[0]["trace"] for path in RANKS]
        self.run_it("merge", "job", "-o", "m.pasta")
        merged = self.report("m.pasta")[0]["trace"]
        for kind in {kind for part in parts for kind in part["events"]}:
            self.assertEqual(merged["events"][kind], sum(part["events"].get(kind, 0) for part in parts), kind)
        self.assertEqual(merged["quality"]["lost"], sum(part["quality"]["lost"] for part in parts))

    def test_a_merged_file_beside_others(self):
        self.put("rank0.txt", text("a", 50))
        self.put("rank1.txt", text("b", 60))
        self.put("rank2.txt", text("c", 55))
        self.run_it("merge", "job/rank0.txt", "job/rank1.txt", "-o", "m.pasta")
        self.assertEqual(self.labels("m.pasta", "job/rank2.txt"), ["rank 0", "rank 1", "rank 2"])
        dump = self.run_it("dump", "m.pasta", "job/rank2.txt")[0].decode()
        self.assertEqual(re.findall(r'^kernel .* "(.)"', dump, re.M), ["a", "c", "b"])
        err = self.run_it("report", "m.pasta", "job/rank1.txt", code=2)[1]
        self.assertIn("m.pasta:job/rank1.txt and job/rank1.txt", err)
        self.assertEqual(self.labels("m.pasta", "job/rank1.txt", "--label", "old,new"),
                         ["old rank 0", "old rank 1", "new"])
        self.assertEqual(self.labels("m.pasta", "--rank", "1"), ["rank 0", "rank 1"])

    def test_nothing_is_overwritten_and_standard_output_works(self):
        self.put("rank0.txt", text())
        self.put("rank1.txt", text())
        (self.folder / "there").write_text("precious")
        self.assertIn("there", self.run_it("merge", "job", "-o", "there", code=2)[1])
        self.assertEqual((self.folder / "there").read_text(), "precious")
        out, _ = self.run_it("merge", "job", "-o", "-")
        self.assertEqual(out[:6], b"\x89PASTA")
        (self.folder / "m.pasta").write_bytes(out)
        self.assertEqual(self.labels("m.pasta"), ["rank 0", "rank 1"])
        self.run_it("merge", "job", "-o", "there", "-f")
        self.assertEqual(self.labels("there"), ["rank 0", "rank 1"])

    def test_a_cut_file_keeps_its_sources(self):
        for path in RANKS:
            shutil.copy(path, self.job)
        self.run_it("merge", "job", "-o", "m.pasta")
        whole = (self.folder / "m.pasta").read_bytes()
        (self.folder / "cut.pasta").write_bytes(whole[:len(whole) * 2 // 3])
        document, _ = self.report("cut.pasta", code=3)
        self.assertEqual([s["label"] for s in document["trace"]["sources"]], ["rank 1", "rank 7"])


if __name__ == "__main__":
    unittest.main()
