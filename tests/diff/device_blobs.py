#!/usr/bin/env python3
"""Results of patches as the hexadecimal text that traces of cases hold: what src/device/result.h stores.

`device_blobs.py` prints the blobs of the cases of access, hotpages, reuse, divergence and samples.
"""
import struct

UNKNOWN, SHARED, SEVERAL, OTHERS, LOCAL = 0, 2**64 - 1, 2**64 - 2, 2**64 - 1, 2**64 - 3
OBJECTS, ACCESSES, SITES, BLOCKS, SETS, RUNS, FINGERPRINTS, ACTIVITY, BALANCE = range(1, 10)
SKIPPED, ITERATION, STREAM, TIMES, UNSEEN, MAPPED, SAMPLES, UNSEEN_TOO = 11, 12, 13, 14, 16, 17, 18, 19
UNTOLD, ISSUED, STALLED = range(3)
WAITCNT, BARRIER = 3, 5
GLOBAL_SPACE, SHARED_SPACE, LOCAL_SPACE = 0, 1, 2
SINGLE, BROADCAST, UNIT, STRIDED, PIECES, GATHER = range(6)
READ, WRITE, ATOMIC = 0, 1, 2


def table(kind, rows, names=None):
    out = struct.pack("<4I", kind, len(rows[0]), len(rows), 0 if names is None else 1)
    for row in rows:
        out += struct.pack(f"<{len(row)}Q", *(value % 2**64 for value in row))
    if names is not None:
        out += b"".join(struct.pack("<I", len(name.encode())) for name in names) + "".join(names).encode()
    return out


def result(*tables, grid=(1, 1, 1), block=(64, 1, 1), barriers=0, dropped=0):
    return struct.pack("<8I2Q", len(tables), *grid, *block, 0, barriers, dropped) + b"".join(tables)


def rows_of(blob, kind):
    """Of a table without names."""
    at, rows = 48, []
    for _ in range(struct.unpack_from("<I", blob)[0]):
        found, columns, count, named = struct.unpack_from("<4I", blob, at)
        at += 16
        if found == kind:
            rows += [struct.unpack_from(f"<{columns}Q", blob, at + 8 * columns * row) for row in range(count)]
        at += 8 * columns * count
        at += sum(4 + length for length in struct.unpack_from(f"<{count if named else 0}I", blob, at))
    return rows


