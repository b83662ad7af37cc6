"""Databases made of SQL text, for tests that read them with pastaprof."""

import pathlib
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "corpus"))

import dump  # noqa: E402
from program import Report, Run  # noqa: E402

COMPLETE, REFUSED, LOSSY = 0, 1, 3


class DatabaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, sql, name="trace.sqlite"):
        """A database of what `sql` creates."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA synchronous = OFF")  # nothing outlives the test
            database.executescript(sql)
        database.close()
        return path

    def events(self, sql, *options):
        return dump.events(self.make(sql), options)

    def one(self, sql):
        """The only event."""
        events = self.events(sql)
        self.assertEqual(len(events), 1, [event.name for event in events])
        return events[0]

    def report(self, source, code=COMPLETE, tools=("summary", "kernels")):
        report = Report(source, tools=tools)
        self.assertEqual(report.code, code, report.quality["problems"])
        return report

    def refused(self, source, *words, options=()):
        run = Run(["report", source, *options])
        self.assertEqual(run.code, REFUSED, run.err)
        self.assertEqual(run.out, b"")
        for word in words:
            self.assertIn(word, run.err)
