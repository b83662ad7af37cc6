#!/usr/bin/env python3
"""pastaprof run while the program runs: snapshots, the flight recorder, the live view, terminals."""
import collections
import contextlib
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest
import fcntl

from watching import ANNOTATE, PROGRAM, Watching, events_of


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        select.select([], [], [], 0.02)
    raise AssertionError("waited in vain")


class Snapshots(Watching):
    def test_the_live_report_is_that_of_the_file(self):
        script = f"'{ANNOTATE}' threads 8; '{ANNOTATE}' fork 3; '{ANNOTATE}' segfault; :"
        for form in ("text", "json", "csv"):
            result = self.run_watched("sh", "-c", script, options=("--report", "r", "--format", form))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual((self.folder / "r").read_bytes(), self.pastaprof("report", "t.pasta", "--format", form))
            (self.folder / "r").unlink()

    def test_a_snapshot_is_the_trace_cut_there(self):
        watched = self.popen(ANNOTATE, "phases")
        self.assertEqual(watched.stdout.readline(), b"ready\n")
        self.assertIn("t.pasta.run", self.left())
        snapshot = self.text("t.pasta.run")
        reports = self.report("t.pasta.run", "--tool", "operators,processes", "--opt", "operators.scopes=all")
        again = self.report("t.pasta.run", "--tool", "operators", "--opt", "operators.scopes=all")
        self.assertEqual([row["ended"] for row in self.table("processes", "t.pasta.run")], ["still running"] * 2)
        self.assertEqual(self.go_on(watched), 0)
        whole = self.text()

        # Two threads of two processes had a range open, and so had the first thread of one; that of
        # the other has said nothing since the fork.
        seen = events_of(snapshot)
        unfinished = [e for e in seen if "unfinished" in e[4]]
        self.assertEqual(collections.Counter(e[3] for e in unfinished), {"open": 4, "around": 1})
        cut = unfinished[0][1]
        self.assertEqual({e[1] for e in unfinished}, {cut}, "all end where the snapshot was taken")

        def key(event, end, is_open):
            return (event[0], end, event[2], event[3], is_open)

        expected = collections.Counter(
            key(e, min(e[1], cut), e[1] > cut) for e in events_of(whole) if e[0] <= cut)
        self.assertEqual(collections.Counter(key(e, e[1], "unfinished" in e[4]) for e in seen), expected)

        # And the report of a snapshot is that of the text of the whole, cut there. It was taken a little
        # later; when, it says by how long the open ranges had lasted.
        of_snapshot = next(r for r in reports["reports"] if r["tool"] == "operators")
        table = next(part for part in of_snapshot["parts"] if part["type"] == "table")
        total = [column["name"] for column in table["columns"]].index("host_total")
        lasted = next(row[total] for row in table["rows"] if row[0] == "open")
        cut, rest = divmod(lasted + sum(e[0] for e in unfinished if e[3] == "open"), 4)
        self.assertEqual(rest, 0)
        lines = []
        for line in whole.splitlines():
            event = events_of(line)
            if event and event[0][0] > cut:
                continue
            if event and event[0][1] > cut:
                line = re.sub(r"^scope \d+ \d+", f"scope {event[0][0]} {cut}", line)
                line = re.sub(r" flags=\S+|$", " flags=unfinished", line, count=1)
            lines.append(line)
        (self.folder / "cut.txt").write_text("\n".join(lines) + "\n")
        of_cut = self.report("cut.txt", "--tool", "operators", "--opt", "operators.scopes=all")
        self.assertEqual(of_cut["reports"][0], of_snapshot)
        # A later snapshot differs in nothing but the time until which the open ranges lasted.
        self.assertEqual(again["trace"]["events"], reports["trace"]["events"])

    def test_snapshots_of_what_is_being_written(self):
        watched = self.popen(ANNOTATE, "busy")
        self.assertEqual(watched.stdout.readline(), b"ready\n")
        snapshots = [self.text("t.pasta.run") for _ in range(3)]
        self.assertEqual(self.go_on(watched), 0)

        def by_thread(text):
            threads = collections.defaultdict(list)
            for event in events_of(text):
                if "unfinished" not in event[4]:
                    threads[event[2]].append(event[:4])
            return threads

        whole = by_thread(self.text())
        self.assertEqual(len(whole), 4)
        for snapshot in snapshots:
            for thread, events in by_thread(snapshot).items():
                self.assertEqual(events, whole[thread][:len(events)], "what was read is a beginning")
        self.assertLess(len(snapshots[0]), len(snapshots[2]))

    def test_a_run_that_ends_while_it_is_read(self):
        watched = subprocess.Popen([PROGRAM, "run", "-o", "t.pasta", "--report", "r", "--", ANNOTATE, "ranges", "300000"],
                                   cwd=self.folder, stderr=subprocess.DEVNULL)
        seen = []
        while watched.poll() is None:
            result = subprocess.run([PROGRAM, "report", "t.pasta.run", "--tool", "summary", "--format", "csv"],
                                    cwd=self.folder, capture_output=True, check=False)
            seen.append((result.returncode, result.stderr.decode()))
        # All of it up to a moment, or no answer.
        self.assertEqual([m for code, m in seen if code not in (0, 1) and not re.search(r": \d begin_without_end$", m)], [])
        self.assertEqual(self.report()["trace"]["events"], {"scope": 600_000})

    def test_ranks(self):
        script = f"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 '{ANNOTATE}' ranges 1 & RANK=1 WORLD_SIZE=2 '{ANNOTATE}' ranges 2; wait"
        self.run_watched("sh", "-c", script)
        self.assertEqual(sorted((row["rank"], row["events"]) for row in self.table("processes") if row["rank"] is not None),
                         [(0, 2), (1, 4)])

    @unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
    def test_mpirun(self):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]
        result = self.run_watched(*mpirun, ANNOTATE, "ranges", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = self.table("processes")
        ranks = [row for row in rows if row["rank"] is not None]
        self.assertEqual(sorted((row["rank"], row["events"], row["ended"]) for row in ranks),
                         [(rank, 6, "exit 0") for rank in range(4)])
        self.assertTrue(rows[0]["process"].startswith(("mpirun", "orterun", "prterun")), rows[0])
        (self.folder / "t.pasta").unlink()
        # The other way round, each rank has a trace of its own, with names given and without.
        for options, names in ((["-o", "r%r.pasta"], [f"r{rank}.pasta" for rank in range(4)]),
                               ([], [f"run_annotate-rank{rank}-1.pasta" for rank in range(4)])):
            result = subprocess.run([*mpirun, PROGRAM, "run", *options, "--", ANNOTATE, "ranges", "3"], cwd=self.folder,
                                    capture_output=True, check=False, timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.left(), names)
            sources = self.report(".")["trace"]["sources"]
            self.assertEqual([(s["label"], s["rank"], s["events"]) for s in sources],
                             [(f"rank {rank}", rank, {"scope": 6}) for rank in range(4)])
            for name in names:
                (self.folder / name).unlink()

    def test_two_runs_at_once_have_two_names(self):
        runs = [subprocess.Popen([PROGRAM, "run", "--", "sh", "-c", ":"], cwd=self.folder, stderr=subprocess.DEVNULL)
                for _ in range(4)]
        self.assertEqual([run.wait(timeout=60) for run in runs], [0] * 4)
        self.assertEqual(self.left(), [f"sh-{n}.pasta" for n in range(1, 5)])


def used(folder):
    """Bytes on disk of the run's folder, whose files come and go."""
    bytes_used = 0
    for path in (folder / "t.pasta.run").glob("*"):
        with contextlib.suppress(FileNotFoundError):
            bytes_used += path.stat().st_blocks * 512
    return bytes_used


class KeepLast(Watching):
    def announced(self, *options, least):
        """Watches a program that tells how often it has said what, and kills it; (told, bytes seen on disk)."""
        watched = self.popen(ANNOTATE, "announce", options=options)
        told = most = 0
        while told < least:
            told += len(watched.stdout.read(1 << 16)) // 4
            most = max(most, used(self.folder))
        child = int(subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(watched.pid)]).split()[0])
        os.kill(child, signal.SIGKILL)
        told += len(watched.stdout.read()) // 4
        self.assertEqual(watched.wait(timeout=120), 137)
        return told, most

    def check(self, told, trace="t.pasta"):
        events = events_of(self.text(trace))
        problems = self.problems(trace)
        kept = [e for e in events if e[3] == "announced"]
        lost = problems.get("dropped_by_collector", 0)
        # One more may have been said than was told.
        self.assertIn(len(kept) + problems["let_go"] + lost - told, (0, 1))
        # Whatever was let go, what was open still is, once, from when it began.
        (still_open,) = (e for e in events if e[3] == "open")
        self.assertIn("unfinished", still_open[4])
        self.assertLess(still_open[0], kept[0][0])
        return kept, still_open

    def test_size(self):
        told, most = self.announced("--keep-last", "24MiB", least=1_000_000)
        self.assertLessEqual(most, 24 << 20)
        kept, _ = self.check(told)
        self.assertLess(len(kept), 24 * (1 << 20) // 64)
        self.assertEqual(self.left(), ["t.pasta"])

    def test_size_when_nobody_follows_any_more(self):
        # pastaprof is killed, and the program goes on for many times what may be kept.
        watched = self.popen(ANNOTATE, "announce", options=("--keep-last", "8MiB"))
        child = wait_for(lambda: subprocess.run(["ps", "-o", "pid=", "--ppid", str(watched.pid)], check=False,
                                                capture_output=True).stdout.split())
        told = len(watched.stdout.read(1 << 16)) // 4
        watched.kill()
        watched.wait()
        most = 0
        while told < 1_000_000:
            told += len(watched.stdout.read(1 << 16)) // 4
            most = max(most, used(self.folder))
        os.kill(int(child[0]), signal.SIGKILL)
        told += len(watched.stdout.read()) // 4
        watched.stdout.close()
        self.assertLessEqual(most, 24 << 20)
        kept, _ = self.check(told, "t.pasta.run")
        self.assertEqual(self.problems("t.pasta.run").get("dropped_by_collector", 0), 0)
        self.assertGreater(len(kept), 10_000)

    def test_time(self):
        told, _ = self.announced("--keep-last", "200ms", least=1_000_000)
        kept, still_open = self.check(told)
        self.assertLessEqual(still_open[1] - kept[0][1], 200_000_000)
        report = self.pastaprof("report", "t.pasta").decode()
        self.assertIn("kept only the last 200ms", report)

    def test_nothing_is_let_go_of_what_is_small(self):
        result = self.run_watched(ANNOTATE, "ranges", "1000", options=("--keep-last", "1h"))
        self.assertIn(b"keeps only the last 1h, in at most 2.0 GiB of disk", result.stderr)
        self.assertEqual(self.report()["trace"]["events"], {"scope": 2000})
        self.assertEqual(self.problems(), {})
        self.assertEqual(self.run_watched("true", options=("--keep-last", "60")).returncode, 125)

    def test_processes_that_are_long_gone(self):
        # In each of the first, four ranges ended; in each of the others, one was left open.
        script = f"i=0; while [ $i -lt 50 ]; do '{ANNOTATE}' ranges 2; '{ANNOTATE}' exit; i=$((i+1)); done"
        watched = self.popen("sh", "-c", script + "; echo done; read x", options=("--keep-last", "50ms"))
        self.assertEqual(watched.stdout.readline(), b"done\n")
        wait_for(lambda: len(list((self.folder / "t.pasta.run").glob("*"))) < 10)
        self.assertEqual(self.go_on(watched), 0)
        # The last of them may have ended within the time that is kept.
        kept = self.report()["trace"]["events"].get("scope", 0)
        let_go = self.problems()["let_go"]
        self.assertEqual(kept + let_go, 50 * (4 + 1))
        self.assertGreater(let_go, kept)


class LongRun(Watching):
    """Without --keep-last all is kept, however long the run is and little its folder may use."""

    def told_until(self, watched, least):
        """Lets the program tell so often, never faster than it is followed; most bytes seen on disk."""
        told = most = 0
        while told < least:
            read = watched.stdout.read(1 << 16)
            self.assertTrue(read)
            told += len(read) // 4
            most = max(most, used(self.folder))
            wait_for(lambda: used(self.folder) < 19 << 20)
        return told, most

    def end(self, watched, program):
        os.kill(program, signal.SIGKILL)
        rest = len(watched.stdout.read()) // 4
        watched.stdout.close()
        return rest

    @staticmethod
    def announced_in(text):
        return {int(line.split()[1]) for line in text.splitlines() if '"announced"' in line and line.startswith("scope ")}

    def test_more_than_the_folder_may_use(self):
        watched = self.popen(ANNOTATE, "announce", options=("--spool-size", "24MiB"))
        told, most = self.told_until(watched, 600_000)
        program = int(subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(watched.pid)]).split()[0])
        told += self.end(watched, program)
        self.assertEqual(watched.wait(timeout=120), 137)
        self.assertLessEqual(most, 24 << 20)
        self.assertIn(len(self.announced_in(self.text())) - told, (0, 1))
        problems = self.problems()
        self.assertEqual(set(problems), {"begin_without_end"}, problems)  # the range around
        self.assertEqual(self.left(), ["t.pasta"])

    def test_when_nobody_follows_any_more(self):
        watched = self.popen(ANNOTATE, "announce", options=("--spool-size", "24MiB"))
        told, _ = self.told_until(watched, 600_000)
        program = int(subprocess.check_output(["ps", "-o", "pid=", "--ppid", str(watched.pid)]).split()[0])
        watched.kill()
        watched.wait()
        told += self.end(watched, program)
        (partial,) = (name for name in self.left() if ".tmp-" in name)
        written, folder = (self.announced_in(self.text(name)) for name in (partial, "t.pasta.run"))
        # Each has what the other has not, and the folder says how much that is.
        self.assertIn(len(written | folder) - told, (0, 1))
        gone = self.problems("t.pasta.run")["written_already"]
        self.assertGreater(gone, 250_000)
        self.assertIn(len(folder) + gone - told, (0, 1))
        first = min(folder)
        self.assertEqual(len([start for start in written if start < first]), gone)


