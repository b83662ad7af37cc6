#!/usr/bin/env python3
"""docs/accuracy.md says what the program says today, and every difference in it is explained."""

import unittest

import accuracy
from program import CORPUS


@unittest.skipUnless((CORPUS / "expected_hta").is_dir(), f"the collection {CORPUS} is not there")
class Accuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sections = accuracy.collect(CORPUS)

    def test_every_difference_is_explained(self):
        wrong = [(line.file, line.quantity, line.report, line.ruled, line.theirs)
                 for _, lines in self.sections for line in lines if not line.explained]
        self.assertEqual(wrong, [])

    def test_there_is_something_to_compare(self):
        for title, lines in self.sections:
            self.assertGreater(len(lines), 5, title)
            self.assertTrue(any(line.equal for line in lines), title)

    def test_the_page_is_current(self):
        tables = accuracy.written_section("tables")
        self.assertEqual(tables, accuracy.markdown(self.sections),
                         "run tests/corpus/accuracy.py --write")


if __name__ == "__main__":
    unittest.main()
