# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's own work makes no events."""
import time

from harness import NO_LOSS, last_cpu, load, perf, script_lines


def own(path, pid):
    """Of this recorder: another one on the same machine is a load like any other."""
    return [line for line in script_lines(path) if line.pid == pid]


def test_no_events_of_its_own(recorder):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:*", "-M", "64M")
    load("syscalls", "-n", 50000, "-c", last_cpu())
    first = d.dump_by_signal()
    d.status()
    second = d.dump_by_control()  # has what the first dump did, if that made events
    assert d.status()["self"]["cpu_s"] > 0, "it did work"
    assert len(script_lines(second)) >= 100000
    for path in (first, second):
        mine = own(path, d.pid)
        assert not mine, f"{len(mine)} own events in {path.name}, e.g. {mine[:3]}"
    pid = d.pid
    merged = d.finish()
    assert not own(merged, pid)


def test_steady_state_is_quiet(recorder):
    """With nothing recorded but the default profile, a handful of system calls a second: counted from outside by perf. And
    some for the processes that others start and end meanwhile."""
    d = recorder("-M", "8M")
    records = d.status()["sideband"]["records"]
    begin = time.monotonic()
    r = perf("stat", "-x", ";", "-e", "raw_syscalls:sys_enter", "-p", d.pid, "--", "sleep", "4")
    assert r.code == 0, r.err
    seconds = time.monotonic() - begin
    count = int(next(line for line in r.err.splitlines() if "raw_syscalls" in line).split(";")[0])
    records = d.status()["sideband"]["records"] - records
    d.stop()
    assert count <= 30 * seconds + records / 20, f"{count} system calls in {seconds:.1f} s of idling, with {records} records"
