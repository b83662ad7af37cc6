#!/usr/bin/env python3
"""Renews the reports that docs/reading.md shows.

The page holds blocks that begin with a line `$ pastaprof ...`; what stands below that line is what
the program prints. --write renews them; without it, blocks that differ are printed as differences.
Traces are named by their path in the collection that lies beside the source tree.
"""

import argparse
import difflib
import pathlib
import shlex
import subprocess
import sys

import program

PAGE = program.SOURCE / "docs" / "reading.md"
PROMPT = "$ pastaprof "


def answer(command, corpus):
    done = subprocess.run([program.PROGRAM, *expand(command, corpus)], cwd=corpus,
                          capture_output=True, text=True, timeout=600, check=False,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.rstrip("\n")


def expand(command, corpus):
    """The words of a command, patterns of files expanded as a shell would."""
    for word in shlex.split(command):
        found = sorted(str(path.relative_to(corpus)) for path in corpus.glob(word)) \
            if "*" in word else []
        yield from found or [word]


def renewed(page, corpus):
    out, lines = [], iter(page.splitlines())
    for line in lines:
        out.append(line)
        if not line.startswith(PROMPT):
            continue
        out += answer(line.removeprefix(PROMPT), corpus).splitlines()
        for skipped in lines:
            if skipped == "```":
                out.append(skipped)
                break
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pastaprof", default=program.PROGRAM)
    parser.add_argument("--corpus", type=pathlib.Path, default=program.CORPUS)
    parser.add_argument("--write", action="store_true", help="renew docs/reading.md")
    arguments = parser.parse_args()
    program.PROGRAM = arguments.pastaprof
    page = PAGE.read_text(encoding="utf-8")
    new = renewed(page, arguments.corpus)
    if arguments.write:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        sys.stdout.writelines(difflib.unified_diff(
            page.splitlines(True), new.splitlines(True), "docs/reading.md", "the program today"))
        sys.exit(1)


if __name__ == "__main__":
    main()
