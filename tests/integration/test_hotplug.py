# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that go and come while the machine is recorded. The kernel ends a CPU's events with the CPU, for good."""

import json
from pathlib import Path

import pytest

from harness import NO_LOSS, last_cpu, load, program, run, script_lines, sidecar, until
from test_events import burn_in, group  # noqa: F401: a fixture

CPU = last_cpu()
ONLINE = Path(f"/sys/devices/system/cpu/cpu{CPU}/online")
CALLS = ["-e", "raw_syscalls:sys_enter"]


def switch(on):
    ONLINE.write_text("1" if on else "0")


@pytest.fixture(autouse=True)
def cpu():
    """One that can go; it is back in any case."""
    try:
        switch(True)
    except OSError as e:
        pytest.skip(f"{ONLINE}: {e.strerror}: no CPU can be taken away here")
    yield CPU
    switch(True)


def on_that_cpu(n=20000):
    return load("syscalls", "-n", n, "-c", CPU)["pid"]


def calls(lines, pid):
    return sum(line.tid == pid and line.trace.startswith("NR 110 ") for line in lines)


def came_back(d):
    until(f"the CPU is recorded again; log:\n{d.log()}", lambda: "cpu-came" in d.lost())


def test_a_cpu_goes_and_comes_back(recorder):
    d = recorder(*NO_LOSS, *CALLS, "-M", "32M")
    before = on_that_cpu()
    switch(False)
    until("its going is told", lambda: f"CPU {CPU} went offline" in d.log())
    alone = load("syscalls", "-n", 20000)["pid"]
    switch(True)
    came_back(d)
    after = on_that_cpu()
    sample = d.dump_by_control()
    lines = script_lines(sample)
    assert [calls(lines, pid) for pid in (before, alone, after)] == [20000] * 3
    losses = json.loads(sidecar(sample).read_text())["losses"]
    assert {"cause": "cpu-came", "count": 1} in losses, losses
    assert f"CPU {CPU} came online" in d.log() and "recording on" in d.log()
    d.stop()


def test_gone_and_back_at_once(recorder):
    """Before anybody has looked: the list of CPUs is what it was, and the events are dead."""
    d = recorder(*NO_LOSS, *CALLS, "-M", "32M")
    switch(False)
    switch(True)
    came_back(d)
    pid = on_that_cpu()
    assert calls(script_lines(d.dump_by_control()), pid) == 20000
    d.stop()


def test_started_without_it(recorder):
    switch(False)
    d = recorder(*NO_LOSS, *CALLS, "-M", "32M")
    switch(True)
    came_back(d)
    pid = on_that_cpu()
    assert calls(script_lines(d.dump_by_control()), pid) == 20000
    d.stop()


def test_one_that_is_not_sampled(recorder):
    """Names come from there: who was named there, and runs where it is sampled."""
    d = recorder(*NO_LOSS, *CALLS, "-C", "0", "-M", "32M")
    switch(False)
    switch(True)
    came_back(d)
    # exec on that CPU, then the calls on the first.
    did = json.loads(run("taskset", "-c", CPU, program("frtest-syscalls"), "-n", 20000, "-c", 0).out)
    lines = script_lines(d.dump_by_control())
    assert calls(lines, did["pid"]) == 20000
    assert {x.comm for x in lines if x.tid == did["pid"] and x.trace.startswith("NR 110 ")} == {"frtest-syscalls"}
    d.stop()


def test_a_cgroup_is_made_anew_without_it(recorder, group):  # noqa: F811
    """CPUs= still has it, and it is not there when the events are opened anew."""
    d = recorder("-e", "cpu-clock", "-F", "499", "-C", f"0-{CPU}", "--cgroup", group)
    switch(False)
    until("its going is told", lambda: f"CPU {CPU} went offline" in d.log())
    group.rmdir()
    group.mkdir()
    until(f"the cgroup is recorded anew; log:\n{d.log()}", lambda: "cgroup-came" in d.lost(), 60)
    pid = burn_in(group)
    assert {line.pid for line in script_lines(d.dump_by_control(), trace=False)} == {pid}
    d.stop()


def test_an_event_as_trigger(recorder, tmp_path):
    """Hears what happens on the CPU that is back."""
    conf = tmp_path / "trigger.conf"
    conf.write_text(f"[Triggers]\nSocket={tmp_path}/trigger\n[Trigger calls]\nEvent=raw_syscalls:sys_enter\n"
                    "Filter=id == 110\nThreshold=100000\nInterval=20s\n")
    d = recorder("-e", "cpu-clock", "--config", conf)
    switch(False)
    switch(True)
    came_back(d)
    assert not d.samples()
    on_that_cpu(400000)
    until(f"the trigger fires; log:\n{d.log()}", d.samples)
    d.stop()
