# SPDX-License-Identifier: GPL-2.0-or-later
"""For each source of triggers, a test provokes one anomaly. Then there is exactly one dump, and the anomaly is in its window.
Stock perf, the JSON and flightrecctl report the same about the anomaly."""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import (BIN, FULL, end, environment, meta, program, run, script_lines, start, time_ns, trigger_samples, triggers_config,
                     until)

pytestmark = pytest.mark.waits
OBJECTS = BIN.parent / "tests/unit/source/bpf"
COMM = "frtest-provoke"
# The tests record task switches, because some happen shortly before and after every anomaly.
RECORDING = "[Recorder]\nEvents=sched:sched_switch\nRingSize=16M\nKernelBuffer=16M\n"
MS = 10**6


@pytest.fixture
def armed(recorder, tmp_path):
    """armed("[Trigger x]\\n…") starts a recorder with this section and a post-trigger time of 100 ms. If the trigger cannot be
    armed, the fixture skips the test with the recorder's message."""
    def make(text, *args, name=None):
        conf = tmp_path / "armed.conf"
        sections = "RateLimit=no\nCooldown=1h\n" + (text + "PostTrigger=100ms\n" if text else "")
        conf.write_text(RECORDING + triggers_config(tmp_path / "app", sections))
        d = recorder("--config", conf, *args)
        d.name = name or re.search(r"\[Trigger (\S+)\]", text).group(1)
        d.only = None  # the path of the only dump, after one_dump() has found it
        t = d.trigger(d.name)
        if t["state"] == "failed":
            assert "verifier" not in t["what"], t["what"]
            pytest.skip(f"{d.name}: {t['what']}")
        assert t["state"] == "armed"
        time.sleep(0.1)  # so that there are records before the anomaly
        return d
    return make


def provoke(*args, cwd=None, **env):
    """Provokes an anomaly. Returns the JSON of frtest-provoke: its pid, and the times before and after the anomaly."""
    begin = time.monotonic_ns()  # the anomaly can be the exec of the program, which is before the time that the program prints
    r = run(program(COMM), *args, cwd=cwd, env=environment(**env))
    if r.code == 77:
        pytest.skip(r.out.strip())
    assert r.code == 0, r
    return json.loads(r.out) | {"from_ns": begin}


def one_dump(d):
    """Waits for the dump, and checks that there is only one. Returns the dump, and its JSON."""
    if not d.only:
        until(f"dump of {d.name}; log:\n{d.log()}\n{d.ctl('triggers').out}", lambda: d.trigger(d.name).get("last_file"))
        time.sleep(0.3)  # so that a second dump, which must not be made, would exist
        d.only, = d.samples()
    return d.only, meta(d.only)


def until_seen(d, did, **more):
    """Waits until the recorder has made a dump for the anomaly DID. Returns DID with the current time as its end."""
    one_dump(d)
    return did | more | {"to_ns": time.monotonic_ns()}


def check(d, did, *, pid=None, comm=None, reason=None, words="", at_least=None, unit="ns"):
    """Checks the only dump, which is of the anomaly DID: {"pid", "from_ns", "to_ns"}. Returns the cause.

    PID is the pid that the cause must have: None means the pid of DID, 0 means that the cause has no process. REASON is the
    reason of the cause. WORDS must be in its reason or its detail. AT_LEAST is the threshold, or None if the cause has no
    value."""
    path, fields = one_dump(d)
    cause, = fields["causes"]
    pid = did["pid"] if pid is None else pid
    reason = reason or cause["reason"]
    assert (cause["trigger"], cause["reason"]) == (d.name, reason), cause
    assert words in reason + cause.get("detail", ""), cause
    if pid:
        assert cause["pid"] == pid, (cause, did)
    if comm:
        assert cause["comm"] == comm, cause
    if at_least is not None:
        assert cause["threshold"] == at_least and cause["value"] >= at_least and cause.get("unit") == unit, cause
    at = cause["monotonic_ns"]
    # The source can report the anomaly some milliseconds after the program has read the clock for `to_ns`.
    assert did["from_ns"] <= at <= did["to_ns"] + 50 * MS, (cause, did)
    assert fields["window"]["from_ns"] <= at <= fields["window"]["to_ns"], fields["window"]
    assert at <= fields["asked"]["to_ns"] <= fields["window_closed_ns"]

    sample, = trigger_samples(path)
    assert time_ns(sample) == at and sample.trace.startswith(f"{d.name}: {reason}"), sample
    assert sample.pid == cause.get("pid", -1)
    times = [time_ns(line) for line in script_lines(path)]
    assert min(times) < at < max(times)

    decision, = (x for x in d.decisions(d.name) if x["verdict"] == "fire")
    assert decision["file"] == path.name and decision["cause"]["monotonic_ns"] == at
    row = next(line for line in d.ctl("why").out.splitlines() if path.name in line)
    assert reason in row and "fired" in row and d.name in row, row
    assert not pid or f"[{pid}]" in row, row
    assert ("≥" in row) == ("threshold" in cause), row
    t = d.trigger(d.name)
    assert (t["fired"], t["joined"], t["last_file"], t["lost"]) == (1, 0, path.name, 0), t
    assert t["asked"] == 1 + sum(t["suppressed"].values())
    assert next(x for x in d.ctl("triggers").out.splitlines() if x.startswith(d.name)).endswith(path.name)
    return cause


