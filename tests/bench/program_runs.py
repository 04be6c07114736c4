# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how long single runs of BPF programs take, from the run-time statistics that the kernel keeps of each program."""
import contextlib
import re
import statistics
import threading
import time
from pathlib import Path

PERF_EVENT = 7  # BPF_PROG_TYPE_PERF_EVENT
ENABLED = Path("/proc/sys/kernel/bpf_stats_enabled")
POLL_S = 0.0003  # shorter than the time between two samples of a CPU


@contextlib.contextmanager
def statistics_enabled():
    before = ENABLED.read_text()
    ENABLED.write_text("1")
    try:
        yield
    finally:
        ENABLED.write_text(before)


def number(name, text):
    found = re.search(rf"^{name}:\s+(\d+)$", text, re.M)
    return int(found[1]) if found else None


def open_statistics(pid, kind):
    """Returns the open files that tell the statistics of the programs of KIND to which the process PID has descriptors."""
    files = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            f = open(path)
        except FileNotFoundError:
            continue
        text = f.read()
        program = number("prog_id", text)
        if number("prog_type", text) == kind and program not in files:
            files[program] = f
        else:
            f.close()
    return list(files.values())


def read_runs(f):
    f.seek(0)
    text = f.read()
    return number("run_cnt", text), number("run_time_ns", text)


class Runs:
    """Notes the time of each run of the BPF programs for perf events of the process PID, until end(). The kernel only adds up all
    runs. So this reads the sums more often than the programs run, and leaves out the readings with more than one run."""

    def __init__(self, pid):
        self.files = open_statistics(pid, PERF_EVENT)
        self.ns = []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def poll(self):
        last = [read_runs(f) for f in self.files]
        while not self.done.is_set():
            time.sleep(POLL_S)
            for i, f in enumerate(self.files):
                runs, ns = read_runs(f)
                if runs == last[i][0] + 1:
                    self.ns.append(ns - last[i][1])
                last[i] = runs, ns

    def end(self):
        """Returns the median of the times in ns; None if no run was seen alone."""
        self.done.set()
        self.thread.join()
        for f in self.files:
            f.close()
        return statistics.median(self.ns) if self.ns else None
