#!/usr/bin/env python3
"""Databases of nvprof, made of SQL: what pastaprof makes of each table and column."""

import struct
import unittest

from database import LOSSY, DatabaseTest, dump

STRINGS = """
CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringTable VALUES (1, '_Z1kv'), (2, 'Tesla V100'), (3, 'step');
"""
CALLS = """
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY, cbid INT, start INT, end INT, processId INT,
  threadId INT, correlationId INT, returnValue INT);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, 10, 20, 77, 4294967200, 5, 0), (2, 999, 30, 40, 77, -96, 6, 2);
"""
WORK = "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT"


def kernels(kind):
    return f"""CREATE TABLE CUPTI_ACTIVITY_KIND_{kind}(_id_ INTEGER PRIMARY KEY, {WORK}, name INT, gridX INT,
      gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, registersPerThread INT, staticSharedMemory INT,
      dynamicSharedMemory INT, localMemoryPerThread INT);
    INSERT INTO CUPTI_ACTIVITY_KIND_{kind} VALUES (1, 100, 160, 0, 1, 7, 5, 1, 4, 5, 6, 128, 2, 1, 32, 64, 16, 8);"""


class Nvprof(DatabaseTest):
    def test_kernels_of_either_table(self):
        for kind in ("KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL"):
            events = self.events(STRINGS + CALLS + kernels(kind))
            one = next(e for e in events if e.kind == "kernel")
            self.assertEqual((one.name, one.duration, one.linked), ("_Z1kv", 60, True))
            self.assertEqual((one.lane["context"], one.lane["id"]), ("1", "7"))
            self.assertEqual([one.fields[key] for key in (
                "grid", "block", "registers", "static_shared", "dynamic_shared", "local")],
                ["4,5,6", "128,2,1", "32", "64", "16", "8"])

    def test_calls(self):
        known, unknown = self.events(STRINGS + CALLS)
        self.assertEqual((known.name, known.domain, known.lane["id"]), ("cudaLaunchKernel", "runtime", "4294967200"))
        self.assertEqual((unknown.name, unknown.fields["status"]), ("runtime call 999", "2"))
        self.assertEqual(known.lane, unknown.lane)  # -96 is the same 32 bits

    def test_device(self):
        one = self.one(STRINGS + kernels("KERNEL") + """
            CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(id INT, name INT, uuid BLOB, globalMemorySize INT,
              numMultiprocessors INT, maxWarpsPerMultiprocessor INT, numThreadsPerWarp INT,
              computeCapabilityMajor INT, computeCapabilityMinor INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (0, 2, x'000102030405060708090a0b0c0d0e0f', 4096, 80, 64, 32, 7, 0);""")
        device = one.fields["device_row"]
        self.assertEqual([device[key] for key in ("name", "uuid", "memory_bytes", "multiprocessors", "max_threads", "compute")],
                         ["Tesla V100", "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "4096", "80", "2048", "7.0"])

    def test_copies_and_fills(self):
        events = self.events(STRINGS + CALLS + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY({WORK}, copyKind INT, srcKind INT, dstKind INT, bytes INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (50, 60, 0, 1, 7, 5, 1, 2, 3, 4096);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY2({WORK}, copyKind INT, bytes INT, srcDeviceId INT, dstDeviceId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY2 VALUES (61, 70, 0, 1, 7, 5, 8, 512, 0, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET({WORK}, value INT, bytes INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (71, 80, 0, 1, 7, 5, 255, 64);""")
        found = [(e.kind, e.name, e.fields.get("direction"), e.bytes) for e in events if e.kind != "api"]
        self.assertEqual(found, [("copy", "Memcpy HtoD (Pinned -> Device)", "host_to_device", 4096),
                                 ("copy", "Memcpy PtoP", "peer_to_peer", 512), ("fill", "Memset", None, 64)])

    def test_unified_memory(self):
        events = self.events(STRINGS + CALLS + """
            CREATE TABLE CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER(counterKind INT, value INT, start INT, end INT,
              address INT, srcId INT, dstId INT, streamId INT, processId INT, flags INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER VALUES (1, 65536, 50, 60, 256, 0, 1, 0, 77, 1),
              (2, 4096, 61, 65, 256, 1, 0, 0, 77, 1), (3, 1, 70, 70, 512, 0, 0, 0, 77, 0), (4, 9, 71, 80, 512, 1, 0, 0, 77, 0);""")
        found = [(e.kind, e.fields.get("direction"), e.fields.get("bytes"), e.fields["device_row"].get("ordinal"))
                 for e in events if e.kind != "api"]
        self.assertEqual(found, [("copy", "migration", "65536", "1"), ("copy", "migration", "4096", "1"),
                                 ("fault", None, None, None), ("fault", None, None, "1")])

    def test_waits_by_their_context(self):
        events = self.events(STRINGS + CALLS + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_CONTEXT(contextId INT, deviceId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_CONTEXT VALUES (4, 3);
            CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(type INT, start INT, end INT, correlationId INT,
              contextId INT, streamId INT, cudaEventId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (3, 50, 60, 6, 4, 7, 0);""")
        wait = next(e for e in events if e.kind == "sync")
        self.assertEqual((wait.name, wait.fields["target"], wait.fields["device_row"]["ordinal"]),
                         ("Stream Sync", "stream", "3"))

    def test_memory(self):
        events = self.events(STRINGS + CALLS + """
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMORY(memoryKind INT, address INT, bytes INT, start INT, end INT,
              processId INT, deviceId INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMORY VALUES (3, 4096, 100, 50, 90, 77, 0), (2, 8192, 5, 51, 0, 77, 0);""")
        found = [(e.kind, e.end, e.fields["bytes"], "device" in e.fields) for e in events if e.kind != "api"]
        self.assertEqual(found, [("alloc", 50, "100", True), ("alloc", 51, "5", False), ("free", 90, "100", True)])

    def test_marks(self):
        thread = struct.pack("<II", 77, 12).hex()
        path = self.make(STRINGS + CALLS + f"""
            CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(flags INT, timestamp INT, id INT, objectKind INT, objectId BLOB, name INT);
            INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (2, 100, 1, 2, x'{thread}', 3), (2, 110, 2, 2, x'{thread}', 3),
              (4, 120, 2, 2, x'{thread}', 0), (4, 150, 1, 2, x'{thread}', 0), (1, 130, 3, 2, x'{thread}', 3),
              (2, 160, 4, 2, x'{thread}', 3);""")
        report = self.report(path, LOSSY)
        self.assertEqual(report.problems()["begin_without_end"], 1)
        found = [(e.start, e.end, e.lane["id"]) for e in dump.events(path) if e.kind == "scope"]
        self.assertEqual(found, [(110, 120, "12"), (130, 130, "12"), (100, 150, "12"), (160, 160, "12")])

    def test_tables_of_counters_are_counted(self):
        report = self.report(self.make(STRINGS + CALLS + """
            CREATE TABLE CUPTI_ACTIVITY_KIND_METRIC(id INT, value BLOB); INSERT INTO CUPTI_ACTIVITY_KIND_METRIC VALUES (1, x'00');"""))
        self.assertEqual(report.problems()["not_kept"], 1)


if __name__ == "__main__":
    unittest.main()
