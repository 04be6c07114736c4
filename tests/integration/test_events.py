# SPDX-License-Identifier: GPL-2.0-or-later
"""Events in perf's syntax, and which tasks and CPUs they record."""
import os
import subprocess
from collections import Counter

import pytest

from harness import (MARK, NO_LOSS, chains, end, finish_load, has_pmu, in_program, last_cpu, load, meta, perf, perf_clean,
                     program, report_rows, run, samples_of, script_lines, start, start_load, until)


def names(sample):
    """Returns the names of the events of a file as stock perf prints them, without the events of side-band and of trigger
    samples."""
    out = perf_clean("evlist", "-i", sample)
    return [line.strip() for line in out.splitlines() if line.strip() and not line.startswith(("#", "dummy", MARK))]


@pytest.mark.parametrize("specs, wanted", [
    (["sched:sched_switch"], {"sched:sched_switch"}),
    (["raw_syscalls:*"], {"raw_syscalls:sys_enter", "raw_syscalls:sys_exit"}),
    (["sched:sched_process_e*"], {"sched:sched_process_exec", "sched:sched_process_exit"}),
    (["sched:sched_switch,raw_syscalls:sys_enter"], {"sched:sched_switch", "raw_syscalls:sys_enter"}),
    (["cpu-clock", "sched:sched_wakeup"], {"cpu-clock", "sched:sched_wakeup"}),
    (["context-switches"], {"context-switches"}),
    (["cs"], {"context-switches", "cs"}),
    (["page-faults"], {"page-faults"}),
    (["faults"], {"page-faults", "faults"}),
    (["task-clock"], {"task-clock"}),
    (["cpu-clock:u"], {"cpu-clock:u"}),
    (["cpu-clock/period=1000000/"], {"cpu-clock"}),
    (["cpu-clock/freq=999,call-graph=fp/"], {"cpu-clock"}),
    (["bpf-output/name=probe/"], {"probe", "bpf-output"}),
])
def test_specifications(recorder, specs, wanted):
    d = recorder(*NO_LOSS, *[x for s in specs for x in ("-e", s)], "-M", "8M")
    p = start_load("pingpong", "-t", "0.2")
    load("spawn", "-n", 5, "-m", "10")
    finish_load(p)
    sample = d.dump_by_control()
    found = {n.split("/")[0] if "/" in n else n for n in names(sample)}
    assert found and found <= wanted, f"perf evlist: {found}"
    if "," in "".join(specs) or "*" in specs[0]:
        assert found == wanted
    if specs[0].startswith("bpf-output"):
        return  # no program makes samples of this event
    events = {line.event.split("/")[0] for line in script_lines(sample, trace=False)}
    assert events, "no samples"
    assert events <= wanted


def test_hardware_events(recorder):
    if not has_pmu():
        pytest.skip("no hardware PMU: cycles is not supported here")
    d = recorder("-e", "cycles:u", "-e", "instructions", "-F", "999", "-M", "8M")
    did = load("burn", "-u", "1")
    sample = d.dump_by_control()
    counts = Counter(line.event for line in script_lines(sample, trace=False) if line.pid == did["pid"])
    assert counts["cycles:u"] > 300 and counts["instructions"] > 300, counts


def test_a_machine_without_a_pmu(recorder, state_dir):
    """A hardware event is refused, and the message names it. Without events, the recorder replaces its default event by another
    one, and reports this once."""
    if has_pmu():
        pytest.skip("there is a hardware PMU here")
    for spec in ("cycles", "r1a8", "L1-dcache-load-misses", "cpu-clock/call-graph=lbr/"):
        r = run(program("flightrecd"), "-e", spec, "-o", state_dir, "--socket", state_dir / "control")
        assert r.code > 0 and spec.split("/")[0] in r.err, (spec, r)
    d = recorder("-M", "4M")
    log = d.log()
    assert len([line for line in log.splitlines() if "cpu-clock" in line and "cycles" in line]) == 1, log


def test_period(recorder):
    """A tracepoint with period=100 makes one sample for a hundred calls. The kernel counts the calls of all programs together,
    so the test uses a system call that other programs rarely make."""
    d = recorder("-e", "raw_syscalls:sys_enter/period=100/", "--filter", "id == 110", "-C", last_cpu(), "-M", "8M")
    did = load("syscalls", "-n", 50000, "-c", last_cpu())
    sample = d.dump_by_control()
    count = sum(line.tid == did["pid"] for line in script_lines(sample))
    assert 490 <= count <= 510, count


