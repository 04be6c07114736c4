# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements of bench.py, and the recorders that are measured, each behind the same few verbs."""
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


def teardown():
    """End whatever a measurement that broke off left running."""
    for p in started:
        if p.poll() is None:
            p.kill()
            p.wait()


def machine():
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "perf": harness.run("perf", "--version").out.strip(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def syscalls(seconds):
    """The load to its end, on the last CPU."""
    return harness.load("syscalls", "-t", seconds, "-c", harness.last_cpu())


def start(*argv, **kwargs):
    p = harness.start(*argv, **kwargs)
    started.append(p)
    return p


def appears(what, directory, pattern, seconds=60):
    """The first file that matches; looked for often enough to time it by the tenth of a ms."""
    end = time.monotonic() + seconds
    while not (found := sorted(directory.glob(pattern))):
        assert time.monotonic() < end, f"after {seconds} s still no {what}"
        time.sleep(0.0002)
    return found[0]


class Perf:
    """perf record, with as much kernel ring as the others have in all; its history is the disk."""

    name = "perf record"
    dumps = False
    extra = ()

    def __init__(self, directory, args):
        self.directory = directory
        self.ring_bytes = args.ring_mib * MIB
        per_cpu = self.ring_bytes // os.cpu_count()
        self.pages = (1 << (per_cpu.bit_length() - 1)) // os.sysconf("SC_PAGESIZE")
        self.process = None

    def start(self):
        self.process = start("perf", "record", "-a", "-e", EVENT, "-m", self.pages, "-B", "-o", "perf.data", *self.extra,
                             cwd=self.directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env=harness.environment(HOME=str(self.directory)))
        self.wait_until_it_records()

    def wait_until_it_records(self):
        """perf says nothing when it begins: it does so once its rings are mapped and its file has grown or it polls."""
        maps = Path(f"/proc/{self.process.pid}/maps")
        harness.until("ring of perf", lambda: maps.read_text().count("perf_event") >= os.cpu_count())
        time.sleep(0.7)

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=120)

    def files(self):
        return [self.directory / "perf.data"]

    def counts(self):
        """Counts of the events of its files."""
        return count_events(self.files(), self.pid)

    def history(self, counts):
        return None

    def cpu(self):
        return harness.cpu_seconds(self.pid)


