# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorder that is killed or restarted adopts the ring of the previous instance, and reports the time for which no instance
recorded. These tests use the descriptor store of manager.py. tests/vm does the same with the descriptor store of systemd."""
import ctypes
import fcntl
import os
import random
import re
import signal
import struct
import subprocess
import time
from bisect import bisect
from pathlib import Path

import pytest

from conftest import as_user
from harness import (EXIT, FULL, Daemon, cpu_seconds, end, environment, finish_load, last_cpu, load, meta, must, program, quiet_config,
                     report_rows, run, samples_of, script_lines, sequence, start_load, until, until_ran)

KILLS = 20 if FULL else 5
# Only the lseek() calls of the load. The calls of other processes could evict the numbers that a test counts from a small ring.
COUNTED = ("-e", "raw_syscalls:sys_enter/capture=perf/", "--filter", 'id == 8 && COMM == "frtest-count"', "-m", "16M")
DRAIN_PERIOD = 0.2
WALL = 0x40000000  # __WALL of waitpid(2): wait also for threads of other processes
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


@pytest.fixture
def instance(recorder, service_manager):
    """instance("-e", "x", …) starts the next instance of the service."""
    return lambda *args, **kwargs: recorder(*args, manager=service_manager, armed=False, **kwargs)


def count(seconds=0.3):
    """Counts on one CPU, with a pause of 5 ms after every 256 numbers. Returns the JSON of the load."""
    return load("count", "-t", seconds, "-c", last_cpu(), "-p", 5000)


def whole(path, counted):
    """Checks that the file has each number of the load COUNTED."""
    found = sequence(path, counted)
    assert (found["count"], found["missing"]) == (counted["calls"], 0), found


def restart_loss(sample):
    loss, = (x for x in meta(sample)["losses"] if x["cause"] == "restart")
    return loss


def has_chown(pid):
    """Returns the names of the capability sets in which at least one thread of a process has CAP_CHOWN."""
    sets = set()
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        sets |= {name for name in ("CapPrm", "CapEff", "CapInh", "CapAmb") if int(lines[name], 16) & 1}
    return sets


def test_the_files_of_a_service_belong_to_root(instance, open_dir, nobodys_dir):
    """Without -f, stock perf opens a file only if it belongs to the user who runs perf or to root. A recorder that runs as its
    own user and has CAP_CHOWN gives its files to root, and can still use them. So a member of its group does not need -f."""
    service = as_user("perfmon", "ipc_lock", "syslog", "sys_ptrace", "dac_read_search", "chown")
    member = as_user(uid=65533)

    def open_in_perf(path):
        st = path.stat()
        assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (0, 65534, 0o640)
        r = run(*member, "perf", "report", "-i", path, "--stdio")
        assert r.code == 0 and "not owned" not in r.err, r
        return r.out

    def start():
        return instance("-e", "cpu-clock", "-F", "999", "-M", "4M", directory=nobodys_dir, binary=open_dir / "flightrecd", prefix=service)

    auxiliary = nobodys_dir / "perf.data.auxiliary"
    d, jit = start(), start_load("jit", "-t", "7200")
    try:
        assert has_chown(d.pid) == {"CapPrm"}
        until("CPU time of the load", lambda: jit.poll() is not None or cpu_seconds(jit.pid) > 0.3)
        assert "frtest_jit_one" in open_in_perf(d.dump_by_control()) or jit.poll() == 77
        open_in_perf(auxiliary)
        before = auxiliary.stat()
        d.kill()
        d = start()
        load("spawn", "-n", "50", "-m", "1")
        until("more records in the auxiliary file", lambda: auxiliary.stat().st_size > before.st_size)
        assert (auxiliary.stat().st_ino, auxiliary.stat().st_uid) == (before.st_ino, 0)
        assert d.status()["sideband"].get("last_error", "") == ""
        assert "cpu-clock" in open_in_perf(d.dump_by_control())
        removed = d.ctl("vacuum", "--max-files=1")
        assert removed.code == 0 and len(d.samples()) == 1, removed
    finally:
        d.kill()
        jit.kill()
        Path(f"/tmp/perf-{jit.pid}.map").unlink(missing_ok=True)
    r = run(*service, open_dir / "flightrec-merge", "--service", nobodys_dir, env=environment(SERVICE_RESULT="success"))
    assert r.code == 0, r
    # perf.data.jit may exist, because it has the objects of run-time code of other processes of this machine.
    assert sorted(p.name for p in nobodys_dir.glob("perf.data*") if p.suffix != ".jit") == ["perf.data", "perf.data.json"]
    assert "frtest_jit_one" in open_in_perf(nobodys_dir / "perf.data") or jit.poll() == 77


def drained(daemon):
    """Waits until all records from before this call are in the ring. To be sure, it waits two times for a record that is newer
    than the wait."""
    for _ in range(2):
        now = time.monotonic_ns()
        until("younger records in the ring",
              lambda: load("count", "-t", 0.001, "-c", last_cpu()) and daemon.status()["ring"]["last_ns"] > now)


def test_kills_lose_only_what_was_not_drained(instance):
    """The recorder is killed many times. The last dump has each number that had been moved from the kernel rings into the ring,
    so numbers are missing only around the restarts."""
    d = instance(*COUNTED, "-M", "32M")
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 1000)
    spawning = start_load("spawn", "-t", 3600, "-m", 1)
    until("numbers", lambda: d.status()["ring"]["samples"] > 1000)
    gaps, lost = [], 0
    for _ in range(KILLS):
        time.sleep(random.uniform(0.05, 1.2))
        lost += d.lost_to_others()
        killed = time.monotonic_ns()
        d.kill()
        d = instance(*COUNTED, "-M", "32M")
        ready = time.monotonic_ns()
        adopted = d.status()["adopted"]
        gaps.append((adopted["gap_from_ns"], adopted["gap_to_ns"]))
        assert adopted["in_place"]
        assert killed - (DRAIN_PERIOD + 3) * 1e9 < adopted["gap_from_ns"] < adopted["gap_to_ns"] < ready, (adopted, killed, ready)
    counted = finish_load(counting, stop=True)
    end(spawning)
    sample = d.dump_by_control()
    lost += d.lost_to_others()
    assert d.lost()["restart"] == KILLS == d.status()["adopted"]["restarts"]
    assert restart_loss(sample)["count"] == KILLS
    assert 0 < restart_loss(sample)["seconds"] <= sum(b - a for a, b in gaps) / 1e9 * 1.01

    found = sequence(sample, counted)
    assert (found["first"], found["last"]) == (0, counted["calls"] - 1), found
    assert (found["twice"], found["backwards"]) == (0, 0), found
    print(f"gaps: {[round((b - a) / 1e6) for a, b in gaps]} ms; holes: "
          f"{[round((h['to_ns'] - h['from_ns']) / 1e6) for h in found['holes']]} ms; lost otherwise: {lost}")
    if lost:
        pytest.skip(f"{lost} records were lost for other reasons: the machine is too busy to tell them apart")
    # A hole is a range of missing numbers. Its begin and end are the times of the numbers before and after it. The load may
    # have paused there, so a hole can be longer than the time without a recorder by two of the longest pauses of the load.
    pause = 2 * counted["longest_ns"]
    for hole in found["holes"]:
        assert any(a - pause <= hole["from_ns"] and hole["to_ns"] <= b + pause + 20_000_000 for a, b in gaps), \
            f"{hole} is in none of {gaps}, with pauses of {pause}"
    assert len(found["holes"]) <= KILLS


def test_clean_restart_keeps_the_history(instance, service_manager):
    d = instance(*COUNTED, "-M", "8M")
    counted = count()
    first = d.dump_by_control()
    d.stop()
    assert service_manager.names() == ["flightrec-ring-1", "flightrec-state"]
    # The new instance records other events. Its dump has the samples of both instances.
    d = instance("-e", "sched:sched_switch", "-e", "cpu-clock", "-F", "99", "-M", "8M")
    assert d.status()["dumps"]["done"] == 1, "counters go on"
    load("burn", "-u", "0.1")
    sample = d.dump_by_control()
    assert sample != first
    whole(sample, counted)
    assert {x.event for x in script_lines(sample, trace=False)} >= {"raw_syscalls:sys_enter", "sched:sched_switch", "cpu-clock"}
    assert "Adopted" in d.ctl("status").out
    whole(d.finish(), counted)
    assert service_manager.names() == [], "a history that is in a file needs no descriptors"


def test_exited_processes_resolve_after_a_kill(instance):
    """Processes that ended before the kill, and a process that ended while no recorder ran, have names and symbols."""
    profile = ("-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "16M")
    d = instance(*profile)
    pids = set(load("spawn", "-n", 12, "-m", 30)["children"])
    burning = start_load("burn", "-t", 3600)
    until_ran(burning, seconds=0.2)
    drained(d)
    d.kill()
    end(burning)
    d = instance(*profile)
    again = set(load("spawn", "-n", 5, "-m", 30)["children"])
    judge_exited(d.dump_by_control(), pids, again, burning)
    judge_exited(d.finish(), pids, again, burning)


def judge_exited(path, pids, again, burning):
    lines = script_lines(path, trace=False)
    us = Path("/proc/self/comm").read_text().strip()
    for pid, comm in [(p, "frtest-child") for p in pids | again] + [(burning.pid, "frtest-burn")]:
        mine = [line for line in lines if line.pid == pid]
        assert mine, f"no sample of {comm} {pid} in {path}"
        wrong = [line for line in mine if line.comm not in (comm, "frtest-spawn", us)]
        assert not wrong, f"{path}: {wrong[:3]}"
        assert any(line.comm == comm for line in mine)
    rows = report_rows(path)
    assert samples_of(rows, "frtest-child", "frtest_child_hot") > 12 * 30 * 0.4, rows


def test_names_from_records_that_were_evicted_before_the_kill(instance):
    """A process starts, the records of its start are evicted, the recorder is killed, and the process ends. The next instance
    knows its name."""
    args = ("-e", "raw_syscalls:sys_enter", "-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "1M", "-m", "4M")
    d = instance(*args)
    burning = start_load("burn", "-t", 3600)
    until("eviction", lambda: load("syscalls", "-t", "0.5") and d.status()["ring"]["evicted_samples"] > 300000, 300)
    until_ran(burning, seconds=0.2)
    drained(d)
    d.kill()
    end(burning)
    # The second instance does not record system calls, because they would evict all records of the first instance.
    d = instance("-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "1M", "-m", "4M")
    lines = [x for x in script_lines(d.dump_by_control(), trace=False) if x.pid == burning.pid and x.event == "cpu-clock"]
    assert lines and {x.comm for x in lines} == {"frtest-burn"}


@pytest.mark.parametrize("size", ["2M", "32M"])
def test_other_size_after_a_restart(instance, service_manager, size):
    d = instance(*COUNTED, "-M", "8M")
    counted = count()
    drained(d)
    d.kill()
    d = instance(*COUNTED, "-M", size)
    adopted = d.status()["adopted"]
    assert adopted["in_place"] and adopted["samples"] > 0
    assert d.status()["ring"]["size"] == int(size[:-1]) << 20
    assert service_manager.names() == ["flightrec-ring-2", "flightrec-state"], "the old ring is not kept"
    found = sequence(d.dump_by_control(), counted)
    assert found["missing"] == 0 and found["last"] == counted["calls"] - 1
    d.kill()
    d = instance(*COUNTED, "-M", size)
    assert d.status()["adopted"]["in_place"]
    assert sequence(d.dump_by_control(), counted) == found


GOOD = "[Recorder]\nEvents=raw_syscalls:sys_enter\nFilter=id == 8\nKernelBuffer=16M\nRingSize=8M\n"


@pytest.mark.parametrize("wrong, where", [
    ("RingSize=lots\n", ":2: RingSize= is not a size: 'lots'"),
    ("Events=sched:no_such_event\n", ":2: there is no event"),
    ("CGroup=/no/such/group\n", "/no/such/group"),
    ("\xff\x00\x1b]0;x\x07\n", ":2: "),
])
def test_an_invalid_configuration_loses_nothing(instance, service_manager, tmp_path, wrong, where):
    conf = quiet_config(tmp_path / "flightrecd.conf", GOOD)
    good = conf.read_text()
    d = instance("--config", conf)
    counted = count()
    drained(d)
    d.stop()
    conf.write_bytes(b"[Recorder]\n" + wrong.encode("latin-1"))
    for restarts in (1, 2):  # the first of these two instances adopts the ring of d, the second adopts it from the first
        d = instance("--config", conf)
        status = d.status()
        assert status["adopted"]["restarts"] == restarts
        assert [e["name"] for e in status["events"]] == ["raw_syscalls:sys_enter"] and status["ring"]["size"] == 8 << 20
        assert where in status["config_error"]["what"], status["config_error"]
        assert any(where in n for n in status["notices"]) and where in d.ctl("status").out
        assert any("with the previous configuration" in line for line in service_manager.said("STATUS=")), service_manager.lines
        assert d.log().count("the previous one stays in force") == 1
        d.stop()
    d = instance("--config", conf)
    whole(d.dump_by_control(), counted)
    conf.write_text(good)
    assert d.ctl("reload").code == 0
    assert "config_error" not in d.status()
    d.kill()
    assert "config_error" not in instance("--config", conf).status()


def test_a_ring_that_is_too_large_loses_nothing(instance, tmp_path):
    """If RingSize= is larger than the limits of the process permit, the recorder keeps the old ring with its size."""
    conf = quiet_config(tmp_path / "flightrecd.conf", GOOD)
    d = instance("--config", conf)
    counted = count()
    drained(d)
    d.stop()
    conf.write_text(conf.read_text().replace("RingSize=8M", "RingSize=64M"))
    limited = ("sh", "-c", "trap '' XFSZ; ulimit -f 65536; exec \"$@\"", "sh")  # files of at most 32 MiB, also memory files
    d = instance("--config", conf, prefix=limited)
    status = d.status()
    assert status["ring"]["size"] == 8 << 20 and status["adopted"]["in_place"]
    assert any("RingSize=" in n and "File too large" in n for n in status["notices"]), status["notices"]
    assert "config_error" not in status, "all else is as the file says"
    whole(d.dump_by_control(), counted)


def test_a_first_start_with_an_invalid_configuration_fails_and_says_why(service_manager, state_dir, tmp_path):
    conf = tmp_path / "flightrecd.conf"
    conf.write_text("[Recorder]\nRingSize=lots\n")
    d = Daemon(state_dir, "--config", conf, manager=service_manager).launch()
    assert d.wait() == EXIT["usage"] and f"{conf}:2" in d.log()
    service_manager.settle()
    assert f"{conf}:2" in service_manager.status()


def test_killed_while_the_ring_changes_its_size(instance, service_manager, tmp_path):
    """While the ring changes its size, the descriptor store has two rings. Each of them has a part of the records."""
    config = quiet_config(tmp_path / "flightrecd.conf", "[Recorder]\nRingSize=8M\n")
    d = instance("--config", config, *COUNTED)
    counted = count()
    drained(d)
    config.write_text(config.read_text().replace("=8M", "=256M"))
    reload = d.start_ctl("reload")
    until("two rings", lambda: "flightrec-ring-2" in service_manager.names())
    d.kill()
    reload.communicate()
    config.write_text(config.read_text().replace("=256M", "=32M"))
    d = instance("--config", config, *COUNTED)
    status = d.status()
    assert status["ring"]["size"] == 32 << 20 and status["adopted"]["samples"] > 0
    assert len(service_manager.names()) == 2 and "flightrec-state" in service_manager.names(), "rings without use are not kept"
    found = sequence(d.dump_by_control(), counted)
    assert found["missing"] == 0 and found["last"] == counted["calls"] - 1


def damage(manager, name, at, data):
    os.pwrite(next(fd for n, fd in manager.fds if n == name), data, at)


@pytest.mark.parametrize("what", ["ring", "state", "no-ring", "no-state"])
def test_what_cannot_be_adopted_is_reported(instance, service_manager, what):
    d = instance(*COUNTED, "-M", "4M")
    load("count", "-t", 0.3, "-p", 5000)
    d.kill()
    if what == "ring":
        damage(service_manager, "flightrec-ring-1", 0, b"\xff" * (4 << 20))
    elif what == "state":
        damage(service_manager, "flightrec-state", 40, b"\xff" * 64)
        damage(service_manager, "flightrec-state", (16 << 20) + 40, b"\xff" * 64)
    else:
        service_manager.remove("flightrec-ring-1" if what == "no-ring" else "flightrec-state")
    d = instance(*COUNTED, "-M", "4M")
    status = d.status()
    assert "adopted" not in status
    if what != "no-state":  # without a state, the recorder does not know that there was a previous instance
        assert any("lost" in n for n in status["notices"]) and "is lost" in d.log()
    assert len(service_manager.names()) == 2
    counted = count()
    whole(d.dump_by_control(), counted)
    d.kill()
    d = instance(*COUNTED, "-M", "4M")
    whole(d.dump_by_control(), counted)


@pytest.mark.parametrize("what", ["ring", "state"])
def test_what_cannot_be_adopted_takes_no_memory(instance, service_manager, memory_group, what):
    """After an upgrade, it is possible that the new version cannot read the ring of the old version. It must free the old ring,
    because the memory has no room for two rings."""
    group = memory_group(160)
    instance(*COUNTED[:-2], "-M", "80M", prefix=group).kill()
    for at in (0, 16 << 20):  # the offsets of the two slots of the state. The header of the ring is at offset 0
        damage(service_manager, "flightrec-ring-1" if what == "ring" else "flightrec-state", at + 40, b"\xff" * 4096)
    d = instance(*COUNTED[:-2], "-M", "80M", prefix=group)
    assert d.status()["ring"]["size"] == 80 << 20 and "is lost" in d.log()
    d.stop()


def test_the_auxiliary_file_of_another_recorder_is_renamed(instance, recorder, state_dir):
    """While the service was stopped, a person recorded to the same directory."""
    d = instance(*COUNTED, "-M", "4M")
    counted = count()
    drained(d)
    d.kill()
    other = recorder("-e", "sched:sched_switch", "-M", "4M")
    child = load("spawn", "-n", 1, "-m", 30)["children"][0]
    theirs = other.dump_by_control()
    other.stop()
    before = (state_dir / "perf.data.auxiliary").read_bytes()
    d = instance(*COUNTED, "-M", "4M")
    whole(d.dump_by_control(), counted)
    d.stop()
    away, = state_dir.glob("perf.data.auxiliary.*")
    assert away.read_bytes() == before
    merged = state_dir / "perf.data.theirs"
    must(program("flightrec-merge"), theirs, away, "-o", merged, "--keep")
    assert "frtest-child" in {line.comm for line in script_lines(merged, trace=False) if line.pid == child}


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


class Stopped:
    """During a with-statement, stops those threads of a process whose names are in NAMES. The other threads run."""

    def __init__(self, pid, names):
        tasks = Path(f"/proc/{pid}/task")
        self.tids = [int(t.name) for t in tasks.iterdir() if (t / "comm").read_text().strip() in names]
        assert len(self.tids) == len(names)

    def __enter__(self):
        for tid in self.tids:
            for request in (PTRACE_SEIZE, PTRACE_INTERRUPT):
                assert libc.ptrace(request, tid, None, None) == 0
            os.waitpid(tid, WALL)

    def __exit__(self, *_):
        for tid in self.tids:
            libc.ptrace(PTRACE_DETACH, tid, None, None)


@pytest.mark.waits
def test_the_watchdog_is_fed_only_while_the_rings_are_drained(recorder):
    d = recorder(*COUNTED, "-M", "4M", env={"WATCHDOG_USEC": "1000000"})

    def feeds(seconds):
        before = len(d.manager.said("WATCHDOG=1"))
        time.sleep(seconds)
        return len(d.manager.said("WATCHDOG=1")) - before

    until("being fed twice in WatchdogSec=", lambda: feeds(1) >= 2)
    with Stopped(d.pid, {"fr-tracker", "fr-dumper"}):  # a disk that is stuck stops these two threads
        d.signal(signal.SIGUSR1)
        time.sleep(4)  # longer than the recorder feeds the watchdog if its thread does nothing
        until("being fed while the disk is stuck", lambda: feeds(1) >= 2)
    with Stopped(d.pid, {"fr-recorder"}):
        until("the end of the feeding", lambda: feeds(2) == 0, 20)
        assert feeds(2) == 0
    until("being fed again", lambda: feeds(1) >= 2)
    assert any("history in" in line for line in d.manager.said("STATUS=recording"))


HZ = 1000
BPF = ("-e", "cpu-clock/call-graph=unwind/", "-F", HZ, "-M", "32M")


def ticks(path):
    """Returns the times in ns of the samples of each CPU, sorted."""
    found = {}
    r = run("perf", "script", "-i", path, "-F", "cpu,time,event", "--ns", timeout=300)
    assert r.code == 0, r
    for cpu, s, ns in re.findall(r"^\s*\[(\d+)\]\s+(\d+)\.(\d{9}):\s+cpu-clock", r.out, re.M):
        found.setdefault(int(cpu), []).append(int(s) * 10**9 + int(ns))
    return {cpu: sorted(times) for cpu, times in found.items()}


@pytest.fixture
def control(recorder, tmp_path):
    """A recorder that is never restarted, and whose samples the kernel makes. It shows which samples nobody could make."""
    (tmp_path / "control").mkdir()
    return recorder("-e", "cpu-clock", "-F", HZ, "-M", "32M", directory=tmp_path / "control", armed=False)


def judge_no_gap(sample, windows, control):
    """Checks that no sample is missing in the windows (begin, end), and none came twice. On a virtual machine, the timer of
    cpu-clock can miss some periods at any time. So between two samples, the recorder CONTROL must have at most 8: two periods
    at a cut-over, and some that the kernel drops because programs of recorders of other tests run (docs/design/15). A start
    takes longer. Tests with numbered events judge each one."""
    others = ticks(control.dump_by_control())
    for cpu, times in ticks(sample).items():
        assert len(set(times)) == len(times), "a sample came twice"
        pairs = [(a, b) for a, b in zip(times, times[1:]) if any(a < end_ + 5e7 and begin - 3e8 < b for begin, end_ in windows)]
        most = max(bisect(others[cpu], b) - bisect(others[cpu], a) for a, b in pairs)
        print(f"CPU {cpu}: {len(times)} samples; longest distance {max(b - a for a, b in pairs) / 1e6:.2f} ms; "
              f"between two samples, the control has at most {most}")
        assert most <= 8
        # Nor did two instances record the same time.
        for begin, end_ in windows:
            mine, its = (bisect(t, end_ + 5e7) - bisect(t, begin - 5e7) for t in (times, others[cpu]))
            assert mine <= max(its, (end_ - begin + 1e8) / 1e9 * HZ) + 4, (cpu, mine, its)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_samples_of_bpf_programs_have_no_gap(instance, service_manager, control, how):
    """BPF programs go on making samples while no recorder runs. The last dump has all of them, each once."""
    burning = start_load("burn", "-t", 3600, "-c", last_cpu())
    d = instance(*BPF)
    windows = []
    for i in range(KILLS):
        time.sleep(random.uniform(0.05, 0.8))
        begin = time.monotonic_ns()
        d.kill() if how == "kill" else d.stop()
        d = instance(*BPF)
        windows.append((begin, time.monotonic_ns()))
        adopted = d.status()["adopted"]
        assert (adopted["restarts"], adopted["gaps_s"], adopted["gap_s"]) == (i + 1, 0, 0), (adopted, d.log())
        assert adopted["continued"] == "all" and 0 < adopted["sideband_gap_s"] < (windows[-1][1] - begin) / 1e9 + DRAIN_PERIOD + 3
    time.sleep(0.5)
    end(burning)
    assert "restart" not in d.lost() and "no gap before this instance" in d.text_status()
    sample = d.dump_by_control()
    assert not [x for x in meta(sample)["losses"] if x["cause"] == "restart"]
    judge_no_gap(sample, windows, control)
    d.finish()
    assert service_manager.names() == []


def test_kills_during_the_start_of_the_next_instance(instance, service_manager, control):
    """An instance is killed at any moment of its start. The one after it takes the samples of both."""
    burning = start_load("burn", "-t", 3600, "-c", last_cpu())
    d = instance(*BPF)
    time.sleep(0.3)
    windows = []
    for _ in range(KILLS):
        begin = time.monotonic_ns()
        d.kill()
        for _ in range(3):
            d.launch()
            time.sleep(random.uniform(0.02, 0.6))
            d.kill()
        d = instance(*BPF)
        windows.append((begin, time.monotonic_ns()))
        assert d.status()["adopted"]["continued"] == "all", d.log()
        assert {name.split("-", 3)[3] for name in service_manager.names() if "bpf" in name} == {"shared", "ring", "link", "guard"}
        assert len([name for name in service_manager.names() if name.endswith("shared")]) == 1, service_manager.names()
        time.sleep(0.2)
    end(burning)
    assert d.status()["adopted"]["gaps_s"] == 0
    judge_no_gap(d.dump_by_control(), windows, control)


@pytest.mark.parametrize("args", [BPF, (*COUNTED, "-M", "32M")], ids=["bpf", "kernel"])
def test_a_kill_before_the_samples_of_an_instance(instance, service_manager, state_dir, tmp_path, args):
    """An instance records side-band into the adopted ring before it records samples. If it is killed in between, dumps of the next
    instance have these records, and stock perf knows their event. The gap of samples begins before the killed instance."""
    lock = tmp_path / "lock"
    lock.touch()
    instance(*args).kill()
    killed = time.monotonic_ns()
    hold = {"LD_PRELOAD": str(program("frtest-slowproc.so")), "FRTEST_HOLD_START": str(lock)}
    held = Daemon(state_dir, *args, manager=service_manager, armed=False, env=hold).launch()
    try:
        until("side-band", lambda: service_manager.said("STATUS=starting: reads the processes"))
        children = load("spawn", "-n", 5, "-m", 1)["children"]
        time.sleep(3 * DRAIN_PERIOD)
    finally:
        held.kill()
    d = instance(*args)
    adopted = d.status()["adopted"]
    assert adopted["continued"] == ("all" if args == BPF else "none"), d.log()
    if args != BPF:
        assert adopted["gap_from_ns"] < killed and adopted["gap_s"] == adopted["gaps_s"] > 3 * DRAIN_PERIOD, (adopted, killed)
    tasks = must("perf", "script", "-i", d.dump_by_control(), "--show-task-events").out
    assert set(children) <= {int(pid) for pid in re.findall(r"PERF_RECORD_COMM exec: \S+:(\d+)/", tasks)}, tasks[-3000:]


def state_bytes(manager):
    """Returns the size of the newest state: the length in the header of its slot (src/handover/state.c)."""
    fd = next(fd for name, fd in manager.fds if name == "flightrec-state")
    return max(struct.unpack("QQ", os.pread(fd, 16, at + 16)) for at in (0, 16 << 20))[1]


@pytest.mark.parametrize("args", [BPF, COUNTED], ids=["bpf", "kernel"])
def test_the_state_forgets_events_without_records(instance, service_manager, state_dir, tmp_path, args):
    """Each start opens the events again, also a start that is killed. When the ring has no record of an opening any more, the
    opening leaves the state."""
    lock = tmp_path / "lock"
    lock.touch()
    hold = {"LD_PRELOAD": str(program("frtest-slowproc.so")), "FRTEST_HOLD_START": str(lock)}
    small = (*args, "-e", "raw_syscalls:sys_enter/capture=perf/", "-M", "1M")
    sizes = []
    d = instance(*small)
    for _ in range(6):
        d.kill()
        held = Daemon(state_dir, *small, manager=service_manager, armed=False, env=hold).launch()
        until("side-band", lambda: service_manager.said("STATUS=starting: reads the processes"))
        held.kill()
        d = instance(*small)
        sizes.append(state_bytes(service_manager))
        since = time.monotonic_ns()
        until("a ring of new records", lambda: load("count", "-t", 0.3) and d.status()["ring"]["first_ns"] > since)
    assert max(sizes[3:]) <= min(sizes) + 700, sizes  # openings of one start


def test_only_samples_of_the_kernel_have_a_gap(instance, control):
    """If the kernel makes the samples of an event, there is a gap, but not for the samples of BPF programs."""
    both = (*BPF, *COUNTED)
    burning = start_load("burn", "-t", 3600, "-c", last_cpu())
    d = instance(*both)
    time.sleep(0.5)
    begin = time.monotonic_ns()
    d.kill()
    d = instance(*both)
    window = (begin, time.monotonic_ns())
    adopted = d.status()["adopted"]
    assert adopted["continued"] == "some" and adopted["gaps_s"] > 0, adopted
    assert "except for samples of BPF programs" in d.text_status()
    time.sleep(0.5)
    end(burning)
    sample = d.dump_by_control()
    assert restart_loss(sample)["count"] == 1
    judge_no_gap(sample, [window], control)


def test_a_full_descriptor_store_means_a_gap(instance, service_manager):
    """If systemd refuses some of the descriptors, the next instance does not use the others, and says so."""
    service_manager.limit = 6
    d = instance(*BPF)
    time.sleep(0.3)
    d.kill()
    service_manager.limit = None
    d = instance(*BPF)
    adopted = d.status()["adopted"]
    assert adopted["continued"] == "none" and adopted["gaps_s"] > 0, adopted
    assert "there is a gap" in d.log() and "FileDescriptorStoreMax=" in d.log()
    d.kill()
    assert instance(*BPF).status()["adopted"]["continued"] == "all"


def test_descriptors_of_another_version_leave_the_store(instance, service_manager):
    """A newer version may store descriptors that this version does not know. After a downgrade, nobody else would remove them."""
    d = instance(*BPF)
    d.kill()
    for name in ("flightrec-other", "flightrec-bpf-1-other", "flightrec-bpf-7-other", "mine"):
        with open("/dev/null", "rb") as f:
            service_manager.fds.append((name, fcntl.fcntl(f, fcntl.F_DUPFD_CLOEXEC, 200)))
    d = instance(*BPF)
    assert d.status()["adopted"]["continued"] == "all"
    assert not [name for name in service_manager.names() if "other" in name] and "mine" in service_manager.names()


def test_events_that_are_not_configured_any_more(instance, service_manager):
    """The next instance takes what the BPF programs of the previous one have made, and ends them. A reload stores the programs of
    the new events."""
    burning = start_load("burn", "-t", 3600, "-c", last_cpu())
    d = instance(*BPF)
    time.sleep(0.3)
    killed = time.monotonic_ns()
    d.kill()
    time.sleep(0.5)
    d = instance("-e", "sched:sched_switch/capture=perf/", "-M", "32M")
    assert d.status()["adopted"]["continued"] == "all"
    assert not [name for name in service_manager.names() if "bpf" in name]
    times = ticks(d.dump_by_control())[last_cpu()]
    end(burning)
    assert len(set(times)) == len(times) and max(times) > killed + 4.5e8


def test_a_reload_then_a_kill(instance, service_manager, control, tmp_path):
    """After a reload, the programs of the new events go on, and the old ones are gone."""
    config = "[Recorder]\nEvents=cpu-clock/call-graph=unwind,freq={}/\nRingSize=32M\n"
    conf = quiet_config(tmp_path / "flightrecd.conf", config.format(HZ // 2))
    rest = conf.read_text().replace(config.format(HZ // 2), "")
    burning = start_load("burn", "-t", 3600, "-c", last_cpu())
    d = instance("--config", conf)
    windows = []
    for hz in (HZ, HZ - 1, HZ):
        conf.write_text(config.format(hz) + rest)
        begin = time.monotonic_ns()
        assert d.ctl("reload").code == 0
        service_manager.settle()
        assert len([name for name in service_manager.names() if name.endswith("shared")]) == 1
        d.kill()
        d = instance("--config", conf)
        windows.append((begin, time.monotonic_ns()))
        assert d.status()["adopted"]["continued"] == "all"
        time.sleep(0.4)
    end(burning)
    judge_no_gap(d.dump_by_control(), windows[1:], control)


@pytest.mark.parametrize("what", ["reload", "restart"])
def test_a_kill_at_each_step_of_a_change(instance, service_manager, state_dir, tmp_path, what):
    """A reload or a restart changes the events. Whenever it is killed, BPF programs of the old or of the new events go on, so there
    is no gap."""
    conf, trap = quiet_config(tmp_path / "flightrecd.conf", ""), tmp_path / "trap"
    rest, step, killed = conf.read_text(), 0, True

    def configure(hz):
        conf.write_text(f"[Recorder]\nEvents=cpu-clock/call-graph=unwind,freq={hz}/\nRingSize=8M\n" + rest)

    configure(HZ)
    instance("--config", conf).kill()
    while killed:
        step += 1
        env = {"LD_PRELOAD": str(program("frtest-slowproc.so")), "FRTEST_KILL": str(trap), "FRTEST_KILL_MESSAGE": str(step)}
        d = instance("--config", conf, env=env)
        configure(HZ - step)
        trap.touch()
        if what == "reload":
            killed = d.ctl("reload").code != 0
        else:
            d.kill()
            d = Daemon(state_dir, "--config", conf, manager=service_manager, armed=False, env=env).launch()
            until("the end of the start", lambda: not d.running() or service_manager.said("READY=1"))
            killed = not d.running()
        trap.unlink()
        d.kill()
        d = instance("--config", conf)
        adopted = d.status()["adopted"]
        assert adopted["continued"] == "all", (step, adopted, d.log())
        d.kill()
    assert step > 8


def test_numbered_events_of_bpf_programs(instance, service_manager):
    """The recorder is killed many times while a load counts. The last dump has each number once."""
    args = ("-e", "raw_syscalls:sys_enter/capture=bpf/", *COUNTED[2:], "-M", "32M")
    d = instance(*args)
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 10000)
    until("numbers", lambda: d.status()["ring"]["samples"] > 1000)
    for i in range(KILLS):
        time.sleep(random.uniform(0.05, 1.2))
        d.kill() if i % 4 else d.stop()
        d = instance(*args)
        adopted = d.status()["adopted"]
        assert (adopted["continued"], adopted["gaps_s"]) == ("all", 0), (adopted, d.log())
    counted = finish_load(counting, stop=True)
    sample = d.dump_by_control()
    found = sequence(sample, counted)
    lost = {cause: n for cause, n in d.lost().items() if n}
    assert (found["first"], found["last"]) == (0, counted["calls"] - 1), found
    assert (found["twice"], found["backwards"]) == (0, 0), (found, lost)
    # If the machine is so busy that the rings of the kernel overflow, this is counted.
    assert found["missing"] == 0 or found["missing"] <= lost.get("kernel-ring-full", 0), (found, lost)
    print(f"{found['count']} numbers, {found['missing']} missing, losses: {lost}")
    assert not [x for x in meta(sample)["losses"] if x["cause"] == "restart"]


def test_a_kill_in_the_take_over(instance, service_manager, state_dir, tmp_path):
    """An instance is killed directly after its cut-over time, before it has read the records near this time. Programs of two
    instances have made a record of each call there. The next instance takes one of them."""
    trap = tmp_path / "trap"
    args = ("-e", "raw_syscalls:sys_enter/capture=bpf/", *COUNTED[2:-2], "-m", "128M", "-M", "256M")
    # FR_CUTOVER_NEAR_NS of src/capture/cutover.h
    env = {"LD_PRELOAD": str(program("frtest-slowproc.so")), "FRTEST_KILL": str(trap), "FRTEST_KILL_USLEEP": "1000"}
    trap.touch()
    d = instance(*args)
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 1)
    until("numbers", lambda: d.status()["ring"]["samples"] > 1000)
    for _ in range(2 * KILLS):
        d.kill()
        killed = Daemon(state_dir, *args, manager=service_manager, armed=False, env=env).launch()
        assert killed.wait() == -signal.SIGKILL, killed.log()
        d = instance(*args)
        assert d.status()["adopted"]["continued"] == "all", d.log()
    counted = finish_load(counting, stop=True)
    found = sequence(d.dump_by_control(), counted)
    lost = {cause: n for cause, n in d.lost().items() if n}
    assert (found["twice"], found["backwards"]) == (0, 0), (found, lost)
    assert found["missing"] <= lost.get("kernel-ring-full", 0), (found, lost)


def test_sleeps_over_a_restart(instance, service_manager):
    """The event offcpu records tasks that began to wait before a kill, and run again when the next instance records."""
    d = instance("-e", "offcpu/threshold=10ms/", "-M", "32M")
    time.sleep(0.3)
    sleeping = [subprocess.Popen(["sleep", "3"]) for _ in range(5)]
    time.sleep(0.3)
    d.kill()
    d = instance("-e", "offcpu/threshold=10ms/", "-M", "32M")
    assert d.status()["adopted"]["continued"] == "all", d.log()
    for process in sleeping:
        process.wait()
    time.sleep(0.3)
    pids = {process.pid for process in sleeping}
    mine = [x for x in script_lines(d.dump_by_control()) if x.pid in pids and "offcpu" in x.event]
    # A host can hide a switch from the programs.
    long = {x.pid for x in mine if re.search(r"duration=(2999|3\d\d\d)\.", x.trace)}
    assert len(long) >= 3, mine
