# SPDX-License-Identifier: GPL-2.0-or-later
"""A dump has each event that happened, exactly once, with the right names."""
import json
import shutil
import socket

from harness import (NO_LOSS, chains, getppid_calls, in_program, last_cpu, load, must, perf_clean, program, report_rows, samples_of,
                     script_lines, stolen_s, until)

CALLS = 50000
# Only the getppid() calls of the load. The rings may not have room for the other system calls of the machine, and those would
# also change the size of a dump.
GETPPID = (*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", 'id == 110 && COMM == "frtest-syscalls"')


def alone(sample, tmp_path):
    """Copies the sample file into an empty directory, where a reader cannot use another file."""
    path = tmp_path / "alone" / sample.name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(sample, path)
    return path


def burn(seconds, hz, tmp_path):
    """Burns CPU time on one CPU. Returns the JSON of the load, how many samples perf record made of it at this frequency at the
    same time, and the largest CPU time in seconds that can have been sampled. The host of a virtual machine holds timer
    interrupts back, those of perf and those of the recorder, so the samples of perf say how many are possible."""
    path, stolen = tmp_path / "perf.data.of-perf", stolen_s()
    out = must("perf", "record", "-q", "--sample-cpu", "-e", "cpu-clock", "-F", hz, "-o", path, "--",
               program("frtest-burn"), "-u", seconds, "-c", last_cpu()).out
    did = json.loads(out)
    stolen = stolen_s() - stolen
    return did, sum(line.pid == did["pid"] for line in script_lines(path, trace=False)), did["cpu_s"] + stolen


def test_every_call_is_recorded_once(recorder, tmp_path):
    """Dumps with and without compression have the same records. Only the sizes of the files differ."""
    sizes = []
    for option in ((), ("--no-compression",)):
        directory = tmp_path / f"state{len(sizes)}"
        directory.mkdir()
        d = recorder(*GETPPID, "-M", "64M", *option, directory=directory)
        did = load("syscalls", "-n", CALLS, "-c", last_cpu())
        sample, lost = alone(d.dump_by_control(), tmp_path), d.lost()
        d.stop()
        assert not lost, f"the load is small, and yet there are losses: {lost}"
        calls = getppid_calls(sample, did)
        assert len(calls) == CALLS
        assert {(x.event, x.cpu, x.comm) for x in calls} == {("raw_syscalls:sys_enter", last_cpu(), "frtest-syscalls")}
        times = [x.time for x in calls]
        assert times == sorted(times) and len(set(times)) == len(times), "times of one thread neither repeat nor go back"
        sizes.append(sample.stat().st_size)
    assert sizes[0] * 4 < sizes[1], sizes


def test_a_profile_has_the_names_and_stacks_of_the_load(recorder, tmp_path):
    d = recorder("-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "32M")
    did, of_perf, most = burn(1, 999, tmp_path)
    sample = alone(d.dump_by_signal(), tmp_path)

    comms = [line.comm for line in script_lines(sample, trace=False) if line.pid == did["pid"]]
    mine = comms[comms.index("frtest-burn"):]  # before its exec, the process is a fork of this Python process and has its name
    assert set(mine) == {"frtest-burn"}
    assert 0.95 * of_perf < len(mine) < 1.05 * 999 * most, f"{len(mine)} samples at 999 Hz of {most} s; perf has {of_perf}"

    rows = report_rows(sample)
    total, hot = samples_of(rows, "frtest-burn"), samples_of(rows, "frtest-burn", "frtest_burn_hot")
    unknown = [r for r in rows if r.comm == "frtest-burn" and (r.symbol.startswith("0x") or "unknown" in r.symbol)]
    assert sum(r.samples for r in unknown) <= 0.01 * total, f"without a symbol: {unknown}"
    user = samples_of(in_program(rows), "frtest-burn")
    assert hot >= 0.95 * user and user >= 0.8 * total, f"{hot} of {user} in the hot function, {total} with the kernel"

    user = [s for s in chains(sample, did["pid"]) if s[0] == "frtest_burn_hot"]
    whole = [s for s in user if s[:4] == ["frtest_burn_hot", "frtest_burn_middle", "frtest_burn_top", "main"]]
    assert user and len(whole) >= 0.99 * len(user), f"{len(whole)} of {len(user)} stacks are whole, e.g. {user[0]}"


# The kernel functions of a getppid(). In a guest, most samples are where the guest lets interrupts in.
GETPPID_SYMBOLS = ("do_syscall_64", "__x64_sys_getppid", "x64_sys_call", "__task_pid_nr_ns")


def test_kernel_symbols(recorder):
    d = recorder("-e", "cpu-clock", "-F", "999", "-M", "32M")
    load("syscalls", "-n", 1000000)
    rows = report_rows(d.dump_by_control())
    kernel = [r for r in rows if r.comm == "frtest-syscalls" and r.symbol in GETPPID_SYMBOLS]
    assert kernel, f"a million system calls show no function of the kernel: {rows}"


def test_the_default_event_is_a_profile_with_stacks(recorder, tmp_path):
    d = recorder("-M", "16M")
    did, of_perf, most = burn(1.5, 99, tmp_path)
    sample, status = d.dump_by_control(), d.status()
    assert any(e["name"].startswith(("cycles", "cpu-clock")) for e in status["events"]), status["events"]
    stacks = chains(sample, did["pid"], "cycles", "cpu-clock")
    assert 0.95 * of_perf - 3 < len(stacks) < 1.1 * 99 * most + 10, f"{len(stacks)} samples at 99 Hz of {most} s; perf has {of_perf}"
    assert any(s[:3] == ["frtest_burn_hot", "frtest_burn_middle", "frtest_burn_top"] for s in stacks)


def test_header(recorder, tmp_path):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-t", "0.1")
    sample = alone(d.dump_by_control(), tmp_path)
    head = perf_clean("report", "-i", sample, "--header-only")
    for wanted in (f"hostname : {socket.gethostname()}", "os release", "perf version", "arch", "nrcpus online",
                   "cpuid", "total memory", "cmdline", "flightrecd", "time of first sample", "clockid", "monotonic",
                   "cpu-clock"):
        assert wanted in head, f"{wanted!r} is not in the header:\n{head}"


def test_the_ring_keeps_the_newest(recorder):
    d = recorder(*GETPPID, "-M", "1M")
    first = load("syscalls", "-n", 1000)
    until("eviction", lambda: load("syscalls", "-n", 100000) and d.status()["ring"]["evicted_samples"] > 100000, 200)
    last = load("syscalls", "-n", 1000)
    ring, sample = d.status()["ring"], d.dump_by_control()
    assert ring["used"] <= ring["size"] == 1 << 20
    assert not [line for line in script_lines(sample) if line.tid == first["pid"]], "the oldest are still there"
    assert len(getppid_calls(sample, last)) == 1000
