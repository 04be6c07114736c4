# SPDX-License-Identifier: GPL-2.0-or-later
"""What one event of a tracepoint costs the load and the recorder: perf record, our kernel rings of perf, and our BPF programs."""
import time

import harness
import measure
from measure import EVENT, Flightrec, Perf

PAGES = 2048


def perf(*options):
    return Perf, ("-e", EVENT, "-m", PAGES, *options)


def ours(*terms):
    return Flightrec, ("-m", f"{PAGES * 4 // 1024}M", "-e", f"{EVENT}/{','.join(terms)}/")


PLAIN = {
    "perf record": perf(),
    "ours, capture=perf": ours("capture=perf"),
    "ours, capture=bpf": ours("capture=bpf"),
}
STACKS = {
    "perf record -g": perf("-g"),
    "perf record --call-graph dwarf": perf("--call-graph", "dwarf"),
    "ours, capture=perf, fp": ours("capture=perf", "call-graph=fp"),
    "ours, capture=bpf, fp": ours("capture=bpf", "call-graph=fp"),
    "ours, capture=bpf, unwind": ours("capture=bpf", "call-graph=unwind"),
}
KINDS = PLAIN | STACKS


def load_beside(work, args, kind, options):
    """Runs the load once beside a recorder."""
    with measure.recording(kind, work, args, *options) as recorder:
        before = harness.cpu_seconds(recorder.pid)
        did = measure.syscalls(args.seconds)
        time.sleep(1.5)  # until the recorder has drained the kernel rings
        cpu = harness.cpu_seconds(recorder.pid) - before
        lost = sum(recorder.daemon.lost().values()) if kind is Flightrec else None
        recorder.stop()
    return {"ns_per_call": did["ns_per_call"], "cpu_ns": cpu * 1e9 / did["calls"], "lost": lost}


def turn(work, args):
    result = {}
    for name, (kind, options) in KINDS.items():
        alone = measure.syscalls(args.seconds / 3)["ns_per_call"]
        result[name] = load_beside(work, args, kind, options)
        result[name]["slowdown_ns"] = result[name]["ns_per_call"] - alone
        time.sleep(0.5)
    return result


def bench(work, args, median):
    turns = [turn(work, args) for _ in range(args.turns)]
    return {name: {key: median([t[name][key] for t in turns]) for key in turns[0][name]} for name in KINDS}


def report(result):
    print(f"{'one event of ' + EVENT:44}{'slows the load by':>20}{'CPU of the recorder':>22}{'lost':>12}")
    for name, r in result.items():
        lost = "–" if r["lost"] is None else f"{r['lost']:,.0f}"
        print(f"{'  ' + name:44}{r['slowdown_ns']:>17,.0f} ns{r['cpu_ns']:>19,.1f} ns{lost:>12}")


def of(result, name, key, other):
    return result["tracepoints"][name][key] / result["tracepoints"][other][key]


TARGETS = [
    ("tracepoints in BPF: slowdown of the load against perf record", 0.5, True,
     lambda r: of(r, "ours, capture=bpf", "slowdown_ns", "perf record")),
    ("  with user stacks, against perf record --call-graph dwarf", 0.5, True,
     lambda r: of(r, "ours, capture=bpf, unwind", "slowdown_ns", "perf record --call-graph dwarf")),
    ("tracepoints in BPF: recorder's ns per event", 45, True, lambda r: r["tracepoints"]["ours, capture=bpf"]["cpu_ns"]),
]
