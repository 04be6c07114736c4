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


def system_calls(d, seconds):
    """How many the recorder makes meanwhile, and how many may be: some for the processes that others start and end."""
    records = d.status()["sideband"]["records"]
    begin = time.monotonic()
    r = perf("stat", "-x", ";", "-e", "raw_syscalls:sys_enter", "-p", d.pid, "--", "sleep", seconds)
    assert r.code == 0, r.err
    passed = time.monotonic() - begin
    count = int(next(line for line in r.err.splitlines() if "raw_syscalls" in line).split(";")[0])
    return count, 30 * passed + (d.status()["sideband"]["records"] - records) / 20


def test_steady_state_is_quiet(recorder):
    """With nothing recorded but the default profile, a handful of system calls a second, counted from outside by perf: once it
    has read the build-ids of what was running before it."""
    d = recorder("-M", "8M")
    tries = []
    while len(tries) < 5 and not any(count <= bound for count, bound in tries):
        tries.append(system_calls(d, 3))
    d.stop()
    assert tries[-1][0] <= tries[-1][1], f"system calls, and the bound: {tries}"
