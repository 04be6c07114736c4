# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs of flightrecctl about triggers: triggers, why, watch, test-trigger, enable, disable."""
import json
import os
import select
import signal
import socket
import subprocess
import time

import pytest

from harness import EXIT, end, meta, program, run, triggers_config, until

pytestmark = pytest.mark.waits


@pytest.fixture
def triggers(recorder, tmp_path):
    """triggers("[Trigger x]\\n…") starts a recorder whose configuration has these sections."""
    def make(text, *args):
        conf = tmp_path / "triggers.conf"
        conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n" + triggers_config(tmp_path / "app", text))
        return recorder("--config", conf, *args)
    return make


@pytest.fixture
def application(tmp_path):
    """application(DATAGRAM) sends DATAGRAM to the recorder, as an application does."""
    def send(datagram):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.connect(str(tmp_path / "app"))
            s.send(datagram)
    return send


def until_file(d, name):
    """Waits until a dump for the trigger NAME is written. Returns the decision (the record of what the policy decided) that
    made this dump."""
    return until(f"file of {name}", lambda: [x for x in d.decisions(name) if x.get("file")])[0]


# start_watch() needs a trigger with this section.
ECHO = "[Trigger echo]\nEvery=1h\nEnabled=no\n"


def start_watch(d, *options):
    """Starts one `flightrecctl watch` for each element of OPTIONS. Waits until each process has printed a decision. Returns the
    processes."""
    watchers = [d.start_ctl("watch", *o, text=False, bufsize=0) for o in options]

    def all_print():
        d.ctl("test-trigger", "echo")
        time.sleep(0.1)
        return len(select.select([w.stdout for w in watchers], [], [], 0)[0]) == len(watchers)
    until("output of all watchers", all_print)
    return watchers


def next_line(process, seconds=60):
    """Returns the next line that a `flightrecctl watch` prints, and ignores lines about the trigger echo. PROCESS must have
    bufsize=0, because select() does not see lines that are already in a buffer."""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        assert ready, f"no line within {seconds} s"
        line = process.stdout.readline().decode()
        if "echo" not in line:
            return line


def test_table(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n[Trigger off]\nEvery=2h\nEnabled=no\n"
                 "[Trigger gone]\nProgram=/nonexistent/gone.bpf.o\n")
    states = {t["name"]: t["state"] for t in d.ask("triggers")["triggers"]}
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


def test_why_shows_the_dump_and_the_suppressed_anomalies_of_a_timer(triggers):
    d = triggers("[Trigger tick]\nEvery=500ms\nCooldown=1h\n")
    made = until_file(d, "tick")
    suppressed = until("suppressed timer", lambda: [x for x in d.decisions("tick") if x["verdict"] == "cool-down"])
    t = d.trigger("tick")
    text = d.ctl("why").out
    samples = d.samples()

    assert made["verdict"] == "fire"
    assert [p.name for p in samples] == [made["file"]], "there is exactly one dump, and flightrecctl why prints its name"
    assert meta(samples[0])["cause"]["trigger"] == "tick"
    assert t["fired"] == 1 and t["last_file"] == made["file"]
    assert t["suppressed"]["cool-down"] >= 1 and set(t["suppressed"]) == {"cool-down"}
    assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values())
    assert "cools down" in suppressed[0]["why"]
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["TIME", "TRIGGER"]
    assert "cool-down" in lines[1] and made["file"] in text, "newest first"


def test_a_datagram_of_an_application_is_shown_everywhere(triggers, application):
    d = triggers("[Trigger shop]\nApplication=yes\nCooldown=1h\n" + ECHO)
    watcher, = start_watch(d, [])
    for _ in range(2):
        application(b"TRIGGER=shop\nREASON=slow answer\nVALUE=312000000\nTHRESHOLD=250000000\nUNIT=ns\n")
    until_file(d, "shop")
    shown = next_line(watcher)
    made = d.decisions("shop")[-1]
    t = until("2 anomalies", lambda: (t := d.trigger("shop"))["fired"] + t["cooled"] + sum(t["suppressed"].values()) == 2 and t)
    table = d.ctl("triggers").out
    why = d.ctl("why").out
    info = d.ctl("info", "latest").out
    status = d.ctl("status").out
    end(watcher)
    assert made["verdict"] == "fire" and made["cause"]["pid"] == os.getpid()
    assert made["cause"]["value"] == 312000000 and made["cause"]["threshold"] == 250000000
    for line in (shown, next(x for x in why.splitlines() if made["file"] in x)):
        assert f"[{os.getpid()}]" in line and "slow answer: 312ms ≥ 250ms" in line and "fired" in line, line
    assert t["fired"] == 1 and t["cooled"] + sum(t["suppressed"].values()) == 1, t
    assert "slow answer: 312ms ≥ 250ms, trigger shop" in info and f"[{os.getpid()}]" in info, info
    assert "Triggers: " in status and "1 fired" in status, status
    assert "312ms" in next(x for x in table.splitlines() if x.startswith("shop")), table


