#!/usr/bin/env python3
"""RPD databases, made of SQL: what pastaprof makes of each table and column."""

import unittest

from database import DatabaseTest, dump
from program import TRACES

NAMES = ["", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipGraphLaunch", "UserMarker", "k()",
         "KernelExecution", "CopyHostToDevice", "FillBuffer", "hipMemcpyAsync", "OpTable::writeRows",
         "Task", "ConcurrentKernel", "Memcpy", "cudaLaunchKernel", "BarrierAnd", "hsa_signal_wait_scacquire"]
ID = {name: number for number, name in enumerate(NAMES, 1)}
TABLES = """
CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT);
CREATE TABLE rocpd_metadata(id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER,
  apiName_id INTEGER, args_id INTEGER);
CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, sequenceId INTEGER,
  start INTEGER, end INTEGER, description_id INTEGER, opType_id INTEGER);
CREATE TABLE rocpd_api_ops(id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER);
CREATE TABLE rocpd_kernelapi(api_ptr_id INTEGER PRIMARY KEY, stream TEXT, gridX INTEGER, gridY INTEGER,
  gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER,
  privateSegmentSize INTEGER, kernelName_id INTEGER);
CREATE TABLE rocpd_copyapi(api_ptr_id INTEGER PRIMARY KEY, stream TEXT, size INTEGER, width INTEGER,
  height INTEGER, kind INTEGER, dst TEXT, src TEXT);
""" + "".join(f"INSERT INTO rocpd_string VALUES ({number}, '{name}');" for name, number in ID.items())
SCHEMA_2 = TABLES + "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '2');"


def text(number, said):
    return f"INSERT INTO rocpd_string VALUES ({number}, '{said}');"


def call(number, start, end, name, arguments=1, pid=8, tid=9):
    return (f"INSERT INTO rocpd_api(id, pid, tid, start, end, apiName_id, args_id) VALUES ({number}, {pid}, "
            f"{tid}, {start}, {end}, {ID[name]}, {arguments});")


def work(number, start, end, kind, name="", api=None, gpu=1, queue=2, sequence=0):
    link = "" if api is None else f"INSERT INTO rocpd_api_ops(api_id, op_id) VALUES ({api}, {number});"
    return (f"INSERT INTO rocpd_op VALUES ({number}, {gpu}, {queue}, {sequence}, {start}, {end}, {ID[name]}, "
            f"{ID[kind]});" + link)


def launch(api, stream="0x7f10", grid=(512, 4, 1), name="k()"):
    return (f"INSERT INTO rocpd_kernelapi VALUES ({api}, '{stream}', {grid[0]}, {grid[1]}, {grid[2]}, 256, 2, 1, "
            f"64, 32, {ID[name]});")


