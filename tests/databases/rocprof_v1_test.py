#!/usr/bin/env python3
"""Databases of rocprof, made of SQL: what pastaprof makes of each table and column."""

import unittest

from database import LOSSY, DatabaseTest

CALLS = """
CREATE TABLE HIP("BeginNs" INTEGER, "EndNs" INTEGER, "pid" INTEGER, "tid" INTEGER, "Name" TEXT, "args" TEXT,
  "Index" INTEGER, "Data" TEXT, "__section" INTEGER, "__lane" INTEGER, "DurationNs" INTEGER);
INSERT INTO HIP VALUES (10, 20, 8, 9, 'hipLaunchKernel', '( kernel(k) )', 1, '', 2, 9, 10),
  (30, 40, 8, 9, 'hipMemcpyAsync', '( dst(0x20) src(0x10) sizeBytes(4096) kind(1) stream(1))', 2, '', 2, 9, 10);
"""
OPERATION = """("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, "queue-id" INTEGER, "Name" TEXT,
  "pid" INTEGER, "tid" INTEGER, "roctx-range" TEXT, "stream-id" INTEGER, "Index" INTEGER)"""
KERNELS = """
CREATE TABLE KERN("Index" INTEGER, "KernelName" TEXT, "gpu-id" INTEGER, "queue-id" INTEGER, "pid" INTEGER,
  "tid" INTEGER, "grd" INTEGER, "wgr" INTEGER, "lds" INTEGER, "scr" INTEGER, "arch_vgpr" INTEGER,
  "accum_vgpr" INTEGER, "SQ_WAVES" INTEGER, "BeginNs" INTEGER, "EndNs" INTEGER);
INSERT INTO KERN VALUES (0, '"void k<double>(int) [clone .kd]"', 8, 3, 5, 5, 1000, 256, 512, 16, 24, 8, 64, 100, 250);
"""


class RocprofV1(DatabaseTest):
    def test_kernels_with_counters(self):
        kernel, counter = sorted(self.events(KERNELS), key=lambda e: e.start)
        self.assertEqual((kernel.kind, kernel.name, kernel.duration), ("kernel", "void k<double>(int)", 150))
        self.assertEqual([kernel.fields[key] for key in
                          ("grid", "block", "registers", "dynamic_shared", "local", "ordinal")],
                         ["4,1,1", "256,1,1", "32", "512", "16", "1"])
        self.assertEqual((kernel.lane["name"], kernel.fields["device_row"]["ordinal"]), ("queue 3", "8"))
        self.assertEqual((counter.kind, counter.name, counter.value, counter.end),
                         ("counter", "SQ_WAVES", 64, 250))

    def test_operations_of_hip(self):
        events = self.events(CALLS + f"""
            CREATE TABLE OPS{OPERATION}; CREATE TABLE COPY{OPERATION};
            INSERT INTO OPS VALUES (50, 60, 1, 2, 'k', 8, 9, '', 4, 1), (60, 61, 1, 2, '"<barrier packet>"', 8, 9, '', 4, 7);
            INSERT INTO COPY VALUES (70, 90, 1, 0, 'CopyHostToDevice', 8, 9, '', 4, 2),
              (91, 95, 1, 0, 'FillBuffer', 8, 9, '', 4, 3);""")
        work = [e for e in events if e.kind != "api"]
        self.assertEqual([e.kind for e in work], ["kernel", "sync", "copy", "fill"])
        self.assertTrue(work[0].linked and work[2].linked)
        self.assertEqual(work[0].lane["name"], "stream 4, queue 2")
        self.assertEqual([work[2].fields[key] for key in ("direction", "bytes", "src", "dst")],
                         ["host_to_device", "4096", "0x10", "0x20"])
        self.assertNotIn("bytes", work[3].fields)

    def test_kernels_that_are_in_two_tables_count_once(self):
        report = self.report(self.make(KERNELS + CALLS + f"""CREATE TABLE OPS{OPERATION};
            INSERT INTO OPS VALUES (100, 250, 8, 3, 'k', 8, 9, '', 4, 1);"""))
        self.assertEqual([(row["kernels"], row["kernel_sum"]) for row in report.devices], [(1, 150)])
        self.assertEqual(report.problems()["not_kept"], 1)

    def test_copies_of_hsa(self):
        one = self.one("""CREATE TABLE COPY("BeginNs" INTEGER, "EndNs" INTEGER, "Name" TEXT, "pid" INTEGER,
            "tid" INTEGER, "Index" INTEGER); INSERT INTO COPY VALUES (1, 5, 'async-copy', 8, 9, 3);""")
        self.assertEqual((one.kind, one.device, one.linked), ("copy", None, False))

    def test_marks(self):
        events = self.events("""CREATE TABLE rocTX("BeginNs" INTEGER, "EndNs" INTEGER, "pid" INTEGER,
            "tid" INTEGER, "Name" TEXT, "Index" INTEGER, "__section" INTEGER, "__lane" INTEGER);
            INSERT INTO rocTX VALUES (1, 50, 8, 9, 'step', 0, 0, 9), (7, 8, 8, 9, 'here', 1, 0, 9),
              (10, 90, 8, 9, 'over threads', 2, 0, 0);""")
        self.assertEqual([(e.name, e.duration, "instant" in e.flags, e.annotation) for e in events],
                         [("here", 0, True, False), ("step", 49, False, False), ("over threads", 80, False, True)])

    def test_lost_times(self):
        self.report(self.make(KERNELS + "UPDATE KERN SET EndNs = 5;"), LOSSY)


if __name__ == "__main__":
    unittest.main()