def test_a_process_that_has_ended_and_a_malformed_datagram_are_shown(triggers, application):
    watched = subprocess.Popen(["sleep", "1000"])
    d = triggers(f"[Trigger faults]\nEvent=page-faults\nPid={watched.pid}\n")
    assert d.trigger("faults")["state"] == "armed", d.log()
    before = d.ctl("triggers").out
    end(watched)
    application(b"no words")
    gone = until("the end of the process", lambda: d.trigger("faults").get("gone"))
    until("the malformed datagram", lambda: d.trigger("application")["bad"] == 1)
    after = d.ctl("triggers").out
    assert gone == "its process has ended"
    assert "faults receives nothing for now: its process has ended" in after and "receives nothing" not in before
    assert "application: 1 message could not be understood" in after, after


def test_unprintable_bytes_of_a_process_name_become_question_marks(triggers, tmp_path):
    d = triggers("[Trigger shop]\nApplication=yes\n")
    send = ("import ctypes, socket, sys\nctypes.CDLL(None).prctl(15, b'a\\xff\\x1b[31m', 0, 0, 0)\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\ns.connect(sys.argv[1])\n"
            "s.send(b'TRIGGER=shop\\nREASON=slow')\n"
            "sys.stdin.read()\n")  # live until the recorder has read the name of this process
    p = subprocess.Popen(["/usr/bin/python3", "-c", send, str(tmp_path / "app")], stdin=subprocess.PIPE)
    try:
        made = until_file(d, "shop")
    finally:
        p.communicate()
    cause = meta(d.samples()[0])["cause"]
    assert made["cause"]["comm"] == cause["comm"] == "a??[31m"


