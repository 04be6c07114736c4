# SPDX-License-Identifier: GPL-2.0-or-later
"""A reload changes events, buffers and the size of the ring while a load is recorded. The ring keeps all records that it has
room for, and no record is missing except for reported losses."""
import json
import random
import signal
import time

import pytest

from harness import (EXIT, Daemon, end, exact, finish_load, last_cpu, load, must, perf_clean, program, quiet_config, run, script_lines,
                     sequence, start_load, until)


class Configured:
    """A recorder with a configuration file that the test changes."""

    def __init__(self, state_dir):
        self.path = state_dir.parent / "flightrecd.conf"
        self.state_dir = state_dir
        self.prefix = ()

    def write(self, **keys):
        lines = "".join(f"{key}={v}\n" for key, value in keys.items() for v in (value if isinstance(value, list) else [value]))
        quiet_config(self.path, f"[Recorder]\n{lines}")

    def start(self, **keys):
        self.write(**keys)
        self.daemon = Daemon(self.state_dir, "--config", self.path, prefix=self.prefix)
        return self.daemon.start()

    def reload(self, **keys):
        self.write(**keys)
        return self.daemon.ctl("reload")

    def must_reload(self, words="", **keys):
        r = self.reload(**keys)
        assert r.code == 0 and words in r.out, (r.out, r.err, self.daemon.log())
        return r


@pytest.fixture
def configured(state_dir):
    c = Configured(state_dir)
    yield c
    c.daemon.kill()
    print(f"--- what flightrecd said:\n{c.daemon.log()}")


# Only the lseek() calls of the load, so that the number of samples in the ring shows how far the load is.
COUNTED = {"Events": "raw_syscalls:sys_enter", "Filter": 'id == 8 && COMM == "frtest-count"', "KernelBuffer": "16M",
           "SidebandBuffer": "1M"}


def start_count(d, n=1000):
    """Starts a load that counts with pauses. Returns its process when the ring has more than N new samples."""
    had = d.status()["ring"]["samples"]
    p = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 2000)
    until("samples", lambda: d.status()["ring"]["samples"] > had + n)
    return p


def assert_whole(d, sample, counted):
    found, lost = sequence(sample, counted), d.lost()
    if d.lost_to_others():
        pytest.skip(f"the machine is too busy for this test: {lost}")
    assert not lost, lost
    exact(found)
    assert (found["first"], found["last"]) == (0, counted["calls"] - 1), found


def until_turned_over(d, more=0):
    """Waits until all samples that are in the ring now, and MORE later samples, are evicted."""
    ring = d.status()["ring"]
    newest = ring["evicted_samples"] + ring["samples"]
    until("ring of younger records", lambda: d.status()["ring"]["evicted_samples"] > newest + more, 200)


def test_events_and_buffers_change_under_load(configured):
    d = configured.start(**COUNTED, RingSize="48M")
    process = start_count(d)
    for i in range(6):
        time.sleep(0.2)
        keys = dict(COUNTED, KernelBuffer="8M" if i % 2 else "16M")
        configured.must_reload("records raw_syscalls:sys_enter", **keys, Frequency=99 + i, RingSize="48M")
    counted = finish_load(process, stop=True)
    assert_whole(d, d.dump_by_control(), counted)
    exact(sequence(d.finish(), counted))


def check_numbers_across_reloads(configured, term, pause_us, buffers, wait):
    """The events of both captures are recorded during a cut-over. With so many reloads, some cut-over times are between the two
    records of one number."""
    keys = dict(COUNTED, Events=f"raw_syscalls:sys_enter/{term}/", RingSize="64M")
    d = configured.start(**dict(keys, KernelBuffer=buffers[1]))
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", pause_us)
    wait(d)
    for i in range(20):
        time.sleep(random.uniform(0.05, 0.2))
        configured.must_reload("records raw_syscalls:sys_enter", **dict(keys, KernelBuffer=buffers[i % 2]))
    counted = finish_load(counting, stop=True)
    assert_whole(d, d.dump_by_control(), counted)


