# SPDX-License-Identifier: GPL-2.0-or-later
"""The policy decides which anomalies make a dump, and which are suppressed. Each decision is reported."""
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from conftest import mount, unmount
from harness import (ARMED_PROBES, BIN, NO_LOSS, meta, perf_clean, script_lines, time_ns, trigger_samples, triggers_config,
                     until)

pytestmark = pytest.mark.waits
EVENTS = ("-e", "cpu-clock", "-F", "499", "-M", "8M")


class Machine:
    """A recorder whose configuration has TEXT, and an application that sends anomalies to it.

    Anomalies that come within a short time join one dump. So tests that count dumps use send_alone()."""

    def __init__(self, recorder, state_dir, text, events=EVENTS):
        self.config = state_dir.parent / "flightrecd.conf"
        self.trigger_socket = state_dir / "trigger"
        self.config.write_text(triggers_config(self.trigger_socket, text))  # TEXT follows the keys of [Triggers]
        self.d = recorder("--config", self.config, *events)
        self.sent = {}

    def send(self, name, **more):
        fields = {"TRIGGER": name, "REASON": "slow answer", "VALUE": 12, "THRESHOLD": 10, "UNIT": "count"} | more
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.connect(str(self.trigger_socket))
            s.send("".join(f"{key}={value}\n" for key, value in fields.items()).encode())
        self.sent[name] = self.sent.get(name, 0) + 1

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(60)
        s.connect(str(self.d.socket))
        return s

    def call(self, method, **parameters):
        with self.connect() as s:
            s.sendall(json.dumps({"method": "io.flightrec.Recorder." + method, "parameters": parameters}).encode() + b"\0")
            return receive(s)

    def trigger(self, name):
        return next(t for t in self.call("Triggers")["parameters"]["triggers"] if t["name"] == name)

    def settled(self, name):
        """Waits until all anomalies that were sent to the trigger NAME are counted. Returns the trigger's status."""
        def all_there():
            t = self.trigger(name)
            assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values()), t
            return t["asked"] + t["cooled"] + t["lost"] == self.sent[name] and t
        return until(f"the end of {self.sent[name]} of {name}", all_there)

    def send_settled(self, name):
        self.send(name)
        return self.settled(name)

    def send_alone(self, name):
        """Sends an anomaly, and waits until the queue of dumps is empty, so that the next anomaly cannot join a dump."""
        self.send_settled(name)
        until("an empty queue", lambda: self.d.status()["dumps"]["queued"] == 0)

    def files(self, n):
        """Waits for N dumps, and checks that there are exactly N. Returns the JSON of each dump."""
        until(f"{n} dumps", lambda: (s := self.d.status()["dumps"])["queued"] == 0 and s["done"] >= n)
        paths = self.d.samples()
        assert len(paths) == n, paths
        return [meta(p) for p in paths]

    def decisions(self, name=None):
        """Returns all decisions, or only the decisions about the trigger NAME if NAME is given. The newest decision is
        first."""
        decisions = self.call("Decisions")["parameters"]["decisions"]
        return [x for x in decisions if name in (None, x["trigger"])]


def receive(s):
    data = b""
    while not data.endswith(b"\0"):
        more = s.recv(1)  # one byte at a time, so that no byte of the next reply is read
        assert more, "the recorder has hung up"
        data += more
    return json.loads(data[:-1])


