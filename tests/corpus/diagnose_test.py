"""What diagnose finds in the traces of the corpus, against an expert's reading of them
(diagnose_readings.json and .md, written before the tool was), and the parts of each iteration against
the step table that PyTorch's own plugin prints. Skips what is absent."""

import json
import pathlib
import unittest

from program import CORPUS, Report

READINGS = json.loads((pathlib.Path(__file__).parent / "diagnose_readings.json").read_text("utf-8"))
PARTS = ("compute", "exposed_communication", "exposed_copy", "launch_bound", "sync_bound",
         "input_bound", "other", "unknown")


def read(test, path):
    try:
        return Report(path, tools=("diagnose",))
    except AssertionError as refused:
        if "a SQLite database that is no trace of a kind" in str(refused):
            test.skipTest("databases of Nsight Systems are not read")
        raise


def findings(report):
    """Id and share of the findings above `info`, the largest of each id."""
    found = {}
    for answer in report.document["reports"]:
        for part in answer["parts"]:
            if part["type"] == "finding" and part["level"] != "info":
                found[part["id"]] = max(found.get(part["id"], 0), part["share"])
    return found


def differences(reading, report):
    """Yields what the tool says otherwise than the reading."""
    found = findings(report)
    for ident, (share, tolerance) in reading["must"].items():
        if ident not in found:
            yield f"{ident} is not raised"
        elif abs(found[ident] - share) > tolerance:
            yield f"{ident} has share {found[ident]:.4f}, read as {share} +- {tolerance}"
    for ident in found:
        if ident in reading["must_not"] or "*" in reading["must_not"]:
            yield f"{ident} is raised with share {found[ident]:.4f}"
    for part, (share, tolerance) in reading.get("parts", {}).items():
        for row in report.table("diagnose", "parts"):
            if row["part"] == part and abs(row["share"] - share) > tolerance:
                yield f"part {part} is {row['share']:.4f}, read as {share} +- {tolerance}"


class Readings(unittest.TestCase):
    def test_every_trace(self):
        seen = 0
        for reading in READINGS["traces"]:
            path = CORPUS / reading["path"]
            if not path.exists():
                continue
            seen += 1
            with self.subTest(reading["path"]):
                report = read(self, path)
                self.assertEqual(list(differences(reading, report)), [])
        if seen == 0:
            self.skipTest("no corpus")

    def test_ranks(self):
        paths = sorted((CORPUS / "param/dlrm_8rank").glob("*.json.gz"))
        if not paths:
            self.skipTest("no corpus")
        report = Report(*paths, tools=("diagnose",))
        skew = [part for answer in report.document["reports"] for part in answer["parts"]
                if part["type"] == "finding" and part["id"] == "rank-skew"]
        self.assertEqual(len(skew), 1)
        evidence = skew[0]["evidence"]
        self.assertIn("rank 7", evidence["waits_least"])
        self.assertEqual(evidence["waits_least_time"], 1746000)
        self.assertIn("rank 1", evidence["waits_most"])
        self.assertEqual(evidence["waits_most_time"], 11336000)


class Sums(unittest.TestCase):
    def test_parts_add_up(self):
        seen = 0
        for reading in READINGS["traces"]:
            path = CORPUS / reading["path"]
            if not path.exists():
                continue
            seen += 1
            with self.subTest(reading["path"]):
                report = read(self, path)
                for device in report.table("diagnose", "devices"):
                    rows = [row for row in report.table("diagnose", "parts")
                            if row["device"] == device["device"]]
                    self.assertEqual(sum(row["time"] for row in rows), device["duration"])
                    self.assertAlmostEqual(sum(row["share"] for row in rows), 1)
                for row in report.table("diagnose", "iterations"):
                    self.assertEqual(sum(row[part] for part in PARTS), row["duration"])
        if seen == 0:
            self.skipTest("no corpus")


class StepTable(unittest.TestCase):
    """The plugin gives each moment of a step to the first of kernel, copy, fill, runtime call,
    loader, host operator, other. Of a step without communication that is compute, exposed copies and
    idle time here; of the idle time, waiting for input is the loader's but for the moments in which
    work launched before still runs, with the small gaps between: they are `other` here."""

    TRACE = "kineto/samples/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz"

    def test_resnet50(self):
        table = CORPUS / "kineto/expected/result_check_file.txt"
        if not table.exists():
            self.skipTest("no corpus")
        expected = json.loads(table.read_text("utf-8").splitlines()[0])["steps"]["rows"]
        report = Report(CORPUS / self.TRACE, tools=("diagnose",))
        steps = report.table("diagnose", "iterations")
        self.assertEqual(len(steps), len(expected))
        for row, step in zip(expected, steps):
            number, kernel, copy, fill, runtime, loader, operators, other = row[0], *row[1::2]
            with self.subTest(step=number):
                self.assertEqual(step["number"], int(number))
                self.assertEqual(step["compute"], kernel * 1000)
                self.assertEqual(step["exposed_copy"], (copy + fill) * 1000)
                self.assertEqual(step["exposed_communication"], 0)
                idle = sum(step[part] for part in PARTS[3:])
                self.assertEqual(idle, (runtime + loader + operators + other) * 1000)
                self.assertLessEqual(step["input_bound"], loader * 1000)
                self.assertLessEqual(loader * 1000 - step["input_bound"], step["other"])


if __name__ == "__main__":
    unittest.main()
