# SPDX-License-Identifier: GPL-2.0-or-later
"""Other events, other buffers and another size of the ring while a load is recorded: what fits stays, and nothing is missing
but what is told."""
import json
import os
import signal
import time
from pathlib import Path

import pytest

from harness import ARMED_PROBES, EXIT, Daemon, finish_load, last_cpu, load, must, program, run, script_lines, start_load, until

QUIET = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)


class Configured:
    """A recorder whose configuration is a file."""

    def __init__(self, state_dir):
        self.path = state_dir.parent / "flightrecd.conf"
        self.state_dir = state_dir
        self.prefix = ()

    def write(self, **keys):
        lines = "".join(f"{key}={v}\n" for key, value in keys.items() for v in (value if isinstance(value, list) else [value]))
        self.path.write_text(f"[Recorder]\n{lines}[Triggers]\nSocket={self.state_dir}/trigger\n{QUIET}")

    def start(self, **keys):
        self.write(**keys)
        self.daemon = Daemon(self.state_dir, "--config", self.path, prefix=self.prefix)
        return self.daemon.start()

    def reload(self, **keys):
        self.write(**keys)
        return self.daemon.ctl("reload")


@pytest.fixture
def configured(state_dir):
    c = Configured(state_dir)
    yield c
    c.daemon.kill()
    print(f"--- what flightrecd said:\n{c.daemon.log()}")


COUNTED = {"Events": "raw_syscalls:sys_enter", "Filter": "id == 8", "KernelBuffer": "16M"}


def sequence(path, counted):
    return json.loads(must(program("frtest-sequence"), path, counted["pid"], counted["nr"], timeout=300).out)


def assert_whole(d, sample, counted):
    found = sequence(sample, counted)
    lost = d.lost()
    if lost.get("kernel-ring-full") or lost.get("back-pressure"):
        pytest.skip(f"the machine is too busy to tell: {lost}")
    assert not lost, lost
    assert (found["missing"], found["twice"], found["backwards"]) == (0, 0, 0), found
    assert (found["first"], found["last"]) == (0, counted["calls"] - 1), found


def test_events_and_buffers_change_under_load(configured):
    d = configured.start(**COUNTED, RingSize="48M")
    process = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 2000)
    until("sample", lambda: d.status()["ring"]["samples"] > 1000)
    for i in range(6):
        time.sleep(0.5)
        keys = dict(COUNTED, KernelBuffer="8M" if i % 2 else "16M")
        r = configured.reload(**keys, Frequency=99 + i, RingSize="48M")
        assert r.code == 0 and "records raw_syscalls:sys_enter" in r.out, (r.out, r.err, d.log())
    process.terminate()
    counted = finish_load(process)
    sample = d.dump_by_control()
    assert_whole(d, sample, counted)
    merged = d.finish()
    found = sequence(merged, counted)
    assert (found["missing"], found["twice"], found["backwards"]) == (0, 0, 0), found


def test_other_events_stand_beside_those_of_before(configured):
    d = configured.start(**COUNTED, RingSize="16M")
    counted = load("count", "-t", 1, "-c", last_cpu(), "-p", 5000)
    r = configured.reload(Events=["sched:sched_switch", "cpu-clock"], RingSize="16M")
    assert r.code == 0 and "sched:sched_switch" in r.out
    assert {e["name"] for e in d.status()["events"]} == {"sched:sched_switch", "cpu-clock"}
    children = load("spawn", "-n", 5, "-m", 30)["children"]
    judge_both(d.dump_by_control(), counted, children)
    judge_both(d.finish(), counted, children)


def judge_both(path, counted, children):
    assert sequence(path, counted)["count"] == counted["calls"]
    lines = script_lines(path, trace=False)
    assert {x.event for x in lines} >= {"raw_syscalls:sys_enter", "sched:sched_switch", "cpu-clock"}
    for pid in children:
        assert "frtest-child" in {x.comm for x in lines if x.pid == pid}, pid


def events_of(sample):
    return {line for line in must("perf", "evlist", "-i", sample).out.splitlines() if not line.startswith("#")}


