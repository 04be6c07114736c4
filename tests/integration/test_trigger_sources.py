# SPDX-License-Identifier: GPL-2.0-or-later
"""Each source of anomalies, from the real thing to the file: it is provoked once, and there is one dump, whose window has
the instant, and in which stock perf, the JSON and flightrecctl tell the same of it."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import (ARMED_PROBES, BIN, environment, marks, program, run, script_lines, sidecar, start,
                     until)

OBJECTS = BIN.parent / "tests/unit/source/bpf"
COMM = "frtest-provoke"
FULL = "FLIGHTREC_FULL" in os.environ
# Switches stand on both sides of any instant. The name of the trigger is that of its section.
RECORDING = ("[Recorder]\nEvents=sched:sched_switch\nRingSize=16M\nKernelBuffer=16M\n[Triggers]\nRateLimit=no\nCooldown=1h\n"
             "Socket={socket}\n")
MS = 10**6


def sections(text, socket):
    quiet = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES if f"[Trigger {name}]" not in text)
    return RECORDING.format(socket=socket) + text + quiet


@pytest.fixture
def armed(recorder, tmp_path):
    """armed("[Trigger x]\\n…"): a recorder with that section, of which a dump goes on for 100 ms; skips where the trigger
    cannot be armed, with the recorder's own words."""
    def make(text, *args, name=None):
        conf = tmp_path / "armed.conf"
        conf.write_text(sections(text + "PostTrigger=100ms\n" if text else "", tmp_path / "app"))
        d = recorder("--config", conf, *args)
        d.name = name or re.search(r"\[Trigger (\S+)\]", text).group(1)
        t = trigger(d)
        if t["state"] == "failed":
            d.stop()
            assert "verifier" not in t["what"], t["what"]
            pytest.skip(f"{d.name}: {t['what']}")
        assert t["state"] == "armed"
        time.sleep(0.2)  # so that there is something before
        return d
    return make


def answer(d, verb, *args):
    r = d.ctl(verb, *args, "--json=short")
    assert r.code == 0, r.err
    return json.loads(r.out)


def trigger(d, name=None):
    return next(t for t in answer(d, "triggers")["triggers"] if t["name"] == (name or d.name))


def provoke(*args, cwd=None, **env):
    """What happened, and when."""
    begin = time.monotonic_ns()  # exec is before the first that it can tell
    r = run(program("frtest-provoke"), *args, cwd=cwd, env=environment(**env))
    if r.code == 77:
        pytest.skip(r.out.strip())
    assert r.code == 0, r
    return json.loads(r.out) | {"from_ns": begin}


def ns(line):
    seconds, fraction = line.time.split(".")
    return int(seconds) * 10**9 + int(fraction)


def one_dump(d):
    """The only dump, once it is there; its JSON. A second one, which must not be, gets its time."""
    until(f"dump of {d.name}; log:\n{d.log()}\n{d.ctl('triggers').out}", lambda: trigger(d).get("last_file"))
    time.sleep(0.4)
    path, = d.samples()
    return path, json.loads(sidecar(path).read_text())


def seen(d, did, **more):
    """DID, of which the recorder learns by itself, at any time until it is told."""
    one_dump(d)
    return did | more | {"to_ns": time.monotonic_ns()}


