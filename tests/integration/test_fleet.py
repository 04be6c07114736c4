# SPDX-License-Identifier: GPL-2.0-or-later
"""The whole fleet: operator, broker, store, agents and recorders, on good days and on bad days."""
import http.client
import json
import re
import signal
import socket
import time

import pytest

from conftest import call
from fleet import BUCKET, METRICS_PORT, MS, PREFIX, S, token
from harness import EXIT, load, script_lines, time_ns, until
from openmetrics import Metrics

pytestmark = pytest.mark.waits
MS_REMOUNT = 32
# For small files, and so that the machine's disk plays no role.
DUMP = "[Dump]\nKeepFree=0\n"


def mono(m, key):
    """A time of the manifest M in CLOCK_MONOTONIC of its machine."""
    return int(m[key]) - int(m["clock"]["offset_ns"])


def numbers(path):
    """Returns {number: time in ns} of the frtest-count in a dump."""
    found = {}
    for line in script_lines(path):
        number = int(re.match(r"NR \d+ \(\w+, (\w+),", line.trace)[1], 16)
        assert number not in found
        found[number] = time_ns(line)
    return found


def check_same_seconds(tmp_path, stored):
    """Checks that all dumps have the same window. STORED is {machine: (manifest, content)}.

    The machines are one machine in truth, so their clocks are one clock, and it is known how far the broker's clock is from it."""
    true_offset = time.time_ns() - time.monotonic_ns()
    counts = {}
    for name, (m, data) in stored.items():
        clock = m["clock"]
        error = int(clock["error_ns"])
        assert error < 50 * MS, clock
        assert abs(int(clock["offset_ns"]) - true_offset) <= error + MS, (name, clock, true_offset)
        path = tmp_path / f"{token(name)}.data"
        path.write_bytes(data)
        counts[name] = numbers(path)
        assert counts[name], f"{name} has no sample"
    for a, (m, _) in stored.items():
        for b, (other, _) in stored.items():
            error = int(m["clock"]["error_ns"]) + int(other["clock"]["error_ns"])
            for key in ("from_ns", "to_ns"):
                assert abs(int(m[key]) - int(other[key])) <= MS, (a, b, key)
                assert abs(mono(m, key) - mono(other, key)) <= MS + error, (a, b, key)
    everything = {n: t for c in counts.values() for n, t in c.items()}
    slack = 5 * MS  # one recorder after the other stamps the same system call
    for name, (m, _) in stored.items():
        begin, last = mono(m, "from_ns"), mono(m, "to_ns")
        inside = {n for n, t in everything.items() if begin + slack < t < last - slack}
        assert inside, f"the window of {name} has no number"
        assert inside <= set(counts[name]), f"{name} lacks {sorted(inside - set(counts[name]))[:5]}"
        assert all(begin - slack <= t <= last + slack for t in counts[name].values()), f"{name} has more than the window"


def dump(fleet, *args, code=0):
    """Asks for a dump, and returns its id."""
    return fleet.ask("dump", *args, code=code)["id"]


def recorded(fleet, count):
    """Waits until every recorder has 3 s of history."""
    begin = time.monotonic()
    until("history", lambda: time.monotonic() > begin + 3)
    return count


