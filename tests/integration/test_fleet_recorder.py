# SPDX-License-Identifier: GPL-2.0-or-later
"""What the recorder does for the fleet: exact windows, dumps that are held, the trigger fleet, and Action=fleet."""
import json
import os
import socket
import time

import pytest

from harness import fill, load, meta, program, quiet_config, run, script_lines, time_ns, trigger_samples, until

ID = "20261128T205726Z-1f3a5c7e"
CALLS = 'Events=raw_syscalls:sys_enter\nFilter=id == 110 && COMM == "frtest-syscalls"\nKernelBuffer=16M\n'
CLOCK = "Events=cpu-clock\nFrequency=499\nRingSize=8M\n"


class Control:
    """A connection to the control socket of the recorder D."""

    def __init__(self, d):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(str(d.socket))
        self.buffer = b""

    def send(self, method, more=False, **parameters):
        message = {"method": "io.flightrec.Recorder." + method, "parameters": parameters} | ({"more": True} if more else {})
        self.socket.sendall(json.dumps(message).encode() + b"\0")

    def receive(self):
        while b"\0" not in self.buffer:
            more = self.socket.recv(65536)
            assert more, "the recorder has hung up"
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)


def call(d, method, **parameters):
    """Calls a method. Returns the whole reply, which can be an error."""
    c = Control(d)
    c.send(method, **parameters)
    reply = c.receive()
    c.socket.close()
    return reply


def asked(d, method, **parameters):
    """Calls a method that must succeed. Returns the parameters of the reply."""
    reply = call(d, method, **parameters)
    assert "error" not in reply, reply
    return reply["parameters"]


def refusal(d, method, **parameters):
    """Calls a method that must fail. Returns the name of the error, and its text."""
    reply = call(d, method, **parameters)
    assert "error" in reply, reply
    p = reply["parameters"]
    return reply["error"].rsplit(".", 1)[1], p.get("parameter") or p["what"] + " " + p.get("hint", "")


@pytest.fixture
def configured(recorder, tmp_path):
    """configured("[Dump]\\n…") starts a recorder whose configuration has these sections."""
    def make(text="", events=CLOCK, **kwargs):
        conf = quiet_config(tmp_path / "flightrecd.conf", f"[Recorder]\n{events}{text}")
        return recorder("--config", conf, **kwargs)
    return make


def held(d):
    return {k: d.status()["dumps"][k] for k in ("held", "held_removed", "holds_expired")}


def keys(lines):
    return sorted((time_ns(x), x.cpu, x.tid, x.trace) for x in lines)


