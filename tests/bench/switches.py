# SPDX-License-Identifier: GPL-2.0-or-later
"""What the event offcpu costs a load that switches between two threads of one CPU all the time, and never waits for long."""
import statistics
import time

import harness
import measure
from measure import Flightrec

THRESHOLDS = {"1ms": "offcpu/threshold=1ms/", "1us": "offcpu/threshold=1us/"}


def load(seconds):
    """Returns the CPU time of a switch, in ns. (CPU time, because other programs can use the CPU, too.)"""
    did = harness.load("pingpong", "-t", seconds, "-c", harness.last_cpu())
    return did["cpu_ns"] / did["round_trips"] / 2


def recorded_bytes(daemon):
    """Returns how many bytes of records came into the ring so far. (A dump ends the open chunk, so that it counts, too.)"""
    daemon.dump_by_control("--last", "1s")
    return daemon.status()["ring"]["raw"]


def with_event(work, args, event):
    """Returns (the CPU time of a switch, the bytes of records a second, the losses) with a recorder of EVENT."""
    with measure.recording(Flightrec, work, args, "-e", event) as recorder:
        before, begin = recorded_bytes(recorder.daemon), time.monotonic()
        ns = load(args.seconds)
        time.sleep(1.5)  # until the recorder has drained the kernel rings
        seconds = time.monotonic() - begin
        after, lost = recorded_bytes(recorder.daemon), sum(recorder.daemon.lost().values())
        recorder.stop()
    return ns, (after - before) / seconds, lost


def bench(work, args):
    turns = []
    for _ in range(max(args.turns, 3)):
        alone = load(args.seconds)
        turns.append({"alone_ns": alone})
        for name, event in THRESHOLDS.items():
            ns, rate, lost = with_event(work, args, event)
            turns[-1] |= {f"{name}_ns": ns - alone, f"{name}_percent": 100 * (ns / alone - 1), f"{name}_bytes": rate,
                          f"{name}_lost": lost}
    return {key: statistics.median(t[key] for t in turns) for key in turns[0]}


def report(result):
    print(f"offcpu: a switch takes {result['alone_ns']:,.0f} ns ({1e9 / result['alone_ns']:,.0f} switches a second)")
    for name in THRESHOLDS:
        print(f"  threshold={name}: {result[f'{name}_ns']:,.0f} ns more ({result[f'{name}_percent']:.1f} %), "
              f"{result[f'{name}_bytes']:,.0f} bytes of records a second, {result[f'{name}_lost']:,.0f} lost")


TARGETS = [
    ("offcpu, no long waits: slowdown of a load of switches, percent", 15, True, lambda r: r["switches"]["1ms_percent"]),
]
