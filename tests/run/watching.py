"""What tests of run share: a folder, the program in it, and traces read back."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["PASTAPROF"]
ANNOTATE = os.environ["PASTA_ANNOTATE"]


class Watching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def pastaprof(self, *words, codes=(0, 3), **more):
        result = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, check=False, **more)
        self.assertIn(result.returncode, codes, result.stderr.decode())
        return result.stdout

    def run_watched(self, *words, options=(), **more):
        return subprocess.run([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", *words], cwd=self.folder,
                              capture_output=True, check=False, timeout=120, **more)

    def popen(self, *words, options=(), **more):
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **more}
        watched = subprocess.Popen([PROGRAM, "run", "-f", "-o", "t.pasta", *options, "--", *words], cwd=self.folder,
                                   **more)
        for pipe in (watched.stdin, watched.stdout, watched.stderr):
            if pipe is not None:
                self.addCleanup(pipe.close)
        return watched

    def go_on(self, watched):
        watched.stdin.write(b"\n")
        watched.stdin.close()
        return watched.wait(timeout=60)

    def report(self, trace="t.pasta", *words):
        return json.loads(self.pastaprof("report", trace, "--format", "json", *words))

    def table(self, tool, trace="t.pasta"):
        """The first table of a tool as [{column: cell}]."""
        parts = self.report(trace, "--tool", tool)["reports"][0]["parts"]
        table = next(part for part in parts if part["type"] == "table")
        return [dict(zip((c["name"] for c in table["columns"]), row)) for row in table["rows"]]

    def problems(self, trace="t.pasta"):
        return {p["reason"]: p["count"] for p in self.report(trace)["trace"]["quality"]["problems"]}

    def text(self, trace="t.pasta"):
        return self.pastaprof("dump", trace).decode()

    def left(self):
        return sorted(p.name for p in self.folder.iterdir())


EVENT = re.compile(r'(scope|gap) (-?\d+) (\+?-?\d+) (\S+) ("(?:[^"\\]|\\.)*")(.*)')


def events_of(text):
    """[(start, end, lane, name, rest)] of a trace in text form, lanes as the system numbers them."""
    lanes = dict(re.findall(r"^lane (\S+) thread .*?\bid=(\d+)", text, flags=re.MULTILINE))
    events = []
    for kind, start, end, lane, name, rest in map(re.Match.groups, EVENT.finditer(text)):
        stop = int(start) + int(end) if end.startswith("+") else int(end)
        events.append((int(start), stop, lanes.get(lane), name.strip('"'), rest.strip()))
    return events
