# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures. The tests run in their own mount namespace. The kernel unmounts all that the tests or perf have mounted there
(tracefs, small file systems) when the last process of the namespace ends. At the end of the run, all child processes are
killed."""
import contextlib
import ctypes
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

import fleet
import harness
from manager import ServiceManager

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_CHILD_SUBREAPER = 36
TRACEFS = Path("/sys/kernel/tracing")
NOBODY = 65534

libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    """Calls the function NAME of libc. Raises OSError if it returns a negative number."""
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def mount(kind, path, options=b""):
    call("mount", b"none", str(path).encode(), kind.encode(), 0, options)


def unmount(path):
    call("umount2", str(path).encode(), MNT_DETACH)


def on_term(signum, frame):
    signal.alarm(2)  # SIGALRM then calls on_term() again, because Python drops the exception if a destructor runs now
    raise KeyboardInterrupt


def pytest_keyboard_interrupt():
    signal.alarm(0)


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: judges or disturbs the whole machine, so it runs before all others, while nothing else runs")
    config.addinivalue_line("markers", "sanitized: needs builds with sanitizers, so it runs after them")
    config.addinivalue_line("markers", "waits: takes nearly no CPU and does not load the machine, so it runs beside others")
    config.addinivalue_line("markers", "long: takes long, so it runs beside the virtual machines")
    signal.signal(signal.SIGTERM, on_term)  # so that fixtures clean up also at a SIGTERM
    signal.signal(signal.SIGALRM, on_term)
    # If SIGINT were ignored, the programs that the tests start would ignore it, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.geteuid() != 0:
        return
    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    if not (TRACEFS / "events").is_dir():
        try:
            mount("tracefs", TRACEFS)
        except OSError as e:
            config.flightrec_no_tracefs = str(e)


def pytest_unconfigure(config):
    for _ in range(50):
        try:
            children = "".join(p.read_text() for p in Path("/proc/self/task").glob("*/children")).split()
        except FileNotFoundError:
            children = []
        for pid in map(int, children):
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        if not children:
            return
        time.sleep(0.02)


def missing(config):
    """Returns a text about something that all tests need and that this machine lacks, or None."""
    if os.geteuid() != 0:
        return "not root: recording the machine is not permitted"
    if not shutil.which("perf"):
        return "no perf: the package linux-perf is missing"
    reason = getattr(config, "flightrec_no_tracefs", None)
    return f"no tracefs: {reason}" if reason else None


@pytest.fixture(autouse=True, scope="session")
def machine(request):
    """Skips all tests if this machine lacks something that all tests need."""
    reason = missing(request.config)
    if reason:
        pytest.skip(reason)


@pytest.fixture
def state_dir(tmp_path):
    """A directory for the recorder's files. Its path is short, because the path of a socket in the directory has at most 107
    bytes."""
    path = tmp_path / "state"
    path.mkdir()
    return path


@pytest.fixture
def open_dir():
    """A directory with copies of the programs, which all users may enter. (Only root may enter the directories of pytest.)"""
    path = Path(tempfile.mkdtemp(prefix="flightrec-open."))
    path.chmod(0o755)
    for program in ("flightrecd", "flightrecctl", "flightrec-merge", "flightrec-report"):
        shutil.copy2(harness.program(program), path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def nobodys_dir(open_dir):
    """A directory in open_dir that belongs to the user nobody."""
    path = open_dir / "state"
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    return path


def as_user(*caps, uid=NOBODY):
    """Returns words to put before a command. They run the command as the user UID with only the capabilities CAPS."""
    sets = ",".join(["-all", *(f"+{c}" for c in caps)])
    words = ("setpriv", f"--reuid={uid}", f"--regid={NOBODY}", "--clear-groups", f"--bounding-set={sets}",
             *((f"--inh-caps={sets}", f"--ambient-caps={sets}") if caps else ("--no-new-privs",)))
    if harness.run(*words, "true").code != 0:
        pytest.skip("setpriv cannot hand on capabilities here")
    return words


def end_recorder(daemon):
    try:
        if daemon.running():
            daemon.stop()
    finally:
        daemon.kill()
        print(f"--- what flightrecd {' '.join(daemon.args)} said:\n{daemon.log()}")


@pytest.fixture
def recorder(state_dir):
    """recorder("-e", "x", …) starts a flightrecd and waits until it is ready. If flightrecd still runs at the end of the test,
    it gets a SIGTERM and must end with exit code 0.

    With the parameter manager=service_manager, an instance adopts the ring of the previous instance."""
    with contextlib.ExitStack() as started:
        def start(*args, directory=state_dir, **kwargs):
            daemon = harness.Daemon(directory, *args, **kwargs)
            started.callback(end_recorder, daemon)
            return daemon.start()

        yield start


@pytest.fixture
def make_fleet(tmp_path):
    """make_fleet(…) starts a broker and a store, and sets up the streams. At the end of the test all parts of the fleet are
    ended, and what they said is printed."""
    reason = fleet.missing()
    if reason:
        pytest.skip(reason)
    with contextlib.ExitStack() as made:
        def make(**kwargs):
            f = fleet.Fleet(tmp_path, **kwargs)
            made.callback(f.close)
            return f.start()

        yield make


@pytest.fixture
def service_manager():
    """A service manager that several instances of one service share."""
    manager = ServiceManager()
    yield manager
    manager.close()


@pytest.fixture
def tmpfs(tmp_path):
    """tmpfs(size) mounts a small file system in the mount namespace of the tests. Returns its path."""
    mounted = []

    def make(size):
        path = tmp_path / f"tmpfs{len(mounted)}"
        path.mkdir()
        mount("tmpfs", path, f"size={size}".encode())
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        unmount(path)


def remove_group(group):
    """Waits until the last process of a control group has ended, and removes the group."""
    harness.until("empty control group", lambda: not group.exists() or not (group / "cgroup.procs").read_text())
    if group.exists():
        group.rmdir()


@pytest.fixture
def memory_group():
    """memory_group(MIB) makes a control group with a limit of MIB mebibytes of memory. Returns words to put before a command.
    They run the command in the group."""
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
        remove_group(group)


def hierarchy(of_perf):
    """Returns where cgroup2 is mounted. If the parameter of_perf is true, the result can also be the mount point of the
    perf_event controller of version 1, because perf events can record control groups of both versions."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, tail = line.split(" - ")
        kind, _, options = tail.split(" ", 2)
        if kind == "cgroup2" or of_perf and kind == "cgroup" and "perf_event" in options.split(","):
            return Path(fields.split()[4])
    pytest.skip("no cgroup2 is mounted" + (", and no perf_event controller" if of_perf else ""))


def make_group(of_perf):
    path = hierarchy(of_perf) / f"flightrec-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as e:
        pytest.skip(f"no control group can be made: {e}")
    return path


@pytest.fixture
def group():
    """A control group that perf events can record."""
    path = make_group(of_perf=True)
    yield path
    remove_group(path)


@pytest.fixture
def group2():
    """A control group of version 2."""
    path = make_group(of_perf=False)
    yield path
    remove_group(path)
