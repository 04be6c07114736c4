# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrec-report explain: for each known cause of trouble (frtest-culprit), the first finding has the right rule, the right
process or thread, and the right function. For a quiet machine there is no finding.

Other loads of the machine are causes, too, so ./dev test runs these tests while nothing else runs. If other processes used more
CPU time with the culprit than before it, by /proc/stat, the turn is repeated."""
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from harness import FULL, Daemon, cpu_seconds, end, finish_load, must, program, start, until

pytestmark = pytest.mark.alone
TURNS = 10 if FULL else 1
TRIES = 4  # of one turn
BEFORE_S, INCIDENT_S = 4, 4
OTHERS_MAX = 0.15  # of one CPU
LINES_MAX = 30
SLOW_BYTES, MEMORY_BYTES, QUOTA_US = 1 << 20, 32 << 20, 20000
HZ = os.sysconf("SC_CLK_TCK")

# The rule, and a text of the finding with the function, the thread or the library that is the cause.
CULPRITS = {"hog": ("cpu-hog", "culprit_compute"), "library": ("hot-function", "frtest-culprit-library.so"),
            "lock": ("lock", "culprit_hold"), "disk": ("disk", "culprit_write"), "memory": ("memory-reclaim", "cgroup"),
            "quota": ("cpu-throttling", "quota"), "forks": ("fork-storm", "new processes"),
            "faults": ("page-fault-storm", "culprit_touch"), "timers": ("timer-storm", "timers")}
# Causes that programs less often have, or with a rule that says less.
OTHERS = {"spin": ("cpu-hog", "culprit_spin"), "fifo": ("cpu-hog", "culprit_compute"), "child": ("cpu-hog", "culprit-child"),
          "contention": ("lock", "culprit_contend"), "cold": ("disk", "culprit_cold"), "calls": ("cpu-hog", "system calls"),
          "packets": ("network-load", "network"), "restarts": ("fork-storm", "new processes"), "files": ("cpu-hog", "culprit_walk"),
          "pipe": ("slow-reader", "culprit_send"), "peer": ("slow-reader", "culprit_send"), "stuck": ("lock", "run_stuck")}
QUICK = ("contention", "cold", "calls", "pipe")  # of these, without --full
CHILDREN = ("child", "pipe")  # the cause is a child of the program
ALL_THREADS = ("contention", "spin")  # each thread of the process is the cause
WRITERS = ("peer",)  # the kernel wakes the writer to a socket, so only the writer is known


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A recorder with the default events. The cases use it one after the other."""
    directory = tmp_path_factory.mktemp("explain") / "d"
    directory.mkdir()
    d = Daemon(directory, "-g")
    d.start()
    if not any(e["name"].startswith("flightrec:offcpu") and e.get("state", "on") != "failed" for e in d.status()["events"]):
        d.stop()
        pytest.skip("the event offcpu is not possible here")
    yield d
    d.stop()
    d.kill()


def block_device(path):
    """Returns "MAJOR:MINOR" of the disk of PATH, whose partitions cannot have a limit of their own; or None."""
    number = os.stat(path).st_dev
    entry = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not entry.exists():
        return None
    disk = entry.resolve()
    disk = disk.parent if (disk / "partition").exists() else disk
    return (disk / "dev").read_text().strip()