class Terminal:
    """A terminal of 24 lines of 80 columns, as far as the program and its view use one."""

    def __init__(self):
        self.rows, self.columns = 24, 80
        self.lines = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, self.rows - 1
        self.saved = (0, 0)
        self.gone = []  # lines that have scrolled away

    def down(self):
        if self.row == self.bottom:
            self.gone.append("".join(self.lines.pop(self.top)).rstrip())
            self.lines.insert(self.bottom, [" "] * self.columns)
        elif self.row < self.rows - 1:
            self.row += 1

    def feed(self, text):
        pattern = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|\x1b([78DM])|([\r\n\a\b])|([^\x1b])", re.DOTALL)
        at = 0
        while at < len(text):
            found = pattern.match(text, at)
            assert found, repr(text[at:at + 20])
            at = found.end()
            private, numbers, command, single, control, letter = found.groups()
            values = [int(n or 0) for n in numbers.split(";")] if numbers else []
            if letter:
                if self.column < self.columns:
                    self.lines[self.row][self.column] = letter
                    self.column += 1
            elif control == "\r":
                self.column = 0
            elif control == "\n" or single == "D":
                self.down()
            elif single == "7":
                self.saved = (self.row, self.column)
            elif single == "8":
                self.row, self.column = self.saved
            elif command == "H":
                self.row, self.column = (values + [1, 1])[0] - 1, (values + [1, 1])[1] - 1
            elif command == "A":
                self.row = max(self.row - (values or [1])[0], 0)
            elif command == "r":
                self.top, self.bottom = (values[0] - 1, values[1] - 1) if values else (0, self.rows - 1)
                self.row = self.column = 0
            elif command == "K":
                self.lines[self.row] = [" "] * self.columns if values == [2] else self.lines[self.row]
            elif command == "J":
                for row in range(self.row, self.rows):
                    self.lines[row] = [" "] * self.columns
            else:
                assert private or command in ("m",) or control, found.group()

    def screen(self):
        return ["".join(line).rstrip() for line in self.lines]


