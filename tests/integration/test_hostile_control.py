# SPDX-License-Identifier: GPL-2.0-or-later
"""Hostile members of the group use the control socket. They harm neither the recording nor clients that behave well."""
import grp
import json
import os
import random
import re
import select
import signal
import socket
import statistics
import struct
import sys
import time
import traceback
from pathlib import Path

import pytest

from conftest import NOBODY
from harness import EXIT, FULL, NO_LOSS, ROOT, die_with_parent, finish_load, program, quiet_config, run, start, start_load, until

GROUP = "daemon"
CORPUS = ROOT / "tests/data/control"
SENDERS, MESSAGES, SECONDS = (8, 10000, 12) if FULL else (8, 4000, 5)
RSS_GROWS_MAX = 8 << 20


def group_id():
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        pytest.skip(f"no group {GROUP}")


def become(uid, gid):
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


class Child:
    """Calls FUNCTION(ARGS) in a new process with UID and GID. result() returns the function's result, which the process passes
    on as JSON."""

    def __init__(self, uid, gid, function, *args):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(write)
            return
        code = 1
        try:
            die_with_parent()
            become(uid, gid)
            with os.fdopen(write, "w") as f:
                json.dump(function(*args), f)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def result(self):
        with os.fdopen(self.read) as f:
            text = f.read()
        _, status = os.waitpid(self.pid, 0)
        assert status == 0, f"a hostile client failed: status {status}"
        return json.loads(text)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.read)


def connect(path):
    s = socket.socket(socket.AF_UNIX)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))  # flightrecctl does the same
    s.connect(str(path))
    s.settimeout(5)
    return s


def mutated(rng, data):
    """Returns the message DATA with one of several kinds of mistakes, or without a change."""
    how = rng.randrange(7)
    at = rng.randrange(len(data) + 1)
    if how == 0:
        return data
    if how == 1:
        return data[:at]
    if how == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1:]
    if how == 3:
        return data[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(64))) + data[at:]
    if how == 4:
        return data[:at] + data
    if how == 5:
        return data.replace(b'":', b'":' + b"[" * rng.randrange(200), 1)
    return data + b" " * rng.randrange(70000)


def send_messages(path, seed, count):
    """Sends COUNT messages, each with the zero byte that ends a message. Each time the server closes the connection, connects
    again."""
    rng = random.Random(seed)
    corpus = [p.read_bytes().rstrip(b"\0") for p in sorted(CORPUS.iterdir())]
    done = {"sent": 0, "answered": 0, "closed": 0, "turned_away": 0}
    s = None
    while done["sent"] < count:
        try:
            s = s or connect(path)
            s.sendall(mutated(rng, rng.choice(corpus)) + b"\0")
            done["sent"] += 1
            s.settimeout(rng.choice((0.002, 0.05)))
            answer = s.recv(65536)
            done["answered"] += bool(answer)
            done["turned_away"] += b"too many connections" in answer
            if answer:
                continue
        except socket.timeout:
            continue
        except BlockingIOError:  # the server's queue of connections is full
            time.sleep(0.005)
        except OSError:
            pass
        done["closed"] += s is not None
        s = None
    return done


def dribble(path, seconds, count):
    """COUNT clients each send one byte a second."""
    message, end = b'{"method":"io.flightrec.Recorder.Status"}', time.monotonic() + seconds
    clients = [connect(path) for _ in range(count)]
    at = 0
    while time.monotonic() < end:
        for s in clients:
            try:
                s.send(message[at % len(message):][:1])
            except OSError:
                pass  # the server has closed the connection, because the client is too slow
        at += 1
        time.sleep(1)
    return {"bytes": at}


def crowd(path, seconds, count):
    """Opens COUNT connections at once, and keeps each until the server closes it."""
    held, refused, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        while len(held) + refused < count:
            s = socket.socket(socket.AF_UNIX)
            s.setblocking(False)
            try:
                s.connect(str(path))
                held.append(s)
            except BlockingIOError:
                refused += 1
        for s in select.select(held, [], [], 0.1)[0]:
            s.close()
            held.remove(s)
            refused += 1
        time.sleep(0.2)
        if refused >= count - 20:  # open new connections
            refused = 0
    return {"held": len(held)}


