#!/usr/bin/env python3
"""The section on CSV tables of docs/accuracy.md says what the program says today."""

import unittest

import accuracy
import csv_accuracy
from program import CORPUS


@unittest.skipUnless((CORPUS / csv_accuracy.ROCPROFV3).is_dir(), f"the collection {CORPUS} is not there")
class CsvAccuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = csv_accuracy.collect(CORPUS)

    def test_every_value_is_equal(self):
        wrong = [(line.file, line.quantity, line.report, line.expected)
                 for _, lines in self.sections for line in lines if not line.equal]
        self.assertEqual(wrong, [])

    def test_there_is_something_to_compare(self):
        for title, lines in self.sections:
            self.assertGreater(len(lines), 2, title)

    def test_the_page_is_current(self):
        section = accuracy.written_section("csv")
        self.assertEqual(section, csv_accuracy.section(self.sections),
                         "run tests/corpus/csv_accuracy.py --write")


if __name__ == "__main__":
    unittest.main()
