# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a flood of context switches in one ring takes history from another ring. Two recorders run at the same time, so
that both see the same load: one has only the ring `cpu`, and the other also has the ring `sched`. They take turns to start
first: the samples of the second one interrupt those of the first, which makes a difference of up to 2 % between equal rings."""
import statistics
import subprocess
import time

import harness
import measure
from measure import Flightrec

HZ = "999"
SECONDS = 15
RING_BYTES = 8 << 20
CPU = ("--ring", f"cpu:{RING_BYTES}", "-e", "cpu-clock", "-F", HZ, "--call-graph=fp")
SCHED = ("--ring", "sched:32M", "-e", "sched:sched_switch")


def used(recorder):
    """Returns the bytes in the ring `cpu`. (A dump ends the open chunk, so that it counts, too.)"""
    recorder.daemon.dump_by_control("--last", "1s")
    return recorder.daemon.status()["rings"]["cpu"]["used"]


def turn(work, args, is_alone_first):
    options = [CPU, (*CPU, *SCHED)] if is_alone_first else [(*CPU, *SCHED), CPU]
    with measure.recording(Flightrec, work, args, *options[0]) as first, measure.recording(Flightrec, work, args, *options[1]) as second:
        alone, beside = (first, second) if is_alone_first else (second, first)
        flood = measure.start(harness.program("frtest-yield"), "-t", 600, stdout=subprocess.DEVNULL)
        time.sleep(2)
        before, begin = (used(alone), used(beside)), time.monotonic()
        time.sleep(SECONDS)
        after, seconds = (used(alone), used(beside)), time.monotonic() - begin
        harness.end(flood)
        spans = [RING_BYTES / (b - a) * seconds for a, b in zip(before, after)]  # for how long the ring has room
        sched, lost = beside.daemon.status()["rings"]["sched"], sum(beside.daemon.lost().values())
        alone.stop()
        beside.stop()
    return {"span_alone_s": spans[0], "span_s": spans[1], "percent": 100 * (spans[1] / spans[0] - 1), "lost": lost,
            "records_per_s": (sched["samples"] + sched["evicted_samples"]) / (SECONDS + 2), "sched_span_s": sched["span_s"] * sched["size"] / sched["used"]}


def bench(work, args):
    turns = [turn(work, args, n % 2 == 0) for n in range(args.turns + args.turns % 2)]
    return {key: statistics.median(t[key] for t in turns) for key in turns[0]}


def report(result):
    print(f"rings: {result['records_per_s']:,.0f} context switches a second in a ring of 32M ({result['sched_span_s']:,.0f} s) beside "
          f"a profile of {HZ} Hz in a ring of 8M: it holds {result['span_s']:,.1f} s, and {result['span_alone_s']:,.1f} s without "
          f"them ({result['percent']:+.1f} %); {result['lost']:,.0f} records lost")


TARGETS = [
    ("rings: history of a slow ring beside a flood, % of difference", 2, True, lambda r: abs(r["rings"]["percent"])),
]
