#!/usr/bin/env python3
"""pastaprof run from outside: the program runs as if alone, and the trace has what it did."""
import json
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ["PASTAPROF"]
ANNOTATE = os.environ["PASTA_ANNOTATE"]
ANNOTATE_C = os.environ["PASTA_ANNOTATE_C"]


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, *words, options=("-o", "t.pasta"), **more):
        more = {"capture_output": True, "timeout": 120, "cwd": self.folder, **more}
        return subprocess.run([PROGRAM, "run", *options, "--", *words], check=False, **more)

    def popen(self, *words, **more):
        return subprocess.Popen([PROGRAM, "run", "-o", "t.pasta", "--", *words], cwd=self.folder, **more)

    def report(self, trace="t.pasta", codes=(0,)):
        result = subprocess.run([PROGRAM, "report", trace, "--format", "json"], cwd=self.folder,
                                capture_output=True, check=False)
        self.assertIn(result.returncode, codes, result.stderr.decode())
        return json.loads(result.stdout)

    def events(self, trace="t.pasta"):
        """[(name, kind, fields)] of the trace's events."""
        result = subprocess.run([PROGRAM, "dump", trace], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(result.returncode, (0, 3), result.stderr)
        return [line for line in result.stdout.splitlines() if re.match(r"(scope|gap)\b", line)]

    def count(self, name, trace="t.pasta"):
        return sum(f'"{name}"' in line or f"={name} " in line + " " for line in self.events(trace))

    def left(self):
        return sorted(p.name for p in self.folder.iterdir())

    def test_it_is_as_if_alone(self):
        result = self.run_watched("sh", "-c", "pwd; cat; echo to-error >&2; exit 7", input=b"from input\n")
        self.assertEqual(result.returncode, 7)
        self.assertEqual(result.stdout.decode(), f"{os.path.realpath(self.folder)}\nfrom input\n")
        self.assertIn(b"to-error\n", result.stderr)
        self.assertEqual(self.left(), ["t.pasta"])

    def test_exit_codes(self):
        for how, code in (("_exit", 5), ("exit", 6), ("abort", 134), ("segfault", 139), ("kill", 137)):
            with self.subTest(how=how):
                result = self.run_watched(ANNOTATE, how, options=("-f", "-o", "t.pasta"))
                self.assertEqual(result.returncode, code, result.stderr)
                events = self.events()
                self.assertEqual(len(events), 1, events)
                self.assertIn("open", events[0])
                self.assertIn("unfinished", events[0])
        self.assertEqual(self.run_watched("no-such-program").returncode, 125, "t.pasta is there")
        self.assertEqual(self.run_watched("no-such-program", options=("-f", "-o", "t.pasta")).returncode, 127)
        self.assertEqual(self.run_watched("/", options=("-f", "-o", "t.pasta")).returncode, 126)
        self.assertEqual(subprocess.run([PROGRAM, "run"], capture_output=True).returncode, 125)
        self.assertEqual(self.run_watched("true", options=("--bogus",)).returncode, 125)
        self.assertEqual(self.run_watched("true", options=("--tool", "bogus")).returncode, 125)
        self.assertEqual(self.left(), ["t.pasta"])

    def test_without_dashes_and_with_the_programs_own_options(self):
        result = subprocess.run([PROGRAM, "run", "-o", "t.pasta", "sh", "-c", "exit 3"], cwd=self.folder)
        self.assertEqual(result.returncode, 3)

    def test_names(self):
        for _ in range(2):
            self.run_watched("true", options=())
        self.assertEqual(self.left(), ["true-1.pasta", "true-2.pasta"])
        self.run_watched("true", options=("-o", "%h-%r-%q{WHAT}-%%.pasta"),
                         env={**os.environ, "RANK": "3", "WORLD_SIZE": "4", "WHAT": "x"})
        self.assertIn(f"{os.uname().nodename}-3-x-%.pasta", self.left())
        self.run_watched("true", options=("-o", "t-%r.pasta", "--report", "report-%r"),
                         env={**os.environ, "RANK": "3", "WORLD_SIZE": "4"})
        self.assertIn("report-3", self.left())
        self.assertEqual(self.run_watched("true", options=("--report", "%r")).returncode, 125)
        self.assertEqual(self.run_watched("true", options=("-o", "%r")).returncode, 125)
        self.assertEqual(self.run_watched("true", options=("-o", "%z")).returncode, 125)

    def test_ranges_are_exact(self):
        self.run_watched(ANNOTATE, "ranges", "20000")
        self.assertEqual(self.report()["trace"]["events"], {"scope": 40000})
        self.assertEqual(self.count("inner"), 20000)

    def test_threads(self):
        self.run_watched(ANNOTATE, "threads", "64")
        self.assertEqual(self.report()["trace"]["events"], {"scope": 64 * 20})
        self.run_watched(ANNOTATE, "short-threads", "1000", options=("-f", "-o", "t.pasta"))
        self.assertEqual(self.report()["trace"]["events"], {"scope": 2000})

    def test_fork(self):
        result = self.run_watched(ANNOTATE, "fork", "20")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.count("inner"), 60)
        # Each child left by _exit() with the range open that its parent had opened.
        self.assertEqual(self.count("around the fork"), 21)

    def test_c_steps_tags_and_stops(self):
        self.assertEqual(self.run_watched(ANNOTATE_C).returncode, 0)
        self.assertEqual((self.count("range"), self.count("mark")), (1, 1))
        self.run_watched(ANNOTATE, "steps", "5", options=("-f", "-o", "t.pasta"))
        self.assertEqual(sum("step#" in line for line in self.events()), 5)
        self.run_watched(ANNOTATE, "tag", options=("-f", "-o", "t.pasta"))
        self.assertEqual(len(self.events()), 1)
        self.assertIn("bytes", self.events()[0])
        self.run_watched(ANNOTATE, "stopped", "100", options=("-f", "-o", "t.pasta"))
        self.assertEqual((self.count("inner"), self.count("on")), (0, 1))

    def test_live_report_is_that_of_the_file(self):
        for options in ((), ("--format", "json")):
            result = self.run_watched(ANNOTATE, "threads", "8",
                                      options=("-f", "-o", "t.pasta", "--report", "r", *options))
            self.assertEqual(result.returncode, 0, result.stderr)
            stored = subprocess.run([PROGRAM, "report", "t.pasta", *options],
                                    cwd=self.folder, capture_output=True, check=True)
            self.assertEqual((self.folder / "r").read_bytes(), stored.stdout)
            (self.folder / "r").unlink()

    def tool(self, name, trace="t.pasta", codes=(0, 3)):
        """The first table of a tool as [{column: cell}]."""
        result = subprocess.run([PROGRAM, "report", trace, "--format", "json", "--tool", name], cwd=self.folder,
                                capture_output=True, check=False)
        self.assertIn(result.returncode, codes, result.stderr.decode())
        parts = json.loads(result.stdout)["reports"][0]["parts"]
        table = next(part for part in parts if part["type"] == "table")
        return [dict(zip((c["name"] for c in table["columns"]), row)) for row in table["rows"]]

    def reports(self, trace="t.pasta"):
        return [report["tool"] for report in self.report(trace, codes=(0, 3))["reports"]]

    def test_processes(self):
        self.run_watched("sh", "-c", f"'{ANNOTATE}' fork 2; '{ANNOTATE}' segfault; exit 3")
        rows = self.tool("processes")
        names = [row["process"] for row in rows]
        self.assertEqual(names, ["sh", "  run_annotate", "    run_annotate", "    run_annotate", "  run_annotate"])
        ended = [row["ended"] for row in rows]
        # Of the two that were forked, either may have got the processor first.
        self.assertEqual([*ended[:2], *sorted(ended[2:4]), ended[4]], ["exit 3", "exit 0", "exit 0", "exit 1", "no exit seen"])
        self.assertEqual([row["events"] for row in rows], [0, 1, 7, 7, 1])
        for row, parent in zip(rows[1:], (0, 1, 1, 0)):
            self.assertEqual(row["parent"], rows[parent]["pid"])
            self.assertGreaterEqual(row["start"], rows[parent]["start"])
        self.assertEqual(rows[1]["command"], f"{ANNOTATE} fork 2")
        self.assertEqual({row["devices"] for row in rows}, {"none"})

    def test_usual_tools_have_something_to_say(self):
        self.run_watched(ANNOTATE, "ranges", "1")
        self.assertEqual(self.reports(), ["operators"])
        self.run_watched("sh", "-c", f"'{ANNOTATE}' ranges 1; :", options=("-f", "-o", "t.pasta"))
        self.assertEqual(self.reports(), ["processes", "operators"])
        self.run_watched("true", options=("-f", "-o", "t.pasta"))
        self.assertEqual(self.reports(), ["summary"], "which says that there is nothing")

    def test_ranges_that_end_while_stopped(self):
        self.run_watched(ANNOTATE, "stop-inside")
        self.assertEqual([self.count(name) for name in ("begun before", "outer")], [1, 1])
        self.assertEqual(self.report()["trace"]["quality"]["problems"], [])

    def test_capture_range(self):
        self.run_watched(ANNOTATE, "capture", options=("-o", "t.pasta", "--capture-range", "wanted"))
        # Twice: two threads and a child, which inherits the range and lets it end with itself.
        self.assertEqual(self.count("inner"), 2 * 3)
        self.assertEqual(self.count("around"), 0)
        problems = self.report(codes=(3,))["trace"]["quality"]["problems"]
        self.assertEqual([(p["reason"], p["count"]) for p in problems], [("begin_without_end", 2 * 2)])
        self.run_watched(ANNOTATE, "capture", options=("-f", "-o", "t.pasta", "--capture-range", "unheard of"))
        self.assertEqual(self.events(), [])

    def test_which_processes(self):
        script = f"'{ANNOTATE}' ranges 1; '{ANNOTATE}' ranges 2; '{ANNOTATE}' fork 3; :"
        for options, ranges in ((("--include", "annotate (ranges|fork)"), 12), (("--include", "ranges [12]$"), 3),
                                (("--exclude", "ranges 2"), 10), (("--include", "ranges", "--exclude", "1$"), 2)):
            self.run_watched("sh", "-c", script, options=("-f", "-o", "t.pasta", *options))
            self.assertEqual(self.count("inner"), ranges, options)
        self.assertEqual(self.run_watched("true", options=("--include", "(")).returncode, 125)
        self.assertEqual(self.run_watched("true", options=("--exclude", "x" * 2000)).returncode, 125)

    def gate(self, *options):
        watched = subprocess.Popen([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", ANNOTATE, "gate"],
                                   cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.assertEqual(watched.stdout.readline(), b"ready\n")
        self.addCleanup(watched.stdout.close)
        self.addCleanup(watched.stderr.close)
        return watched

    def go_on(self, watched):
        watched.stdin.write(b"\n")
        watched.stdin.close()
        return watched.wait(timeout=60)

    def test_duration(self):
        # Long enough for a program to begin, however busy the machine.
        watched = self.gate("--duration", "3")
        while b"the trace is" not in watched.stderr.readline():
            self.assertIsNone(watched.poll())
        self.assertEqual([self.count(name) for name in ("before", "after")], [1, 0])
        self.assertEqual(self.tool("processes")[0]["ended"], "still running")
        self.assertEqual(self.go_on(watched), 4)
        self.assertEqual([self.count(name) for name in ("before", "after")], [1, 0])
        self.assertEqual(self.left(), ["t.pasta"])
        watched = self.gate("--duration", "1000")
        self.assertEqual(self.go_on(watched), 4)
        self.assertEqual([self.count(name) for name in ("before", "after")], [1, 1])
        self.assertEqual(self.run_watched("true", options=("--duration", "soon")).returncode, 125)

    def test_delay(self):
        watched = self.gate("--delay", "1000")
        self.assertEqual(self.go_on(watched), 4)
        self.assertIn(b"nothing was collected", watched.stderr.read())
        self.assertEqual(self.events(), [])
        watched = subprocess.Popen([PROGRAM, "run", "-f", "-o", "t.pasta", "--delay", "0.2", "--", ANNOTATE, "announce"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        told = len(watched.stdout.read(4096)) // 4
        while self.count("announced", "t.pasta.run") == 0:
            told += len(watched.stdout.read(1 << 16)) // 4
        watched.stdout.close()
        self.assertEqual(watched.wait(timeout=60), 128 + signal.SIGPIPE)
        self.assertGreater(self.count("announced"), 0)
        self.assertLess(self.count("announced"), told)

    def test_killed_at_any_time(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for _ in range(int(os.environ.get("PASTA_KILLS", "20"))):
            watched = self.popen(ANNOTATE, "announce", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            first = watched.stdout.read(4)
            child = int(subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(watched.pid)]).split()[0])
            told = len(first) + len(watched.stdout.read(4 * rng.randrange(1, 20000)))
            os.kill(child, signal.SIGKILL)
            told += len(watched.stdout.read())
            self.assertEqual(watched.wait(timeout=60), 137)
            self.assertGreaterEqual(self.count("announced"), told // 4, f"seed {seed}")
            (self.folder / "t.pasta").unlink()

    def test_signals_go_on_to_the_program(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            watched = self.popen(ANNOTATE, "wait", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertEqual(watched.stdout.readline(), b"ready\n")
            watched.send_signal(number)
            self.assertEqual(watched.wait(timeout=60), 128 + number)
            watched.stdout.close()
            self.assertEqual(self.count("waiting"), 1)
            (self.folder / "t.pasta").unlink()

    def test_stopped_and_continued(self):
        watched = self.popen("sh", "-c", "kill -STOP $$; exit 4", stderr=subprocess.DEVNULL)
        for _ in range(600):
            found = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(watched.pid)], capture_output=True,
                                   text=True).stdout.split()
            if len(found) == 2 and found[1].startswith("T"):
                break
            time.sleep(0.05)
        os.kill(int(found[0]), signal.SIGCONT)
        self.assertEqual(watched.wait(timeout=60), 4)

    def test_the_watcher_is_killed(self):
        watched = self.popen("sh", "-c", f"'{ANNOTATE}' ranges 10; echo begun; read line; '{ANNOTATE}' ranges 5; echo done",
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(watched.stdout.readline(), b"begun\n")
        watched.kill()
        watched.wait()
        watched.stdin.write(b"go\n")
        watched.stdin.close()
        self.assertEqual(watched.stdout.read(), b"done\n")
        watched.stdout.close()
        self.assertIn("t.pasta.run", self.left())
        self.assertEqual(self.report("t.pasta.run")["trace"]["events"], {"scope": 30})

    def test_nowhere_to_write(self):
        result = self.run_watched("sh", "-c", "echo out; exit 9", options=("-o", "no/such/folder/t.pasta"))
        self.assertEqual((result.returncode, result.stdout), (9, b"out\n"))
        self.assertIn(b"without a trace", result.stderr)
        self.assertEqual(self.left(), [])

    def test_no_room_is_counted(self):
        result = self.run_watched(ANNOTATE, "ranges", "20000",
                                  options=("-o", "t.pasta", "--spool-size", "300KiB"))
        self.assertEqual(result.returncode, 0)
        trace = self.report(codes=(3,))["trace"]
        lost = sum(p["count"] for p in trace["quality"]["problems"] if p["reason"] == "dropped_by_collector")
        self.assertEqual(trace["events"]["scope"] + lost, 40000)
        self.assertEqual(trace["events"]["gap"], 1)

    def test_a_limit_of_file_sizes_is_no_signal(self):
        # The limit is the program's own; the watching program is not under it.
        result = self.run_watched("bash", "-c", f"ulimit -f 128; '{ANNOTATE}' ranges 20000; echo $?")
        self.assertEqual((result.returncode, result.stdout), (0, b"0\n"))
        trace = self.report(codes=(3,))["trace"]
        lost = sum(p["count"] for p in trace["quality"]["problems"] if p["reason"] == "dropped_by_collector")
        self.assertGreater(lost, 0)
        self.assertEqual(trace["events"]["scope"] + lost, 40000)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(disk)], capture_output=True).returncode:
            self.skipTest("mounting is not permitted")
        try:
            result = self.run_watched(ANNOTATE, "ranges", "100000", options=("-o", "disk/t.pasta"))
            self.assertEqual(result.returncode, 0, result.stderr)
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)

    def test_many_short_processes(self):
        count = int(os.environ.get("PASTA_PROCESSES", "200"))
        self.run_watched("sh", "-c", f"i=0; while [ $i -lt {count} ]; do '{ANNOTATE}' ranges 1; i=$((i+1)); done")
        self.assertEqual(self.report()["trace"]["events"], {"scope": 2 * count})

    def test_multiprocessing(self):
        script = ("import multiprocessing as m, sys\n"
                  "def f(x): return x * x\n"
                  "if __name__ == '__main__':\n"
                  "  with m.get_context(sys.argv[1]).Pool(2) as p: print(sum(p.map(f, range(10))))\n")
        (self.folder / "m.py").write_text(script)
        for method in ("fork", "spawn"):
            result = self.run_watched(sys.executable, "m.py", method, options=("-f", "-o", "t.pasta"))
            self.assertEqual((result.returncode, result.stdout), (0, b"285\n"), result.stderr)


if __name__ == "__main__":
    unittest.main()
