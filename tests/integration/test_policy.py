# SPDX-License-Identifier: GPL-2.0-or-later
"""Triggers that fire by themselves: what the policy lets through, what it holds back, and that it says so."""
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from conftest import call
from harness import ARMED_PROBES, BIN, EXIT, NO_LOSS, Daemon, marks, perf_clean, script_lines, sidecar, until

EVENTS = ("-e", "cpu-clock", "-F", "499", "-M", "8M")


class Machine:
    """A recorder with sections of its own, and an application that sends it triggers. What comes together becomes one
    file; tests that count dumps send them one by one, alone()."""

    def __init__(self, recorder, state_dir, text, events=EVENTS):
        self.config = state_dir.parent / "flightrecd.conf"
        self.trigger_socket = state_dir / "trigger"
        self.write(text)
        self.d = recorder("--config", self.config, *events)
        self.sent = {}

    def write(self, text):
        """TEXT is what follows in [Triggers]."""
        others = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
        self.config.write_text(f"[Triggers]\nSocket={self.trigger_socket}\n{text}{others}")

    def send(self, name, **more):
        fields = {"TRIGGER": name, "REASON": "slow answer", "VALUE": 12, "THRESHOLD": 10, "UNIT": "count"} | more
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.connect(str(self.trigger_socket))
            s.send("".join(f"{key}={value}\n" for key, value in fields.items()).encode())
        self.sent[name] = self.sent.get(name, 0) + 1

    def call(self, method, **parameters):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.connect(str(self.d.socket))
            s.sendall(json.dumps({"method": "io.flightrec.Recorder." + method, "parameters": parameters}).encode() + b"\0")
            return receive(s)

    def trigger(self, name):
        return next(t for t in self.call("Triggers")["parameters"]["triggers"] if t["name"] == name)

    def settled(self, name):
        """The trigger, when everything that was sent to it is in one of its counts."""
        def all_there():
            t = self.trigger(name)
            assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values()), t
            return t["asked"] + t["cooled"] + t["lost"] == self.sent[name] and t
        return until(f"the end of {self.sent[name]} of {name}", all_there)

    def alone(self, name):
        """Send it, and wait until nothing waits any more that another one could share."""
        self.send(name)
        self.settled(name)
        until("an empty queue", lambda: self.d.status()["dumps"]["queued"] == 0)

    def files(self, n):
        """The sidecars of just N dumps."""
        until(f"{n} dumps", lambda: (s := self.d.status()["dumps"])["queued"] == 0 and s["done"] >= n)
        paths = self.d.samples()
        assert len(paths) == n, paths
        return [json.loads(sidecar(p).read_text()) for p in paths]

    def decisions(self, **parameters):
        return self.call("Decisions", **parameters)["parameters"]["decisions"]


def receive(s):
    data = b""
    while not data.endswith(b"\0"):
        more = s.recv(1)  # not a byte of the next one
        assert more, "the recorder has hung up"
        data += more
    return json.loads(data[:-1])


