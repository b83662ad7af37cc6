#!/usr/bin/env python3
"""rocpd databases, made of SQL: what pastaprof makes of each table and column."""

import json
import unittest

from database import LOSSY, DatabaseTest, Report, Run
from program import CASES

META = """
CREATE TABLE rocpd_metadata_u(id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
INSERT INTO rocpd_metadata_u(tag, value) VALUES ('schema_version', '3'), ('uuid', '_u'), ('guid', 'u');
CREATE TABLE rocpd_string_u(id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
INSERT INTO rocpd_string_u VALUES (1, 'u', 'hipLaunchKernel'), (2, 'u', 'HIP_RUNTIME_API_EXT'),
  (3, 'u', 'KERNEL_DISPATCH'), (4, 'u', 'MARKER_CORE_RANGE_API'), (5, 'u', 'roctxThreadRangeA'),
  (6, 'u', 'roctxProcessRangeA'), (7, 'u', 'HSA_CORE_API'), (8, 'u', 'hsa_signal_wait'),
  (9, 'u', 'RCCL_API'), (10, 'u', 'ncclAllReduce'), (11, 'u', 'MEMORY_COPY_DEVICE_TO_DEVICE'),
  (12, 'u', 'HIP_COMPILER_API_EXT'), (13, 'u', 'roctxMarkA'), (14, 'u', 'roctxNameOsThread'),
  (15, 'u', 'busy cores');
CREATE TABLE rocpd_event_u(id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER,
  correlation_id INTEGER, extdata TEXT DEFAULT '{}');
CREATE TABLE rocpd_region_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, start BIGINT,
  end BIGINT, name_id INTEGER, event_id INTEGER);
CREATE TABLE rocpd_info_process_u(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER,
  command TEXT, environment TEXT DEFAULT '{}');
INSERT INTO rocpd_info_process_u(id, guid, nid, pid, command) VALUES (1, 'u', 1, 4711, 'python train.py');
CREATE TABLE rocpd_info_thread_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, name TEXT);
INSERT INTO rocpd_info_thread_u VALUES (3, 'u', 1, 4712, 'loader');
CREATE TABLE rocpd_info_agent_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, type TEXT,
  type_index INTEGER, name TEXT, product_name TEXT, extdata TEXT);
INSERT INTO rocpd_info_agent_u VALUES (0, 'u', 1, 'CPU', 0, 'EPYC', '', '{}'),
  (5, 'u', 1, 'GPU', 1, 'gfx942', 'AMD Instinct MI300X', '{"cu_count": 304, "wave_front_size": 64,
   "max_waves_per_cu": 32, "gfx_target_version": 90402, "uuid": {"bytes": {"value0": 203, "value1": 20,
   "value7": 79}}, "mem_banks": [{"size_in_bytes": 100}, {"size_in_bytes": 20}]}'),
  (6, 'u', 1, 'GPU', 2, 'gfx942', '', 'no JSON');
"""
KERNELS = """
CREATE TABLE rocpd_info_kernel_symbol_u(id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT,
  display_name TEXT, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, group_segment_size INTEGER);
INSERT INTO rocpd_info_kernel_symbol_u VALUES (7, 'u', '_Z1kv.kd', 'k()', 24, 8, 1024),
  (8, 'u', '_Z1lv.kd', NULL, 0, 0, 0);
CREATE TABLE rocpd_kernel_dispatch_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER,
  agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER,
  start BIGINT, end BIGINT, private_segment_size INTEGER, group_segment_size INTEGER,
  workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER,
  grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER);
"""
COPIES = """
CREATE TABLE rocpd_memory_copy_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, start BIGINT,
  end BIGINT, name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER,
  src_address INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER);
"""
ALLOCATIONS = """
CREATE TABLE rocpd_memory_allocate_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER,
  agent_id INTEGER, type TEXT, level TEXT, start BIGINT, end BIGINT, address INTEGER, size INTEGER);
"""
COUNTERS = """
CREATE TABLE rocpd_info_pmc_u(id INTEGER PRIMARY KEY, guid TEXT, agent_id INTEGER, name TEXT, units TEXT);
INSERT INTO rocpd_info_pmc_u VALUES (30, 'u', 5, 'SQ_WAVES', ''), (31, 'u', 0, 'Temperature', 'C');
CREATE TABLE rocpd_pmc_event_u(id INTEGER PRIMARY KEY, guid TEXT, event_id INTEGER, pmc_id INTEGER, value REAL);
CREATE TABLE rocpd_track_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER, name_id INTEGER);
INSERT INTO rocpd_track_u VALUES (40, 'u', 1, 3, 15);
CREATE TABLE rocpd_sample_u(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, timestamp BIGINT, event_id INTEGER);
"""


