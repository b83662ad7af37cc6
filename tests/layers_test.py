#!/usr/bin/env python3
"""Holds the #includes and link lists of the source tree to the floors of docs/design.md.

A folder knows only folders of lower floors; adapters do not know each other, nor do tools. Run
without arguments: checks the checker on small planted trees, then the real tree.
"""
import os
import re
import tempfile
import unittest
from pathlib import Path

FLOORS = {
    "base": 0,
    "stats": 1, "mine": 1,
    "event": 2, "report": 2,
    "trace": 3,
    "correlate": 4, "device": 4,
    "adapters": 5, "tools": 5,
    "session": 6, "plugins": 6,
    "cli": 7, "capi": 7, "collect": 7,
}
# Folders made of parts that do not know each other. What they share lies in common/; the list of
# parts, builtin.cpp, is the one file that may name them all.
FOLDERS_OF_PARTS = {"adapters", "tools"}
# Public headers that only some floors may include; all others are for everybody.
PUBLIC_FLOORS = {"tool.h": 5, "session.h": 6, "c.h": 6}
# Vendors' headers define macros that collide with each other's, so they stay out of headers.
VENDOR = re.compile(r"(cupti|cuda|nv[a-z]+/|nvToolsExt|sanitizer\.h|CL/|rocprof|roctracer|roctx|hip/|hsa/"
                    r"|mpi\.h|Python\.h|torch/|oclgrind)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
PASTA_FOLDER = re.compile(r"pasta_folder\(([^)]*)\)", re.DOTALL)
HEADERS = (".h", ".cuh")
SOURCES = (".cpp", ".c", ".cu") + HEADERS


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES)


def includes(path):
    return [(quote, name) for quote, name in INCLUDE.findall(path.read_text(encoding="utf-8"))]


def place(relative):
    """(folder, part) of a path below src/: ("tools", "summary"), ("base", "")."""
    parts = relative.split("/")
    if parts[0] in FOLDERS_OF_PARTS and len(parts) > 2:
        return parts[0], parts[1]
    return parts[0], ""


def check_include(relative, target):
    """Why the file src/`relative` must not include "`target`"; None when it may."""
    folder, part = place(relative)
    floor = FLOORS[folder]
    if target.startswith("pasta/"):
        lowest = PUBLIC_FLOORS.get(target.removeprefix("pasta/"), 0)
        return f"is for floor {lowest} and above" if floor < lowest else None
    target_folder, target_part = place(target)
    if target_folder not in FLOORS:
        # Headers that the build writes (pasta_version.h) have no folder.
        return None if "/" not in target else "is in no folder of the table of floors"
    target_floor = FLOORS[target_folder]
    if target_floor > floor:
        return f"goes up, from floor {floor} to floor {target_floor}"
    if target_folder != folder:
        return f"goes sideways on floor {floor}" if target_floor == floor else None
    if part == target_part or target_part == "common":
        return None
    if part == "":
        return None if relative == f"{folder}/builtin.cpp" else "is a part's; only builtin.cpp names parts"
    return f"goes sideways, from {folder}/{part} to {folder}/{target_part or '.'}"


def check_includes(root):
    src = root / "src"
    for path in sources(src):
        relative = path.relative_to(src).as_posix()
        if place(relative)[0] not in FLOORS:
            yield f"src/{relative}: its folder is not in the table of floors"
            continue
        for quote, target in includes(path):
            if quote == '"' and (why := check_include(relative, target)):
                yield f'src/{relative}: #include "{target}" {why}'
            if path.suffix in HEADERS and VENDOR.match(target):
                yield f"src/{relative}: vendor header {target} belongs in a .cpp file"


def check_public_headers(root):
    for path in sources(root / "include" / "pasta"):
        name = path.relative_to(root).as_posix()
        for quote, target in includes(path):
            standard = quote == "<" and (re.fullmatch(r"[a-z_0-9]+(\.h)?", target) or target.startswith("tl/"))
            if not standard and not target.startswith("pasta/"):
                yield f"{name}: includes {target}; public headers include only pasta/, tl/ and the standard library"
            if path.name == "c.h" and target.startswith("pasta/"):
                yield f"{name}: includes {target}; the C border stands alone"


def link_lists(root):
    """{"tools/summary": ["stats", ...]} from the pasta_folder(... DEPENDS ...) calls."""
    lists = {}
    for path in sorted((root / "src").rglob("CMakeLists.txt")):
        for call in PASTA_FOLDER.findall(re.sub(r"#.*", "", path.read_text(encoding="utf-8"))):
            words = call.split()
            depends, keyword = [], ""
            for word in words[1:]:
                if word.isupper() and "::" not in word:
                    keyword = word
                elif keyword == "DEPENDS":
                    depends.append(word)
            lists[words[0]] = (path.parent.relative_to(root / "src").as_posix(), depends)
    return lists


