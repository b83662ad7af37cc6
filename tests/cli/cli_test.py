#!/usr/bin/env python3
"""The command line from outside: options, exit codes, refusals, files, pipes, environment.

    cli_test.py [--pastaprof PATH] [--source DIR] [unittest arguments]
"""

import csv
import gzip
import io
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import fcntl
import unittest

PROGRAM = os.environ.get("PASTAPROF")
SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])

COMPLETE, NO_ANSWER, WRONG_USAGE, INCOMPLETE = 0, 1, 2, 3


def row(name, cat, ts, dur, pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def trace(rank=None, device=0, scale=1):
    """A launch and its kernel, a copy, a second kernel: 100 us from start to end."""
    document = {"schemaVersion": 1, "traceEvents": [
        row("cudaLaunchKernel", "cuda_runtime", 1000, 10, correlation=1),
        row("gemm", "kernel", 1020, 30 * scale, 0, 7, device=device, stream=7, correlation=1),
        row("Memcpy HtoD", "gpu_memcpy", 1060, 10, 0, 7, device=device, stream=7, correlation=2, bytes=64),
        row("relu", "kernel", 1080, 20, 0, 7, device=device, stream=7, correlation=3),
    ]}
    if rank is not None:
        document["distributedInfo"] = {"rank": rank, "world_size": 2}
        document["baseTimeNanoseconds"] = 10**18
    return json.dumps(document)


BROKEN_RECORD = trace().replace('"name": "relu"', '"name": "re"lu"')
TRUNCATED = trace()[:-60]
REPAIRED = trace().replace("}}]", "}},]")


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.file("trace.json", trace())

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_it(self, *words, code=COMPLETE, stdin=b"", environment=None, **more):
        """Runs the program in the folder of the test; returns standard output and error."""
        done = subprocess.run(
            [PROGRAM, *map(str, words)], input=stdin, capture_output=True, cwd=self.folder, timeout=60,
            env={"PATH": os.environ.get("PATH", ""), **self.inherited(), **(environment or {})}, **more)
        out, err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{words}\n{out}\n{err}")
        return out, err

    @staticmethod
    def inherited():
        """What a sanitizer or a coverage build needs; nothing of PASTA's own."""
        return {k: v for k, v in os.environ.items()
                if k.endswith("SAN_OPTIONS") or k.startswith("GCOV") or k == "LD_LIBRARY_PATH"}

    def answer(self, *words, **more):
        return json.loads(self.run_it("report", "--format", "json", *words, **more)[0])

    def table(self, document, tool, table):
        for report in document["reports"]:
            for part in report["parts"]:
                if report["tool"] == tool and part.get("id") == table:
                    names = [column["name"] for column in part["columns"]]
                    return [dict(zip(names, cells)) for cells in part["rows"]]
        self.fail(f"no table {tool}.{table}")

    def kernel_names(self, *words, **more):
        document = self.answer("--tool", "kernels", *words, **more)
        return {line["name"] for line in self.table(document, "kernels", "kernels")}


class WholeProgram(CommandLine):
    def test_help_and_version_everywhere(self):
        out, err = self.run_it("--help")
        self.assertEqual(err, "")
        verbs = re.findall(r"^  ([a-z]+) ", out, re.MULTILINE)
        self.assertEqual(verbs, ["run", "report", "tools", "dump", "check", "export", "merge", "join", "doctor"])
        self.assertEqual(self.run_it("-h")[0], out)
        version = self.run_it("--version")[0]
        self.assertRegex(version, r"\Apastaprof \d+\.\d+\.\d+ \([0-9a-f]{12}|unknown commit\)\n\Z")
        for verb in verbs:
            self.assertIn(f"pastaprof {verb}", self.run_it(verb, "--help")[0])
            self.assertEqual(self.run_it(verb, "--version")[0], version)

    def test_nothing_said_is_wrong_usage_with_the_help(self):
        out, err = self.run_it(code=WRONG_USAGE)
        self.assertEqual(out, "")
        self.assertIn("report TRACE...", err)

    def test_slips_get_the_nearest_name(self):
        for words, wanted in [(["reprot"], "report"), (["dmup"], "dump"), (["exprot"], "export"),
                              (["report", "--tool", "kernel", "trace.json"], "kernels"),
                              (["tools", "sumary"], "summary"),
                              (["report", "--fromat", "json", "trace.json"], "--format"),
                              (["dump", "--stict", "trace.json"], "--strict")]:
            out, err = self.run_it(*words, code=WRONG_USAGE)
            self.assertEqual(out, "")
            self.assertIn(f"did you mean {wanted}?", err)

    def test_what_is_far_from_all_names_gets_the_list(self):
        self.assertIn("the verbs are run, report, tools, dump, check, export", self.run_it("xyzzyxyzzy", code=WRONG_USAGE)[1])
        self.assertIn("summary, kernels", self.run_it("tools", "xyzzyxyzzy", code=WRONG_USAGE)[1])

    def test_a_file_in_place_of_a_verb(self):
        self.assertIn("did you mean: pastaprof report trace.json", self.run_it("trace.json", code=WRONG_USAGE)[1])

    def test_missing_and_superfluous_operands(self):
        for verb in ["report", "dump", "check", "export"]:
            self.assertIn("TRACE is required", self.run_it(verb, code=WRONG_USAGE)[1])
        self.assertIn("one argument too many", self.run_it("tools", "summary", "kernels", code=WRONG_USAGE)[1])

    def test_an_option_without_its_value(self):
        self.assertIn("--format", self.run_it("report", "trace.json", "--format", code=WRONG_USAGE)[1])

    def test_two_dashes_end_the_options(self):
        self.file("--odd.json", trace())
        self.run_it("report", "--", "--odd.json")


class Report(CommandLine):
    def test_a_complete_answer(self):
        out, err = self.run_it("report", self.trace)
        self.assertEqual(err, "")
        self.assertIn("gemm", out)
        self.assertNotIn("\x1b", out)
        device, = self.table(self.answer(self.trace), "summary", "devices")
        self.assertEqual((device["device"], device["span"], device["busy"]), ("0", 80_000, 60_000))

    def test_formats(self):
        self.assertEqual(self.run_it("report", self.trace, "--format", "table"), self.run_it("report", self.trace))
        self.assertEqual([r["tool"] for r in self.answer(self.trace)["reports"]], ["summary", "idle", "kernels"])
        out = self.run_it("report", self.trace, "--format=csv", "--tool=kernels")[0]
        lines = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual({line["name"]: line["total"] for line in lines}, {"gemm": "30000", "relu": "20000"})
        self.assertIn("it is one of text, table, json, csv",
                      self.run_it("report", self.trace, "--format", "xml", code=WRONG_USAGE)[1])

    def test_tools_are_named_repeated_or_listed_and_run_once(self):
        for words in [["--tool", "kernels,summary"], ["-t", "kernels", "--tool=summary"],
                      ["--tool", "kernels", "--tool", "kernels,summary"]]:
            self.assertEqual([r["tool"] for r in self.answer(*words, self.trace)["reports"]], ["kernels", "summary"])

    def test_a_tool_gives_the_same_alone_and_beside(self):
        both = {r["tool"]: r for r in self.answer(self.trace)["reports"]}
        for name, report in both.items():
            self.assertEqual(self.answer("--tool", name, self.trace)["reports"], [report])

    def test_options_of_tools(self):
        by_class = self.table(self.answer(self.trace, "--opt", "kernels.group=class"), "kernels", "kernels")
        self.assertEqual(by_class, self.table(self.answer(self.trace, "--opt", "group=class"), "kernels", "kernels"))
        self.assertIn("gemm", {line["class"] for line in by_class})
        for option, wanted in [("group=fruit", "one of name, short, class, operator"),
                               ("fruit=1", "kernels.group"), ("kernels.fruit=1", "its options are"),
                               ("group", "[TOOL.]NAME=VALUE"), ("=x", "[TOOL.]NAME=VALUE"),
                               ("memory.group=name", "the tools are processes, summary, idle, kernels, operators")]:
            out, err = self.run_it("report", self.trace, "--opt", option, code=WRONG_USAGE)
            self.assertIn(wanted, err)
            self.assertEqual(out, "")

    def test_top_cuts_text_and_says_so_and_leaves_data_alone(self):
        out = self.run_it("report", self.trace, "--tool", "kernels", "--top", "1")[0]
        self.assertIn("gemm", out)
        self.assertNotIn("relu", out)
        self.assertIn("1 more row", out)
        self.assertEqual(self.kernel_names(self.trace, "--top", "1"), {"gemm", "relu"})
        self.assertIn("relu", self.run_it("report", self.trace, "--tool", "kernels", "--top", "0")[0])
        for value in ["-1", "many", "1.5", ""]:
            self.run_it("report", self.trace, f"--top={value}", code=WRONG_USAGE)

    def test_time_unit(self):
        for unit, compute in [("ns", "50,000 ns"), ("us", "50.00 us"), ("ms", "0.050 ms"), ("s", "<0.001 s")]:
            out = self.run_it("report", self.trace, "--tool", "summary", "--timeunit", unit)[0]
            self.assertRegex(out, rf"compute +{compute}\n")
        self.run_it("report", self.trace, "--timeunit", "fortnight", code=WRONG_USAGE)

    def test_width(self):
        self.file("long.json", trace().replace("gemm", "g" * 300))
        for width in [60, 100]:
            out = self.run_it("report", "long.json", "--width", width)[0]
            self.assertLessEqual(max(map(len, out.splitlines())), width)
        out = self.run_it("report", "long.json", environment={"COLUMNS": "70"})[0]
        self.assertLessEqual(max(map(len, out.splitlines())), 70)
        out = self.run_it("report", "long.json")[0]
        self.assertEqual(max(map(len, out.splitlines())), 120)
        self.run_it("report", "long.json", "--width", "0", code=WRONG_USAGE)

    def test_several_sources(self):
        self.file("r0.json", trace(0))
        self.file("r1.json", trace(1, device=1, scale=2))
        document = self.answer("r1.json", "r0.json")
        self.assertEqual([s["label"] for s in document["trace"]["sources"]], ["rank 1", "rank 0"])
        self.assertEqual({d["device"] for d in self.table(document, "summary", "devices")},
                         {"rank 0 gpu 0", "rank 1 gpu 1"})
        gemm, = [k for k in self.table(document, "kernels", "kernels") if k["name"] == "gemm"]
        self.assertEqual((gemm["calls"], gemm["total"]), (2, 90_000))

    def test_same_rank_is_refused_unless_labelled(self):
        self.file("a.json", trace(0))
        self.file("b.json", trace(0))
        out, err = self.run_it("report", "a.json", "b.json", code=WRONG_USAGE)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        for word in ["a.json", "b.json", "rank 0", "--label"]:
            self.assertIn(word, err)
        document = self.answer("a.json", "b.json", "--label", "old", "--label", "new")
        self.assertEqual({d["device"] for d in self.table(document, "summary", "devices")}, {"old gpu 0", "new gpu 0"})
        self.assertEqual(document, self.answer("a.json", "b.json", "--label=old,new"))
        self.assertIn("one for each", self.run_it("report", "a.json", "b.json", "--label", "old", code=WRONG_USAGE)[1])
        self.run_it("report", "a.json", "b.json", "--label", "x,x", code=WRONG_USAGE)

    def test_the_same_file_twice_is_refused(self):
        self.assertIn("given twice", self.run_it("report", self.trace, self.trace, code=WRONG_USAGE)[1])

    def test_clocks_that_cannot_be_compared_are_said(self):
        self.file("based.json", trace(0))
        self.file("unbased.json", trace())
        document = self.answer("based.json", "unbased.json")
        self.assertIsNone(document["trace"]["span_ns"])
        note, = [p for p in document["trace"]["quality"]["problems"] if p["reason"] == "clock_unaligned"]
        self.assertEqual(note["source"], "unbased.json")


class Filters(CommandLine):
    def test_times(self):
        for words, names in [(["--from", "50us"], {"relu"}), (["--to", "50us"], {"gemm"}),
                             (["--until", "20us"], set()), (["--to", "20001ns"], {"gemm"}),
                             (["--from", "20us", "--to", "80us"], {"gemm"}),
                             (["--from", "0.02ms", "--to", "0.080001ms"], {"gemm", "relu"}),
                             (["--from", "@1080000"], {"relu"}), (["--to", "@1080000"], {"gemm"})]:
            self.assertEqual(self.kernel_names(self.trace, *words), names, words)

    def test_the_filter_is_said_and_the_quality_is_of_all(self):
        document = self.answer(self.trace, "--from", "50us")
        self.assertIn("50 us", document["trace"]["filter"])
        self.assertEqual(document["trace"]["events"]["kernel"], 2)
        self.assertIn("50 us", self.run_it("report", self.trace, "--from", "50us")[0])

    def test_times_that_make_no_sense(self):
        for words in [["--from", "soon"], ["--from", "10 parsec"], ["--from", "@1.5"], ["--from", "@"],
                      ["--from", "1ms", "--to", "@5"], ["--from", "5ms", "--to", "5ms"]]:
            out, err = self.run_it("report", "nowhere.json", *words, code=WRONG_USAGE)
            self.assertEqual(out, "")
            self.assertIn("--", err)

    def test_device_and_rank(self):
        self.file("r0.json", trace(0))
        self.file("r1.json", trace(1, device=1).replace("relu", "tanh"))
        both = ["r0.json", "r1.json"]
        self.assertEqual(self.kernel_names(*both, "--device", "1"), {"gemm", "tanh"})
        self.assertEqual(self.kernel_names(*both, "--device", "rank 0 gpu 0"), {"gemm", "relu"})
        self.assertEqual(self.kernel_names(*both, "--device", "0,1"), {"gemm", "relu", "tanh"})
        self.assertEqual(self.kernel_names(*both, "--rank", "1"), {"gemm", "tanh"})
        self.assertEqual(self.kernel_names(*both, "--rank", "1", "--rank=0"), {"gemm", "relu", "tanh"})
        self.assertEqual(self.kernel_names(self.trace, "--rank", "0"), {"gemm", "relu"})

    def test_what_is_not_there_is_refused(self):
        out, err = self.run_it("report", self.trace, "--device", "5", code=WRONG_USAGE)
        self.assertEqual(out, "")
        self.assertIn("devices with work: 0", err)
        self.assertIn("rank 3", self.run_it("report", self.trace, "--rank", "3", code=WRONG_USAGE)[1])
        for value in ["x", "-1", "1.5"]:
            self.run_it("report", self.trace, f"--rank={value}", code=WRONG_USAGE)

    def test_dump_and_export_write_what_passes(self):
        out = self.run_it("dump", self.trace, "--from", "50us")[0]
        self.assertIn('"relu"', out)
        self.assertNotIn('"gemm"', out)
        self.run_it("export", self.trace, "--until", "50us", "-o", "part.pasta")
        self.assertEqual(self.kernel_names("part.pasta"), {"gemm"})


class Losses(CommandLine):
    def test_a_dropped_event_gives_3_and_says_which(self):
        broken = self.file("broken.json", BROKEN_RECORD)
        out, err = self.run_it("report", broken, "--format", "json", code=INCOMPLETE)
        self.assertIn("not complete: 1 ", err)
        self.assertGreaterEqual(json.loads(out)["trace"]["quality"]["lost"], 1)
        for verb in ["dump", "check"]:
            self.run_it(verb, broken, code=INCOMPLETE)
        self.run_it("export", broken, "-o", "kept.pasta", code=INCOMPLETE)

    def test_a_cut_file_gives_what_came_before(self):
        self.assertEqual(self.kernel_names(self.file("cut.json", TRUNCATED), code=INCOMPLETE), {"gemm"})

    def test_a_repaired_comma_is_no_loss(self):
        out, err = self.run_it("report", self.file("comma.json", REPAIRED), "--format", "json")
        self.assertEqual(err, "")
        self.assertIn("comma_repaired", out)

    def test_strict_fails_at_the_first_and_answers_nothing(self):
        for text in [BROKEN_RECORD, TRUNCATED, REPAIRED]:
            path = self.file("bad.json", text)
            for verb in ["report", "dump", "check"]:
                out, err = self.run_it(verb, path, "--strict", code=NO_ANSWER)
                self.assertRegex(err, r"bad\.json: .*byte \d+|bad\.json.*\d")
                if verb != "dump":
                    self.assertEqual(out, "")
        self.run_it("report", self.trace, "--strict")

    def test_no_answer(self):
        self.file("empty.json", "")
        self.file("prose.txt", "Dear diary")
        os.mkdir(os.path.join(self.folder, "hollow"))
        for name in ["nowhere.json", "empty.json", "prose.txt", "hollow"]:
            for verb in ["report", "dump", "check", "export"]:
                out, err = self.run_it(verb, name, code=NO_ANSWER)
                self.assertEqual(out, "")
                self.assertIn(name, err)

    def test_check(self):
        out, err = self.run_it("check", self.trace)
        self.assertEqual(err, "")
        report, = json.loads(self.run_it("check", self.trace, "--format", "json")[0])["reports"]
        laws = next(p for p in report["parts"] if p.get("id") == "invariants")
        column = [c["name"] for c in laws["columns"]].index("violations")
        self.assertTrue(laws["rows"])
        self.assertEqual({line[column] for line in laws["rows"]}, {0})

    def test_check_finds_a_violation(self):
        # A kernel that says it is linked to a launch that is not there.
        text = self.run_it("dump", self.trace)[0]
        self.file("lie.txt", re.sub(r"^api .*\n", "", text, flags=re.MULTILINE))
        out, err = self.run_it("check", "lie.txt", code=NO_ANSWER)
        self.assertIn("violations", err)
        self.assertIn("linked device work has its launch", out)


class Files(CommandLine):
    def test_output_is_never_overwritten_without_force(self):
        for verb in ["report", "dump", "export", "check"]:
            path = self.folder / f"{verb}.out"
            out, err = self.run_it(verb, self.trace, "-o", path)
            self.assertEqual((out, err), ("", ""))
            first = path.read_bytes()
            self.assertTrue(first)
            path.write_text("precious")
            out, err = self.run_it(verb, self.trace, "--output", path, code=WRONG_USAGE)
            self.assertIn(path.name, err)
            self.assertEqual(path.read_text(), "precious")
            self.run_it(verb, self.trace, "-o", path, "-f")
            self.assertEqual(len(path.read_bytes()), len(first))
            path.write_text("precious")
            self.run_it(verb, self.trace, "-o", path, "--force")
            self.assertNotEqual(path.read_bytes(), b"precious")

    def test_an_existing_output_is_refused_before_reading(self):
        self.file("there", "precious")
        for verb in ["report", "check"]:
            self.assertIn("there", self.run_it(verb, "nowhere.json", "-o", "there", code=WRONG_USAGE)[1])

    def test_a_failure_leaves_nothing_behind(self):
        self.file("bad.json", BROKEN_RECORD)
        before = set(self.folder.iterdir())
        for verb in ["report", "dump", "export", "check"]:
            self.run_it(verb, "bad.json", "--strict", "-o", "new", code=NO_ANSWER)
            self.assertEqual(set(self.folder.iterdir()), before)

    def test_a_folder_that_is_not_there(self):
        for verb in ["report", "dump", "export", "check"]:
            self.run_it(verb, self.trace, "-o", "no/such/folder", code=NO_ANSWER)

    def test_a_full_disk_is_no_answer(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for verb in ["report", "dump", "check", "tools"]:
            words = [PROGRAM, verb] + ([] if verb == "tools" else [str(self.trace)])
            with open("/dev/full", "wb") as full:
                done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, NO_ANSWER, verb)
            self.assertIn(b"No space left", done.stderr)

    def test_there_and_back(self):
        direct = self.answer(self.trace)
        for target, name in [("pasta", "t.pasta"), ("chrome", "t.json")]:
            self.run_it("export", self.trace, "--to", target, "-o", name)
            self.assertEqual(self.answer(name)["reports"], direct["reports"])
            self.assertEqual(self.answer(name)["trace"]["events"], direct["trace"]["events"])
        self.file("t.txt", self.run_it("dump", self.trace)[0])
        self.assertEqual(self.answer("t.txt")["reports"], direct["reports"])
        self.assertIn("pasta, chrome", self.run_it("export", self.trace, "--to", "wax", code=WRONG_USAGE)[1])

    def test_export_merges(self):
        self.file("r0.json", trace(0))
        self.file("r1.json", trace(1, device=1))
        self.run_it("export", "r0.json", "r1.json", "-o", "job.pasta")
        devices = lambda document: [
            {k: v for k, v in line.items() if k != "device"} for line in self.table(document, "summary", "devices")]
        self.assertEqual(devices(self.answer("job.pasta")), devices(self.answer("r0.json", "r1.json")))

    def test_memory(self):
        self.assertEqual(self.answer(self.trace, "--memory", "64KiB"), self.answer(self.trace))
        self.assertIn("--memory", self.run_it("report", self.trace, "--memory", "lots", code=WRONG_USAGE)[1])


class Pipes(CommandLine):
    def test_standard_input(self):
        for data in [trace().encode(), gzip.compress(trace().encode())]:
            document = self.answer("-", stdin=data)
            self.assertEqual(document["reports"], self.answer(self.trace)["reports"])
            self.assertEqual(document["trace"]["sources"][0]["path"], "-")
        self.assertIn("only once", self.run_it("report", "-", "-", code=WRONG_USAGE)[1])
        self.run_it("report", "-", code=NO_ANSWER)

    def test_standard_output_by_name(self):
        self.assertEqual(self.run_it("report", self.trace, "-o", "-"), self.run_it("report", self.trace))
        out = self.run_it("export", self.trace, "--to", "chrome", "-o", "-")[0]
        self.assertIn("traceEvents", json.loads(out))

    def test_chain(self):
        exported = subprocess.run([PROGRAM, "export", str(self.trace)], capture_output=True, timeout=60, check=True)
        self.assertEqual(self.answer("-", stdin=exported.stdout)["reports"], self.answer(self.trace)["reports"])

    def test_a_closed_pipe_ends_quietly(self):
        rows = [row(f"operator number {i}", "cpu_op", i * 10, 5) for i in range(20_000)]
        self.file("many.json", json.dumps({"traceEvents": rows}))
        for words in [["dump", "many.json"], ["export", "many.json", "--to", "chrome"]]:
            process = subprocess.Popen([PROGRAM, *words], cwd=self.folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            process.stdout.read(100)
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            self.assertNotEqual(process.wait(timeout=60), 0)


class Terminal(CommandLine):
    def on_terminal(self, *words, columns=72, lines=400, code=COMPLETE, terminal=("stdout",), feed=None, **environment):
        """Runs the program with the streams `terminal` on a terminal of that size; returns what it writes there, and
        what it writes to the other of standard output and error. `feed()` gives standard input until something
        is shown there, `feed(last=True)` its end.
        """
        primary, secondary = pty.openpty()
        self.addCleanup(os.close, primary)
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        other = tempfile.TemporaryFile()
        self.addCleanup(other.close)
        environment = {"TERM": "xterm", "PATH": os.environ.get("PATH", ""), "PASTA_PAGER": "", **self.inherited(),
                       **environment}
        process = subprocess.Popen(
            [PROGRAM, *map(str, words)], cwd=self.folder, stdin=subprocess.PIPE,
            stdout=secondary if "stdout" in terminal else other, stderr=secondary if "stderr" in terminal else other,
            env={k: v for k, v in environment.items() if v is not None})
        os.close(secondary)
        text = b""
        while feed and not select.select([primary], [], [], 0)[0]:
            process.stdin.write(feed())
        if feed:
            process.stdin.write(feed(last=True))
        process.stdin.close()
        while True:
            try:
                part = os.read(primary, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            text += part
        self.assertEqual(process.wait(timeout=60), code)
        other.seek(0)
        return text.decode().replace("\r\n", "\n"), other.read().decode()

    def test_width_and_colour_are_the_terminals(self):
        text = self.on_terminal("report", self.trace)[0]
        self.assertIn("\x1b[", text)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        self.assertEqual(max(map(len, plain.splitlines())), 72)

    def test_colour_only_where_it_is_wanted(self):
        self.assertNotIn("\x1b", self.on_terminal("report", self.trace, NO_COLOR="1")[0])
        self.assertNotIn("\x1b", self.on_terminal("report", self.trace, TERM="dumb")[0])
        self.assertIn("\x1b", self.on_terminal("report", self.trace, NO_COLOR="")[0])
        self.on_terminal("report", self.trace, "-o", "colourless.txt")
        self.assertNotIn("\x1b", (self.folder / "colourless.txt").read_text())

    def test_long_text_goes_through_the_pager(self):
        plain = self.on_terminal("report", self.trace, NO_COLOR="1")[0]
        paged = "".join(f"P:{line}\n" for line in plain.splitlines())
        long = dict(lines=10, NO_COLOR="1")
        pager = dict(PAGER="sed s/^/P:/")
        self.assertEqual(self.on_terminal("report", self.trace, **long, PASTA_PAGER="sed s/^/P:/")[0], paged)
        for different in [dict(long, PASTA_PAGER=""), dict(long, PASTA_PAGER="nonesuch"), dict(NO_COLOR="1"),
                          dict(long, PASTA_NO_PAGER="1", PASTA_PAGER="sed s/^/P:/")]:
            self.assertEqual(self.on_terminal("report", self.trace, **{**pager, **different})[0], plain, different)
        self.assertEqual(self.on_terminal("report", self.trace, "--no-pager", **long, PASTA_PAGER="cat -n")[0], plain)
        data = self.on_terminal("report", self.trace, "--format", "json", **long, PASTA_PAGER="sed s/^/P:/")[0]
        json.loads(data)
        self.assertEqual(self.on_terminal("report", self.trace, "-o", "f.txt", **long, PASTA_PAGER="cat -n")[0], "")

    def test_the_pager_leaves_the_exit_code_alone(self):
        broken = self.file("broken.json", BROKEN_RECORD)
        for pager in ["cat", "true", "false", "head -n 1", "nonesuch"]:
            self.on_terminal("report", broken, lines=10, code=INCOMPLETE, PASTA_PAGER=pager)
            self.on_terminal("check", self.trace, lines=10, PASTA_PAGER=pager)

    def test_what_the_pager_is_when_nobody_says(self):
        self.file("bin/less", '#!/bin/sh\necho less "$@"\n').chmod(0o755)
        out = self.on_terminal("report", self.trace, lines=10, PASTA_PAGER=None, PATH=f"{self.folder}/bin:/bin:/usr/bin")[0]
        self.assertEqual(out, "less -FRX\n")

    @staticmethod
    def operators(begin, end):
        return "".join('{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": %d, "dur": 5},\n' % (10 * i)
                       for i in range(begin, end))

    def test_progress(self):
        path, count, shown = self.folder / "many.json", 100_000, ""
        while not re.search(r"of .* left", shown):  # where reading is too fast to be shown
            self.assertLess(count, 5_000_000)
            count *= 2
            path.write_text('{"traceEvents": [' + self.operators(0, count)[:-2] + "]}")
            begin = time.monotonic()
            shown, out = self.on_terminal("report", path, "--format", "json", terminal=["stderr"])
            seconds = time.monotonic() - begin
        self.assertEqual(json.loads(out)["trace"]["events"], {"scope": count})
        before, *drawn, after = shown.split("\r\x1b[K")
        self.assertEqual((before, after), ("", ""))
        for line in drawn:
            self.assertRegex(line, r"\Aread \d+\.\d .iB( of \d+\.\d MiB \(\d+%\), .*/s, .* left|, analysing)\Z")
            self.assertLess(len(line), 72)
        self.assertIn(f"of {path.stat().st_size / 2**20:.1f} MiB", drawn[0])
        self.assertLessEqual(len(drawn), seconds * 10)
        narrow = self.on_terminal("check", path, terminal=["stderr"], columns=12)[0].split("\r\x1b[K")
        self.assertEqual(max(map(len, narrow)), 11)
        for words, streams, environment in [(["-q"], ["stderr"], {}), (["--quiet"], ["stderr"], {}),
                                            ([], ["stderr"], {"PASTA_QUIET": "1"}), ([], ["stderr"], {"TERM": "dumb"}),
                                            ([], ["stdout"], {})]:
            both = self.on_terminal("report", path, *words, terminal=streams, NO_COLOR="1", **environment)
            self.assertNotIn("\x1b", "".join(both), (words, streams))
        # Where events are printed meanwhile, the line would stand between them.
        path.write_text('{"traceEvents": [' + self.operators(0, 60_000)[:-2] + "]}")
        self.assertNotIn("\x1b", self.on_terminal("dump", path, terminal=["stdout", "stderr"])[0])

    def test_progress_of_a_pipe_has_no_end(self):
        sent = []

        def feed(last=False):
            sent.append(self.operators(20_000 * len(sent), 20_000 * (len(sent) + 1)))
            begin = '{"traceEvents": [' if len(sent) == 1 else ""
            return (begin + (sent[-1][:-2] + "]}" if last else sent[-1])).encode()

        shown, out = self.on_terminal("report", "-", "--format", "json", terminal=["stderr"], feed=feed)
        self.assertRegex(shown.split("\r\x1b[K")[1], r"\Aread \d+\.\d .iB, .*/s\Z")
        self.assertEqual(json.loads(out)["trace"]["events"], {"scope": 20_000 * len(sent)})


class SortAndFilter(CommandLine):
    def lines(self, *words, **more):
        out = self.run_it("report", self.trace, "--tool", "kernels", "--format", "csv", *words, **more)[0]
        return [line["name"] for line in csv.DictReader(io.StringIO(out))]

    def test_sort_in_every_format(self):
        self.assertEqual(self.lines(), ["gemm", "relu"])
        for sort, names in [("total:asc", ["relu", "gemm"]), ("total", ["gemm", "relu"]), ("name:desc", ["relu", "gemm"]),
                            ("name", ["gemm", "relu"]), ("calls", ["gemm", "relu"])]:
            self.assertEqual(self.lines("--sort", sort), names, sort)
            document = self.answer(self.trace, "--sort", sort)
            self.assertEqual([k["name"] for k in self.table(document, "kernels", "kernels")], names)
        out = self.run_it("report", self.trace, "--tool", "kernels", "--sort", "total:asc")[0]
        self.assertLess(out.index("relu"), out.index("gemm"))
        top = self.run_it("report", self.trace, "--tool", "kernels", "--sort", "total:asc", "--top", "1")[0]
        self.assertNotIn("gemm", top)

    def test_filter_in_every_format_and_said(self):
        for expression, names in [("gemm", ["gemm"]), ("^(re|x)", ["relu"]), ("m{2}", ["gemm"]), ("x", []), (".", ["gemm", "relu"])]:
            out, err = self.run_it("report", self.trace, "--tool", "kernels", "--format", "csv", "--filter", expression)
            self.assertEqual([line["name"] for line in csv.DictReader(io.StringIO(out))], names)
            said = f"rows whose name matches {expression} ({len(names)} of 2; shares are of all)"
            self.assertIn(said, err)
            document = self.answer(self.trace, "--filter", expression)
            self.assertEqual(document["trace"]["filter"], said)
            self.assertEqual([k["name"] for k in self.table(document, "kernels", "kernels")], names)
            self.assertTrue(self.table(document, "summary", "devices"))
        gemm, = self.table(self.answer(self.trace, "--filter", "gemm"), "kernels", "kernels")
        self.assertAlmostEqual(gemm["share"], 0.6)
        self.assertIn("only rows whose name", self.run_it("report", self.trace, "--filter", "gemm")[0])

    def test_refusals(self):
        for words, wanted in [(["--sort", "wishes"], "there are"), (["--sort", "total:up"], ":asc"), (["--filter", "("], "("),
                              (["--filter", "\\d"], "[0-9]"), (["--tool", "summary", "--filter", "x"], "no table has names")]:
            out, err = self.run_it("report", self.trace, *words, code=WRONG_USAGE)
            self.assertEqual(out, "")
            self.assertIn(wanted, err)
        # Before a long time is spent on reading.
        self.assertIn("--filter", self.run_it("report", "nowhere.json", "--filter", "(", code=WRONG_USAGE)[1])


class ConfigFile(CommandLine):
    def setUp(self):
        super().setUp()
        self.own = self.folder / "config" / "pastaprof" / "pasta.toml"
        self.own.parent.mkdir(parents=True)

    def told(self, *words, code=COMPLETE, **environment):
        return self.run_it("report", self.trace, *words, code=code,
                           environment={"XDG_CONFIG_HOME": self.folder / "config", **environment})

    def test_precedence(self):
        self.own.write_text('top = 2\n[report]\nformat = "json"\ntool = "kernels"\n')
        tools = lambda *words, **more: [r["tool"] for r in json.loads(self.told(*words, **more)[0])["reports"]]
        self.assertEqual(tools(), ["kernels"])
        self.file("pasta.toml", '# mine\ntool = ["summary", "kernels"]  # both\n')
        self.assertEqual(tools(), ["summary", "kernels"])
        self.file("pasta.toml", 'tool = "kernels"\n[check]\nstrict = true\n[report]\ntool = [\n  "summary",\n]\n')
        self.assertEqual(tools(), ["summary"])
        self.assertEqual(tools(PASTA_TOOL="kernels"), ["kernels"])
        self.assertEqual(tools("-t", "summary,kernels", PASTA_TOOL="kernels"), ["summary", "kernels"])
        self.assertIn("name,", self.told("-t", "kernels", PASTA_FORMAT="csv")[0])

    def test_home(self):
        home = self.file("home/.config/pastaprof/pasta.toml", "format = 'csv'\n").parents[2]
        self.assertEqual(self.run_it("report", self.trace, environment={"HOME": home}),
                         self.run_it("report", self.trace, "--format", "csv"))

    def test_values(self):
        self.file("comma.json", REPAIRED)
        for text, words in [("strict = true", ["--strict"]), ("strict = false", []), ("top = 1", ["--top=1"]),
                            ('timeunit = "s"', ["--timeunit", "s"]), ("filter = 'g.*m'", ["--filter", "g.*m"]),
                            ('filter = "\\"|gemm\\\\"', ["--filter", '"|gemm\\']), ("rank = [0, 1]", ["--rank", "0,1"]),
                            ("tool = []", []), ("\r\n top\t=  1 \r\n", ["--top", "1"]), ("", [])]:
            for trace_file in ["comma.json", self.trace]:
                done = [subprocess.run([PROGRAM, "report", str(trace_file), *more], cwd=self.folder, capture_output=True,
                                       timeout=60, env=self.inherited())
                        for more in [words, []] if more is words or self.file("pasta.toml", text)]
                (self.folder / "pasta.toml").unlink()
                self.assertEqual(*[(d.returncode, d.stdout, d.stderr.replace(b" (--filter comes from pasta.toml:1)", b""))
                                   for d in done], text)

    def test_what_is_wrong_is_said_with_its_line(self):
        for text, line, wanted in [("tpo = 3", 1, "did you mean top?"), ("\n\n[report]\nfromat = 1", 4, "did you mean format?"),
                                   ("[reprot]\ntop = 1", 2, "did you mean report?"), ("[report]\nto_p = 1", 2, "did you mean top?"),
                                   ("[tools]\ntop = 1", 2, "there is no option top"), ("top = 1\ntop = 2", 2, "twice"),
                                   ("top", 1, "OPTION = VALUE"), ("top =", 1, "a value is"), ("top = many", 1, "a value is"),
                                   ("top = 1 2", 1, "more than one"), ("format = 'x", 1, "closing quote"), ('format = "\\q"', 1, "backslash"),
                                   ("tool = ['a' 'b']", 1, "comma"), ("tool = ['a'", 1, "comma"), ("[report", 1, "[VERB]"), ("[]", 1, "[VERB]"),
                                   ("format = 'xml'", 1, "it is one of"), ("top = 'many'", 1, "--top needs"), ("top = [1]", 1, "not a list"),
                                   ("strict = 1", 1, "true or false"), ("top = true", 1, "takes a value"),
                                   ("plugin = './x.so'", 1, "your own file"), ("\nforce = true", 2, "your own file"),
                                   ("[report]\noutput = 'x'", 2, "your own file"), ("help = true", 1, "there is no option")]:
            self.file("pasta.toml", text)
            out, err = self.told(code=WRONG_USAGE)
            self.assertEqual(out, "")
            self.assertIn(f"pasta.toml:{line}", err)
            self.assertIn(wanted, err)

    def test_your_own_file_may_say_more(self):
        self.own.write_text("force = true\noutput = 'out.txt'\n")
        self.told()
        self.told()
        self.assertIn("gemm", (self.folder / "out.txt").read_text())

    def test_a_wrong_file_does_not_stop_the_help(self):
        self.file("pasta.toml", "nonsense")
        for words in [["--help"], ["report", "--help"], ["help", "report"], ["--version"], ["completion", "bash"]]:
            self.run_it(*words)
        self.assertIn("pasta.toml:1", self.run_it("doctor", code=WRONG_USAGE)[1])


class Doctor(CommandLine):
    def checks(self, **environment):
        out = self.run_it("doctor", "--format", "json", environment=environment)[0]
        return {check["name"]: check for check in json.loads(out)["checks"]}

    def test_text_and_json_agree(self):
        checks = self.checks()
        text = self.run_it("doctor")[0]
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for name, check in checks.items():
            self.assertRegex(text, rf"(?m)^{re.escape(name)} +{check['status']} ")
            self.assertIn(check["status"], ["ok", "warning", "missing"])
            self.assertEqual(check["remedy"] == "", check["status"] == "ok")
        for reader in ["pasta", "text", "kineto_json"]:
            self.assertIn(f"{reader} (", checks["formats"]["detail"])
        self.assertIn(checks["version"]["detail"], self.run_it("--version")[0])
        self.assertEqual(checks["cores"]["status"], "ok")

    def test_the_scratch_folder(self):
        self.assertEqual(self.checks(TMPDIR=str(self.folder))["scratch"]["detail"].split(",")[0], str(self.folder))
        scratch = self.checks(TMPDIR="/no/such/folder")["scratch"]
        self.assertEqual(scratch["status"], "missing")
        self.assertIn("TMPDIR", scratch["remedy"])

    def test_settings(self):
        self.assertEqual(self.checks()["pasta.toml"]["detail"], "no pasta.toml")
        self.file("pasta.toml", "top = 1")
        self.assertEqual(self.checks()["pasta.toml"]["detail"], "pasta.toml")


class Help(CommandLine):
    def verbs(self):
        return re.findall(r"^  ([a-z]+) ", self.run_it("help")[0].partition("\n  VERB")[0], re.MULTILINE)

    def options(self, verb):
        return re.findall(r"(?<=[ ,])--?[a-z][a-z-]*", "\n".join(
            line[:26] for line in self.run_it(verb, "--help")[0].splitlines() if line.startswith("  -")))

    def test_help_fits_and_is_the_same_both_ways(self):
        self.assertEqual(self.run_it("help"), self.run_it("--help"))
        for verb in self.verbs():
            text = self.run_it("help", verb)[0]
            self.assertEqual(text, self.run_it(verb, "--help")[0])
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.assertLessEqual(max(map(len, self.run_it("help")[0].splitlines())), 80)
        self.assertIn("--filter", self.options("report"))
        self.assertIn("-q", self.options("dump"))
        self.assertIn("report", self.run_it("help", "nonesuch", code=WRONG_USAGE)[1])

    def test_manual_names_everything(self):
        page = self.run_it("help", "man")[0].replace("\\-", "-")
        self.assertTrue(page.startswith(".TH PASTAPROF 1"))
        for verb in self.verbs():
            section = page.partition(f".SS {verb}\n")[2].partition(".S")[0]
            for option in set(self.options(verb)) - {"-h", "--help", "--version"}:
                self.assertIn(f"\\fB{option}\\fR", section)
        for line in page.splitlines():
            if line.startswith("."):
                self.assertRegex(line, r"\A\.(TH|SH|SS|B|I|PP|TP)\b")
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", "-"], input=self.run_it("help", "man")[0].encode(),
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def complete(self, *words):
        """What bash offers in place of the last word."""
        script = self.run_it("completion", "bash")[0]
        quoted = " ".join(f"'{word}'" for word in words)
        done = subprocess.run(
            ["bash", "-c", f'{script}\nCOMP_WORDS=(pastaprof {quoted}); COMP_CWORD={len(words)}\n_pastaprof; '
                           'printf "%s\\n" "${COMPREPLY[@]}"'],
            capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("re"), ["report"])
        self.assertEqual(set(self.complete("")), {*self.verbs(), "--help", "--version"})
        for verb in self.verbs():
            self.assertEqual(set(self.complete(verb, "-")), {*self.options(verb)} - {"-h"})
        self.assertEqual(self.complete("report", "--timeunit", ""), ["auto", "ns", "us", "ms", "s"])
        self.assertEqual(self.complete("report", "--format", "=", "c"), ["csv"])
        self.assertEqual(self.complete("report", "--format", "="), ["text", "table", "json", "csv"])
        self.assertEqual(self.complete("export", "x.json", "--to", "p"), ["pasta"])
        self.assertEqual(self.complete("report", "--tool", "summary,ker"), ["summary,kernels"])
        self.assertEqual(self.complete("report", "x"), [])  # bash offers files
        self.assertIn("idle", self.complete("tools", ""))
        self.assertEqual(self.complete("completion", "z"), ["zsh"])

    def test_scripts_are_well_formed(self):
        for shell in ["bash", "zsh", "fish"]:
            script = self.run_it("completion", shell)[0]
            for verb in self.verbs():
                self.assertIn(verb, script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script.encode(), capture_output=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, b""), shell)
        self.assertIn("bash, zsh, fish", self.run_it("completion", "tcsh", code=WRONG_USAGE)[1])


class Environment(CommandLine):
    def test_every_option_has_a_variable(self):
        cases = {"PASTA_TOOL": ("kernels", ["--tool", "kernels"]),
                 "PASTA_OPT": ("kernels.group=class", ["--opt", "kernels.group=class"]),
                 "PASTA_FROM": ("50us", ["--from", "50us"]),
                 "PASTA_TO": ("50us", ["--to", "50us"]),
                 "PASTA_DEVICE": ("0", ["--device", "0"]),
                 "PASTA_RANK": ("0", ["--rank", "0"]),
                 "PASTA_LABEL": ("mine", ["--label", "mine"]),
                 "PASTA_FORMAT": ("csv", ["--format", "csv"]),
                 "PASTA_TOP": ("1", ["--top", "1"]),
                 "PASTA_TIMEUNIT": ("s", ["--timeunit", "s"]),
                 "PASTA_WIDTH": ("60", ["--width", "60"]),
                 "PASTA_MEMORY": ("1MiB", ["--memory", "1MiB"])}
        for variable, (value, words) in cases.items():
            self.assertEqual(self.run_it("report", self.trace, environment={variable: value}),
                             self.run_it("report", self.trace, *words), variable)
        self.run_it("report", self.file("comma.json", REPAIRED), environment={"PASTA_STRICT": "1"}, code=NO_ANSWER)
        self.run_it("report", "comma.json", environment={"PASTA_STRICT": "0"})
        self.run_it("report", self.trace, environment={"PASTA_OUTPUT": "out.txt"})
        self.run_it("report", self.trace, environment={"PASTA_OUTPUT": "out.txt"}, code=WRONG_USAGE)
        self.run_it("report", self.trace, environment={"PASTA_OUTPUT": "out.txt", "PASTA_FORCE": "1"})
        out = self.run_it("export", self.trace, environment={"PASTA_EXPORT_TO": "chrome"})[0]
        self.assertIn("traceEvents", out)

    def test_the_command_line_counts_more(self):
        out = self.run_it("report", self.trace, "--format", "json", environment={"PASTA_FORMAT": "csv"})[0]
        json.loads(out)
        self.assertEqual(self.kernel_names(self.trace, "--to", "50us", environment={"PASTA_TO": "1us"}), {"gemm"})

    def test_a_wrong_value_is_wrong_usage(self):
        for variable in ["PASTA_FORMAT", "PASTA_TOP", "PASTA_FROM", "PASTA_RANK", "PASTA_MEMORY", "PASTA_TIMEUNIT",
                         "PASTA_WIDTH", "PASTA_TOOL", "PASTA_OPT"]:
            self.run_it("report", self.trace, environment={variable: "nonsense"}, code=WRONG_USAGE)


class Tools(CommandLine):
    def test_list_page_and_json_agree(self):
        listed = self.run_it("tools")[0]
        described = json.loads(self.run_it("tools", "--format", "json")[0])["tools"]
        self.assertEqual([line.split()[0] for line in listed.splitlines()], [tool["name"] for tool in described])
        for tool in described:
            page = self.run_it("tools", tool["name"])[0]
            for text in [tool["help"], *tool["needs"], *[o["name"] for o in tool["options"]],
                         *[choice for o in tool["options"] for choice in o["choices"]]]:
                self.assertIn(text, page)
            one = json.loads(self.run_it("tools", tool["name"], "--format", "json")[0])
            self.assertEqual(one, {"tools": [tool]})
        self.run_it("tools", "--format", "csv", code=WRONG_USAGE)

    def test_plugins_that_are_none(self):
        self.file("plugin.so", "not a library")
        for verb in [["tools"], ["report", self.trace]]:
            self.assertIn("plugin.so", self.run_it(*verb, "--plugin", "./plugin.so", code=NO_ANSWER)[1])


if __name__ == "__main__":
    words = sys.argv[1:]
    for option in ["--pastaprof", "--source"]:
        if option in words:
            at = words.index(option)
            value = pathlib.Path(words[at + 1]).resolve()
            del words[at:at + 2]
            if option == "--pastaprof":
                PROGRAM = str(value)
            else:
                SOURCE = value
    if not PROGRAM:
        sys.exit("say where the program is: --pastaprof PATH, or PASTAPROF in the environment")
    unittest.main(argv=[sys.argv[0], *words])