def event(number, category, stack, message=None):
    extra = "{}" if message is None else json.dumps({"message": message}).replace("'", "''")
    return f"INSERT INTO rocpd_event_u VALUES ({number}, 'u', {category}, {stack}, 0, '{extra}');"


def region(start, end, name, number, thread=3):
    return (f"INSERT INTO rocpd_region_u(guid, pid, tid, start, end, name_id, event_id) "
            f"VALUES ('u', 1, {thread}, {start}, {end}, {name}, {number});")


def kernel(start, end, number="NULL", symbol=7, grid=(1000, 4, 1)):
    return (f"INSERT INTO rocpd_kernel_dispatch_u VALUES (NULL, 'u', 1, 3, 5, {symbol}, 12, 2, 9, "
            f"{start}, {end}, 16, 3072, 256, 2, 1, {grid[0]}, {grid[1]}, {grid[2]}, {number});")


class Regions(DatabaseTest):
    def test_categories(self):
        for category, kind, domain in ((2, "api", "runtime"), (12, "api", "runtime"), (7, "api", "driver"),
                                       (9, "api", "communication"), (3, "scope", None)):
            one = self.one(META + event(1, category, 41) + region(10, 20, 1, 1))
            self.assertEqual((one.kind, one.domain), (kind, domain), category)

    def test_region_without_an_event(self):
        one = self.one(META + region(10, 20, 1, "NULL"))
        self.assertEqual((one.kind, one.name, one.correlation), ("scope", "hipLaunchKernel", None))

    def test_thread_and_process(self):
        one = self.one(META + event(1, 2, 41) + region(10, 20, 1, 1))
        self.assertEqual((one.lane["id"], one.lane["name"]), ("4712", "loader"))
        other = self.one(META + event(1, 2, 41) + region(10, 20, 1, 1, thread=99))
        self.assertEqual(other.lane["id"], "99")  # of which the database says no more

    def test_marks_are_called_what_they_say(self):
        one = self.one(META + event(1, 4, 41, 'layer "1"') + region(10, 20, 5, 1))
        self.assertEqual((one.kind, one.domain, one.name), ("scope", "annotation", 'layer "1"'))
        self.assertFalse(one.annotation)

    def test_process_without_a_number_of_the_system(self):
        path = self.make(META + "UPDATE rocpd_info_process_u SET pid = NULL;" + region(10, 20, 1, "NULL"))
        process = next(line for line in Run(["dump", path]).text.splitlines() if line.startswith("process "))
        self.assertRegex(process, '^process P1 id=1 .* name="python"$')

    def test_ranges_of_a_process_are_in_no_path(self):
        events = self.events(META + event(1, 4, 41, "epoch") + region(10, 90, 6, 1)
                             + event(2, 2, 42) + region(20, 30, 1, 2))
        self.assertTrue(next(e for e in events if e.name == "epoch").annotation)

    def test_calls_that_mark_nothing(self):
        one = self.one(META + event(1, 4, 41) + region(10, 20, 14, 1))
        self.assertEqual((one.kind, one.domain, one.name), ("api", "runtime", "roctxNameOsThread"))

    def test_damaged_message(self):
        sql = META + region(10, 20, 5, 1) + "INSERT INTO rocpd_event_u VALUES (1, 'u', 4, 41, 0, '{oops');"
        self.assertEqual(self.one(sql).name, "roctxThreadRangeA")


