#!/usr/bin/env python3
"""What is pushed is in the trace, or is counted, however a program ends and whatever it takes away from the
collector; and the program does not notice."""
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ["PASTAPROF"]
FAULTS = os.environ["PASTA_FAULTS"]
COLLECTOR = os.environ["PASTA_COLLECT"]


def namespaces(*options):
    """Words before a command that give it namespaces of its own; None where that is not permitted."""
    for words in (["unshare", *options], ["unshare", "--map-root-user", *options]):
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    return None


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def watch(self, *words, options=(), before=(), code=0):
        result = subprocess.run([*before, PROGRAM, "run", "-o", "t.pasta", *options, "--", *words], timeout=300,
                                cwd=self.folder, capture_output=True, text=True, check=False)
        if result.returncode == 77 and code != 77:
            self.skipTest("not permitted here")
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def dump(self, trace="t.pasta"):
        result = subprocess.run([PROGRAM, "dump", trace], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn(result.returncode, (0, 3), result.stderr)
        return result.stdout

    def marks(self, trace="t.pasta", name="mark"):
        """How many each process has made, by its id."""
        processes, lanes, found = {}, {}, collections.Counter()
        for line in self.dump(trace).splitlines():
            if words := re.match(r"process (P\d+) id=(\d+)", line):
                processes[words[1]] = int(words[2])
            elif words := re.match(r"lane (L\d+) thread process=(P\d+)", line):
                lanes[words[1]] = processes[words[2]]
            elif words := re.match(rf'scope \S+ \S+ (L\d+) "{name}"', line):
                found[lanes[words[1]]] += 1
        return found

    def kept_and_lost(self, trace="t.pasta"):
        result = subprocess.run([PROGRAM, "report", trace, "--tool", "summary", "--format", "json"], cwd=self.folder,
                                capture_output=True, check=False)
        self.assertIn(result.returncode, (0, 3), result.stderr)
        trace = json.loads(result.stdout)["trace"]
        lost = sum(p["count"] for p in trace["quality"]["problems"] if p["reason"] == "dropped_by_collector")
        return trace["events"].get("scope", 0), lost

    def test_killed_at_random_times(self):
        seed = random.randrange(1 << 32)
        told = self.watch(FAULTS, "kill", "200", str(seed)).stdout.split()
        self.assertEqual(len(told), 400)
        found = self.marks(name="announced")
        for process, count in zip(map(int, told[::2]), map(int, told[1::2])):
            self.assertGreaterEqual(found[process], count, f"seed {seed}")
            self.assertLessEqual(found[process], count + 1, f"seed {seed}")
        self.assertGreater(sum(found.values()), 10_000)

    def test_many_short_processes(self):
        self.watch(FAULTS, "processes", "1000")
        found = self.marks()
        self.assertEqual((len(found), sum(found.values())), (1000, 1000))

    def test_many_short_threads(self):
        self.watch(FAULTS, "threads", "10000")
        self.assertEqual(list(self.marks().values()), [10_000])

    def test_what_is_taken_away_costs_no_event_uncounted(self):
        for what, whole in (("close", True), ("no-files", False), ("no-memory", True), ("small-files", False),
                            ("chroot", False)):
            with self.subTest(what=what):
                self.watch(FAULTS, what, "5000", options=("-f",))
                kept, lost = self.kept_and_lost()
                self.assertEqual(kept + lost, 5000)
                self.assertEqual(lost == 0, whole)
                self.assertGreater(kept, 500)

    def test_a_library_that_is_closed_and_opened_again(self):
        result = self.watch(os.environ["PASTA_REOPEN"], os.environ["PASTA_REOPEN_LIBRARY"], "5")
        self.assertEqual(result.stdout, "done\n")
        self.assertEqual((sum(self.marks(name="said").values()), sum(self.marks(name="around").values())), (5, 5))

    def test_another_library_that_is_preloaded(self):
        # It stands in front of _exit() as ours does; both do what they are for, whoever is first.
        theirs = os.environ["PASTA_PRELOAD"]
        program = [os.environ["PASTA_ANNOTATE"], "_exit"]
        # Theirs is in pastaprof, too, where it says what nobody watches.
        orders = {"ours": (program, {**os.environ, "LD_PRELOAD": theirs}, 1),
                  "theirs": (["sh", "-c", 'LD_PRELOAD="$0:$LD_PRELOAD" exec "$@"', theirs, *program], None, 0)}
        for first, (words, environment, unwatched) in orders.items():
            with self.subTest(first=first):
                result = subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", "--", *words], cwd=self.folder, text=True,
                                        capture_output=True, check=False, env=environment)
                self.assertEqual(result.returncode, 5, result.stderr)
                self.assertTrue(result.stdout.endswith("loaded\ntheir _exit\n"), result.stdout)
                dump = self.dump()
                self.assertEqual(len(re.findall(r'"their constructor"', dump)), result.stdout.count("loaded") - unwatched)
                self.assertEqual(len(re.findall(r'"open".*unfinished', dump)), 1)
                self.assertIn('ended" "exit 5"', dump)

    def test_a_process_of_no_run_ends_as_it_would(self):
        """It may have the collector by LD_PRELOAD alone."""
        program = ("import ctypes, os; libc = ctypes.CDLL(None); "
                   "handler = ctypes.CFUNCTYPE(None)(lambda: os.write(1, b'its handler') and None); "
                   "libc.__cxa_at_quick_exit(handler, None); libc.quick_exit(3)")
        environment = {name: value for name, value in os.environ.items() if name != "PASTA_RUN_FOLDER"}
        result = subprocess.run([sys.executable, "-c", program], env={**environment, "LD_PRELOAD": COLLECTOR},
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout), (3, "its handler"))

    def test_the_runs_folder_is_taken_away(self):
        result = self.watch(FAULTS, "unlink", "5000")
        self.assertIn("t.pasta.run", result.stderr)

    def test_a_full_disk(self):
        inside = namespaces("--mount")
        if inside is None:
            self.skipTest("namespaces are not permitted")
        (self.folder / "disk").mkdir()
        script = ('mount -t tmpfs -o size=8m none disk || exit 77; cd disk; "$0" run -o t.pasta -- "$1" mark 300000 || exit 1;'
                  'for t in t.pasta.run t.pasta; do if [ -e $t ]; then exec "$0" report $t --tool summary --format json; fi; done')
        result = subprocess.run([*inside, "sh", "-c", script, PROGRAM, FAULTS], cwd=self.folder, capture_output=True,
                                check=False)
        if result.returncode == 77:
            self.skipTest("mounting is not permitted")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(b"stays in the run's folder", result.stderr)
        trace = json.loads(result.stdout)["trace"]
        lost = sum(p["count"] for p in trace["quality"]["problems"] if p["reason"] == "dropped_by_collector")
        self.assertEqual(trace["events"]["scope"] + lost, 300_000)
        self.assertGreater(trace["events"]["scope"], 50_000)

    def test_other_namespaces_of_process_ids(self):
        inside = namespaces("--pid", "--fork")
        if inside is None:
            self.skipTest("namespaces are not permitted")
        self.watch(*inside, "sh", "-c", f"'{FAULTS}' mark 3000; '{FAULTS}' mark 3000; true")
        self.assertEqual(sum(self.marks().values()), 6000)

    def test_exec_ends_what_was_open(self):
        self.watch(FAULTS, "exec")
        text = self.dump()
        before = re.search(r'scope (\d+) (\d+) L\d+ "before".*unfinished', text)
        marks = [int(end) for end in re.findall(r'scope \d+ (\d+) L\d+ "mark"', text)]
        self.assertEqual(len(marks), 2)
        self.assertTrue(min(marks) < int(before[2]) < max(marks), text)

    def test_the_first_thread_ends_first(self):
        self.watch(FAULTS, "first-thread-ends", "2000", code=3)
        self.assertEqual(sum(self.marks().values()), 2000)

    def test_the_child_of_vfork_does_not_end_its_parent(self):
        self.watch("sh", "-c", f"'{FAULTS}' vfork 10; true")
        self.assertEqual(sum(self.marks().values()), 10)
        self.assertIn('"no exit seen"', self.dump())

    def test_processes_of_python(self):
        (self.folder / "p.py").write_text(
            "import ctypes, multiprocessing, os, subprocess, sys\n"
            "class Collector(ctypes.Structure):\n"
            "  _fields_ = [('size', ctypes.c_size_t), ('begin', ctypes.c_void_p), ('end', ctypes.c_void_p),\n"
            "              ('mark', ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_size_t))]\n"
            "function = ctypes.CDLL(None).pasta_collector_v1\n"
            "function.restype = ctypes.POINTER(Collector)\n"
            "def mark(x): function().contents.mark(b'mark', 4); return x\n"
            "if __name__ == '__main__':\n"
            "  for method in ('fork', 'spawn'):\n"
            "    with multiprocessing.get_context(method).Pool(2) as pool: print(sum(pool.map(mark, range(50))))\n"
            f"  subprocess.run(['{FAULTS}', 'mark'], check=True)\n"
            f"  subprocess.run('{FAULTS} mark; {FAULTS} mark', shell=True, check=True)\n"
            f"  os.waitpid(os.posix_spawn('{FAULTS}', ['{FAULTS}', 'mark'], os.environ), 0)\n"
            "  if os.fork() == 0: mark(0); os._exit(0)\n"
            "  os.wait()\n"
            f"  os.execv('{FAULTS}', ['{FAULTS}', 'mark'])\n")
        self.assertEqual(self.watch(sys.executable, "p.py").stdout, "1225\n1225\n")
        self.assertEqual(sum(self.marks().values()), 100 + 1 + 2 + 1 + 1 + 1)

    def test_a_result_of_the_device_does_not_end_before_it_begins(self):
        # Its start is read from another clock than its end, which may be behind.
        (self.folder / "p.py").write_text(
            "import ctypes, time\n"
            "class Result(ctypes.Structure):\n"
            "  _fields_ = [('size', ctypes.c_size_t), ('kernel', ctypes.c_char_p), ('kernel_bytes', ctypes.c_size_t),\n"
            "              ('format', ctypes.c_char_p), ('format_bytes', ctypes.c_size_t), ('blob', ctypes.c_char_p),\n"
            "              ('blob_bytes', ctypes.c_size_t), ('launch', ctypes.c_uint64), ('start_ns', ctypes.c_int64),\n"
            "              ('even_stopped', ctypes.c_bool)]\n"
            "result = Result(ctypes.sizeof(Result), b'gemm', 4, b'times/1', 7, b'', 0, 1, time.monotonic_ns() + 10**9)\n"
            "ctypes.CDLL(None).pasta_push_device_result_v1(ctypes.byref(result))\n")
        self.watch(sys.executable, "p.py")
        device, = (line.split() for line in self.dump().splitlines() if line.startswith("device "))
        self.assertEqual(device[1], device[2], device)

    def test_the_program_finds_what_it_would_find_alone(self):
        script = ("grep -E '^(Umask|Groups|Sig(Q|Blk|Ign|Cgt)|Shd|NoNewPrivs|Seccomp)' /proc/self/status | grep -v SigQ; "
                  "ulimit -a; ls /proc/self/fd; readlink /proc/self/fd/0; ps -o pgid=,sid=,tty= -p $$; pwd; env | sort")

        def seen(*before):
            text = subprocess.run([*before, "bash", "-c", script], cwd=self.folder, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=True).stdout
            return [line for line in text.splitlines() if not re.match("(LD_PRELOAD|PASTA_RUN_FOLDER|OPENCL_LAYERS|ROCP_TOOL_LIBRARIES|[A-Z]+_INJECTION64_PATH|_)=", line)]
        self.assertEqual(seen(PROGRAM, "run", "-o", "t.pasta", "--"), seen())

    def test_a_core_is_dumped_as_alone(self):
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if "/" in pattern or "|" in pattern:
            self.skipTest("cores go elsewhere here")

        # A pastaprof with the address sanitizer would forbid cores to what it starts.
        environment = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":disable_coredump=0"}

        def core(folder, *before):
            (self.folder / folder).mkdir()
            code = subprocess.run(["bash", "-c", 'ulimit -c unlimited && exec "$@"', "bash", *before, FAULTS, "abort"],
                                  cwd=self.folder / folder, capture_output=True, check=False,
                                  env=environment).returncode
            # Memory that nobody has touched is a hole in it.
            return code, [p.stat().st_blocks * 512 for p in (self.folder / folder).iterdir()
                          if p.name.startswith("core")]
        code, alone = core("alone")
        self.assertEqual(code, -6)
        code, watched = core("watched", PROGRAM, "run", "-o", "t.pasta", "--")
        self.assertEqual((code, len(watched)), (134, len(alone)))
        if alone:
            self.assertLess(watched[0], alone[0] + (1 << 20))

    def test_the_collector_brings_nothing_with_it(self):
        text = subprocess.run(["readelf", "--wide", "--dynamic", "--program-headers", COLLECTOR], capture_output=True,
                              text=True, check=True).stdout
        self.assertEqual(set(re.findall(r"NEEDED.*\[(.*)\]", text)) - {"libdl.so.2", "libpthread.so.0"}, {"libc.so.6"})
        self.assertNotIn(" TLS ", text)
        self.assertIn("NODELETE", text)


if __name__ == "__main__":
    unittest.main()
