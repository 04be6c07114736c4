# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the tests run: a mount namespace of their own, so that tracefs, which perf also mounts on its own, and
full file systems go with the last process; and no child outlives the run."""
import ctypes
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

import harness

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_CHILD_SUBREAPER = 36
TRACEFS = Path("/sys/kernel/tracing")

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def on_term(signum, frame):
    raise KeyboardInterrupt


def pytest_configure(config):
    signal.signal(signal.SIGTERM, on_term)  # so that fixtures clean up
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where it is ignored, programs that are started would ignore it
    call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.geteuid() != 0:
        return
    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    if not (TRACEFS / "events").is_dir():
        try:
            call("mount", b"nodev", str(TRACEFS).encode(), b"tracefs", 0, None)
        except OSError as e:
            config.flightrec_no_tracefs = str(e)


def children(pid):
    """Living children of a process, as the kernel lists them."""
    try:
        text = "".join(p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children"))
    except FileNotFoundError:
        return []
    return [int(x) for x in text.split()]


def kill_children():
    for _ in range(50):
        left = children(os.getpid())
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        if not left:
            return
        time.sleep(0.02)


def pytest_unconfigure(config):
    kill_children()


def missing(config):
    """What every test here needs and is not there, in words; None where all is."""
    if os.geteuid() != 0:
        return "not root: recording the machine is not permitted"
    if not shutil.which("perf"):
        return "no perf: the package linux-perf is missing"
    reason = getattr(config, "flightrec_no_tracefs", None)
    return f"no tracefs: {reason}" if reason else None


@pytest.fixture(autouse=True)
def machine(request):
    """What every test here needs; says what is missing."""
    reason = missing(request.config)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def state_dir(tmp_path):
    """A directory for the recorder's files, with a path that is short enough for a socket in it."""
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.fixture
def open_dir():
    """A directory that everyone may enter (pytest's own are root's alone), with the programs in it."""
    path = Path(tempfile.mkdtemp(prefix="flightrec-open."))
    path.chmod(0o755)
    for program in ("flightrecd", "flightrecctl", "flightrec-merge"):
        shutil.copy2(harness.program(program), path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def recorder(state_dir):
    """recorder("-e", "x", …): a flightrecd that is ready, in the foreground; killed at the end where it still runs."""
    started = []

    def start(*args, directory=state_dir, **kwargs):
        daemon = harness.Daemon(directory, *args, **kwargs)
        started.append(daemon)
        daemon.start()
        return daemon

    yield start
    for daemon in started:
        daemon.kill()
        print(f"--- what flightrecd {' '.join(daemon.args)} said:\n{daemon.log()}")


@pytest.fixture
def tmpfs(tmp_path):
    """tmpfs(size): a small file system of its own, in the mount namespace of the tests."""
    mounted = []

    def mount(size):
        path = tmp_path / f"tmpfs{len(mounted)}"
        path.mkdir()
        call("mount", b"nodev", str(path).encode(), b"tmpfs", 0, f"size={size}".encode())
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        call("umount2", str(path).encode(), 2)  # MNT_DETACH


@pytest.fixture
def memory_group():
    """memory_group(MIB): a control group of so much memory, as the words that run a program in it."""
    made = []

    def make(mib):
        for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = Path(base) / f"frtest-{os.getpid()}"
            try:
                group.mkdir()
                made.append(group)
                (group / limit).write_text(str(mib << 20))
            except OSError:
                continue
            return "sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"
        pytest.skip("no control groups of memory here")

    yield make
    for group in made:
        harness.until("an empty group", lambda: not (group / "cgroup.procs").exists() or not (group / "cgroup.procs").read_text())
        group.rmdir()
