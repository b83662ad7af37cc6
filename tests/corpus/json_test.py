#!/usr/bin/env python3
"""Every JSON file of the collection of traces is read or refused in one line that says what it is;
the section on other JSON traces of docs/accuracy.md says what the program says today."""

import unittest

import accuracy
import json_accuracy
from program import CORPUS, Run

# What is no trace, by a part of its path, and a part of what is said of it.
REFUSED = {
    "chakra/small_chakra": "execution trace of Chakra",
    "chakra/json_trace.tar.gz": "tar archive",
    "hta/execution_trace/benchmark_simple_add_et": "execution trace of PyTorch",
    "param/linear_et": "execution trace of PyTorch",
    "chrome_trace/catapult/google_cloud_trace": "requests between services",
    "hta/memory_analysis/memory_timeline": "memory timeline",
    "foreign/good-question_trace.tracy": "Tracy",
    "foreign/jax-toolbox_pdl_2p2c.nsys-rep": "nsys export --type sqlite",
    "foreign/tracelens_jax_tw003.xplane.pb": ".xplane.pb",
}
FOLDERS = ("chakra", "chrome_trace", "foreign", "hta", "kineto", "param", "tf_timeline", "tracelens")


@unittest.skipUnless(CORPUS.is_dir(), f"the collection {CORPUS} is not there")
class Json(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lines = json_accuracy.collect(CORPUS)

    def test_values(self):
        self.assertEqual(json_accuracy.wrong(self.lines), [])
        self.assertGreater(len(self.lines), 30)

    def test_the_page_is_current(self):
        section = accuracy.written_section("json")
        self.assertEqual(section, json_accuracy.section(self.lines),
                         "run tests/corpus/json_accuracy.py --write")

    def test_every_file_is_read_or_refused(self):
        endings = (".json", ".json.gz", ".zip", ".gz", ".pb", ".tracy", ".nsys-rep")
        files = [path for folder in FOLDERS for path in sorted((CORPUS / folder).rglob("*"))
                 if path.name.endswith(endings) and not path.name.endswith(".csv.gz")]
        self.assertGreater(len(files), 80)
        refused = set()
        for path in files:
            name = path.relative_to(CORPUS).as_posix()
            run = Run(["report", path, "--tool", "summary"])
            said = next((said for part, said in REFUSED.items() if part in name), None)
            with self.subTest(name):
                if said is None:
                    self.assertIn(run.code, (0, 3), run.err)
                    self.assertTrue(run.out)
                else:
                    refused.add(said)
                    self.assertEqual(run.code, 1, run.err)
                    self.assertEqual(run.out, b"")
                    self.assertEqual(run.err.count("\n"), 1, run.err)
                    self.assertIn(said, run.err)
        self.assertEqual(refused, set(REFUSED.values()))


if __name__ == "__main__":
    unittest.main()
