# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorders that bench.py compares, as classes with the same methods, and measurements of their ordinary work."""
import contextlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402

EVENT = "raw_syscalls:sys_enter"
MIB = 1 << 20
started = []


def setup(args):
    harness.BIN = args.bin
    for name in ("flightrecd", "flightrecctl", "flightrec-merge", "frtest-syscalls"):
        harness.program(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def end_all():
    """Ends the programs of start() that still run. Called also after a failed measurement."""
    harness.end(*started)
    started.clear()


def start(*argv, **kwargs):
    p = harness.start(*argv, **kwargs)
    started.append(p)
    return p


@contextlib.contextmanager
def new_directory(work):
    path = Path(tempfile.mkdtemp(dir=work))
    yield path
    while os.path.ismount(path / "memory"):
        harness.must("umount", path / "memory")
    shutil.rmtree(path)


@contextlib.contextmanager
def recording(kind, work, args, *options):
    """Runs a recorder of the class KIND in a new directory. Removes the directory at the end."""
    with new_directory(work) as directory:
        recorder = kind(directory, args, *options)
        recorder.start()
        try:
            yield recorder
        finally:
            end_all()


def machine():
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "perf": harness.run("perf", "--version").out.strip(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def syscalls(seconds):
    """Runs frtest-syscalls on the last CPU until it ends."""
    return harness.load("syscalls", "-t", seconds, "-c", harness.last_cpu())


def first_file(what, directory, pattern, seconds=60):
    """Waits for a file that matches PATTERN and returns its path. Looks every 0.2 ms, because callers measure how long the file
    takes."""
    deadline = time.monotonic() + seconds
    while not (found := sorted(directory.glob(pattern))):
        assert time.monotonic() < deadline, f"after {seconds} s still no {what}"
        time.sleep(0.0002)
    return found[0]


class Perf:
    """perf record. Its kernel rings have as much memory as all rings of another recorder together. It keeps its history on the
    disk."""

    name = "perf record"
    dumps = False
    extra = ()

    def __init__(self, directory, args, *options):
        self.directory = directory
        per_cpu = args.ring_mib * MIB // os.cpu_count()
        self.pages = (1 << (per_cpu.bit_length() - 1)) // os.sysconf("SC_PAGESIZE")
        self.options = options or ("-e", EVENT, "-m", self.pages)

    def start(self):
        self.process = start("perf", "record", "-a", *self.options, "-B", "-o", "perf.data", *self.extra, cwd=self.directory,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=harness.environment(HOME=str(self.directory)))
        # perf does not say when it begins to record. But it maps its kernel rings just before it begins.
        maps = Path(f"/proc/{self.pid}/maps")
        harness.until("rings of perf", lambda: maps.read_text().count("perf_event") >= os.cpu_count())
        time.sleep(0.7)

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=120)

    def result_file(self):
        return self.directory / "perf.data"

    def history(self, counts):
        """Returns the number of events per MiB of ring. This recorder does not keep its history in a ring, so the result is
        None."""
        return None


class PerfOverwrite(Perf):
    """perf record --overwrite --switch-output. A dump has the contents of the kernel rings at the time of the signal."""

    name = "perf record --overwrite"
    dumps = True
    extra = ("--overwrite", "--switch-output=signal")

    def dump(self):
        """Makes a dump. Returns the time from the signal until the file is complete, in ms."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGUSR2)
        # perf gives the file this name when the file is complete.
        self.first = first_file("dump of perf", self.directory, "perf.data.2*")
        return (time.monotonic() - begin) * 1e3

    def result_file(self):
        return self.first

    def history(self, counts):
        """Counts only the ring of the CPU that the load uses, because the rings of the other CPUs may not be full."""
        return counts.of_load_cpu / (self.pages * os.sysconf("SC_PAGESIZE") / MIB)


class Flightrec:
    """flightrecd in the foreground."""

    name = "flightrecd"
    dumps = True

    def __init__(self, directory, args, *options):
        self.directory = directory / "state"
        self.directory.mkdir()
        self.daemon = harness.Daemon(self.directory, *(options or ("-e", EVENT)), "-M", str(args.ring_mib * MIB))

    def start(self):
        self.daemon.start()
        started.append(self.daemon.process)
        time.sleep(0.7)

    @property
    def pid(self):
        return self.daemon.pid

    def dump(self):
        """Makes a dump. Returns the time from the signal until the dump is durable, in ms.

        This function waits for the JSON, because flightrecd writes it after the sync of the dump's directory.
        """
        begin = time.monotonic()
        self.daemon.signal(signal.SIGUSR1)
        self.first = first_file("dump", self.directory, "perf.data.sample.*Z.json").with_suffix("")
        return (time.monotonic() - begin) * 1e3

    def result_file(self):
        return self.first

    def history(self, counts):
        """Counts only the used part of the ring, because the ring may not yet be full."""
        return counts.total / (self.ring["used"] / MIB) if self.ring["used"] else None

    def stop(self):
        self.daemon.stop()


class FlightrecInMemory(Flightrec):
    """flightrecd with RingMemory=. The memory is a file on tmpfs, for which the recorder does the same as for memory that survives
    a crash of the machine."""

    name = "flightrecd RingMemory="

    def __init__(self, directory, args, *options):
        super().__init__(directory, args, *(options or ("-e", EVENT)), "--ring-memory", directory / "memory/ring")
        memory = directory / "memory"
        memory.mkdir()
        harness.must("mount", "-t", "tmpfs", "none", memory)


Counts = namedtuple("Counts", "total own lost of_load_cpu")


def count_events(path, pid):
    """Counts samples of a file with stock perf: all samples, samples of the process PID, lost samples, and samples on the CPU
    of the load."""
    total = own = on_cpu = 0
    cpu = f"[{harness.last_cpu():03d}]"
    p = start("perf", "script", "-i", path, "-G", "-F", "pid,tid,cpu", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in p.stdout:
        total += 1
        own += line.split("/", 1)[0].strip() == str(pid)
        on_cpu += cpu in line
    p.wait()  # an error of perf is ignored: the lines that it has written count
    stats = harness.run("perf", "report", "-i", path, "--stats", timeout=600).out
    found = re.search(r"LOST_SAMPLES events:\s+(\d+)", stats)
    return Counts(total, own, int(found.group(1)) if found else 0, on_cpu)


def record_syscalls(kind, work, args):
    """Runs the load once under one recorder, and makes a dump if the recorder can. Returns all measurements."""
    with recording(kind, work, args) as recorder:
        before = harness.cpu_seconds(recorder.pid)
        did = syscalls(args.seconds)
        time.sleep(1.5)  # until the recorder has drained the kernel rings
        cpu, lost = harness.cpu_seconds(recorder.pid) - before, None
        if issubclass(kind, Flightrec):
            recorder.ring = recorder.daemon.status()["ring"]
            lost = sum(recorder.daemon.lost().values())
        trigger_ms = recorder.dump() if recorder.dumps else None
        recorder.stop()
        counts = count_events(recorder.result_file(), recorder.pid)
        per_mib = recorder.history(counts)
    total, rate = counts.total, did["calls"] / (did["ns"] / 1e9)
    return {
        "calls": did["calls"],
        "load_ns_per_call": did["ns_per_call"],
        "cpu_ns_per_event": cpu * 1e9 / did["calls"],
        "events": total,
        "own_events": counts.own,
        "own_share": 100 * counts.own / total if total else None,
        "lost": lost if lost is not None else counts.lost,
        "events_per_mib": per_mib,
        "seconds_per_mib": per_mib / rate if per_mib else None,
        "trigger_to_file_ms": trigger_ms,
        "trigger_events": total if recorder.dumps else None,
        "trigger_ns_per_event": trigger_ms * 1e6 / total if trigger_ms and total else None,
    }


def trigger_after(kind, work, args, calls):
    """Returns the time from the signal to the complete file, in ms, for a ring with about CALLS events."""
    with recording(kind, work, args) as recorder:
        harness.load("syscalls", "-n", max(1, int(calls)), "-c", harness.last_cpu())
        time.sleep(1)
        took = recorder.dump()
        recorder.stop()
    return took


def cpu_ns(pid):
    """Returns the CPU time of all threads of a process in ns. (utime and stime are too coarse for a process that idles.)"""
    return sum(int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def wakeups(pid):
    """Returns how often the threads of a process have waited and gone on."""
    lines = (line for p in Path(f"/proc/{pid}/task").glob("*/status") for line in p.read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:"))


def idle(work, args, kind=Flightrec):
    """Measures a recorder of the class KIND with the default profile while the machine has nothing to do."""
    with recording(kind, work, args, "-F", "99", "--call-graph=fp") as recorder:
        time.sleep(2)
        cpu, begin = cpu_ns(recorder.pid), time.monotonic()
        stat = harness.run("perf", "stat", "-x", ";", "-e", EVENT, "-p", recorder.pid, "--", "sleep", args.idle,
                           timeout=args.idle + 30)
        seconds = time.monotonic() - begin
        cpu = (cpu_ns(recorder.pid) - cpu) / 1e9
        size = recorder.daemon.status()["ring"]["size"] / MIB
        status = Path(f"/proc/{recorder.pid}/status").read_text()
        memory = {k: int(v) / 1024 for k, v in re.findall(r"^(VmRSS|VmHWM):\s+(\d+)", status, re.M)}
        recorder.stop()
    calls = next((int(line.split(";")[0]) for line in stat.err.splitlines() if EVENT in line and line[:1].isdigit()), 0)
    return {"seconds": seconds, "cpu_percent": 100 * cpu / seconds, "syscalls_per_s": calls / seconds,
            "rss_mib": memory["VmRSS"], "peak_rss_mib": memory["VmHWM"], "ring_mib": size,
            "rss_beyond_ring_mib": memory["VmRSS"] - size}
