# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecctl's verbs of triggers against a recorder that runs: what it shows is what happened."""
import json
import os
import select
import signal
import socket
import subprocess
import time

import pytest

from harness import ARMED_PROBES, EXIT, environment, program, run, sidecar, start, until

# What else goes on at this machine is not what these tests count.
RECORDING = ("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n[Triggers]\nSocket={socket}\n" +
             "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES))


@pytest.fixture
def triggers(recorder, tmp_path):
    """triggers("[Trigger x]\\n…"): a recorder with these sections."""
    def make(text, *args):
        conf = tmp_path / "triggers.conf"
        conf.write_text(RECORDING.format(socket=tmp_path / "app") + text)
        return recorder("--config", conf, *args)
    return make


def answer(daemon, verb, *args):
    r = daemon.ctl(verb, *args, "--json=short")
    assert r.code == 0, f"flightrecctl {verb}: exit code {r.code}\n{r.err}"
    return json.loads(r.out)


def trigger(daemon, name):
    found = [t for t in answer(daemon, "triggers")["triggers"] if t["name"] == name]
    assert len(found) == 1, f"{len(found)} triggers of the name {name}"
    return found[0]


def decisions(daemon, name):
    return [d for d in answer(daemon, "why", "-n", "256") if d["trigger"] == name]


def watch(daemon, *args):
    return start(program("flightrecctl"), "--socket", daemon.socket, "watch", *args, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, bufsize=0, env=environment())


# A trigger that is for heard() alone.
ECHO = "[Trigger echo]\nEvery=1h\nEnabled=no\n"


def heard(daemon, *watchers):
    """Waits until they watch: each has told of a decision."""
    def all_of_them():
        daemon.ctl("test-trigger", "echo")
        time.sleep(0.1)
        return len(select.select([w.stdout for w in watchers], [], [], 0)[0]) == len(watchers)
    until("word of those that watch", all_of_them)


def line_of(process, seconds=60):
    """The next line of a program, whose output is not buffered here: select() would not see what is."""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        assert ready, f"no line within {seconds} s"
        line = process.stdout.readline().decode()
        if "echo" not in line:
            return line


def test_table(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n[Trigger off]\nEvery=2h\nEnabled=no\n"
                 "[Trigger gone]\nProgram=/nonexistent/gone.bpf.o\n")
    states = {t["name"]: t["state"] for t in answer(d, "triggers")["triggers"]}
    assert states["signal"] == states["control"] == states["tick"] == "armed"
    assert states["off"] == "disabled" and states["gone"] == "failed"
    assert "run-queue-latency" in states, "built-in probes are listed, armed or not"
    r = d.ctl("triggers")
    rows = {line.split()[0]: line for line in r.out.splitlines() if line}
    assert rows["NAME"].split()[:3] == ["NAME", "SOURCE", "STATE"]
    assert rows["tick"].split()[1:3] == ["timer", "armed"]
    assert "/nonexistent/gone.bpf.o" in rows["gone:"], r.out
    assert "20 of 20 dumps" in r.out
    wide = d.ctl("triggers", "-v").out
    assert "every 1h" in wide and "COOLED" in wide
    bare = d.ctl("triggers", "--no-legend").out.splitlines()
    assert len(bare) == len(states) and not bare[0].startswith("NAME")
    d.stop()


def test_timer_fires_and_why_says_so(triggers):
    d = triggers("[Trigger tick]\nEvery=1s\nCooldown=1h\n")
    made = until("decision with its file", lambda: [x for x in decisions(d, "tick") if x.get("file")])
    held = until("suppressed timer", lambda: [x for x in decisions(d, "tick") if x["verdict"] == "cool-down"])
    t = trigger(d, "tick")
    text = d.ctl("why").out
    samples = d.samples()
    d.stop()

    assert len(made) == 1 and made[0]["verdict"] == "fire"
    assert [p.name for p in samples] == [made[0]["file"]], "one dump, and why names it"
    assert json.loads(sidecar(samples[0]).read_text())["cause"]["trigger"] == "tick"
    assert t["fired"] == 1 and t["last_file"] == made[0]["file"]
    assert t["suppressed"]["cool-down"] >= 1 and set(t["suppressed"]) == {"cool-down"}
    assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values())
    assert "cools down" in held[0]["why"]
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["TIME", "TRIGGER"]
    assert "cool-down" in lines[1] and made[0]["file"] in text, "newest first"