def access():
    """Columns of a matrix are read, a word at a time: 32 sectors where 4 would do. The bins of a histogram are one."""
    # object, granule: reads, writes, atomics, warps, asked, used, sectors, touched, passes, without conflicts
    accesses = [(1, 2, 64, 0, 0, 2, 256, 256, 64, 2048, 0, 0), (UNKNOWN, 1, 0, 32, 0, 1, 128, 128, 4, 0, 0, 0),
                (SHARED, 1, 64, 64, 0, 4, 512, 0, 0, 0, 34, 4), (2, 1, 0, 0, 64, 2, 256, 8, 2, 4, 0, 0)]
    # site, space, access, width, object: warps, lanes, asked, used, sectors, needed, misaligned, single, broadcast,
    # unit, strided, pieces, gather, passes, without conflicts, crowds; least and most step, degree, crowd
    sites = [(0, GLOBAL_SPACE, READ, 4, 1, 2, 64, 256, 256, 64, 8, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 2048, 2048, 0, 0),
             (1, GLOBAL_SPACE, WRITE, 4, UNKNOWN, 1, 32, 128, 128, 4, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
             (2, SHARED_SPACE, WRITE, 4, SHARED, 2, 64, 256, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2, 2, 0, 0, 0, 1, 0),
             (3, SHARED_SPACE, READ, 4, SHARED, 2, 64, 256, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 32, 2, 0, 128, 128, 16, 0),
             (4, GLOBAL_SPACE, ATOMIC, 4, 2, 2, 64, 256, 8, 2, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 32)]
    names = ["a.cu:3 LDG", "a.cu:4 STG", "a.cu:5 STS", "", "a.cu:9 RED"]
    whole = result(table(OBJECTS, [(1, 0x10000, 16 << 20), (2, 0x2000000, 64)], ["in", "bins"]),
                   table(ACCESSES, accesses), table(SITES, sites, names), dropped=5)
    # Constants, products, multicast, fills.
    tma = result(table(UNSEEN, [(2, 0, 1)]), table(UNSEEN_TOO, [(1, 3, 1, 0)]))
    return whole, whole[:-30], tma, result()


def site(number, space, access, object, pattern, warps=100, lanes=32, width=4, sectors=0, needed=0, used=0, misaligned=0,
         passes=0, free=0, crowd=0, step=0):
    """A row of SITES, all of whose warps are alike."""
    patterns = [warps if kind == pattern else 0 for kind in range(6)]
    return (number, space, access, width, object, warps, warps * lanes, warps * lanes * width, used * warps,
            sectors * warps, needed * warps, misaligned, *patterns, passes * warps, free * warps, crowd * warps, step, step,
            passes, crowd)


def faults():
    """A kernel for each fault, all of one launch of 64 groups of 2 warps."""
    def launch(*sites, objects=(), names=("a.cu:3 LDG", "a.cu:4 LDG", "a.cu:5 LDG"), more=()):
        return result(*more, table(OBJECTS, [(1, 0x10000, 65536)], ["in"]),
                      *([table(ACCESSES, [(*row, 0, 0) for row in objects])] if objects else []),
                      *([table(SITES, sites, names[:len(sites)])] if sites else []), grid=(64, 1, 1))
    def read(number, pattern, **more):
        return site(number, GLOBAL_SPACE, READ, 1, pattern, **more)
    fields = [read(i, STRIDED, sectors=16, needed=4, used=128, step=16) for i in range(3)]
    # 4096 operations of 128 warps on 16 words of an object that nothing else is done with.
    bins = site(0, GLOBAL_SPACE, ATOMIC, 1, GATHER, warps=128, sectors=2, needed=2, used=64, crowd=3)
    return (
        launch(*fields, objects=[(1, 1, 9600, 0, 0, 300, 38400, 38400, 4800, 8192)]),
        launch(read(0, BROADCAST, warps=12800, sectors=1, needed=1, used=4),
               objects=[(1, 1, 409600, 0, 0, 12800, 1638400, 51200, 12800, 256)]),
        launch(read(0, SINGLE, lanes=1, warps=6000, sectors=1, needed=1, used=4),
               objects=[(1, 1, 6000, 0, 0, 6000, 24000, 24000, 6000, 256)]),
        launch(read(0, UNIT, lanes=8, warps=1000, sectors=4, needed=1, used=32),
               objects=[(1, 1, 8000, 0, 0, 1000, 32000, 32000, 4000, 256)]),
        launch(read(0, UNIT, warps=4000, sectors=5, needed=4, used=128, misaligned=4000),
               objects=[(1, 1, 128000, 0, 0, 4000, 512000, 512000, 20000, 4096)]),
        launch(read(0, GATHER, sectors=32, needed=4, used=128, warps=400),
               objects=[(1, 1, 12800, 0, 0, 400, 51200, 51200, 12800, 4096)]),
        # In two parts: the first has what is said of the whole.
        launch(objects=[(1, 1, 0, 0, 4096, 128, 16384, 8192, 256, 64)]),
        result(table(SITES, [bins], ["a.cu:9 RED"]), grid=(0, 0, 0), block=(0, 0, 0)),
        launch(site(0, SHARED_SPACE, READ, SHARED, STRIDED, width=8, passes=32, free=2, step=256), names=("a.cu:7 LDS",)),
        launch(objects=[(LOCAL, 1, 6400, 3200, 0, 300, 38400, 0, 0, 0), (1, 1, 9600, 0, 0, 300, 38400, 38400, 1200, 3840)]),
        *(launch(more=(table(UNSEEN, [(tiles, 0, textures)]), *([table(MAPPED, [(1,)])] if tiles else []))) for tiles, textures
          in ((2, 0), (0, 1), (1, 1), (4, 0))),
        # So little that nobody need change anything.
        launch(objects=[(LOCAL, 1, 640, 320, 0, 30, 3840, 0, 0, 0)]),
        # 32 words and 32 pairs of words: not 64 addresses of 6 bytes.
        launch(site(0, GLOBAL_SPACE, ATOMIC, 1, UNIT, warps=1, sectors=4, needed=4, used=128, crowd=1),
               site(1, GLOBAL_SPACE, ATOMIC, 1, UNIT, warps=1, width=8, sectors=8, needed=8, used=256, crowd=1),
               objects=[(1, 1, 0, 0, 64, 2, 384, 384, 12, 384)], names=("a.cu:3 RED", "a.cu:4 RED")))


def times():
    """A result, and of two iterations how many launches took how long together: in the first, code was loaded."""
    objects = [(1, 1, 32, 0, 0, 1, 128, 128, 4, 128, 0, 0)]
    return (result(table(OBJECTS, [(1, 0x10000, 4096)], ["in"]), table(ACCESSES, objects)),
            result(table(TIMES, [(2, 40_000_000)])), result(table(TIMES, [(2, 20_000)])))


def hotpages():
    # object, address, block, blocks: reads, writes, atomics, sectors
    names = ["weights", "state"]
    objects = table(OBJECTS, [(1, 0x200000, 6 << 20), (2, 0x900000, 64 << 10)], names)
    first = result(objects, table(BLOCKS, [(1, 0x200000, 1 << 20, 4, 1024, 0, 0, 128),
                                           (1, 0x600000, 1 << 20, 1, 64, 0, 0, 8),
                                           (2, 0x900000, 1 << 20, 1, 0, 512, 0, 64)]))
    second = result(objects, table(BLOCKS, [(1, 0x600000, 1 << 20, 2, 64, 0, 0, 8), (UNKNOWN, 0, 0, 0, 0, 0, 7, 1),
                                            (2, 0x900000, 1 << 20, 1, 0, 512, 0, 64)]),
                    table(UNSEEN, [(1, 0, 0)]), table(MAPPED, [(1,)]))
    many = result(objects, table(BLOCKS, [(1, 0x200000, 64 << 10, 80, 10, 0, 0, 2), (1, 0x700000, 64 << 10, 1, 9, 0, 0, 9)]))
    return first, second, result(objects, table(UNSEEN, [(1, 0, 0)])), many


def reuse():
    objects = table(OBJECTS, [(1, 0x10000, 8192), (2, 0x20000, 8192)], ["a", ""])
    # object, granule, granule of runs: asked, sectors, touched | object, begin, end | groups, sectors, distinct, full
    first = result(objects, table(SETS, [(1, 32, 32, 4096, 128, 4096), (2, 32, 32, 1024, 32, 1024)]),
                   table(RUNS, [(1, 0, 4096), (2, 0, 512), (2, 1024, 1536)]),
                   table(FINGERPRINTS, [(4, 160, 160, 0)]), table(UNSEEN, [(0, 0, 0)]), table(UNSEEN_TOO, [(1, 0, 0, 0)]))
    second = result(objects, table(SETS, [(2, 32, 64, 8192, 256, 2048), (UNKNOWN, 1, 1, 4, 1, 0)]),
                    table(RUNS, [(2, 256, 2304)]), table(FINGERPRINTS, [(4, 256, 64, 1)]), table(UNSEEN, [(0, 2, 0)]))
    # One number, which is all of its object: a sector is moved for 4 bytes, once.
    number = result(table(OBJECTS, [(3, 0x30000, 4)], ["n"]), table(SETS, [(3, 32, 32, 4, 1, 4)]), table(RUNS, [(3, 0, 4)]),
                    table(FINGERPRINTS, [(1, 1, 1, 0)]))
    return first, second, number


def iterations():
    """Results of step#0 (1), of step#1 (2), and of what is not in any that has ended (3)."""
    def of(begun, begin, end):
        return result(table(ITERATION, [(begun,)]), table(OBJECTS, [(1, 0x10000, 8192)], ["a"]),
                      table(SETS, [(1, 32, 32, end - begin, (end - begin) // 32, end - begin)]), table(RUNS, [(1, begin, end)]))
    return of(1, 0, 1024), of(1, 512, 1536), of(2, 0, 512), of(3, 0, 32)


def divergence():
    # site, space, access: warps, lanes, existing, partial, up to 8, 16, 24, 32
    activity = [(0, GLOBAL_SPACE, READ, 100, 3200, 3200, 0, 0, 0, 0, 100),
                (1, GLOBAL_SPACE, WRITE, 50, 400, 1600, 50, 50, 0, 0, 0),
                (2, GLOBAL_SPACE, WRITE, 10, 160, 320, 10, 0, 10, 0, 0),
                (OTHERS, GLOBAL_SPACE, READ, 1, 32, 32, 0, 0, 0, 0, 1)]
    # groups, working, total, median, most, heaviest
    eights = [(0, GLOBAL_SPACE, READ, 200, 1600, 1600, 0, 200, 0, 0, 0)]
    return (result(table(ACTIVITY, activity, ["a.cu:3 LDG", "", "", ""]), table(BALANCE, [(16, 15, 161, 6, 60, 9)])),
            result(table(ACTIVITY, activity[:1], ["a.cu:3 LDG"]), table(BALANCE, [(16, 16, 160, 10, 10, 0)])),
            result(table(ACTIVITY, eights, ["a.cu:9 LDG"]), block=(8, 1, 1)))


def samples():
    # offset, state, stall, samples
    def sampled(*rows):
        return result(table(SAMPLES, rows), grid=(0, 0, 0), block=(0, 0, 0))
    return (sampled((0x10, ISSUED, 0, 4), (0x1A0, STALLED, WAITCNT, 9), (0x1A0, STALLED, BARRIER, 2),
                    (0x1A0, ISSUED, 0, 1)),
            sampled((0x1A0, STALLED, WAITCNT, 3), (0x200, STALLED, 12, 1)), sampled((0x40, UNTOLD, 0, 5)),
            sampled((0x0, UNTOLD, 0, 2))[:-1])


if __name__ == "__main__":
    for case in (access, faults, times, hotpages, reuse, iterations, divergence, samples):
        for number, blob in enumerate(case(), 1):
            print(case.__name__, f"B{number}", blob.hex())
