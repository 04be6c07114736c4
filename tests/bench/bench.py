#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares flightrecd with `perf record` and `perf record --overwrite`, in one run, with the same load and the same amount of
ring memory.

Absolute figures differ from machine to machine and from run to run. So only the ratio of two figures of the same run is useful.
Each figure is the median of several turns. In each turn, the recorders run one after the other.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import measure  # imported first, because it adds the folder of harness.py to sys.path
import disk
import fleets
import opening
import reports
import rings
import stacks
import storm
import switches
import tracepoints
import triggers
from measure import Flightrec, FlightrecInMemory, Perf, PerfOverwrite


def say(text):
    print(text, file=sys.stderr, flush=True)


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def ratio(a, b):
    return a / b if a is not None and b else None


def syscall_turn(work, args):
    """Runs the load alone, then under each recorder. Returns {recorder or "alone": its measurements}."""
    turn = {"alone": measure.syscalls(args.seconds)}
    for kind in (Perf, PerfOverwrite, Flightrec, FlightrecInMemory):
        turn[kind.name] = measure.record_syscalls(kind, work, args)
        time.sleep(0.5)
    same = turn[PerfOverwrite.name]["events"]
    turn[PerfOverwrite.name]["trigger_same_ms"] = turn[PerfOverwrite.name]["trigger_to_file_ms"]
    turn[Flightrec.name]["trigger_same_ms"] = measure.trigger_after(Flightrec, work, args, same)
    return turn


def syscall_bench(work, args):
    turns = []
    for i in range(args.turns):
        say(f"syscall load, turn {i + 1} of {args.turns}")
        turns.append(syscall_turn(work, args))
    alone = median([t["alone"]["ns_per_call"] for t in turns])
    result = {"alone": {"load_ns_per_call": alone}}
    for kind in (Perf, PerfOverwrite, Flightrec, FlightrecInMemory):
        s = {key: median([t[kind.name][key] for t in turns]) for key in turns[0][kind.name]}
        s["load_slowdown"] = ratio(s["load_ns_per_call"], alone)
        result[kind.name] = s
    return result


ROWS = [  # key, title, unit, format
    ("cpu_ns_per_event", "recorder's CPU per event asked for", "ns", "{:,.1f}"),
    ("own_events", "events of the recorder itself", "", "{:,.0f}"),
    ("own_share", "  of all that it recorded", "%", "{:.1f}"),
    ("events_per_mib", "events per MiB of ring", "", "{:,.0f}"),
    ("seconds_per_mib", "seconds of this load per MiB of ring", "s", "{:.4f}"),
    ("load_ns_per_call", "the load's time per call", "ns", "{:,.0f}"),
    ("load_slowdown", "  against alone", "x", "{:.2f}"),
    ("trigger_to_file_ms", "signal to whole file", "ms", "{:,.0f}"),
    ("trigger_events", "  with so many events in memory", "", "{:,.0f}"),
    ("trigger_ns_per_event", "  per event", "ns", "{:,.1f}"),
    ("trigger_same_ms", "  with as many as perf's rings hold", "ms", "{:,.0f}"),
    ("lost", "records lost", "", "{:,.0f}"),
]


def table(result):
    names = ["alone", Perf.name, PerfOverwrite.name, Flightrec.name]
    out = [f"{'':44}" + "".join(f"{n:>24}" for n in names)]
    for key, title, unit, form in ROWS:
        cells = [result["syscalls"].get(n, {}).get(key) for n in names]
        texts = ["–" if c is None else f"{form.format(c)} {unit}".strip() for c in cells]
        out.append(f"{title:44}" + "".join(f"{t:>24}" for t in texts))
    return "\n".join(out)


