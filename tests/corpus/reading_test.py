#!/usr/bin/env python3
"""docs/reading.md shows what the program prints today."""

import unittest

import reading
from program import CORPUS


@unittest.skipUnless((CORPUS / "tracelens").is_dir(), f"the collection {CORPUS} is not there")
class Reading(unittest.TestCase):
    def test_the_page_is_current(self):
        page = reading.PAGE.read_text(encoding="utf-8")
        self.assertEqual(page.count(reading.PROMPT), 9)
        self.maxDiff = None
        self.assertEqual(page, reading.renewed(page, CORPUS), "run tests/corpus/reading.py --write")


if __name__ == "__main__":
    unittest.main()
