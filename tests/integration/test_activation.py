# SPDX-License-Identifier: GPL-2.0-or-later
"""What a service manager does for the recorder, without one: a socket that is open already, and the merge at the end."""
import os
import socket
import subprocess

from harness import EXIT, die_with_parent, environment, must, program, run, until

FIRST = 3  # SD_LISTEN_FDS_START


def start_with(fd, directory, log, name="control"):
    """flightrecd with FD handed to it under NAME, as systemd would."""

    def prepare():
        os.dup2(fd, FIRST)
        os.set_blocking(FIRST, True)  # as without NonBlocking=
        die_with_parent()

    config = directory.parent / "flightrecd.conf"
    config.write_text(f"[Triggers]\nSocket={directory}/trigger\n")
    # LISTEN_PID is of who execs.
    script = 'LISTEN_PID=$$ exec "$0" "$@"'
    return subprocess.Popen(["sh", "-c", script, program("flightrecd"), "-e", "cpu-clock", "-M", "1M", "-o", directory,
                             "--socket", directory / "other", "--config", config],
                            env=environment(LISTEN_FDS="1", LISTEN_FDNAMES=name), stdin=subprocess.DEVNULL, stderr=log,
                            preexec_fn=prepare, pass_fds=[FIRST])


def test_socket_is_taken_over(state_dir):
    """Who connected before the recorder ran is served, and the socket's file stays when it ends."""
    path = state_dir / "control"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    with open(state_dir / "log", "w") as log:
        early = subprocess.Popen([program("flightrecctl"), "--socket", path, "dump"], stdout=subprocess.PIPE, text=True,
                                 env=environment(), preexec_fn=die_with_parent)
        recorder = start_with(listener.fileno(), state_dir, log)
    out, _ = early.communicate(timeout=180)
    assert early.returncode == 0 and out.startswith(str(state_dir))
    must(program("flightrecctl"), "--socket", path, "stop")
    assert recorder.wait(180) == 0
    assert path.exists() and not (state_dir / "other").exists()


def test_descriptor_of_another_kind(state_dir):
    """A unit that hands over a datagram socket as "control" is told so."""
    wrong = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    wrong.bind(str(state_dir / "control"))
    with open(state_dir / "log", "w") as log:
        recorder = start_with(wrong.fileno(), state_dir, log)
    assert recorder.wait(180) != 0
    assert "not a listening unix stream socket" in (state_dir / "log").read_text()


def test_descriptor_of_another_name(state_dir):
    """What is not "control" is somebody else's; the recorder makes its own socket."""
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(state_dir / "unrelated"))
    other.listen()
    with open(state_dir / "log", "w") as log:
        recorder = start_with(other.fileno(), state_dir, log, name="unrelated")
    until("the socket", (state_dir / "other").exists)
    must(program("flightrecctl"), "--socket", state_dir / "other", "stop")
    assert recorder.wait(180) == 0


def merge(directory, result):
    env = environment(**({"SERVICE_RESULT": result} if result else {}))
    return run(program("flightrec-merge"), "--service", *directory, env=env)


def test_merge_after_a_service(recorder, state_dir):
    """Merged after success; not after a failure, beside another recorder, or without a service."""
    d = recorder("-e", "cpu-clock", "-M", "1M")
    must(program("flightrecctl"), "--socket", d.socket, "dump")
    beside = merge([state_dir], "success")
    assert beside.code == 0 and "another flightrecd records" in beside.err
    must(program("flightrecctl"), "--socket", d.socket, "stop")
    until("the end", lambda: d.process.poll() is not None)
    for result in ("signal", "watchdog", "exit-code"):
        failed = merge([state_dir], result)
        assert failed.code == 0 and "Restart=" in failed.err
    assert not (state_dir / "perf.data").exists()
    assert merge([state_dir], "success").code == 0
    assert (state_dir / "perf.data").exists()
    again = merge([state_dir], "success")
    assert again.code == 0 and again.err == ""
    assert merge([state_dir], None).code == EXIT["usage"]
    assert merge([state_dir / "perf.data"], "success").code == EXIT["usage"]
