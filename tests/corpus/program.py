"""Runs pastaprof and reads its answers: shared by the tests of this folder."""

import json
import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ.get("PASTA_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CORPUS = (SOURCE / "../shared/corpus").resolve()
TRACES = SOURCE / "tests" / "traces"
CASES = SOURCE / "tests" / "cases"
PROGRAM = os.environ.get("PASTAPROF", str(SOURCE / "build" / "release" / "bin" / "pastaprof"))


def read_tsv(path):
    """Rows of a tab-separated file as dictionaries."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"))) for line in lines[1:]]


class Run:
    """One finished call of the program."""

    def __init__(self, arguments, stdin=None):
        done = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True,
                              timeout=600, check=False)
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode("utf-8", "replace")

    @property
    def text(self):
        return self.out.decode("utf-8")


class Report:
    """`pastaprof report --format json` of one or more files."""

    def __init__(self, *paths, tools=("summary", "kernels"), options=(), stdin=None):
        arguments = ["report", *paths, "--format", "json"]
        for tool in tools:
            arguments += ["--tool", tool]
        self.run = Run([*arguments, *options], stdin)
        self.code, self.err = self.run.code, self.run.err
        if self.code not in (0, 3):
            raise AssertionError(f"report {' '.join(map(str, paths))} ended with {self.code}: "
                                 f"{self.err.strip()}")
        self.document = json.loads(self.run.text)
        self.trace = self.document["trace"]
        self.quality = self.trace["quality"]
        self.events = dict(self.trace["events"])

    def table(self, tool, ident):
        """Rows of a table as dictionaries."""
        for report in self.document["reports"]:
            if report["tool"] == tool:
                for part in report["parts"]:
                    if part["type"] == "table" and part["id"] == ident:
                        names = [column["name"] for column in part["columns"]]
                        return [dict(zip(names, row)) for row in part["rows"]]
        raise AssertionError(f"no table {ident} of tool {tool}")

    @property
    def devices(self):
        return self.table("summary", "devices")

    @property
    def kernels(self):
        return self.table("kernels", "kernels")

    def problems(self):
        """Counts by reason, over all sources."""
        counts = {}
        for row in self.quality["problems"]:
            counts[row["reason"]] = counts.get(row["reason"], 0) + row["count"]
        return counts

    def first(self, reason):
        return next(row["first"] for row in self.quality["problems"] if row["reason"] == reason)


def union(intervals):
    """Length of the union of (begin, end) pairs, and the disjoint pieces."""
    pieces = []
    for begin, end in sorted(intervals):
        if pieces and begin <= pieces[-1][1]:
            pieces[-1][1] = max(pieces[-1][1], end)
        elif end > begin:
            pieces.append([begin, end])
    return sum(end - begin for begin, end in pieces), pieces


def overlap(a, b):
    """Length of the intersection of two lists of disjoint ascending pieces."""
    length = i = j = 0
    while i < len(a) and j < len(b):
        length += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return length