def never_read(path, seconds, count):
    """COUNT clients send calls all the time, and do not read the answers."""
    call, end = b'{"method":"io.flightrec.Recorder.Metrics"}\0' * 100, time.monotonic() + seconds
    clients = []
    while time.monotonic() < end:
        while len(clients) < count:
            try:
                clients.append(connect(path))
                clients[-1].setblocking(False)
            except OSError:
                break
        for s in list(clients):
            try:
                s.send(call)
            except BlockingIOError:
                pass
            except OSError:
                clients.remove(s)
        time.sleep(0.05)
    return {}


def ask_politely(path, seconds):
    """Makes calls one after the other, each on a new connection. Returns the time that each call took, and the time by which
    each sleep between two calls was too long. The second time shows how long this machine makes every program wait."""
    call, end, took, late = b'{"method":"io.flightrec.Recorder.Status"}\0', time.monotonic() + seconds, [], []
    while time.monotonic() < end or len(took) < 50:
        begin = time.monotonic()
        with connect(path) as s:
            s.settimeout(60)
            s.sendall(call)
            answer = b""
            while not answer.endswith(b"\0"):
                part = s.recv(1 << 20)
                assert part, f"closed after {answer[:200]}"
                answer += part
        now = time.monotonic()
        took.append(now - begin)
        assert b'"error"' not in answer[:200], answer[:200]
        time.sleep(0.03)
        late.append(time.monotonic() - now - 0.03)
    return took, late


