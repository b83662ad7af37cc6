#!/usr/bin/env python3
"""Writes an Nsight Systems export of any size, made up: launches, kernels and NVTX ranges.

    generate_nsys.py OUT.sqlite [--rows N]

Of N rows, two fifths are calls of the runtime, two fifths the kernels they launch (on 2 devices of 2
processes, 200 names), and one fifth operators around every other launch. Prints what a report of it
must show.
"""

import argparse
import pathlib
import sqlite3

SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE META_DATA_EXPORT(name TEXT NOT NULL, value TEXT);
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, end INTEGER NOT NULL,
  eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,
  returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, end INTEGER NOT NULL,
  deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
  launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
  blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
  localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER,
  graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
  rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
  doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.13.2');
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'aten::linear');
"""
# Launch number i: every 1000 ns, its kernel runs 800 ns; odd numbers are of the second process.
COUNT = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
PROCESS = "(281474976710656 + (100 + i % 2) * 16777216)"


def main():
    parser = argparse.ArgumentParser(description="Writes a made-up Nsight Systems export.")
    parser.add_argument("out")
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    launches = max(2, options.rows * 2 // 5)
    pathlib.Path(options.out).unlink(missing_ok=True)
    database = sqlite3.connect(options.out, isolation_level=None)
    database.executescript(SCHEMA)
    count = COUNT.format(last=launches - 1)
    database.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199) "
                     "INSERT INTO StringIds SELECT 10 + i, 'void kernel_' || i || '<float>(int)' FROM n")
    database.execute(f"{count} INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 1000, i * 1000 + 300, 0, "
                     f"{PROCESS} + 7, i / 2 + 1, 1, 0, NULL FROM n")
    database.execute(f"{count} INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 1000 + 500, "
                     f"i * 1000 + 1300, i % 2, 1, NULL, 7, i / 2 + 1, {PROCESS}, 10 + i % 200, 10 + i % 200, "
                     "NULL, 1, 0, 32, 108, 1 + i % 4, 1, 256, 1, 1, 0, 16384, 0, 0, i, 32768, NULL, 0 FROM n")
    database.execute(f"{count} INSERT INTO NVTX_EVENTS SELECT i * 1000 - 100, i * 1000 + 400, 59, NULL, NULL, "
                     f"NULL, CASE i % 8 WHEN 0 THEN 'aten::addmm, seq = ' || i || ', op_id = ' || i END, "
                     f"{PROCESS} + 7, NULL, CASE i % 8 WHEN 0 THEN NULL ELSE 2 END, 0, NULL, NULL, NULL, NULL, "
                     "NULL, NULL, NULL, NULL, NULL FROM n WHERE i % 2 = 0")
    database.close()
    print(f"{launches} kernels of {launches * 800} ns on 2 devices, each busy {(launches + 1) // 2 * 800} ns")


if __name__ == "__main__":
    main()
