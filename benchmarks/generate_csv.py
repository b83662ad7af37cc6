#!/usr/bin/env python3
"""Writes a kernel_trace table of rocprofv3 of any size, by repeating the rows of a real one.

    generate_csv.py TABLE.csv ROWS > big_kernel_trace.csv

Each copy of the rows is later than the one before, with correlations and dispatches of its own.
"""

import csv
import sys


def main():
    table, rows = sys.argv[1], int(sys.argv[2])
    with open(table, newline="", encoding="utf-8") as file:
        header, *given = list(csv.reader(file))
    start, end, correlation, dispatch = (header.index(name) for name in (
        "Start_Timestamp", "End_Timestamp", "Correlation_Id", "Dispatch_Id"))
    first = min(int(row[start]) for row in given)
    span = max(int(row[end]) for row in given) - first + 1000
    out = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.writerow(header)
    for number in range(rows):
        turn, at = divmod(number, len(given))
        row = list(given[at])
        for column in (start, end):
            row[column] = int(row[column]) + turn * span
        row[correlation] = row[dispatch] = number + 1
        out.writerow(row)


if __name__ == "__main__":
    main()