# {probe: (keys of its section, arguments of frtest-provoke, what the cause must have)}
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
OTHERS = {"irq-time", "hung-task", "soft-lockup"}  # these probes have tests of their own


@pytest.mark.parametrize("name", PROBES)
def test_probe(armed, tmp_path, name):
    section, what, expected = PROBES[name]
    if name == "memory-stall":
        # Once before the probe is armed: the first run reads the program from a disk, which is also a stall.
        provoke(*what, cwd=tmp_path)
    d = armed(f"[Trigger {name}]\nComm={COMM}\n{section}")
    cause = check(d, provoke(*what, cwd=tmp_path), comm=COMM, **expected)
    assert ("value" in cause) == (name != "exec"), "nothing is measured where there is nothing to measure"


@pytest.mark.parametrize("what, detail", [("abort", "SIGABRT"), ("bus", "SIGBUS")])
def test_other_fatal_signals(armed, what, detail):
    d = armed(f"[Trigger fatal-signal]\nComm={COMM}\n")
    assert check(d, provoke(what), comm=COMM, reason="fatal signal")["detail"].startswith(detail)


def test_page_fault(armed, tmp_path):
    d = armed(f"[Trigger memory-stall]\nComm={COMM}\nThreshold=1us\n")
    did = provoke("fault", cwd=tmp_path)
    if not Path("/sys/kernel/tracing/events/filemap/mm_filemap_fault").exists():
        time.sleep(1)
        if not d.trigger(d.name)["fired"]:
            pytest.skip("this kernel has no tracepoint filemap:mm_filemap_fault (Linux 6.12)")
    check(d, did, comm=COMM, reason="page fault stall", at_least=1000)


def test_interrupt(armed, tmp_path):
    """The anomaly comes from a device, so its cause does not name the process that was interrupted."""
    begin = time.monotonic_ns()
    d = armed("[Trigger irq-time]\nThreshold=1us\n")
    did = provoke("interrupt", cwd=tmp_path)
    end_s = time.monotonic() + 1
    while not d.trigger(d.name)["fired"]:
        if time.monotonic() > end_s:
            pytest.skip("no device has interrupted this machine meanwhile")
        time.sleep(0.05)
    cause = check(d, until_seen(d, did, from_ns=begin), pid=0, reason="interrupt handler", at_least=1000)
    assert cause["cpu"] < os.cpu_count() and cause["detail"]


@pytest.fixture
def impatient_kernel():
    """Makes the kernel look for hung tasks every second, and not log them. The unit test test-probes-sched changes the same
    settings and can run at the same time, so both take the same lock."""
    path = "/proc/sys/kernel/hung_task_"
    values = {"timeout_secs": "1", "warnings": "0"}
    try:
        lock = open(path + "timeout_secs")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if int(open(path + "panic").read()):
            pytest.skip("a hung task would make this kernel panic")
        before = {key: open(path + key).read() for key in values}
        for key in reversed(values):
            Path(path + key).write_text(values[key])
    except OSError as e:
        pytest.skip(f"the kernel does not look for hung tasks, or its settings cannot be changed: {e}")
    yield
    for key, value in before.items():
        Path(path + key).write_text(value)
    lock.close()


def start_told(*argv):
    """Starts a program that waits for a line on its standard input."""
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())