def test_why_prints_at_most_n_decisions_and_the_newest_first(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n")
    assert "No trigger has fired yet." in d.ctl("why").out
    for _ in range(3):
        assert d.ctl("test-trigger", "tick").code == 0
        time.sleep(0.2)
    ids = [x["id"] for x in d.ask("why")]
    assert len(ids) == 3 and ids == sorted(ids, reverse=True)
    assert [x["id"] for x in d.ask("why", "-n", "2")] == ids[:2]


def test_test_trigger_makes_a_dump_whatever_the_policy_says(triggers, application):
    """The dump of test-trigger does not count for RateLimit= and Cooldown=, so it does not suppress a later anomaly."""
    d = triggers("RateLimit=1/1h\n[Trigger mem]\nPressure=memory some\nThreshold=1999ms\nInterval=2s\nCooldown=1h\n"
                 "[Trigger shop]\nApplication=yes\nCooldown=1h\n")
    if d.trigger("mem")["state"] == "failed":
        pytest.skip(f"no pressure here: {d.trigger('mem')['what']}")
    for name in ("mem", "shop"):
        numbers = []
        for _ in range(2):
            r = d.ctl("test-trigger", name)
            assert r.code == 0, r.err
            numbers.append(int(r.out))
            until("file of the test", lambda: d.decisions(name)[0].get("file"))
        found = d.decisions(name)
        assert [x["dump_id"] for x in found] == numbers[::-1] and numbers[0] != numbers[1]
        assert all(x["cause"]["reason"] == "test" and x["cause"]["trigger"] == name for x in found)
    assert all(x["cause"]["value"] >= x["cause"]["threshold"] == 1999000000 for x in d.decisions("mem"))
    assert {x["file"] for name in ("mem", "shop") for x in d.decisions(name)} == {p.name for p in d.samples()}
    assert d.ask("triggers")["tokens"] == 1
    application(b"TRIGGER=shop\nREASON=slow answer\n")
    until("dump of the application", lambda: d.trigger("shop")["fired"] == 3)
    assert not d.trigger("shop")["suppressed"]
    r = d.ctl("test-trigger", "mme")
    assert r.code == EXIT["error"] and "mme" in r.err


def test_enable_and_disable(triggers):
    d = triggers("RateLimit=no\n[Trigger tick]\nEvery=300ms\n[Trigger other]\nEvery=1h\nEnabled=no\n")
    until("tick", lambda: d.trigger("tick")["fired"] > 0)
    assert d.ctl("disable", "tick", "signal", "control").code == 0
    assert d.trigger("tick")["state"] == d.trigger("signal")["state"] == "disabled"
    asked = d.trigger("tick")["asked"]
    # The triggers "control" and "signal", with which people ask for dumps, can also be disabled.
    r = d.ctl("dump")
    assert r.code == EXIT["suppressed"] and "disabled" in r.err, r
    d.signal(signal.SIGUSR1)
    d.until_logged("SIGUSR1", "suppressed, the trigger is disabled")
    assert d.trigger("signal")["suppressed"] == {"disabled": 1}
    time.sleep(0.7)
    assert d.trigger("tick")["asked"] == asked, "a disarmed timer does not fire"
    r = d.ctl("test-trigger", "tick")
    assert r.code == EXIT["suppressed"] and "disabled" in r.err

    # If one of the names is unknown, the other triggers are still enabled.
    r = d.ctl("enable", "nobody", "other", "tick", "control")
    assert r.code == EXIT["error"] and "nobody" in r.err
    assert d.trigger("other")["state"] == d.trigger("tick")["state"] == "armed"
    until("tick", lambda: d.trigger("tick")["asked"] > asked + 1)
    d.dump_by_control()

    # After a reload, each trigger is enabled or disabled as the configuration says.
    assert d.ctl("disable", "tick").code == 0
    assert d.ctl("reload").code == 0
    assert d.trigger("tick")["state"] == "armed" and d.trigger("other")["state"] == "disabled"


def test_watch(triggers):
    d = triggers("[Trigger tick]\nEvery=1h\n[Trigger off]\nEvery=1h\nEnabled=no\n" + ECHO)
    text, short = start_watch(d, [], ["--json=short"])
    d.ctl("test-trigger", "tick")
    d.ctl("test-trigger", "off")
    first, second = next_line(text), next_line(text)
    assert " tick: test" in first and "fired: dump" in first, first
    assert " off: test" in second and "disabled" in second, second
    assert json.loads(next_line(short))["verdict"] == "fire"
    assert json.loads(next_line(short))["verdict"] == "disabled"

    text.send_signal(signal.SIGINT)
    assert text.wait(60) == -signal.SIGINT, "Ctrl-C ends it as it ends any program"
    assert d.running() and d.trigger("tick")["fired"] == 1
    d.stop()
    assert short.wait(60) == EXIT["error"]
    assert "stopped" in short.stderr.read().decode()


def test_an_object_on_the_command_line_that_cannot_be_armed_is_reported(triggers):
    d = triggers("", "-e", "./nowhere.bpf.o", "--trigger", "tick:Every=1h")
    assert d.trigger("tick")["state"] == "armed"
    t = d.trigger("nowhere")
    assert t["state"] == "failed" and "nowhere.bpf.o" in t["what"]
    assert d.event_status("cpu-clock")


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
def test_verify_config_refuses_mistakes_of_triggers(tmp_path, text, words):
    conf = tmp_path / "x.conf"
    conf.write_text(text)
    r = run(program("flightrecctl"), "verify-config", conf)
    assert r.code == EXIT["error"]
    for word in (str(conf),) + words:
        assert word in r.err, f"{word!r} is not in: {r.err}"


def test_verify_config_accepts_triggers(tmp_path):
    conf = tmp_path / "x.conf"
    conf.write_text("[Triggers]\nRateLimit=no\n[Trigger oom-kill]\nEnabled=no\n[Trigger tick]\nEvery=1h\n"
                    "[Trigger run-queue-latency]\nThreshold=50ms\n[Trigger m]\nPressure=io full\nInterval=2s\n")
    r = run(program("flightrecctl"), "verify-config", conf)
    assert r.code == 0, r.err
