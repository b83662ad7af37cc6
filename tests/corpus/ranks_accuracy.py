#!/usr/bin/env python3
"""What one report over the folder of a job's eight ranks says, beside what other programs say.

    ranks_accuracy.py [--pastaprof PATH] [--corpus DIR]  print the comparison
    ranks_accuracy.py --write                            and put it into docs/accuracy.md
"""

import pathlib
import tempfile

import accuracy
import program
from accuracy import Line
from program import Report

JOB = "param/dlrm_8rank"
TOOLS = ("summary", "kernels")

def sources(report):
    return [{key: source[key] for key in ("label", "rank", "format", "events")}
            for source in report.trace["sources"]]


class Job:
    """The report of the folder; that of the file which the folder is merged into has to be the same."""

    def __init__(self, corpus):
        self.folder = corpus / JOB
        self.report = Report(self.folder, tools=TOOLS)
        with tempfile.TemporaryDirectory() as scratch:
            merged = pathlib.Path(scratch) / "job.pasta"
            done = program.Run(["merge", self.folder, "-o", merged])
            if done.code != 0:
                raise AssertionError(f"merge ended with {done.code}: {done.err.strip()}")
            of_merged = Report(merged, tools=TOOLS)
        same = ((self.report.document["reports"], sources(self.report))
                == (of_merged.document["reports"], sources(of_merged)))
        if not same:
            raise AssertionError("the merged file has another report than the folder")

    @property
    def devices(self):
        """By rank: it is the first number in "rank 3 gpu 3"."""
        return {int(row["device"].split()[1]): row for row in self.report.devices}


def plain_lines(corpus, job):
    columns = {"kernels": "kernels", "kernel_sum": "kernel_sum_ns", "copies": "memcpy_n",
               "copy_sum": "memcpy_sum_ns", "fills": "memset_n", "span": "gpu_span_ns",
               "busy": "gpu_busy_ns", "idle": "gpu_idle_ns", "compute": "comp_union_ns",
               "communication": "comm_union_ns", "communication_overlapped": "comm_comp_overlap_ns",
               "memory": "memops_union_ns"}
    rows = [row for row in program.read_tsv(corpus / "expected_plain.tsv")
            if row["file"].startswith(JOB)]
    for rank, row in enumerate(sorted(rows, key=lambda row: row["file"])):
        device = job.devices.get(rank, {})
        for mine, theirs in columns.items():
            yield Line(f"rank {rank}", mine, device.get(mine), row[theirs])


def hta_lines(corpus, job):
    sections = accuracy.hta_sections(corpus / "expected_hta" / "dlrm_8rank.txt")
    devices = job.devices
    for row in accuracy.csv_rows(sections["temporal_breakdown"])[0]:
        device = devices.get(int(row["rank"]), {})
        for mine, theirs in (("idle", "idle_time(us)"), ("compute", "compute_time(us)"),
                             ("span", "kernel_time(us)")):
            yield Line(f"rank {row['rank']}", f"{mine}, us", accuracy.us(device[mine]),
                       accuracy.whole_us(row[theirs]))
    for row in accuracy.csv_rows(sections["comm_comp_overlap"])[0]:
        device = devices[int(row["rank"])]
        share = 100 * device["communication_overlapped"] / device["communication"]
        yield Line(f"rank {row['rank']}", "communication overlapped by compute, %", f"{share:.2f}",
                   f"{float(row['comp_comm_overlap_pctg']):.2f}")

    def total(value):
        return accuracy.us(sum(value(device) for device in devices.values()))

    types = {
        "COMMUNICATION": total(lambda d: d["communication"] - d["communication_overlapped"]
                               - d["memory_overlapped"]),
        "COMPUTATION": total(lambda d: d["compute"] - d["communication_overlapped"]),
        "COMPUTATION overlapping COMMUNICATION": total(lambda d: d["communication_overlapped"]),
        "MEMORY": total(lambda d: d["memory"] - d["memory_overlapped"]),
        "COMMUNICATION overlapping MEMORY": total(lambda d: d["memory_overlapped"]),
    }
    by_type, by_kernel = split(sections)
    for row in by_type:
        yield Line("all ranks", f"{row['kernel_type']}, us", types.get(row["kernel_type"]),
                   accuracy.whole_us(row["sum"]))
    of_rank = {}
    for row in by_kernel:
        if not row["name"].startswith("nccl"):
            continue
        rank = row["rank"]
        if rank not in of_rank:
            report = Report(job.folder, tools=("kernels",), options=("--rank", rank))
            of_rank[rank] = {kernel["name"]: kernel for kernel in report.kernels}
        own = of_rank[rank].get(row["name"], {})
        name = row["name"].partition("(")[0]
        for column, theirs in (("total", "sum (us)"), ("max", "max (us)"), ("min", "min (us)")):
            yield Line(f"rank {rank}", f"{column} of {name}, us", accuracy.us(own[column]),
                       accuracy.whole_us(row[theirs]))


def split(sections):
    """HTA's two tables of kernels: by type over all ranks, and by name and rank."""
    key = next(name for name in sections if name.startswith("gpu_kernel_breakdown"))
    by_type, rest = accuracy.csv_rows(sections[key])
    return by_type, accuracy.csv_rows(rest)[0]


def collect(corpus):
    job = Job(corpus)
    return [("Eight ranks: a separate script", list(plain_lines(corpus, job))),
            ("Eight ranks: HTA", list(hta_lines(corpus, job)))]


def section(sections):
    return f"""## A job of ranks

Made by `tests/corpus/ranks_accuracy.py --write`: one report over the folder `{JOB}`, a training step of
DLRM on eight V100, beside what a separate script counted in each file and what HTA says of all eight. The
same comes out of the one file that `pastaprof merge` makes of the folder; the script fails if not.

{accuracy.markdown(sections)}"""


if __name__ == "__main__":
    accuracy.run_section("ranks", __doc__, collect, section, lambda sections: [
        f"{line.file}: {line.quantity}: report {line.report}, theirs {line.theirs}"
        for _, lines in sections for line in lines if not line.explained])