def test_numbered_events_of_bpf_programs(configured):
    check_numbers_across_reloads(configured, "capture=bpf", 500, ("8M", "16M"),
                                 lambda d: until("numbers", lambda: d.status()["ring"]["samples"] > 1000))


def test_numbered_events_of_overwritable_rings(configured):
    """The kernel rings have room for all numbers until the next reload or dump. Before that, the ring has none of them."""
    check_numbers_across_reloads(configured, "overwrite", 5000, ("16M", "32M"), lambda d: time.sleep(0.2))


def test_a_dump_has_the_events_before_and_after_a_reload(configured):
    d = configured.start(**COUNTED, RingSize="16M")
    counted = load("count", "-t", 0.3, "-c", last_cpu(), "-p", 5000)
    configured.must_reload("sched:sched_switch", Events=["sched:sched_switch", "cpu-clock"], RingSize="16M")
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
    return {line for line in perf_clean("evlist", "-i", sample).splitlines() if not line.startswith("#")}


def test_a_removed_event_is_in_dumps_until_its_last_record_is_evicted(configured):
    d = configured.start(Events=[COUNTED["Events"], "sched:sched_switch"], RingSize="1M")
    load("spawn", "-n", 5, "-m", 1)
    configured.must_reload(**COUNTED, RingSize="1M")
    assert "sched:sched_switch" in events_of(d.dump_by_control())
    process = start_load("count", "-t", 300, "-c", last_cpu())
    until_turned_over(d, 100_000)
    end(process)
    sample = d.dump_by_control()
    assert events_of(sample) == {COUNTED["Events"], "dummy", "flightrec:trigger"}
    assert {x.event for x in script_lines(sample, trace=False)} == {COUNTED["Events"]}


def heads(sample):
    """Returns the number of event ids in the head of a file, and the number of bytes before its data section."""
    with open(sample, "rb") as f:
        head = f.read(104)
    ids = sum(len(line.split("id = {", 1)[1].split("}", 1)[0].split(",")) for line in must("perf", "report", "--header-only", "-i", sample).out.splitlines()
              if "id = {" in line)
    return ids, int.from_bytes(head[40:48], "little")


def test_ids_are_in_dumps_until_their_records_are_evicted(configured):
    """Each reload opens the events with another frequency, and so makes new openings. A dump does not have the ids of openings
    whose records are no longer in the ring."""
    keys = dict(Events=["cpu-clock", COUNTED["Events"]], RingSize="1M")
    d = configured.start(**keys)
    process = start_load("count", "-t", 300, "-c", last_cpu())
    first = heads(d.dump_by_control())
    for i in range(40):
        configured.must_reload(**keys, Frequency=100 + i)
    until_turned_over(d)
    configured.must_reload(**keys, Frequency=99)
    sample = d.dump_by_control()
    end(process)
    ids, bytes_before_data = heads(sample)
    assert ids <= 3 * first[0] and bytes_before_data <= 2 * first[1] + 4096, (first, ids, bytes_before_data)
    assert {COUNTED["Events"], "cpu-clock"} <= events_of(sample)
    # The merged file treats all openings of the events as one recording, so each process has its name.
    merged = d.finish()
    assert {x.comm for x in script_lines(merged, trace=False) if x.event == COUNTED["Events"]} >= {"frtest-count"}


def test_ring_changes_its_size_under_load(configured):
    d = configured.start(**COUNTED, RingSize="16M")
    process = start_count(d)
    for size in ("32M", "24M", "64M", "48M"):
        time.sleep(0.2)
        configured.must_reload(f"RingSize= is now {size[:-1]}.0M", **COUNTED, RingSize=size)
        assert d.status()["ring"]["size"] == int(size[:-1]) << 20
    counted = finish_load(process, stop=True)
    assert_whole(d, d.dump_by_control(), counted)