def check_link_lists(root):
    lists = link_lists(root)

    def reach(name, seen):
        for other in lists.get(name, ("", []))[1]:
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen

    for name, (folder, depends) in lists.items():
        top = folder.split("/")[0]
        for other in depends:
            other_top = lists[other][0].split("/")[0] if other in lists else other.split("_")[0]
            if other_top not in FLOORS:
                yield f"src/{folder}/CMakeLists.txt: links to unknown folder {other}"
            elif FLOORS[other_top] >= FLOORS.get(top, -1) and not other_top == top:
                yield f"src/{folder}/CMakeLists.txt: links to {other}, which is not on a lower floor"
        linked = {lists[o][0].split("/")[0] for o in reach(name, set()) if o in lists} | {top}
        for path in sources(root / "src" / folder):
            for quote, target in includes(path):
                target_top = target.split("/")[0]
                if quote == '"' and target_top in FLOORS and target_top not in linked:
                    relative = path.relative_to(root).as_posix()
                    yield f'{relative}: #include "{target}", but {name} does not link to {target_top}'


def check(root):
    return [*check_includes(root), *check_public_headers(root), *check_link_lists(root)]


class Checker(unittest.TestCase):
    """Each rule finds what was planted against it, and leaves alone what is allowed."""

    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "include/pasta").mkdir(parents=True)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check(root)

    def assert_found(self, files, *words):
        problems = self.problems(files)
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def assert_allowed(self, files):
        self.assertEqual(self.problems(files), [])

    def test_upward(self):
        self.assert_found({"src/trace/reader.cpp": '#include "session/merge.h"\n'}, "reader.cpp", "goes up")

    def test_upward_with_odd_spacing(self):
        self.assert_found({"src/base/a.h": '  #  include   "event/dictionary.h"\n'}, "goes up")

    def test_sideways_between_folders(self):
        self.assert_found({"src/event/a.cpp": '#include "report/text.h"\n'}, "sideways")
        self.assert_found({"src/adapters/text/a.cpp": '#include "tools/summary/summary.h"\n'}, "sideways")
        self.assert_found({"src/cli/main.cpp": '#include "capi/table.h"\n'}, "sideways")

    def test_sideways_between_parts(self):
        self.assert_found({"src/adapters/text/a.cpp": '#include "adapters/csv/csv.h"\n'}, "adapters/csv")
        self.assert_found({"src/tools/kernels/tool.cpp": '#include "tools/summary/busy.h"\n'}, "tools/summary")

    def test_parts_list(self):
        include = '#include "tools/summary/tool.h"\n'
        self.assert_allowed({"src/tools/builtin.cpp": include})
        self.assert_found({"src/tools/other.cpp": include}, "only builtin.cpp")
        self.assert_found({"src/tools/kernels/tool.cpp": '#include "tools/builtin.h"\n'}, "sideways")

    def test_session_names_no_part_through_the_public_door(self):
        self.assert_found({"src/tools/summary/tool.cpp": '#include "pasta/session.h"\n'}, "floor 6")

    def test_allowed(self):
        self.assert_allowed({
            "src/tools/kernels/tool.cpp": '#include "pasta/tool.h"\n#include "stats/quantiles.h"\n'
                                          '#include "tools/common/names.h"\n#include "tools/kernels/rules.h"\n',
            "src/cli/main.cpp": '#include "pasta_version.h"\n#include <fmt/core.h>\n',
        })

    def test_folder_without_a_floor(self):
        self.assert_found({"src/misc/a.cpp": ""}, "not in the table")
        self.assert_found({"src/base/a.cpp": '#include "misc/a.h"\n'}, "no folder")

    def test_vendor_header(self):
        self.assert_found({"src/adapters/cupti/api.h": "#include <cupti.h>\n"}, "cupti.h")
        self.assert_allowed({"src/adapters/cupti/api.cpp": "#include <cupti.h>\n"})

    def test_public_header(self):
        self.assert_found({"include/pasta/a.h": "#include <fmt/core.h>\n"}, "fmt/core.h")
        self.assert_found({"include/pasta/a.h": '#include "event/kinds.h"\n'}, "event/kinds.h")
        self.assert_found({"include/pasta/c.h": '#include "pasta/event.h"\n'}, "stands alone")
        self.assert_allowed({"include/pasta/a.h": '#include <stdint.h>\n#include <tl/expected.hpp>\n'
                                                  '#include <string_view>\n#include "pasta/b.h"\n'})

    def test_link_list(self):
        self.assert_found({"src/trace/CMakeLists.txt": "pasta_folder(trace DEPENDS session)"}, "lower floor")
        self.assert_found({"src/event/CMakeLists.txt": "pasta_folder(event DEPENDS report)"}, "lower floor")

    def test_include_that_is_not_linked(self):
        files = {"src/event/CMakeLists.txt": "pasta_folder(event LIBRARIES base)",
                 "src/base/CMakeLists.txt": "pasta_folder(base)",
                 "src/event/a.cpp": '#include "base/input.h"\n'}
        self.assert_found(files, "does not link to base")
        self.assert_allowed({**files, "src/event/CMakeLists.txt": "pasta_folder(event DEPENDS base)"})


class Tree(unittest.TestCase):
    def test_source_tree(self):
        root = Path(os.environ.get("PASTA_SOURCE_DIR") or Path(__file__).resolve().parent.parent)
        self.assertTrue(sources(root / "src"), f"no sources below {root}")
        self.assertEqual(check(root), [])


if __name__ == "__main__":
    unittest.main()
