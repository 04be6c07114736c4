# SPDX-License-Identifier: GPL-2.0-or-later
"""A start that takes its time, as on a machine with 200,000 processes: signals are answered and the control socket is there
meanwhile, and what cannot be done yet is done after it."""
import json
import os
import signal
import socket
import subprocess

import pytest

from harness import BIN, Daemon, NotifySocket, environment, program, start, until


class Starting(Daemon):
    """One whose first scan of /proc is held up until go(), and that is not waited for."""

    def __init__(self, state_dir, *args, **kwargs):
        super().__init__(state_dir, *args, **kwargs)
        self.hold = state_dir.parent / "hold"
        self.hold.touch()
        self.notify = NotifySocket()
        preload = {"LD_PRELOAD": str(BIN / "frtest-slowproc.so"), "FRTEST_HOLD": str(self.hold)}
        with open(self.log_path, "wb") as log:
            self.process = start(*self.argv(), stdout=log, stderr=log, env=environment(NOTIFY_SOCKET=self.notify.address, **preload))
        until("control socket", lambda: self.socket.exists() or not self.running())
        until("scan of /proc", lambda: "processes" in self.status().get("doing", ""))

    def go(self):
        self.hold.unlink()
        assert self.notify.wait("READY=1", lambda: "READY=1" in self.notify.lines, self.running, 120)


@pytest.fixture
def starting(state_dir):
    d = Starting(state_dir, "-e", "cpu-clock", "-M", "4M")
    yield d
    d.hold.unlink(missing_ok=True)
    d.kill()
    d.notify.close()
    print(d.log())


@pytest.mark.parametrize("how", ["TERM", "INT", "stop"])
def test_an_end_is_answered_during_a_start(starting, how):
    assert starting.status()["state"] == "starting"
    if how == "stop":
        assert starting.ctl("stop").code == 0
    else:
        starting.signal(getattr(signal, f"SIG{how}"))
    assert starting.wait(60) == 0
    assert not starting.socket.exists() and "stopped before it recorded" in starting.log()


def test_what_is_asked_during_a_start_is_done_after_it(starting):
    out = starting.ctl("status").out
    assert "starting" in out and "Doing" in out and "does not record yet" in out, out
    dump = start(program("flightrecctl"), "--socket", starting.socket, "dump", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 text=True)
    starting.signal(signal.SIGUSR1)
    starting.signal(signal.SIGHUP)
    starting.go()
    assert any(line.startswith("STATUS=starting: reads the processes") for line in starting.notify.lines)
    assert starting.status()["state"] == "recording"
    out, err = dump.communicate(timeout=120)
    assert dump.returncode == 0 and os.path.isfile(out.strip()), (out, err)
    until("dump of the signal", lambda: "SIGUSR1" in starting.log())
    assert "configuration reloaded" in starting.log()
    starting.stop()


def test_what_is_asked_during_a_start_that_fails_fails(state_dir):
    d = Starting(state_dir, "-a", "-e", "cpu-clock", "-M", "4M", command=["/nonexistent"])
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(d.socket))
        s.sendall(json.dumps({"method": "io.flightrec.Recorder.Dump", "parameters": {"wait": False}}).encode() + b"\0")
        d.status()  # answered after the call before it was taken
        d.hold.unlink()
        reply = json.loads(s.makefile("rb").read().rstrip(b"\0"))
    assert d.wait(60) == 1, d.log()
    d.notify.close()
    what = reply["parameters"].get("what", "")
    assert "error" in reply and "flightrecd did not start: cannot run /nonexistent" in what, reply
    assert "give its path" in reply["parameters"]["hint"]


@pytest.mark.skipif(not os.environ.get("FLIGHTREC_FULL"), reason="10 s, with FLIGHTREC_FULL=1")
def test_a_scan_that_does_not_end_keeps_nothing_from_being_recorded(starting):
    late = "still being read"
    assert starting.notify.wait("READY=1", lambda: "READY=1" in starting.notify.lines, starting.running, 120)
    assert any(late in n for n in starting.status()["notices"])
    starting.hold.unlink()
    until("end of the scan", lambda: not any(late in n for n in starting.status()["notices"]))
    starting.dump_by_control()
    starting.stop()
