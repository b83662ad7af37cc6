#!/usr/bin/env python3
"""Runs the cases of this folder: a small trace, and the whole report that it must give.

    run.py --pastaprof PATH [--update] [FILTER]

A case is a file TOOL/NAME.test: a sentence, the trace in text form, and any number of runs.

    What the case is about.
    === trace
    pasta-text 1
    ...
    === report --tool summary
    the standard output that `pastaprof report - --tool summary` must give, with exit code 0
    === report exit=2 --tool kernels --opt group=size
    the standard error of a run that must be refused

In place of the trace there may be SQL, which makes the database that the program then reads:

    === sql
    CREATE TABLE StringIds(...);

Each run that succeeds must also give the same report where the laws say so: of the trace written as
.pasta and as text and read again, and of the tool beside all others. --update writes what the program
said into the cases; read it before you keep it. FILTER is a part of a case's path.
"""
import argparse
import contextlib
import difflib
import functools
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MARK = "=== "


@dataclass
class Run:
    heading: str
    expected: str

    @property
    def exit_code(self):
        found = re.match(r"report exit=(\d+)", self.heading)
        return int(found.group(1)) if found else 0

    @property
    def arguments(self):
        return shlex.split(re.sub(r"^report( exit=\d+)?", "", self.heading))

    @property
    def tool(self):
        return self.arguments[self.arguments.index("--tool") + 1]


@dataclass
class Case:
    path: Path
    title: str
    form: str  # trace or sql
    trace: str
    runs: list

    @classmethod
    def read(cls, path):
        title, *sections = re.split(rf"^{MARK}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        bodies = [section.partition("\n")[::2] for section in sections]
        if not bodies or bodies[0][0] not in ("trace", "sql") \
                or any(not h.startswith("report") for h, _ in bodies[1:]):
            raise SystemExit(f"{path}: expected '=== trace' or '=== sql' and then '=== report ...'")
        return cls(path, title, *bodies[0], [Run(h, b) for h, b in bodies[1:]])

    @functools.cached_property
    def input(self):
        """What the program reads from standard input."""
        if self.form == "trace":
            return self.trace.encode()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "made.db"
            with contextlib.closing(sqlite3.connect(path)) as database:
                database.executescript(self.trace)
            return path.read_bytes()

    def write(self):
        sections = [(self.form, self.trace)] + [(run.heading, run.expected) for run in self.runs]
        self.path.write_text(self.title + "".join(f"{MARK}{h}\n{b}" for h, b in sections), encoding="utf-8")


class Program:
    """The program, with nothing of the caller's surroundings."""

    def __init__(self, path):
        self.path = str(Path(path).resolve())
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("PASTA") and k not in ("COLUMNS", "NO_COLOR")}

    def __call__(self, *arguments, trace=b"", folder=None):
        done = subprocess.run([self.path, *arguments], input=trace, capture_output=True, timeout=60,
                              env=self.environment, cwd=folder, check=False)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done


def without_source(document):
    """A JSON report without what a trace's copy in another format need not share: the file's name and
    format, and the order of its tables."""
    document = json.loads(document)
    for source in document["trace"]["sources"]:
        del source["path"], source["format"]
    for problem in document["trace"]["quality"]["problems"]:
        del problem["source"]
    for table in ("lanes", "devices"):
        document["trace"][table].sort(key=json.dumps)
    return document


def difference(expected, got, names=("expected", "got")):
    return "".join(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), *names))


def beside_all(report, others):
    """The report with all `others` beside, but those that the trace's format can give nothing."""
    while True:
        try:
            return report("-", *(word for tool in others for word in ("--tool", tool)))
        except AssertionError as error:
            refused = re.search(r"tool (\w+) needs events of kind .* which cannot come from", str(error))
            if not refused or refused[1] not in others:
                raise
            others = [tool for tool in others if tool != refused[1]]


def check_laws(program, case, run):
    """Yields what breaks a law."""
    def report(path, *more):
        result = program("report", path, *arguments, *more, "--format", "json", trace=case.input, folder=folder)
        if result.returncode != 0:
            raise AssertionError(f"report of {path}: exit code {result.returncode}\n{result.stderr}")
        return without_source(result.stdout)

    # Options are for the tool of the run, also where others have options of the same name.
    arguments = [f"{run.tool}.{a}" if i and run.arguments[i - 1] == "--opt" and "." not in a.split("=")[0] else a
                 for i, a in enumerate(run.arguments)
                 if not a.startswith("--format") and (i == 0 or run.arguments[i - 1] != "--format")]
    with tempfile.TemporaryDirectory() as folder:
        try:
            expected = report("-")
            for name, made in (("copy.pasta", ["export", "-", "--to", "pasta", "-o", "copy.pasta"]),
                               ("copy.txt", ["dump", "-", "-o", "copy.txt"])):
                result = program(*made, trace=case.input, folder=folder)
                if result.returncode != 0:
                    yield f"{shlex.join(made)}: exit code {result.returncode}\n{result.stderr}"
                    continue
                got = report(name)
                if got != expected:
                    texts = (json.dumps(d, indent=1) + "\n" for d in (expected, got))
                    yield f"the report of {name} differs\n" + difference(*texts, ("of the trace", name))
            beside = beside_all(report, [tool for tool in program.tools if tool != run.tool])
            if [r for r in beside["reports"] if r["tool"] == run.tool] != expected["reports"]:
                yield "the tool says something else beside other tools"
        except AssertionError as error:
            yield str(error)


def check(program, case, update):
    """Yields a message for each thing that is wrong."""
    for run in case.runs:
        result = program("report", "-", *run.arguments, trace=case.input)
        got = result.stdout if run.exit_code == 0 else result.stderr
        got = re.sub(r'^( "pastaprof": )".*?"', r'\1"VERSION"', got, flags=re.MULTILINE)
        if result.returncode != run.exit_code:
            yield f"{run.heading}: exit code {result.returncode}\n{result.stderr}"
            continue
        if run.exit_code != 0 and result.stdout:
            yield f"{run.heading}: a refusal wrote on standard output"
        if update:
            run.expected = got
        elif got != run.expected:
            yield f"{run.heading}\n{difference(run.expected, got)}"
        if run.exit_code == 0:
            yield from (f"{run.heading}: {broken}" for broken in check_laws(program, case, run))
    if update:
        case.write()


def main():
    parser = argparse.ArgumentParser(description="Runs the cases of tests/diff.")
    parser.add_argument("--pastaprof", default=os.environ.get("PASTAPROF"), help="the program; else $PASTAPROF")
    parser.add_argument("--update", action="store_true", help="write what the program says into the cases")
    parser.add_argument("filter", nargs="?", default="", help="a part of a case's path")
    options = parser.parse_args()
    if not options.pastaprof:
        parser.error("give --pastaprof PATH")
    program = Program(options.pastaprof)
    listing = json.loads(program("tools", "--format", "json").stdout)
    program.tools = [tool["name"] for tool in (listing["tools"] if isinstance(listing, dict) else listing)]

    paths = [p for p in sorted(FOLDER.glob("*/*.test")) if options.filter in str(p.relative_to(FOLDER))]
    wrong = 0
    for path in paths:
        messages = list(check(program, Case.read(path), options.update))
        wrong += bool(messages)
        for message in messages:
            print(f"{path.relative_to(FOLDER)}: {message}\n")
    print(f"{len(paths)} cases, {wrong} wrong")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