class PerfOverwrite(Perf):
    """perf record --overwrite --switch-output: a dump is what its kernel rings hold at the signal."""

    name = "perf record --overwrite"
    dumps = True
    extra = ("--overwrite", "--switch-output=signal")

    def dump(self):
        """From the signal until the file is there and is no longer written; ms."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGUSR2)
        path = appears("dump of perf", self.directory, "perf.data.2*")
        # It renames at last, but writes the header's end before: the name is the end.
        self.first = path
        return (time.monotonic() - begin) * 1e3

    def files(self):
        return [self.first]

    def history(self, counts):
        """Events per MiB of the ring of the load's CPU: whether the others are full is not perf's doing."""
        return counts.of_load_cpu / (self.pages * os.sysconf("SC_PAGESIZE") / MIB)


class Flightrec:
    """flightrecd in the foreground, as the tests start it."""

    name = "flightrecd"
    dumps = True

    def __init__(self, directory, args, *options):
        self.directory = directory / "state"
        self.directory.mkdir()
        self.ring_bytes = args.ring_mib * MIB
        self.options = options or ("-e", EVENT)
        self.daemon = None

    def start(self):
        self.daemon = harness.Daemon(self.directory, *self.options, "-M", str(self.ring_bytes))
        self.daemon.start()
        started.append(self.daemon.process)
        time.sleep(0.7)

    @property
    def pid(self):
        return self.daemon.pid

    def cpu(self):
        return harness.cpu_seconds(self.pid)

    def dump(self):
        """From the signal until the file is durable: the JSON is made when its directory has been synced; ms."""
        begin = time.monotonic()
        self.daemon.signal(signal.SIGUSR1)
        self.first = appears("dump", self.directory, "perf.data.sample.*Z.json").with_suffix("")
        return (time.monotonic() - begin) * 1e3

    def files(self):
        return [self.first]

    def counts(self):
        return count_events(self.files(), self.pid)

    def lost(self):
        return sum(self.daemon.lost().values())

    def history(self, counts):
        """Events per MiB of what the ring really takes, so that a ring that is not yet full is judged fairly."""
        used = self.ring["used"]
        return counts.total / (used / MIB) if used else None

    def stop(self):
        self.daemon.stop()


Counts = namedtuple("Counts", "total own lost of_load_cpu")


def count_events(paths, pid):
    """Samples of perf.data files, by stock perf: all, those of PID, lost ones; one pass, not kept in memory."""
    total = own = lost = on_cpu = 0
    cpu = f"[{harness.last_cpu():03d}]"
    for path in paths:
        p = start("perf", "script", "-i", path, "-G", "-F", "pid,tid,cpu", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        mine = str(pid)
        for line in p.stdout:
            total += 1
            own += line.split("/", 1)[0].strip() == mine
            on_cpu += cpu in line
        p.wait()
        # perf ends with an error where a file holds what it cannot make out; what it printed counts all the same.
        stats = harness.run("perf", "report", "-i", path, "--stats", timeout=600).out
        found = re.search(r"LOST_SAMPLES events:\s+(\d+)", stats)
        lost += int(found.group(1)) if found else 0
    return Counts(total, own, lost, on_cpu)


def record_syscalls(recorder, seconds):
    """One recorder, one load, one dump where it has dumps; everything that is measured of it."""
    recorder.start()
    try:
        before = recorder.cpu()
        did = syscalls(seconds)
        # Until it has taken in what the load left in the kernel's rings.
        time.sleep(1.5)
        cpu = recorder.cpu() - before
        if isinstance(recorder, Flightrec):
            recorder.ring = recorder.daemon.status()["ring"]
        trigger_ms = recorder.dump() if recorder.dumps else None
        lost = recorder.lost() if hasattr(recorder, "lost") else None
        recorder.stop()
    finally:
        teardown()
    counts = recorder.counts()
    total, per_mib = counts.total, recorder.history(counts)
    rate = did["calls"] / (did["ns"] / 1e9)
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
    """Signal to file, in ms, with about so many events in memory."""
    directory = Path(tempfile.mkdtemp(dir=work))
    recorder = kind(directory, args)
    recorder.start()
    try:
        harness.load("syscalls", "-n", max(1, int(calls)), "-c", harness.last_cpu())
        time.sleep(1)
        took = recorder.dump()
        recorder.stop()
    finally:
        teardown()
    shutil.rmtree(directory)
    return took


def cpu_ns(pid):
    """Time on a CPU of all threads of a process, to the ns: utime and stime are too coarse for one that idles."""
    return sum(int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def idle(kind, work, args):
    """The default profile on a machine with nothing to do."""
    directory = Path(tempfile.mkdtemp(dir=work))
    recorder = kind(directory, args, "-F", "99", "-g")
    recorder.start()
    try:
        time.sleep(2)
        cpu, begin = cpu_ns(recorder.pid), time.monotonic()
        stat = harness.run("perf", "stat", "-x", ";", "-e", EVENT, "-p", recorder.pid, "--", "sleep", args.idle,
                           timeout=args.idle + 30)
        seconds = time.monotonic() - begin
        cpu = (cpu_ns(recorder.pid) - cpu) / 1e9
        ring = recorder.daemon.status()["ring"]
        memory = {k: int(v) / 1024 for k, v in re.findall(r"^(VmRSS|VmHWM):\s+(\d+)", Path(f"/proc/{recorder.pid}/status").read_text(), re.M)}
        recorder.stop()
    finally:
        teardown()
    calls = next((int(line.split(";")[0]) for line in stat.err.splitlines() if EVENT in line and line[:1].isdigit()), 0)
    shutil.rmtree(directory)
    size = ring["size"] / MIB  # taken at the start
    return {"seconds": seconds, "cpu_percent": 100 * cpu / seconds, "syscalls_per_s": calls / seconds,
            "rss_mib": memory["VmRSS"], "peak_rss_mib": memory["VmHWM"], "ring_mib": size,
            "rss_beyond_ring_mib": memory["VmRSS"] - size}


def merge(kind, work, args):
    """Three dumps with overlapping windows into one file; against writing the same bytes with cat and sync."""
    directory = Path(tempfile.mkdtemp(dir=work))
    recorder = kind(directory, args)
    recorder.start()
    try:
        samples = []
        for _ in range(3):
            syscalls(min(args.seconds, 2))
            time.sleep(0.5)
            samples.append(recorder.daemon.dump_by_control())
        recorder.stop()
    finally:
        teardown()
    bytes_in = sum(p.stat().st_size for p in samples)
    output = recorder.directory / "perf.data"
    begin = time.monotonic()
    r = harness.merge(recorder.directory, "--keep", timeout=600)
    took = time.monotonic() - begin
    assert r.code == 0, r.err
    bytes_out = output.stat().st_size
    cat = cat_seconds(output, directory / "copy")
    records = count_events([output], 0).total
    shutil.rmtree(directory)
    return {"files": len(samples), "bytes_in": bytes_in, "bytes_out": bytes_out, "records": records, "seconds": took,
            "merge_mb_per_s": bytes_out / 1e6 / took,
            "cat_mb_per_s": bytes_out / 1e6 / cat}


def cat_seconds(source, copy):
    begin = time.monotonic()
    harness.must("sh", "-c", f"cat '{source}' > '{copy}'; sync '{copy}'", timeout=600)
    return time.monotonic() - begin
