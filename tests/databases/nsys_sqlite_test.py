#!/usr/bin/env python3
"""Nsight Systems exports, made of SQL: what pastaprof makes of each table and column."""

import gzip
import json
import re
import sqlite3
import unittest

from database import COMPLETE, LOSSY, DatabaseTest, Report, Run

# globalPid: the process in bits 24 to 47. globalTid: with the thread below.
A, B = 100 << 24, 101 << 24

STRINGS = """
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'void gemm<float>(int)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
  (4, 'cuLaunchKernel'), (5, 'main'), (6, 'registered'), (7, 'MPI_Allreduce'), (8, 'fwrite'),
  (9, 'cudaMalloc_v3020'), (10, 'aten::mul, seq = 7, op_id = 990, sizes = [[2, 3], []]');
"""
CALLS = """
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
"""
WORK = """start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER"""
KERNELS = f"""
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL({WORK}, demangledName INTEGER, shortName INTEGER,
  registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
  blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,
  localMemoryPerThread INTEGER, graphNodeId INTEGER, clusterX INTEGER, clusterY INTEGER,
  clusterZ INTEGER);
"""
COPIES = f"""
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY({WORK}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,
  srcKind INTEGER, dstKind INTEGER, migrationCause INTEGER, graphNodeId INTEGER,
  virtualAddress INTEGER);
"""
NVTX = """
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
  doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData TEXT);
"""


def call(start, end, correlation, name=3, thread=A + 1, status=0, domain=0):
    return (f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {end}, {domain}, {thread}, "
            f"{correlation}, {name}, {status}, NULL);")


def kernel(start, end, correlation=0, process=A, device=0, context=1, stream=7, node="NULL"):
    return (f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, {device}, {context}, "
            f"NULL, {stream}, {correlation}, {process}, 1, 2, 18, 4, 5, 6, 128, 2, 1, 64, 32, 16, "
            f"{node}, 2, 1, 1);")


def nvtx(start, end, **columns):
    values = {"start": start, "end": end, "eventType": 59, "globalTid": A + 1, "domainId": 0, **columns}
    shown = ("NULL" if v is None else f"'{v}'" if isinstance(v, str) else str(v) for v in values.values())
    return f"INSERT INTO NVTX_EVENTS({', '.join(values)}) VALUES ({', '.join(shown)});"


