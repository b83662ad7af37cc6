#!/usr/bin/env python3
"""pastaprof merge --patched: what patches found goes to the launches that it belongs to."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PROGRAM = os.environ.get("PASTAPROF", str(SOURCE / "build" / "release" / "src" / "cli" / "pastaprof"))
sys.path.insert(0, str(SOURCE / "tests" / "diff"))
import device_blobs as blobs  # noqa: E402

HEAD = 'pasta-text 1\nprocess P1 id={pid} name="train"\ndevice D1 process=P1 ordinal=0 type=gpu\n' \
       'lane T1 thread process=P1 id=42\nlane L1 queue process=P1 device=D1 id=7\nframe F1 "layer"\n'


def timed(*kernels, pid=7):
    """Each 10 ns long, one every 100 ns."""
    lines = [HEAD.format(pid=pid)]
    for number, kernel in enumerate(kernels, 1):
        begin = 100 * number
        lines.append(f'kernel {begin} {begin + 10} L1 "{kernel}" correlation=P1:{number} scope=F1 grid=4,1,1\n')
    return "".join(lines)


def access_blob(objects=((5, 0x1000, 256),), names=("a",), grid=(4, 1, 1)):
    rows = [(number, 1, 32, 0, 0, 1, 128, 128, 4, 128, 0, 0) for number, _, _ in objects]
    return blobs.result(blobs.table(blobs.OBJECTS, objects, names), blobs.table(blobs.ACCESSES, rows), grid=grid).hex()


def patched(*launches, pid=8, blob=None, before=""):
    """(number, kernel); times are of another clock."""
    lines = [HEAD.format(pid=pid), f'blob B1 "{blob or access_blob()}"\n', before]
    for number, kernel in launches:
        lines.append(f'device {9000 + number} {9500 + number} T1 "{kernel}" blob=B1 format="access/2" launch={number}\n')
    return "".join(lines)


class Passes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *arguments, code=0):
        result = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def join(self, times, accesses):
        (self.folder / "times").write_text(times)
        (self.folder / "accesses").write_text(accesses)
        self.run_program("merge", "times", "--patched", "accesses", "-f", "-o", "joined.pasta")
        return self.run_program("dump", "joined.pasta").stdout.splitlines()

    @staticmethod
    def devices(lines):
        """Number, start, end, whose times, lane."""
        found = [re.match(r'device (\S+ \S+) (\S+) "\w+" (?:times=(\w+) )?.*launch=(\d+)', line) for line in lines]
        return [(int(m[4]), m[1], m[3], m[2]) for m in found if m]

    def report(self, tool):
        return json.loads(self.run_program("report", "joined.pasta", "--tool", tool, "--format", "json").stdout)

    def part(self, report, ident):
        return next((p for p in report["reports"][0]["parts"] if p["id"] == ident), None)

    def test_each_launch_has_its_own_times(self):
        lines = self.join(timed("a", "b", "a"), patched((1, "a"), (2, "b"), (3, "a")))
        self.assertEqual(self.devices(lines), [(n, f"{100 * n} {100 * n + 10}", "other_run", "L1") for n in (1, 2, 3)])
        self.assertEqual([line for line in lines if line.startswith("problem")], [])
        # Right behind its kernel, with all that is known of that.
        kinds = [line.split()[0] for line in lines if re.match(r"(kernel|device) \d", line)]
        self.assertEqual(kinds, ["kernel", "device"] * 3)
        self.assertEqual(len([line for line in lines if line.startswith("device") and "correlation=P1:" in line and
                              "scope=F1" in line]), 3)
        self.run_program("check", "joined.pasta")

    def test_only_some_were_analysed(self):
        lines = self.join(timed("a", "a", "a", "b", "a"), patched((3, "a"), (4, "b")))
        self.assertEqual([d[:2] for d in self.devices(lines)], [(3, "300 310"), (4, "400 410")])

    def test_what_is_not_found_is_counted(self):
        lines = self.join(timed("a", "b", "c"), patched((1, "a"), (2, "tried"), (3, "b"), (4, "c")))
        self.assertEqual([d[:3] for d in self.devices(lines)],
                         [(1, "100 110", "other_run"), (2, "110 110", "not_joined"), (3, "200 210", "other_run"),
                          (4, "300 310", "other_run")])
        self.assertEqual([line for line in lines if line.startswith("problem")],
                         ['problem not_joined count=1 first="tried, launch 2"'])
        report = self.report("access")
        finding = self.part(report, "launches-not-joined")
        self.assertEqual((finding["share"], finding["of"]), (0.25, "analysed launches"))
        kernels = {row[0]: row[1:] for row in self.part(report, "kernels")["rows"]}
        # 4 sectors of 32 bytes in 10 ns.
        self.assertEqual(kernels["a"], [1, 10, 128, 128, 12_800_000_000, "no"])
        self.assertEqual(kernels["tried"], [1, None, 128, 128, None, "no"])

    def test_those_of_an_iteration_are_looked_for_in_it(self):
        # Three iterations of a and b, of which each is launched in the one before it on the device: by their times
        # on the device they would be of the next. The last alone was analysed, and nobody counted the others.
        lines = [HEAD.format(pid=7)]
        for step in range(3):
            begin = 1000 * step
            lines.append(f'scope {begin} {begin + 1000} T1 "step#{step}" iteration\n')
            for number, kernel in ((2 * step + 1, "a"), (2 * step + 2, "b")):
                call = begin + 100 * (number - 2 * step)
                lines.append(f'api {call} {call + 9} T1 "launch" correlation=P1:{number}\n'
                             f'kernel {call + 1000} {call + 1050} L1 "{kernel}" correlation=P1:{number} grid=4,1,1\n')
        blob = blobs.result(blobs.table(blobs.ITERATION, [(3,)]), grid=(4, 1, 1)).hex()
        joined = self.join("".join(lines), patched((1, "a"), (2, "b"), blob=blob))
        self.assertEqual([d[:3] for d in self.devices(joined)], [(1, "3100 3150", "other_run"), (2, "3200 3250", "other_run")])

    def test_iterations_are_counted_where_no_step_marks_them(self):
        # Four passes through a model, the second of which ends iteration 0. In each one launch, of which the device
        # runs all after the last; the last alone was analysed.
        lines, ends = [HEAD.format(pid=42)], []
        for number in range(1, 5):
            begin = 100 * number
            lines.append(f'api {begin + 10} {begin + 20} T1 "launch" correlation=P1:{number}\n'
                         f'scope {begin + 5} {begin + 30} T1 "inner" module\nscope {begin} {begin + 40} T1 "Net" module\n')
            ends.append(f'kernel {1000 + begin} {1000 + begin + 50} L1 "a" correlation=P1:{number} grid=4,1,1\n')
        blob = blobs.result(blobs.table(blobs.ITERATION, [(3,)]), grid=(4, 1, 1)).hex()
        joined = self.join("".join(lines + ends), patched((1, "a"), blob=blob))
        self.assertEqual([d[:3] for d in self.devices(joined)], [(1, "1400 1450", "other_run")])

    def test_what_share_of_the_time_was_analysed(self):
        self.join(timed("a", "b", "b", "b"), patched((1, "a")))
        finding = self.part(self.report("access"), "times-of-another-run")
        self.assertEqual(finding["share"], 0.25)

    def test_a_run_without_times_says_so(self):
        (self.folder / "joined.pasta").write_text(patched((1, "a")))
        for tool in ("access", "reuse", "divergence"):
            blob = patched((1, "a")).replace("access/2", f"{tool}/1") if tool != "access" else patched((1, "a"))
            (self.folder / "joined.pasta").write_text(blob)
            self.assertIsNotNone(self.part(self.report(tool), "no-times"), tool)

    def test_objects_have_the_names_of_the_run_with_patches(self):
        tag = 'scope 10 10 T1 "weights" annotation arguments="{\\"address\\":4096,\\"bytes\\":256}" flags=instant\n'
        # In the run with times something else is there.
        other = tag.replace("weights", "other")
        self.join(timed("a") + other, patched((1, "a"), before=tag))
        objects = self.part(self.report("access"), "objects")["rows"]
        self.assertEqual([row[1] for row in objects], ["weights (buffer 5)"])

    def test_a_process_that_only_one_run_has(self):
        lines = self.join(HEAD.format(pid=7) + 'scope 0 50 T1 "work" annotation\n', patched((1, "a")))
        self.assertEqual([d[1:3] for d in self.devices(lines)], [("50 50", "not_joined")])
        self.assertTrue([line for line in lines if line.startswith("process") and "run with patches" in line], lines)

    def test_two_runs_with_patches(self):
        skipped = blobs.result(blobs.table(blobs.SKIPPED, [(1,)]), grid=(4, 1, 1)).hex()
        left_out = f'blob B2 "{skipped}"\ndevice 9600 9700 T1 "b" blob=B2 format="skipped/1" launch=2\n'
        (self.folder / "times").write_text(timed("a", "b"))
        (self.folder / "accesses").write_text(patched((1, "a"), before=left_out))
        (self.folder / "activity").write_text(patched((1, "a"), before=left_out).replace("access/2", "divergence/1"))
        self.run_program("merge", "times", "--patched", "accesses", "--patched", "activity", "-o", "joined.pasta")
        lines = self.run_program("dump", "joined.pasta").stdout.splitlines()
        self.assertEqual([d[:3] for d in self.devices(lines)],
                         [(1, "100 110", "other_run"), (1, "100 110", "other_run"), (2, "200 210", "other_run")])
        for tool in ("access", "divergence"):
            self.assertEqual(self.part(self.report(tool), "launches-left-out")["evidence"], {"count": 1}, "once")

    def test_ranks(self):
        def of(rank, text):
            return text.replace("id=7 name", f"rank={rank} id=7 name").replace("id=8 name", f"rank={rank} id=8 name")
        for name, text in (("times0", of(0, timed("a", "b"))), ("times1", of(1, timed("b", "c"))),
                           ("patched0", of(0, patched((1, "a"), (2, "b")))), ("patched1", of(1, patched((2, "c"))))):
            (self.folder / name).write_text(text)
        # In another order each.
        self.run_program("merge", "times0", "times1", "-o", "t.pasta")
        self.run_program("merge", "patched1", "patched0", "-o", "p.pasta")
        self.run_program("merge", "t.pasta", "--patched", "p.pasta", "-o", "joined.pasta")
        lines = self.run_program("dump", "joined.pasta").stdout.splitlines()
        self.assertEqual(sorted(d[:3] for d in self.devices(lines)),
                         [(1, "100 110", "other_run"), (2, "200 210", "other_run"), (2, "200 210", "other_run")])
        self.assertNotIn("not_joined", "\n".join(lines))

    def test_what_the_run_with_patches_lost_is_lost(self):
        lines = self.join(timed("a"), patched((1, "a"), before='problem not_recorded count=3 first="launches"\n'))
        self.assertIn('problem not_recorded count=3 first="run with patches: launches"', lines)

    def test_wrong_usage(self):
        (self.folder / "times").write_text(timed("a"))
        for operands in (("times", "times"), ("-",)):
            result = self.run_program("merge", *operands, "--patched", "times", "-o", "x.pasta", code=2)
            self.assertIn("--patched", result.stderr)


if __name__ == "__main__":
    unittest.main()