def test_the_cause_is_in_the_json_of_its_dump(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\n")
    before = time.monotonic_ns()
    m.send("app")
    dump, = m.files(1)
    after = time.monotonic_ns()
    cause = dump["cause"]
    assert dump["causes"] == [cause]
    assert {k: cause[k] for k in ("trigger", "source", "reason", "value", "threshold", "unit")} == {
        "trigger": "app", "source": "application", "reason": "slow answer", "value": 12, "threshold": 10, "unit": "count"}
    assert cause["comm"].startswith("py") and cause["pid"] > 0
    assert before <= cause["monotonic_ns"] <= after and dump["monotonic_ns"] == cause["monotonic_ns"]
    assert dump["asked"]["to_ns"] == cause["monotonic_ns"], "the window ends at the instant"
    decision, = m.decisions()
    assert (decision["verdict"], decision["file"]) == ("fire", dump["file"])
    assert m.trigger("app")["last_file"] == dump["file"]
    assert f"{dump['file']}: " in m.d.log() and "app: slow answer" in m.d.log()


def test_cooldown(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\nCooldown=1h\n[Trigger other]\nApplication=yes\nWindow=10s\n"
                                     "[Trigger short]\nApplication=yes\nCooldown=3s\nWindow=20s\n")
    for _ in range(5):
        m.send("app")
    m.settled("app")
    until("the dump", lambda: m.d.status()["dumps"]["done"] == 1)
    m.send_alone("other")
    time.sleep(1.2)  # after an anomaly, the source itself holds back others for at most a second. The cool-down is longer
    t = m.send_settled("app")
    assert (t["fired"], t["joined"]) == (1, 0) and t["suppressed"]["cool-down"] >= 1, t
    assert 0 < t["cooldown_left_ns"] < 3600 * 10**9
    assert m.settled("other")["fired"] == 1, "each has a cool-down of its own"
    newest = m.decisions("app")[0]
    assert newest["verdict"] == "cool-down" and "cools down for another" in newest["why"]
    for fired in (1, 2):
        until("the end of the cool-down", lambda: m.trigger("short")["cooldown_left_ns"] == 0)
        assert m.send_settled("short")["fired"] == fired
    second, first = [x["cause"]["monotonic_ns"] for x in m.decisions("short")]
    assert second - first >= 3 * 10**9
    m.files(4)
    assert m.d.log().count("app: slow answer, 12 of 10") == 1, "a line a minute for each trigger and reason"


def test_the_rate_limit_is_for_all_triggers(recorder, state_dir):
    m = Machine(recorder, state_dir, "RateLimit=2/1h\nCooldown=0\n[Trigger a]\nApplication=yes\n[Trigger b]\nApplication=yes\nWindow=10s\n")
    for name in "abababab":
        m.send_alone(name)
    a, b = m.trigger("a"), m.trigger("b")
    assert (a["fired"], a["joined"], b["fired"], b["joined"]) == (1, 0, 1, 0)
    assert a["suppressed"] == b["suppressed"] == {"rate-limit": 3}
    bucket = m.call("Triggers")["parameters"]
    assert bucket["burst"] == 2 and bucket["tokens"] < 1 and 0 < bucket["next_token_ns"] <= 1800 * 10**9
    m.files(2)
    m.d.dump_by_control()  # RateLimit= does not limit dumps that a person asks for
    m.d.dump_by_signal()
    triggers = m.d.status()["triggers"]
    assert (triggers["fired"] + triggers["joined"], triggers["suppressed"]["rate-limit"]) == (4, 6), triggers


def test_min_fill(recorder, state_dir):
    m = Machine(recorder, state_dir, "MinFill=3s\nCooldown=0\n[Trigger app]\nApplication=yes\n[Trigger now]\nApplication=yes\nMinFill=0\n"
                                     "[Trigger late]\nApplication=yes\nMinFill=50s\n")
    m.send_settled("late")
    # After a slow start, the ring can already be full enough: so wait until this dump is made, because "now" must not join it.
    m.send_alone("app")
    assert m.trigger("late")["suppressed"] == {"min-fill": 1}
    assert "MinFill= asks for 50.0s" in m.decisions("late")[0]["why"]
    assert m.send_settled("now")["fired"] == 1

    def fired():
        t = m.trigger("app")
        assert set(t["suppressed"]) <= {"min-fill"}, t
        if not t["fired"]:
            time.sleep(0.3)
            m.send_settled("app")
        return t["fired"]
    assert until("a ring that is full enough", fired) == 1
    at, = (x["cause"]["monotonic_ns"] for x in m.decisions("app") if x["verdict"] == "fire")
    assert at - m.d.status()["ring"]["first_ns"] >= 3 * 10**9
    m.files(2)


def test_causes_within_the_post_trigger_time_share_a_file(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger a]\nApplication=yes\nPostTrigger=6s\n"
                                     "[Trigger b]\nApplication=yes\nPostTrigger=20s\n[Trigger c]\nApplication=yes\nWindow=1s\n")
    for name in "abc":
        m.send_settled(name)
        time.sleep(0.2)
    dump, = m.files(1)
    assert [c["trigger"] for c in dump["causes"]] == ["a", "b", "c"] and dump["cause"] == dump["causes"][0]
    assert dump["asked"]["to_ns"] == dump["cause"]["monotonic_ns"] + 6 * 10**9, "a cause that joins does not widen the window"
    for c in dump["causes"]:
        assert c["monotonic_ns"] < dump["asked"]["to_ns"]
    assert [(m.trigger(n)["fired"], m.trigger(n)["joined"]) for n in "abc"] == [(1, 0), (0, 1), (0, 1)]
    decisions = m.decisions()
    assert [x["verdict"] for x in decisions] == ["join", "join", "fire"]
    assert {x["file"] for x in decisions} == {dump["file"]}
    dumps = m.d.status()["dumps"]
    assert (dumps["done"], dumps["joined"]) == (1, 2)
    perf_clean("report", "-i", m.d.samples()[0], "--stdio")


