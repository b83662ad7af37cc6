#!/usr/bin/env python3
"""Every tool on every sort of trace: laws that hold whatever a tool computes.

Real traces as text, with any one kind of event taken out, left alone, or without its times; empty ones;
and all traces of tests/traces as they are, with every tool, format, and choice of an option. Each answer
must be one (exit code 0), be what its format says, hold no number that is none, no share outside 0..1, and
no 0 for a time that nobody recorded. A tool says the same alone as beside all others, of the trace written
as .pasta, and of its lines in any order.

    matrix_test.py [--pastaprof PATH] [--only TEXT]

TEXT is a part of the name of a check, as it is printed when it fails.
"""
import argparse
import concurrent.futures
import csv
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("PASTA_SOURCE_DIR", Path(__file__).parents[2]))
TRACES = SOURCE / "tests" / "traces"
# Small, and together of all kinds.
BASES = {
    "alexnet": TRACES / "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz",
    "training": TRACES / "param/dlrm_8rank/worker7_step_12.1694128201553.pt.trace.json.gz",
    "memory": TRACES / "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "all_kinds": SOURCE / "tests/fuzz_seeds/text/all.txt",
}
KINDS = ("api", "scope", "kernel", "copy", "fill", "sync", "alloc", "free", "fault", "counter", "device", "gap")
EVENT = re.compile(rf"({'|'.join(KINDS)}) (untimed|(-?\d+) (-?\d+)) ")
NO_NUMBER = re.compile(r"(?<![\w.])-?(nan|inf|infinity)(?![\w.])", re.IGNORECASE)
ORDER_OF_UNTIMED = float("-inf")


class Broken(Exception):
    """A law does not hold."""


class Program:
    def __init__(self, path):
        self.path = str(Path(path).resolve())
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("PASTA") and k not in ("COLUMNS", "NO_COLOR")}
        listing = json.loads(self("tools", "--format", "json")[1])
        self.tools = listing["tools"] if isinstance(listing, dict) else listing
        # Results of patches are in live traces only; who cannot do without is refused for others.
        self.tools = [tool for tool in self.tools if "device" not in tool["needs"]]
        self.names = [tool["name"] for tool in self.tools]

    def __call__(self, *arguments, trace=""):
        done = subprocess.run([self.path, *map(str, arguments)], input=trace.encode(), capture_output=True,
                              timeout=120, env=self.environment, check=False)
        if done.returncode not in (0, 3):
            raise Broken(f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[-500:]}")
        return done.returncode, done.stdout.decode("utf-8")

    def report(self, path, *, trace="", tools=None, options=(), form="json", lossy=False):
        """The answer, checked by its format. `lossy`: the input may be one of which something is lost."""
        asked = [word for name in tools or self.names for word in ("--tool", name)]
        code, text = self("report", path, *asked, *options, "--format", form, trace=trace)
        if code == 3 and not lossy and "\ngap " not in trace:  # a gap is a loss
            raise Broken("exit code 3, though nothing is wrong with the trace")
        return CHECKS[form](text)


# --- what holds of every answer


def refuse(constant):
    raise Broken(f"{constant} in JSON")


def check_share(value, where):
    if value is not None and not -1e-9 <= value <= 1 + 1e-9:
        raise Broken(f"share {value} in {where}")


def tables(report):
    return {part["id"]: part for part in report["parts"] if part["type"] == "table"}


def check_part(part, where):
    where = f"{where}.{part['id']}"
    if part["type"] == "finding":
        if part.get("of"):
            check_share(part.get("share"), where)
        if not part["text"].strip():
            raise Broken(f"a finding without words: {where}")
    elif part["type"] == "table":
        for row in part["rows"]:
            if len(row) != len(part["columns"]):
                raise Broken(f"a row of {len(row)} cells under {len(part['columns'])} columns in {where}")
            for column, cell in zip(part["columns"], row):
                unit = column.get("unit")
                if unit == "share":
                    check_share(cell, f"{where}.{column['name']}")
                elif unit in ("ns", "bytes", "count") and not (cell is None or isinstance(cell, int)):
                    raise Broken(f"{cell!r} is no whole number in {where}.{column['name']}")
    elif part["type"] == "series":
        times = [point[0] for point in part["points"]]
        if times != sorted(times):
            raise Broken(f"times of {where} go back")