def check(d, did, *, pid=None, comm=None, reason, at_least=None, unit="ns"):
    """One dump of what was done. DID: {"pid", "from_ns", "to_ns"}. PID: None is that of DID, 0 is nobody's. AT_LEAST: the
    threshold; None: there is nothing to measure, or nothing to compare it with."""
    path, meta = one_dump(d)
    cause, = meta["causes"]
    pid = did["pid"] if pid is None else pid
    assert (cause["trigger"], cause["reason"]) == (d.name, reason), cause
    if pid:
        assert cause["pid"] == pid, (cause, did)
    if comm:
        assert cause["comm"] == comm, cause
    if at_least is not None:
        assert cause["threshold"] == at_least and cause["value"] >= at_least and cause.get("unit") == unit, cause
    at = cause["monotonic_ns"]
    # Milliseconds are what who was there needs to get a CPU again, and tell.
    assert did["from_ns"] <= at <= did["to_ns"] + 50 * MS, (cause, did)
    assert meta["window"]["from_ns"] <= at <= meta["window"]["to_ns"], meta["window"]
    assert at <= meta["asked"]["to_ns"] <= meta["window_closed_ns"]

    mark, = marks(path)
    assert ns(mark) == at and mark.trace.startswith(f"{d.name}: {reason}"), mark
    assert mark.pid == cause.get("pid", -1)
    times = [ns(line) for line in script_lines(path)]
    assert min(times) < at < max(times)

    decisions = [x for x in answer(d, "why", "-n", "256") if x["trigger"] == d.name and x["verdict"] == "fire"]
    assert len(decisions) == 1 and decisions[0]["file"] == path.name and decisions[0]["cause"]["monotonic_ns"] == at
    row = next(line for line in d.ctl("why").out.splitlines() if path.name in line)
    assert reason in row and "fired" in row and d.name in row, row
    if pid:
        assert f"[{pid}]" in row, row
    assert ("≥" in row) == ("threshold" in cause), row
    t = trigger(d)
    assert (t["fired"], t["joined"], t["last_file"], t["lost"]) == (1, 0, path.name, 0), t
    assert t["asked"] == 1 + sum(t["suppressed"].values())
    assert next(x for x in d.ctl("triggers").out.splitlines() if x.startswith(d.name)).endswith(path.name)
    d.stop()
    return cause


# section, what to provoke, what is to be told of it
PROBES = {
    "run-queue-latency": ("Threshold=50ms\n", ["run-queue"], dict(reason="run-queue latency", at_least=50 * MS)),
    "off-cpu": ("Threshold=60ms\n", ["blocked"], dict(reason="blocked off CPU", at_least=60 * MS)),
    "syscall-latency": ("Threshold=60ms\nSyscall=nanosleep\n", ["nanosleep"], dict(reason="slow system call", at_least=60 * MS)),
    "softirq-time": ("Threshold=1us\n", ["softirq"], dict(reason="softirq handler", at_least=1000)),
    "exec": ("", ["exec"], dict(reason="exec")),
    "block-io-latency": ("Threshold=1us\n", ["disk"], dict(reason="block I/O latency", at_least=1000)),
    "fatal-signal": ("", ["segv"], dict(reason="fatal signal")),
    "memory-stall": ("Threshold=1us\n", ["reclaim"], dict(reason="cgroup reclaim", at_least=1000)),
    "oom-kill": ("Threshold=16M\n", ["oom"], dict(reason="OOM kill", at_least=16 << 20, unit="bytes")),
    "tcp-retransmits": ("Threshold=8\n", ["retransmit"], dict(reason="TCP retransmits", at_least=8, unit="count")),
}
OTHERS = {"irq-time", "hung-task", "soft-lockup"}


@pytest.mark.parametrize("name", PROBES)
def test_probe(armed, tmp_path, name):
    section, what, told = PROBES[name]
    if name == "memory-stall":
        provoke(*what, cwd=tmp_path)  # what has to be read from a disk to run it is a stall, too, and comes first
    d = armed(f"[Trigger {name}]\nComm={COMM}\n{section}")
    cause = check(d, provoke(*what, cwd=tmp_path), comm=COMM, **told)
    assert ("value" in cause) == (name != "exec"), "nothing is measured where there is nothing to measure"


@pytest.mark.parametrize("what, detail", [("abort", "SIGABRT"), ("bus", "SIGBUS")])
def test_other_signals(armed, what, detail):
    d = armed(f"[Trigger fatal-signal]\nComm={COMM}\n")
    assert check(d, provoke(what), comm=COMM, reason="fatal signal")["detail"].startswith(detail)


def test_page_fault(armed, tmp_path):
    d = armed(f"[Trigger memory-stall]\nComm={COMM}\nThreshold=1us\n")
    did = provoke("fault", cwd=tmp_path)
    time.sleep(1)
    if not trigger(d)["fired"] and not Path("/sys/kernel/tracing/events/filemap/mm_filemap_fault").exists():
        pytest.skip("this kernel has no tracepoint filemap:mm_filemap_fault (Linux 6.12)")
    check(d, did, comm=COMM, reason="page fault stall", at_least=1000)


