#!/usr/bin/env python3
"""Holds the documentation to the tree and to the program.

Links point to what exists; every block that begins with ```sh test runs (```sh test exit=N: ends
with N) in a folder that holds nothing but the source tree's tests/, with pastaprof on PATH, and
prints exactly the ```text block that follows it, if one does; every tool has a page that names its
options, and docs/tools.md is what the program says of them; no text names a path of somebody's machine.

With PASTA_UPDATE=1 in the environment, the ```text blocks and docs/tools.md are rewritten instead of
compared.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ.get("PASTA_SOURCE_DIR") or Path(__file__).resolve().parent.parent)
PROGRAM = os.environ.get("PASTAPROF")

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)
BLOCK = re.compile(r"^```sh test(?: exit=(\d+))?\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
MACHINE_PATH = re.compile(r"(?<![\w.*}$])/(?:home|root|work|Users|workspace|builds)/\w")


def documents():
    skip = {"build", ".git", "traces"}
    return [p for p in sorted(ROOT.rglob("*.md"))
            if not any(part in skip or part.startswith("build-") for part in p.relative_to(ROOT).parts[:-1])]


def anchors(text):
    """The names that a heading can be linked by."""
    names = set()
    for heading in HEADING.findall(CODE.sub(lambda m: m.group() if m.group()[0:3] != "```" else "", text)):
        names.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return names


def broken_links(document, text):
    for link in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path) if path else document
        if not target.exists():
            yield f"{document}: {link} does not exist"
        elif anchor and target.suffix == ".md":
            known = anchors(text if target == document else target.read_text(encoding="utf-8"))
            if anchor not in known:
                yield f"{document}: {link}: no such heading"


def run_block(script):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "bin").mkdir()
        (place / "bin" / "pastaprof").symlink_to(PROGRAM)
        (place / "run").mkdir()
        (place / "run" / "tests").symlink_to(ROOT / "tests")
        # Without pipefail: a program whose reader has seen enough (head) ends with a signal or not, as
        # the race between them goes.
        return subprocess.run(["bash", "-eu", "-c", script], cwd=place / "run", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False,
                              env={**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"})


class Checker(unittest.TestCase):
    """The checks find what was planted."""

    def test_links(self):
        with tempfile.TemporaryDirectory() as folder:
            document, other = Path(folder) / "a.md", Path(folder) / "b.md"
            other.write_text("# One `two` three\n```\n# not a heading\n```\n")
            find = lambda text: len(list(broken_links(document, text)))
            document.write_text("")
            self.assertEqual(find("[b](b.md) [b](b.md#one-two-three) [web](https://example.org/x)"), 0)
            self.assertEqual(find("[b](c.md) [b](b.md#four) [b](b.md#not-a-heading) [a](#five)"), 4)
            self.assertEqual(find("`[b](c.md)`"), 0)

    def test_blocks(self):
        found = BLOCK.findall("```sh\nskipped\n```\n```sh test\ntrue\n```\nText.\n```text\nnot output\n```\n"
                              "```sh test exit=3\necho a; exit 3\n```\n\n```text\na\n```\n")
        self.assertEqual(found, [("", "true\n", ""), ("3", "echo a; exit 3\n", "a\n")])

    def test_machine_paths(self):
        self.assertTrue(MACHINE_PATH.search("see /" "home/somebody/x"))
        self.assertFalse(MACHINE_PATH.search("../shared/corpus, tests/work/x, src/home/a"))


class Documentation(unittest.TestCase):
    def test_pages_exist(self):
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs/README.md", "docs/design.md"):
            self.assertTrue((ROOT / name).is_file(), name)

    def test_links(self):
        self.assertEqual([b for d in documents() for b in broken_links(d, d.read_text(encoding="utf-8"))], [])

    def test_every_page_can_be_reached_from_the_index(self):
        index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
        linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
        pages = {*(ROOT / "docs").glob("*.md"), *(ROOT / "src" / "tools").glob("*/tool.md")}
        self.assertEqual(sorted(str(p.relative_to(ROOT)) for p in pages
                                if p.resolve() not in linked and p.name != "README.md"), [])

    def test_no_machine_paths(self):
        endings = {".md", ".h", ".cpp", ".c", ".py", ".txt", ".cmake", ".json", ""}
        folders = ["docs", "src", "include", "scripts", "cmake", "fuzz", "benchmarks", ".ci"]
        files = [*documents(), *(p for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file())]
        found = []
        for path in files:
            if path.suffix in endings:
                found += [f"{path}: {m.group()}" for m in MACHINE_PATH.finditer(path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])
        figures = (ROOT / "docs" / "measured").glob("*.json")
        self.assertEqual([path.name for path in figures if "/tmp/" in path.read_text(encoding="utf-8")], [])


@unittest.skipUnless(PROGRAM, "PASTAPROF does not name the program; ctest sets it")
class Program(unittest.TestCase):
    def test_blocks_run(self):
        ran = 0
        for document in documents():
            text = document.read_text(encoding="utf-8")
            for block in reversed(list(BLOCK.finditer(text))):
                code, script, shown = block.groups()
                with self.subTest(document=str(document.relative_to(ROOT)), script=script):
                    result = run_block(script)
                    self.assertEqual(result.returncode, int(code or 0), result.stdout + result.stderr)
                    if shown is not None and os.environ.get("PASTA_UPDATE"):
                        text = text[:block.start(3)] + result.stdout + text[block.end(3):]
                        document.write_text(text, encoding="utf-8")
                    elif shown is not None:
                        self.assertEqual(result.stdout, shown, "PASTA_UPDATE=1 tests/docs_test.py rewrites it")
                    ran += 1
        self.assertGreater(ran, 0)

    def test_the_page_of_all_tools(self):
        printed = subprocess.run([PROGRAM, "tools", "--format", "markdown"], check=True, capture_output=True).stdout
        page = ROOT / "docs" / "tools.md"
        if os.environ.get("PASTA_UPDATE"):
            page.write_bytes(printed)
        self.assertEqual(printed.decode(), page.read_text(encoding="utf-8"),
                         "PASTA_UPDATE=1 tests/docs_test.py rewrites it")

    def test_every_tool_has_a_page(self):
        listing = subprocess.run([PROGRAM, "tools", "--format", "json"], check=True, capture_output=True, text=True)
        tools = json.loads(listing.stdout)
        tools = tools["tools"] if isinstance(tools, dict) else tools
        self.assertTrue(tools)
        for tool in tools:
            page = ROOT / "src" / "tools" / tool["name"] / "tool.md"
            self.assertTrue(page.is_file(), f"{page} is missing")
            text = page.read_text(encoding="utf-8")
            for option in tool["options"]:
                self.assertIn(f"`{option['name']}", text, f"{page} says nothing of option {option['name']}")


if __name__ == "__main__":
    unittest.main()
