b.pasta
  pasta · 0 events · no times

Findings ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
  note     no device did anything in this trace

Processes ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
  Processes, those that one started below it

  process   pid    parent  rank  ended   start  duration  events  devices  command
                                            ms        ms
  ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  perf      13508  13506   -     exit 2   12.7   1,216.8       0  none     perf record -o perf.data -e…hon bench.py 2500
    python  13509  13508   -     exit 2  218.7     108.3       0  none     /tmp/nine/v312/bin/python bench.py 2500

Summary ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  (nothing)

Quality ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
  events   none

  No problems found in the input.