def test_triggers_that_see_one_anomaly_share_a_file(recorder, state_dir):
    """Three anomalies come shortly after each other, without a post-trigger time, and join one dump. The dump has a trigger
    sample for each anomaly, and its window contains the windows of all three triggers."""
    m = Machine(recorder, state_dir, "[Trigger a]\nApplication=yes\n[Trigger b]\nApplication=yes\nWindow=40s\n"
                                     "[Trigger c]\nApplication=yes\n[Trigger d]\nApplication=yes\nWindow=all\nCooldown=0\n")
    # Stopped, so that the recorder receives all three anomalies at once, even if this process is delayed between them.
    m.d.signal(signal.SIGSTOP)
    for name in "abc":
        m.send(name)
    m.d.signal(signal.SIGCONT)
    dump, = m.files(1)
    causes = dump["causes"]
    assert [c["trigger"] for c in causes] == ["a", "b", "c"] and dump["marks"] == 3
    first, last = causes[0]["monotonic_ns"], causes[-1]["monotonic_ns"]
    assert dump["asked"] == {"from_ns": causes[1]["monotonic_ns"] - 40 * 10**9, "to_ns": last}, "as far back as b asked"
    assert [time_ns(x) for x in trigger_samples(m.d.samples()[0])] == [c["monotonic_ns"] for c in causes]
    assert first < last and [(m.trigger(n)["fired"], m.trigger(n)["joined"]) for n in "abc"] == [(1, 0), (0, 1), (0, 1)]
    # Each later anomaly makes its own dump. `flightrecctl triggers` shows how far back a window goes.
    for n in (2, 3):
        m.send("d")
        dump = m.files(n)[-1]
        assert len(dump["causes"]) == 1 and dump["asked"]["from_ns"] == 0
    rows = {line.split()[0]: line.split() for line in m.d.ctl("triggers").out.splitlines() if line}
    column = rows["NAME"].index("WINDOW")
    assert [rows[n][column] for n in ("a", "b", "d", "control")] == ["30.0s", "40.0s", "all", "all"]


def test_a_timer_fires_at_its_interval(recorder, state_dir):
    """Other triggers have a cool-down by default. A timer has none."""
    begin = time.monotonic_ns()
    m = Machine(recorder, state_dir, "[Trigger tick]\nEvery=1s\nWindow=1s\n")
    until("three dumps of the timer", lambda: m.trigger("tick")["fired"] >= 3)
    m.call("SetTrigger", name="tick", enabled=False)
    times = [x["cause"]["monotonic_ns"] for x in reversed(m.decisions())]
    # A timer is never early, and its delays do not add up. A busy machine can delay one of its dumps.
    assert all(at >= begin + n * 10**9 for n, at in enumerate(times, 1)), (begin, times)
    assert min(b - a for a, b in zip(times, times[1:])) < 2.5e9, times


def test_watch(recorder, state_dir):
    m = Machine(recorder, state_dir, "[Trigger app]\nApplication=yes\n")

    def start_watch():
        s = m.connect()
        s.sendall(json.dumps({"method": "io.flightrec.Recorder.Watch", "more": True}).encode() + b"\0")
        for _ in range(2):  # when the server has answered the second call, it has surely read the call of Watch
            m.call("Triggers")
        return s

    clients = [start_watch() for _ in range(17)]
    assert "watching already" in receive(clients[16])["parameters"]["what"]
    m.send("app")
    for c in clients[:16]:
        reply = receive(c)
        assert reply["continues"] and reply["parameters"]["skipped"] == 0
        decision = reply["parameters"]["decision"]
        assert (decision["trigger"], decision["verdict"], decision["cause"]["value"]) == ("app", "fire", 12)
    for c in clients:
        c.close()
    with start_watch() as s:  # the recorder accepts it, because other clients have gone
        time.sleep(1.2)
        m.send("app")
        assert receive(s)["parameters"]["decision"]["verdict"] == "cool-down"
    once = m.call("Watch")
    assert "error" in once and "more" in once["parameters"]["what"]


