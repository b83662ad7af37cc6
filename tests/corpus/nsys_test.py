#!/usr/bin/env python3
"""Every Nsight Systems export of the collection: its values to those of SQL, and a report of each."""

import unittest

import nsys_accuracy
import program
from program import CORPUS, Report


@unittest.skipUnless((CORPUS / "nsys").is_dir(), "the collection is not here")
class Nsys(unittest.TestCase):
    def test_values(self):
        lines = nsys_accuracy.collect(CORPUS)
        self.assertGreater(len(lines), 90)
        self.assertEqual(nsys_accuracy.wrong(lines), [])

    def test_all_tools_on_each(self):
        tools = [tool for tool in ("summary", "kernels", "idle", "overlap", "operators", "launches",
                                   "memory")]
        for path in sorted((CORPUS / "nsys").rglob("*.sqlite*")):
            with self.subTest(path.name):
                report = Report(path, tools=tools)
                self.assertEqual(report.code, 0, report.problems())
                self.assertEqual(len(report.document["reports"]), len(tools))

    def test_the_report_itself_is_refused(self):
        path = next((CORPUS / "foreign").glob("*.nsys-rep"))
        run = program.Run(["report", path])
        self.assertEqual((run.code, run.out), (1, b""))
        self.assertIn("nsys export --type sqlite", run.err)


if __name__ == "__main__":
    unittest.main()
