#!/usr/bin/env python3
"""Iterations that were mined beside those that the trace marks.

    iterations_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    iterations_accuracy.py --write                            and put it into docs/accuracy.md

What is right is computed here from the lines of `pastaprof dump`: the device work that the host
launched inside each mark. The mined iterations come from `report --tool iterations --opt
marks=ignore`. They agree when there are as many whole ones as marks that launched something, and each
begins no earlier than the last device work of the step before starts and no later than the first of
its own ends. The same must come out of a trace without its annotations and with each name replaced.
"""

import bisect
import hashlib
import re

import accuracy
import dump
import program
from program import Report

# What the trace holds, for a reader of the page; and what is known to be wrong, with why.
REASONS = {
    "hta/trace_compare/base/base.json.gz":
        "abstains: two steps of one kernel each are no evidence (the trace is an excerpt)",
}
# Traces without marks of which the answer is known by looking: iterations.
UNMARKED = {
    "tracelens/rocprof/908_results.json.gz": 51,
    "rpd/raptor_mytrace.rpd.gz": 21,
}


def marks_of(events):
    """Host intervals of the marked iterations."""
    steps = sorted((e.start, e.end) for e in events
                   if e.kind == "scope" and e.domain == "iteration" and not e.annotation)
    if steps:
        return "ProfilerStep", steps
    ends = {}
    for event in events:
        if event.kind == "scope" and event.name.startswith("Optimizer.step#") and not event.annotation:
            ends.setdefault(event.name, []).append(event.end)
    if not ends:
        return "", []
    last = sorted(min(ends.values(), key=lambda times: (len(times), -max(times))))
    return "Optimizer.step", list(zip([-(1 << 62), *last[:-1]], last))


