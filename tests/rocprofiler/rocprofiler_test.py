#!/usr/bin/env python3
"""ROCm programs under pastaprof run, with a rocprofiler-sdk that needs no GPU: what it tells becomes events, whatever
is wrong with it, and as the files of rocprofv3 tell it."""
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile
import unittest

PASTAPROF = os.environ["PASTAPROF"]
PROGRAM = os.environ["PASTA_ROCM_PROGRAM"]
ROCM = os.environ["PASTA_FAKE_ROCM"]
ODD = os.path.join(os.path.dirname(ROCM), "odd")
VERSIONS = ("500", "600", "10000")

GEMM = "symbol 7 1024 32 8 _Z4gemmPfi.kd\n"
# correlation start end agent queue kernel dispatch private group workgroup grid
KERNEL = "kernel 11 2500 4500 101 5 7 {} 16 2048 256 1 1 1000 2 1\n"


class Watched(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, script, last="exit", code=3, options=(), **environment):
        (self.folder / "script").write_text(script)
        environment = {**os.environ, "LD_LIBRARY_PATH": ROCM, **environment}
        result = subprocess.run([PASTAPROF, "run", "-f", "-o", "t.pasta", *options, "--", PROGRAM, "script", last],
                                cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said, self.printed = result.stderr, result.stdout
        dump = subprocess.run([PASTAPROF, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True)
        return dump.stdout.splitlines()

    @staticmethod
    def of(lines, kind):
        return [line for line in lines if line.startswith(kind + " ")]

    @classmethod
    def names(cls, lines, kind):
        return [re.search(r'"([^"]*)"', line).group(1) for line in cls.of(lines, kind)]

    @classmethod
    def problems(cls, lines):
        return {line.split()[1]: int(re.search(r"count=(\d+)", line).group(1)) if "count=" in line else 1
                for line in cls.of(lines, "problem")}

    def one(self, lines, kind):
        found = self.of(lines, kind)
        self.assertEqual(len(found), 1, "\n".join(lines))
        return found[0]


class Records(Watched):
    def test_a_launch_its_kernel_and_its_path_in_each_version(self):
        for version in VERSIONS:
            lines = self.run_watched(GEMM + "push step\nwait 200000\nstream 3\ncall HIP_RUNTIME_API 1 11 ~0 ~10\n" +
                                     "wait 200000\nkernel 11 ~20 ~2020 101 5 7 1 16 2048 256 1 1 1000 2 1\nend\n" +
                                     "wait 200000\npop\n",
                                     FAKE_ROCM_VERSION=version)
            call, kernel = self.one(lines, "api"), self.one(lines, "kernel")
            self.assertIn('"hipLaunchKernel" runtime correlation=P1:11', call)
            for text in ('"gemm(float*, int)"', "correlation=P1:11", "grid=4,2,1 block=256,1,1", "registers=40",
                         "static_shared=1024 dynamic_shared=1024 local=16", "ordinal=1", "flags=linked"):
                self.assertIn(text, kernel, version)
            frames = {line.split()[1]: line for line in self.of(lines, "frame")}
            self.assertIn('"step"', frames[re.search(r"scope=(F\d+)", kernel).group(1)])
            # Streams are told from 1.0 on; the queue always is.
            lane = next(line for line in self.of(lines, "lane") if line.split()[1] == kernel.split()[3])
            self.assertIn("context=5 id=3" if version == "10000" else 'id=5 name="queue 5"', lane)
            device = self.one(lines, "device")
            self.assertIn('name="AMD Instinct MI300X" multiprocessors=304 compute=9.4 max_threads=2048 warp_size=64',
                          device)
            self.assertEqual("GPU-0123456789abcde1" in device, version != "500", device)
            self.assertFalse(self.of(lines, "problem"), lines)

    def test_durations_are_the_devices_own(self):
        lines = self.run_watched(GEMM + KERNEL.format(1))
        _, start, end, *_ = self.one(lines, "kernel").split()
        self.assertEqual(int(end) - int(start), 2000)

    def test_the_numbers_of_agents(self):
        lines = self.run_watched(GEMM)
        self.assertTrue([line for line in lines if 'rocm_agent_102" "node 4, logical node 2, GPU 1, gfx942' in line])

    def test_copies_memory_scratch_and_communication(self):
        for version in VERSIONS:
            lines = self.run_watched("stream 2\ncopy 13 5200 5700 2 100 101 4096 16 32\nend\n"
                                     "copy 14 5800 5900 3 101 100 8 0 0\ncopy 15 6000 6100 4 101 102 8 0 0\n"
                                     "alloc 16 7000 7100 1 101 4096 1000\nalloc 17 7200 7300 3 0 4096 0\n"
                                     "scratch 18 8000 8100 1 101 5\ncall RCCL_API 0 19 8200 8300\n",
                                     FAKE_ROCM_VERSION=version)
            copies = self.of(lines, "copy")
            self.assertEqual([re.search(r"direction=(\w+)", line).group(1) for line in copies],
                             ["host_to_device", "device_to_host", "peer_to_peer"])
            self.assertIn("bytes=4096", copies[0])
            self.assertEqual("src=0x10 dst=0x20" in copies[0], version == "10000")
            # Both copies that touch the first GPU lie on it.
            devices = {line.split()[1]: re.search(r"device=(\w+)", line).group(1) for line in self.of(lines, "lane")
                       if " queue " in line}
            self.assertEqual(devices[copies[0].split()[3]], devices[copies[1].split()[3]])
            if version != "500":  # which does not tell of memory
                self.assertIn("bytes=1000 address=0x1000 device=D", self.one(lines, "alloc"))
                self.assertIn("bytes=1000 address=0x1000 device=D", self.one(lines, "free"))
            self.assertIn('"SCRATCH_MEMORY_ALLOC" runtime', self.one(lines, "scope"))
            self.assertIn('"ncclAllReduce" communication', self.one(lines, "api"))

    def test_migrations_and_faults(self):
        for version in VERSIONS:
            # 0.5 has no record of what was dropped.
            lines = self.run_watched("migrate 100 300 0 4096 12288 100 101\nfault 400 500 0 101 4096\n" +
                                     ("dropped 3\n" if version != "500" else ""), FAKE_ROCM_VERSION=version)
            copy, fault = self.one(lines, "copy"), self.one(lines, "fault")
            self.assertIn("direction=migration bytes=8192 src=0x1000", copy)
            self.assertIn("address=0x1000 device=D1", fault)
            for line, length in ((copy, 200), (fault, 100)):
                start, end = map(int, line.split()[1:3])
                self.assertEqual(end - start, length, version)
            self.assertIn("PAGE_MIGRATE", copy)
            self.assertNotIn("_END", copy)
            if version != "500":
                self.assertIn("lost=3", self.one(lines, "gap"))

    def test_a_migration_that_nobody_has_seen_begin(self):
        lines = self.run_watched("migrate 0 300 0 4096 12288 100 101\n", FAKE_ROCM_VERSION="600")
        self.assertIn("copy untimed ", self.one(lines, "copy"))
        self.assertEqual(self.problems(lines), {"untimed": 1})

    def test_ranges_and_marks(self):
        lines = self.run_watched("name loader\npush outer\npush inner\nmark here\npop\npop\nstart 9 whole\nstop 9\n")
        self.assertEqual(sorted(self.names(lines, "scope")), ["here", "inner", "outer", "whole"])
        self.assertIn("flags=instant", next(line for line in lines if '"here"' in line and "scope" in line))
        self.assertTrue([line for line in lines if 'name="loader"' in line])
        self.assertFalse(self.of(lines, "problem"))

    def test_what_a_program_pauses_is_not_recorded(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "pause\n" + KERNEL.format(2) + "resume\n" + KERNEL.format(3))
        self.assertEqual([re.search(r"ordinal=(\d+)", line).group(1) for line in self.of(lines, "kernel")], ["1", "3"])

    def test_only_inside_of_a_range(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "push forward\n" + KERNEL.format(2) + "pop\n" +
                                 KERNEL.format(3), options=("--capture-range", "forward"))
        self.assertIn("ordinal=2", self.one(lines, "kernel"))

    def test_threads_have_their_own_streams(self):
        lines = self.run_watched(GEMM + "stream 1\nthread\n" + KERNEL.format(1) + "stream 2\n" + KERNEL.format(2) +
                                 "end\njoin\n" + KERNEL.format(3) + "end\n")
        lanes = {line.split()[1]: line for line in self.of(lines, "lane")}
        self.assertEqual([re.search(r'name="([^"]*)"', lanes[line.split()[3]]).group(1)
                          for line in self.of(lines, "kernel")], ["queue 5", "stream 2, queue 5", "stream 1, queue 5"])

    def test_full_buffers(self):
        lines = self.run_watched(GEMM + "full 3\n" + "".join(KERNEL.format(i) for i in range(1, 101)))
        self.assertEqual(len(self.of(lines, "kernel")), 100)

    def test_calls_that_only_ask_and_the_drivers_are_left_out(self):
        script = "call HIP_RUNTIME_API 3 1 100 200\ncall HIP_RUNTIME_API 0 2 300 400\ncall HSA_CORE_API 1 3 500 600\n"
        self.assertEqual(self.names(self.run_watched(script), "api"), ["hipMalloc"])
        lines = self.run_watched(script, PASTA_HSA_CALLS="1")
        self.assertEqual(self.names(lines, "api"), ["hipMalloc", "hsa_queue_create"])
        self.assertIn(" driver ", self.of(lines, "api")[1])

    def test_counters(self):
        for version in VERSIONS:
            lines = self.run_watched(GEMM + KERNEL.format(1) + "count 1 40 2.5\ncount 2 7 8\n",
                                     options=("--counters", "SQ_WAVES,GRBM_COUNT"), FAKE_ROCM_VERSION=version)
            self.assertEqual(self.names(lines, "counter"), ["SQ_WAVES", "GRBM_COUNT"])
            self.assertIn("value=42.5", self.of(lines, "counter")[0])
            # At the end of its kernel, on the same queue.
            kernel, counter = self.one(lines, "kernel").split(), self.of(lines, "counter")[0].split()
            self.assertEqual(counter[1:3] + [counter[3]], [kernel[2], kernel[2], kernel[3]])
        self.assertFalse(self.of(self.run_watched(GEMM + KERNEL.format(1) + "count 1 40 2\n"), "counter"))

    def test_a_counter_that_there_is_not(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "count 1 1 1\n", options=("--counters", "SQ_WAVES,NONE"))
        self.assertTrue([line for line in lines if "NONE is not counted: GPU 0 does not have it" in line], lines)
        self.assertEqual(self.names(lines, "counter"), ["SQ_WAVES"])

    def test_counters_without_an_sdk_are_refused(self):
        environment = {name: value for name, value in os.environ.items() if name not in ("ROCM_PATH", "ROCM_HOME")}
        environment["LD_LIBRARY_PATH"] = str(self.folder)
        result = subprocess.run([PASTAPROF, "run", "--counters", "SQ_WAVES", "--", "true"], cwd=self.folder,
                                env=environment, capture_output=True, text=True)
        if "rocprofiler-sdk" in result.stderr:  # else this machine has one
            self.assertEqual(result.returncode, 125, result.stderr)


CODE = "object 3 65536\nat 3 69632\n" + GEMM + "at 3 73728\nsymbol 8 0 8 0 helper\n"
SAMPLING = ("--tool", "samples", "--report", "r.json", "--format", "json")


class ProgramCounters(Watched):
    def sampled(self, script, options=SAMPLING, **more):
        self.lines = self.run_watched(script, options=options, **more)
        return self.lines

    def table(self, name):
        report = json.loads((self.folder / "r.json").read_text())
        parts = report["tools"][0]["parts"] if "tools" in report else report["reports"][0]["parts"]
        table = next(part for part in parts if part.get("id") == name)
        return [tuple(row) for row in table["rows"]]

    def test_places_in_kernels(self):
        # Some come before their kernel has ended, and some lie in a function that it calls.
        self.sampled(CODE + "issue 3 1 3 4512\nstall 4 1 3 4512 3\nstall 1 1 3 4512 5\nissue 2 1 3 8208\n" +
                     "wait 150000000\n" + KERNEL.format(1) + "issue 6 2 3 4096\n" + KERNEL.format(2))
        gemm = "gemm(float*, int)"
        self.assertEqual(self.table("places"), [(gemm, "+0x1a0", 8, 0.5, 0.375, 0.625, "waitcnt"),
                                                (gemm, "+0x0", 6, 0.375, 1.0, 0.0, None),
                                                (gemm, "helper +0x10", 2, 0.125, 1.0, 0.0, None)])
        self.assertEqual(self.table("kernels"), [(gemm, 2, 16, 1.0, 0.6875, 0.3125, "waitcnt")])
        for fact in ('_101" "stochastic, every 1048576 cycles', '_102" "host-trap, every 1000 us'):
            self.assertTrue([line for line in self.lines if "rocm_pc_sampling" + fact in line])
        self.assertEqual(self.problems(self.lines), {"launch_not_seen": 2})  # the script makes no calls

    def test_a_host_trap_does_not_say_what_waves_did(self):
        self.sampled(CODE + KERNEL.format(1) + "trap 5 1 3 4100\n", ("--pc-sampling", "host-trap:50") + SAMPLING)
        self.assertEqual(self.table("places"), [("gemm(float*, int)", "+0x4", 5, 1.0, None, None, None)])
        self.assertTrue([line for line in self.lines if 'rocm_pc_sampling_101" "host-trap, every 50 us' in line])

    def test_many_places(self):
        self.sampled(CODE + KERNEL.format(1) + "".join(f"trap 1 1 3 {4096 + 4 * i}\n" for i in range(1300)))
        self.assertEqual(len(self.table("places")), 1300)
        self.assertEqual(self.table("kernels")[0][1:3], (1, 1300))

    def test_what_is_lost_is_said(self):
        self.sampled(CODE + KERNEL.format(1) + "trap 1 1 3 4096\ntrap 2 1 9 64\ntrap 3 1 0 4096\ntrap 1 1 3 16\n"
                     "trap 4 7 3 4096\ninvalid 5\nlose 6\n", code=3)
        problems = self.problems(self.lines)
        self.assertEqual((problems["missing_field"], problems["record_skipped"]), (6, 5))
        self.assertIn("lost=6", self.one(self.lines, "gap"))
        self.assertEqual({row[:3] for row in self.table("places")},
                         {("gemm(float*, int)", "+0x0", 5), ("gemm(float*, int)", "code object 9 +0x40", 2),
                          ("gemm(float*, int)", "unknown code +0x1000", 3),
                          ("gemm(float*, int)", "code object 3 +0x10", 1)})
        self.assertIn("function in which they lie: 4", (self.folder / "r.json").read_text())

    def test_where_it_is_not_offered(self):
        for environment, options, events, why in (
                ({"FAKE_ROCM_PC": "none"}, "auto", 0, "GPU 0 are not sampled: it does not offer that"),
                ({"FAKE_ROCM_PC": "busy"}, "auto", 0, "GPU 0 are not sampled: the service is not offered"),
                ({}, "stochastic", 1, "GPU 1 are not sampled: it does not offer that"),
                ({}, "stochastic:128", 0, "GPU 0 are not sampled: it offers intervals from 256 to 2147483648")):
            script = CODE + KERNEL.format(1) + "trap 1 1 3 4096\n"
            lines = self.sampled(script, ("--pc-sampling", options), **environment)
            self.assertTrue([line for line in lines if why in line], lines)
            self.assertEqual(sum("samples/1" in line for line in lines), events, lines)
            self.one(lines, "kernel")

    def test_what_cannot_be_is_refused(self):
        for options, why, version in (
                (("--pc-sampling", "host-trap:0"), "give auto, host-trap or stochastic", "10000"),
                (("--pc-sampling", "auto:5"), "give auto, host-trap or stochastic", "10000"),
                (("--pc-sampling", "auto", "--counters", "SQ_WAVES"), "not do both at once", "10000"),
                (("--pc-sampling", "auto", "--adapter", "nvtx"), "give --adapter rocprofiler as well", "10000"),
                (("--pc-sampling", "auto"), "rocprofiler-sdk of ROCm 7 or later", "600"),
                (("--tool", "samples"), "rocprofiler-sdk of ROCm 7 or later", "600"),
                (("--tool", "samples", "--counters", "SQ_WAVES"), "not do both at once", "10000")):
            result = subprocess.run([PASTAPROF, "run", *options, "--", "true"], cwd=self.folder, text=True,
                                    capture_output=True, env={**os.environ, "LD_LIBRARY_PATH": ROCM,
                                                              "FAKE_ROCM_VERSION": version})
            self.assertIn(why, result.stderr)
            self.assertEqual(result.returncode, 125, result.stderr)


class Faults(Watched):
    def test_times_that_cannot_be(self):
        lines = self.run_watched(GEMM + "kernel 11 5000 4000 101 5 7 1 0 0 1 1 1 1 1 1\n"
                                 "kernel 11 0 0 101 5 7 2 0 0 1 1 1 1 1 1\nkernel 11 0 900 101 5 7 3 0 0 1 1 1 1 1 1\n"
                                 "kernel 11 !5 !9223372036854775807 101 5 7 4 0 0 1 1 1 1 1 1\n" + KERNEL.format(5))
        self.assertEqual(sum(line.startswith("kernel untimed") for line in lines), 4, lines)
        self.assertEqual(len(self.of(lines, "kernel")), 5)
        problems = self.problems(lines)
        self.assertEqual((problems["untimed"], problems["negative_duration"], problems["time_out_of_range"]), (2, 1, 1))

    def test_a_dispatch_told_twice_is_kept_once(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "again\n")
        self.one(lines, "kernel")
        self.assertEqual(self.problems(lines)["duplicate"], 1)

    def test_a_launch_without_an_end(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "launch\nlaunch\n")
        self.assertEqual(self.problems(lines)["work_under_way"], 2)

    def test_correlations(self):
        lines = self.run_watched(GEMM + "kernel 0 100 200 101 5 7 1 0 0 1 1 1 1 1 1\n"
                                 "kernel 281474976710656 300 400 101 5 7 2 0 0 1 1 1 1 1 1\n")
        self.assertFalse([line for line in self.of(lines, "kernel") if "correlation=" in line], lines)
        self.assertEqual((self.problems(lines)["correlation_range"], self.problems(lines)["no_correlation"]), (1, 2))

    def test_records_that_are_none(self):
        lines = self.run_watched("short KERNEL_DISPATCH\nshort MEMORY_COPY\nsample\nalloc 1 100 200 3 0 64 0\n"
                                 "alloc 1 300 400 9 0 64 0\n" + GEMM + KERNEL.format(1))
        self.one(lines, "kernel")
        problems = self.problems(lines)
        self.assertEqual((problems["record_skipped"], problems["not_kept"]), (4, 1))

    def test_what_the_sdk_dropped(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "drop 5\nflush\n")
        self.assertIn("lost=5", self.one(lines, "gap"))

    def test_a_kernel_without_a_name(self):
        self.assertEqual(self.names(self.run_watched(KERNEL.format(1)), "kernel"), ["kernel 7"])

    def test_what_the_sdk_refuses_is_said(self):
        lines = self.run_watched(GEMM + KERNEL.format(1), FAKE_ROCM_REFUSES="MEMORY_COPY")
        self.one(lines, "kernel")
        self.assertTrue([line for line in lines if "does not record MEMORY_COPY: the service is not offered" in line])

    def test_versions_that_are_not_known(self):
        for version, word in (("400", "older"), ("20000", "newer")):
            lines = self.run_watched(GEMM + KERNEL.format(1), FAKE_ROCM_VERSION=version)
            self.assertFalse(self.of(lines, "kernel"))
            self.assertTrue([line for line in lines if "ROCm is not watched" in line and word in line], lines)
            self.assertEqual(self.printed, "played\n")

    def test_an_sdk_without_a_function(self):
        lines = self.run_watched(GEMM + KERNEL.format(1), LD_LIBRARY_PATH=ODD)
        self.assertTrue([line for line in lines if "has no rocprofiler_create_buffer" in line], lines)

    def test_without_an_sdk_the_program_goes_on(self):
        lines = self.run_watched(GEMM, LD_LIBRARY_PATH=str(self.folder), ROCM_PATH=str(self.folder))
        if self.printed == "no SDK\n":  # else this machine has one
            self.assertTrue([line for line in lines if "no librocprofiler-sdk.so is found" in line], lines)

    def test_other_adapters_do_not_load_the_sdk(self):
        self.run_watched(GEMM, options=("--adapter", "annotations"))
        self.assertEqual(self.printed, "no SDK\n")

    def test_records_after_the_end(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "finalize\n" + KERNEL.format(2) + KERNEL.format(3) + "flush\n")
        self.assertIn("ordinal=1", self.one(lines, "kernel"))
        self.assertEqual(self.problems(lines)["late"], 2)

    def test_what_is_left_at_a_sudden_exit_is_taken(self):
        self.one(self.run_watched(GEMM + KERNEL.format(1), "_exit", 7), "kernel")

    def test_a_killed_program_has_lost_something(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "flush\n" + "launch\n", "kill", 137)
        self.one(lines, "kernel")
        self.assertIn("work_under_way", self.problems(lines))

    def test_an_abort_in_a_callback_is_the_programs_own_end(self):
        lines = self.run_watched(GEMM + KERNEL.format(1) + "crash\nflush\n", code=134)
        self.one(lines, "kernel")

    def test_an_sdk_that_hangs_ends_with_the_program(self):
        # Whether the program says that it ends, or just does.
        for last, code in (("exit", 3), ("_exit", 7)):
            lines = self.run_watched(GEMM + KERNEL.format(1) + "flush\nhang\n" + KERNEL.format(2), last, code,
                                     PASTA_FLUSH_TIMEOUT="1")
            self.assertEqual(self.printed, "played\n")
            self.assertIn("ordinal=1", self.one(lines, "kernel"))
            self.assertTrue([line for line in lines if "problem collector_warning" in line], lines)


class Doctor(Watched):
    def check(self, **environment):
        result = subprocess.run([PASTAPROF, "doctor", "--format", "json"], capture_output=True, text=True,
                                env={**os.environ, "LD_LIBRARY_PATH": ROCM, **environment})
        self.assertEqual(result.returncode, 0, result.stderr)
        return next(one for one in json.loads(result.stdout)["checks"] if one["name"] == "rocprofiler")

    def test_what_an_sdk_offers(self):
        self.assertIn("rocprofiler-sdk 1.0.0 in " + ROCM, self.check()["detail"])
        self.assertIn("all services", self.check()["detail"])
        self.assertIn("rocprofiler-sdk 0.5.0", self.check(FAKE_ROCM_VERSION="500")["detail"])
        self.assertIn("without allocations, streams, samples of program counters",
                      self.check(FAKE_ROCM_VERSION="500")["detail"])
        self.assertIn("does not know", self.check(FAKE_ROCM_VERSION="400")["detail"])
        self.assertIn("has no rocprofiler_create_buffer", self.check(LD_LIBRARY_PATH=ODD)["detail"])

    def test_an_sdk_that_pip_has_installed(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python3").touch()
        packages = self.folder / "lib" / "python3.12" / "site-packages"
        (packages / "_rocm_sdk_core").mkdir(parents=True)
        path = {"PATH": f"{self.folder}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": ""}
        self.assertNotIn("rocprofiler-sdk 1.0.0", self.check(**path)["detail"])
        (packages / "_rocm_sdk_core" / "lib").symlink_to(ROCM)
        self.assertIn(f"rocprofiler-sdk 1.0.0 in {packages}", self.check(**path)["detail"])

    def test_a_gpu_that_is_not_ours_to_use(self):
        # A /dev of its own, and no right of root's to open what is not its own.
        inside = next((words for words in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"])
                       if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/dev"],
                                         capture_output=True, check=False).returncode == 0), None)
        if inside is None:
            self.skipTest("mounting is not permitted")
        for refused, mode in (("/dev/dri/renderD128", "0"), ("/dev/kfd", "0"), (None, "600")):
            script = (f"mount -t tmpfs none /dev && mkdir /dev/dri && touch /dev/null /dev/kfd /dev/dri/renderD128 && "
                      f"chmod {mode} {refused or '/dev/kfd'} && "
                      f'exec setpriv --bounding-set=-all --inh-caps=-all "$0" doctor --format json')
            result = subprocess.run([*inside, "sh", "-c", script, PASTAPROF], capture_output=True, text=True,
                                    env={**os.environ, "LD_LIBRARY_PATH": ROCM}, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            check = next(one for one in json.loads(result.stdout)["checks"] if one["name"] == "rocprofiler")
            if refused is None:
                self.assertIn("rocprofiler-sdk 1.0.0", check["detail"])
            else:
                self.assertEqual(check["status"], "missing")
                self.assertIn(f"{refused} is not yours to use", check["detail"])
                self.assertIn("usermod -aG render", check["remedy"])

    @unittest.skipIf(os.path.exists("/dev/kfd"), "this machine may have a GPU")
    def test_a_machine_without_a_gpu(self):
        check = self.check()
        self.assertEqual(check["status"], "missing")
        self.assertIn("/dev/kfd is not there", check["detail"])
        self.assertIn("amdgpu", check["remedy"])


class ThreeForms(Watched):
    """One run, as it is watched and as rocprofv3 writes it."""
    SYMBOLS = {7: (1024, 32, 8, "_Z4gemmPfi", "gemm(float*, int)"), 8: (0, 16, 0, "relu", "relu")}
    # operation, correlation, start, end
    CALLS = [("hipMalloc", 1, 1000, 3000), ("hipMemcpy", 2, 4000, 9000), ("hipLaunchKernel", 3, 10000, 11000),
             ("hipLaunchKernel", 4, 12000, 12500), ("hipLaunchKernel", 5, 13000, 13500), ("hipMemcpy", 6, 14000, 30000),
             ("hipFree", 7, 31000, 32000)]
    # stream, correlation, start, end, agent, queue, kernel, dispatch, private, group, workgroup, grid
    KERNELS = [(1, 3, 11500, 15000, 101, 5, 7, 1, 16, 2048, (256, 1, 1), (1000, 2, 1)),
               (2, 4, 13000, 16000, 101, 6, 8, 2, 0, 0, (64, 1, 1), (64, 1, 1)),
               (1, 5, 15000, 21000, 101, 5, 7, 3, 16, 1024, (256, 1, 1), (512, 1, 1))]
    # stream, correlation, start, end, operation, source, target, bytes
    COPIES = [(1, 2, 5000, 8000, 2, 100, 101, 1 << 20), (1, 6, 22000, 29000, 3, 101, 100, 1 << 16)]
    # correlation, start, end, operation, agent, address, bytes
    ALLOCATIONS = [(1, 1500, 2500, 1, 101, 4096, 1 << 20), (7, 31200, 31800, 3, 0, 4096, 0)]
    RUNTIME = ["hipMalloc", "hipLaunchKernel", "hipMemcpy", "hipGetDevice", "hipFree"]
    COPY_NAMES = [f"MEMORY_COPY_{way}" for way in ("NONE", "HOST_TO_HOST", "HOST_TO_DEVICE", "DEVICE_TO_HOST")]
    MEMORY_NAMES = [f"MEMORY_ALLOCATION_{what}" for what in ("NONE", "ALLOCATE", "VMEM_ALLOCATE", "FREE")]
    TOOLS = ("kernels", "summary", "idle", "memory", "launches", "overlap", "iterations", "diagnose")

    def script(self):
        lines = [f"symbol {number} {group} {registers} {more} {name}.kd"
                 for number, (group, registers, more, name, _) in self.SYMBOLS.items()]
        for name, *numbers in self.CALLS:
            lines.append(" ".join(map(str, ["call HIP_RUNTIME_API", self.RUNTIME.index(name), *numbers])))
        for stream, *numbers, group, grid in self.KERNELS:
            lines += [f"stream {stream}", " ".join(map(str, ["kernel", *numbers, *group, *grid])), "end"]
        for stream, *numbers in self.COPIES:
            lines += [f"stream {stream}", " ".join(map(str, ["copy", *numbers, 0, 0])), "end"]
        for numbers in self.ALLOCATIONS:
            lines.append(" ".join(map(str, ["alloc", *numbers])))
        return "\n".join(lines) + "\n"

    AGENT = {"cu_count": 304, "wave_front_size": 64, "max_waves_per_cu": 32, "gfx_target_version": 90402,
             "uuid": {"bytes": {f"value{i}": byte for i, byte in
                                enumerate(bytes.fromhex("0123456789abcde1")[::-1])}},
             "mem_banks": [{"size_in_bytes": 192 << 30}]}
    BASE = 5_000_000_000

    def write_json(self):
        base = self.BASE

        def record(kind, operation, correlation, start, end):
            return {"kind": kind, "operation": operation, "correlation_id": {"internal": correlation}, "thread_id": 41,
                    "start_timestamp": base + start, "end_timestamp": base + end}

        def handle(number):
            return {"handle": number}

        def axes(values):
            return dict(zip("xyz", values))

        process = {
            "metadata": {"pid": 41, "command": [PROGRAM], "node": {"hostname": "n"}},
            "agents": [{"id": handle(100), "type": 1, "name": "Host CPU"},
                       {"id": handle(101), "type": 2, "name": "gfx942", "product_name": "AMD Instinct MI300X",
                        "logical_node_type_id": 0, **self.AGENT}],
            "counters": [],
            "kernel_symbols": [{"kernel_id": number, "kernel_name": name + ".kd", "formatted_kernel_name": shown,
                                "arch_vgpr_count": registers, "accum_vgpr_count": more, "group_segment_size": group}
                               for number, (group, registers, more, name, shown) in self.SYMBOLS.items()],
            "strings": {"buffer_records": [{"kind": "NONE", "operations": []},
                                           {"kind": "HIP_RUNTIME_API", "operations": self.RUNTIME},
                                           {"kind": "MEMORY_COPY", "operations": self.COPY_NAMES},
                                           {"kind": "MEMORY_ALLOCATION", "operations": self.MEMORY_NAMES}],
                        "marker_api": []},
            "callback_records": {"counter_collection": []},
            "buffer_records": {
                "hip_api": [record(1, self.RUNTIME.index(name), *numbers) for name, *numbers in self.CALLS],
                "kernel_dispatch": [
                    {**record(0, 0, correlation, start, end), "stream_id": handle(stream),
                     "dispatch_info": {"agent_id": handle(agent), "queue_id": handle(queue), "kernel_id": kernel,
                                       "dispatch_id": dispatch, "private_segment_size": private,
                                       "group_segment_size": shared, "workgroup_size": axes(group),
                                       "grid_size": axes(grid)}}
                    for stream, correlation, start, end, agent, queue, kernel, dispatch, private, shared, group, grid
                    in self.KERNELS],
                "memory_copy": [
                    {**record(2, operation, correlation, start, end), "stream_id": handle(stream),
                     "src_agent_id": handle(source), "dst_agent_id": handle(target), "bytes": size}
                    for stream, correlation, start, end, operation, source, target, size in self.COPIES],
                "memory_allocation": [
                    {**record(3, operation, correlation, start, end), "agent_id": handle(agent), "address": address,
                     "allocation_size": size}
                    for correlation, start, end, operation, agent, address, size in self.ALLOCATIONS]}}
        (self.folder / "run.json").write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))

    def write_database(self):
        base = self.BASE
        database = sqlite3.connect(self.folder / "run.db")
        run = database.execute
        run("CREATE TABLE rocpd_metadata_u(id INTEGER PRIMARY KEY, tag TEXT, value TEXT)")
        run("INSERT INTO rocpd_metadata_u(tag, value) VALUES ('schema_version', '3'), ('uuid', '_u'), ('guid', 'u')")
        run("CREATE TABLE rocpd_string_u(id INTEGER PRIMARY KEY, guid TEXT, string TEXT)")
        texts = ["HIP_RUNTIME_API", "KERNEL_DISPATCH", "MEMORY_COPY", "MEMORY_ALLOCATION", *self.RUNTIME,
                 *self.COPY_NAMES]
        for number, text in enumerate(texts, 1):
            run("INSERT INTO rocpd_string_u VALUES (?, 'u', ?)", (number, text))
        run("CREATE TABLE rocpd_event_u(id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER, "
            "correlation_id INTEGER, extdata TEXT DEFAULT '{}')")
        events = 0

        def event(category, correlation):
            nonlocal events
            events += 1
            run("INSERT INTO rocpd_event_u VALUES (?, 'u', ?, ?, 0, '{}')",
                (events, 1 + texts.index(category), correlation))
            return events

        run("CREATE TABLE rocpd_info_process_u(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, "
            "command TEXT, environment TEXT DEFAULT '{}')")
        run("INSERT INTO rocpd_info_process_u(id, guid, nid, pid, command) VALUES (1, 'u', 1, 41, 'program')")
        run("CREATE TABLE rocpd_info_thread_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, name TEXT)")
        run("INSERT INTO rocpd_info_thread_u VALUES (3, 'u', 1, 41, '')")
        run("CREATE TABLE rocpd_info_agent_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, type TEXT, "
            "type_index INTEGER, name TEXT, product_name TEXT, extdata TEXT)")
        run("INSERT INTO rocpd_info_agent_u VALUES (100, 'u', 1, 'CPU', 0, 'Host CPU', '', '{}'), "
            "(101, 'u', 1, 'GPU', 0, 'gfx942', 'AMD Instinct MI300X', ?)", (json.dumps(self.AGENT),))
        run("CREATE TABLE rocpd_region_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, start BIGINT, "
            "end BIGINT, name_id INTEGER, event_id INTEGER)")
        for name, correlation, start, end in self.CALLS:
            run("INSERT INTO rocpd_region_u VALUES (NULL, 'u', 1, 3, ?, ?, ?, ?)",
                (base + start, base + end, 1 + texts.index(name), event("HIP_RUNTIME_API", correlation)))
        run("CREATE TABLE rocpd_info_kernel_symbol_u(id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, "
            "display_name TEXT, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, group_segment_size INTEGER)")
        for number, (group, registers, more, name, shown) in self.SYMBOLS.items():
            run("INSERT INTO rocpd_info_kernel_symbol_u VALUES (?, 'u', ?, ?, ?, ?, ?)",
                (number, name + ".kd", shown, registers, more, group))
        columns = ["id", "guid", "pid", "tid", "agent_id", "kernel_id", "dispatch_id", "queue_id", "stream_id", "start",
                   "end", "private_segment_size", "group_segment_size", "workgroup_size_x", "workgroup_size_y",
                   "workgroup_size_z", "grid_size_x", "grid_size_y", "grid_size_z", "event_id"]
        run(f"CREATE TABLE rocpd_kernel_dispatch_u({', '.join(columns)})")
        for number, (stream, correlation, start, end, agent, queue, kernel, dispatch, private, shared, group, grid
                     ) in enumerate(self.KERNELS, 1):
            row = [number, "u", 1, 3, agent, kernel, dispatch, queue, stream, base + start, base + end, private, shared,
                   *group, *grid, event("KERNEL_DISPATCH", correlation)]
            run(f"INSERT INTO rocpd_kernel_dispatch_u VALUES ({', '.join('?' * len(row))})", row)
        run("CREATE TABLE rocpd_memory_copy_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, start BIGINT, end BIGINT, "
            "name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, "
            "size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER)")
        for stream, correlation, start, end, operation, source, target, size in self.COPIES:
            run("INSERT INTO rocpd_memory_copy_u VALUES (NULL, 'u', 1, ?, ?, ?, ?, 0, ?, 0, ?, NULL, ?, ?)",
                (base + start, base + end, 1 + texts.index(self.COPY_NAMES[operation]), target, source, size, stream,
                 event("MEMORY_COPY", correlation)))
        run("CREATE TABLE rocpd_memory_allocate_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, "
            "agent_id INTEGER, type TEXT, level TEXT, start BIGINT, end BIGINT, address INTEGER, size INTEGER, "
            "event_id INTEGER)")
        for correlation, start, end, operation, agent, address, size in self.ALLOCATIONS:
            what = "ALLOC" if operation == 1 else "FREE"
            run("INSERT INTO rocpd_memory_allocate_u VALUES (NULL, 'u', 1, 3, ?, ?, 'REAL', ?, ?, ?, ?, ?)",
                (agent or None, what, base + start, base + end, address, size, event("MEMORY_ALLOCATION", correlation)))
        database.commit()
        database.close()

    def report(self, path):
        tools = [word for tool in self.TOOLS for word in ("--tool", tool)]
        result = subprocess.run([PASTAPROF, "report", path, "--format", "json", *tools], cwd=self.folder,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        document = json.loads(result.stdout)
        # Of a watched program the trace begins with its process, else with the first record.
        dump = subprocess.run([PASTAPROF, "dump", path], cwd=self.folder, capture_output=True, text=True).stdout
        first = int(re.search(r"first_ns=(-?\d+)", dump).group(1))
        began = int(re.search(r"^api (\d+)", dump, re.M).group(1)) - first
        for part in (part for report in document["reports"] for part in report["parts"]):
            columns = [column["name"] for column in part.get("columns", [])] if part["type"] == "table" else []
            for at in (i for i, name in enumerate(columns) if name in ("start", "peak_time")):
                for row in part["rows"]:
                    row[at] = None if row[at] is None else row[at] - began
            for point in part.get("points", []) if part.get("id", "").startswith(("allocated", "queue_")) else []:
                point[0] -= began
        return document["reports"], document["trace"]["events"]

    def test_one_report(self):
        self.run_watched(self.script())
        self.write_json()
        self.write_database()
        watched, events = self.report("t.pasta")
        self.assertEqual(events, {"api": 7, "kernel": 3, "copy": 2, "alloc": 1, "free": 1})
        self.maxDiff = None
        for path in ("run.json", "run.db"):
            reports, counts = self.report(path)
            self.assertEqual(counts, events, path)
            for one, other in zip(watched, reports):
                self.assertEqual(one, other, f'{path}: {one["tool"]}')


if __name__ == "__main__":
    unittest.main()