def ratios(result):
    s = result["syscalls"]
    perf, over, ours = s[Perf.name], s[PerfOverwrite.name], s[Flightrec.name]
    return {
        "cpu_per_event_perf_over_ours": ratio(perf["cpu_ns_per_event"], ours["cpu_ns_per_event"]),
        "history_per_mib_ours_over_perf_overwrite": ratio(ours["events_per_mib"], over["events_per_mib"]),
        "cpu_per_event_ring_memory_over_ours": ratio(s[FlightrecInMemory.name]["cpu_ns_per_event"], ours["cpu_ns_per_event"]),
        "slowdown_perf_over_ours": ratio(perf["load_slowdown"], ours["load_slowdown"]),
        "slowdown_perf_overwrite_over_ours": ratio(over["load_slowdown"], ours["load_slowdown"]),
        "trigger_same_events_perf_overwrite_over_ours": ratio(over["trigger_same_ms"], ours["trigger_same_ms"]),
        "trigger_per_event_perf_overwrite_over_ours": ratio(over["trigger_ns_per_event"], ours["trigger_ns_per_event"]),
        "merge_over_cat": result["merge"]["of_cat"],
    }


TARGETS = [  # what is measured, limit, whether the limit is an upper limit, function that takes the value from the result
    ("own events", 0, True, lambda r: r["syscalls"][Flightrec.name]["own_events"]),
    ("recorder's ns per event", 60, True, lambda r: r["syscalls"][Flightrec.name]["cpu_ns_per_event"]),
    ("history per MiB against perf record --overwrite", 55, False,
     lambda r: r["ratios"]["history_per_mib_ours_over_perf_overwrite"]),
    ("side-band: recorder's us per exec'd process", 20, True, lambda r: r["storm"][Flightrec.name]["cpu_us_per_process"]),
    ("idle, default profile: % of one CPU", 0.5, True, lambda r: r["idle"]["cpu_percent"]),
    ("idle: resident MiB beyond the ring, with BPF rings and tables", 80, True, lambda r: r["idle"]["rss_beyond_ring_mib"]),
]


def verdicts(result):
    out = []
    more = tracepoints.TARGETS + triggers.TARGETS + stacks.TARGETS + switches.TARGETS + rings.TARGETS + opening.TARGETS + reports.TARGETS + fleets.TARGETS + (disk.TARGETS if "disk" in result else [])
    for what, limit, upper, get in TARGETS + more:
        value = get(result)
        good = value is not None and (value <= limit if upper else value >= limit)
        out.append({"what": what, "value": value, "limit": limit, "upper": upper, "reached": good})
    return out


def report(result):
    m, i = result["merge"], result["idle"]
    print(table(result))
    print()
    tracepoints.report(result["tracepoints"])
    print()
    print(storm.rows(result["storm"]))
    print()
    print(f"merge of {m['mib_in']:,.0f} MiB to {m['bytes_out'] / 1e6:,.0f} MB: {m['mb_per_s']:,.0f} MB/s written, "
          f"{m['rss_mib']:.0f} MiB resident; cat and sync of the output: {m['cat_mb_per_s']:,.0f} MB/s")
    print(f"idle, default profile, {i['seconds']:.0f} s: {i['cpu_percent']:.3f} % of one CPU, {i['syscalls_per_s']:.1f} "
          f"system calls a second, {i['rss_mib']:.1f} MiB resident with a ring of {i['ring_mib']:.0f} MiB "
          f"(peak {i['peak_rss_mib']:.1f} MiB)")
    memory, k = result["syscalls"][FlightrecInMemory.name], result["idle_memory"]
    print(f"with RingMemory=: {memory['cpu_ns_per_event']:.1f} ns per event; idle {k['cpu_percent']:.3f} % of one CPU, "
          f"{k['syscalls_per_s']:.1f} system calls a second")
    if "disk" in result:
        disk.report(result)
    print()
    triggers.report(result)
    switches.report(result["switches"])
    rings.report(result["rings"])
    opening.report(result["opening"])
    reports.report(result["reports"])
    fleets.report(result["fleet"])
    print()
    stacks.report(result)
    print()
    for name, value in result["ratios"].items():
        print(f"{name:48} {'–' if value is None else f'{value:,.2f}'}")
    print()
    for v in result["targets"]:
        value = "–" if v["value"] is None else f"{v['value']:,.3f}"
        print(f"{'reached' if v['reached'] else 'MISSED ':8} {v['what']}: {value} ({'at most' if v['upper'] else 'at least'} {v['limit']})")