def trigger(machine, name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.connect(str(machine.home / "trigger"))
        s.send(f"TRIGGER={name}\nREASON=slow answer\nVALUE=12\nTHRESHOLD=10\nUNIT=count\n".encode())


def test_the_first_day(make_fleet, tmp_path):
    """Three machines whose wall clocks are wrong by minutes: one command, the same seconds everywhere."""
    fleet = make_fleet()
    count = fleet.count()
    names = {"db-1": ("role=db,zone=a", -300), "db-2": ("role=db,zone=b", 0), "web-1": ("role=web,zone=a", 420)}
    for name, (labels, skew) in names.items():
        more = f"MetricsListen=127.0.0.1:{METRICS_PORT}\n" if name == "db-1" else ""
        fleet.machine(name, labels, skew, recorder=fleet.recording(count), agent_more=more)
    fleet.start_machines()
    recorded(fleet, count)
    assert "created" not in fleet.set_up()

    id = dump(fleet, "--last", "2s", "--reason", "a slow request")
    fleet.until_answered(id, dict.fromkeys(names, "stored"))
    stored = {m.name: fleet.check_stored(id, m) for m in fleet.machines}
    assert {n: m["labels"]["role"] for n, (m, _) in stored.items()} == {"db-1": "db", "db-2": "db", "web-1": "web"}
    assert all(m["trigger"] == "fleet" and m["cause"] == "a slow request" for m, _ in stored.values())
    for m, _ in stored.values():
        assert int(m["to_ns"]) - int(m["from_ns"]) == 2 * S
    check_same_seconds(tmp_path, stored)

    some = dump(fleet, "--match", "role=db,zone!=b", "--last", "1s")
    fleet.until_answered(some, {"db-1": "stored"})
    assert set(fleet.answers(some)) == {"db-1"}

    # An exact window in the past, in the time of the broker.
    begin = time.time_ns() - 2 * S
    exact = dump(fleet, "--from", stamp(begin), "--to", stamp(begin + S))
    fleet.until_answered(exact, dict.fromkeys(names, "stored"))
    for m in fleet.machines:
        manifest, _ = fleet.check_stored(exact, m)
        assert int(manifest["to_ns"]) - int(manifest["from_ns"]) == S
        assert abs(int(manifest["from_ns"]) - begin) < MS

    look(fleet, id, some, exact, names, tmp_path)
    metrics_of_the_agent(fleet)


def stamp(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // S)) + f".{ns % S:09d}Z"


def look(fleet, id, some, exact, names, tmp_path):
    """The verbs that only read."""
    listed = {d["id"]: d for d in fleet.ask("list")}
    assert {i: d["machines"] for i, d in listed.items()} == {id: 3, some: 1, exact: 3}
    assert listed[id]["trigger"] == "fleet" and listed[id]["cause"] == "a slow request"
    assert id in fleet.must("list", "--no-pager").out
    assert [d["id"] for d in fleet.ask("list", "-n", "1")] == [exact]
    assert [d["id"] for d in fleet.ask("list", "--match", "role=web", "--since", "-1h")] == [id, exact]
    assert not fleet.ask("list", "--until", "-1h")
    assert {m["machine"]: m["state"] for m in fleet.ask("status")} == dict.fromkeys(names, "here")
    assert {m["machine"]: m["state"] for m in fleet.ask("status", id)["machines"]} == dict.fromkeys(names, "stored")
    fleet.must("get", id, "-o", tmp_path / "got")
    folder = tmp_path / "got" / id
    description = json.loads((folder / "fleet.json").read_text())
    assert {m["machine"] for m in description["machines"]} == set(names)
    for name in names:
        data, = [p for p in (folder / token(name)).glob("perf.data.sample.*Z")]
        assert numbers(data)
    assert "db-1" in fleet.must("explain", id, "-o", tmp_path / "got").out


def metrics_of_the_agent(fleet):
    def get():
        c = http.client.HTTPConnection("127.0.0.1", METRICS_PORT, timeout=30)
        c.request("GET", "/metrics")
        return c.getresponse().read().decode()
    m = Metrics(fleet.machines[0].space.call(get))
    assert any(name.startswith("flightrec_agent_") for name, _ in m.samples), sorted(m.types)


def test_a_bad_day(make_fleet, tmp_path):
    """One machine is dead, one is cut off when the command comes, the broker restarts in the middle, and the store is down."""
    fleet = make_fleet()
    count = fleet.count()
    dead, cut, *others = [fleet.machine(f"node-{i}", "role=node", recorder=fleet.recording(count)) for i in range(5)]
    fleet.start_machines()
    recorded(fleet, count)
    dead.die()
    cut.cut()
    fleet.store.stop()
    asked = fleet.start_ctl("dump", "--last", "2s", "--reason", "a bad day", "--wait-limit", "5s", "--json=short")
    id = until("the command", lambda: fleet.commands())[0]
    fleet.until_answered(id, {m.name: "done" for m in others})
    fleet.broker.restart()
    out, err = asked.communicate(timeout=120)
    assert asked.returncode == EXIT["partly"], (out, err)
    assert dead.name in out + err and cut.name in out + err
    cut.join()
    fleet.store.start()
    living = [cut, *others]
    fleet.until_answered(id, {m.name: "stored" for m in living}, 120)
    stored = {m.name: fleet.check_stored(id, m) for m in living}
    check_same_seconds(tmp_path, stored)
    assert set(fleet.index(id)) == {m.name for m in living}
    assert not fleet.objects(id, dead.name)
    for m in living:
        assert len(m.dumps()) == 1, f"{m.name} has made {m.dumps()}"
    states = {m["machine"]: m["state"] for m in fleet.ask("status", id, code=None)["machines"]}
    assert states.pop(dead.name) not in ("stored", "done", "recording")
    assert set(states.values()) == {"stored"}


# The recorder fills a ring with about 20 MiB, and a dump is as large.
LARGE = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 8", "-M", "64M", "-m", "16M")
UNCOMPRESSED = DUMP + "Compression=no\n"


def until_held(machine, n):
    until(f"{n} held dumps", lambda: machine.recorder.status()["dumps"]["held"] == n)


def parts_noted(m):
    """Returns how many parts the agent has noted as sent. Each line of its notes has one part."""
    return sum(len(re.findall(r"^\d+ \d+ \S+ \S+\n", p.read_text(), re.M)) for p in m.home.glob("agent/jobs/*.parts"))


def test_kills_in_the_middle_of_an_upload(make_fleet):
    """The agent is killed twice while it uploads a large file in parts. It goes on with the next part, and the result is there once."""
    fleet = make_fleet()
    m = fleet.machine("big", recorder=LARGE, dump=UNCOMPRESSED, agent_more="UploadLimit=6M\n")
    fleet.start_machines()
    load("count", "-t", 1.5)
    id = dump(fleet, "--last", "1h", "--wait-limit", "1s", code=None)
    for n in (1, 2):
        # s3rver cannot list the parts, so the agent notes them: a kill before the note would send a part again.
        until(f"part {n}", lambda: parts_noted(m) >= n)
        m.kill_agent()
        m.start_agent()
    fleet.until_answered(id, {"big": "stored"})
    manifest, _ = fleet.check_stored(id, m)
    assert int(manifest["bytes"]) > 16 << 20, "too small for the test"
    assert len(m.dumps()) == 1
    assert fleet.store.parts() >= int(manifest["bytes"]) >> 24
    assert fleet.store.count_part(1) == 1, "the first part was sent again"
    assert not fleet.store.uploads()
    until_held(m, 0)


def test_a_full_store(make_fleet, tmp_path, tmpfs):
    """The store has no room, for which s3rver ends. The dump is kept until the store has room, and runs."""
    fleet = make_fleet(store=tmpfs("8M"))
    m = fleet.machine("big", recorder=LARGE, dump=UNCOMPRESSED, agent_more="UploadLimit=0\n")
    fleet.start_machines()
    load("count", "-t", 1.5)
    id = dump(fleet, "--last", "1h", "--wait-limit", "1s", code=None)
    until("a presence that says so", lambda: any(p["machine"] == "big" and p.get("store") for p in fleet.presence()), 90)
    assert not fleet.index(id)
    assert m.recorder.status()["dumps"]["held"] == 1
    call("mount", b"none", str(fleet.store.directory).encode(), b"tmpfs", MS_REMOUNT, b"size=1G")
    fleet.store.restart()
    fleet.until_answered(id, {"big": "stored"}, 120)
    fleet.check_stored(id, m)
    until_held(m, 0)


def test_the_policy_of_a_machine_wins(make_fleet):
    """A machine refuses, and the operator sees why."""
    fleet = make_fleet()
    count = fleet.count()
    fleet.machine("closed", more="[Trigger fleet]\nEnabled=no\n", recorder=fleet.recording(count))
    fleet.machine("slow", more="RateLimit=1/1h\n[Trigger fleet]\nCooldown=0\n", recorder=fleet.recording(count))
    fleet.start_machines()
    recorded(fleet, count)
    first = dump(fleet, "--last", "1s", code=EXIT["partly"])
    fleet.until_answered(first, {"closed": "refused", "slow": "stored"})
    second = dump(fleet, "--last", "1s", code=EXIT["suppressed"])
    answers = fleet.until_answered(second, {"closed": "refused", "slow": "refused"})
    assert "RateLimit=" in answers["slow"]["why"] or "rate" in answers["slow"]["why"], answers
    assert "disabled" in answers["closed"]["why"] or "Enabled=no" in answers["closed"]["why"], answers
    text = fleet.must("status", second, "--no-pager", code=None).out
    assert answers["slow"]["why"][:20] in text and answers["closed"]["why"][:20] in text, text
    assert [len(m.dumps()) for m in fleet.machines] == [0, 1]


def test_a_trigger_asks_the_fleet_once(make_fleet):
    """Three machines see one incident within a second. It is one command."""
    fleet = make_fleet()
    count = fleet.count()
    more = "Cooldown=0\n[Trigger slow]\nApplication=yes\nAction=fleet role=web\nWindow=2s\nPostTrigger=100ms\n"
    for i in range(3):
        fleet.machine(f"web-{i}", more=more, recorder=fleet.recording(count))
    fleet.machine("db-1", "role=db", recorder=fleet.recording(count))
    fleet.start_machines()
    recorded(fleet, count)
    for m in fleet.machines[:3]:
        trigger(m, "slow")
    id, = until("a command", fleet.commands)
    fleet.until_answered(id, {f"web-{i}": "stored" for i in range(3)})
    for m in fleet.machines[:3]:
        trigger(m, "slow")
        until("all are decided", lambda: m.recorder.trigger("slow")["fired"] == 2)
    for m in fleet.machines[:3]:
        manifest, _ = fleet.check_stored(id, m)
        assert manifest["trigger"] == "slow"
        assert int(manifest["from_ns"]) <= int(manifest["at_ns"]) <= int(manifest["to_ns"])
        assert len(m.dumps()) == 1
    assert fleet.commands() == [id], "one incident is one command"
    assert not fleet.machines[3].dumps()
    assert {d["id"] for d in fleet.ask("list", "--trigger", "slow")} == {id}
    assert not fleet.ask("list", "--trigger", "other")


def test_nothing_is_removed_before_the_store_has_it(make_fleet):
    """Retention leaves a dump that waits for the store, also after a restart of recorder and agent."""
    fleet = make_fleet()
    count = fleet.count()
    m = fleet.machine("db-1", recorder=fleet.recording(count), dump=DUMP + "MaxFiles=2\n")
    fleet.start_machines()
    recorded(fleet, count)
    fleet.store.stop()
    id = dump(fleet, "--last", "2s", "--wait-limit", "1s", code=None)
    fleet.until_answered(id, {"db-1": "done"})
    held, = m.dumps()
    for _ in range(3):
        m.recorder.dump_by_control()
    assert held.exists() and len(m.dumps()) <= 3
    m.kill_agent()
    m.recorder.stop()
    m.recorder.start()
    m.recorder.dump_by_control()
    assert held.exists()
    assert m.recorder.status()["dumps"]["held"] == 1
    m.start_agent()
    fleet.store.start()
    fleet.until_answered(id, {"db-1": "stored"})
    fleet.check_stored(id, m)
    until_held(m, 0)
    for _ in range(3):
        m.recorder.dump_by_control()
    assert not held.exists(), "retention removes it as any other dump"


def test_two_operators_at_once(make_fleet):
    fleet = make_fleet()
    count = fleet.count()
    for i in range(3):
        fleet.machine(f"node-{i}", recorder=fleet.recording(count))
    fleet.start_machines()
    recorded(fleet, count)
    asked = [fleet.start_ctl("dump", "--last", "2s", "--reason", f"operator {i}", "--json=short") for i in range(2)]
    done = [p.communicate(timeout=120) for p in asked]
    assert [p.returncode for p in asked] == [0, 0], done
    ids = [json.loads(out)["id"] for out, _ in done]
    assert len(set(ids)) == 2
    for i, id in enumerate(ids):
        fleet.until_answered(id, {m.name: "stored" for m in fleet.machines})
        for m in fleet.machines:
            manifest, _ = fleet.check_stored(id, m)
            assert manifest["cause"] == f"operator {i}"


def test_names_with_strange_characters(make_fleet, tmp_path):
    fleet = make_fleet()
    count = fleet.count()
    names = ["db.eu.example", "*", ">", 'a=b:"c\'$(d)&', "x" * 64]
    for name in names:
        fleet.machine(name, recorder=fleet.recording(count))
    fleet.start_machines()
    recorded(fleet, count)
    id = dump(fleet, "--last", "1s")
    fleet.until_answered(id, dict.fromkeys(names, "stored"))
    for m in fleet.machines:
        fleet.check_stored(id, m)
    fleet.must("get", id, "-o", tmp_path / "got")
    assert {p.name for p in (tmp_path / "got" / id).iterdir() if p.is_dir()} == {token(n) for n in names}
    assert {m["machine"] for m in fleet.ask("status", id)["machines"]} == set(names)


def test_a_hostile_index(make_fleet, tmp_path):
    """Somebody who may write to the index cannot lead `get` elsewhere, and cannot write to the operator's terminal."""
    fleet = make_fleet()
    count = fleet.count()
    m = fleet.machine("good", recorder=fleet.recording(count))
    fleet.start_machines()
    recorded(fleet, count)
    id = dump(fleet, "--last", "1s")
    fleet.until_answered(id, {"good": "stored"})
    good, _ = fleet.check_stored(id, m)
    n = fleet.nats()
    evil = {
        "other-key": {"object": good["object"]},
        "up": {"object": f"{PREFIX}/{id}/up/../../../../etc/passwd"},
        "hash": {"object": f"{PREFIX}/{id}/hash/{good['file']}", "sha256": "0" * 64},
        "file": {"file": "../../../tmp/frtest-evil", "object": f"{PREFIX}/{id}/file/../../../tmp/frtest-evil"},
        "screen": {"cause": "\x1b[2Jgone\r\n\x07", "object": f"{PREFIX}/{id}/screen/{good['file']}"},
        "liar": {"machine": "good"},
    }
    client = fleet.hub.call(fleet.store.client)
    for name in ("hash", "screen"):
        fleet.hub.call(lambda: client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{id}/{name}/{good['file']}", Body=b"x" * int(good["bytes"])))
    for name, change in evil.items():
        n.store(f"flightrec.index.{id}.{name}", {**good, "machine": name, **change})
    n.store(f"flightrec.index.{id}.junk", b"{" * 60000)
    r = fleet.ctl("get", id, "-o", tmp_path / "got")
    assert r.code not in (0, -signal.SIGSEGV, -signal.SIGABRT), r
    folder = tmp_path / "got" / id
    assert [p for p in (folder / "good").glob("perf.data.sample.*Z")], r.err
    for name in evil:
        assert not list((folder / name).glob("perf.data.sample.*Z")), f"{name}: {r.err}"
    assert "hash: " in r.err and "other-key: " in r.err and "4 messages of the broker cannot be read" in r.err, r.err
    assert not (tmp_path.parent / "frtest-evil").exists()
    for verb in (("list", "--no-pager"), ("status", id, "--no-pager"), ("list", "--json=short")):
        r = fleet.ctl(*verb)
        assert r.code in (0, EXIT["partly"], EXIT["error"]), r
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", r.out + r.err), r
        assert id in r.out, r