def test_smaller_ring_keeps_the_newest(configured):
    d = configured.start(**COUNTED, RingSize="32M")
    # First record more than the smaller ring has room for, then the numbers that the test counts.
    until("more than 2M", lambda: load("count", "-t", 1, "-c", last_cpu()) and d.status()["ring"]["used"] > 4 << 20, 200)
    lost = d.lost_to_others()
    process = start_count(d, 20000)
    configured.must_reload("RingSize= is now 2.0M", **COUNTED, RingSize="2M")
    counted = finish_load(process, stop=True)
    found = sequence(d.dump_by_control(), counted)
    assert found["last"] == counted["calls"] - 1 and found["count"] > 1000
    assert found["missing"] <= d.lost_to_others() - lost, found


def test_ring_that_does_not_fit_is_refused(memory_group, configured):
    """A start or a reload with a ring that does not fit into memory is refused. Otherwise the kernel would kill the recorder
    later, when the ring is full."""
    group = memory_group(220)  # the BPF rings and programs take 40M of it
    configured.write(**COUNTED, RingSize="4G")
    r = run(*group, program("flightrecd"), "--config", configured.path, "-o", configured.state_dir)
    assert r.code and f"{configured.path}:6: a ring of 4.0G does not fit" in r.err and "M would fit" in r.err, r
    configured.prefix = group
    d = configured.start(**COUNTED, RingSize="80M")
    d.manager.close()  # because the descriptor store keeps the old ring, and so its memory, while the new ring is made
    counted = load("count", "-t", 0.3, "-c", last_cpu(), "-p", 5000)
    # Each of the two rings fits into the memory, but not both at the same time.
    configured.must_reload("RingSize= is now 84.0M", **COUNTED, RingSize="84M")
    r = configured.reload(**COUNTED, RingSize="4G")
    assert f"RingSize= stays at 84.0M: {configured.path}:6: a ring of 4.0G does not fit" in r.err, (r.out, r.err)
    assert any("M would fit" in n for n in d.status()["notices"])
    assert d.status()["ring"]["size"] == 84 << 20
    assert_whole(d, d.dump_by_control(), counted)
    configured.must_reload("RingSize= is now 16.0M", **COUNTED, RingSize="16M")
    assert not any("M would fit" in n for n in d.status()["notices"])


def test_keys_that_wait_for_a_restart_are_named_and_mistakes_change_nothing(configured):
    d = configured.start(**COUNTED, RingSize="4M")
    r = configured.must_reload(**COUNTED, RingSize="4M", CompressionLevel=3, MetricsListen="127.0.0.1:9752")
    assert "CompressionLevel= waits for a restart" in r.err and "MetricsListen= waits for a restart" in r.err
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


def test_triggers_that_cannot_be_armed_are_reported(configured):
    """`reload` and `verify-config` report triggers that cannot be armed, with the reason. All other settings and triggers take
    effect."""
    d = configured.start(**COUNTED, RingSize="4M")
    configured.write(**COUNTED, RingSize="2M")
    text = configured.path.read_text()
    configured.path.write_text(text + "[Trigger lost]\nEvent=page-faults\nThreshold=1000000\nCGroup=/no/such/group\n"
                                      "[Trigger beat]\nEvery=1h\n")
    r = d.ctl("reload")
    assert r.code == EXIT["partly"] and "RingSize= is now 2.0M" in r.out, r
    assert "trigger lost is not armed" in r.err and f"{configured.path}:" in r.err and "beat" not in r.err, r.err
    not_armed = json.loads(d.ctl("reload", "--json=short").out)["not_armed"]
    assert [t["name"] for t in not_armed if "origin" in t] == ["lost"], not_armed
    r = d.ctl("verify-config")
    assert r.code == EXIT["partly"] and "trigger lost is not armed" in r.err, r
    r = d.ctl("verify-config", configured.path)
    assert r.code == 0 and "only the recorder can tell" in r.err, r
    configured.path.write_text(text)
    r = d.ctl("reload")
    assert (r.code, r.err) == (0, ""), r