def test_user_modifier(recorder):
    d = recorder("-e", "cpu-clock:u", "-F", "999", "-M", "8M")
    did = load("syscalls", "-n", 2000000, "-c", last_cpu())
    sample = d.dump_by_control()
    out = perf_clean("script", "-i", sample, "--pid", did["pid"], "-F", "ip", "-G")
    addresses = [int(x, 16) for x in out.split()]
    assert len(addresses) > 20
    assert not [a for a in addresses if a >> 63], "kernel addresses in spite of :u"


def test_filter(recorder):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110", "-e", "sched:sched_switch", "-M", "16M")
    did = load("syscalls", "-n", 5000)
    lines = script_lines(d.dump_by_control())
    calls = [line for line in lines if line.event == "raw_syscalls:sys_enter"]
    assert sum(line.tid == did["pid"] for line in calls) == 5000
    assert all(line.trace.startswith("NR 110 ") for line in calls)
    assert any(line.event == "sched:sched_switch" for line in lines), "a filter is only for the event before it"


def test_a_filter_never_lets_the_recorders_own_events_in(recorder):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110 || id != 110", "-M", "16M")
    load("syscalls", "-n", 1000)
    d.dump_by_signal()
    lines = script_lines(d.dump_by_control())
    assert len(lines) > 1000 and not [line for line in lines if line.pid == d.pid]


def test_software_event_of_another_recorder(recorder, tmp_path):
    """If an event of the recorder and an event of perf sample the same page fault, Linux 6.18 gives the recorder's sample the
    id of perf's event. The recorder omits samples with such an id and counts them as the loss foreign-id. So perf can read the
    dump."""
    # -M 64M: while the dump is written, the ring must have room for the page faults of all programs of the machine.
    d = recorder(*NO_LOSS, "-e", "page-faults", "-c", 1, "--call-graph=fp", "-M", "64M")
    did = perf("record", "-a", "-g", "-k", "CLOCK_MONOTONIC", "-e", "page-faults", "-e", "sched:sched_process_exec", "-c", 1,
               "-o", tmp_path / "own", "--", program("frtest-spawn"), "-n", 20, "-m", 5)
    assert did.code == 0, did.err
    load("spawn", "-n", 20, "-m", 5)
    sample = d.dump_by_control()
    losses = d.lost()
    lines = script_lines(sample, trace=False)
    assert len(lines) > 100 and {line.event for line in lines} == {"page-faults"}
    assert set(losses) <= {"foreign-id"}, losses
    print(f"of others: {losses}; left: {len(lines)}")


def test_cpu_list(recorder):
    other = min(os.sched_getaffinity(0))
    if other == last_cpu():
        pytest.skip("one CPU only")
    d = recorder("-e", "cpu-clock", "-F", "499", "-C", last_cpu(), "-M", "4M")
    load("burn", "-u", "0.3", "-c", last_cpu())
    load("burn", "-u", "0.3", "-c", other)
    sample = d.dump_by_control()
    assert {line.cpu for line in script_lines(sample, trace=False)} == {last_cpu()}


def test_one_process_with_its_threads(recorder):
    """The process starts before the recorder, so the recorder finds its maps in /proc."""
    burn, pingpong = (start(program(f"frtest-{name}"), "-t", 600, stdout=subprocess.DEVNULL) for name in ("burn", "pingpong"))
    until("second thread", lambda: len(os.listdir(f"/proc/{pingpong.pid}/task")) == 2)
    d = recorder("-e", "cpu-clock", "-F", "499", "--call-graph=fp", "-p", burn.pid, "-M", "4M")
    load("burn", "-u", "0.1")
    d.until_sampled("cpu-clock", 150)
    sample = d.dump_by_control()
    d.stop()
    lines = script_lines(sample, trace=False)
    assert len(lines) > 100 and {line.pid for line in lines} == {burn.pid}
    rows = in_program(report_rows(sample))
    assert samples_of(rows, "frtest-burn", "frtest_burn_hot") > 0.9 * samples_of(rows) > 0.7 * len(lines)

    d = recorder("-e", "sched:sched_switch", "-p", pingpong.pid, "-M", "8M")
    d.until_sampled("sched:sched_switch", 1000)
    lines = script_lines(d.dump_by_control())
    end(burn, pingpong)
    assert len({line.tid for line in lines}) == 2 and {line.pid for line in lines} == {pingpong.pid}
    assert {"frtest-pingpong", "frtest-pong"} == {line.comm for line in lines}


