#!/usr/bin/env python3
"""CUDA programs whose accesses are analysed, with a Compute Sanitizer that needs no GPU."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "diff"))
import device_blobs as blobs  # noqa: E402

PASTAPROF = os.environ["PASTAPROF"]
PROGRAM = os.environ["PASTA_ACCESSES_PROGRAM"]
FAKE = os.environ["PASTA_FAKE_SANITIZER"]

COPY, STRIDE = "copy(float*, float*)", "stride"


class Sanitizer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_watched(self, scene, code=0, options=(), program=PROGRAM, adapter=("--adapter", "sanitizer"),
                    launches=("--launches", "all"), tool="access", **variables):
        # Any file stands for the code of the GPU, which there is none to run.
        environment = {**os.environ, "LD_LIBRARY_PATH": FAKE, "PASTA_GPU_CODE": PASTAPROF, **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        result = subprocess.run([PASTAPROF, "run", *adapter, *launches, "--tool", tool, "-o", "t.pasta",
                                 "--format", "json", "--report", "r.json", *options, "--", *program.split(), scene],
                                cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stderr)
        self.said, self.output = result.stderr, result.stdout
        if not (self.folder / "r.json").exists():
            return None
        report = json.loads((self.folder / "r.json").read_text())
        self.problems = {problem["first"]: problem["count"] for problem in report["trace"]["quality"]["problems"]}
        return report["reports"][0]

    @staticmethod
    def rows(report, table):
        part = next(part for part in report["parts"] if part.get("id") == table)
        names = [column["name"] for column in part["columns"]]
        return [dict(zip(names, row)) for row in part["rows"]]

    def launches(self, report):
        """How many launches of each kernel were analysed, by what they read of the first object."""
        return {row["kernel"]: row["launches"] for row in self.rows(report, "objects")
                if row["object"].endswith("buffer 1") or "buffer 1)" in row["object"]}

    def problem(self, words):
        return [count for text, count in self.problems.items() if words in text]

    def check_objects(self, report, copies, strides, nodes=1):
        """`nodes`: so many launches are counted as one."""
        rows = {(row["kernel"], row["object"]): row for row in self.rows(report, "objects")}
        copy_in = next(row for (kernel, name), row in rows.items() if kernel == COPY and "buffer 1" in name)
        copy_out = next(row for (kernel, name), row in rows.items() if kernel == COPY and "buffer 2" in name)
        stride_in = next(row for (kernel, name), row in rows.items() if kernel == STRIDE and "buffer 1" in name)
        stride_out = next(row for (kernel, name), row in rows.items() if kernel == STRIDE and "buffer 2" in name)
        unknown = rows[STRIDE, "unknown"]
        for row, launches, reads, writes, atomics, sectors, touched in (
                (copy_in, copies, 32, 0, 0, 4, 128), (copy_out, copies, 0, 32, 0, 4, 128),
                # 32 sectors of the lanes that are 64 bytes apart, and 124 bytes at the end, in 4.
                (stride_in, strides, 63, 0, 0, 36, 128 + 124 - 4), (stride_out, strides, 0, 0, 32, 1, 4),
                (unknown, strides, 1, 0, 0, 1, None)):
            self.assertEqual(row["launches"], launches)
            launches *= nodes if row["kernel"] == COPY else 1
            self.assertEqual((row["reads"], row["writes"], row["atomics"]),
                             (launches * reads, launches * writes, launches * atomics))
            self.assertEqual(row["moved"], launches * 32 * sectors)
            if touched is not None and row is not stride_in:
                self.assertEqual(row["touched"], touched)
        # The lane at 1984 = 31 * 64 and those at 3972 and on touch bytes of their own.
        self.assertEqual(stride_in["touched"], 128 + 124)

    def test_kernels(self):
        report = self.run_watched("kernels")
        self.check_objects(report, 2, 1)
        shared, = self.rows(report, "shared")
        self.assertEqual((shared["kernel"], shared["reads"], shared["passes"], shared["conflict_free"]),
                         (STRIDE, 32, 32, 1))
        self.assertEqual(self.problems, {})

    def test_tiles_through_tensor_maps(self):
        report = self.run_watched("tiles")
        self.assertEqual([(row["object"], row["reads"]) for row in self.rows(report, "objects")], [("buffer 1", 64)])
        uncovered, = (part for part in report["parts"] if part.get("id") == "uncovered")
        self.assertIn("through tensor maps it reaches variable of a module (buffer 2)", uncovered["text"])
        self.assertIn("tiles accesses memory in ways that cannot be seen", uncovered["text"])
        self.assertEqual(uncovered["evidence"],
                         {"launches": 2, "tensor_loads": 1, "tensor_stores": 0, "textures": 0, "multicast": 0})
        self.assertEqual({row["uncovered"] for table in ("kernels", "objects") for row in self.rows(report, table)}, {"tiles"})

    def test_memory_that_no_patch_sees(self):
        report = self.run_watched("unseen")
        self.assertEqual([part["evidence"] for part in report["parts"] if part.get("id") == "unseen-memory"],
                         [{"constants": 1, "products": 1, "fills": 0}])
        self.assertEqual([part for part in report["parts"] if part.get("id") == "uncovered"], [], "of global memory")
        self.assertEqual([(row["asked"], row["uncovered"]) for row in self.rows(report, "kernels")], [(128, "constants, products")])

    def test_pieces_with_names_are_objects(self):
        report = self.run_watched("tags")
        self.assertEqual({row["object"]: (row["reads"], row["size"]) for row in self.rows(report, "objects") if row["reads"]},
                         {"weights (buffer 3)": (16, 64), "buffer 4": (16, 4096 - 64)})

    def test_nodes_of_one_kernel_are_counted_together(self):
        report = self.run_watched("graph_of_twins")
        self.check_objects(report, 1, 2, nodes=3)
        self.assertEqual({row["kernel"]: row["launches"] for row in self.rows(report, "kernels")}, {COPY: 3, STRIDE: 2})
        self.assertEqual(self.problems, {})

    def test_a_graph_with_more_kernels_than_find_room(self):
        # None waits for what is only launched after it.
        begin = time.monotonic()
        report = self.run_watched("large_graph", FAKE_MEMORY=str(14 << 20))
        self.assertLess(time.monotonic() - begin, 4)
        analysed, = {row["launches"] for row in self.rows(report, "objects")}
        rows = len(self.rows(report, "objects")) // 2
        self.assertEqual(analysed, 2)
        # One more is that there is little memory.
        self.assertEqual(self.problem("no room on the device"), [2 * (200 - rows) + 1], rows)

    def test_variables_of_modules(self):
        report = self.run_watched("variables")
        self.assertEqual({(row["kernel"], row["object"].split(" (")[0], row["writes"], row["size"]) for row in self.rows(report, "objects")},
                         {("counts", "variable program::counter", 32, 64), ("late", "unknown", 64, None)})
        self.assertEqual(len(self.rows(report, "objects")), 3, "each time another")

    def test_a_launch_that_is_refused_leaves_nothing_to_others(self):
        report = self.run_watched("refused")
        self.assertEqual({(row["kernel"], row["object"]): row["reads"] for row in self.rows(report, "objects")},
                         {("later", "buffer 3"): 64})
        self.assertEqual(self.problem("the data of a launch: refused"), [1])

    def test_graphs_that_kernels_launch(self):
        # What is brought to the device only is no launch; of what kernels launch nobody tells.
        self.assertEqual(self.launches(self.run_watched("graphs_for_kernels")), {COPY: 1})
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [1])
        self.assertEqual(self.problem("graphs were made for kernels to launch"), [1])

    def test_shared_memory_is_left_out_when_asked_for(self):
        self.check_objects(self.run_watched("kernels", PASTA_PATCH_REACH="global"), 2, 1)
        self.assertEqual(self.problem("shared and local memory are not looked into"), [1])

    def test_nodes_of_graphs(self):
        self.check_objects(self.run_watched("graph"), 3, 3)

    def test_objects_are_those_at_the_launch(self):
        report = self.run_watched("objects")
        reads = {row["object"]: row for row in self.rows(report, "objects") if row["reads"] > 0}
        self.assertEqual(sum(row["reads"] for row in reads.values()), 96)
        self.assertEqual(reads.pop("unknown")["reads"], 32 + 16, "freed, and behind one that is smaller")
        self.assertEqual(sorted(row["reads"] for row in reads.values()), [16, 32])
        self.assertEqual(sorted(row["size"] for row in reads.values()), [64, 4096])
        self.assertEqual(set(reads), {"buffer 1", "managed from load (buffer 3)"}, "as they were allocated")

    def blobs(self):
        dumped = subprocess.run([PASTAPROF, "dump", "t.pasta"], cwd=self.folder, capture_output=True, text=True, check=True)
        return [bytes.fromhex(blob) for blob in re.findall(r'^blob \w+ "(\w+)"', dumped.stdout, re.MULTILINE)]

    def test_tables_are_shared_until_objects_change(self):
        self.run_watched("tables", tool="reuse", PASTA_SANITIZER_LOG=str(self.folder / "log"))
        self.assertEqual(self.problems, {})
        tables = re.findall(r"table of 3 objects at \w+ \((\d+) bytes\)", (self.folder / "log").read_text())
        self.assertEqual(len(tables), 300, "one for both streams")
        self.assertGreater(sum(map(int, tables)), 16 << 20, "more than there is at once")
        # Bytes that were asked for: of what is not live, and of what is, on each stream.
        asked = sorted(sorted((row[0], row[3]) for row in blobs.rows_of(blob, blobs.SETS)) for blob in self.blobs())
        self.assertEqual(asked, [[(blobs.UNKNOWN, 64), (3 + i, 128)] for i in range(300) for _ in range(2)])

    def test_threads_and_streams(self):
        self.check_objects(self.run_watched("threads"), 200, 200)
        self.assertEqual(self.problems, {})
        places = [blobs.rows_of(blob, blobs.STREAM)[0] for blob in self.blobs()]
        # 8 streams, on each of which 50 were launched.
        self.assertEqual(sorted(places), [(stream, launch) for stream in range(1, 9) for launch in range(1, 51)])

    def test_streams_that_go(self):
        # One as it is told of before CUDA 13.1, one of a green context.
        self.assertEqual(self.launches(self.run_watched("streams_that_go")), {COPY: 4})
        self.assertEqual(self.problems, {})

    def test_more_than_finds_room_at_once(self):
        self.assertEqual(self.launches(self.run_watched("many")), {COPY: 2000})
        self.assertEqual(self.problems, {})

    def test_a_fault_loses_what_was_under_way(self):
        self.run_watched("fault")
        self.assertTrue(self.problem("the device has failed") or self.problem("not analysed"), self.problems)

    def test_a_context_that_ends(self):
        self.assertEqual(self.launches(self.run_watched("context")), {COPY: 1})
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [1])

    def test_a_context_with_the_handle_of_one_that_ended(self):
        self.assertEqual(self.launches(self.run_watched("context_again")), {COPY: 2})
        self.assertEqual(self.problems, {})

    def test_little_memory_of_the_device(self):
        self.assertEqual(self.launches(self.run_watched("many", FAKE_MEMORY=str(60 << 20))), {COPY: 2000})
        self.assertEqual(self.problem("left less than 96 MiB of the device's memory, so a context had 48"), [1], self.problems)
        self.run_watched("kernels", options=("--force",), FAKE_MEMORY=str(1 << 20))
        self.assertEqual(self.problem("left less than 13 MiB of the device's memory"), [1], self.problems)
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [3])

    def test_when_patches_can_be_had(self):
        # Before the program has taken the memory, else with its first module.
        for when in ("early", "late"):
            self.check_objects(self.run_watched("kernels", options=("--force",), FAKE_PATCHES=when), 2, 1)
            self.assertEqual(self.problems, {})
        self.run_watched("kernels", options=("--force",), FAKE_PATCHES="never")
        self.assertEqual(self.problem("the patches: refused"), [1], self.problems)
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [3])

    def test_an_address_that_begins_with_0(self):
        # Of the first piece that a launch may get; patches take it for none.
        self.check_objects(self.run_watched("kernels", FAKE_ADDRESS=hex(0x600000000000 - (16 << 20) - 8192)), 2, 1)

    def test_policies(self):
        # Two of the position in later iterations; the first does not yet know that there are any. The fourth and the
        # sixth hold nothing new; between them one is left out, and what comes after the last step.
        for policy, launches, iterations, counted in (
                ("first:2", {COPY: 3, STRIDE: 3}, 2, 4), ("iterations:1/2", {COPY: 3, STRIDE: 3}, 3, 0),
                ("^copy\\(", {COPY: 6}, 0, 6), ("^_Z4copy", {COPY: 6}, 0, 6), ("all", {COPY: 6, STRIDE: 6}, 0, 0)):
            report = self.run_watched("steps", options=("--force",), launches=("--launches", policy))
            self.assertEqual(self.launches(report), launches, policy)
            # In iterations that are left out nothing is told of, so launches are not counted.
            counted = [counted] if counted else []
            said = [part["evidence"] for part in report["parts"] if part.get("id") == "launches-left-out"]
            self.assertEqual(said, [{"count": count} for count in counted], policy)
            self.assertEqual(self.problem("launches whose accesses were not analysed"), counted, policy)
            self.assertEqual(self.problem("iterations whose launches were not analysed"),
                             [iterations] if iterations and not counted else [])
            self.assertEqual(len(self.problem(f"those of {iterations} whole iterations")), 1 if iterations and counted else 0)

    def test_a_policy_that_is_none_is_said(self):
        # The program's own, not the one that its watcher may refuse.
        self.run_watched("kernels", program=f"env PASTA_LAUNCHES=first:0 {PROGRAM}")
        self.assertTrue(self.problem("--launches cannot be"), self.problems)

    def test_only_inside_of_a_range(self):
        self.assertEqual(self.launches(self.run_watched("range", options=("--capture-range", "inside"))), {STRIDE: 1})
        self.assertEqual(self.problems, {}, "of others nobody was told")

    def test_only_between_start_and_stop_of_the_profiler(self):
        report = self.run_watched("profiler", options=("--capture-range", "cudaProfilerApi"))
        self.assertEqual(self.launches(report), {STRIDE: 1})

    def test_iterations_by_ranges(self):
        # What comes before the second is iteration 0.
        report = self.run_watched("ranges", launches=("--launches", "iterations:1/2"))
        self.assertEqual(self.launches(report), {COPY: 3, STRIDE: 3})
        self.assertEqual(self.problem("iterations whose launches were not analysed"), [3])

    def test_steps_count_whatever_other_marks_there_are(self):
        # The first step ends iteration 0; so these are the second, the fourth and the sixth.
        report = self.run_watched("steps_around_ranges", launches=("--launches", "iterations:1/2"))
        self.assertEqual(self.launches(report), {COPY: 3})

    def test_times_of_iterations_without_patches(self):
        # The second, the fourth and the sixth: each launch is between two events, a millisecond apart.
        report = self.run_watched("steps", launches=("--launches", "iterations:1/2"))
        self.assertEqual({row["kernel"]: (row["launches"], row["time"]) for row in self.rows(report, "kernels")},
                         {COPY: (3, 3_000_000), STRIDE: (3, 3_000_000)})
        said, = (part for part in report["parts"] if part.get("id") == "times-approximate")
        self.assertEqual((said["share"], said["evidence"]), (1.0, {"timed": 6}))
        # There are none where all iterations are analysed.
        report = self.run_watched("steps", options=("--force",))
        self.assertEqual({row["time"] for row in self.rows(report, "kernels")}, {None})

    def test_where_nothing_marks_iterations(self):
        self.assertEqual(self.launches(self.run_watched("kernels", launches=("--launches", "iterations:1/2"))),
                         {COPY: 2, STRIDE: 1})
        self.assertEqual(self.problem("nothing has marked iterations"), [1])

    def test_no_switching_while_a_graph_is_captured(self):
        # So the launch of the iteration between is told of, and left out.
        self.assertEqual(self.launches(self.run_watched("capture", launches=("--launches", "iterations:1/2"))), {COPY: 2})
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [1])

    def test_patches_are_switched(self):
        self.assertEqual(self.launches(self.run_watched("switch")), {COPY: 2})
        self.assertEqual(self.problems, {})

    def test_a_patch_of_which_there_is_no_code(self):
        # Refused, and the next one works.
        self.assertEqual(self.launches(self.run_watched("refuse", options=("--force",))), {COPY: 1})
        self.assertEqual(self.problem("pasta_hotpages_global: refused"), [1], self.problems)

    def test_one_patch_at_a_time(self):
        report = self.run_watched("kernels", program=f"env PASTA_PATCHES=access,none {PROGRAM}")
        self.assertEqual(self.launches(report), {COPY: 2, STRIDE: 1})
        self.assertEqual(self.problem("access alone of access,none"), [1])

    def test_launches_after_the_end(self):
        # They are given nothing, but told so: the fake device aborts where they are not.
        self.assertEqual(self.launches(self.run_watched("late")), {COPY: 1})

    def test_a_sudden_exit(self):
        self.assertEqual(self.launches(self.run_watched("_exit", code=7)), {COPY: 1})

    def test_what_cannot_be_is_said_before(self):
        self.run_watched("kernels", code=125, options=("--passes", "1"), adapter=("--adapter", "cupti,sanitizer"))
        self.assertIn("exclude each other", self.said)

    def test_one_run_for_each_patch(self):
        report = self.run_watched("kernels", code=4, options=("--tool", "divergence"), launches=("--launches", "stride"),
                                  adapter=("--adapter", "annotations,sanitizer"))
        self.assertEqual(self.launches(report), {STRIDE: 1})
        left_out = [part["evidence"] for part in report["parts"] if part.get("id") == "launches-left-out"]
        self.assertEqual(left_out, [{"count": 2}], "of one run")
        self.assertIn("the program runs 3 times", self.said)
        # The device that there is not has code for one of them only.
        self.assertEqual(self.problem("pasta_divergence_global: refused"), [1])

    def test_a_tool_that_needs_it_brings_it(self):
        self.check_objects(self.run_watched("kernels", adapter=()), 2, 1)
        self.assertIn("sanitizer", self.said)

    def test_the_first_ten_of_each_kernel_unless_more_are_wanted(self):
        self.assertEqual(self.launches(self.run_watched("many", launches=())), {COPY: 10})
        self.assertEqual(self.problem("launches whose accesses were not analysed"), [1990])

    def test_two_runs_of_which_one_sees_no_kernels(self):
        report = self.run_watched("kernels", code=4, options=("--passes", "2"),
                                  adapter=("--adapter", "annotations,sanitizer"))
        self.check_objects(report, 2, 1)
        self.assertEqual(self.problem("launch 1"), [3], "all launches are without times")
        # Without what analyses accesses the program gives up.
        self.assertIn("this run ended with 0, the first with 4", self.said)


if __name__ == "__main__":
    unittest.main()