def limits(kind, path):
    """Returns the files of a control group that slow the culprit down, for version 1 (with its controller) and version 2."""
    if kind == "quota":
        return ("cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(QUOTA_US)}), {"cpu.max": f"{QUOTA_US} 100000"}
    if kind == "memory":
        return ("memory", {"memory.limit_in_bytes": str(MEMORY_BYTES)}), {"memory.max": str(MEMORY_BYTES)}
    device = block_device(path)
    if not device:
        pytest.skip(f"{path} is not on a block device, so it cannot be made slow")
    way = "read" if kind == "cold" else "write"
    return (("blkio", {f"blkio.throttle.{way}_bps_device": f"{device} {SLOW_BYTES}"}), {"io.max": f"{device} {way[0]}bps={SLOW_BYTES}"})


@contextlib.contextmanager
def limited(kind, path):
    """Makes the control group that KIND needs. Yields its file cgroup.procs, or None."""
    if kind not in ("quota", "memory", "disk", "cold"):
        yield None
        return
    (controller, v1), v2 = limits(kind, path)
    tried = []
    for base, files in ((Path("/sys/fs/cgroup") / controller, v1), (Path("/sys/fs/cgroup"), v2)):
        group = base / f"frtest-explain-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as e:
            tried.append(str(e))
            continue
        try:
            for name, value in files.items():
                (group / name).write_text(value)
        except OSError as e:
            tried.append(str(e))
            group.rmdir()
            continue
        try:
            yield group / "cgroup.procs"
        finally:
            until("an empty control group", lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()
        return
    pytest.skip(f"no control group with a limit can be made here: {'; '.join(tried)}")


def busy_s():
    """Returns the CPU time that the machine has used, in seconds."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8])
    return (user + nice + system + irq + softirq) / HZ


def kernel_threads_s():
    """Returns the CPU time of the threads of the kernel, in seconds. The processes with a parent 2 are threads of the kernel."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = stat.read_text().rsplit(")", 1)[1].split()  # from the state on
            ticks += int(fields[11]) + int(fields[12]) if fields[1] == "2" else 0
    return ticks / HZ


def own_s(daemon):
    """Returns the CPU time of the programs of this test, of the recorder, and of the kernel, which frees memory and writes pages for
    the culprit, in seconds."""
    t = os.times()
    return t.children_user + t.children_system + cpu_seconds(daemon.pid) + kernel_threads_s()


def incident(daemon, act):
    """Waits for BEFORE_S, and runs ACT. Returns a dump of both, what ACT returned, and how much more CPU time than before other
    processes used, in CPUs."""
    begin, begin_s = time.monotonic(), busy_s() - own_s(daemon)
    time.sleep(BEFORE_S)
    middle, middle_s = time.monotonic(), busy_s() - own_s(daemon)
    result = act()
    last, last_s = time.monotonic(), busy_s() - own_s(daemon)
    dump = daemon.dump_by_control(f"--from=-{last - begin:.3f}s")
    return dump, result, (last_s - middle_s) / (last - middle) - (middle_s - begin_s) / (middle - begin)


def start_culprit(kind, path, procs=None, seconds=INCIDENT_S):
    join = ("sh", "-c", f'echo $$ > {procs}; exec "$@"', "sh") if procs else ()
    return start(*join, program("frtest-culprit"), "-t", seconds, "-f", path, kind, stdout=subprocess.PIPE, text=True)


def explain(dump, *args):
    return must(program("flightrec-report"), "explain", dump, f"--incident={INCIDENT_S}s", *args).out


def turn(daemon, act):
    """Returns the explanation as text and as JSON, and what ACT returned."""
    tries = []
    for _ in range(TRIES):
        dump, result, others = incident(daemon, act)
        if others <= OTHERS_MAX:  # a steady load of others is normal, and no cause
            return explain(dump), json.loads(explain(dump, "--json")), result
        tries.append(round(others, 2))
    pytest.fail(f"this machine is not quiet: other processes used more CPU time than before, {tries} CPUs")


def turn_of(daemon, kind, path):
    """The same for a culprit. The result of ACT is what the culprit says."""
    with limited(kind, path.parent) as procs:
        return turn(daemon, lambda: finish_load(start_culprit(kind, path, procs)))


def stay_small(text):
    assert len(text.splitlines()) <= LINES_MAX, text


def check_first(daemon, tmp_path, kind, rule, cause, turns=1):
    for _ in range(turns):
        text, found, truth = turn_of(daemon, kind, tmp_path / "data")
        stay_small(text)
        assert found["findings"], f"nothing was found; the truth is {truth}\n{text}"
        first = found["findings"][0]
        assert (first["rule"], first["pid"]) == (rule, truth["tid"] if kind in CHILDREN else truth["pid"]), (truth, text)
        assert kind in ALL_THREADS + WRITERS or first["tid"] == truth["tid"], (truth, text)
        assert cause in json.dumps(first), (truth, text)
        assert first["evidence"], text


@pytest.mark.parametrize("kind", CULPRITS)
def test_the_culprit_is_named_first(daemon, tmp_path, kind):
    check_first(daemon, tmp_path, kind, *CULPRITS[kind], turns=TURNS)


@pytest.mark.parametrize("kind", OTHERS if FULL else QUICK)
def test_another_cause(daemon, tmp_path, kind):
    if kind == "files":
        finish_load(start_culprit(kind, tmp_path / "data"))  # now the directories are in memory, and no disk is the cause
    check_first(daemon, tmp_path, kind, *OTHERS[kind])


def test_a_quiet_machine_has_no_finding(daemon, tmp_path):
    for _ in range(TURNS):
        text, found, _ = turn_of(daemon, "quiet", tmp_path / "data")
        assert found["findings"] == [], text
        assert "othing unusual" in text
        stay_small(text)


def test_a_deadlock_is_found_before_it_ends(daemon):
    programs = []

    def act():
        end(*programs)  # that of the try before
        p = start(program("frtest-stuck"), stdout=subprocess.PIPE, text=True)
        programs.append(p)
        threads = [json.loads(p.stdout.readline()) for _ in range(3)]
        time.sleep(INCIDENT_S)
        return threads

    try:
        text, found, threads = turn(daemon, act)
    finally:
        end(*programs)
    stay_small(text)
    pids = {t["pid"] for t in threads}
    assert len(pids) == 2 and {x["pid"] for x in found["findings"] if x["rule"] == "stuck"} == pids, text
    for x in found["findings"][:2]:
        assert x["rule"] == "stuck"
        for t in threads:
            state = f"(thread {t['tid']}) has waited", f"in state {t['state']}"
            assert x["pid"] != t["pid"] or any(all(part in line for part in state) for line in x["evidence"]), (t, x)


@pytest.fixture
def steady(tmp_path):
    """steady(kind) starts a culprit that runs before the incident and in it."""
    started = []

    def begin(kind):
        started.append(start_culprit(kind, tmp_path / "data", seconds=TRIES * (BEFORE_S + INCIDENT_S) * 4))
        time.sleep(1)  # a lock is held once in a second, so all of it happens in each second from now on
        return started[-1].pid

    yield begin
    end(*started)


def test_a_slow_service_is_found_although_it_was_slow_before(daemon, steady):
    pid = steady("lock")
    text, found, _ = turn(daemon, lambda: time.sleep(INCIDENT_S))
    assert [(x["rule"], x["pid"]) for x in found["findings"]] == [("lock", pid)], text
    assert "as before" in found["findings"][0]["headline"] and found["findings"][0]["score"] < 0.1, text


def test_a_steady_load_is_context_and_no_finding(daemon, steady):
    pid = steady("hog")
    text, found, _ = turn(daemon, lambda: time.sleep(INCIDENT_S))
    assert found["findings"] == [], text
    assert found["steady"]["pid"] == pid and found["steady"]["cpus"] > 0.5, found["steady"]
    assert "Steady: frtest-culprit" in text