def test_a_cause_stands_in_its_dump(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\n")
    before = time.monotonic_ns()
    m.send("app")
    meta, = m.files(1)
    after = time.monotonic_ns()
    cause = meta["cause"]
    assert meta["causes"] == [cause]
    assert {k: cause[k] for k in ("trigger", "source", "reason", "value", "threshold", "unit")} == {
        "trigger": "app", "source": "application", "reason": "slow answer", "value": 12, "threshold": 10, "unit": "count"}
    assert cause["comm"].startswith("py") and cause["pid"] > 0
    assert before <= cause["monotonic_ns"] <= after and meta["monotonic_ns"] == cause["monotonic_ns"]
    assert meta["asked"]["to_ns"] == cause["monotonic_ns"], "the window ends at the instant"
    decision, = m.decisions()
    assert (decision["verdict"], decision["file"]) == ("fire", meta["file"])
    assert m.trigger("app")["last_file"] == meta["file"]
    assert f"{meta['file']}: " in m.d.log() and "app: slow answer" in m.d.log()
    m.d.stop()


def test_cooldown(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\nCooldown=1h\n[Trigger other]\nApplication=yes\nWindow=10s\n"
                                     "[Trigger short]\nApplication=yes\nCooldown=3s\nWindow=20s\n")
    for _ in range(5):
        m.send("app")
    m.settled("app")
    until("the dump", lambda: m.d.status()["dumps"]["done"] == 1)
    m.alone("other")
    time.sleep(1.2)  # what its source holds back by itself is over, its cool-down is not
    m.send("app")
    t = m.settled("app")
    assert (t["fired"], t["joined"]) == (1, 0) and t["suppressed"]["cool-down"] >= 1, t
    assert 0 < t["cooldown_left_ns"] < 3600 * 10**9
    assert m.settled("other")["fired"] == 1, "each has a cool-down of its own"
    newest = next(x for x in m.decisions() if x["trigger"] == "app")
    assert newest["verdict"] == "cool-down" and "cools down for another" in newest["why"]
    for fired in (1, 2):
        until("the end of its cool-down", lambda: m.trigger("short")["cooldown_left_ns"] == 0)
        m.send("short")
        assert m.settled("short")["fired"] == fired
    second, first = [x["cause"]["monotonic_ns"] for x in m.decisions() if x["trigger"] == "short"]
    assert second - first >= 3 * 10**9
    m.files(4)
    assert m.d.log().count("app: slow answer, 12 of 10") == 1, "a line a minute for each trigger and reason"
    m.d.stop()


def test_rate_limit_of_all(recorder, state_dir):
    m = Machine(recorder, state_dir, "RateLimit=2/1h\nCooldown=0\n[Trigger a]\nApplication=yes\n[Trigger b]\nApplication=yes\nWindow=10s\n")
    for _ in range(4):
        for name in "ab":
            m.alone(name)
    a, b = m.trigger("a"), m.trigger("b")
    assert (a["fired"], a["joined"], b["fired"], b["joined"]) == (1, 0, 1, 0)
    assert a["suppressed"] == b["suppressed"] == {"rate-limit": 3}
    bucket = m.call("Triggers")["parameters"]
    assert bucket["burst"] == 2 and bucket["tokens"] < 1 and 0 < bucket["next_token_ns"] <= 1800 * 10**9
    m.files(2)
    m.d.dump_by_control()  # a person needs none
    m.d.dump_by_signal()
    triggers = m.d.status()["triggers"]
    assert (triggers["fired"] + triggers["joined"], triggers["suppressed"]["rate-limit"]) == (4, 6), triggers
    m.d.stop()


def test_min_fill(recorder, state_dir):
    m = Machine(recorder, state_dir, "MinFill=4s\nCooldown=0\n[Trigger app]\nApplication=yes\n[Trigger now]\nApplication=yes\nMinFill=0\n"
                                     "[Trigger late]\nApplication=yes\nMinFill=50s\n")
    for name in ("late", "app"):
        m.send(name)
        m.settled(name)
    assert m.trigger("late")["suppressed"] == {"min-fill": 1}
    assert "MinFill= wants 50.0s" in next(x for x in m.decisions() if x["trigger"] == "late")["why"]
    m.send("now")
    assert m.settled("now")["fired"] == 1

    def fired():
        t = m.trigger("app")
        assert set(t["suppressed"]) <= {"min-fill"}, t
        if not t["fired"]:
            time.sleep(0.3)
            m.send("app")
            m.settled("app")
        return t["fired"]
    assert until("a ring that is full enough", fired) == 1
    at, = (x["cause"]["monotonic_ns"] for x in m.decisions() if (x["trigger"], x["verdict"]) == ("app", "fire"))
    assert at - m.d.status()["ring"]["first_ns"] >= 4 * 10**9
    m.files(2)
    m.d.stop()


def test_causes_within_the_post_trigger_time_share_a_file(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger a]\nApplication=yes\nPostTrigger=6s\n"
                                     "[Trigger b]\nApplication=yes\nPostTrigger=20s\n[Trigger c]\nApplication=yes\nWindow=1s\n")
    for name in "abc":
        m.send(name)
        m.settled(name)
        time.sleep(0.2)
    meta, = m.files(1)
    assert [c["trigger"] for c in meta["causes"]] == ["a", "b", "c"] and meta["cause"] == meta["causes"][0]
    assert meta["asked"]["to_ns"] == meta["cause"]["monotonic_ns"] + 6 * 10**9, "who joins does not widen the window"
    for c in meta["causes"]:
        assert c["monotonic_ns"] < meta["asked"]["to_ns"]
    assert [(m.trigger(n)["fired"], m.trigger(n)["joined"]) for n in "abc"] == [(1, 0), (0, 1), (0, 1)]
    decisions = m.decisions()
    assert [x["verdict"] for x in decisions] == ["join", "join", "fire"]
    assert {x["file"] for x in decisions} == {meta["file"]}
    dumps = m.d.status()["dumps"]
    assert (dumps["done"], dumps["joined"]) == (1, 2)
    perf_clean("report", "-i", m.d.samples()[0], "--stdio")
    m.d.stop()