class Kernels(DatabaseTest):
    def test_every_column(self):
        one = self.one(META + KERNELS + kernel(100, 250))
        self.assertEqual((one.kind, one.name, one.start, one.end), ("kernel", "k()", 100, 250))
        self.assertEqual((one.lane["context"], one.lane["id"], one.lane["name"]), ("2", "9", "stream 9, queue 2"))
        self.assertEqual({key: one.fields[key] for key in (
            "grid", "block", "registers", "static_shared", "dynamic_shared", "local", "ordinal")}, {
                "grid": "4,2,1", "block": "256,2,1", "registers": "32", "static_shared": "1024",
                "dynamic_shared": "2048", "local": "16", "ordinal": "12"})

    def test_agent(self):
        device = self.one(META + KERNELS + kernel(100, 250)).fields["device_row"]
        self.assertEqual({key: device[key] for key in (
            "ordinal", "uuid", "name", "multiprocessors", "warp_size", "max_threads", "compute",
            "memory_bytes")}, {
                "ordinal": "1", "uuid": "GPU-4f000000000014cb", "name": "AMD Instinct MI300X",
                "multiprocessors": "304", "warp_size": "64", "max_threads": "2048", "compute": "9.4",
                "memory_bytes": "120"})

    def test_names(self):
        self.assertEqual(self.one(META + KERNELS + kernel(1, 2, symbol=8)).name, "_Z1lv")
        self.assertEqual(self.one(META + KERNELS + kernel(1, 2, symbol=99)).name, "kernel 99")

    def test_link_is_by_stack_id(self):
        events = self.events(META + KERNELS + event(1, 2, 41) + event(2, 2, 42) + event(3, 3, 42)
                             + region(10, 20, 1, 1) + region(30, 40, 1, 2) + kernel(100, 200, 3))
        found = next(e for e in events if e.kind == "kernel")
        self.assertTrue(found.linked)
        self.assertEqual(found.correlation, next(e.correlation for e in events if e.start == 30))

    def test_times_in_a_table_of_their_own(self):
        """Newer databases: rocpd_timestamp, rocpd_track, rocpd_info_category."""
        events = self.events(META + """
            CREATE TABLE rocpd_info_category_u(id INTEGER PRIMARY KEY, guid TEXT, name TEXT);
            INSERT INTO rocpd_info_category_u VALUES (90, 'u', 'HSA_CORE_API');
            CREATE TABLE rocpd_timestamp_u(id INTEGER PRIMARY KEY, guid TEXT, value BIGINT);
            INSERT INTO rocpd_timestamp_u VALUES (1, 'u', 100), (2, 'u', 130), (3, 'u', 150), (4, 'u', 290);
            CREATE TABLE rocpd_track_u(id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER, tid INTEGER,
              agent_id INTEGER, queue_id INTEGER, stream_id INTEGER);
            INSERT INTO rocpd_track_u VALUES (1, 'u', 1, 3, NULL, NULL, NULL), (2, 'u', 1, 3, 5, 6, 7);
            DROP TABLE rocpd_region_u;
            CREATE TABLE rocpd_region_u(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER,
              name_id INTEGER, start_id INTEGER, end_id INTEGER, event_id INTEGER);
            INSERT INTO rocpd_region_u VALUES (1, 'u', 1, 8, 1, 2, 1);
            CREATE TABLE rocpd_kernel_dispatch_u(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER,
              kernel_id INTEGER, start_id INTEGER, end_id INTEGER, event_id INTEGER);
            INSERT INTO rocpd_kernel_dispatch_u VALUES (1, 'u', 2, 7, 3, 4, 2);"""
            + event(1, 90, 41) + event(2, 90, 41))
        call, work = sorted(events, key=lambda e: e.start)
        self.assertEqual((call.kind, call.domain, call.start, call.end, call.lane["id"]),
                         ("api", "driver", 100, 130, "4712"))
        self.assertEqual((work.start, work.end, work.lane["name"]), (150, 290, "stream 7, queue 6"))
        self.assertEqual(work.fields["device_row"]["ordinal"], "1")
        self.assertTrue(work.linked)

    def test_bad_cells(self):
        report = self.report(self.make(META + KERNELS + kernel(0, 0) + kernel(9, 5) + kernel("'soon'", 7)
                                       + kernel(10, 20)), LOSSY)
        self.assertEqual({k: report.problems()[k] for k in ("untimed", "negative_duration", "unreadable_number")},
                         {"untimed": 2, "negative_duration": 1, "unreadable_number": 1})
        self.assertEqual((report.devices[0]["kernels"], report.devices[0]["busy"]), (4, 10))
        self.assertIn("table rocpd_kernel_dispatch_u, row 2", report.first("negative_duration"))

    def test_strict(self):
        path = self.make(META + KERNELS + kernel(9, 5))
        self.refused(path, "table rocpd_kernel_dispatch_u, row 1", options=("--strict",))