def burn_in(group):
    """Runs a load in a control group to its end. Returns its pid."""
    inside = start("sh", "-c", f"echo $$ > {group}/cgroup.procs && exec {program('frtest-burn')} -u 0.3",
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _, err = inside.communicate(timeout=180)
    if inside.returncode:
        pytest.skip(f"no process can be moved to {group}: {err}")
    return inside.pid


def test_cgroup(recorder, group):
    d = recorder("-e", "cpu-clock", "-F", "499", "--cgroup", group, "-M", "4M")
    load("burn", "-u", "0.2")
    pid = burn_in(group)
    sample = d.dump_by_control()
    lines = script_lines(sample, trace=False)
    assert len(lines) > 100
    assert {line.pid for line in lines} == {pid}, Counter(line.comm for line in lines)
    # The restart of a service does the same: systemd removes the cgroup and makes it again.
    group.rmdir()
    group.mkdir()
    until("cgroup that is recorded again", lambda: "cgroup-came" in d.lost(), 60)
    again = burn_in(group)
    sample = d.dump_by_control()
    assert {"cause": "cgroup-came", "count": 1} in meta(sample)["losses"]
    found = Counter(line.pid for line in script_lines(sample, trace=False))
    assert set(found) == {pid, again} and found[again] > 100, found


def test_a_cgroup_that_is_made_again_in_a_loop_costs_little(recorder, group):
    """If a service crashes in a loop, its cgroup is removed and made each time. The recorder opens its events only a few times,
    and its memory does not grow."""
    d = recorder("-e", "cpu-clock", "-F", "499", "--cgroup", group, "-M", "4M")
    before = d.status()["self"]["rss_bytes"]
    for _ in range(2000):
        group.rmdir()
        group.mkdir()
    until("cgroup that is recorded again", lambda: "cgroup-came" in d.lost(), 60)
    assert d.lost()["cgroup-came"] <= 10, d.lost()
    assert d.status()["self"]["rss_bytes"] - before < 8 << 20
    d.dump_by_control()


def test_overwrite_ring(recorder):
    """A dump has the newest records of an overwritable kernel ring, each once, and also the records of another event.

    The kernel ring has no room for all samples of the first load. But it is large enough that, until the dump, the system calls
    of other programs do not overwrite the samples of the second load."""
    d = recorder("-e", "raw_syscalls:sys_enter/overwrite/", "-e", "cpu-clock", "-F", "99", "-m", "16M", "-M", "64M")
    load("syscalls", "-n", 200000, "-c", last_cpu())
    did = load("syscalls", "-n", 2000, "-c", last_cpu())
    lines = script_lines(d.dump_by_control(), trace=False)
    calls = [line for line in lines if line.tid == did["pid"] and line.event.startswith("raw_syscalls:sys_enter")]
    assert 2000 <= len(calls) < 2200, "the 2,000 calls, and those of a process's start and end"
    assert len({line.time for line in calls}) == len(calls), "each call is there once"
    assert any(line.event == "cpu-clock" for line in lines)
    again = load("syscalls", "-n", 2000, "-c", last_cpu())
    lines = script_lines(d.dump_by_control(), trace=False)
    assert sum(line.tid == again["pid"] for line in lines) >= 2000
    own = [line for line in lines if line.pid == d.pid and line.event.startswith("raw_syscalls")]
    assert not own, f"the recorder's own events: {own[:3]}"


def test_dwarf_stacks(recorder):
    d = recorder("-e", "cpu-clock", "-F", "199", "--call-graph", "dwarf,4096", "-M", "32M")
    did = load("burn", "-u", "1")
    sample = d.dump_by_control()
    if not perf_can_unwind():
        pytest.skip("this perf cannot unwind DWARF stacks")
    stacks = [s for s in chains(sample, did["pid"]) if s[0] == "frtest_burn_hot"]
    whole = [s for s in stacks if s[:4] == ["frtest_burn_hot", "frtest_burn_middle", "frtest_burn_top", "main"]]
    assert len(stacks) > 50 and len(whole) >= 0.9 * len(stacks), (len(whole), len(stacks), stacks[:1])


def perf_can_unwind():
    return any(" on " in line for line in perf("version", "--build-options").out.splitlines()
               if "libdw-dwarf-unwind" in line or "libunwind" in line)