def before_input(ends, launched):
    """Where iterations end of which only the end of the optimizer's step is marked: what the host
    launches after that, before it waits longest for the next input, is still theirs."""
    most = len(launched) // len(ends) // 8
    times = [launch for launch, _ in launched]
    moved, more = [], []
    for end in ends[:-1]:
        first = bisect.bisect_left(times, end)
        following = launched[first:first + most + 1]
        inputs = [at for at, (_, is_input) in enumerate(following) if is_input]
        if inputs and first > 0:
            pauses = [times[first + at] - times[first + at - 1] for at in range(inputs[0] + 1)]
            longest = pauses.index(max(pauses))
            more.append(longest)
            if longest > 0:
                end = times[first + longest - 1] + 1
        moved.append(end)
    first = bisect.bisect_left(times, ends[-1])
    usual = sorted(more)[len(more) // 2] if more else 0
    rest = times[first:first + usual]
    return [*moved, rest[-1] + 1 if rest else ends[-1]]


def steps_of(events):
    """What marks there are, and the device work of each as (start, end), in order of launch."""
    sort, marks = marks_of(events)
    launches = {}
    for event in events:
        if event.kind == "api" and event.correlation:
            known = launches.get(event.correlation)
            launches[event.correlation] = event.start if known is None else min(known, event.start)
    if sort == "Optimizer.step":
        launched = sorted((launches[e.correlation], e.fields.get("direction") == "host_to_device")
                          for e in events if e.kind in ("kernel", "copy", "fill") and not e.untimed
                          and e.correlation in launches)
        ends = before_input([end for _, end in marks], launched)
        marks = list(zip([-(1 << 62), *ends[:-1]], ends))
    work = [[] for _ in marks]
    starts = [start for start, _ in marks]
    for event in events:
        if event.kind not in ("kernel", "copy", "fill") or event.untimed:
            continue
        launch = launches.get(event.correlation)
        at = bisect.bisect(starts, launch) - 1 if launch is not None else -1
        if at >= 0 and launch < marks[at][1]:
            work[at].append((launch, event.start, event.end))
    for step in work:
        step.sort()
    return sort, [step for step in work if step]


def mined(path, stdin=None):
    report = Report(path, tools=("iterations",), options=("--opt", "marks=ignore"), stdin=stdin)
    return report.table("iterations", "iterations")


def anonymous(path):
    """The dump of a trace without its ranges and with each name of device work replaced."""
    lines = []
    for line in dump.text(path).splitlines():
        if line.startswith("scope "):
            continue
        match = re.fullmatch(rf"((?:kernel|copy|fill) .*? )({dump.QUOTED})(.*)", line)
        if match:
            name = hashlib.sha256(match[2].encode()).hexdigest()[:12]
            line = f'{match[1]}"{name}"{match[3]}'
        lines.append(re.sub(r" scope=\S+", "", line))
    return ("\n".join(lines) + "\n").encode("utf-8")


def whole(rows):
    return [row for row in rows if row["phase"] != "partial"]


def compare(path, events, origin):
    """(marks, steps, mined whole ones, those that begin where their step does, what is wrong)"""
    sort, steps = steps_of(events)
    rows = whole(mined(path))
    if steps:  # what was launched before the first mark is in none
        rows = [row for row in rows if row["end"] + origin > steps[0][0][1]]
    right, wrong = 0, ""
    for at, row in enumerate(rows[:len(steps)]):
        start = row["start"] + origin
        earliest = steps[at - 1][-1][1] if at else 0
        off = (start - steps[at][0][1]) / 1000
        # Where steps overlap on the device, the first of one can start before the last of the other.
        # No mark says where the first one begins of which only the end is marked.
        latest = steps[at][-1][1] if sort == "Optimizer.step" and at == 0 else steps[at][0][2]
        if min(earliest, steps[at][0][1]) <= start <= latest:
            right += 1
        elif not wrong:
            wrong = f"iteration {at} begins {off:+.1f} us from its step"
    if rows and len(rows) != len(steps):
        wrong = f"{len(rows)} for {len(steps)}"
    return sort, len(steps), len(rows), right, wrong


def lines(corpus):
    for file in sorted({path for folder in ("hta", "kineto", "param", "tracelens")
                        for path in (corpus / folder).rglob("*.json*")}
                       | {corpus / name for name in UNMARKED}):
        name = str(file.relative_to(corpus))
        if "expected/" in name:
            continue
        run = program.Run(["dump", file])
        if run.code not in (0, 3):
            continue  # no trace, or one that is refused
        events = dump.events(file)
        timed = [event.start for event in events if not event.untimed]
        if not timed:
            continue
        device = sum(event.kind in ("kernel", "copy", "fill") for event in events)
        sort, steps, found, right, wrong = compare(file, events, min(timed))
        same = mined("-", stdin=anonymous(file))
        again = "yes" if [row["duration"] for row in whole(same)] == [
            row["duration"] for row in whole(mined(file))] else "no"
        if sort and steps >= 2:
            good = found == steps == right
        else:
            good = found == UNMARKED.get(name, 0)
        yield {"file": name, "device": device, "marks": sort, "steps": steps, "found": found,
               "right": right, "again": again, "good": good and again == "yes", "wrong": wrong}


def section(rows):
    text = """## Iterations

Made by `tests/corpus/iterations_accuracy.py --write`: iterations mined from the device work alone
(`--opt marks=ignore`) beside the marks of each trace. *Steps* are the marks that launched device work;
*begin right* are mined ones whose begin lies between the start of the last device work of the step before
and the end of the first of their own (where only ends of an optimizer's step are marked, what the host
launches after that, until it waits for the next input, still belongs to the step, and the first may begin
anywhere before its end); *anonymous* says whether a trace without its ranges and with every
name of device work replaced has the same iterations. A trace with fewer than two steps must have none; of those without marks, `908_results` runs a model 51
times, which shows in its kernels only, and `raptor_mytrace` serves two prompts (one warm-up of both) and then
decodes 20 tokens, each by the replay of a graph.

| trace | device work | marks | steps | mined | begin right | anonymous | |
|---|---|---|---|---|---|---|---|
"""
    for row in rows:
        note = "" if row["good"] else REASONS.get(row["file"], row["wrong"] or "wrong")
        text += (f"| {row['file']} | {row['device']} | {row['marks'] or '-'} | {row['steps']} "
                 f"| {row['found']} | {row['right']} | {row['again']} | {note} |\n")
    return text


if __name__ == "__main__":
    accuracy.run_section("iterations", __doc__, lambda corpus: list(lines(corpus)), section, lambda rows: [
        f"{row['file']}: {row}" for row in rows if not row["good"] and row["file"] not in REASONS])