def test_hung_task(armed, tmp_path, impatient_kernel):
    mountpoint = tmp_path / "deaf"
    mountpoint.mkdir()
    d = armed(f"[Trigger hung-task]\nComm={COMM}\n")
    begin = time.monotonic_ns()
    p = start_told(program(COMM), "hung", str(mountpoint))
    try:
        line = p.stdout.readline()
        if not line.startswith("{"):
            pytest.skip(line.strip())
        until("hung task", lambda: d.trigger(d.name)["fired"])
        end_ns = time.monotonic_ns()
    finally:
        p.communicate("\n", timeout=180)
    cause = check(d, {"pid": json.loads(line)["pid"], "from_ns": begin, "to_ns": end_ns}, comm=COMM, reason="hung task")
    assert cause["value"] >= 10**9


@pytest.mark.skipif(not FULL, reason="a soft lockup stops a CPU for 3.5 s and taints the kernel: ./dev test --full makes one")
def test_soft_lockup(armed):
    d = armed("[Trigger soft-lockup]\n")
    cause = check(d, provoke("lockup", OBJECTS / "lockup.bpf.o"), comm=COMM, reason="soft lockup")
    assert 2 * 10**9 <= cause["value"] <= 4 * 10**9, cause


def test_a_line_of_the_kernel_log_that_looks_like_a_lockup(armed):
    """Any process of root can write such a line to the kernel log. The line must not make a dump. The test does not use the
    kernel's words, because they would alarm people who watch this machine."""
    d = armed("[Trigger soft-lockup]\nSet=words=nothing is wrong: CPU#\n")
    try:
        Path("/dev/kmsg").write_text("<7>a test of flightrec: nothing is wrong: CPU#0 stuck for 23s! [test:1]")
    except OSError as e:
        pytest.skip(f"/dev/kmsg cannot be written: {e}")
    t = until("the line seen", lambda: (t := d.trigger(d.name)).get("last_value", 23e9) < 23e9 / 2 and t)
    assert t["asked"] == 0 and not d.samples()


def test_every_probe_has_its_test(armed):
    d = armed("[Trigger tick]\nEvery=1h\n")
    probes = {t["name"] for t in d.ask("triggers")["triggers"] if t["source"] == "bpf"}
    assert probes == set(PROBES) | OTHERS


# --- sources that a section of the configuration names

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


def call_function(*args, by=None):
    """Runs frtest-function, or its copy at the path BY. Returns its JSON together with the times before and after the run."""
    p = start_told(by or program("frtest-function"), *args)
    begin = time.monotonic_ns()
    out, _ = p.communicate("\n", timeout=180)
    assert p.returncode == 0
    return json.loads(out) | {"from_ns": begin, "to_ns": time.monotonic_ns()}


@pytest.mark.parametrize("source, call, words", [("Function={}:fr_function_slow", "call", "fr_function_slow"),
                                                 ("USDT={}:frtest:begin,frtest:end", "markers", "frtest")])
def test_function_and_markers(armed, tmp_path, source, call, words):
    # A unit test may run the original at the same time.
    binary = shutil.copy(program("frtest-function"), tmp_path / "frtest-mine")
    d = armed(f"[Trigger slow]\n{source.format(binary)}\nThreshold=50ms\n")
    check(d, call_function(call, "80", by=binary), comm="frtest-mine", words=words, at_least=50 * MS)


def test_pressure(armed):
    """The pressure of the whole machine. The machine may already have some pressure, so the dump can come before the load
    begins."""
    begin = time.monotonic_ns()
    d = armed("[Trigger cpu]\nPressure=cpu some\nThreshold=300ms\nInterval=2s\n")
    did = provoke("spin", "2500")
    check(d, until_seen(d, did, from_ns=begin), pid=0, reason="cpu pressure", at_least=300 * MS)


def test_pressure_of_a_cgroup(armed, group2):
    d = armed(f"[Trigger cpu]\nPressure=cpu some\nThreshold=300ms\nInterval=2s\nCGroup={group2.name}\n")
    begin = time.monotonic_ns()
    p = start("sh", "-c", 'echo 0 > "$1/cgroup.procs" && exec "$2" spin 60000', "sh", group2, program(COMM))
    # The kernel needs some time to find the pressure of a new cgroup.
    until("pressure", lambda: d.trigger(d.name)["fired"], 120)
    did = {"from_ns": begin, "to_ns": time.monotonic_ns()}
    end(p)  # its child ends with it
    assert check(d, did, pid=0, reason="cpu pressure", at_least=300 * MS)["cgroup"] == f"/{group2.name}"