def test_triggers_that_see_one_anomaly_share_a_file(recorder, state_dir):
    """Each a moment after the other, without a post-trigger time: each instant is a mark, and the window is for all of them."""
    m = Machine(recorder, state_dir, "[Trigger a]\nApplication=yes\n[Trigger b]\nApplication=yes\nWindow=40s\n"
                                     "[Trigger c]\nApplication=yes\n[Trigger d]\nApplication=yes\nWindow=all\nCooldown=0\n")
    for name in "abc":
        m.send(name)
    meta, = m.files(1)
    causes = meta["causes"]
    assert [c["trigger"] for c in causes] == ["a", "b", "c"] and meta["marks"] == 3
    first, last = causes[0]["monotonic_ns"], causes[-1]["monotonic_ns"]
    assert meta["asked"] == {"from_ns": causes[1]["monotonic_ns"] - 40 * 10**9, "to_ns": last}, "as far back as b asked"
    assert [int(x.time.replace(".", "")) for x in marks(m.d.samples()[0])] == [c["monotonic_ns"] for c in causes]
    assert first < last and [(m.trigger(n)["fired"], m.trigger(n)["joined"]) for n in "abc"] == [(1, 0), (0, 1), (0, 1)]
    # Later, each has its own; how far back it goes is shown.
    for n in (2, 3):
        m.send("d")
        meta = m.files(n)[-1]
        assert len(meta["causes"]) == 1 and meta["asked"]["from_ns"] == 0
    rows = {line.split()[0]: line.split() for line in m.d.ctl("triggers").out.splitlines() if line}
    column = rows["NAME"].index("WINDOW")
    assert [rows[n][column] for n in ("a", "b", "d", "control")] == ["30.0s", "40.0s", "all", "all"]
    m.d.stop()


def test_disable_and_enable(recorder, state_dir):
    m = Machine(recorder, state_dir, "Cooldown=0\n[Trigger app]\nApplication=yes\nEnabled=no\n")
    assert m.trigger("app")["state"] == "disabled"
    assert m.call("SetTrigger", name="app", enabled=True) == {"parameters": {}}
    m.send("app")
    assert m.settled("app")["fired"] == 1
    m.call("SetTrigger", name="app", enabled=False)
    assert m.trigger("app")["state"] == "disabled"
    refused = m.call("TestTrigger", name="app")
    assert refused["error"] == "io.flightrec.Recorder.Suppressed" and "disabled" in refused["parameters"]["what"]
    assert "no trigger" in m.call("SetTrigger", name="nobody", enabled=True)["parameters"]["what"]
    # A person's, too.
    for name in ("control", "signal"):
        m.call("SetTrigger", name=name, enabled=False)
    r = m.d.ctl("dump")
    assert r.code == EXIT["suppressed"] and "disabled" in r.err, r
    m.d.signal(signal.SIGUSR1)
    until("word of the signal", lambda: "SIGUSR1" in m.d.log() and "suppressed, the trigger is disabled" in m.d.log())
    assert m.trigger("signal")["suppressed"] == {"disabled": 1}
    m.call("SetTrigger", name="control", enabled=True)
    m.d.dump_by_control()
    m.d.stop()


def test_test_trigger(recorder, state_dir):
    """Whatever its cool-down and the bucket say, and without touching either."""
    m = Machine(recorder, state_dir, "RateLimit=1/1h\n[Trigger app]\nApplication=yes\n")
    for i in (1, 2):
        assert m.call("TestTrigger", name="app")["parameters"]["id"] == i
        meta = m.files(i)[-1]
    assert (meta["cause"]["trigger"], meta["cause"]["reason"]) == ("app", "test")
    assert m.call("Triggers")["parameters"]["tokens"] == 1
    m.send("app")
    until("the dump of its own", lambda: m.trigger("app")["fired"] == 3)
    assert not m.trigger("app")["suppressed"]
    m.d.stop()