def check_json(text):
    document = json.loads(text, parse_constant=refuse)
    for report in document["reports"]:
        ids = [part["id"] for part in report["parts"] if part["type"] != "finding"]
        if len(ids) != len(set(ids)):
            raise Broken(f"two parts of one name in {report['tool']}: {ids}")
        for part in report["parts"]:
            check_part(part, report["tool"])
    return document


def check_csv(text):
    if match := NO_NUMBER.search(text):
        raise Broken(f"{match[0]} in CSV")
    width = None
    for row in csv.reader(io.StringIO(text)):
        if not row:
            width = None
        elif not row[0].startswith("# "):
            if width is not None and len(row) != width:
                raise Broken(f"{len(row)} fields where the head has {width}: {row}")
            width = len(row)
    return text


def check_text(text):
    if not text.strip():
        raise Broken("nothing was said")
    if match := NO_NUMBER.search(text):
        raise Broken(f"{match[0]} in text")
    return text


CHECKS = {"json": check_json, "csv": check_csv, "text": check_text}


def check_same(expected, got, what):
    for a, b in zip(expected, got):
        if a != b:
            raise Broken(f"{a['tool']} says something else {what}: {first_difference(a, b)}")
    if len(expected) != len(got):
        raise Broken(f"{len(got)} reports instead of {len(expected)} {what}")


