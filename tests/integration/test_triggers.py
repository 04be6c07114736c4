# SPDX-License-Identifier: GPL-2.0-or-later
"""Many clients ask for dumps at the same time. Each client gets the outcome of its dump, and the counts are right."""
import json
import signal
import socket
import time

import pytest

from harness import EXIT, load, meta, perf_clean, start_load, until

pytestmark = pytest.mark.waits
SWITCHES = ("-e", "sched:sched_switch", "-M", "8M")


def files(processes):
    """Waits for all processes, which must succeed. Returns the paths that they print."""
    results = [(p.communicate(timeout=180), p.returncode) for p in processes]
    assert {code for _, code in results} == {0}, results
    return [out.strip() for (out, _), _ in results]


def settled(d):
    return until("the end of all dumps", lambda: (s := d.status()["dumps"])["queued"] == 0 and s)


def test_fifty_dumps_at_once(recorder):
    d = recorder(*SWITCHES)
    load("pingpong", "-t", "0.2")
    paths = set(files([d.start_ctl("dump", "--reason", f"n{i}") for i in range(50)]))
    assert paths == {str(p) for p in d.samples()}, "a file for each answer, and none that nobody asked for"
    dumps = settled(d)
    assert dumps["done"] == len(paths) and dumps["done"] + dumps["joined"] == 50
    reasons = [cause["reason"] for path in paths for cause in meta(path)["causes"]]
    assert sorted(reasons) == sorted(f"n{i}" for i in range(50)), "every cause is in one file"
    for path in paths:
        assert meta(path)["cause"] == meta(path)["causes"][0]
        perf_clean("report", "-i", path, "--stdio")


def test_the_same_post_window_is_one_file(recorder):
    d = recorder(*SWITCHES)
    first = d.start_ctl("dump", "--post", "6s", "--reason", "one")
    until("the dump that waits", lambda: d.status()["dumps"]["waiting_post_trigger"] == 1)
    time.sleep(0.3)
    path, = set(files([first] + [d.start_ctl("dump", "--post", "6s", "--reason", r) for r in ("two", "three")]))
    m = meta(path)
    assert [c["reason"] for c in m["causes"]] in (["one", "two", "three"], ["one", "three", "two"])
    last = max(c["monotonic_ns"] for c in m["causes"])
    assert m["asked"]["to_ns"] == last + 6 * 10**9, "the file has the window of the last one, too"


def test_a_full_queue_is_reported(recorder):
    """While sixteen different dumps wait, the next dump is suppressed. If a client asked for it, the client gets the reason. If
    a signal asked for it, the reason is in the log."""
    d = recorder(*SWITCHES)
    waiting = [d.start_ctl("dump", "--post", f"{10000 + i}ms") for i in range(16)]
    until("sixteen waiting dumps", lambda: d.status()["dumps"]["waiting_post_trigger"] == 16)
    r = d.ctl("dump")
    assert r.code == EXIT["suppressed"] and "too many" in r.err, r
    d.signal(signal.SIGUSR1)
    d.until_logged("signal: SIGUSR1", ": suppressed, too many dumps")
    assert len(set(files(waiting))) == 16
    dumps = settled(d)
    assert (dumps["done"], dumps["suppressed"], dumps["joined"], dumps["failed"]) == (16, 2, 0, 0), dumps


def test_signals_and_calls_together(recorder):
    d = recorder(*SWITCHES)
    load("pingpong", "-t", "0.2")
    processes = []
    for _ in range(10):
        processes.append(d.start_ctl("dump"))
        d.signal(signal.SIGUSR1)
        time.sleep(0.02)
    files(processes)
    settled(d)
    causes = [c["trigger"] for p in d.samples() for c in meta(p)["causes"]]
    assert causes.count("control") == 10
    assert 1 <= causes.count("signal") <= 10, "the kernel merges signals that are pending"


def test_the_dumps_of_clients_that_vanish_are_made(recorder):
    d = recorder(*SWITCHES)
    for i in range(8):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.connect(str(d.socket))
        call = {"method": "io.flightrec.Recorder.Dump", "parameters": {"post_ns": 300000000 + i}}
        s.sendall(json.dumps(call).encode() + b"\0")
        until("its dump", lambda: (dumps := d.status()["dumps"])["queued"] + dumps["done"] > i)
        s.close()
    assert d.dump_by_control().exists()
    until("their files", lambda: len(d.samples()) == 9)
    assert d.status()["dumps"]["done"] == 9


def test_the_interface_describes_every_member_of_the_replies(recorder):
    """Compares the replies of the daemon with the description of the interface, which the daemon also returns."""
    d = recorder(*SWITCHES)
    code = start_load("jit", "-t", "1")  # makes run-time code, which is the member "jit" of the reply to Dump
    load("pingpong", "-t", "0.5")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.connect(str(d.socket))

        def call(method, **parameters):
            s.sendall(json.dumps({"method": method, "parameters": parameters}).encode() + b"\0")
            data = b""
            while not data.endswith(b"\0"):
                data += s.recv(65536)
            reply = json.loads(data[:-1])
            assert "error" not in reply, reply
            return reply["parameters"]

        text = call("org.varlink.service.GetInterfaceDescription", interface="io.flightrec.Recorder")["description"]
        own = "io.flightrec.Recorder."
        replies = {"Dump": call(own + "Dump"), "List": call(own + "List"), "Vacuum": call(own + "Vacuum", max_files=1),
                   "Status": call(own + "Status"), "Remove": call(own + "Remove", files=[]),
                   "Triggers": call(own + "Triggers"), "Decisions": call(own + "Decisions"),
                   "TestTrigger": call(own + "TestTrigger", name="control")}
    assert code.wait(60) == 77 or "jit" in replies["Dump"], replies["Dump"]  # 77: no machine code for this processor
    for method, reply in replies.items():
        described = text.split(f"method {method}(", 1)[1].split("->", 1)[1].split("\n\n", 1)[0]
        for member in reply:
            assert f"{member}: " in described, (method, member)
    for name, objects in (("Trigger", replies["Triggers"]["triggers"]), ("Decision", replies["Decisions"]["decisions"])):
        described = text.split(f"type {name} (", 1)[1].split("\n)\n", 1)[0]
        for member in {m for o in objects for m in o}:
            assert f"  {member}: " in described, (name, member)