def test_reload_keeps_the_ring(recorder, state_dir):
    m = Machine(recorder, state_dir, "Cooldown=1h\n[Trigger a]\nApplication=yes\n[Trigger b]\nApplication=yes\n")
    m.send("a")
    m.settled("a")
    before = until("some history", lambda: (ring := m.d.status()["ring"])["span_s"] > 2 and ring)
    m.write("Cooldown=0\n[Trigger a]\nApplication=yes\n[Trigger c]\nApplication=yes\nWindow=100s\n[Trigger tick]\nEvery=1h\n")
    m.d.signal(signal.SIGHUP)
    until("word of the reload", lambda: "configuration reloaded" in m.d.log())
    after = m.d.status()["ring"]
    assert after["span_s"] >= before["span_s"] and after["samples"] >= before["samples"] > 0
    names = [t["name"] for t in m.call("Triggers")["parameters"]["triggers"]]
    assert names[:6] == ["signal", "control", "application", "a", "c", "tick"] and "b" not in names
    a = m.trigger("a")
    assert a["fired"] == 1 and a["cooldown_left_ns"] == 0, "its counters go on, its cool-down is the new one"
    for name in "ac":
        m.alone(name)
    assert (m.trigger("a")["fired"], m.trigger("c")["fired"]) == (2, 1)
    meta = m.files(3)[-1]
    assert meta["window"]["seconds"] > 2, "what was before the reload is in it"
    # One that cannot be armed is told, and hinders nobody.
    m.write("Cooldown=0\n[Trigger a]\nApplication=yes\n[Trigger bad]\nEvent=no:such\n")
    m.d.signal(signal.SIGHUP)
    until("word of it", lambda: "trigger bad is not armed" in m.d.log())
    assert m.trigger("bad")["state"] == "failed" and m.trigger("bad")["what"]
    m.send("a")
    assert m.settled("a")["fired"] == 3
    m.d.stop()


def test_a_timer(recorder, state_dir):
    """A clock fires as often as it says: the cool-down of all is not for it."""
    begin = time.monotonic_ns()
    m = Machine(recorder, state_dir, "[Trigger tick]\nEvery=1s\nWindow=1s\n")
    until("three dumps of it", lambda: m.trigger("tick")["fired"] >= 3)
    m.call("SetTrigger", name="tick", enabled=False)
    times = [x["cause"]["monotonic_ns"] for x in reversed(m.decisions())]
    # Whatever holds it up, it is never ahead of its time, and falls behind by itself never.
    assert all(at >= begin + n * 10**9 for n, at in enumerate(times, 1)), (begin, times)
    assert min(b - a for a, b in zip(times, times[1:])) < 2.5e9, times
    m.d.stop()


def taken(m):
    """What others sent has been taken: of two connections that are made now, the second comes after it."""
    for _ in range(2):
        m.call("Triggers")


