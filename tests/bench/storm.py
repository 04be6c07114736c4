# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the cost of side-band. Many processes start and end at once. They run without a recorder, and while each recorder
makes a CPU profile."""
import time

import harness
import measure
from measure import Flightrec, Perf, PerfOverwrite

PROFILE = ("-e", "cpu-clock", "-F", "99", "--call-graph=fp")
LINGER_S = 2  # until the recorder has drained the kernel rings
IDLE_PROCESSES = 1000


def cpu_over(recorder, action):
    """Returns the CPU time that a recorder uses during ACTION, and the duration of ACTION, in ns."""
    cpu, begin = measure.cpu_ns(recorder.pid), time.monotonic_ns()
    action()
    return measure.cpu_ns(recorder.pid) - cpu, time.monotonic_ns() - begin


def storm_under(kind, work, args):
    """Measures one storm. Subtracts the CPU time that the idle recorder needs in the same time."""
    with measure.recording(kind, work, args, *PROFILE) as recorder:
        idle = cpu_over(recorder, lambda: time.sleep(LINGER_S))
        did = {}
        took = cpu_over(recorder, lambda: (did.update(harness.load("storm", "-n", args.storm)), time.sleep(LINGER_S)))
        result = {"cpu_us_per_process": (took[0] - idle[0] * took[1] / idle[1]) / 1e3 / args.storm,
                  "ns_per_process": did["ns_per_process"]}
        if kind is Flightrec:
            status = recorder.daemon.status()
            result["lost"] = sum(n for cause, n in status["losses"].items() if cause != "throttled")
            result["auxiliary_bytes"] = status["sideband"]["file_bytes"]
        recorder.stop()
    return result


def bench(work, args, median):
    """Returns {name of the recorder or "alone": medians of all turns}, with the number of processes of a storm."""
    turns = []
    for _ in range(args.turns):
        turn = {"alone": {"ns_per_process": harness.load("storm", "-n", args.storm)["ns_per_process"]}}
        turns.append(turn | {kind.name: storm_under(kind, work, args) for kind in (Perf, PerfOverwrite, Flightrec)})
    return {name: {k: median([t[name][k] for t in turns]) for k in turns[0][name]} for name in turns[0]} | {"processes": args.storm}


def scan(work, args):
    """Measures the scan of /proc at the start of a recorder while there are many processes. Returns the time of the whole scan,
    and the time for each process."""
    sleepers = [harness.start("sleep", "600") for _ in range(IDLE_PROCESSES)]
    try:
        with measure.recording(Flightrec, work, args, *PROFILE) as recorder:
            sideband = recorder.daemon.status()["sideband"]
            recorder.stop()
    finally:
        harness.end(*sleepers)
    return {"processes": sideband["processes"], "seconds": sideband["scan_s"], "us_per_process": sideband["scan_s"] * 1e6 / sideband["processes"]}


def rows(result):
    """Returns the lines of the table."""
    names = ["alone", Perf.name, PerfOverwrite.name, Flightrec.name]
    out = [f"{result['processes']:,} short processes".ljust(44) + "".join(f"{n:>24}" for n in names)]
    for key, title, scale, unit in (("cpu_us_per_process", "recorder's CPU per process", 1, "us"),
                                    ("ns_per_process", "the storm's time per process", 1e-3, "us"),
                                    ("lost", "records lost", 1, ""), ("auxiliary_bytes", "auxiliary file", 2**-20, "MiB")):
        cells = [result.get(n, {}).get(key) for n in names]
        out.append(f"{title:44}" + "".join(f"{'–' if c is None else f'{c * scale:,.1f} {unit}'.strip():>24}" for c in cells))
    s = result["scan"]
    out.append(f"scan of /proc: {s['seconds'] * 1e3:.1f} ms for {s['processes']:,.0f} processes, {s['us_per_process']:.1f} us each")
    return "\n".join(out)