def first_difference(a, b, where=""):
    if type(a) is not type(b):
        return f"{where}: {a!r}, {b!r}"
    if isinstance(a, dict):
        for key in a.keys() | b.keys():
            if a.get(key) != b.get(key):
                return first_difference(a.get(key), b.get(key), f"{where}.{key}")
    if isinstance(a, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return first_difference(x, y, f"{where}[{i}]")
    return f"{where}: {str(a)[:300]}, {str(b)[:300]}"


# --- traces


class Trace:
    """A trace as text: the lines of its tables, and of its events in the order of their ends."""

    def __init__(self, text):
        self.tables, self.events = [], []
        for line in text.splitlines():
            if EVENT.match(line):
                self.events.append(line)
            elif not line.startswith("problem "):
                self.tables.append(line)

    def text(self, events):
        return "\n".join([*self.tables, *events, ""])

    @property
    def kinds(self):
        return [kind for kind in KINDS if any(line.startswith(f"{kind} ") for line in self.events)]


def kind_of(line):
    return line.partition(" ")[0]


def end_of(line):
    end = EVENT.match(line)[4]
    return ORDER_OF_UNTIMED if end is None else int(end)


def without_times(line):
    return EVENT.sub(lambda match: f"{match[1]} untimed ", line, count=1)


def shuffled(events):
    """In another order, but those with one end as they were: which of them was first, only their
    order says."""
    groups = {}
    for line in events:
        groups.setdefault(end_of(line), []).append(line)
    queues = [list(reversed(lines)) for lines in groups.values()]
    order = [i for i, queue in enumerate(queues) for _ in queue]
    random.Random(1).shuffle(order)
    return [queues[i].pop() for i in order]


def variants(name, base):
    """(what it is, the trace as text) of everything that is made of one trace."""
    yield f"{name} whole", base.text(base.events)
    yield f"{name} without events", base.text([])
    yield f"{name} without times", base.text(map(without_times, base.events))
    for kind in base.kinds:
        others = [line for line in base.events if kind_of(line) != kind]
        if others:
            yield f"{name} without {kind}", base.text(others)
        yield f"{name} only {kind}", base.text(line for line in base.events if kind_of(line) == kind)
        # Untimed events come before all others.
        yield (f"{name} with {kind} untimed",
               base.text([*(without_times(line) for line in base.events if kind_of(line) == kind), *others]))


# --- checks


def check_variant(program, trace):
    together = program.report("-", trace=trace)["reports"]
    if [report["tool"] for report in together] != program.names:
        raise Broken(f"reports of {[report['tool'] for report in together]}")
    for name, report in zip(program.names, together):
        check_same([report], program.report("-", trace=trace, tools=[name])["reports"], "alone")


def check_copies(program, base):
    expected = program.report("-", trace=base.text(base.events))["reports"]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.pasta"
        program("export", "-", "--to", "pasta", "-o", copy, trace=base.text(base.events))
        check_same(expected, program.report(copy, lossy=True)["reports"], "of the .pasta file")
    got = program.report("-", trace=base.text(shuffled(base.events)), lossy=True)["reports"]
    check_same(expected, got, "of the lines in another order")


def rows_by_name(table):
    """Rows by the text in them; rows of one name are left out, since nothing tells which is which."""
    rows, twice = {}, set()
    for row in table["rows"]:
        key = tuple(cell for cell in row if isinstance(cell, str))
        twice |= {key} & rows.keys()
        rows[key] = row
    return {key: row for key, row in rows.items() if key not in twice}


def check_untimed(program, base):
    """No event has times. A time can then be unknown, or 0 where there was nothing to take time."""
    timed = program.report("-", trace=base.text(base.events))["reports"]
    untimed = program.report("-", trace=base.text(map(without_times, base.events)))["reports"]
    for before, after in zip(timed, untimed):
        for ident, table in tables(after).items():
            known = rows_by_name(tables(before)[ident]) if ident in tables(before) else {}
            for row in table["rows"]:
                was = known.get(tuple(cell for cell in row if isinstance(cell, str)))
                for i, column in enumerate(table["columns"]):
                    where = f"{after['tool']}.{ident}.{column['name']} of {row}"
                    if column.get("unit") != "ns" or row[i] is None:
                        continue
                    if row[i] != 0:
                        raise Broken(f"a time in a trace without times: {where}")
                    if was is not None and was[i] not in (None, 0):
                        raise Broken(f"0 for a time that nobody recorded: {where}, with times {was[i]}")


def choices(program):
    """The --opt words that name each choice of each option once."""
    for tool in program.tools:
        for option in tool["options"]:
            for choice in option["choices"]:
                yield tool["name"], f"{tool['name']}.{option['name']}={choice}"


def check_file(program, path):
    for form in CHECKS:
        program.report(path, form=form, lossy=True)
    for tool, option in choices(program):
        program.report(path, tools=[tool], options=("--opt", option), lossy=True)


def checks(program):
    """(name, function to call) of all checks."""
    for name, path in BASES.items():
        base = Trace(program("dump", path)[1])
        for what, trace in variants(name, base):
            yield what, lambda trace=trace: check_variant(program, trace)
        yield f"{name} copied", lambda base=base: check_copies(program, base)
        yield f"{name} untimed", lambda base=base: check_untimed(program, base)
    yield "nothing at all", lambda: check_variant(program, "pasta-text 1\n")
    for path in sorted(TRACES.rglob("*.json*")):
        yield str(path.relative_to(SOURCE)), lambda path=path: check_file(program, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pastaprof", default=os.environ.get("PASTAPROF"), help="the program; else $PASTAPROF")
    parser.add_argument("--only", default="", help="a part of the name of a check")
    arguments = parser.parse_args()
    if not arguments.pastaprof:
        parser.error("give --pastaprof PATH")
    program = Program(arguments.pastaprof)

    def run(check):
        name, call = check
        try:
            call()
        except (Broken, ValueError, subprocess.TimeoutExpired) as error:
            return f"{name}: {error}"
        return None

    chosen = [check for check in checks(program) if arguments.only in check[0]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        broken = [message for message in pool.map(run, chosen) if message]
    for message in broken:
        print(message)
    print(f"{len(chosen)} checks of {len(program.names)} tools, {len(broken)} broken")
    return 1 if broken or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