def test_application(triggers, tmp_path):
    """An application's word, from its datagram to the lines that a person reads."""
    d = triggers("[Trigger shop]\nApplication=yes\nCooldown=1h\n" + ECHO)
    if trigger(d, "shop")["state"] == "failed":
        pytest.fail(f"not armed: {trigger(d, 'shop')['what']}\n{d.log()}")
    text = watch(d)
    heard(d, text)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.connect(str(tmp_path / "app"))
    for _ in range(2):
        s.send(b"TRIGGER=shop\nREASON=slow answer\nVALUE=312000000\nTHRESHOLD=250000000\nUNIT=ns\n")
    until("file", lambda: [x for x in decisions(d, "shop") if x.get("file")])
    shown = line_of(text)
    made = decisions(d, "shop")[-1]
    t = until("both of them", lambda: (t := trigger(d, "shop"))["fired"] + t["cooled"] + sum(t["suppressed"].values()) == 2 and t)
    table = d.ctl("triggers").out
    why = d.ctl("why").out
    info = d.ctl("info", "latest").out
    status = d.ctl("status").out
    text.kill()
    text.wait()
    d.stop()
    assert made["verdict"] == "fire" and made["cause"]["pid"] == os.getpid()
    assert made["cause"]["value"] == 312000000 and made["cause"]["threshold"] == 250000000
    for line in (shown, next(x for x in why.splitlines() if made["file"] in x)):
        assert f"[{os.getpid()}]" in line and "slow answer: 312ms ≥ 250ms" in line and "fired" in line, line
    assert t["fired"] == 1 and t["cooled"] + sum(t["suppressed"].values()) == 1, t
    assert "slow answer: 312ms ≥ 250ms, trigger shop" in info and f"[{os.getpid()}]" in info, info
    assert "Triggers: " in status and "1 fired" in status, status
    assert "312ms" in next(x for x in table.splitlines() if x.startswith("shop")), table


def test_what_is_wrong(triggers, tmp_path):
    """Armed is not all: whom it watches may have ended, and what comes may be no words."""
    watched = subprocess.Popen(["sleep", "1000"])
    d = triggers(f"[Trigger faults]\nEvent=page-faults\nPid={watched.pid}\n")
    assert trigger(d, "faults")["state"] == "armed", d.log()
    before = d.ctl("triggers").out
    watched.kill()
    watched.wait()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(str(tmp_path / "app"))
        s.send(b"no words")
    gone = until("the end of the process", lambda: trigger(d, "faults").get("gone"))
    until("what could not be understood", lambda: trigger(d, "application")["bad"] == 1)
    after = d.ctl("triggers").out
    d.stop()
    assert gone == "its process has ended"
    assert "faults receives nothing for now: its process has ended" in after and "receives nothing" not in before
    assert "application: 1 message could not be understood" in after, after


def test_names_that_are_no_text(triggers, tmp_path):
    """Anybody may call his process as he likes: what was decided can still be read."""
    d = triggers("[Trigger shop]\nApplication=yes\n")
    send = ("import ctypes, socket, sys\nctypes.CDLL(None).prctl(15, b'a\\xff\\x1b[31m', 0, 0, 0)\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(sys.argv[1])\n"
            "s.send(b'TRIGGER=shop\\nREASON=slow')\n"
            # Not before the recorder has looked at who it was.
            "sys.stdin.read()\n")
    p = subprocess.Popen(["/usr/bin/python3", "-c", send, str(tmp_path / "app")], stdin=subprocess.PIPE)
    try:
        made = until("decision with its file", lambda: [x for x in decisions(d, "shop") if x.get("file")])
    finally:
        p.communicate()
    cause = json.loads(sidecar(d.samples()[0]).read_bytes().decode())["cause"]
    d.stop()
    assert made[0]["cause"]["comm"] == cause["comm"] == "a??[31m"