def only_fleet(work, args):
    """Measures only the fleet."""
    try:
        result = {"machine": measure.machine(), "fleet": fleets.bench(work, args)}
    finally:
        measure.end_all()
        shutil.rmtree(work, ignore_errors=True)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    fleets.report(result["fleet"])
    return 0 if all(get(result) <= limit for _, limit, _, get in fleets.TARGETS) else 1


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--bin", type=Path, default=Path("build/release/bin"))
    p.add_argument("--json", type=Path, help="write the result here")
    p.add_argument("--quick", action="store_true", help="one turn of 1 s, 10 s of idling: for a first look only")
    p.add_argument("--turns", type=int)
    p.add_argument("--seconds", type=float, help="of load in each turn")
    p.add_argument("--idle", type=float, help="seconds of idling")
    p.add_argument("--storm", type=int, help="so many short processes a turn")
    p.add_argument("--ring-mib", type=int, default=64, help="in all; a power of two")
    p.add_argument("--only-fleet", action="store_true", help="measure only the fleet")
    args = p.parse_args()
    args.turns = args.turns or (1 if args.quick else 3)
    args.seconds = args.seconds or (1 if args.quick else 3)
    args.idle = args.idle or (10 if args.quick else 60)
    args.storm = args.storm or (5000 if args.quick else 20000)
    args.bin = args.bin.resolve()
    measure.setup(args)

    work = Path(tempfile.mkdtemp(prefix="flightrec-bench."))
    if args.only_fleet:
        return only_fleet(work, args)
    try:
        result = {"machine": measure.machine(), "settings": {"turns": args.turns, "seconds": args.seconds, "ring_mib": args.ring_mib}}
        say(f"idle for {args.idle:.0f} s")
        result["idle"] = measure.idle(work, args)
        result["idle_memory"] = measure.idle(work, args, FlightrecInMemory)
        result["syscalls"] = syscall_bench(work, args)
        say("tracepoints: perf record, perf's rings, BPF programs")
        result["tracepoints"] = tracepoints.bench(work, args, median)
        say(f"storm of {args.storm} processes")
        result["storm"] = storm.bench(work, args, median)
        result["storm"]["scan"] = storm.scan(work, args)
        say("triggers: to the closed window, storms, overhead of probes")
        result["triggers"] = triggers.bench(work, args)
        say("switches with the event offcpu")
        result["switches"] = switches.bench(work, args)
        say("two rings, one of them with a flood of switches")
        result["rings"] = rings.bench(work, args)
        say("many tracepoints: open and close")
        result["opening"] = opening.bench(work, args)
        say("flightrec-report against perf report")
        result["reports"] = reports.bench(work, args)
        say("user stacks of ordinary programs")
        result["stacks"] = stacks.bench(work, args)
        say("a fleet of 1,000 machines, an index of 100,000 dumps")
        result["fleet"] = fleets.bench(work, args)
        say("merge against cat")
        result["merge"] = disk.merge(work, 256 if args.quick else 4096)
        if not args.quick:
            say("dumps against fio")
            result["disk"] = disk.measure(work, args)
        result["ratios"] = ratios(result)
        result["targets"] = verdicts(result)
    finally:
        measure.end_all()
        shutil.rmtree(work, ignore_errors=True)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=2) + "\n")
    report(result)
    return 0 if all(v["reached"] for v in result["targets"]) else 1


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("recording the machine needs root")
    sys.exit(main())
