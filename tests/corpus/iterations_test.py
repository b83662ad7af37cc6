#!/usr/bin/env python3
"""The mined iterations of the collection of traces agree with its marks, as docs/accuracy.md says."""

import unittest

import accuracy
import iterations_accuracy
import program


@unittest.skipUnless(program.CORPUS.is_dir(), f"needs the collection of traces at {program.CORPUS}")
class MinedIterations(unittest.TestCase):
    def test_they_agree_with_the_marks_and_the_page_says_so(self):
        rows = list(iterations_accuracy.lines(program.CORPUS))
        self.assertGreater(sum(row["steps"] >= 2 for row in rows), 10)
        wrong = [row for row in rows
                 if not row["good"] and row["file"] not in iterations_accuracy.REASONS]
        self.assertEqual(wrong, [])
        said = accuracy.written_section("iterations")
        self.assertEqual(said, iterations_accuracy.section(rows))


if __name__ == "__main__":
    unittest.main()