def test_a_storm_of_triggers_is_counted_and_limited(recorder, state_dir):
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
    assert len(m.decisions()) < 20 * (time.monotonic() - begin), "repeated verdicts are one decision"


def test_probes_that_are_armed_by_default(recorder, state_dir, tmp_path):
    """Only the probes that cost nothing are armed by default. If the kernel lacks the tracepoint of such a probe, this is
    reported."""
    config = tmp_path / "flightrecd.conf"
    config.write_text(f"[Triggers]\nSocket={state_dir}/trigger\n")
    d = recorder("--config", config, *EVENTS)
    probes = {t["name"]: t["state"] for t in d.ask("triggers")["triggers"] if t["source"] == "bpf"}
    assert {name for name, state in probes.items() if state != "disabled"} == set(ARMED_PROBES), probes
    assert len(probes) > len(ARMED_PROBES)


def journal_entry(datagram):
    """Returns the fields of a journal entry, without the fields whose values have a newline. (Those fields have another format,
    with a length.)"""
    return dict(line.split("=", 1) for line in datagram.decode(errors="replace").splitlines() if "=" in line)


def test_the_journal(recorder, state_dir):
    """journald gets an entry about a dump and its cause, an entry about a suppressed anomaly, and an entry about a trigger that
    cannot be armed."""
    mount("tmpfs", "/run")  # only in the mount namespace of the tests
    journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        Path("/run/systemd/journal").mkdir(parents=True)
        journal.bind("/run/systemd/journal/socket")
        journal.settimeout(120)
        entries = {}

        def read():  # reads all the time, because the recorder would wait while the queue of the socket is full
            while "stopped" not in entries:
                e = journal_entry(journal.recv(65536))
                entries[e["MESSAGE_ID"] if e.get("MESSAGE") != "stopped" and "MESSAGE_ID" in e else e.get("MESSAGE", "")] = e

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        # systemd sets JOURNAL_STREAM for a service whose log goes to the journal.
        log = state_dir.parent / "journal.log"
        log.touch()
        stream = f"{log.stat().st_dev}:{log.stat().st_ino}"

        def start(*args):
            return recorder(*args, log_path=log, env={"JOURNAL_STREAM": stream})

        m = Machine(start, state_dir, "Cooldown=1h\n[Trigger app]\nApplication=yes\n[Trigger bad]\nEvent=no:such\n")
        m.send("app")
        dump, = m.files(1)
        time.sleep(1.2)
        m.send_settled("app")
        m.d.stop()
        reader.join(120)
    finally:
        journal.close()
        unmount("/run")
    ids = "3c1a76b0a7b24d5a9d1f6a0a5be3c2"
    dumped, suppressed, not_armed = (entries[ids + n] for n in ("03", "09", "0a"))
    for e in (dumped, suppressed):
        assert (e["FLIGHTREC_TRIGGER"], e["FLIGHTREC_REASON"], e["FLIGHTREC_VALUE"], e["FLIGHTREC_THRESHOLD"], e["FLIGHTREC_UNIT"],
                e["FLIGHTREC_PID"]) == ("app", "slow answer", "12", "10", "count", str(os.getpid())), e
        assert e["FLIGHTREC_COMM"] == dump["cause"]["comm"] and e.get("FLIGHTREC_CGROUP") == dump["cause"].get("cgroup")
    assert dumped["FLIGHTREC_FILE"] == dump["file"] and dumped["FLIGHTREC_DIRECTORY"] == str(state_dir)
    assert suppressed["FLIGHTREC_VERDICT"] == "cool-down" and suppressed["PRIORITY"] == "5"
    assert not_armed["FLIGHTREC_TRIGGER"] == "bad"


def test_a_bpf_program_leaves_its_tracepoint_to_perf(recorder, state_dir):
    """The return value of a BPF program on a classic tracepoint can hide an occurrence of the tracepoint from all perf events.
    The programs that flightrec documents and loads must not do this."""
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
    mine = [line for line in script_lines(path) if line.pid == os.getpid() and "sys_enter_openat" in line.event]
    assert len(mine) >= 50