class Memory(DatabaseTest):
    def copy(self, name, source, target):
        return self.one(META + COPIES + f"INSERT INTO rocpd_memory_copy_u VALUES (1, 'u', 1, 10, 20, {name}, "
                        f"{target}, 512, {source}, 256, 4096, 2, 9, NULL);")

    def test_copies(self):
        for name, source, target, direction, ordinal in (
                (11, 5, 5, "device_to_device", "1"), (11, 5, 6, "peer_to_peer", "2"),
                (1, 0, 6, "host_to_device", "2"), (1, 5, 0, "device_to_host", "1"),
                (1, 0, 0, "host_to_host", None), (1, "NULL", 6, None, "2")):
            one = self.copy(name, source, target)
            self.assertEqual((one.fields.get("direction"), one.fields["device_row"].get("ordinal")),
                             (direction, ordinal))
            self.assertEqual((one.bytes, one.fields["src"], one.fields["dst"]), (4096, "0x100", "0x200"))

    def test_copy_between_agents_that_nobody_describes(self):
        for name, ordinal in ((1, "8"), (11, "8")):
            one = self.copy(name, 7, 8)
            self.assertEqual(one.fields["device_row"]["ordinal"], ordinal)

    def test_counter_without_a_value(self):
        path = self.make(META + COUNTERS + event(2, 13, 0) + """
            INSERT INTO rocpd_pmc_event_u VALUES (2, 'u', 2, 31, NULL), (3, 'u', 2, 31, 9e999);
            INSERT INTO rocpd_sample_u VALUES (1, 'u', 40, 50, 2);""")
        report = self.report(path, LOSSY, tools=("memory",))
        self.assertEqual((report.problems(), report.events),
                         ({"missing_field": 1, "unreadable_number": 1}, {}))

    def test_a_free_knows_what_it_frees(self):
        events = self.events(META + ALLOCATIONS + """
            INSERT INTO rocpd_memory_allocate_u VALUES
              (1, 'u', 1, 3, NULL, 'FREE', 'REAL', 50, 60, 4096, 0),
              (2, 'u', 1, 3, 5, 'ALLOC', 'REAL', 10, 20, 4096, 777),
              (3, 'u', 1, 3, 0, 'ALLOC', 'REAL', 70, 80, 8192, 5),
              (4, 'u', 1, 3, 5, 'ALLOC', 'SCRATCH', 90, 95, 0, 64);""")
        self.assertEqual([(e.kind, e.fields.get("bytes"), e.fields.get("device") is not None) for e in events],
                         [("alloc", "777", True), ("free", "777", True), ("alloc", "5", False),
                          ("scope", None, False)])

    def test_counters_and_moments(self):
        events = self.events(META + KERNELS + COUNTERS + event(1, 3, 41) + kernel(100, 200, 1)
                             + event(2, 13, 0) + event(3, 4, 0, "here") + """
            INSERT INTO rocpd_pmc_event_u VALUES (1, 'u', 1, 30, 4096.0), (2, 'u', 2, 31, 41.5);
            INSERT INTO rocpd_sample_u VALUES (1, 'u', 40, 50, 2), (2, 'u', 40, 60, 3), (3, 'u', 40, 70, NULL);""")
        found = {e.name: e for e in events if e.kind != "kernel"}
        self.assertEqual(set(found), {"SQ_WAVES", "Temperature", "here", "busy cores"})
        self.assertEqual((found["SQ_WAVES"].value, found["SQ_WAVES"].end), (4096, 200))
        self.assertEqual((found["Temperature"].value, found["Temperature"].fields["unit"]), (41.5, "C"))
        self.assertEqual((found["here"].domain, found["here"].start), ("annotation", 60))
        self.assertEqual(found["busy cores"].kind, "scope")


