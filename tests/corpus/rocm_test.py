#!/usr/bin/env python3
"""Databases of AMD's profilers and of nvprof in the collection of traces say what they say themselves;
the section of docs/accuracy.md on them is what the program says today."""

import unittest

import accuracy
import rocm_accuracy
from program import CORPUS, Run

FOLDERS = ("rocpd", "rpd", "rocprof_v1", "nvprof")
REFUSED = {".nvvp": "nvprof -o FILE"}


@unittest.skipUnless(CORPUS.is_dir(), f"the collection {CORPUS} is not there")
class Rocm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = rocm_accuracy.collect(CORPUS)

    def test_values(self):
        self.assertEqual(rocm_accuracy.wrong(self.lines), [])
        self.assertGreater(len(self.lines), 50)

    def test_the_page_is_current(self):
        section = accuracy.written_section("rocm")
        self.assertEqual(section, rocm_accuracy.section(self.lines),
                         "run tests/corpus/rocm_accuracy.py --write")

    def test_every_file_is_read_or_refused(self):
        files = [path for folder in FOLDERS for path in sorted((CORPUS / folder).rglob("*"))
                 if path.is_file() and path.suffix != ".csv"]
        self.assertGreater(len(files), 5)
        for path in files:
            run = Run(["report", path])
            with self.subTest(path.name):
                said = REFUSED.get(path.suffix)
                if said and path.read_bytes().startswith(b"<"):
                    self.assertEqual(run.code, 1)
                    self.assertIn(said, run.err)
                    self.assertEqual(run.err.count("\n"), 1)
                else:
                    self.assertIn(run.code, (0, 3), run.err)
                    self.assertIn("events", run.text)


if __name__ == "__main__":
    unittest.main()
