# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm: processes start and end as fast as the machine can. The recorder's memory and its auxiliary file stay bounded, and
later processes still have the right names.

The environment variable FLIGHTREC_STORM is the number of processes.
"""
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from harness import FULL, Daemon, environment, finish_load, must, program, run, start_load, until
from judge import Judge, parse_phases, samples_of
from matrix_cases import STARTERS, Programs

PROCESSES = int(os.environ.get("FLIGHTREC_STORM", 200000 if FULL else 20000))
MIB = 1 << 20
AUXILIARY_MAX = 64 * MIB
# libbpf reads the types of the kernel (BTF), about 8 MiB, to load BPF programs. The unwinder needs up to 30 MiB for a moment, to
# make the table of a program as large as a compiler, which other tests run.
BEYOND_RING_MAX = 72 * MIB
LAST, LAST_MS = 20, 60


class Watch(threading.Thread):
    """A thread that repeatedly appends the size of the auxiliary file to .sizes."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.sizes, self.over = path, [], threading.Event()

    def run(self):
        while not self.over.wait(0.25):
            try:
                self.sizes.append(self.path.stat().st_size)
            except FileNotFoundError:  # a compaction is replacing the file at this moment
                pass

    def end(self):
        self.over.set()
        self.join()
        return self.sizes


def memory(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {k: int(v) * 1024 for k, v in re.findall(r"^(VmHWM|VmRSS|RssShmem):\s+(\d+)", text, re.M)}


def kernel_buffers(pid):
    """Returns the size in bytes of the kernel rings, and of the maps of BPF: BPF rings and unwind tables, which UnwindMemory=
    bounds. The kernel counts them as memory of the process."""
    maps = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{pid}/smaps").read_text(), flags=re.M)
    return sum(int(re.search(r"^Rss:\s+(\d+)", m, re.M)[1]) * 1024 for m in maps if "[perf_event]" in m or "bpf-map" in m)


def side_band_lost(status):
    return {k: n for k, n in status["losses"].items() if n and k in ("side-band-lost", "side-band-queue", "auxiliary-write")}


@pytest.fixture(scope="module")
def storm(tmp_path_factory):
    """Makes one storm while a recorder runs with the default configuration. Returns a dictionary of measurements and files."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc: the last processes cannot be compiled")
    directory = tmp_path_factory.mktemp("storm")
    (directory / "state").mkdir()
    programs = Programs(directory, only=("first",))
    alone = finish_load(start_load("storm", "-n", 2000))
    d = Daemon(directory / "state").start()
    try:
        scans = d.status()["sideband"]["scans"]
        watch = Watch(directory / "state/perf.data.auxiliary")
        watch.start()
        p = start_load("storm", "-n", PROCESSES)
        p.wait(180 + PROCESSES / 20)
        seen = {"alone": alone, "load": finish_load(p), "last": last_processes(programs)}
        seen["dump"] = d.dump_by_control()
        seen["sizes"] = watch.end()
        until("scan after a loss", lambda: not side_band_lost(d.status()) or d.status()["sideband"]["scans"] > scans)
        seen["status"], seen["memory"], seen["buffers"] = d.status(), memory(d.pid), kernel_buffers(d.pid)
        seen["scans"] = seen["status"]["sideband"]["scans"] - scans
        d.stop()
        must(program("flightrec-merge"), "--keep", directory / "state", timeout=600)
        seen["merged"] = directory / "state/perf.data"
        yield seen
    finally:
        d.kill()


def last_processes(programs):
    """After the storm, runs processes that live long enough to be sampled. Returns a Judge for them."""
    said = [run(programs["first"], env=environment(FR_PHASE_MS=str(LAST_MS))).out for _ in range(LAST)]
    # If the storm had more processes than there are pids, earlier processes of the storm had the same pids, so their names are
    # permitted, too.
    return Judge([phase for text in said for phase in parse_phases(text)[0]], STARTERS | {"first", "frtest-storm", "frtest-tiny"})


def test_memory_and_auxiliary_file_are_bounded(storm, capsys):
    sizes, sideband, status = storm["sizes"], storm["status"]["sideband"], storm["status"]
    per_s, alone_per_s = (1e9 / storm[which]["ns_per_process"] for which in ("load", "alone"))
    lost = {k: n for k, n in status["losses"].items() if n}
    with capsys.disabled():
        print(f"\n{PROCESSES} processes at {per_s:.0f} a second, {alone_per_s:.0f} without a recorder: auxiliary file at most "
              f"{max(sizes) / MIB:.1f} MiB, at the end {sizes[-1] / MIB:.1f} MiB; peak memory {storm['memory']['VmHWM'] / MIB:.1f} MiB "
              f"with a ring of {status['ring']['size'] / MIB:.0f} MiB; {storm['scans']} scans, {sideband['records']} records of "
              f"side-band, losses {lost}")
    # With the recorder, processes start at least a quarter as fast as without it.
    assert storm["load"]["processes"] == PROCESSES and per_s >= alone_per_s / 4
    assert max(sizes) <= AUXILIARY_MAX
    # In a storm that is long enough for compactions, the file is not larger in the second half than in the first half.
    half = len(sizes) // 2
    if PROCESSES >= 200000:
        assert max(sizes[half:]) <= 1.25 * max(sizes[:half])
    beyond = storm["memory"]["VmHWM"] - status["ring"]["size"] - storm["buffers"]
    assert beyond <= BEYOND_RING_MAX, f"{beyond / MIB:.1f} MiB beyond the ring"
    sideband_lost = side_band_lost(status)
    assert not sideband_lost or storm["scans"] > 0, f"{sideband_lost} and no scan"
    assert "auxiliary-write" not in sideband_lost


@pytest.mark.parametrize("which", ["dump", "merged"])
def test_the_last_processes_have_the_right_names(storm, tmp_path, which):
    judge = storm["last"]
    v = judge.verdict(samples_of(storm[which], judge.pids, tmp_path))
    # There should be 99 samples for each second of CPU time. Half of them suffice, because the host may stop a virtual CPU.
    assert v.total >= len(judge.phases) * LAST_MS / 1000 * 99 / 2, f"{v.total} samples"
    assert v.right == v.total, f"{v}; e.g.\n" + "\n".join(v.wrong)