def memory(pid, reset=False):
    """Returns the resident memory of a process, and the peak of this memory since the last call with reset=True, in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    if reset:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return [int(re.search(rf"^{key}:\s*(\d+) kB", text, re.M)[1]) << 10 for key in ("VmRSS", "VmHWM")]


@pytest.fixture
def guarded(recorder, open_dir):
    """A recorder whose socket is for GROUP, in a directory that everyone may enter."""
    group_id()
    config = quiet_config(open_dir / "guarded.conf", f"[Recorder]\nGroup={GROUP}\n[Dump]\nMaxFiles=4\n"
                          "[Trigger switches]\nEvery=1h\nAction=disable cpu-clock\n"
                          "[Trigger asks]\nEvery=1h\nAction=fleet *\n")
    (open_dir / "state").mkdir()
    return recorder("--config", config, "-e", "cpu-clock", "-e", "sched:sched_switch", "-F", "99", "-M", "8M", *NO_LOSS,
                    directory=open_dir / "state", binary=str(open_dir / "flightrecd"))


def test_thousands_of_hostile_messages(guarded):
    d, gid, seconds = guarded, group_id(), SECONDS
    # Fill the ring, so that each dump takes the same amount of memory.
    for p in [start_load("pingpong", "-t", "3", "-c", cpu) for cpu in os.sched_getaffinity(0)]:
        finish_load(p)
    d.dump_by_control()
    before, _ = memory(d.pid, reset=True)
    for _ in range(5):
        d.dump_by_control()
        d.status()
    _, ordinary = memory(d.pid, reset=True)
    hostile = [Child(60010, gid, dribble, d.socket, seconds, 10), Child(60020, gid, crowd, d.socket, seconds, 500),
               Child(60030, gid, never_read, d.socket, seconds, 10)]
    senders = [Child(60000 + i, gid, send_messages, d.socket, i, MESSAGES // SENDERS) for i in range(SENDERS)]
    polite = {"a member of the group": Child(61000, gid, ask_politely, d.socket, seconds),
              "root": Child(0, 0, ask_politely, d.socket, seconds)}
    sent = [c.result() for c in senders]
    took = {who: c.result() for who, c in polite.items()}
    for c in hostile:
        c.result()
    _, attacked = memory(d.pid)
    until("end of all connections", lambda: len(os.listdir(f"/proc/{d.pid}/fd")) < 100)
    until("end of all dumps", lambda: d.status()["dumps"]["queued"] == 0)
    after, _ = memory(d.pid)

    totals = {key: sum(s[key] for s in sent) for key in sent[0]}
    print(f"hostile messages: {totals}")
    print(f"resident memory: {before >> 10} KiB before, {after >> 10} KiB after; at most {ordinary >> 10} KiB while "
          f"dumps were written before, {attacked >> 10} KiB under attack")
    for who, (t, late) in took.items():
        print(f"{who}: {len(t)} calls, median {statistics.median(t) * 1e3:.2f} ms, longest {max(t) * 1e3:.1f} ms; "
              f"of naps {statistics.median(late) * 1e3:.2f} ms, {max(late) * 1e3:.1f} ms too long")
    assert totals["sent"] == MESSAGES and totals["answered"] > MESSAGES / 10
    assert d.running() and d.lost() == {}
    # The memory after the attack is little more than before it. Its peak during the attack is little higher than the peak
    # during ordinary dumps.
    assert after - before < RSS_GROWS_MAX
    assert attacked - max(ordinary, before) < RSS_GROWS_MAX
    for who, (t, late) in took.items():
        assert statistics.median(t) < 0.1 + 10 * statistics.median(late), who
        assert max(t) < 2 + 10 * max(late), f"{who}: a call took longer than the load of the machine explains"
    d.stop()


def as_user(uid, gid):
    def preexec():
        die_with_parent()
        become(uid, gid)
    return preexec


def test_permissions_of_each_verb(guarded, open_dir):
    """root may use all verbs. A member of the group may make dumps, and may use the verbs that only show something. For all
    other users, the message names the group that they need."""
    d, gid = guarded, group_id()
    ctl = [open_dir / "flightrecctl", "--socket", d.socket, "--no-pager"]
    look = (["status"], ["metrics"], ["list"], ["event"], ["triggers"], ["why"], ["dump"], ["test-trigger", "control"])
    change = (["enable", "hung-task"], ["disable", "hung-task"], ["reload"], ["rm", "x"], ["vacuum"],
              ["event", "off", "*"], ["test-trigger", "switches"], ["test-trigger", "asks"], ["stop"])
    for words in look:
        r = run(*ctl, *words, preexec=as_user(NOBODY, gid))
        assert r.code == 0, (words, r)
    for words in change:
        r = run(*ctl, *words, preexec=as_user(NOBODY, gid))
        assert r.code == EXIT["permission"] and "root" in r.err, (words, r)
    for opened in (False, True):  # With the mode 0660 the kernel refuses other users, with 0666 the recorder refuses them
        os.chmod(d.socket, 0o666 if opened else 0o660)
        for words in (*look, *change):
            if words == ["list"]:
                continue  # this verb reads the directory and does not use the socket
            r = run(*ctl, *words, preexec=as_user(NOBODY, NOBODY))
            assert r.code == EXIT["permission"], (opened, words, r)
            assert opened and words in change or f"'{GROUP}'" in r.err, (opened, words, r)
    for sample in d.samples():
        st = sample.stat()
        assert (st.st_mode & 0o777, st.st_uid, st.st_gid) == (0o640, 0, gid), sample
    assert d.running()
    for words in (["disable", "control"], ["enable", "control"], ["reload"], ["vacuum"], ["stop"]):
        r = run(program("flightrecctl"), "--socket", d.socket, *words)
        assert r.code == 0, (words, r)
    assert d.wait() == 0


def hold_and_release(path):
    """Makes a held dump of the fleet, and releases it. Returns the names of the errors of both calls; None: no error."""
    errors, file = [], "perf.data.sample.20260101T000000.000000Z"
    for method, parameters in (("Dump", {"fleet": "x", "hold": True}), ("Uploaded", {"file": None})):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(path)
            parameters = {k: v or file for k, v in parameters.items()}
            s.sendall(json.dumps({"method": f"io.flightrec.Recorder.{method}", "parameters": parameters}).encode() + b"\0")
            data = b""
            while not data.endswith(b"\0"):
                data += s.recv(65536)
        reply = json.loads(data[:-1])
        errors.append(reply.get("error", "").rsplit(".", 1)[-1] or None)
        file = reply["parameters"].get("file", file)
    return errors


def test_members_hold_and_release_dumps(guarded):
    """flightrec-agent is a member of the group, and root is not needed for what it does."""
    d, gid = guarded, group_id()
    os.chmod(d.socket, 0o666)
    assert Child(NOBODY, gid, hold_and_release, str(d.socket)).result() == [None, None]
    assert Child(NOBODY, NOBODY, hold_and_release, str(d.socket)).result() == ["PermissionDenied", "PermissionDenied"]
    assert d.status()["dumps"]["held"] == 0 and len(d.samples()) == 1
    sample, = d.samples()
    assert (sample.stat().st_mode & 0o777, sample.stat().st_gid) == (0o640, gid), "the agent reads the file"


def test_waiting_dumps_of_members_take_half_of_the_queue(guarded, open_dir):
    """The dumps that members of the group have asked for take at most half of the queue. The member who asked, or root, can
    cancel such a dump."""
    d, gid = guarded, group_id()
    ctl = [open_dir / "flightrecctl", "--socket", d.socket, "--no-pager"]

    def member(*words, uid=60001):
        return run(*ctl, *words, preexec=as_user(uid, gid))

    def waiting():
        return {w["id"]: w for w in d.status()["dumps"]["waiting"]}

    took, refused = [], None
    for uid in (60001, 60002, 60003):
        for i in range(16):
            r = member("dump", "--post", f"{59 * 60 - i}s", "--last", f"{uid - 60000}s", "--no-wait", uid=uid)
            took += [(uid, int(r.out))] if r.code == 0 else []
            refused = refused if r.code == 0 else r
    # At most four dumps of each user can wait, and at most eight of all users together.
    assert [uid for uid, _ in took] == 4 * [60001] + 4 * [60002], took
    assert refused.code == EXIT["suppressed"] and "cancel" in refused.err, refused
    assert {(w["uid"], i) for i, w in waiting().items()} == set(took)
    text = member("status").out
    assert f"dump {took[0][1]} of uid 60001 waits until" in text and "59min" in text or "58min" in text, text
    assert f"dump {took[0][1]} of uid 60001 waits until" in d.ctl("list").out

    # Dumps by a signal, by root and by triggers are still made.
    n = len(d.samples())
    d.signal(signal.SIGUSR1)
    until("the signal's dump", lambda: len(d.samples()) == n + 1)
    assert d.dump_by_control().exists()
    for words in (["test-trigger", "control"], ["vacuum"]):
        assert run(program("flightrecctl"), "--socket", d.socket, *words).code == 0, words
    until("end of those dumps", lambda: d.status()["dumps"]["queued"] == len(took))

    mine, other = took[0][1], took[4][1]
    for words, code, text in ((["cancel"], "usage", "numbers of dumps, or --all, but not both"), (["cancel", "x"], "usage", "'x'"),
                              (["cancel", "--all", "1"], "usage", "numbers of dumps, or --all, but not both"), (["cancel", "999999"], "error", "no dump"),
                              (["cancel", other], "permission", f"dump {other} belongs to another user")):
        r = member(*map(str, words))
        assert r.code == EXIT[code] and text in r.err, (words, r)
    r = member("cancel", str(mine))
    assert (r.code, r.out) == (0, f"{mine}\n"), r
    assert f"dump {mine} was canceled by pid" in d.log() and "uid 60001" in d.log()
    # A client that waits for a dump gets the message that the dump was canceled.
    waits = start(*ctl, "dump", "--post", "30min", stdout=-1, stderr=-1, text=True)
    new = until("the dump that waits", lambda: [i for i, w in waiting().items() if w["uid"] == 0])[0]
    assert member("cancel", str(new)).code == EXIT["permission"]
    r = member("cancel", "--all")
    assert r.code == 0 and r.out.split() == [str(i) for uid, i in took[1:4]], r
    r = run(program("flightrecctl"), "--socket", d.socket, "cancel", "--all")
    assert r.code == 0 and {*map(int, r.out.split())} == {new, *(i for _, i in took[4:])}, r
    _, err = waits.communicate(timeout=60)
    assert waits.returncode == EXIT["error"] and "was canceled by" in err
    dumps = d.status()["dumps"]
    assert (dumps["queued"], dumps["waiting"], dumps["canceled"]) == (0, [], 9)
    d.stop()