def test_watch(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\n")
    watch = json.dumps({"method": "io.flightrec.Recorder.Watch", "more": True}).encode() + b"\0"
    clients = []
    for _ in range(17):
        clients.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        clients[-1].settimeout(20)
        clients[-1].connect(str(m.d.socket))
        clients[-1].sendall(watch)
        taken(m)
    assert "watching already" in receive(clients[16])["parameters"]["what"]
    m.send("app")
    for c in clients[:16]:
        reply = receive(c)
        assert reply["continues"] and reply["parameters"]["skipped"] == 0
        decision = reply["parameters"]["decision"]
        assert (decision["trigger"], decision["verdict"], decision["cause"]["value"]) == ("app", "fire", 12)
    for c in clients:
        c.close()
    # Those who have gone make room.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(20)
        s.connect(str(m.d.socket))
        s.sendall(watch)
        taken(m)
        time.sleep(1.2)
        m.send("app")
        reply = receive(s)["parameters"]["decision"]
        assert reply["verdict"] == "cool-down"
    once = m.call("Watch")
    assert "error" in once and "more" in once["parameters"]["what"]
    m.d.stop()


def test_a_storm(recorder, state_dir):
    """As many dumps as the policy allows, and each of the anomalies is in a count."""
    m = Machine(recorder, state_dir, "RateLimit=3/1h\nCooldown=200ms\n[Trigger app]\nApplication=yes\n")
    begin = time.monotonic()

    def goes_on():
        for _ in range(200):
            m.send("app")
        t = m.trigger("app")
        return time.monotonic() < begin + 3 or not t["suppressed"].get("rate-limit")
    until("a rate that is used up", lambda: not goes_on())
    t = m.settled("app")
    assert t["fired"] == 3 and t["suppressed"]["rate-limit"] > 0, t
    m.files(t["fired"])
    assert len(m.decisions()) < 20 * (time.monotonic() - begin), "what repeats is one decision"
    m.d.stop()


def test_what_is_armed_without_a_section(recorder, state_dir, tmp_path):
    """The probes that cost nothing, and no other; the rest is there to be enabled."""
    config = tmp_path / "flightrecd.conf"
    config.write_text(f"[Triggers]\nSocket={state_dir}/trigger\n")
    d = recorder("--config", config, *EVENTS)
    triggers = json.loads(d.ctl("triggers", "--json=short").out)["triggers"]
    d.stop()
    probes = {t["name"]: t["state"] for t in triggers if t["source"] == "bpf"}
    # A kernel may lack the tracepoint of one, which is said.
    assert {name for name, state in probes.items() if state != "disabled"} == set(ARMED_PROBES), probes
    assert len(probes) > len(ARMED_PROBES)


def entry(datagram):
    """The fields of a journal entry; those with newlines have a length and are not of interest."""
    return dict(line.split("=", 1) for line in datagram.decode(errors="replace").splitlines() if "=" in line)


def test_the_journal(state_dir):
    """Entries as journald gets them: one of the dump, with its cause, and one of what was held back."""
    call("mount", b"nodev", b"/run", b"tmpfs", 0, None)  # of the tests' own mount namespace
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    d = None
    try:
        Path("/run/systemd/journal").mkdir(parents=True)
        journal.bind("/run/systemd/journal/socket")
        journal.settimeout(120)
        entries = {}

        def read():  # all the while: whose queue is full, waits
            while "stopped" not in entries:
                e = entry(journal.recv(65536))
                entries[e["MESSAGE_ID"] if e.get("MESSAGE") != "stopped" and "MESSAGE_ID" in e else e.get("MESSAGE", "")] = e

        reader = threading.Thread(target=read, daemon=True)
        reader.start()

        def recorder(*args):
            nonlocal d
            d = Daemon(state_dir, *args)
            d.log_path.touch()
            st = os.stat(d.log_path)
            d.extra_env["JOURNAL_STREAM"] = f"{st.st_dev}:{st.st_ino}"
            return d.start()

        m = Machine(recorder, state_dir, "Cooldown=1h\n[Trigger app]\nApplication=yes\n[Trigger bad]\nEvent=no:such\n")
        m.send("app")
        meta, = m.files(1)
        time.sleep(1.2)
        m.send("app")
        m.settled("app")
        d.stop()
        reader.join(120)
    finally:
        if d:
            d.kill()
        journal.close()
        call("umount2", b"/run", 2)  # MNT_DETACH
    ids = "3c1a76b0a7b24d5a9d1f6a0a5be3c2"
    dumped, suppressed, not_armed = (entries[ids + n] for n in ("03", "09", "0a"))
    for e in (dumped, suppressed):
        assert (e["FLIGHTREC_TRIGGER"], e["FLIGHTREC_REASON"], e["FLIGHTREC_VALUE"], e["FLIGHTREC_THRESHOLD"], e["FLIGHTREC_UNIT"],
                e["FLIGHTREC_PID"]) == ("app", "slow answer", "12", "10", "count", str(os.getpid())), e
        assert e["FLIGHTREC_COMM"] == meta["cause"]["comm"] and e.get("FLIGHTREC_CGROUP") == meta["cause"].get("cgroup")
    assert dumped["FLIGHTREC_FILE"] == meta["file"] and dumped["FLIGHTREC_DIRECTORY"] == str(state_dir)
    assert suppressed["FLIGHTREC_VERDICT"] == "cool-down" and suppressed["PRIORITY"] == "5"
    assert not_armed["FLIGHTREC_TRIGGER"] == "bad"


def test_a_program_leaves_its_tracepoint_to_others(recorder, state_dir):
    """A BPF program on a classic tracepoint can keep its events from everyone who listens by perf. Ours must not."""
    found = sorted(BIN.parent.rglob("slow-open.bpf.o"))
    if not found:
        pytest.skip("slow-open.bpf.o is not built")
    m = Machine(recorder, state_dir, f"[Trigger slow-open]\nProgram={found[0]}\nThreshold=1h\n",
                events=(*NO_LOSS, "-e", "syscalls:sys_enter_openat", "-M", "8M"))
    t = until("the trigger", lambda: (t := m.trigger("slow-open"))["state"] != "arming" and t)
    if t["state"] == "failed":
        assert "verifier" not in t["what"], t["what"]
        pytest.skip(t["what"])
    assert t["state"] == "armed", m.d.log()
    for _ in range(50):
        open("/dev/null", "rb").close()
    path = m.d.dump_by_control()
    m.d.stop()
    mine = [line for line in script_lines(path) if line.pid == os.getpid() and "sys_enter_openat" in line.event]
    assert len(mine) >= 50
