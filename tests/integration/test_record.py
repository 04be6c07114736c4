# SPDX-License-Identifier: GPL-2.0-or-later
"""What is recorded is what happened: counted to the event, with the right names."""
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from harness import NO_LOSS, chains, last_cpu, load, perf_clean, report_rows, samples_of, script_lines, until

CALLS = 50000
# What others of this machine call is not what these tests count, and may be more than any buffer holds.
GETPPID = (*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110")


def alone(sample, tmp_path):
    """The sample file in a directory of its own: nothing beside it can help."""
    path = tmp_path / "alone" / sample.name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(sample, path)
    return path


def stolen_s():
    """What a host has kept from all CPUs of a virtual machine so far: of their clocks, some tick meanwhile, and some do not."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("option", [(), ("--no-compression",)], ids=["compressed", "plain"])
def test_every_call_is_recorded_once(recorder, tmp_path, option):
    d = recorder(*GETPPID, "-M", "64M", *option)
    did = load("syscalls", "-n", CALLS, "-c", last_cpu())
    sample = alone(d.dump_by_control(), tmp_path)
    lost = d.lost()
    d.stop()

    of_load = [line for line in script_lines(sample) if line.tid == did["pid"]]
    calls = [line for line in of_load if line.trace.startswith(f"NR {did['nr']} ")]
    assert not lost, f"the load is small, and yet there are losses: {lost}"
    assert len(calls) == CALLS
    assert {line.event for line in calls} == {"raw_syscalls:sys_enter"}
    assert {line.cpu for line in calls} == {last_cpu()}
    assert {line.comm for line in calls} == {"frtest-syscalls"}
    times = [line.time for line in calls]
    assert times == sorted(times) and len(set(times)) == len(times), "times of one thread neither repeat nor run back"


def test_compression_is_seen_in_the_size_and_nowhere_else(recorder, tmp_path):
    sizes, counts = {}, {}
    for name, option in (("compressed", ()), ("plain", ("--no-compression",))):
        directory = tmp_path / name
        directory.mkdir()
        d = recorder(*GETPPID, "-M", "64M", *option, directory=directory)
        did = load("syscalls", "-n", CALLS, "-c", last_cpu())
        sample = d.dump_by_control()
        d.stop()
        sizes[name] = sample.stat().st_size
        counts[name] = sum(1 for line in script_lines(sample)
                           if line.tid == did["pid"] and line.trace.startswith(f"NR {did['nr']} "))
    assert counts == {"compressed": CALLS, "plain": CALLS}
    assert sizes["compressed"] * 4 < sizes["plain"], sizes


def test_profile_knows_the_load(recorder, tmp_path):
    d = recorder("-e", "cpu-clock", "-F", "999", "-g", "-M", "32M")
    stolen = stolen_s()
    did = load("burn", "-u", "2", "-c", last_cpu())
    stolen = stolen_s() - stolen
    sample = alone(d.dump_by_signal(), tmp_path)
    d.stop()

    lines = [line for line in script_lines(sample, trace=False) if line.pid == did["pid"]]
    comms = [line.comm for line in lines]
    mine = comms[comms.index("frtest-burn"):]  # before it is a copy of this program, until exec
    assert set(mine) == {"frtest-burn"}
    assert 0.95 * 999 * did["cpu_s"] - 999 * stolen < len(mine) < 1.05 * 999 * (did["cpu_s"] + stolen), \
        f"{len(mine)} samples of {did['cpu_s']} s at 999 Hz, {stolen} s of them stolen"

    rows = report_rows(sample)
    total, hot = samples_of(rows, "frtest-burn"), samples_of(rows, "frtest-burn", "frtest_burn_hot")
    unknown = [r for r in rows if r.comm == "frtest-burn" and (r.symbol.startswith("0x") or "unknown" in r.symbol)]
    assert sum(r.samples for r in unknown) <= 0.01 * total, f"without a symbol: {unknown}"
    assert hot >= 0.95 * total, f"{hot} of {total} in the hot function"

    stacks = chains(sample, did["pid"])
    user = [s for s in stacks if s[0] == "frtest_burn_hot"]
    whole = [s for s in user if s[:4] == ["frtest_burn_hot", "frtest_burn_middle", "frtest_burn_top", "main"]]
    assert user and len(whole) >= 0.99 * len(user), f"{len(whole)} of {len(user)} stacks are whole, e.g. {user[0]}"


def test_kernel_symbols(recorder):
    d = recorder("-e", "cpu-clock", "-F", "999", "-M", "32M")
    load("syscalls", "-n", 1000000)
    rows = report_rows(d.dump_by_control())
    d.stop()
    kernel = [r for r in rows if r.comm == "frtest-syscalls" and r.symbol in ("do_syscall_64", "__x64_sys_getppid", "x64_sys_call")]
    assert kernel, f"a million system calls show none of the kernel's functions: {rows}"


def test_the_default_event_is_a_profile_with_stacks(recorder):
    d = recorder("-M", "16M")
    stolen = stolen_s()
    did = load("burn", "-u", "2", "-c", last_cpu())
    stolen = stolen_s() - stolen
    sample = d.dump_by_control()
    status = d.status()
    d.stop()
    assert any(e["name"].startswith(("cycles", "cpu-clock")) for e in status["events"]), status["events"]
    stacks = chains(sample, did["pid"])
    assert 0.9 * 99 * did["cpu_s"] - 99 * stolen < len(stacks) < 1.1 * 99 * (did["cpu_s"] + stolen) + 10, \
        f"{len(stacks)} samples of {did['cpu_s']} s at 99 Hz, {stolen} s of them stolen"
    assert any(s[:3] == ["frtest_burn_hot", "frtest_burn_middle", "frtest_burn_top"] for s in stacks)


def test_header(recorder, tmp_path):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-t", "0.2")
    sample = alone(d.dump_by_control(), tmp_path)
    d.stop()
    head = perf_clean("report", "-i", sample, "--header-only")
    for wanted in (f"hostname : {socket.gethostname()}", "os release", "perf version", "arch", "nrcpus online",
                   "cpuid", "total memory", "cmdline", "flightrecd", "time of first sample", "clockid", "monotonic",
                   "cpu-clock"):
        assert wanted in head, f"{wanted!r} is not in the header:\n{head}"


def test_the_window_bounds_the_samples(recorder):
    d = recorder(*GETPPID, "-M", "64M")
    old = load("syscalls", "-n", 1000)
    time.sleep(6)
    new = load("syscalls", "-n", 1000)
    lines = script_lines(d.dump_by_control("--last", "5s"))
    everything = script_lines(d.dump_by_control())
    d.stop()
    assert sum(line.tid == new["pid"] for line in lines) >= 1000
    assert not [line for line in lines if line.tid == old["pid"]], "older than the window"
    assert sum(line.tid == old["pid"] for line in everything) >= 1000, "but a dump of all has them"


def test_the_ring_keeps_the_newest(recorder):
    d = recorder(*GETPPID, "-M", "1M")
    first = load("syscalls", "-n", 1000)
    until("eviction", lambda: load("syscalls", "-n", 100000) and d.status()["ring"]["evicted_samples"] > 100000, 200)
    last = load("syscalls", "-n", 1000)
    ring = d.status()["ring"]
    lines = script_lines(d.dump_by_control())
    d.stop()
    assert ring["used"] <= ring["size"] == 1 << 20
    assert not [line for line in lines if line.tid == first["pid"]], "the oldest are still there"
    assert sum(line.tid == last["pid"] and line.trace.startswith(f"NR {last['nr']} ") for line in lines) == 1000