def test_an_event_of_before_leaves_with_its_last_record(configured):
    d = configured.start(Events=[COUNTED["Events"], "sched:sched_switch"], RingSize="1M")
    load("spawn", "-n", 5)
    assert configured.reload(**COUNTED, RingSize="1M").code == 0
    assert "sched:sched_switch" in events_of(d.dump_by_control())
    ring = d.status()["ring"]
    process = start_load("count", "-t", 300, "-c", last_cpu())
    newest = ring["evicted_samples"] + ring["samples"]
    until("ring of other records", lambda: d.status()["ring"]["evicted_samples"] > newest + 100_000, 200)
    process.kill()
    process.wait()
    sample = d.dump_by_control()
    assert events_of(sample) == {COUNTED["Events"], "dummy", "flightrec:trigger"}
    assert {x.event for x in script_lines(sample, trace=False)} == {COUNTED["Events"]}


def heads(sample):
    """How many ids its head has, and how large what stands before the data is."""
    with open(sample, "rb") as f:
        head = f.read(104)
    ids = sum(len(line.split("id = {", 1)[1].split("}", 1)[0].split(",")) for line in must("perf", "report", "--header-only", "-i", sample).out.splitlines()
              if "id = {" in line)
    return ids, int.from_bytes(head[40:48], "little")


def test_ids_leave_with_the_ring(configured):
    """Opened anew again and again, each time with another frequency; the ring has a lap of a few of them."""
    keys = dict(Events=["cpu-clock", COUNTED["Events"]], RingSize="1M")
    d = configured.start(**keys)
    process = start_load("count", "-t", 300, "-c", last_cpu())
    first = heads(d.dump_by_control())
    for i in range(40):
        assert configured.reload(**keys, Frequency=100 + i).code == 0
    ring = d.status()["ring"]
    newest = ring["evicted_samples"] + ring["samples"]
    until("ring of other records", lambda: d.status()["ring"]["evicted_samples"] > newest, 200)
    assert configured.reload(**keys, Frequency=99).code == 0
    sample = d.dump_by_control()
    process.kill()
    process.wait()
    ids, bytes_before_data = heads(sample)
    assert ids <= 3 * first[0] and bytes_before_data <= 2 * first[1] + 4096, (first, ids, bytes_before_data)
    assert {COUNTED["Events"], "cpu-clock"} <= events_of(sample)
    # What went out of the ring is still in the merge's view one recording: nobody is without a name.
    merged = d.finish()
    assert {x.comm for x in script_lines(merged, trace=False) if x.event == COUNTED["Events"]} >= {"frtest-count"}


def test_ring_changes_its_size_under_load(configured):
    d = configured.start(**COUNTED, RingSize="16M")
    process = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 2000)
    until("sample", lambda: d.status()["ring"]["samples"] > 1000)
    for size in ("32M", "24M", "64M", "48M"):
        time.sleep(0.5)
        r = configured.reload(**COUNTED, RingSize=size)
        assert r.code == 0 and f"RingSize= is {size[:-1]}.0M" in r.out, (r.out, r.err)
        assert d.status()["ring"]["size"] == int(size[:-1]) << 20
    process.terminate()
    counted = finish_load(process)
    assert_whole(d, d.dump_by_control(), counted)


def test_smaller_ring_keeps_the_newest(configured):
    d = configured.start(**COUNTED, RingSize="32M")
    # More than will fit, and then what is counted.
    until("more than 2M", lambda: load("count", "-t", 1, "-c", last_cpu()) and d.status()["ring"]["used"] > 4 << 20, 200)
    had, lost = d.status()["ring"]["samples"], d.lost()
    process = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 2000)
    until("samples", lambda: d.status()["ring"]["samples"] > had + 20000)
    r = configured.reload(**COUNTED, RingSize="2M")
    assert r.code == 0 and "RingSize= is 2.0M" in r.out, (r.out, r.err)
    process.terminate()
    counted = finish_load(process)
    found = sequence(d.dump_by_control(), counted)
    assert found["last"] == counted["calls"] - 1 and found["count"] > 1000
    assert d.lost() != lost or found["missing"] == 0, found


