# SPDX-License-Identifier: GPL-2.0-or-later
"""A start can take long, for example on a machine with 200,000 processes. During the start, the recorder handles signals and
answers calls on the control socket. Calls that need the recording wait for the end of the start."""
import json
import signal
import socket

import pytest

from harness import BIN, FULL, Daemon, finish_dump, until


@pytest.fixture
def launch(state_dir):
    """launch(…) starts a recorder whose first scan of /proc waits until the file .lock of the returned Daemon is removed."""
    lock, started = state_dir.parent / "lock", []
    preload = {"LD_PRELOAD": str(BIN / "frtest-slowproc.so"), "FRTEST_HOLD": str(lock)}

    def make(*args, **kwargs):
        lock.touch()
        d = Daemon(state_dir, *args, env=preload, **kwargs).launch()
        d.lock = lock
        started.append(d)
        until("control socket", lambda: d.socket.exists() or not d.running())
        until("scan of /proc", lambda: "processes" in d.status().get("doing", ""))
        return d

    yield make
    for d in started:
        d.lock.unlink(missing_ok=True)
        d.kill()
        print(d.log())


@pytest.fixture
def starting(launch):
    return launch("-e", "cpu-clock", "-M", "4M")


@pytest.mark.parametrize("how", ["TERM", "INT", "stop"])
def test_a_start_can_be_stopped(starting, how):
    assert starting.status()["state"] == "starting"
    if how == "stop":
        assert starting.ctl("stop").code == 0
    else:
        starting.signal(getattr(signal, f"SIG{how}"))
    assert starting.wait(60) == 0
    assert not starting.socket.exists() and "stopped before recording began" in starting.log()


def test_calls_and_signals_during_a_start_are_handled_after_it(starting):
    out = starting.ctl("status").out
    assert "starting" in out and "Doing" in out and "does not record yet" in out, out
    dump = starting.start_ctl("dump")
    starting.signal(signal.SIGUSR1)
    starting.signal(signal.SIGHUP)
    starting.lock.unlink()
    starting.until_ready()
    assert starting.manager.said("STATUS=starting: reads the processes")
    assert starting.status()["state"] == "recording"
    assert finish_dump(dump).is_file()
    starting.until_logged("SIGUSR1", "configuration reloaded")
    starting.stop()


def test_calls_during_a_start_that_fails_fail(launch):
    d = launch("-a", "-e", "cpu-clock", "-M", "4M", command=["/nonexistent"])
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(d.socket))
        s.sendall(json.dumps({"method": "io.flightrec.Recorder.Dump", "parameters": {"wait": False}}).encode() + b"\0")
        d.status()  # when the server has answered this call, it has read the earlier call of Dump
        d.lock.unlink()
        reply = json.loads(s.makefile("rb").read().rstrip(b"\0"))
    assert d.wait(60) == 1, d.log()
    what = reply["parameters"].get("what", "")
    assert "error" in reply and "flightrecd did not start: cannot run /nonexistent" in what, reply
    assert "give its path" in reply["parameters"]["hint"]


@pytest.mark.skipif(not FULL, reason="takes 10 s: ./dev test --full runs it")
def test_recording_begins_before_the_end_of_a_long_scan(starting):
    late = "still being read"
    starting.until_ready()
    assert any(late in n for n in starting.status()["notices"])
    starting.lock.unlink()
    until("end of the scan", lambda: not any(late in n for n in starting.status()["notices"]))
    starting.dump_by_control()
    starting.stop()
