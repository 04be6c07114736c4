# SPDX-License-Identifier: GPL-2.0-or-later
"""What side-band costs: a storm of processes that exec and end at once, alone and under each recorder's CPU profile."""
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import harness
import measure
from measure import Flightrec, Perf, PerfOverwrite

PROFILE = ("-e", "cpu-clock", "-F", "99", "-g")
LINGER_S = 2  # until the recorder has taken in what the storm left in the kernel's rings
IDLE_PROCESSES = 1000


def storm(processes):
    return harness.load("storm", "-n", processes)


class ProfilingPerf(Perf):
    """perf record of the profile, as one would use it."""

    def start(self):
        self.process = measure.start("perf", "record", "-a", *PROFILE, "-B", "-o", "perf.data", *self.extra, cwd=self.directory,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env=harness.environment(HOME=str(self.directory)))
        self.wait_until_it_records()


class ProfilingPerfOverwrite(ProfilingPerf):
    name, dumps, extra = PerfOverwrite.name, PerfOverwrite.dumps, PerfOverwrite.extra


class ProfilingFlightrec(Flightrec):
    def __init__(self, directory, args):
        super().__init__(directory, args, *PROFILE)


def under(recorder, processes):
    """One storm; the recorder's CPU for it, less what it takes for as long with nothing to do."""
    recorder.start()
    try:
        idle = cpu_over(recorder, lambda: time.sleep(LINGER_S))
        did = {}
        took = cpu_over(recorder, lambda: (did.update(storm(processes)), time.sleep(LINGER_S)))
        result = {"cpu_us_per_process": (took[0] - idle[0] * took[1] / idle[1]) / 1e3 / processes,
                  "ns_per_process": did["ns_per_process"]}
        if isinstance(recorder, Flightrec):
            status = recorder.daemon.status()
            result["lost"] = sum(n for cause, n in status["losses"].items() if cause != "throttled")
            result["auxiliary_bytes"] = status["sideband"]["file_bytes"]
        recorder.stop()
    finally:
        measure.teardown()
    return result


def cpu_over(recorder, what):
    """(ns of CPU, ns of time)."""
    cpu, begin = measure.cpu_ns(recorder.pid), time.monotonic_ns()
    what()
    return measure.cpu_ns(recorder.pid) - cpu, time.monotonic_ns() - begin


def bench(work, args, median):
    """{recorder: medians over the turns}."""
    turns = []
    for _ in range(args.turns):
        turn = {"alone": {"ns_per_process": storm(args.storm)["ns_per_process"]}}
        for kind in (ProfilingPerf, ProfilingPerfOverwrite, ProfilingFlightrec):
            directory = Path(tempfile.mkdtemp(dir=work))
            turn[kind.name] = under(kind(directory, args), args.storm)
            shutil.rmtree(directory)
        turns.append(turn)
    return {name: {k: median([t[name][k] for t in turns]) for k in turns[0][name]} for name in turns[0]} | {"processes": args.storm}


def scan(work, args):
    """What the scan of /proc at the start takes for each process, with many of them."""
    sleepers = [measure.start("sleep", "600") for _ in range(IDLE_PROCESSES)]
    recorder = ProfilingFlightrec(Path(tempfile.mkdtemp(dir=work)), args)
    try:
        recorder.start()
        sideband = recorder.daemon.status()["sideband"]
        recorder.stop()
    finally:
        measure.teardown()
        measure.started[:] = [p for p in measure.started if p not in sleepers]
    return {"processes": sideband["processes"], "seconds": sideband["scan_s"], "us_per_process": sideband["scan_s"] * 1e6 / sideband["processes"]}


def rows(result):
    """The table's lines."""
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
