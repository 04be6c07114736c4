# SPDX-License-Identifier: GPL-2.0-or-later
"""How long it takes to open and to close many tracepoints. The kernel waits for all CPUs when the last perf event of a tracepoint
is closed, one tracepoint after the other. The BPF programs of flightrecd need no perf events of tracepoints."""
import statistics
import time

import harness
from measure import Flightrec, new_directory, recording

EVENTS = "syscalls:*"


def perf(work):
    with new_directory(work) as directory:
        begin = time.monotonic()
        harness.must("perf", "record", "-a", "-e", EVENTS, "-m", 16, "-o", directory / "perf.data", "--", "true", timeout=600)
        return time.monotonic() - begin


def ours(work, args):
    begin = time.monotonic()
    with recording(Flightrec, work, args, "-e", EVENTS, "-m", "64K") as recorder:
        recorder.stop()
        return time.monotonic() - begin


def bench(work, args):
    turns = [(perf(work), ours(work, args)) for _ in range(2)]  # a turn of perf takes half a minute
    return {"perf_s": statistics.median(p for p, _ in turns), "ours_s": statistics.median(o for _, o in turns),
            "ratio": statistics.median(p / o for p, o in turns)}


def report(result):
    print(f"to open and close {EVENTS}: {result['ours_s']:.1f} s, perf record {result['perf_s']:.1f} s "
          f"({result['ratio']:.1f} times as long)")


TARGETS = [("opening and closing 700 tracepoints, perf record against ours", 2, False, lambda r: r["opening"]["ratio"])]
