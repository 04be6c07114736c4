# SPDX-License-Identifier: GPL-2.0-or-later
"""Does without systemd what systemd does with the recorder: systemd passes an open socket to it, and runs a merge after it has
stopped."""
import os
import socket
import subprocess

import pytest

from harness import EXIT, die_with_parent, environment, must, program, run, start, triggers_config, until

FIRST = 3  # the first descriptor that systemd passes (SD_LISTEN_FDS_START)


@pytest.fixture
def activated(state_dir):
    """activated(KIND, NAME) binds a socket to state/passed, and starts a flightrecd. flightrecd gets the socket with the name
    NAME, in the same way as from systemd."""
    def make(kind, name, before=lambda: None):
        passed = socket.socket(socket.AF_UNIX, kind)
        passed.bind(str(state_dir / "passed"))
        if kind == socket.SOCK_STREAM:
            passed.listen()
        before()

        def prepare():
            os.dup2(passed.fileno(), FIRST)
            os.set_blocking(FIRST, True)  # as systemd does if the unit has no NonBlocking=
            die_with_parent()

        config = state_dir.parent / "flightrecd.conf"
        config.write_text(triggers_config(f"{state_dir}/trigger"))
        script = 'LISTEN_PID=$$ exec "$0" "$@"'  # LISTEN_PID must be the pid of the process that calls exec()
        with open(state_dir / "log", "w") as log:
            return subprocess.Popen(["sh", "-c", script, program("flightrecd"), "-e", "cpu-clock", "-M", "1M", "-o", state_dir,
                                     "--socket", state_dir / "own", "--config", config],
                                    env=environment(LISTEN_FDS="1", LISTEN_FDNAMES=name), stdin=subprocess.DEVNULL, stderr=log,
                                    preexec_fn=prepare, pass_fds=[FIRST])
    return make


def stop(recorder, path):
    must(program("flightrecctl"), "--socket", path, "stop")
    assert recorder.wait(180) == 0


def test_a_passed_socket_serves_clients_that_connected_before(activated, state_dir):
    path, early = state_dir / "passed", []
    recorder = activated(socket.SOCK_STREAM, "control", lambda: early.append(
        start(program("flightrecctl"), "--socket", path, "dump", stdout=subprocess.PIPE, text=True)))
    out, _ = early[0].communicate(timeout=180)
    assert early[0].returncode == 0 and out.startswith(str(state_dir))
    stop(recorder, path)
    assert path.exists() and not (state_dir / "own").exists()


def test_a_datagram_socket_named_control_is_refused(activated, state_dir):
    assert activated(socket.SOCK_DGRAM, "control").wait(180) != 0
    assert "not a listening unix stream socket" in (state_dir / "log").read_text()


def test_a_passed_socket_of_another_name_is_not_used(activated, state_dir):
    recorder = activated(socket.SOCK_STREAM, "unrelated")
    until("the recorder's own socket", (state_dir / "own").exists)
    stop(recorder, state_dir / "own")


def test_merge_after_a_service(recorder, state_dir):
    """`flightrec-merge --service` merges after a success. It does nothing after a failure, while a recorder runs, or if no
    service manager has started it."""
    def merge(path, result):
        return run(program("flightrec-merge"), "--service", path, env=environment(**({"SERVICE_RESULT": result} if result else {})))

    d = recorder("-e", "cpu-clock", "-M", "1M")
    d.dump_by_control()
    beside = merge(state_dir, "success")
    assert beside.code == 0 and "another flightrecd records" in beside.err
    assert d.ctl("stop").code == 0 and d.wait() == 0
    for result in ("signal", "watchdog", "exit-code"):
        failed = merge(state_dir, result)
        assert failed.code == 0 and "Restart=" in failed.err
    assert not (state_dir / "perf.data").exists()
    assert merge(state_dir, "success").code == 0 and (state_dir / "perf.data").exists()
    again = merge(state_dir, "success")
    assert again.code == 0 and again.err == ""
    assert merge(state_dir, None).code == EXIT["usage"]
    assert merge(state_dir / "perf.data", "success").code == EXIT["usage"]