def test_event(armed):
    """Each occurrence of the event that passes the filter is an anomaly."""
    d = armed(f"[Trigger started]\nEvent=sched:sched_process_exec\nFilter=filename ~ \"*/{COMM}\"\n")
    begin = time.monotonic_ns()
    p = start(program(COMM), "spin", "3600000")  # must live until the recorder has read its name in /proc
    did = until_seen(d, {"pid": p.pid}, from_ns=begin)
    end(p)
    check(d, did, comm=COMM, words="sched:sched_process_exec")


def test_event_with_threshold(armed):
    """If the event occurs Threshold= times within Interval=, on all CPUs together, this is an anomaly."""
    number = {"x86_64": 110, "aarch64": 173}.get(os.uname().machine)
    if not number:
        pytest.skip("the number of getppid() is not known here")
    calls = f'id == {number} && COMM == "{COMM}"'  # COMM, because the loads of other tests can call getppid() at the same time
    d = armed(f"[Trigger many]\nEvent=raw_syscalls:sys_enter\nFilter={calls}\nThreshold=5000\nInterval=500ms\n")
    did = provoke("getppid", "200000")
    check(d, until_seen(d, did), pid=0, at_least=5000, unit="count")


def test_timer(armed):
    begin = time.monotonic_ns()
    d = armed("[Trigger tick]\nEvery=1s\nCooldown=1h\n")
    check(d, until_seen(d, {"pid": 0}, from_ns=begin + 10**9))


def test_application(armed, tmp_path):
    """An application uses the C header flightrec/trigger.h. Without a recorder, its function does nothing."""
    assert provoke("application", "shop", FLIGHTREC_TRIGGER_SOCKET=str(tmp_path / "nobody"))["pid"]
    d = armed("[Trigger shop]\nApplication=yes\n")
    begin = time.monotonic_ns()
    p = start(program(COMM), "application", "shop", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
              env=environment(FLIGHTREC_TRIGGER_SOCKET=str(tmp_path / "app")))
    did = until_seen(d, {"pid": p.pid}, from_ns=begin)
    p.communicate()
    check(d, did, comm=COMM, reason="slow answer", at_least=250, unit=None)


def test_signal_with_a_policy(armed):
    d, begin = armed("[Trigger signal]\n"), time.monotonic_ns()
    d.signal(signal.SIGUSR1)
    check(d, until_seen(d, {"pid": os.getpid()}, from_ns=begin), reason="SIGUSR1")


def test_control_with_a_policy(armed):
    d, begin = armed("[Trigger control]\n"), time.monotonic_ns()
    p = d.start_ctl("dump", "--post", "100ms", "--reason", "slow answers")
    assert p.wait(180) == 0
    check(d, until_seen(d, {"pid": p.pid}, from_ns=begin), reason="slow answers")


def test_triggers_are_armed_again_for_upgraded_programs_and_new_cgroups(armed, group2, tmp_path):
    """Triggers are armed again if a program is upgraded, if a program is installed later, and if a control group is made
    again."""
    binary, later = tmp_path / "served", tmp_path / "later"
    function = "Function={}:fr_function_slow\nThreshold=50ms\n"
    shutil.copy(program("frtest-function"), binary)
    d = armed(f"[Trigger upgraded]\n{function.format(binary)}[Trigger later]\n{function.format(later)}"
              f"[Trigger anew]\nProbe=exec\nCGroup={group2.name}\n")
    assert d.trigger("later")["state"] == "failed" and d.trigger("anew")["state"] == "armed"
    running = start_told(binary, "call", "80")
    until("old program", lambda: os.readlink(f"/proc/{running.pid}/exe") == str(binary))
    shutil.copy(binary, tmp_path / "new")
    os.replace(tmp_path / "new", binary)
    shutil.copy(binary, later)
    group2.rmdir()
    group2.mkdir()
    for name in ("upgraded", "later", "anew"):
        d.until_logged(f"trigger {name} is armed now")
    call_function("call", "80", by=binary)
    until("call of the new program", lambda: d.trigger("upgraded")["asked"] == 1)
    running.communicate("\n", timeout=60)
    until("call of the program that was started before", lambda: d.trigger("upgraded")["asked"] == 2)
    call_function("call", "80", by=later)
    run("sh", "-c", 'echo 0 > "$1/cgroup.procs" && exec true', "sh", group2)
    for name in ("later", "anew"):
        until(f"anomaly of {name}", lambda: d.trigger(name)["asked"] == 1)
    assert d.log().count("trigger later is not armed") == 1, "a retry is reported once"
