# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs go offline and online again while the machine is recorded. When a CPU goes offline, the kernel ends the events of this
CPU.

No other test is allowed to run at the same time."""
import json
from pathlib import Path

import pytest

from harness import NO_LOSS, getppid_calls, last_cpu, load, meta, must, program, script_lines, triggers_config, until
from test_events import burn_in

pytestmark = pytest.mark.alone

CPU = last_cpu()
ONLINE = Path(f"/sys/devices/system/cpu/cpu{CPU}/online")
# Only getppid(): other programs can run at the same time, and their system calls would evict the samples of the tests from the
# ring.
CALLS = ["-e", "raw_syscalls:sys_enter", "--filter", "id == 110"]


def switch(on):
    ONLINE.write_text("1" if on else "0")


@pytest.fixture(autouse=True)
def cpu():
    """The CPU that the tests take offline. It is online again at the end of each test."""
    try:
        switch(True)
    except OSError as e:
        pytest.skip(f"{ONLINE}: {e.strerror}: no CPU can be taken away here")
    yield CPU
    switch(True)


def on_that_cpu(n=20000):
    return load("syscalls", "-n", n, "-c", CPU)


def until_back(d):
    until(f"CPU that is recorded again; log:\n{d.log()}", lambda: "cpu-came" in d.lost())


@pytest.mark.parametrize("ring", [("-M", "32M"), ("-M", "1M", "--ring", "calls:32M")], ids=["default", "calls"])
def test_a_cpu_goes_and_comes_back(recorder, ring):
    d = recorder(*NO_LOSS, *ring, *CALLS)
    before = on_that_cpu()
    switch(False)
    d.until_logged(f"CPU {CPU} went offline")
    alone = load("syscalls", "-n", 20000)
    switch(True)
    until_back(d)
    after = on_that_cpu()
    sample = d.dump_by_control()
    assert [len(getppid_calls(sample, did)) for did in (before, alone, after)] == [20000] * 3
    losses = meta(sample)["losses"]
    assert {"cause": "cpu-came", "count": 1} in losses, losses
    assert f"CPU {CPU} came online" in d.log() and "recording on" in d.log()
    d.stop()


@pytest.mark.parametrize("start_without", [False, True])
def test_a_cpu_that_comes_back_is_recorded(recorder, start_without):
    """The recorder notices that the CPU was offline, even if it reads the list of CPUs only after the CPU is online again. In
    this case the list has not changed, but the events of the CPU no longer work."""
    if start_without:
        switch(False)
    d = recorder(*NO_LOSS, *CALLS, "-M", "32M")
    switch(False)
    switch(True)
    until_back(d)
    did = on_that_cpu()
    assert len(getppid_calls(d.dump_by_control(), did)) == 20000
    d.stop()


def test_names_come_from_a_cpu_that_is_not_sampled(recorder):
    """A process gets its name by an exec on a CPU that is not sampled, and then runs on a CPU that is sampled."""
    d = recorder(*NO_LOSS, *CALLS, "-C", "0", "-M", "32M")
    switch(False)
    switch(True)
    until_back(d)
    # The exec is on the CPU that is online again, and the calls are on CPU 0.
    did = json.loads(must("taskset", "-c", CPU, program("frtest-syscalls"), "-n", 20000, "-c", 0).out)
    calls = getppid_calls(d.dump_by_control(), did)
    assert len(calls) == 20000 and {x.comm for x in calls} == {"frtest-syscalls"}
    d.stop()


def test_a_cgroup_is_made_again_without_the_cpu(recorder, group):
    """A CPU of the list of CPUs to record (-C) is offline when the events are opened again for the new cgroup."""
    d = recorder("-e", "cpu-clock", "-F", "499", "-C", f"0-{CPU}", "--cgroup", group)
    switch(False)
    d.until_logged(f"CPU {CPU} went offline")
    group.rmdir()
    group.mkdir()
    until(f"cgroup that is recorded again; log:\n{d.log()}", lambda: "cgroup-came" in d.lost())
    pid = burn_in(group)
    assert {line.pid for line in script_lines(d.dump_by_control(), trace=False)} == {pid}
    d.stop()


def test_an_event_as_trigger_hears_the_cpu_that_is_back(recorder, tmp_path):
    conf = tmp_path / "trigger.conf"
    conf.write_text(triggers_config(tmp_path / "trigger", "[Trigger calls]\nEvent=raw_syscalls:sys_enter\n"
                                                          "Filter=id == 110\nThreshold=100000\nInterval=4s\n"))
    d = recorder("-e", "cpu-clock", "--config", conf)
    switch(False)
    switch(True)
    until_back(d)
    assert not d.samples()
    until(f"dump of the trigger; log:\n{d.log()}", lambda: on_that_cpu(400000) and d.samples())
    d.stop()
