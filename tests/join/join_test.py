#!/usr/bin/env python3
"""pastaprof join: reports about ranks that were analysed apart say what one session over all says."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = os.environ.get("PASTAPROF", str(SOURCE / "build" / "release" / "src" / "cli" / "pastaprof"))
RANKS = sorted((SOURCE / "tests" / "traces" / "param" / "dlrm_8rank").glob("*.json.gz"))
TOOLS = ("summary", "kernels", "operators", "overlap", "iterations", "patterns")
QUANTILES = {"median", "p95"}

# Two processes whose ordinals are equal, work without times, and a name only one of them has.
SMALL = """pasta-text 1
process P1 id={pid} rank={rank} name="python"
device D1 process=P1 ordinal=0 type=gpu name="Some GPU"
lane L1 queue process=P1 device=D1 id=7 name="stream 7"
lane L2 queue process=P1 device=D1 id=8 name="stream 8"
lane T1 thread process=P1 id=42 name="python"
frame F1 "aten::mm" operator
kernel untimed L1 "gemm" correlation=P1:3 scope=F1
scope 0 {op} T1 "aten::mm" operator
kernel 40 {end} L1 "gemm" correlation=P1:1 scope=F1 flags=linked
kernel 60 190 L2 "ncclAllReduce"
kernel 200 210 L1 "only_{rank}"
"""


def run(*arguments, code=0, folder=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          cwd=folder, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done


def documents(folder, paths, options=()):
    """The report of one session, and that joined of the reports of each path alone."""
    options = [word for tool in TOOLS for word in ("--tool", tool)] + [
        "--opt", "operators.min_share=0", "--format", "json", *options]
    session = json.loads(run("report", *paths, *options, folder=folder).stdout)
    answers = []
    for number, path in enumerate(paths):
        answers.append(folder / f"{number}.json")
        run("report", path, *options, "-o", answers[-1], "-f", folder=folder)
    joined = folder / "joined.json"
    run("join", *answers, "--format", "json", "-o", joined, "-f", folder=folder)
    return session, json.loads(joined.read_text()), answers


def parts(document, tool):
    return next(report["parts"] for report in document["reports"] if report["tool"] == tool)


def rows(document, tool, ident):
    """Rows as dictionaries."""
    for part in parts(document, tool):
        if part["type"] == "table" and part["id"] == ident:
            names = [column["name"] for column in part["columns"]]
            return [dict(zip(names, row)) for row in part["rows"]]
    raise AssertionError(f"no table {ident} of {tool}")


class Join(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def check(self, session, joined):
        for tool in ("summary", "operators", "overlap"):
            self.assertEqual(parts(joined, tool), parts(session, tool), tool)
        self.check_repetition(session, joined)
        own = rows(joined, "kernels", "kernels")
        whole = rows(session, "kernels", "kernels")
        self.assertEqual([row["name"] for row in own], [row["name"] for row in whole])
        unknown = 0
        for row, expected in zip(own, whole):
            for column, value in expected.items():
                if row[column] is None and value is not None:
                    unknown += 1
                    self.assertIn(column, QUANTILES | {"mean"})
                else:
                    self.assertEqual(row[column], value, (row["name"], column))
        for key in ("events", "lanes", "devices"):
            self.assertEqual(sorted(map(json.dumps, joined["trace"][key])),
                             sorted(map(json.dumps, session["trace"][key])), key)
        quality = joined["trace"]["quality"]
        self.assertEqual(quality["kernels_linked"], session["trace"]["quality"]["kernels_linked"])
        self.assertEqual(quality["untimed"], session["trace"]["quality"]["untimed"])
        # Whether clocks can be compared is asked only where several are merged.
        self.assertEqual(quality["problems"],
                         [row for row in session["trace"]["quality"]["problems"]
                          if row["reason"] != "clock_unaligned"])
        return unknown

    def check_repetition(self, session, joined):
        """When the trace of a rank began is not in its report: nor are places on a common axis."""
        self.assertEqual(parts(joined, "patterns"), parts(session, "patterns"))
        whole = [part for part in parts(session, "iterations") if part["type"] != "series"]
        for part in whole:
            if part["type"] == "table" and part["id"] == "iterations":
                names = [column["name"] for column in part["columns"]]
                for row in part["rows"]:
                    row[names.index("start")] = row[names.index("end")] = None
        self.assertEqual(parts(joined, "iterations"), whole)

    def loop(self, rank, iterations):
        """A loop of 60 launches, of which each first one is a copy from the host."""
        lines = [SMALL.split("scope")[0].split("kernel untimed")[0].format(pid=rank, rank=rank)]
        at, number = 1000 * rank, 0
        for _ in range(iterations):
            for step in range(60):
                number += 1
                lines.append(f'api {at} {at + 3} T1 "cudaLaunchKernel" runtime correlation=P1:{number}\n')
                work = f"correlation=P1:{number} flags=linked\n"
                lines.append(f'copy {at + 5} {at + 9} L1 "Memcpy HtoD" direction=host_to_device {work}'
                             if step == 0 else f'kernel {at + 5} {at + 9} L1 "k{step % 13}" {work}')
                at += 10
            at += 100 * (rank + 1)
        path = self.folder / f"loop_rank{rank}.txt"
        path.write_text("".join(lines))
        return path

    def test_iterations_and_patterns_of_ranks(self):
        paths = [self.loop(2, 8), self.small(3), self.loop(11, 12)]
        session, joined, answers = documents(self.folder, paths)
        self.check(session, joined)
        counts = {row["process"]: row["iterations"] for row in rows(joined, "iterations", "steady")}
        self.assertEqual(counts, {"rank 2": 8, "rank 11": 12})
        run("join", *answers[:2], "--format", "json", "-o", "left.json", folder=self.folder)
        again = json.loads(run("join", "left.json", answers[2], "--format", "json",
                               folder=self.folder).stdout)
        for tool in ("iterations", "patterns"):
            self.assertEqual(parts(again, tool), parts(joined, tool))

    def small(self, rank, op=100, end=50):
        path = self.folder / f"rank{rank}.txt"
        path.write_text(SMALL.format(pid=100 + rank, rank=rank, op=op, end=end))
        return path

    def test_two_ranks_of_a_real_job(self):
        session, joined, _ = documents(self.folder, RANKS)
        self.assertEqual(len(RANKS), 2)
        self.check(session, joined)
        for row in rows(joined, "kernels", "kernels"):
            with_median = row["median"] is not None
            self.assertEqual(with_median, row["ranks"] == 1, row["name"])
            self.assertIsNotNone(row["mean"])
        slowest = next(row for row in rows(joined, "kernels", "kernels")
                       if row["name"].startswith("ncclKernel_SendRecv"))
        self.assertEqual(slowest["slowest_rank"], "rank 1")
        self.assertEqual((slowest["rank_min_total"], slowest["rank_max_total"]), (389000, 9506000))

    def test_work_without_times(self):
        session, joined, _ = documents(self.folder, [self.small(3), self.small(11, op=300, end=900)])
        self.assertEqual(self.check(session, joined), 6, "mean, median and p95 of gemm and "
                         "ncclAllReduce: reports do not say how many calls have times")
        names = [row["device"] for row in rows(joined, "summary", "devices")]
        self.assertEqual(names, ["rank 3 gpu 0", "rank 11 gpu 0"])

    def test_joined_answers_join_again(self):
        paths = [self.small(rank, op=100 + rank, end=50 + rank) for rank in range(4)]
        session, joined, answers = documents(self.folder, paths)
        self.check(session, joined)
        run("join", *answers[:2], "--format", "json", "-o", "left.json", folder=self.folder)
        run("join", *answers[2:], "--format", "json", "-o", "right.json", folder=self.folder)
        again = json.loads(run("join", "left.json", "right.json", "--format", "json",
                               folder=self.folder).stdout)
        self.assertEqual(again["reports"], joined["reports"])

    def test_labels(self):
        paths = [self.small(5), self.folder / "other.txt"]
        paths[1].write_text(paths[0].read_text())
        for number, path in enumerate(paths):
            run("report", path, "--format", "json", "-o", f"{number}.json", folder=self.folder)
        refused = run("join", "0.json", "1.json", code=2, folder=self.folder)
        self.assertIn("0.json and 1.json both say they are rank 5", refused.stderr)
        text = run("join", "0.json", "1.json", "--label", "old,new", folder=self.folder).stdout
        self.assertIn("new gpu 0", text)

    def test_what_does_not_fit_is_refused_by_name(self):
        a, b = self.small(0), self.small(1)

        def answer(name, path, *options):
            run("report", path, "--format", "json", "-o", name, *options, folder=self.folder)
            return name

        first = answer("a.json", a, "--tool", "kernels")
        cases = [
            (answer("b.json", b, "--tool", "summary"), 1, "b.json has no report of tool kernels"),
            (answer("c.json", b, "--tool", "kernels", "--opt", "top=1"), 1, "rank 1: the report of kernels is "
                                                                         "not whole"),
            (answer("d.json", b, "--tool", "kernels", "--from", "10ns"), 1, "d.json is about"),
            (b, 1, "rank1.txt: "),
            ("nothing.json", 1, "nothing.json"),
        ]
        for path, code, message in cases:
            done = run("join", first, path, code=code, folder=self.folder)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_an_incomplete_answer_stays_incomplete(self):
        case = SOURCE / "tests" / "cases" / "10-truncated-in-string.json"
        run("report", case, "--format", "json", "-o", "a.json", code=3, folder=self.folder)
        done = run("join", "a.json", code=3, folder=self.folder)
        self.assertIn("truncated", done.stderr)


if __name__ == "__main__":
    unittest.main()