def test_an_exact_window_has_exactly_the_samples_of_this_time(configured):
    d = configured(events=CALLS + "RingSize=16M\n")
    load("syscalls", "-n", 20000)
    until("the samples", lambda: d.status()["ring"]["samples"] >= 20000)
    everything = keys(script_lines(d.dump_by_control()))
    assert len(everything) >= 20000
    # Both ends are times of samples, and belong to the window. One end of the second window has no sample.
    first, last = everything[len(everything) // 4][0], everything[3 * len(everything) // 4][0]
    for from_ns, to_ns in ((first, last), (first + 1, last - 1), (str(first), str(last)), (0, last), (first, None)):
        window = {k: v for k, v in (("from_ns", from_ns), ("to_ns", to_ns)) if v is not None}
        r = asked(d, "Dump", fleet=ID, by="ann@desk", **window)
        low, high = int(from_ns), int(to_ns or everything[-1][0])
        expected = [k for k in everything if low <= k[0] <= high]
        assert keys(script_lines(d.directory / r["file"])) == expected, (from_ns, to_ns)
        assert r["samples"] == len(expected) and r["asked"]["from_ns"] == low
        assert to_ns is None or r["asked"]["to_ns"] == high
        assert low <= r["window"]["from_ns"] <= r["window"]["to_ns"] <= high
        assert meta(d.directory / r["file"])["asked"] == r["asked"]


@pytest.mark.waits
def test_a_window_that_ends_in_the_future_is_awaited(configured):
    d = configured()
    now = time.monotonic_ns()
    r = asked(d, "Dump", from_ns=now, to_ns=now + 1_500_000_000)
    assert time.monotonic_ns() >= now + 1_500_000_000
    times = [time_ns(x) for x in script_lines(d.directory / r["file"], trace=False)]
    assert times and now <= min(times) and max(times) <= now + 1_500_000_000
    assert r["asked"] == {"from_ns": now, "to_ns": now + 1_500_000_000}
    assert r["window_closed_ns"] >= now + 1_500_000_000
    # A window that begins in the future waits, too.
    later = asked(d, "Dump", from_ns=time.monotonic_ns() + 300_000_000, to_ns=time.monotonic_ns() + 600_000_000, wait=False)
    waiting = {w["id"]: w for w in d.status()["dumps"]["waiting"]}
    assert later["id"] in waiting or later["id"] <= d.status()["dumps"]["last"]["id"]
    # An hour is allowed, more is not.
    assert asked(d, "Dump", to_ns=time.monotonic_ns() + 3599 * 10**9, wait=False)["id"] > later["id"]
    assert d.ctl("cancel", "--all").code == 0


@pytest.mark.waits
def test_hostile_parameters_are_refused(configured):
    d = configured()
    until("a sample", lambda: d.status()["ring"]["first_ns"] > 0)
    now = time.monotonic_ns()
    for parameters, error, text in (
            ({"from_ns": -1}, "InvalidParameter", "from_ns"), ({"to_ns": 0.5}, "InvalidParameter", "to_ns"),
            ({"to_ns": 1e300}, "InvalidParameter", "to_ns"), ({"to_ns": "x"}, "InvalidParameter", "to_ns"),
            ({"from_ns": str(2**64)}, "InvalidParameter", "from_ns"), ({"from_ns": "-1"}, "InvalidParameter", "from_ns"),
            ({"from_ns": ""}, "InvalidParameter", "from_ns"), ({"from_ns": [1]}, "InvalidParameter", "from_ns"),
            ({"to_ns": now + 3700 * 10**9}, "Failed", "hour in the future"), ({"to_ns": 2**62}, "Failed", "hour in the future"),
            ({"from_ns": 2**62}, "Failed", "ends before it begins"), ({"from_ns": 2, "to_ns": 1}, "Failed", "ends before it begins"),
            ({"to_ns": 1}, "Failed", "no longer holds any sample"),
            ({"from_ns": 1, "last_ns": 1}, "Failed", "excludes the other ways"),
            ({"to_ns": now, "post_ns": 1}, "Failed", "excludes the other ways"),
            ({"from_ns": 1, "to_usec": 1}, "Failed", "excludes the other ways"),
            ({"fleet": ""}, "InvalidParameter", "fleet"), ({"fleet": "a b"}, "InvalidParameter", "fleet"),
            ({"fleet": "../x"}, "InvalidParameter", "fleet"), ({"fleet": "x" * 64}, "InvalidParameter", "fleet"),
            ({"fleet": "ä"}, "InvalidParameter", "fleet"), ({"fleet": 5}, "InvalidParameter", "fleet"),
            ({"by": "me"}, "InvalidParameter", "by"), ({"fleet": ID, "by": 1}, "InvalidParameter", "by"),
            ({"hold": "yes"}, "InvalidParameter", "hold"), ({"hold": 1}, "InvalidParameter", "hold")):
        name, what = refusal(d, "Dump", **parameters)
        assert name == error and text in what, (parameters, name, what)
    for file, error, text in (("", "Failed", "not the name"), ("perf.data", "Failed", "not the name"),
                              ("../perf.data.sample.20260101T000000.000000Z", "Failed", "not the name"),
                              ("perf.data.sample.20260101T000000.000000Z.hold", "Failed", "not the name"),
                              ("x" * 3000, "Failed", "not the name"), (7, "InvalidParameter", "file"),
                              ("perf.data.sample.20260101T000000.000000Z", "Failed", "cannot release")):
        name, what = refusal(d, "Uploaded", file=file)
        assert name == error and text in what, (file, name, what)
    assert refusal(d, "Uploaded") == ("InvalidParameter", "file")
    # A long text is cut, and its control characters are replaced.
    r = asked(d, "Dump", fleet="x" * 63, by="a\x1b[31m\n" + "ä" * 300, reason="r" * 5000)
    cause = r["cause"]
    assert cause["fleet"] == "x" * 63 and cause["by"].startswith("a") and "\x1b" not in cause["by"] and "\n" not in cause["by"]
    assert len(cause["by"].encode()) < 128 and len(cause["reason"]) < 128
    assert d.status()["dumps"]["done"] == 1 and held(d)["held"] == 0


@pytest.mark.waits
def test_the_cause_of_a_dump_of_the_fleet(configured):
    d = configured()
    r = asked(d, "Dump", fleet=ID, by="ann@desk", reason="p99 is high")
    cause = {k: r["cause"].get(k) for k in ("trigger", "source", "reason", "fleet", "by")}
    assert cause == {"trigger": "fleet", "source": "fleet", "reason": "p99 is high", "fleet": ID, "by": "ann@desk"}
    path = d.directory / r["file"]
    assert meta(path)["cause"] == r["cause"] and r["path"] == str(path)
    mark, = trigger_samples(path)
    assert "fleet" in mark.trace and "p99 is high" in mark.trace
    decision = d.decisions("fleet")[0]
    assert decision["verdict"] == "fire" and decision["cause"]["fleet"] == ID and "from_ns" not in decision
    assert "fleet" in d.ctl("triggers").out and "p99 is high" in d.ctl("list").out
    assert d.trigger("fleet")["fired"] == 1 and d.trigger("control")["fired"] == 0
    assert f"{r['file']}: " in d.log() and "fleet: p99 is high" in d.log()


@pytest.mark.waits
def test_the_policy_of_the_machine_decides(configured):
    d = configured("[Triggers]\nRateLimit=2/1h\n[Trigger fleet]\nCooldown=1h\n")
    asked(d, "Dump", fleet=ID)
    name, what = refusal(d, "Dump", fleet=ID)
    assert name == "Suppressed" and "cools down" in what and "[Trigger fleet]" in what
    asked(d, "Dump")  # a person has neither the cool-down of the fleet nor a rate limit
    assert d.ctl("disable", "fleet").code == 0
    name, what = refusal(d, "Dump", fleet=ID)
    assert name == "Suppressed" and "disabled" in what and "enable fleet" in what
    assert d.trigger("fleet")["suppressed"] == {"cool-down": 1, "disabled": 1}
    assert d.status()["dumps"]["done"] == 2


@pytest.mark.waits
def test_rate_limit_and_min_fill_hold_for_the_fleet(configured):
    d = configured("[Triggers]\nRateLimit=2/1h\n[Trigger fleet]\nMinFill=1h\n")
    name, what = refusal(d, "Dump", fleet=ID)
    assert name == "Suppressed" and "MinFill=" in what
    conf = d.directory.parent / "flightrecd.conf"
    conf.write_text(conf.read_text().replace("MinFill=1h\n", ""))
    assert d.ctl("reload").code == 0
    for _ in range(2):
        asked(d, "Dump", fleet=ID)
    name, what = refusal(d, "Dump", fleet=ID)
    assert name == "Suppressed" and "RateLimit=" in what
    asked(d, "Dump")
    assert d.ctl("list").code == 0 and len(d.samples()) == 3


@pytest.mark.waits
def test_dumps_of_one_command_share_a_file(configured):
    """An agent that was restarted asks again. Another command with the same window gets a file of its own."""
    d = configured()
    window = {"from_ns": time.monotonic_ns(), "to_ns": time.monotonic_ns() + 2 * 10**9}
    ids = [asked(d, "Dump", fleet=f, hold=h, wait=False, **window)["id"]
           for f, h in ((ID, True), (ID, True), ("other", True), (ID, False))]
    assert ids[0] == ids[1] and len(set(ids)) == 3, ids
    until("three dumps", lambda: len(d.samples()) == 3 and d.status()["dumps"]["queued"] == 0)
    assert sorted(len(meta(p)["causes"]) for p in d.samples()) == [1, 1, 2]
    assert held(d)["held"] == 2


@pytest.mark.waits
def test_a_held_dump_stays_until_it_is_uploaded(configured):
    d = configured("[Dump]\nMaxFiles=2\n")
    kept = [asked(d, "Dump", fleet=ID, hold=True)["file"] for _ in range(3)]
    free = asked(d, "Dump")["file"]
    names = {p.name for p in d.samples()}
    assert set(kept) <= names
    status = d.status()["dumps"]
    size = sum(p.stat().st_blocks * 512 for n in kept for p in (d.directory / n, d.directory / f"{n}.json"))
    assert (status["held"], status["held_bytes"], status["held_removed"]) == (3, size, 0)
    assert "3 held until they are uploaded" in d.text_status()
    text = asked(d, "Metrics")["text"]
    assert "\nflightrec_dumps_held 3\n" in text and f"\nflightrec_dumps_held_bytes {size}\n" in text, text
    assert asked(d, "Vacuum", max_files=1, max_age_usec=1)["removed"] == [free]
    assert asked(d, "Uploaded", file=kept[0]) == {} and asked(d, "Uploaded", file=kept[0]) == {}
    assert held(d)["held"] == 2
    asked(d, "Vacuum", max_files=1)
    assert {p.name for p in d.samples()} == set(kept[1:])
    # A person may remove a held dump.
    assert d.ctl("rm", kept[1]).code == 0
    assert held(d) == {"held": 1, "held_removed": 0, "holds_expired": 0}
    assert {p.name for p in d.directory.glob("*.hold")} == {f"{kept[2]}.hold"}


@pytest.mark.waits
def test_a_hold_survives_a_restart_and_ends_after_a_day(configured):
    d = configured("[Dump]\nMaxFiles=1\n")
    kept = [asked(d, "Dump", fleet=ID, hold=True)["file"] for _ in range(2)]
    d.kill()
    (d.directory / "perf.data.sample.20260101T000000.000000Z.hold").touch()  # a dump that was being removed
    d = configured("[Dump]\nMaxFiles=1\n")
    until("the count", lambda: held(d)["held"] == 2)
    until("no leftover", lambda: {p.name for p in d.directory.glob("*.hold")} == {f"{n}.hold" for n in kept})
    asked(d, "Dump")
    assert set(kept) <= {p.name for p in d.samples()}
    asked(d, "Uploaded", file=kept[1])
    yesterday = time.time() - 25 * 3600
    os.utime(d.directory / f"{kept[0]}.hold", (yesterday, yesterday))
    newest = asked(d, "Dump")["file"]
    assert [p.name for p in d.samples()] == [newest]
    assert held(d) == {"held": 0, "held_removed": 0, "holds_expired": 1}
    assert "nobody has uploaded them within a day" in d.log()


def test_held_dumps_give_way_to_a_new_dump(configured, tmpfs):
    path = tmpfs("96M")
    d = configured("[Dump]\nKeepFree=0\nMaxUse=0\nCompression=no\n", events=CALLS + "RingSize=4M\n", directory=path)
    load("syscalls", "-n", 30000)
    first = asked(d, "Dump", fleet=ID, hold=True)
    free = asked(d, "Dump")["file"]
    # Less room than a dump needs.
    room = first["bytes"] // 2
    fill(path / "ballast")
    os.truncate(path / "ballast", (path / "ballast").stat().st_size - room)
    asked(d, "Dump", fleet="second")
    assert {p.name for p in d.samples()} & {first["file"], free} == {first["file"]}, "dumps that are not held go first"
    assert held(d)["held_removed"] == 0
    asked(d, "Vacuum", max_files=1)
    for _ in range(3):
        last = asked(d, "Dump", fleet="third", hold=True)["file"]
    assert first["file"] not in {p.name for p in d.samples()} and (path / last).exists()
    status = d.status()["dumps"]
    assert status["held_removed"] >= 1 and status["failed"] == 0 and status["held"] >= 1
    assert "were not uploaded yet: the disk had no room" in d.log()
    assert "removed before they were uploaded" in d.text_status()


@pytest.mark.waits
def test_keep_free_comes_before_holds(configured):
    d = configured("[Dump]\nKeepFree=0\n")
    name = asked(d, "Dump", fleet=ID, hold=True)["file"]
    asked(d, "Vacuum", max_files=1, max_use=1)
    assert [p.name for p in d.samples()] == [name]
    assert asked(d, "Vacuum", keep_free=2**52)["removed"] == [name]
    assert held(d) == {"held": 0, "held_removed": 1, "holds_expired": 0}


@pytest.mark.waits
def test_a_trigger_asks_the_fleet(configured):
    d = configured("[Dump]\nPostTrigger=2s\n[Trigger alone]\nEvery=1h\nAction=fleet role=db\nWindow=10s\nPostTrigger=1s\n"
                   "[Trigger both]\nEvery=1h\nAction=dump\nAction=fleet name=web-*\nAction=fleet zone!=b\nWindow=all\n"
                   "[Trigger none]\nEvery=1h\nPostTrigger=0\n")
    watcher = Control(d)
    watcher.send("Watch", more=True)
    seen = {}
    until("the watcher", lambda: d.ctl("test-trigger", "none").code == 0 and select_readable(watcher.socket))
    for name in ("alone", "both"):
        asked(d, "TestTrigger", name=name)
    while set(seen) != {"none", "alone", "both"}:
        decision = watcher.receive()["parameters"]["decision"]
        seen[decision["trigger"]] = decision
    assert "fleet" not in seen["none"] and "from_ns" not in seen["none"]
    alone, both = seen["alone"], seen["both"]
    at = alone["cause"]["monotonic_ns"]
    assert (alone["fleet"], alone["from_ns"], alone["to_ns"]) == (["role=db"], at - 10 * 10**9, at + 10**9)
    assert "dump_id" not in alone and "asks the fleet: role=db" in alone["why"]
    assert both["fleet"] == ["name=web-*", "zone!=b"] and both["dump_id"] > 0
    assert (both["from_ns"], both["to_ns"]) == (0, both["cause"]["monotonic_ns"] + 2 * 10**9)
    remembered = {x["trigger"]: x for x in asked(d, "Decisions")["decisions"]}
    for x in (alone, both):
        assert {k: remembered[x["trigger"]][k] for k in ("fleet", "from_ns", "to_ns")} == {
            k: x[k] for k in ("fleet", "from_ns", "to_ns")}
    file = until("the dump of both", lambda: d.decisions("both")[0].get("file"))
    until("the JSON", lambda: (d.directory / f"{file}.json").exists())
    causes = [c["trigger"] for c in meta(d.directory / file)["causes"]]
    assert "both" in causes and "alone" not in causes, "with only Action=fleet, there is no dump here"
    assert d.trigger("alone")["actions"] == ["fleet role=db"]
    assert "asks the fleet: role=db" in d.ctl("why").out


def select_readable(s):
    """Returns whether S has data within 0.1 s."""
    s.settimeout(0.1)
    try:
        return bool(s.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        s.settimeout(120)


@pytest.mark.waits
def test_the_cooldown_also_limits_action_fleet(configured):
    d = configured("[Trigger often]\nEvery=200ms\nCooldown=1h\nAction=fleet *\n")
    until("repetitions", lambda: any(x["verdict"] == "cool-down" and x["repeats"] >= 2 for x in d.decisions("often")))
    asks = [x for x in d.decisions("often") if "fleet" in x]
    assert len(asks) == 1 and asks[0]["verdict"] == "fire" and asks[0]["fleet"] == ["*"]
    assert not d.samples()


@pytest.mark.waits
def test_verify_config_checks_selectors_and_the_section_fleet(tmp_path):
    conf = tmp_path / "x.conf"
    good = ("[Fleet]\nEnabled=yes\nServers=nats://a:4222,tls://b:4222\nLabels=role=db,zone=a\nUpload=s3://bucket/prefix\n"
            "UploadEndpoint=https://store:9000\n[Trigger x]\nEvery=1h\nAction=fleet role=db\n[Trigger fleet]\nCooldown=10s\n")
    conf.write_text(good)
    assert run(program("flightrecctl"), "verify-config", conf).code == 0
    for old, new, text in (("Action=fleet role=db", "Action=fleet role", "Action= is not an action"),
                           ("Servers=nats://a:4222,tls://b:4222\n", "", "needs Servers="),
                           ("Labels=role=db,zone=a", "Labels=role", "Labels= is not a list of labels"),
                           ("Upload=s3://bucket/prefix", "Upload=/var", "Upload= is not a place"),
                           ("Cooldown=10s", "Action=dump", "Action= has no effect in [Trigger fleet]")):
        conf.write_text(good.replace(old, new))
        r = run(program("flightrecctl"), "verify-config", conf)
        assert r.code != 0 and text in r.err, (new, r)
