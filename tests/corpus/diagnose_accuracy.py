#!/usr/bin/env python3
"""What diagnose finds beside an expert's reading, and its parts beside the step table of PyTorch's
own plugin.

    diagnose_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    diagnose_accuracy.py --write                            and put it into docs/accuracy.md

diagnose_test.py fails where they differ by more than the reading allows.
"""

import json

import accuracy
import diagnose_test
from program import Report

STEPS = "kineto/expected/result_check_file.txt"


def readings(corpus):
    yield "| trace | finding or part | read by hand | diagnose |"
    yield "|---|---|---|---|"
    for reading in diagnose_test.READINGS["traces"]:
        path = corpus / reading["path"]
        if not path.exists():
            continue
        report = Report(path, tools=("diagnose",))
        found = diagnose_test.findings(report)
        name = reading["path"].removesuffix(".gz").removesuffix(".json")
        for ident, (share, allowed) in reading["must"].items():
            yield (f"| {name} | {ident} | {share:.3f} ± {allowed:g} | "
                   f"{found.get(ident, float('nan')):.3f} |")
        refused = [i for i in found if i in reading["must_not"] or "*" in reading["must_not"]]
        others = "all findings" if "*" in reading["must_not"] else f"{len(reading['must_not'])} others"
        yield f"| {name} | {others} | none above note | {', '.join(refused) or 'none'} |"
        for part, (share, allowed) in reading.get("parts", {}).items():
            got = max(row["share"] for row in report.table("diagnose", "parts")
                      if row["part"] == part)
            yield f"| {name} | part {part} | {share:.4f} ± {allowed:g} | {got:.4f} |"


def steps(corpus):
    expected = json.loads((corpus / STEPS).read_text("utf-8").splitlines()[0])["steps"]["rows"]
    report = Report(corpus / diagnose_test.StepTable.TRACE, tools=("diagnose",))
    yield "| step | compute, us | Kernel | exposed copy | Memcpy + Memset | idle | the four others | input | DataLoader |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for row, step in zip(expected, report.table("diagnose", "iterations")):
        kernel, copy, fill, runtime, loader, operators, other = row[1::2]
        idle = sum(step[part] for part in diagnose_test.PARTS[3:])
        yield (f"| {row[0]} | {step['compute'] // 1000} | {kernel} | {step['exposed_copy'] // 1000} "
               f"| {copy + fill} | {idle // 1000} | {runtime + loader + operators + other} "
               f"| {step['input_bound'] // 1000} | {loader} |")


def section(corpus):
    return "\n".join([
        "", "## Diagnosis", "",
        "An expert read these traces by hand before the tool was written",
        "([the reading](../tests/corpus/diagnose_readings.md)); shares are of the mean steady iteration.", "",
        *readings(corpus), "",
        "The steps of `kineto/samples/resnet50_num_workers_0` beside the step table that PyTorch's plugin",
        "for TensorBoard prints of it. Steps begin and end at the same nanosecond. Idle time is split by",
        "other rules: there by what the host was in, in a fixed order; here by causes. `input` is shorter",
        "than the loader's time by the small gaps between kernels that were launched before and still ran",
        "out while the loader was already called: work was queued then, and the loader held up nothing.", "",
        *steps(corpus), "", ""])


if __name__ == "__main__":
    accuracy.run_section("diagnose", __doc__, lambda corpus: corpus, section, lambda corpus: [])