class Kernels(DatabaseTest):
    def test_every_column(self):
        event = self.one(STRINGS + KERNELS + kernel(100, 250, node=(3 << 32) + 9))
        self.assertEqual((event.kind, event.start, event.end), ("kernel", 100, 250))
        self.assertEqual(event.name, "void gemm<float>(int)")
        self.assertEqual(event.fields["grid"], "4,5,6")
        self.assertEqual(event.fields["graph_node"], "9")
        self.assertEqual((event.lane["context"], event.lane["id"]), ("1", "7"))

        self.assertEqual({key: event.fields[key] for key in (
            "block", "cluster", "registers", "static_shared", "dynamic_shared", "local")}, {
                "block": "128,2,1", "cluster": "2,1,1", "registers": "18", "static_shared": "64",
                "dynamic_shared": "32", "local": "16"})

    def test_stream_priority_is_signed(self):
        event = self.one(STRINGS + KERNELS + kernel(1, 2) + """
            CREATE TABLE TARGET_INFO_CUDA_STREAM(streamId INTEGER, processId INTEGER,
              contextId INTEGER, priority INTEGER);
            INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 100, 1, 4294967291);""")
        self.assertEqual(event.fields["priority"], "-5")

    def test_link_is_by_process_and_correlation(self):
        events = self.events(STRINGS + CALLS + KERNELS
                             + call(100, 110, 500, thread=A + 5) + call(300, 310, 500, thread=B + 6)
                             + kernel(150, 250, 500, A, 0) + kernel(350, 600, 500, B, 1, 2, 15))
        kernels = [e for e in events if e.kind == "kernel"]
        self.assertTrue(all(e.linked for e in kernels))
        self.assertEqual(len({e.correlation for e in kernels}), 2)
        self.assertEqual(len({e.lane["process"] for e in kernels}), 2)

    def test_path_of_the_launch(self):
        events = self.events(STRINGS + CALLS + KERNELS + NVTX + call(20, 30, 1)
                             + kernel(500, 600, 1) + nvtx(0, 100, text="step")
                             + nvtx(10, 50, textId=6))
        self.assertEqual(next(e.path for e in events if e.kind == "kernel"), ["step", "registered"])

    def test_minimal_columns(self):
        """No process, no context, no return value, names as text: what is there is used."""
        report = self.report(self.make("""
            CREATE TABLE StringIds(id INTEGER, value TEXT); INSERT INTO StringIds VALUES (2, 'k');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT,
              correlationId INT, shortName INT);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, correlationId INT,
              globalTid INT, nameId TEXT);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 0, 7, 1, 2);"""
            + f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 5, 1, {A + 1}, 'cudaLaunchKernel_v7000');"))
        self.assertEqual([(row["name"], row["calls"]) for row in report.kernels], [("k", 1)])
        self.assertEqual(report.quality["kernels_linked"], 1)

    def test_times_that_were_lost(self):
        report = self.report(self.make(STRINGS + CALLS + KERNELS + call(0, 1, 1) + kernel(0, 0)
                                       + kernel(9, 5) + kernel(10, 20)), LOSSY)
        self.assertEqual(report.problems()["untimed"], 1)
        self.assertEqual(report.problems()["negative_duration"], 1)
        self.assertEqual(report.devices[0]["kernels"], 3)
        self.assertEqual(report.devices[0]["busy"], 10)

    def test_graph_as_a_whole(self):
        report = self.report(self.make(STRINGS + CALLS + call(0, 5, 3) + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE({WORK}, graphId INTEGER, graphExecId INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 500, 0, 1, 0, 7, 3, {A}, 4, 5);"""))
        self.assertEqual([row["name"] for row in report.kernels], ["CUDA graph 4"])
        self.assertEqual(report.devices[0]["busy"], 490)
        self.assertIn("--cuda-graph-trace=node", report.first("not_recorded"))


class Memory(DatabaseTest):
    def copy(self, kind, source="NULL", target="NULL", cause="NULL", address="NULL"):
        return self.one(STRINGS + COPIES + "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 20, 0, "
                        f"1, 0, 7, 0, {A}, 4096, {kind}, {source}, {target}, {cause}, NULL, {address});")

    def test_kinds_of_copies(self):
        for kind, source, target, direction, name in (
                (1, 1, 2, "host_to_device", "Memcpy HtoD (Pinned -> Device)"),
                (2, 2, 0, "device_to_host", "Memcpy DtoH (Device -> Pageable)"),
                (8, "NULL", "NULL", "device_to_device", "Memcpy DtoD"),
                (9, 0, 0, "host_to_host", "Memcpy HtoH (Pageable -> Pageable)"),
                (10, 2, 2, "peer_to_peer", "Memcpy PtoP (Device -> Device)"),
                (99, 7, 7, None, "Memcpy")):
            event = self.copy(kind, source, target)
            self.assertEqual((event.kind, event.fields.get("direction"), event.name, event.bytes),
                             ("copy", direction, name, 4096))

    def test_migrations(self):
        event = self.copy(11, 7, 7, 2, 0x7000)
        self.assertEqual((event.fields["direction"], event.name), ("migration", "Unified memory HtoD (page fault)"))
        self.assertEqual(int(event.fields["dst"], 0), 0x7000)
        self.assertNotIn("src", event.fields)
        event = self.copy(12, 7, 7, 4, 0x7000)
        self.assertEqual(event.name, "Unified memory DtoH (eviction)")
        self.assertEqual(int(event.fields["src"], 0), 0x7000)
        report = self.report(self.folder / "trace.sqlite")
        self.assertNotIn("no_correlation", report.problems())

    def test_fills(self):
        event = self.one(STRINGS + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET({WORK}, value INTEGER, bytes INTEGER, memKind INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 2, 0, 1, 0, 7, 0, {A}, 255, 64, 2);""")
        self.assertEqual((event.kind, event.name, event.bytes), ("fill", "Memset (Device)", 64))
        self.assertEqual(int(event.fields["pattern"], 0), 255)

    def test_allocations_belong_to_the_path_of_their_call(self):
        sql = STRINGS + CALLS + NVTX + nvtx(0, 100, text="model") + call(10, 30, 8, 9) + f"""
            CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER,
              contextId INTEGER, address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER,
              memoryOperationType INTEGER, name TEXT, correlationId INTEGER,
              localMemoryPoolAddress INTEGER, localMemoryPoolSize INTEGER,
              localMemoryPoolUtilizedSize INTEGER);
            INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES
              (20, {A}, 0, 1, 4096, 0, 1024, 2, 0, NULL, 8, NULL, NULL, NULL),
              (40, {A}, 0, 1, 8192, 0, 2048, 1, 0, NULL, 9, NULL, NULL, NULL),
              (60, {A}, 0, 1, 4096, 0, 1024, 2, 1, NULL, 10, 65536, 7, 5),
              (70, {A}, 0, 1, 4096, 0, 1024, 2, 5, NULL, 10, NULL, NULL, NULL);"""
        events = self.events(sql)
        self.assertEqual([(e.name, e.value) for e in events if e.kind == "counter"],
                         [("pool 0x10000 size", 7), ("pool 0x10000 used", 5)])
        events = [e for e in events if e.kind in ("alloc", "free")]
        self.assertEqual([(e.kind, e.start, e.bytes) for e in events],
                         [("alloc", 20, 1024), ("alloc", 40, 2048), ("free", 60, 1024)])
        self.assertEqual(events[0].path, ["model"])
        self.assertNotIn("device", events[1].fields)  # pinned memory is the host's
        self.assertEqual(events[1].fields["pool"], "Pinned")
        self.assertEqual(events[2].fields["pool"], "pool 0x10000")
        report = self.report(self.folder / "trace.sqlite", LOSSY, ("memory",))
        self.assertEqual(report.problems()["record_skipped"], 1)
        self.assertIn(1024, [row["peak_seen"] for row in report.table("memory", "devices")])

    def test_page_faults(self):
        events = self.events(STRINGS + f"""
            CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS(start INTEGER, globalPid INTEGER, address INTEGER,
              originalFaultPc INTEGER, CpuInstruction INTEGER, module INTEGER);
            INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (5, {A}, 4096, 0, 5, 5);
            CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS(start INTEGER, end INTEGER, globalPid INTEGER,
              deviceId INTEGER, address INTEGER, numberOfPageFaults INTEGER, faultAccessType INTEGER);
            INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (10, 30, {A}, 0, 8192, 3, 2);""")
        self.assertEqual([(e.kind, e.name, e.start, e.end) for e in events],
                         [("fault", "CPU page fault in main", 5, 5),
                          ("fault", "GPU page fault (write)", 10, 30)])
        self.assertEqual([int(e.fields["address"], 0) for e in events], [4096, 8192])


class Host(DatabaseTest):
    def test_calls(self):
        events = self.events(STRINGS + CALLS + call(1000, 9000, 1, 9, status=2)
                             + call(9100, 9200, 2, 4, domain=1))
        self.assertEqual([(e.name, e.domain) for e in events],
                         [("cudaMalloc", "runtime"), ("cuLaunchKernel", "driver")])
        self.assertEqual(events[0].fields["status"], "2")

    def test_os_calls_mpi_and_libraries(self):
        events = self.events(STRINGS + f"""
            CREATE TABLE OSRT_API(start INT, end INT, globalTid INT, nameId INT, returnValue INT);
            INSERT INTO OSRT_API VALUES (1, 2, {A + 1}, 8, 17);
            CREATE TABLE MPI_COLLECTIVES_EVENTS(start INT, end INT, globalTid INT, textId INT);
            INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (3, 4, {A + 1}, 7);
            CREATE TABLE MPI_RANKS(globalTid INT, rank INT);
            INSERT INTO MPI_RANKS VALUES ({A + 1}, 3);
            CREATE TABLE CUBLAS_EVENTS(start INT, end INT, globalTid INT, nameId INT);
            INSERT INTO CUBLAS_EVENTS VALUES (5, 6, {A + 1}, 2);""")
        self.assertEqual([(e.kind, e.domain, e.name) for e in events],
                         [("api", "os", "fwrite"), ("api", "communication", "MPI_Allreduce"),
                          ("scope", "operator", "gemm")])
        self.assertNotIn("status", events[0].fields)  # 17 is how many bytes were written
        sources = self.report(self.folder / "trace.sqlite").trace["sources"]
        self.assertEqual(sources[0]["rank"], 3)

    def test_waits_are_on_the_device_of_their_context(self):
        """deviceId of these rows is 0 whatever the device."""
        events = self.events(STRINGS + KERNELS + kernel(1, 2, device=1, context=2, stream=15) + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION({WORK}, syncType INTEGER, eventId INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES
              (3, 9, 0, 2, NULL, 15, 4, {A}, 3, 4294967295), (10, 11, 0, 2, NULL, 15, 5, {A}, 2, 77);""")
        kernels, waits = events[:1], events[1:]
        self.assertEqual([(e.name, e.fields["target"]) for e in waits],
                         [("Stream Sync", "stream"), ("Stream Wait Event", "stream_waits_event")])
        self.assertEqual({e.device for e in waits}, {kernels[0].device})
        self.assertNotIn("object", waits[0].fields)
        self.assertEqual(waits[1].fields["object"], "77")

    def test_names(self):
        text = Run(["dump", self.make(STRINGS + CALLS + call(1, 2, 1) + f"""
            CREATE TABLE PROCESSES(globalPid INT, pid INT, name TEXT);
            INSERT INTO PROCESSES VALUES ({A}, 100, 'trainer'), ({B}, 101, 'idle');
            CREATE TABLE ThreadNames(nameId INT, priority INT, globalTid INT);
            INSERT INTO ThreadNames VALUES (5, 20, {A + 1}), (5, 20, {A + 2});""")]).text
        self.assertRegex(text, r'process .*"trainer"')
        self.assertRegex(text, r'lane .*"main"')
        self.assertNotIn("idle", text)  # it did nothing


class Nvtx(DatabaseTest):
    def test_operators_of_pytorch(self):
        event = self.one(STRINGS + NVTX + nvtx(0, 10, textId=10))
        self.assertEqual((event.name, event.domain), ("aten::mul", "operator"))
        self.assertEqual(event.fields["sequence"], "7")
        self.assertEqual(json.loads(event.fields["arguments"]), {"Input Dims": [[2, 3], []]})
        event = self.one(STRINGS + NVTX + nvtx(0, 10, text="aten::add, op_id = 5"))
        self.assertEqual((event.name, event.domain), ("aten::add", "operator"))
        self.assertNotIn("sequence", event.fields)

    def test_domains_categories_and_payloads(self):
        events = self.events(STRINGS + NVTX
                             + nvtx(0, 10, text="a", domainId=4, category=9, uint64Value=-1)
                             + nvtx(20, 30, text="b", domainId=4, doubleValue=0.5)
                             + nvtx(40, 50, text="c", jsonText='{"x":1}')
                             + nvtx(60, None, eventType=75, text="NCCL", domainId=4)
                             + nvtx(60, None, eventType=33, text="comm", domainId=4, category=9))
        arguments = [json.loads(e.fields["arguments"]) for e in events]
        self.assertEqual(arguments, [
            {"domain": "NCCL", "category": "comm", "payload": 2**64 - 1},
            {"domain": "NCCL", "payload": 0.5}, {"payload": '{"x":1}'}])

    def test_binary_payloads_are_counted(self):
        report = self.report(self.make(STRINGS + NVTX + nvtx(0, 10, text="a", binaryData="x")
                                       + nvtx(20, 30, text="b", jsonText="{}", binaryData="x")))
        self.assertEqual(report.problems()["not_kept"], 1)
        self.assertIn("binaryData", report.first("not_kept"))

    def test_open_ranges_and_marks(self):
        sql = STRINGS + NVTX + nvtx(0, None, text="open") + nvtx(5, None, text="mark", eventType=34) \
            + nvtx(10, 90, text="closed")
        events = {e.name: e for e in self.events(sql)}
        self.assertEqual((events["open"].end, events["open"].unfinished), (90, True))
        self.assertIn("instant", events["mark"].flags)
        report = self.report(self.folder / "trace.sqlite", LOSSY)
        self.assertEqual(report.problems()["begin_without_end"], 1)

    def test_start_end_ranges_need_not_nest(self):
        events = self.events(STRINGS + NVTX + nvtx(0, 50, text="x", eventType=60)
                             + nvtx(30, 80, text="y", eventType=60) + nvtx(40, 45, text="inner"))
        self.assertTrue(all(e.annotation for e in events if e.name in "xy"))
        self.assertEqual(next(e.path for e in events if e.name == "inner"), [])
        self.assertNotIn("partial_overlap", self.report(self.folder / "trace.sqlite").problems())


class Devices(DatabaseTest):
    GPUS = """
        CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT, uuid TEXT, totalMemory INT, smCount INT,
          computeMajor INT, computeMinor INT, threadsPerWarp INT, maxWarpsPerSm INT, cuDevice INT);
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'big', 'aaaa', 1000, 132, 9, 0, 32, 64, 1),
          (1, 'small', 'bbbb', 500, 20, 8, 6, 32, 48, 0);
        """

    def devices(self, sql):
        return {row["name"]: row for row in self.report(self.make(sql)).trace["devices"]}

    def test_each_process_numbers_its_own(self):
        """Both call their device 0; the table says that they are two."""
        sql = STRINGS + KERNELS + CALLS + call(0, 1, 9) + kernel(1, 2, process=A) \
            + kernel(5, 6, process=B) + self.GPUS + """
            CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INT, cudaId INT, pid INT);
            INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 100), (1, 0, 101);"""
        self.assertEqual(set(self.devices(sql)), {"big", "small"})
        self.assertEqual([row["kernels"] for row in Report(self.folder / "trace.sqlite").devices], [1, 1])

    def test_one_device_of_two_processes(self):
        sql = STRINGS + KERNELS + CALLS + call(0, 1, 9) + kernel(1, 2, process=A) \
            + kernel(5, 6, process=B, device=1) + self.GPUS + """
            CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INT, cudaId INT, pid INT);
            INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 100), (0, 1, 101);"""
        self.assertEqual(set(self.devices(sql)), {"big"})
        self.assertEqual([row["kernels"] for row in Report(self.folder / "trace.sqlite").devices], [2])

    def test_one_device_where_none_is_hidden(self):
        """No table says which GPU is whose, but there is only one, or the process uses the last of all."""
        kernels = STRINGS + KERNELS + CALLS + call(0, 1, 9)
        two = kernels + kernel(1, 2, process=A) + kernel(5, 6, process=B)
        one = "CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, 'only');"
        self.assertEqual(set(self.devices(two + one)), {"only"})
        self.assertEqual([row["kernels"] for row in Report(self.folder / "trace.sqlite").devices], [2])
        self.assertEqual([row["kernels"] for row in self.report(self.make(two + self.GPUS)).devices], [1, 1])
        contexts = "CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO(processId INT, contextId INT, deviceId INT);" \
            "INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (100, 1, 0), (100, 2, 1), (101, 1, 1);"
        both = kernels + kernel(1, 2, process=A) + kernel(3, 4, process=A, device=1, context=2) \
            + kernel(5, 6, process=B, device=1) + self.GPUS + contexts
        self.assertEqual(set(self.devices(both)), {"small", "big"})
        self.assertEqual(sorted(row["kernels"] for row in Report(self.folder / "trace.sqlite").devices), [1, 2])

    def test_facts(self):
        text = Run(["dump", self.make(STRINGS + KERNELS + kernel(1, 2) + self.GPUS)]).text
        self.assertRegex(text, r'device .*"small"')  # cuDevice 0
        self.assertIn("20", re.search(r"^device .*$", text, re.MULTILINE)[0])


class Files(DatabaseTest):
    SMALL = STRINGS + CALLS + KERNELS + call(0, 5, 1) + kernel(10, 20, 1)

    def test_what_is_missing_is_said(self):
        """A run without kernels: the tables that had no rows do not exist."""
        report = self.report(self.make(STRINGS + CALLS + call(1000, 9000, 1, 9, status=2)))
        self.assertEqual(report.events, {"api": 1})
        self.assertIn("no kernel table", report.first("not_recorded"))
        report = self.report(self.make(STRINGS + KERNELS + kernel(1, 2)))
        self.assertIn("no table of calls", report.first("not_recorded"))

    def test_warnings_of_the_collector(self):
        report = self.report(self.make(self.SMALL + """
            CREATE TABLE DIAGNOSTIC_EVENT(timestamp INT, timestampType INT, source INT, severity INT,
              text TEXT, globalPid INT);
            INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 0, 1, 1, 'all is well', 0),
              (2, 0, 3, 2, 'Not all CUDA events might have been collected.', 0), (3, 0, 3, 3, 'bad', 0);"""))
        self.assertEqual(report.problems()["collector_warning"], 2)
        self.assertEqual(report.first("collector_warning"),
                         "Not all CUDA events might have been collected. | bad")

    def test_rows_that_are_not_kept_are_counted(self):
        report = self.report(self.make(self.SMALL + """
            CREATE TABLE SCHED_EVENTS(start INT, cpu INT); INSERT INTO SCHED_EVENTS VALUES (1, 2), (3, 4);"""))
        self.assertEqual(report.problems()["not_kept"], 2)
        self.assertEqual(report.first("not_kept"), "2 rows of SCHED_EVENTS")

    def test_absolute_times(self):
        sql = self.SMALL + "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INT);" \
            "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1779782330176752435);"
        self.assertEqual([e.start for e in self.events(sql)],
                         [1779782330176752435, 1779782330176752445])

    def test_compressed_and_through_a_pipe(self):
        path = self.make(self.SMALL)
        packed = path.with_suffix(".sqlite.gz")
        packed.write_bytes(gzip.compress(path.read_bytes()))
        self.assertEqual(self.report(packed).events, {"api": 1, "kernel": 1})
        self.assertEqual(Report("-", stdin=path.read_bytes()).events, {"api": 1, "kernel": 1})

    def test_a_string_that_is_not_there(self):
        report = self.report(self.make(self.SMALL + "DELETE FROM StringIds WHERE id = 1;"), LOSSY)
        self.assertEqual(report.problems()["missing_field"], 1)

    def test_damage_costs_only_what_is_damaged(self):
        path = self.make("PRAGMA page_size = 512;" + STRINGS + CALLS + KERNELS
                         + "".join(call(10 * i, 10 * i + 5, i) for i in range(1, 500)) + kernel(6000, 6100, 3))
        data = bytearray(path.read_bytes())
        with sqlite3.connect(path) as database:
            root = database.execute("SELECT rootpage FROM sqlite_schema WHERE name LIKE '%RUNTIME'").fetchone()[0]
        database.close()
        child = int.from_bytes(data[512 * (root - 1) + 8:512 * root][:4], "big")  # the last page
        data[512 * (child - 1):512 * child] = b"\xff" * 512
        path.write_bytes(data)
        report = self.report(path, LOSSY)
        self.assertEqual(report.events["kernel"], 1)
        self.assertTrue(0 < report.events["api"] < 499)
        self.assertIn("CUPTI_ACTIVITY_KIND_RUNTIME", report.first("record_skipped"))
        self.refused(path, "CUPTI_ACTIVITY_KIND_RUNTIME", options=["--strict"])

    def test_a_database_of_something_else(self):
        self.refused(self.make("CREATE TABLE cookies(a); CREATE TABLE history(b);"), "cookies, history")
        self.refused(self.make(""), "trace.sqlite")

    def test_a_folder_with_databases_of_something_else(self):
        self.make("CREATE TABLE cookies(a);", "cookies.db")
        self.make(self.SMALL)
        self.assertEqual(Report(self.folder).events, {"api": 1, "kernel": 1})

    def test_a_report_that_is_not_exported(self):
        path = self.folder / "run.nsys-rep"
        path.write_bytes(b"NVIDIA Tegra Profiler Report" + bytes(100))
        self.refused(path, "nsys export --type sqlite")


if __name__ == "__main__":
    unittest.main()