class Sets(DatabaseTest):
    def test_stack_id_case(self):
        events = self.events((CASES / "40-rocpd-stack-id.sql").read_text(encoding="utf-8"))
        calls = {e.correlation: e.start for e in events if e.kind == "api"}
        delays = {e.name: e.start - calls[e.correlation] for e in events if e.kind == "kernel"}
        self.assertEqual(delays, {"a": 100, "b": 190})

    def test_two_sets_of_tables(self):
        path = self.make((CASES / "41-rocpd-two-guids.sql").read_text(encoding="utf-8"))
        report = self.report(path)
        self.assertEqual({row["name"]: row["total"] for row in report.kernels}, {"x": 30, "y": 40})
        self.assertEqual(len(report.devices), 2)

    def test_guids_of_one_table_do_not_mix(self):
        """Rows of two processes in the same tables: a number means its guid's entry."""
        events = self.events("""
            CREATE TABLE rocpd_info_kernel_symbol(id INTEGER, guid TEXT, display_name TEXT);
            INSERT INTO rocpd_info_kernel_symbol VALUES (1, 'a', 'of a'), (1, 'b', 'of b');
            CREATE TABLE rocpd_event(id INTEGER, guid TEXT, category_id INTEGER, stack_id INTEGER);
            INSERT INTO rocpd_event VALUES (1, 'a', 0, 8), (1, 'b', 0, 9);
            CREATE TABLE rocpd_kernel_dispatch(guid TEXT, pid INTEGER, agent_id INTEGER, kernel_id INTEGER,
              start BIGINT, end BIGINT, event_id INTEGER);
            INSERT INTO rocpd_kernel_dispatch VALUES ('a', 1, 0, 1, 10, 20, 1), ('b', 2, 0, 1, 30, 50, 1);""")
        self.assertEqual([(e.name, e.correlation.partition(":")[2]) for e in events],
                         [("of a", "8"), ("of b", "9")])

    def test_suffix_from_table_names(self):
        one = self.one("""
            CREATE TABLE rocpd_kernel_dispatch0815(id INTEGER PRIMARY KEY, agent_id INTEGER,
              kernel_id INTEGER, start BIGINT, end BIGINT);
            INSERT INTO rocpd_kernel_dispatch0815 VALUES (1, 4, 3, 10, 20);""")
        self.assertEqual((one.name, one.fields["device_row"]["ordinal"]), ("kernel 3", "4"))

    def test_nothing_happened(self):
        report = self.report(self.make(META), tools=("summary",))
        self.assertEqual(report.events, {})

    def test_rank_from_the_environment(self):
        environment = json.dumps({"RANK": "3", "WORLD_SIZE": "8"})
        path = self.make(META + KERNELS + kernel(1, 2)
                         + f"UPDATE rocpd_info_process_u SET environment = '{environment}';")
        source = json.loads(Run(["report", path, "--format", "json"]).text)["trace"]["sources"][0]
        self.assertEqual(source["rank"], 3)

    def test_damage_keeps_what_was_read(self):
        path = self.make(META + KERNELS + "BEGIN;"
                         + "".join(kernel(i * 10 + 1, i * 10 + 5) for i in range(5000)) + "COMMIT;")
        data = bytearray(path.read_bytes())
        middle = len(data) // 2 // 4096 * 4096
        data[middle:middle + 4096 * 4] = b"\xff" * (4096 * 4)
        path.write_bytes(data)
        report = self.report(path, LOSSY)
        self.assertGreater(report.devices[0]["kernels"], 1000)
        self.assertLess(report.devices[0]["kernels"], 5000)


if __name__ == "__main__":
    unittest.main()
