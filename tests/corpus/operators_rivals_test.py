#!/usr/bin/env python3
"""The section on operators and overlap of docs/accuracy.md says what the program says today."""

import unittest

import accuracy
import operators_accuracy
from program import CORPUS


@unittest.skipUnless((CORPUS / "expected_hta").is_dir(), f"the collection {CORPUS} is not there")
class OperatorsAccuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = operators_accuracy.collect(CORPUS)

    def test_every_difference_is_explained(self):
        wrong = [(line.file, line.quantity, line.report, line.ruled, line.theirs)
                 for _, lines in self.sections for line in lines if not line.explained]
        self.assertEqual(wrong, [])

    def test_there_is_something_to_compare(self):
        for title, lines in self.sections:
            self.assertGreater(len(lines), 5, title)
            self.assertGreater(sum(line.equal for line in lines), len(lines) / 2, title)

    def test_the_page_is_current(self):
        section = accuracy.written_section("operators")
        self.assertEqual(section, operators_accuracy.section(self.sections),
                         "run tests/corpus/operators_accuracy.py --write")


if __name__ == "__main__":
    unittest.main()