class Rpd(DatabaseTest):
    def kernel(self, sql):
        return next(e for e in self.events(sql) if e.kind == "kernel")

    def test_kernel(self):
        one = self.kernel(SCHEMA_2 + call(5, 10, 20, "hipLaunchKernel") + launch(5)
                          + work(1, 30, 70, "KernelExecution", "k()", 5))
        self.assertEqual((one.name, one.start, one.end, one.linked), ("k()", 30, 70, True))
        self.assertEqual((one.lane["name"], one.lane["context"]), ("stream 0x7f10, queue 2", "2"))
        self.assertEqual([one.fields[key] for key in ("grid", "block", "dynamic_shared", "local")],
                         ["512,4,1", "256,2,1", "64", "32"])
        self.assertEqual(one.fields["device_row"]["ordinal"], "1")

    def test_some_calls_take_work_items(self):
        one = self.kernel(SCHEMA_2 + call(5, 10, 20, "hipExtModuleLaunchKernel") + launch(5)
                          + work(1, 30, 70, "KernelExecution", "k()", 5))
        self.assertEqual(one.fields["grid"], "2,2,1")

    def grid_of(self, *more):
        sql = TABLES + "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '3');"
        sql += "".join(text(100 + i, name) for i, name in enumerate(more))
        return self.kernel(sql + call(5, 10, 20, "hipLaunchKernel") + launch(5)
                           + work(1, 30, 70, "KernelExecution", "k()", 5)).fields.get("grid")

    def test_unit_of_grids_by_who_recorded_them(self):
        """The file's strings also hold cudaLaunchKernel's kinds, which only CUPTI's recorder writes."""
        self.assertEqual(self.grid_of("hcc_activity_callback"), "512,4,1")
        sql = TABLES.replace("'ConcurrentKernel'", "'-'")
        sql += "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '3');"
        sql = sql.replace("'Memcpy'", "'--'")
        kernel = (call(5, 10, 20, "hipLaunchKernel") + launch(5)
                  + work(1, 30, 70, "KernelExecution", "k()", 5))
        self.assertEqual(self.kernel(sql + text(99, "MEMORY_COPY_HOST_TO_DEVICE") + kernel).fields["grid"],
                         "2,2,1")
        self.assertIsNone(self.kernel(sql + kernel).fields.get("grid"))

    def test_graph(self):
        events = self.events(SCHEMA_2 + text(100, "graphExec = 0x1 | stream = 0x7f20")
                             + call(5, 10, 20, "hipGraphLaunch", 100)
                             + work(1, 30, 70, "Task", "k()", 5) + work(2, 70, 90, "Task", "k()", 5))
        kernels = [e for e in events if e.kind == "kernel"]
        self.assertEqual({(e.linked, e.lane["name"], e.fields.get("grid")) for e in kernels},
                         {(True, "stream 0x7f20, queue 2", None)})
        self.assertEqual(len({e.correlation for e in kernels}), 1)

    def test_copies_and_fills(self):
        events = self.events(SCHEMA_2 + call(5, 1, 2, "hipMemcpyAsync") + call(6, 2, 3, "hipMemcpyAsync")
                             + "INSERT INTO rocpd_copyapi VALUES (5, '0x0', 4096, '', '', 1, '0x20', '0x10');"
                             "INSERT INTO rocpd_copyapi VALUES (6, '', '', 64, 3, 2, '0x20', '0x10');"
                             + work(1, 30, 70, "CopyHostToDevice", "", 5) + work(2, 80, 90, "Memcpy", "", 6)
                             + work(3, 91, 92, "FillBuffer") + work(4, 93, 94, "BarrierAnd"))
        found = [(e.kind, e.fields.get("direction"), e.fields.get("bytes")) for e in events if e.kind != "api"]
        self.assertEqual({(e.fields.get("src"), e.fields.get("dst")) for e in events if e.kind == "copy"},
                         {("0x10", "0x20")})
        self.assertEqual(found, [("copy", "host_to_device", "4096"), ("copy", "device_to_host", "192"),
                                 ("fill", None, None), ("sync", None, None)])

    def test_addresses_of_copies_that_are_not_written(self):
        for absent, written in ("dst", ("0x10", None)), ("src", (None, "0x20")):
            column = {"dst": ", dst TEXT", "src": ", src TEXT"}[absent]
            values = "5, '0x0', 4096, '', '', 1, " + {"dst": "'0x10'", "src": "'0x20'"}[absent]
            events = self.events(SCHEMA_2.replace(column, "") + call(5, 1, 2, "hipMemcpyAsync")
                                 + f"INSERT INTO rocpd_copyapi VALUES ({values});"
                                 + work(1, 30, 70, "CopyHostToDevice", "", 5))
            self.assertEqual([(e.fields.get("src"), e.fields.get("dst")) for e in events if e.kind == "copy"],
                             [written])

    def test_an_operation_counts_once(self):
        events = self.events(SCHEMA_2 + call(5, 1, 2, "hipLaunchKernel") + call(6, 2, 3, "hipLaunchKernel")
                             + work(1, 30, 70, "KernelExecution", "k()", 5)
                             + "INSERT INTO rocpd_api_ops(api_id, op_id) VALUES (6, 1);")
        self.assertEqual(sum(e.kind == "kernel" for e in events), 1)

    def test_cuda(self):
        one = self.kernel(SCHEMA_2 + call(5, 1, 2, "cudaLaunchKernel") + launch(5, "")
                          + work(1, 30, 70, "ConcurrentKernel", "k()", 5, queue=3, sequence=17))
        self.assertEqual((one.lane["context"], one.lane["id"], one.fields["grid"]), ("3", "17", "512,4,1"))

    def test_marks(self):
        events = self.events(
            SCHEMA_2 + text(100, "step 1") + text(101, "aten::mul, seq = 12, op_id = 5, sizes = [[2], []]")
            + call(1, 10, 20, "UserMarker", 100) + call(2, 30, 40, "UserMarker", 101)
            + call(3, 50, 50, "UserMarker", 100) + call(4, 60, 70, "OpTable::writeRows"))
        self.assertEqual([(e.name, e.domain, e.fields.get("sequence")) for e in events],
                         [("step 1", "annotation", None), ("aten::mul", "operator", "12"),
                          ("step 1", "annotation", None), ("OpTable::writeRows", "runtime", None)])
        self.assertIn("instant", events[2].flags)

    def test_operators_that_were_generated(self):
        one = self.one(SCHEMA_2 + text(100, "aten::add") + call(1, 10, 20, "UserMarker", 100) + """
            CREATE TABLE ext_autogradapi(api_ptr_id INTEGER PRIMARY KEY, autogradName_id INTEGER, seq TEXT);
            INSERT INTO ext_autogradapi VALUES (1, 100, '');""")
        self.assertEqual((one.name, one.domain, one.fields.get("sequence")), ("aten::add", "operator", None))

    def test_unique_strings_of_schema_3(self):
        one = self.one(TABLES + "INSERT INTO rocpd_metadata(tag, value) VALUES ('schema_version', '3');"
                       "CREATE TABLE rocpd_ustring(id INTEGER PRIMARY KEY, string TEXT);"
                       "INSERT INTO rocpd_ustring VALUES (7, 'mine');" + call(1, 10, 20, "UserMarker", 7))
        self.assertEqual(one.name, "mine")

    def test_monitors_and_counters(self):
        events = self.events(SCHEMA_2 + work(1, 30, 70, "KernelExecution", "k()") + """
            CREATE TABLE rocpd_monitor(id INTEGER PRIMARY KEY, deviceType TEXT, deviceId INTEGER,
              monitorType TEXT, start INTEGER, end INTEGER, value TEXT);
            INSERT INTO rocpd_monitor VALUES (1, 'gpu', 3, 'power', 5, 9, '131.5');
            CREATE TABLE rocpd_counter(id INTEGER PRIMARY KEY, value REAL, op_id INTEGER, name_id INTEGER);
            INSERT INTO rocpd_counter VALUES (1, 12.0, 1, 6);""")
        counters = [(e.name, e.value, e.fields.get("unit"), e.end) for e in events if e.kind == "counter"]
        self.assertEqual(counters, [("power", 131.5, "W", 5), ("k()", 12.0, None, 70)])

    def test_several_hosts(self):
        sql = SCHEMA_2 + "INSERT INTO rocpd_metadata(tag, value) VALUES ('pid_stride', '1000'), ('gpu_stride', '10');"
        events = self.events(sql + call(1, 1, 2, "hipLaunchKernel", pid=8)
                             + call(2, 1, 2, "hipLaunchKernel", pid=2008, tid=2009)
                             + work(1, 30, 70, "KernelExecution", "k()", 1, gpu=1)
                             + work(2, 30, 70, "KernelExecution", "k()", 2, gpu=21))
        kernels = [e for e in events if e.kind == "kernel"]
        self.assertEqual(len({e.device for e in kernels}), 2)
        self.assertEqual({e.fields["device_row"]["ordinal"] for e in kernels}, {"1"})
        self.assertEqual(len({e.lane["process"] for e in kernels}), 2)


class Real(DatabaseTest):
    def test_what_the_views_of_the_file_say(self):
        """Its views busy and top: GpuTime, WallTime, and what copied to the device."""
        path = TRACES / "rpd" / "matmul_result.rpd.gz"
        device, = self.report(path).devices
        self.assertEqual([device[column] for column in ("busy", "span", "kernels", "copies", "fills")],
                         [183918056, 2964070817, 29, 55, 1])
        copies = [e for e in dump.events(path) if e.fields.get("direction") == "host_to_device"]
        self.assertEqual((len(copies), sum(e.duration for e in copies)), (2, 157178063))
        self.assertTrue(all(e.linked for e in copies))


if __name__ == "__main__":
    unittest.main()
