"""What kernels of accesses.cu, forms.cu, memory.cu and launches.cu access, worked out by hand, and by no program: for
accesses_check.py, which compares it with a GPU, and for tests/oclgrind, which does with the same kernels on the host."""
import collections


def in_context(number):
    return [(("in_context", what, size + 16 * number), (1024, 4096, 4096, 4096)) for what, size in (("reads", 4096), ("writes", 8192))]


# kernel, how much it has to read from, number of what it writes to
MEMORY = (("in_pitched", 5120, 0), ("in_pool", 4096, 1), ("in_pool_again", 1536, 2), ("in_own_pool", 2560, 3),
          ("in_managed", 8192, 4), ("in_virtual_again", 2097152, 6), ("in_other_process", 2097152, 7),
          ("in_variable", 1200, 8), ("in_pinned", 4608, 9), ("in_mapped", 5120, 10), ("in_registered", 12288, 11))


def of_pair(kernel, number, groups=1, launches=1):
    """What a kernel of launches.cu copies, a word for each of 32 items of a group."""
    lanes, touched = 32 * groups * launches, 128 * groups
    return {(kernel, what, size + 32 * number): (lanes, 4 * lanes, 4 * lanes, touched)
            for what, size in (("reads", 1024), ("writes", 1040))}


# (kernel, what, size of the object) -> (lanes, bytes asked for, bytes moved, bytes touched)
# where what is one of reads, writes, atomics. A sector is 32 bytes.
OBJECTS = {
    "simple": {
        # 1024 items, 32 warps; a warp asks for 32 times the width in a row, at least one sector.
        **{(f"copy{width}", what, 1024 * width): (1024, 1024 * width, 1024 * width, 1024 * width)
           for width in (1, 2, 4, 8, 16) for what in ("reads", "writes")},
        # Words 1 to 33 apart: 4, 8, 12, 16, 20, 24, 28 sectors, from 8 on 32 of them: 112 + 26 * 32.
        ("stride", "reads", 4224): (33 * 32, 33 * 128, 944 * 32, 128),
        ("stride", "writes", 128): (33 * 32, 33 * 128, 33 * 128, 128),
        ("gather_sectors", "reads", 1024): (32, 128, 1024, 128),
        ("gather_sectors", "writes", 128): (32, 128, 128, 128),
        ("gather_backwards", "reads", 256): (32, 128, 128, 128),
        ("gather_backwards", "writes", 128): (32, 128, 128, 128),
        ("gather_halves", "reads", 4096): (32, 128, 128, 128),
        ("gather_halves", "writes", 128): (32, 128, 128, 128),
        # 128 warps; in a column each lane has a sector of its own.
        ("transpose_plain", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_plain", "writes", 16384): (4096, 16384, 131072, 16384),
        ("transpose_tile", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_tile", "writes", 16384): (4096, 16384, 16384, 16384),
        ("transpose_padded", "reads", 16384): (4096, 16384, 16384, 16384),
        ("transpose_padded", "writes", 16384): (4096, 16384, 16384, 16384),
        ("reduction", "reads", 1024): (256, 1024, 1024, 1024),
        ("reduction", "writes", 4): (1, 4, 32, 4),
    },
    "edges": {
        ("histogram", "reads", 1024): (256, 1024, 1024, 1024),
        # Every lane of 8 warps adds to the same word.
        ("histogram", "atomics", 1028): (256, 1024, 256, 4),
        ("histogram_shared", "reads", 1024): (256, 1024, 1024, 1024),
        ("histogram_shared", "writes", 1028): (256, 1024, 1024, 1024),
        ("odd_lanes", "reads", 128): (16, 64, 128, 64),
        ("odd_lanes", "writes", 132): (16, 64, 128, 64),
        # 31 whole warps, and one of 8 lanes.
        ("tail", "reads", 4000): (1000, 4000, 4000, 4000),
        ("tail", "writes", 4004): (1000, 4000, 4000, 4000),
        # From the second word on: a sector more.
        ("shifted", "reads", 160): (32, 128, 160, 128),
        ("shifted", "writes", 128): (32, 128, 128, 128),
        ("same_words", "reads", 192): (32, 128, 128, 128),
        ("same_words", "writes", 128): (32, 128, 128, 128),
        # 25 of 32 words lie in an object of 100 bytes.
        ("gap", "reads", 100): (25, 100, 128, 100),
        ("gap", "reads", None): (7, 28, 32, None),
        ("gap", "writes", 144): (32, 128, 128, 128),
        ("behind", "reads", None): (1, 4, 32, None),
        ("behind", "writes", 8): (1, 4, 32, 4),
        ("copies_ahead", "reads", 4096): (256, 4096, 4096, 4096),
        ("copies_ahead", "writes", 4112): (256, 4096, 4096, 4096),
        ("local_array", "reads", 128): (32, 128, 128, 128),
        ("local_array", "writes", 144): (32, 128, 128, 128),
        # Two lanes of four, so 8 bytes of 16, in every sector.
        ("anywhere", "reads", 160): (16, 64, 128, 64),
        ("anywhere", "writes", 160): (16, 64, 128, 64),
        ("anywhere", "writes", 176): (32, 128, 128, 128),
    },
    "streams": {
        # 5 times a graph of 3; 8 streams, 50 times each; 4 threads, 50 times each.
        ("in_graph", "reads", 128): (15 * 32, 15 * 128, 15 * 128, 128),
        ("in_graph", "writes", 132): (15 * 32, 15 * 128, 15 * 128, 128),
        ("in_stream", "reads", 4096): (400 * 1024, 400 * 4096, 400 * 4096, 4096),
        ("in_stream", "writes", 4100): (400 * 1024, 400 * 4096, 400 * 4096, 4096),
        ("in_thread", "reads", 4096): (200 * 1024, 200 * 4096, 200 * 4096, 4096),
        ("in_thread", "writes", 4100): (200 * 1024, 200 * 4096, 200 * 4096, 4096),
    },
    # 6 iterations, of which the first and the fourth are taken.
    "steps": {
        ("in_step", "reads", 128): (2 * 32, 2 * 128, 2 * 128, 128),
        ("in_step", "writes", 132): (2 * 32, 2 * 128, 2 * 128, 128),
    },
    # One launch in the first of three contexts, three in the second, two in the third, and one in another after that
    # is gone.
    "contexts": {key: value for number in range(7) for key, value in in_context(number)},
    "hopper": {
        ("bulk", "reads", 1024): (1, 1024, 1024, 1024),
        ("bulk", "writes", 1040): (1, 1024, 1024, 1024),
        ("neighbours", "reads", 256): (64, 256, 256, 256),
        ("neighbours", "writes", 272): (64, 256, 256, 256),
        # What it loads through its tensor map no patch sees.
        ("tiles", "writes", 128): (32, 128, 128, 128),
    },
    "forms": {
        # 16 and 8 bytes of each lane in one step.
        ("reduce_vectors", "atomics", 512): (32, 512, 512, 512),
        ("add_vectors", "atomics", 256): (32, 256, 256, 256),
        ("add_vectors", "writes", 272): (32, 256, 256, 256),
        # 4 lanes at each of 8 words.
        ("swap4", "atomics", 32): (32, 128, 32, 32),
        ("swap4", "writes", 144): (32, 128, 128, 128),
        ("swap8", "atomics", 256): (32, 256, 256, 256),
        ("swap8", "writes", 288): (32, 256, 256, 256),
        ("swap16", "atomics", 512): (32, 512, 512, 512),
        ("shared_atomics", "writes", 128): (32, 128, 128, 128),
        # Every second word.
        ("add_anywhere", "atomics", 160): (16, 64, 128, 64),
        ("add_anywhere", "writes", 128): (32, 128, 128, 128),
        ("read_only", "reads", 512): (32, 512, 512, 512),
        ("read_only", "writes", 528): (32, 512, 512, 512),
        # Twice.
        ("ordered", "reads", 128): (64, 256, 256, 128),
        ("ordered", "writes", 144): (32, 128, 128, 128),
        ("prefetches", "writes", 128): (32, 128, 128, 128),
        ("copies4", "reads", 128): (32, 128, 128, 128),
        ("copies4", "writes", 144): (32, 128, 128, 128),
        ("copies8", "reads", 256): (32, 256, 256, 256),
        ("copies8", "writes", 272): (32, 256, 256, 256),
        # 8 bytes of each 16, by 24 lanes: but Compute Sanitizer tells of all 16.
        ("copies_half", "reads", 512): (24, 384, 384, 384),
        ("copies_half", "writes", 528): (32, 512, 512, 512),
        ("matrices", "writes", 128): (32, 128, 128, 128),
        ("async_stores", "writes", 256): (64, 256, 256, 256),
        ("async_reductions", "writes", 256): (64, 256, 256, 256),
        ("remote_atomics", "writes", 256): (64, 256, 256, 256),
        ("bulk_to_neighbour", "writes", 256): (64, 256, 256, 256),
        ("bulk_reduction", "atomics", 1024): (1, 1024, 1024, 1024),
        ("multicast", "reads", 1024): (1, 1024, 1024, 1024),
        ("multicast", "writes", 256): (64, 256, 256, 256),
        ("calls", "reads", 128): (32, 128, 128, 128),
        ("calls", "writes", 144): (32, 128, 128, 128),
        # 2^28 accesses of warps, of 128 bytes each: more than 32 bits hold.
        ("endless", "reads", 32768): (8589934592, 34359738368, 34359738368, 32768),
        ("endless", "writes", 32784): (8192, 32768, 32768, 32768),
        # What they do besides no patch sees.
        ("textured", "writes", 144): (32, 128, 128, 128),
        ("surfaces", "writes", 160): (32, 128, 128, 128),
        ("from_constants", "reads", 128): (32, 128, 128, 128),
        ("from_constants", "writes", 176): (32, 128, 128, 128),
        ("products", "writes", 512): (128, 512, 512, 512),
    },
    # A warp reads a row of 128 bytes, and writes one to an object of its own.
    "memory": {
        **{(kernel, what, size): (32, 128, 128, 128)
           for kernel, size, number in MEMORY for what, size in (("reads", size), ("writes", 1024 + 16 * number))},
        # On both sides of a border between two objects of 2 MiB: 16 words of one, 48 of the other.
        ("in_virtual", "reads", 2097152): (64, 256, 256, 256),
        ("in_virtual", "writes", 1104): (64, 256, 256, 256),
        # Three times, through memory that the graph has of its own: each time an object.
        ("to_graph_memory", "reads", 1216): (96, 384, 384, 128),
        ("to_graph_memory", "writes", 6144): (96, 384, 384, 384),
        ("from_graph_memory", "reads", 6144): (96, 384, 384, 384),
        ("from_graph_memory", "writes", 1232): (96, 384, 384, 128),
        # Each item has memory of its own, of which nobody tells.
        ("in_heap", "reads", None): (32, 128, 1024, None),
        ("in_heap", "writes", None): (32, 128, 1024, None),
        ("in_heap", "writes", 1248): (32, 128, 128, 128),
    },
    "plain": {
        **of_pair("by_cooperation", 0, 2), **of_pair("by_cluster", 1, 4), **of_pair("after_another", 2, 4, 3),
        **of_pair("on_own_stream", 3), **of_pair("with_priority", 4), **of_pair("known_last", 20),
    },
    # A module is loaded three times, each time for a launch.
    "modules": {**of_pair("loaded", 10), **of_pair("loaded", 11), **of_pair("loaded", 12), **of_pair("known_last", 20)},
    # 3 times a graph of two graphs of two.
    "child_graphs": {**of_pair("in_child_graph", 5, 1, 12), **of_pair("known_last", 20)},
    # 3 times a graph of four kernels in a row and one of two side by side between two others.
    "mixed_graphs": {
        **of_pair("in_chain_a", 30, 1, 3), **of_pair("in_chain_b", 31, 2, 3), **of_pair("in_chain_a", 32, 1, 3),
        **of_pair("in_chain_c", 33, 3, 3), **of_pair("in_fork_a", 34, 1, 3), **of_pair("in_fork_b", 35, 1, 3),
        **of_pair("in_chain_b", 36, 2, 3), **of_pair("in_chain_c", 37, 3, 3), **of_pair("known_last", 20),
    },
    # Two launches of a graph whose condition is so, two of one whose is not; and three rounds of a loop.
    "conditions": {
        **of_pair("under_condition", 6, 1, 2), **of_pair("around_loop", 7, 1, 3), **of_pair("known_last", 20),
        ("loop", "reads", 4): (3, 12, 96, 4),
        ("loop", "atomics", 8): (3, 12, 96, 4),
    },
    # Twice a kernel of 1 and one of 2 groups, which are counted with the kernel that launches them.
    "of_kernels": {
        ("launches_kernels", "reads", 1280): (192, 768, 768, 256), ("launches_kernels", "writes", 1296): (192, 768, 768, 256),
        **of_pair("known_last", 20),
    },
    # A graph that a kernel launches is left alone.
    "of_graphs": of_pair("known_last", 20),
    # A graph of two nodes of a kernel, of which the first alone is to be analysed: both are, and no launch after it.
    "first_of_graph": {**of_pair("in_chain_a", 38, 1), **of_pair("in_chain_a", 39, 1), **of_pair("known_last", 20)},
}
# What `memory` has besides where there is another device.
OF_PEER = {("in_peer", "reads", 7168): (32, 128, 128, 128), ("in_peer", "writes", 1024 + 16 * 15): (32, 128, 128, 128)}
# kernel -> (reads, writes, atomics, passes, passes without conflicts)
SHARED = {
    "simple": {
        # 128 warps write a row, and read a column: all of it in one bank, or each word in its own.
        "transpose_tile": (4096, 4096, 0, 128 + 128 * 32, 256),
        "transpose_padded": (4096, 4096, 0, 256, 256),
        # 8 warps store; 4, 2, 1 and five times 1 read two words and write one; one lane reads.
        "reduction": (511, 511, 0, 8 + 3 * 12 + 1, 8 + 3 * 12 + 1),
    },
    "edges": {
        "histogram_shared": (256, 256, 256, 24, 24),
        # Words 2 apart are written, twice: two of each bank that is used. Of 16 words two of each of 8 banks are read.
        "same_words": (32, 64, 0, 2 + 2 + 2, 3),
        # 16 bytes a lane: 8 lanes at a time.
        "copies_ahead": (256, 256, 0, 64, 64),
        # Words 4 apart.
        "anywhere": (8, 8, 0, 2, 2),
    },
    "streams": {},
    "steps": {},
    "contexts": {},
    "hopper": {
        # 1024 bytes are 8 rows of all banks.
        "bulk": (1, 1, 0, 16, 2),
        "neighbours": (64, 64, 0, 4, 4),
        "tiles": (32, 0, 0, 1, 1),
    },
    "forms": {
        "shared_atomics": (0, 8, 96, 4, 4),
        "add_anywhere": (0, 32, 16, 2, 2),
        "copies4": (32, 32, 0, 2, 2),
        # 16 lanes at a time, and 8.
        "copies8": (32, 32, 0, 4, 4),
        "copies_half": (32, 32, 0, 8, 8),
        # 32 rows in the same banks, in 4 steps of 8; 8 rows beside each other, twice 8, and 4 times 8.
        "matrices": (56, 32, 0, 32 + 1 + 2 + 4, 4 + 1 + 2 + 4),
        # Of two warps: words, vectors of 16 bytes, words.
        "async_stores": (64, 128, 0, 12, 12),
        "async_reductions": (64, 64, 64, 6, 6),
        "remote_atomics": (0, 64, 64, 4, 4),
        # Of two groups: 4 rows are written, then 512 bytes, 4 rows of all banks, are read twice, written and added, and
        # 32 words read.
        "bulk_to_neighbour": (68, 258, 2, 2 * (4 + 4 * 4 + 1), 2 * (4 + 4 + 1)),
        "bulk_reduction": (1, 256, 0, 8 + 8, 8 + 1),
        # To both groups at once is one write.
        "multicast": (64, 1, 0, 8 + 2, 1 + 2),
        # 8 words of each of 128 items.
        "products": (0, 1024, 0, 32, 32),
    },
    "memory": {},
    "plain": {},
    "modules": {},
    "child_graphs": {},
    "mixed_graphs": {},
    "conditions": {},
    "of_kernels": {},
    "of_graphs": {},
    "first_of_graph": {},
}


# kernel -> what the launch touches that touches most, in sectors of 32 bytes or what an object has of one
TOUCHED = {
    "simple": {
        **{f"copy{width}": 2048 * width for width in (1, 2, 4, 8, 16)},
        "stride": 32 * 32 + 128, "gather_sectors": 1024 + 128, "gather_backwards": 256, "gather_halves": 256,
        "transpose_plain": 32768, "transpose_tile": 32768, "transpose_padded": 32768, "reduction": 1024 + 4,
    },
    "edges": {
        "histogram": 1024 + 32, "histogram_shared": 2048, "odd_lanes": 256, "tail": 8000, "shifted": 160 + 128, "same_words": 256, "gap": 100 + 128, "behind": 8,
        "copies_ahead": 8192, "local_array": 256, "anywhere": 256,
    },
    "streams": {"in_graph": 256, "in_stream": 8192, "in_thread": 8192},
    "hopper": {"bulk": 2048, "neighbours": 512, "tiles": 128},
    "forms": {
        "reduce_vectors": 512, "add_vectors": 512, "swap4": 32 + 128, "swap8": 512, "swap16": 512, "shared_atomics": 128,
        "add_anywhere": 256, "read_only": 1024, "ordered": 256, "prefetches": 128, "copies4": 256, "copies8": 512,
        "copies_half": 384 + 512, "matrices": 128, "async_stores": 256, "async_reductions": 256, "remote_atomics": 256,
        "bulk_to_neighbour": 256, "bulk_reduction": 1024, "multicast": 1024 + 256, "calls": 256, "endless": 65536, "textured": 128,
        "surfaces": 128, "surface_reductions": 0, "from_constants": 256, "products": 512,
    },
    "steps": {"in_step": 256},
    "contexts": {"in_context": 8192},
}
# kernel -> accesses of warps in any memory
WARPS = {
    "simple": {
        **{f"copy{width}": 64 for width in (1, 2, 4, 8, 16)},
        "stride": 66, "gather_sectors": 2, "gather_backwards": 2, "gather_halves": 2,
        "transpose_plain": 256, "transpose_tile": 512, "transpose_padded": 512,
        # Of the sums: 4, 2, 1 and five times 1 warps read two and write one.
        "reduction": 8 + 8 + 3 * 12 + 1 + 1,
    },
    "edges": {
        "histogram": 16, "histogram_shared": 40, "odd_lanes": 2, "tail": 64, "shifted": 2, "same_words": 5, "gap": 2, "behind": 2, "copies_ahead": 32,
        # 16 writes and a read of the array.
        "local_array": 19,
        # A store and a load in each memory, and one store.
        "anywhere": 7,
    },
    "streams": {"in_graph": 30, "in_stream": 400 * 64, "in_thread": 200 * 64},
    "hopper": {"bulk": 4, "neighbours": 8, "tiles": 2},
    "forms": {
        "reduce_vectors": 1, "add_vectors": 2, "swap4": 2, "swap8": 2, "swap16": 1, "shared_atomics": 5,
        # A word of each memory is added to in one step.
        "add_anywhere": 4, "read_only": 2, "ordered": 3, "prefetches": 1,
        # A copy reads and writes. Where not all lanes read, whether they write together afterwards or in two accesses of
        # the warp is not the same in each run.
        "copies_half": (4, 5), "copies4": 4, "copies8": 4, "matrices": 5, "async_stores": 2 * 4, "async_reductions": 2 * 4,
        "remote_atomics": 2 * 3, "bulk_to_neighbour": 2 * 10, "bulk_reduction": 8 + 2, "multicast": 2 + 2 * 2, "calls": 2,
        "endless": 268435456 + 256, "textured": 1, "surfaces": 1, "surface_reductions": 0, "from_constants": 2,
        "products": 32 + 4,
    },
    "steps": {"in_step": 2 * 2},
    "contexts": {"in_context": 7 * 64},
}
LOCAL_LANES = {"local_array": 17 * 32, "anywhere": 2 * 8}  # of what is in no table above
# kernel -> (reads, writes) of local memory
LOCAL = {"edges": {"local_array": (32, 512), "anywhere": (8, 8)}}


def unit(warps, width=4):
    """Whole warps that ask for what lies in a row."""
    return {(width, "unit", None, None): (warps, 32 * warps, width * warps, width * warps, 0)}


def copies(warps, width=4):
    return {("global", "read"): unit(warps, width), ("global", "write"): unit(warps, width)}


# kernel -> (memory, access) -> (width, pattern, passes of the worst access, lanes of the most crowded address)
# -> (warps, lanes, sectors, sectors that would be enough, misaligned warps), which are of global memory alone.
SITES = {
    "simple": {
        **{f"copy{width}": copies(32, width) for width in (1, 2, 4, 8, 16)},
        "stride": {("global", "read"): {(4, "strided by 8 to 132 B", None, None): (33, 33 * 32, 944, 33 * 4, 0)},
                   ("global", "write"): unit(33)},
        "gather_sectors": {("global", "read"): {(4, "gather", None, None): (1, 32, 32, 4, 0)}, ("global", "write"): unit(1)},
        "gather_backwards": {("global", "read"): {(4, "strided by -4 B", None, None): (1, 32, 4, 4, 0)},
                             ("global", "write"): unit(1)},
        "gather_halves": {("global", "read"): {(4, "gather", None, None): (1, 32, 4, 4, 0)}, ("global", "write"): unit(1)},
        "transpose_plain": {("global", "read"): unit(128),
                            ("global", "write"): {(4, "strided by 256 B", None, None): (128, 4096, 4096, 512, 0)}},
        **{f"transpose_{name}": {**copies(128), ("shared", "write"): {(4, "unit", 1, None): (128, 4096, None, None, None)},
                                 ("shared", "read"): {(4, f"strided by {pitch} B", worst, None): (128, 4096, None, None, None)}}
           for name, pitch, worst in (("tile", 128, 32), ("padded", 132, 1))},
        # 8 warps store. Of the halvings 4, 2 and 1 warps, and four times a part of one, read two words each and write one;
        # at last one lane does, and reads once more.
        "reduction": {("global", "read"): unit(8), ("global", "write"): {(4, "single lane", None, None): (1, 1, 1, 1, 0)},
                      ("shared", "write"): {(4, "unit", 1, None): (8 + 7 + 4, 256 + 224 + 30, None, None, None),
                                            (4, "single lane", 1, None): (1, 1, None, None, None)},
                      ("shared", "read"): {(4, "unit", 1, None): (2 * 11, 2 * 254, None, None, None),
                                           (4, "single lane", 1, None): (3, 3, None, None, None)}},
    },
    "edges": {
        "histogram": {("global", "read"): unit(8), ("global", "atomic"): {(4, "broadcast", None, 32): (8, 256, 8, 8, 0)}},
        "histogram_shared": {**copies(8), ("shared", "read"): {(4, "unit", 1, None): (8, 256, None, None, None)},
                             ("shared", "write"): {(4, "unit", 1, None): (8, 256, None, None, None)},
                             ("shared", "atomic"): {(4, "broadcast", 1, 32): (8, 256, None, None, None)}},
        # 16 words lie in 4 sectors, and would in 2.
        "odd_lanes": {("global", what): {(4, "unit", None, None): (1, 16, 4, 2, 0)} for what in ("read", "write")},
        "tail": {("global", what): {(4, "unit", None, None): (32, 1000, 125, 125, 0)} for what in ("read", "write")},
        "shifted": {("global", "read"): {(4, "unit", None, None): (1, 32, 5, 4, 1)}, ("global", "write"): unit(1)},
        "same_words": {**copies(1), ("shared", "write"): {(4, "strided by 8 B", 2, None): (2, 64, None, None, None)},
                       ("shared", "read"): {(4, "gather", 2, None): (1, 32, None, None, None)}},
        "gap": {("global", "read"): {(4, "unit", None, None): (1, 32, 4, 4, 0)}, ("global", "write"): unit(1)},
        "behind": {("global", what): {(4, "single lane", None, None): (1, 1, 1, 1, 0)} for what in ("read", "write")},
        "copies_ahead": {**copies(8, 16), ("shared", "read"): {(16, "unit", 4, None): (8, 256, None, None, None)},
                         ("shared", "write"): {(16, "unit", 4, None): (8, 256, None, None, None)}},
        # Each item has its own memory at the same addresses.
        "local_array": {**copies(1), ("local", "read"): {(4, "broadcast", None, None): (1, 32, None, None, None)},
                        ("local", "write"): {(4, "broadcast", None, None): (16, 512, None, None, None)}},
        "anywhere": {("global", "read"): {(4, "unit", None, None): (1, 16, 4, 2, 0)},
                     ("global", "write"): {(4, "unit", None, None): (2, 48, 8, 6, 0)},
                     **{("shared", what): {(4, "unit", 1, None): (1, 8, None, None, None)} for what in ("read", "write")},
                     **{("local", what): {(4, "unit", None, None): (1, 8, None, None, None)} for what in ("read", "write")}},
    },
    "forms": {
        "reduce_vectors": {("global", "atomic"): {(16, "unit", None, 1): (1, 32, 16, 16, 0)}},
        "add_vectors": {("global", "atomic"): {(8, "unit", None, 1): (1, 32, 8, 8, 0)}, ("global", "write"): unit(1, 8)},
        # 4 lanes at a word: 8 pieces of 32 lanes.
        "swap4": {("global", "atomic"): {(4, "gather", None, 4): (1, 32, 1, 1, 0)}, ("global", "write"): unit(1)},
        "swap8": {("global", "atomic"): {(8, "unit", None, 1): (1, 32, 8, 8, 0)}, ("global", "write"): unit(1, 8)},
        "swap16": {("global", "atomic"): {(16, "unit", None, 1): (1, 32, 16, 16, 0)}},
        "shared_atomics": {("global", "write"): unit(1), ("shared", "write"): {(4, "unit", 1, None): (1, 8, None, None, None)},
                           ("shared", "atomic"): {(4, "gather", 1, 4): (3, 96, None, None, None)}},
        "matrices": {("global", "write"): unit(1), ("shared", "write"): {(16, "unit", 4, None): (1, 32, None, None, None)},
                     ("shared", "read"): {(16, "strided by 128 B", 32, None): (1, 32, None, None, None),
                                          (16, "unit", 1, None): (1, 8, None, None, None),
                                          (16, "unit", 2, None): (1, 16, None, None, None)}},
        "endless": {("global", "read"): {(4, "unit", None, None): (268435456, 8589934592, 1073741824, 1073741824, 0)},
                    ("global", "write"): unit(256)},
    },
}
# kernel -> what of it no patch sees
UNSEEN = {
    "hopper": {"tiles": "tiles"},
    "forms": {"textured": "textures", "surfaces": "textures", "surface_reductions": "textures", "from_constants": "constants",
              "products": "products"},
}


# --- The same, of rows of a report

def objects_of(rows, wanted):
    """As OBJECTS has it. What is asked for and moved is of all that a kernel does to an object: of that which it does
    otherwise, `wanted` tells how much."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0, 0, None])
    for row in rows:  # of objects of one size to which the same is done, together
        counts = [row[name] for name in ("reads", "writes", "atomics")]
        of = sums[row["kernel"], row["size"], tuple(count > 0 for count in counts)]
        of[:5] = [sum_ + more for sum_, more in zip(of, (*counts, row["asked"], row["moved"]))]
        if row["touched"] is not None:
            of[5] = (of[5] or 0) + row["touched"]
    got = {}
    for (kernel, size, _), (*lanes, asked, moved, touched) in sums.items():
        whats = {what: count for what, count in zip(("reads", "writes", "atomics"), lanes) if count}
        for what, count in whats.items():
            rest = [wanted.get((kernel, other, size), (0, 0, 0)) for other in whats if other != what]
            got[kernel, what, size] = (count, asked - sum(values[1] for values in rest), moved - sum(values[2] for values in rest), touched)
    return got


def shared_of(rows):
    return {row["kernel"]: tuple(row[name] for name in ("reads", "writes", "atomics", "passes", "conflict_free")) for row in rows}


def places_of(rows):
    got = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * 5)))
    for row in rows:
        of = got[row["kernel"]][row["space"], row["access"]][row["width"], row["pattern"], row["worst"], row["most_crowded"]]
        numbers = (row["warps"], round(row["warps"] * row["lanes"]), row["sectors"], row["needed"], row["misaligned"])
        of[:] = [None if more is None else sum_ + more for sum_, more in zip(of, numbers)]
    return {kernel: {place: {how: tuple(numbers) for how, numbers in hows.items()} for place, hows in places.items()}
            for kernel, places in got.items()}
