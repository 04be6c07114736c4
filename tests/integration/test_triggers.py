# SPDX-License-Identifier: GPL-2.0-or-later
"""Many triggers at once: each has an outcome that its sender sees, and the counts add up."""
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

from harness import EXIT, load, perf_clean, program, sidecar, start, until

SWITCHES = ("-e", "sched:sched_switch", "-M", "8M")


def start_dump(d, *args):
    return start(program("flightrecctl"), "--socket", d.socket, "dump", *args, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, text=True)


def outcomes(processes):
    result = []
    for p in processes:
        out, err = p.communicate(timeout=180)
        result.append((p.returncode, out.strip(), err.strip()))
    return result


def meta(path):
    return json.loads(sidecar(Path(path)).read_text())


def settled(d):
    return until("the end of all dumps", lambda: (s := d.status()["dumps"])["queued"] == 0 and s)


def hold(d):
    """Something to be busy with, so that what comes meanwhile waits: a dump that waits for its time."""
    p = start_dump(d, "--post", "6s", "--reason", "hold")
    until("the dump that waits", lambda: d.status()["dumps"]["waiting_post_trigger"] == 1)
    return p


def test_fifty_at_once(recorder):
    d = recorder(*SWITCHES)
    load("pingpong", "-t", "0.2")
    results = outcomes([start_dump(d, "--reason", f"n{i}") for i in range(50)])
    assert {code for code, _, _ in results} == {0}, results
    paths = {out for _, out, _ in results}
    assert paths == {str(p) for p in d.samples()}, "a file for each answer, and none that nobody asked for"
    dumps = settled(d)
    assert dumps["done"] == len(paths) and dumps["done"] + dumps["joined"] == 50
    reasons = [cause["reason"] for path in paths for cause in meta(path)["causes"]]
    assert sorted(reasons) == sorted(f"n{i}" for i in range(50)), "every cause stands in one file"
    for path in paths:
        assert meta(path)["cause"] == meta(path)["causes"][0]
        perf_clean("report", "-i", path, "--stdio")
        for code, out, _ in results:
            assert code == 0 and Path(out).exists()
    d.stop()


def test_the_same_post_window_is_one_file(recorder):
    d = recorder(*SWITCHES)
    p = hold(d)
    time.sleep(0.3)
    results = outcomes([p] + [start_dump(d, "--post", "6s", "--reason", r) for r in ("two", "three")])
    d.stop()
    assert len({out for _, out, _ in results}) == 1, results
    m = meta(results[0][1])
    assert [c["reason"] for c in m["causes"]] in (["hold", "two", "three"], ["hold", "three", "two"])
    last = max(c["monotonic_ns"] for c in m["causes"])
    assert m["asked"]["to_ns"] == last + 6 * 10**9, "the window of the last one is in it, too"


def test_a_full_queue_is_told(recorder):
    """Sixteen different dumps wait; the next is suppressed, with the reason, and so is a signal, in the log."""
    d = recorder(*SWITCHES)
    waiting = [start_dump(d, "--post", f"{10000 + i}ms") for i in range(16)]
    until("sixteen that wait", lambda: d.status()["dumps"]["waiting_post_trigger"] == 16)
    r = d.ctl("dump")
    assert r.code == EXIT["suppressed"] and "too many" in r.err, r
    d.signal(signal.SIGUSR1)
    until("word of the signal", lambda: "signal: SIGUSR1" in d.log() and ": suppressed, too many dumps" in d.log())
    results = outcomes(waiting)
    assert [code for code, _, _ in results] == [0] * 16, results
    assert len({out for _, out, _ in results}) == 16
    dumps = settled(d)
    d.stop()
    assert (dumps["done"], dumps["suppressed"], dumps["joined"], dumps["failed"]) == (16, 2, 0, 0), dumps


def test_signals_and_calls_together(recorder):
    d = recorder(*SWITCHES)
    load("pingpong", "-t", "0.2")
    processes = []
    for _ in range(10):
        processes.append(start_dump(d))
        d.signal(signal.SIGUSR1)
        time.sleep(0.02)
    results = outcomes(processes)
    assert {code for code, _, _ in results} == {0}, results
    until("all files", lambda: d.status()["dumps"]["queued"] == 0)
    causes = [c["trigger"] for p in d.samples() for c in meta(p)["causes"]]
    d.stop()
    assert causes.count("control") == 10
    assert 1 <= causes.count("signal") <= 10, "the kernel makes one of signals that nobody has taken yet"


def test_clients_that_vanish(recorder):
    """Their dumps are made; nobody else is held up."""
    d = recorder(*SWITCHES)
    for i in range(8):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.connect(str(d.socket))
        call = {"method": "io.flightrec.Recorder.Dump", "parameters": {"post_ns": 300000000 + i}}
        s.sendall(json.dumps(call).encode() + b"\0")
        # It is taken, or already written.
        until("its dump", lambda: (dumps := d.status()["dumps"])["queued"] + dumps["done"] > i)
        s.close()
    assert d.dump_by_control().exists()
    until("their files", lambda: len(d.samples()) == 9)
    assert d.status()["dumps"]["done"] == 9
    d.stop()


def test_the_interface_describes_what_is_sent(recorder):
    """Members of the replies, against the description that the daemon itself gives."""
    d = recorder(*SWITCHES)
    load("pingpong", "-t", "0.2")
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
    d.stop()
    for method, reply in replies.items():
        described = text.split(f"method {method}(", 1)[1].split("->", 1)[1].split("\n\n", 1)[0]
        for member in reply:
            assert f"{member}: " in described, (method, member)
    for name, objects in (("Trigger", replies["Triggers"]["triggers"]), ("Decision", replies["Decisions"]["decisions"])):
        described = text.split(f"type {name} (", 1)[1].split("\n)\n", 1)[0]
        for member in {m for o in objects for m in o}:
            assert f"  {member}: " in described, (name, member)
