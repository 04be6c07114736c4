# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder does not record what it does itself."""
import re
import time

import pytest

from harness import NO_LOSS, finish_load, last_cpu, load, must, perf, program, script_lines, start_load


def own(path, pid):
    """Returns the samples of the recorder PID. (Samples of another recorder on the same machine are permitted.)"""
    return [line for line in script_lines(path) if line.pid == pid]


def test_the_recorder_does_not_record_itself(recorder):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:*", "-M", "64M")
    load("syscalls", "-n", 50000, "-c", last_cpu())
    first = d.dump_by_signal()
    d.status()
    # If the recorder recorded its own work, this dump would have the events of writing the first dump.
    second = d.dump_by_control()
    assert d.status()["self"]["cpu_s"] > 0, "the recorder used CPU time"
    assert len(script_lines(second)) >= 100000
    for path in (first, second):
        mine = own(path, d.pid)
        assert not mine, f"{len(mine)} own events in {path.name}, e.g. {mine[:3]}"
    pid = d.pid
    merged = d.finish()
    assert not own(merged, pid)


def system_calls(d, seconds):
    """Returns how many system calls the recorder makes in SECONDS, and how many are permitted. The permitted number is higher
    if processes start or end in this time, and if their objects get tables for unwinding."""
    before = d.status()
    begin = time.monotonic()
    r = perf("stat", "-x", ";", "-e", "raw_syscalls:sys_enter", "-p", d.pid, "--", "sleep", seconds)
    assert r.code == 0, r.err
    passed = time.monotonic() - begin
    count = int(next(line for line in r.err.splitlines() if "raw_syscalls" in line).split(";")[0])
    after = d.status()
    more = [after[part][what] - before[part][what] for part, what in
            (("sideband", "records"), ("unwind", "tables_made"), ("self", "rounds"))]
    return count, 30 * passed + more[0] / 20 + 50 * more[1] + 8 * more[2]


@pytest.mark.alone
def test_steady_state_makes_few_system_calls(recorder):
    """perf counts the system calls of a recorder with the default profile. The recorder makes few of them after it has read the
    build-ids of the processes that started before it, if no other programs start: it also reads the build-ids of new ones."""
    d = recorder("-M", "8M")
    tries = []
    while len(tries) < 5 and not any(count <= bound for count, bound in tries):
        tries.append(system_calls(d, 3))
    assert tries[-1][0] <= tries[-1][1], f"system calls, and the bound: {tries}"


def test_perf_record_is_not_disturbed(recorder, tmp_path):
    """perf records a program, and then a process, while the recorder runs. Some kernels would mix build-ids of the recorder into
    perf's records; perf 6.1 crashes at them."""
    d = recorder("-M", "8M")
    burn = start_load("burn", "-u", 3)
    for n, what in enumerate((("--", program("frtest-burn"), "-u", "0.05"), ("-p", burn.pid, "--", "sleep", "0.2"))):
        path = tmp_path / f"{n}.data"
        must("perf", "record", "-q", "-e", "cpu-clock", "-F", 999, "-o", path, *what)
        maps = must("perf", "script", "-i", path, "--show-mmap-events").out
        assert "frtest_burn_hot" in maps and re.search(r"PERF_RECORD_MMAP2 .*/frtest-burn", maps)
        assert not re.search(r"PERF_RECORD_MMAP2 .* <[0-9a-f]*>", maps), maps[:3000]
    finish_load(burn)
    assert d.status()["events"]
