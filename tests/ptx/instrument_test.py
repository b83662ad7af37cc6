#!/usr/bin/env python3
"""benchmarks/ptx/instrument.py: which accesses it finds in PTX, and that what it writes can be assembled."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
sys.path.insert(0, str(SOURCE / "benchmarks" / "ptx"))

from instrument import READS, WRITES, instrument  # noqa: E402

PTXAS = SOURCE / ".deps" / "cuda" / "bin" / "ptxas"
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
PATCH = HEAD + """
.visible .func pasta_at(
    .param .b64 pasta_at_param_0, .param .b64 pasta_at_param_1, .param .b64 pasta_at_param_2,
    .param .b32 pasta_at_param_3, .param .b32 pasta_at_param_4
)
{
    .reg .pred %p<2>;
    .reg .b16 %rs<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [pasta_at_param_0];
    ld.param.u64 %rd2, [pasta_at_param_2];
    ld.param.u32 %r1, [pasta_at_param_3];
    ld.param.u8 %rs1, [pasta_at_param_4];
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 bra $L__BB0_1;
    red.global.add.u64 [%rd1], %rd2;
$L__BB0_1:
    ret;
}
"""
REGISTERS = """
    .reg .pred %p<9>;
    .reg .b16 %rs<9>;
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    .reg .b64 %rd<9>;
"""


def kernel(body, name="k", parameters=".param .u64 k_param_0"):
    return f".visible .entry {name}({parameters})\n{{{REGISTERS}{body}\n    ret;\n}}\n"


def accesses(body):
    found, unseen = instrument(HEAD + kernel(body), PATCH, "inline")[1:]
    return [(access.guard, access.address.replace(" ", ""), access.width, access.flags) for access in found], unseen


class Found(unittest.TestCase):
    def one(self, statement, guard, address, width, flags):
        self.assertEqual(accesses(statement), ([(guard, address, width, flags)], []))

    def test_widths_and_kinds(self):
        self.one("ld.global.f32 %f1, [%rd1];", "", "%rd1", 4, READS)
        self.one("ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1+16];", "", "%rd1+16", 16,
                 READS)
        self.one("@%p1 ld.acquire.gpu.global.u8 %rs1, [ %rd1 + -4 ];", "@%p1", "%rd1+-4", 1, READS)
        self.one("@!%p2 st.global.v2.b64 [%rd1], {%rd2, %rd3};", "@!%p2", "%rd1", 16, WRITES)
        self.one("atom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;", "", "%rd2", 8, READS | WRITES)
        self.one("red.global.add.noftz.f16x2 [%rd1], %r1;", "", "%rd1", 4, READS | WRITES)
        self.one("ld.u16 %rs1, [%rd1];", "", "%rd1", 2, READS)

    def test_copies_read(self):
        self.one("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 8 ], 0x10, %r2;", "", "%rd1+8", 16, READS)
        self.one("cp.async.ca.shared::cta.global.L2::128B [%r1], [%rd1], 4;", "", "%rd1", 4, READS)

    def test_not_those_of_other_memory(self):
        self.assertEqual(accesses("""
            ld.param.u64 %rd1, [k_param_0];
            ld.shared.f32 %f1, [%r1];
            st.shared::cluster.b32 [%r1], %r2;
            ld.local.b32 %r1, [%rd1];
            atom.shared.add.u32 %r1, [%r2], %r3;
            cp.async.commit_group;
            cp.async.wait_group 2;"""), ([], []))

    def test_not_what_is_said_of_them(self):
        self.assertEqual(accesses("""
            // ld.global.f32 %f1, [%rd1];
            /* st.global.f32 [%rd1], %f1; */
            .pragma "ld.global.f32 %f1, [%rd1];";"""), ([], []))

    def test_several_of_one_line_and_of_blocks(self):
        found = accesses("{ .reg .b64 %rx; mov.u64 %rx, %rd1; @%p1 st.global.b32 [%rx], %r1; ld.global.b32 %r2, [%rx]; }")
        self.assertEqual(found, ([("@%p1", "%rx", 4, WRITES), ("", "%rx", 4, READS)], []))

    def test_loads_that_the_assembler_makes_one_of(self):
        load = "ld.global.b32 %r{}, [%rd1 + 0];"
        twice = load.format(1) + "{}" + load.format(2)
        for between in ("", "mov.u32 %r2, 0x0;", "ld.shared.b32 %r3, [%r4];", "add.s64 %rd2, %rd1, 8;"):
            with self.subTest(one=between):
                self.assertEqual(len(accesses(twice.format(between))[0]), 1)
        for between in ("$L:", "@%p1 bra $L;", "bar.sync 0;", "st.shared.b32 [%r3], %r4;", "add.s64 %rd1, %rd1, 8;",
                        "@%p1 mov.u64 %rd1, %rd2;", "mov.b64 {%rd1, %rd2}, %rd3;", "ld.shared.b64 %rd1, [%r3];",
                        "ld.acquire.gpu.shared.b32 %r3, [%r4];", "call helper;"):
            with self.subTest(two=between):
                self.assertEqual(len(accesses(twice.format(between))[0]), 2)
        for other in ("ld.global.b32 %r2, [%rd1 + 4];", "@%p1 ld.global.b32 %r2, [%rd1 + 0];",
                      "ld.global.b16 %rs1, [%rd1 + 0];"):
            with self.subTest(other=other):
                self.assertEqual(len(accesses(load.format(1) + other)[0]), 2)
        volatile = "ld.volatile.global.b32 %r1, [%rd1];"
        self.assertEqual(len(accesses(volatile * 2)[0]), 2)
        self.assertEqual(len(accesses("ld.global.b64 %rd1, [%rd1];" * 2)[0]), 2)
        self.assertEqual(len(accesses("ld.global.v2.b64 {%rd2, %rd1}, [%rd1];" * 2)[0]), 2)
        self.assertEqual(len(accesses("ld.global.v2.b32 {%r1, %r2}, [%rd1];" * 2)[0]), 1)

    def test_says_what_it_does_not_see(self):
        bulk = "cp.async.bulk.global.shared::cta.bulk_group"
        self.assertEqual(accesses(f"{bulk} [%rd1], [%r1], %r2;"), ([], [bulk]))
        function = ".func (.param .b32 out) helper(.param .b64 a)\n{ ld.global.f32 %f1, [%rd1]; ret; }\n"
        self.assertEqual(instrument(HEAD + function + kernel("") + kernel("", "other"), PATCH, "inline")[1:],
                         ([], ["helper"]))


class Written(unittest.TestCase):
    BODY = """
        .global .align 4 .b32 variable;
        @%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];
        @!%p1 st.global.f32 [%rd1], %f1;
        ld.global.b32 %r1, [variable+4];
        st.f32 [%rd2], %f1;
        cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;
        bra $L__BB0_1;
    $L__BB0_1:
        atom.global.add.u32 %r1, [%rd1], %r2;"""
    KERNELS = HEAD + kernel(BODY) + kernel("st.global.f32 [%rd1], %f1;", "no_parameters", "")

    def test_each_access_has_its_own_patch_before_it(self):
        text, found, unseen = instrument(self.KERNELS, PATCH, "inline")
        self.assertEqual((len(found), unseen), (7, []))
        self.assertEqual(text.count("red.global.add.u64"), 7)
        self.assertEqual(text.count(".reg .b64 %pasta_rd<3>;"), 7)  # not the kernel's, whose names they had
        self.assertEqual(text.count("isspacep.global"), 1)
        self.assertNotIn(".func", text)
        for place in range(1, 8):
            patch = text.index(f"$L_pasta{place}__BB0_1:")
            self.assertLess(text.index("mov.u64 %pasta_address, variable+4;") if place == 3 else 0, patch)
            self.assertGreater(text.index(("@%p1 ld.global.v2", "@!%p1 st.global", "ld.global.b32", "st.f32", "cp.async",
                                           "atom.global", "st.global.f32 [%rd1], %f1;\n    ret")[place - 1]), patch)
        self.assertIn("k(.param .u64 k_param_0,\n.param .u64 k_param_pasta\n)", text)
        self.assertIn("no_parameters(\n.param .u64 no_parameters_param_pasta\n)", text)

    def test_lanes_that_do_not_take_part_are_left_out(self):
        text = instrument(self.KERNELS, PATCH, "inline")[0]
        self.assertIn("@!%p1 bra $L_pasta1_end;", text)
        self.assertIn("@%p1 bra $L_pasta2_end;", text)
        self.assertIn("setp.eq.u32 %pasta_off, %r2, 0;\n@%pasta_off bra $L_pasta5_end;", text)

    def test_given_by_a_parameter_that_is_there(self):
        text = instrument(HEAD + kernel("st.global.f32 [%rd1], %f1;"), PATCH, "inline", has_parameter=True)[0]
        self.assertIn("ld.param.b64 %pasta_given, [k_param_0];", text)

    def test_one_group_in_so_many(self):
        text = instrument(self.KERNELS, PATCH, "call", every=8)[0]
        self.assertEqual(text.count("rem.u32 %pasta_group, %pasta_group, 8;"), 2)
        self.assertEqual(text.count("@!%pasta_sampled bra"), 7)

    def test_only_once(self):
        with self.assertRaisesRegex(ValueError, "has a patch already"):
            instrument(instrument(self.KERNELS, PATCH, "inline")[0], PATCH, "inline")

    @unittest.skipUnless(PTXAS.exists(), "no assembler of CUDA")
    def test_can_be_assembled(self):
        for form in ("inline", "call"):
            for every in (1, 8):
                with self.subTest(form=form, every=every), tempfile.TemporaryDirectory() as folder:
                    path = pathlib.Path(folder) / "k.ptx"
                    path.write_text(instrument(self.KERNELS, PATCH, form, every)[0], encoding="utf-8")
                    done = subprocess.run([PTXAS, "-arch=sm_80", "-o", path.with_suffix(".cubin"), path],
                                          capture_output=True, text=True, check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