class OnATerminal(Watching):
    def start(self, *words, options=()):
        """pastaprof as the first program of a terminal of its own."""
        process, self.terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.environ["TERM"] = "xterm"
            os.execv(PROGRAM, [PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", *words])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.addCleanup(os.close, self.terminal)
        self.output = b""
        return process

    def read_until(self, what, seconds=60, after=b"", pressing=b""):
        """`pressing` again and again, as a person does: of two signals that come while pastaprof has no
        processor there is one."""
        end = time.monotonic() + seconds
        while what not in self.output.partition(after)[2] if after else what not in self.output:
            self.assertLess(time.monotonic(), end, self.output)
            ready, _, _ = select.select([self.terminal], [], [], 0.3)
            if not ready:
                os.write(self.terminal, pressing)
                continue
            try:
                got = os.read(self.terminal, 65536)
            except OSError:  # all that had it open have ended
                got = b""
            if not got:
                self.assertIn(what, self.output)
                return
            self.output += got

    def ready(self):
        """The process that says so, which is ended by the end of the test."""
        self.read_until(b"ready ")
        self.read_until(b"\n", after=b"ready ")
        program = int(re.search(rb"ready (\d+)", self.output).group(1))
        self.addCleanup(os.kill, program, signal.SIGKILL)
        return program

    def read_all(self):
        try:
            while got := os.read(self.terminal, 65536):
                self.output += got
        except OSError:
            pass

    def code(self, process):
        self.read_all()
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def test_live_view(self):
        process = self.start(ANNOTATE, "lines", options=("--live", "--report", "r"))
        self.read_until(b"line 59")
        seen = len(self.output)
        self.read_until(b"outer")
        wait_for(lambda: self.read_until(b"line 59") or b"events" in self.output[seen:] or self.read_some())
        during = Terminal()
        during.feed(self.output.decode())
        view = "\n".join(during.screen()[-12:])
        self.assertRegex(view, r"pastaprof: [\d.]+ s, .* events, .*/s")
        self.assertRegex(view, r"ranges +calls +time")
        self.assertRegex(view, r"outer +\d+ ")
        os.write(self.terminal, b"\n")
        self.assertEqual(self.code(process), 3)
        after = Terminal()
        after.feed(self.output.decode())
        self.assertEqual((after.top, after.bottom), (0, 23), "the whole terminal scrolls again")
        program = [line for line in after.gone + after.screen() if line.startswith(("line", "the end"))]
        self.assertEqual(program, [f"line {i}" for i in range(60)] + ["the end"], "in order, and all of it")
        self.assertNotIn("events,", "\n".join(after.screen()), "the view has gone")
        self.assertEqual((self.folder / "r").read_bytes(), self.pastaprof("report", "t.pasta"))

    def read_some(self):
        ready, _, _ = select.select([self.terminal], [], [], 0.1)
        if ready:
            self.output += os.read(self.terminal, 65536)

    def test_live_view_of_a_flight_recorder(self):
        process = self.start(ANNOTATE, "lines", options=("--live", "--keep-last", "1h"))
        self.read_until(b"outer")
        os.write(self.terminal, b"\n")
        self.assertEqual(self.code(process), 3)
        self.assertEqual(set(self.report()["trace"]["events"]), {"scope"})

    def test_live_without_a_terminal_is_told(self):
        result = self.run_watched(ANNOTATE, "ranges", "1", options=("--live",))
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"--live shows nothing", result.stderr)
        self.assertNotIn(b"\x1b", result.stderr)

    def test_interrupted_twice(self):
        process = self.start(ANNOTATE, "stubborn")
        program = self.ready()
        os.write(self.terminal, b"\x03")
        self.read_until(b"interrupted")
        self.read_until(b"the trace is t.pasta", pressing=b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 130)
        os.kill(program, 0)  # it goes on
        self.assertEqual([e[3] for e in events_of(self.text())], ["waiting"])
        self.assertEqual(self.table("processes")[0]["ended"], "still running")

    def test_a_flight_recorder_of_what_hangs(self):
        process = self.start(ANNOTATE, "stubborn", options=("--keep-last", "1h"))
        self.ready()
        os.write(self.terminal, b"\x03")
        self.read_until(b"interrupted")
        self.read_until(b"the trace is t.pasta", pressing=b"\x03")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 130)
        self.assertEqual([e[3] for e in events_of(self.text())], ["waiting"])

    def test_interrupted_once(self):
        process = self.start(ANNOTATE, "wait")
        self.read_until(b"ready")
        os.write(self.terminal, b"\x03")
        self.assertEqual(self.code(process), 130)
        self.assertEqual(self.table("processes")[0]["ended"], "signal 2")

    def test_stopped_and_continued_from_the_terminal(self):
        # A shell with job control: its job is stopped by the terminal and goes on in the foreground.
        shell = ("import os, signal, sys\n"
                 "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
                 "job = os.fork()\n"
                 "if job == 0:\n"
                 "  os.setpgid(0, 0); os.tcsetpgrp(0, os.getpid()); signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n"
                 "  os.execv(sys.argv[1], sys.argv[1:])\n"
                 "status = os.waitpid(job, os.WUNTRACED)[1]\n"
                 "os.tcsetpgrp(0, os.getpgrp())\n"
                 "print('stopped' if os.WIFSTOPPED(status) else status, flush=True)\n"
                 "os.tcsetpgrp(0, job); os.killpg(job, signal.SIGCONT)\n"
                 "print('ended', os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)\n")
        process, self.terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-c", shell, PROGRAM, "run", "--live", "-f", "-o", "t.pasta",
                                      "--", ANNOTATE, "lines"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.addCleanup(os.close, self.terminal)
        self.output = b""
        self.read_until(b"outer")
        os.write(self.terminal, b"\x1a")
        self.read_until(b"stopped")
        terminal = Terminal()
        terminal.feed(self.output.decode())
        self.assertEqual((terminal.top, terminal.bottom), (0, 23), "the terminal was given back before")
        seen = len(self.output)
        wait_for(lambda: b"outer" in self.output[seen:] or self.read_some())
        os.write(self.terminal, b"\n")
        self.read_until(b"ended 3")
        self.code(process)

    def test_a_pager_of_its_own_keeps_the_terminal(self):
        # What the program does with the terminal is its own: here its size and its modes.
        process = self.start("sh", "-c", "stty size; stty -echo; stty -a | grep -o -- -echo; exit 6")
        self.assertEqual(self.code(process), 6)
        self.assertIn(b"-echo", self.output)


if __name__ == "__main__":
    unittest.main()