def test_lines(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n")
    assert "No trigger has fired yet." in d.ctl("why").out
    for _ in range(3):
        assert d.ctl("test-trigger", "tick").code == 0
        time.sleep(0.2)
    ids = [x["id"] for x in answer(d, "why")]
    assert len(ids) == 3 and ids == sorted(ids, reverse=True)
    assert [x["id"] for x in answer(d, "why", "-n", "2")] == ids[:2]
    d.stop()


def test_test_trigger(triggers):
    d = triggers("[Trigger mem]\nPressure=memory some\nThreshold=1999ms\nInterval=2s\nCooldown=1h\n")
    if trigger(d, "mem")["state"] == "failed":
        pytest.skip(f"no pressure here: {trigger(d, 'mem')['what']}")
    numbers = []
    for _ in range(2):  # whatever its cool-down
        r = d.ctl("test-trigger", "mem")
        assert r.code == 0, r.err
        numbers.append(int(r.out))
        until("file of the test", lambda: decisions(d, "mem")[0].get("file"))
    found = decisions(d, "mem")
    samples = {p.name for p in d.samples()}
    assert [x["dump_id"] for x in found] == numbers[::-1] and numbers[0] != numbers[1]
    assert all(x["cause"]["reason"] == "test" for x in found)
    assert all(x["cause"]["value"] >= x["cause"]["threshold"] == 1999000000 for x in found)
    assert {x["file"] for x in found} == samples
    assert answer(d, "triggers")["tokens"] == 20, "a person's tests take no token"
    r = d.ctl("test-trigger", "mme")
    assert r.code == EXIT["error"] and "mme" in r.err
    d.stop()


def test_enable_and_disable(triggers):
    d = triggers("[Trigger tick]\nEvery=300ms\n[Trigger other]\nEvery=1h\nEnabled=no\n[Triggers]\nRateLimit=no\n")
    until("tick", lambda: trigger(d, "tick")["fired"] > 0)
    assert d.ctl("disable", "tick", "signal").code == 0
    assert trigger(d, "tick")["state"] == trigger(d, "signal")["state"] == "disabled"
    asked = trigger(d, "tick")["asked"]
    time.sleep(1)
    assert trigger(d, "tick")["asked"] == asked, "a timer that is disarmed does not tick"
    r = d.ctl("test-trigger", "tick")
    assert r.code == EXIT["suppressed"] and "disabled" in r.err

    # one that is not there does not hinder the others
    r = d.ctl("enable", "nobody", "other", "tick")
    assert r.code == EXIT["error"] and "nobody" in r.err
    assert trigger(d, "other")["state"] == trigger(d, "tick")["state"] == "armed"
    until("tick", lambda: trigger(d, "tick")["asked"] > asked + 1)

    # until the configuration is read again
    assert d.ctl("disable", "tick").code == 0
    assert d.ctl("reload").code == 0
    assert trigger(d, "tick")["state"] == "armed" and trigger(d, "other")["state"] == "disabled"
    d.stop()


def test_watch(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n[Trigger off]\nEvery=1h\nEnabled=no\n" + ECHO)
    text, short = watch(d), watch(d, "--json=short")
    heard(d, text, short)
    d.ctl("test-trigger", "tick")
    d.ctl("test-trigger", "off")
    first, second = line_of(text), line_of(text)
    assert " tick: test" in first and "fired: dump" in first, first
    assert " off: test" in second and "disabled" in second, second
    assert json.loads(line_of(short))["verdict"] == "fire"
    assert json.loads(line_of(short))["verdict"] == "disabled"

    text.send_signal(signal.SIGINT)
    assert text.wait(60) == -signal.SIGINT, "Ctrl-C ends it as it ends any program"
    assert d.running() and trigger(d, "tick")["fired"] == 1
    d.stop()
    assert short.wait(60) == EXIT["error"]
    assert "stopped" in short.stderr.read().decode()


def test_object_on_the_command_line(triggers):
    """What cannot be armed is told by name, and the recorder records."""
    d = triggers("", "-e", "./nowhere.bpf.o", "--trigger", "tick:Every=1h")
    assert trigger(d, "tick")["state"] == "armed"
    t = trigger(d, "nowhere")
    assert t["state"] == "failed" and "nowhere.bpf.o" in t["what"]
    assert d.event_status("cpu-clock")
    d.stop()


@pytest.mark.parametrize("text, words", [
    ("[Trigger a]\nPressure=memory sum\n", (":1: ", "memory sum")),
    ("\n[Trigger a]\nProgram=/nonexistent/a.bpf.o\n", (":2: ", "/nonexistent/a.bpf.o")),
    ("[Trigger run-queue-latency]\nThreshold=5M\n", (":1: ", "Threshold=5M", "20ms")),
    ("[Trigger run-queue-latncy]\n", (":1: ", "did you mean [Trigger run-queue-latency]?")),
    ("[Trigger a]\nEvery=1h\nThreshhold=1\n", (":3: ", "did you mean Threshold=?")),
    ("[Trigger a]\nFunction=/bin/true:main\nThreshold=5M\n", (":1: ", "5M", "Threshold=5ms")),
    ("[Trigger a]\nEvent=sched:sched_swich\n", (":1: ", "sched:sched_switch")),
    ("[Trigger a]\nEvent=cpu-clock\nThreshold=5ms\n", (":1: ", "5ms")),
    ("[Trigger a]\nUSDT=/bin/true:a:b,a:c\n", (":1: ", "Threshold=5ms")),
])
def test_verify_config(tmp_path, text, words):
    conf = tmp_path / "x.conf"
    conf.write_text(text)
    r = run(program("flightrecctl"), "verify-config", conf)
    assert r.code == EXIT["error"]
    for word in (str(conf),) + words:
        assert word in r.err, f"{word!r} is not in: {r.err}"


def test_verify_config_takes_what_is_right(tmp_path):
    conf = tmp_path / "x.conf"
    conf.write_text("[Triggers]\nRateLimit=no\n[Trigger oom-kill]\nEnabled=no\n[Trigger tick]\nEvery=1h\n"
                    "[Trigger run-queue-latency]\nThreshold=50ms\n[Trigger m]\nPressure=io full\nInterval=2s\n")
    r = run(program("flightrecctl"), "verify-config", conf)
    assert r.code == 0, r.err
