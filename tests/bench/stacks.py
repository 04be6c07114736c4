# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares how whole the user stacks of ordinary programs are, and how much memory they take: by frame pointers, by DWARF (both
by perf record), and by the tables of flightrecd. Measures the median time that its BPF program takes for a sample with its walk.
One program runs at a time, on an otherwise idle machine."""
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import measure  # imported first, because it adds the folder of harness.py to sys.path
import callchains
import harness
import program_runs
import programs

HZ = 499
SETTLE_S = 3  # until the recorder has made the tables of a program
RING_S = 12   # the first samples of a frame compress worst, and a dump ends a frame
QUICK = ("python3", "sort", "redis", "short processes")
SHORT_COMMS = {"sh", "head", "sort", "gzip", "wc"}  # of the program "short processes"


def of_program(stacks, program, pids):
    if program.comm is None:
        return [s for s in stacks if s.comm in SHORT_COMMS]
    return [s for s in stacks if s.pid in pids]


def figures(path, program, since_ns, may_fail=False):
    """Returns the figures of a file, which can have samples of other programs, too."""
    stacks, pids = callchains.read(path, may_fail=may_fail), program.pids()
    mine = of_program([s for s in stacks if s.ns > since_ns], program, pids)
    return {**callchains.summary(mine), "file_bytes": path.stat().st_size / len(stacks) if stacks else None}


def by_perf(directory, program, seconds, how):
    """Records the processes of the program, or the whole machine for short processes."""
    path = directory / f"perf.{how}"
    pids = program.pids()
    which = ("-p", ",".join(map(str, pids))) if pids else ("-a",)
    harness.must("perf", "record", *which, "-q", "-B", "-e", "cpu-clock", "-F", HZ, "--call-graph", how, "-m", "8M", "-o",
                 path, "--", "sleep", seconds)
    return figures(path, program, 0, may_fail=True)


def in_ring(daemon):
    """Returns how many bytes are used in the ring, and its samples. A dump lets all samples of before go into the ring."""
    daemon.dump_by_control().unlink()
    ring = daemon.status()["ring"]
    return ring["used"], ring["samples"]


def in_rings(recorders):
    return {how: in_ring(recorder.daemon) for how, recorder in recorders.items()}


def by_flightrecd(work, args, program, seconds):
    """Returns {call graph: figures}. The recorders run at the same time, because the size of a sample depends on what the machine
    does: it is compared with the same samples in both rings."""
    with ExitStack() as stack:
        recorders = {how: stack.enter_context(measure.recording(
            measure.Flightrec, work, args, "-F", HZ, "-e", "cpu-clock", "--call-graph", how, "--no-compression", "-m", "8M"))
            for how in ("fp", "unwind")}
        time.sleep(SETTLE_S)
        before = in_rings(recorders)
        begin = time.monotonic_ns()
        with program_runs.statistics_enabled():
            runs = program_runs.Runs(recorders["unwind"].pid)
            time.sleep(seconds)
            run_ns = runs.end()
        paths = {how: recorder.daemon.dump_by_control() for how, recorder in recorders.items()}
        after = in_rings(recorders)
        for recorder in recorders.values():
            recorder.stop()
        result = {}
        for how, path in paths.items():
            used, samples = (now - then for now, then in zip(after[how], before[how]))
            result[how] = {**figures(path, program, begin), "ring_bytes": used / samples if samples > 0 else None}
        return {**result, "unwind": {**result["unwind"], "run_ns": run_ns}}


def one(work, args, place, name, seconds):
    """Returns {way: figures} of the program NAME, or None if it is not installed. The ways of perf have a run of the program of
    their own."""
    print(name, file=sys.stderr, flush=True)
    ways = {"perf fp": lambda program, directory: by_perf(directory, program, seconds, "fp"),
            "perf dwarf": lambda program, directory: by_perf(directory, program, seconds, "dwarf"),
            "flightrecd": lambda program, directory: by_flightrecd(work, args, program, max(seconds, RING_S))}
    result = {}
    for way, measure_it in ways.items():
        try:
            program = programs.Running(name, place)
        except FileNotFoundError:
            return None
        try:
            time.sleep(1)
            with measure.new_directory(work) as directory:
                result[way] = measure_it(program, directory)
        finally:
            program.end()
    return result | {f"flightrecd {how}": r for how, r in result.pop("flightrecd").items()}


def bench(work, args, names=None):
    names = names or (QUICK if args.quick else programs.PROGRAMS)
    with measure.new_directory(work) as directory:
        place = programs.Workplace(Path(directory))
        return {name: one(work, args, place, name, max(2, args.seconds)) for name in names}


def long_running(result):
    return (r for name, r in result["stacks"].items() if r and name != "short processes")


def worst_broken(result):
    shares = (r["flightrecd unwind"]["broken_percent"] for r in long_running(result))
    return max((s for s in shares if s is not None), default=None)


def worst_ring_bytes(result):
    sizes = ((r["flightrecd unwind"]["ring_bytes"], r["flightrecd fp"]["ring_bytes"]) for r in long_running(result))
    return max((unwind / fp for unwind, fp in sizes if unwind and fp), default=None)


TARGETS = [  # what is measured, limit, whether the limit is an upper limit, function that takes the value from the result
    ("broken user stacks by tables, worst program, %", 1, True, worst_broken),
    ("ring bytes a sample, by tables / by frame pointers, worst program", 1.3, True, worst_ring_bytes),
]
COLUMNS = [("broken_percent", "broken", "{:.1f} %"), ("median_depth", "depth", "{:.0f}"), ("file_bytes", "file B", "{:,.0f}"),
           ("ring_bytes", "ring B", "{:,.0f}")]


def report(result):
    ways = ["perf fp", "perf dwarf", "flightrecd fp", "flightrecd unwind"]
    print(f"{'user stacks: broken, median depth,':36}" + "".join(f"{w:^34}" for w in ways))
    print(f"{'bytes of a sample in file and ring':36}" + "".join(f"{title:>8}" for _ in ways for _, title, _ in COLUMNS) +
          "     BPF run")
    for name, r in result["stacks"].items():
        if r is None:
            print(f"  {name:34}not installed")
            continue
        cells = [form.format(r[w][key]) if r[w].get(key) is not None else "–" for w in ways for key, _, form in COLUMNS]
        print(f"  {name:34}" + "".join(f"{c:>8}" for c in cells) + nanoseconds(r))


def nanoseconds(r):
    ns = r["flightrecd unwind"]["run_ns"]
    return f"{ns:>10,.0f} ns" if ns else ""


def main():
    """Runs only this part: stacks.py --bin build/release/bin [PROGRAM...]"""
    import argparse
    import tempfile
    p = argparse.ArgumentParser(description=main.__doc__)
    p.add_argument("--bin", type=Path, default=Path("build/release/bin"))
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--ring-mib", type=int, default=256)
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    args.quick = False
    args.bin = args.bin.resolve()
    measure.setup(args)
    with tempfile.TemporaryDirectory(prefix="flightrec-stacks.") as work:
        try:
            report({"stacks": bench(Path(work), args, args.names)})
        finally:
            measure.end_all()


if __name__ == "__main__":
    main()