def test_ring_that_does_not_fit_is_refused(memory_group, configured):
    """Not at the first page past the limit, by a kill."""
    group = memory_group(160)
    configured.write(**COUNTED, RingSize="4G")
    r = run(*group, program("flightrecd"), "--config", configured.path, "-o", configured.state_dir)
    assert r.code and f"{configured.path}:5: a ring of 4.0G does not fit" in r.err and "M would fit" in r.err, r
    configured.prefix = group
    d = configured.start(**COUNTED, RingSize="80M")
    counted = load("count", "-t", 0.3, "-c", last_cpu(), "-p", 5000)
    # Both of these would not fit beside each other, one does.
    r = configured.reload(**COUNTED, RingSize="84M")
    assert r.code == 0 and "RingSize= is 84.0M" in r.out, (r.out, r.err)
    r = configured.reload(**COUNTED, RingSize="4G")
    assert f"RingSize= stays at 84.0M: {configured.path}:5: a ring of 4.0G does not fit" in r.err, (r.out, r.err)
    assert any("M would fit" in n for n in d.status()["notices"])
    assert d.status()["ring"]["size"] == 84 << 20
    assert_whole(d, d.dump_by_control(), counted)
    assert "RingSize= is 16.0M" in configured.reload(**COUNTED, RingSize="16M").out
    assert not any("M would fit" in n for n in d.status()["notices"])


def test_what_waits_is_said_and_what_is_wrong_changes_nothing(configured):
    d = configured.start(**COUNTED, RingSize="4M")
    r = configured.reload(**COUNTED, RingSize="4M", CompressionLevel=3, MetricsListen="127.0.0.1:9752")
    assert r.code == 0 and "CompressionLevel= waits for a restart" in r.err
    assert "MetricsListen= waits for a restart" in r.err
    before = [e["name"] for e in d.status()["events"]]
    for wrong in ({"Events": "no:such_event"}, {**COUNTED, "Filter": "nonsense == 1"}):
        r = configured.reload(**{"RingSize": "8M", **wrong})
        assert r.code != 0 and r.err, wrong
        status = d.status()
        assert str(configured.path) in status["config_error"]["what"], status
        assert [e["name"] for e in status["events"]] == before and status["ring"]["size"] == 4 << 20
    configured.write(**dict(COUNTED, KernelBuffer="8M"), RingSize="4M")
    said = d.log().count("configuration reloaded")
    d.signal(signal.SIGHUP)
    until("reload by SIGHUP", lambda: d.log().count("configuration reloaded") > said)
    counted = load("count", "-t", 0.3, "-p", 5000)
    assert sequence(d.dump_by_control(), counted)["count"] == counted["calls"]


def test_triggers_that_cannot_be_armed_are_told(configured):
    """By reload and by verify-config, with the reason; those that can be armed are, and all else is taken over."""
    d = configured.start(**COUNTED, RingSize="4M")
    configured.write(**COUNTED, RingSize="2M")
    text = configured.path.read_text()
    configured.path.write_text(text + "[Trigger lost]\nEvent=page-faults\nThreshold=1000000\nCGroup=/no/such/group\n"
                                      "[Trigger beat]\nEvery=1h\n")
    r = d.ctl("reload")
    assert r.code == EXIT["partly"] and "RingSize= is 2.0M" in r.out, r
    assert "trigger lost is not armed" in r.err and f"{configured.path}:" in r.err and "beat" not in r.err, r.err
    told = json.loads(d.ctl("reload", "--json=short").out)["not_armed"]
    assert [t["name"] for t in told if "origin" in t] == ["lost"], told
    r = d.ctl("verify-config")
    assert r.code == EXIT["partly"] and "trigger lost is not armed" in r.err, r
    r = d.ctl("verify-config", configured.path)
    assert r.code == 0 and "only the recorder can tell" in r.err, r
    configured.path.write_text(text)
    r = d.ctl("reload")
    assert (r.code, r.err) == (0, ""), r