def test_interrupt(armed, tmp_path):
    """Of any device: who was interrupted had no part in it."""
    begin = time.monotonic_ns()
    d = armed("[Trigger irq-time]\nThreshold=1us\n")
    did = provoke("interrupt", cwd=tmp_path)
    time.sleep(1)
    if not trigger(d)["fired"]:
        pytest.skip("no device has interrupted this machine meanwhile")
    cause = check(d, seen(d, did, from_ns=begin), pid=0, reason="interrupt handler", at_least=1000)
    assert cause["cpu"] < os.cpu_count() and cause["detail"]


@pytest.fixture
def patience():
    """The kernel looks for hung tasks every second, and says nothing of them in its log."""
    path = "/proc/sys/kernel/hung_task_"
    values = {"timeout_secs": "1", "warnings": "0"}
    try:
        if int(open(path + "panic").read()):
            pytest.skip("a hung task would make this kernel panic")
        before = {key: open(path + key).read() for key in values}
        for key in reversed(values):
            with open(path + key, "w") as f:
                f.write(values[key])
    except OSError as e:
        pytest.skip(f"the kernel does not look for hung tasks, or we may not say when: {e}")
    yield
    for key, value in before.items():
        with open(path + key, "w") as f:
            f.write(value)


def test_hung_task(armed, tmp_path, patience):
    """Pid= as another task of this machine may hang, too."""
    mountpoint = tmp_path / "deaf"
    mountpoint.mkdir()
    d = armed(f"[Trigger hung-task]\nComm={COMM}\n")
    begin = time.monotonic_ns()
    p = subprocess.Popen([program("frtest-provoke"), "hung", str(mountpoint)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env=environment())
    try:
        line = p.stdout.readline()
        if not line.startswith("{"):
            pytest.skip(line.strip())
        pid = json.loads(line)["pid"]
        until("hung task", lambda: trigger(d)["fired"])
        end = time.monotonic_ns()
    finally:
        p.communicate("\n", timeout=180)
    cause = check(d, {"pid": pid, "from_ns": begin, "to_ns": end}, comm=COMM, reason="hung task")
    assert cause["value"] >= 10**9


@pytest.mark.skipif(not FULL, reason="a soft lockup stops a CPU for 3.5 s and taints the kernel: FLIGHTREC_FULL=1 makes one")
def test_soft_lockup(armed):
    d = armed("[Trigger soft-lockup]\n")
    did = provoke("lockup", OBJECTS / "lockup.bpf.o")
    cause = check(d, did, comm=COMM, reason="soft lockup")
    assert 2 * 10**9 <= cause["value"] <= 4 * 10**9, cause


def test_a_line_that_looks_like_a_lockup(armed):
    """Whoever writes it. In words of the test: the kernel's, in its log, would alarm who watches over this machine."""
    d = armed("[Trigger soft-lockup]\nSet=words=nothing is wrong: CPU#\n")
    try:
        with open("/dev/kmsg", "w") as f:
            f.write("<7>a test of flightrec: nothing is wrong: CPU#0 stuck for 23s! [test:1]")
    except OSError as e:
        pytest.skip(f"/dev/kmsg cannot be written: {e}")
    t = until("the line seen", lambda: (t := trigger(d)).get("last_value", 23e9) < 23e9 / 2 and t)
    assert t["asked"] == 0 and not d.samples()
    d.stop()


def test_every_probe_has_its_test(armed):
    d = armed("[Trigger tick]\nEvery=1h\n")
    probes = {t["name"] for t in answer(d, "triggers")["triggers"] if t["source"] == "bpf"}
    d.stop()
    assert probes == set(PROBES) | OTHERS


# --- those that the user names

@pytest.fixture
def objects():
    if not OBJECTS.is_dir():
        pytest.skip(f"{OBJECTS} is not there: build the target source-bpf-objects")
    return OBJECTS


def test_program(armed, objects):
    d = armed(f"[Trigger mine]\nProgram={objects}/getppid.bpf.o\nComm={COMM}\nThreshold=7\nSet=size=9\n")
    assert check(d, provoke("getppid"), comm=COMM, reason="getppid", at_least=7, unit="count")["value"] == 9


def test_object_on_the_command_line(armed, objects):
    d = armed("", "-e", objects / "getppid.bpf.o", "--trigger", f"getppid:Comm={COMM}", "--trigger", "getppid:Threshold=1",
              "--trigger", "getppid:PostTrigger=100ms", name="getppid")
    check(d, provoke("getppid"), comm=COMM, reason="getppid", at_least=1, unit="count")


def called(*args, by=None):
    """frtest-function, which waits until it is told to go. BY: a copy of it."""
    p = subprocess.Popen([by or program("frtest-function"), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=environment())
    begin = time.monotonic_ns()
    out, _ = p.communicate("\n", timeout=180)
    assert p.returncode == 0
    return json.loads(out) | {"from_ns": begin, "to_ns": time.monotonic_ns()}


def test_function(armed):
    d = armed(f"[Trigger slow]\nFunction={program('frtest-function')}:fr_function_slow\nThreshold=50ms\n")
    did = called("call", "80")
    path, meta = one_dump(d)
    check(d, did, comm="frtest-function"[:15], reason=meta["cause"]["reason"], at_least=50 * MS)
    assert "fr_function_slow" in meta["cause"]["reason"] + meta["cause"]["detail"]


def test_usdt(armed):
    d = armed(f"[Trigger slow]\nUSDT={program('frtest-function')}:frtest:begin,frtest:end\nThreshold=50ms\n")
    did = called("markers", "80")
    path, meta = one_dump(d)
    check(d, did, comm="frtest-function"[:15], reason=meta["cause"]["reason"], at_least=50 * MS)
    assert "frtest" in meta["cause"]["reason"] + meta["cause"]["detail"]


def test_pressure(armed):
    """Of the machine, which may have some already."""
    begin = time.monotonic_ns()
    d = armed("[Trigger cpu]\nPressure=cpu some\nThreshold=300ms\nInterval=2s\n")
    did = provoke("spin", "2500")
    check(d, seen(d, did, from_ns=begin), pid=0, reason="cpu pressure", at_least=300 * MS)


@pytest.fixture
def cgroup():
    """A cgroup of version 2: (its directory, its path below the root)."""
    roots = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"]
    if not roots:
        pytest.skip("cgroups of version 2 are not mounted")
    path = Path(roots[0]) / f"flightrec-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup of version 2 can be made: {e}")
    yield path
    until("end of the cgroup's tasks", lambda: not (path / "cgroup.procs").read_text())
    path.rmdir()


def test_pressure_of_a_cgroup(armed, cgroup):
    d = armed(f"[Trigger cpu]\nPressure=cpu some\nThreshold=300ms\nInterval=2s\nCGroup={cgroup.name}\n")
    begin = time.monotonic_ns()
    p = start("sh", "-c", 'echo 0 > "$1/cgroup.procs" && exec "$2" spin 60000', "sh", cgroup, program("frtest-provoke"))
    until("pressure", lambda: trigger(d)["fired"], 120)  # the kernel takes its time with a cgroup that is new
    did = {"from_ns": begin, "to_ns": time.monotonic_ns()}
    p.kill()  # and its child goes with it
    p.wait()
    cause = check(d, did, pid=0, reason="cpu pressure", at_least=300 * MS)
    assert cause["cgroup"] == f"/{cgroup.name}"


def test_event(armed):
    """Each occurrence, of whom the filter asks for."""
    d = armed(f"[Trigger started]\nEvent=sched:sched_process_exec\nFilter=filename ~ \"*/{COMM}\"\n")
    begin = time.monotonic_ns()
    p = start(program("frtest-provoke"), "spin", "3600000")  # not gone before the recorder has looked at who it was
    did = seen(d, {"pid": p.pid}, from_ns=begin)
    p.kill()  # and its child goes with it
    p.wait()
    path, meta = one_dump(d)
    check(d, did, comm=COMM, reason=meta["cause"]["reason"])
    assert "sched:sched_process_exec" in meta["cause"]["reason"] + meta["cause"].get("detail", "")


def test_event_with_threshold(armed):
    """So many in so long, of all CPUs together."""
    number = {"x86_64": 110, "aarch64": 173}.get(os.uname().machine)
    if not number:
        pytest.skip("the number of getppid() is not known here")
    d = armed(f"[Trigger many]\nEvent=raw_syscalls:sys_enter\nFilter=id == {number}\nThreshold=5000\nInterval=500ms\n")
    did = provoke("getppid", "200000")
    path, meta = one_dump(d)
    check(d, seen(d, did), pid=0, reason=meta["cause"]["reason"], at_least=5000, unit="count")


def test_timer(armed):
    begin = time.monotonic_ns()
    d = armed("[Trigger tick]\nEvery=1s\nCooldown=1h\n")
    check(d, seen(d, {"pid": 0}, from_ns=begin + 10**9), reason=one_dump(d)[1]["cause"]["reason"])


def test_application(armed, tmp_path):
    """By the C header."""
    d = armed("[Trigger shop]\nApplication=yes\n")
    begin = time.monotonic_ns()
    p = start(program("frtest-provoke"), "application", "shop", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
              env=environment(FLIGHTREC_TRIGGER_SOCKET=str(tmp_path / "app")))
    did = seen(d, {"pid": p.pid}, from_ns=begin)
    p.communicate()
    check(d, did, comm=COMM, reason="slow answer", at_least=250, unit=None)


def test_application_without_a_recorder(tmp_path):
    assert provoke("application", "shop", FLIGHTREC_TRIGGER_SOCKET=str(tmp_path / "nobody"))["pid"]


@pytest.mark.parametrize("name", ["signal", "control"])
def test_a_person(armed, name):
    """Which may have a policy as any other."""
    d = armed(f"[Trigger {name}]\n")
    begin = time.monotonic_ns()
    if name == "signal":
        d.signal(signal.SIGUSR1)
        did = {"pid": os.getpid()}
        reason = "SIGUSR1"
    else:
        p = start(program("flightrecctl"), "--socket", d.socket, "dump", "--post", "100ms", "--reason", "slow answers")
        assert p.wait(180) == 0
        did = {"pid": p.pid}
        reason = "slow answers"
    check(d, seen(d, did, from_ns=begin), reason=reason)


def test_services_are_followed(armed, cgroup, tmp_path):
    """A program that is upgraded, one that is installed later, a control group that is made anew."""
    binary, later = tmp_path / "served", tmp_path / "later"
    function = "Function={}:fr_function_slow\nThreshold=50ms\n"
    shutil.copy(program("frtest-function"), binary)
    d = armed(f"[Trigger upgraded]\n{function.format(binary)}[Trigger later]\n{function.format(later)}"
              f"[Trigger anew]\nProbe=exec\nCGroup={cgroup.name}\n")
    assert trigger(d, "later")["state"] == "failed" and trigger(d, "anew")["state"] == "armed"
    running = subprocess.Popen([binary, "call", "80"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    until("program of before", lambda: os.readlink(f"/proc/{running.pid}/exe") == str(binary))
    shutil.copy(binary, tmp_path / "new")
    os.replace(tmp_path / "new", binary)
    shutil.copy(binary, later)
    cgroup.rmdir()
    cgroup.mkdir()
    for name in ("upgraded", "later", "anew"):
        until(f"{name} that is armed anew", lambda: f"trigger {name} is armed now" in d.log(), 60)
    called("call", "80", by=binary)
    until("call of the new program", lambda: trigger(d, "upgraded")["asked"] == 1)
    running.communicate("\n", timeout=60)
    until("call of the one that was started before", lambda: trigger(d, "upgraded")["asked"] == 2)
    called("call", "80", by=later)
    run("sh", "-c", 'echo 0 > "$1/cgroup.procs" && exec true', "sh", cgroup)
    for name in ("later", "anew"):
        until(f"anomaly of {name}", lambda: trigger(d, name)["asked"] == 1)
    assert d.log().count("trigger later is not armed") == 1, "what is tried again is told once"
