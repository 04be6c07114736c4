# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that is slow, stuck or broken holds up the dump that is being written, and nothing else."""
import ctypes
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from harness import (ARMED_PROBES, EXIT, Daemon, NotifySocket, die_with_parent, environment, finish_load, last_cpu, load,
                     must, perf_clean, program, run, sidecar, start, start_load, until)
from store import Store, StoredDaemon

# Of frtest-count alone, so that the ring goes around for nothing else.
SYSCALLS = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 8", "-m", "16M")
NUMBERS = ("count", "missing", "twice", "first", "last")  # whatever their order
MNT_DETACH = 2
SKIP = 77


class SlowFs:
    """frtest-slowfs: the files of one directory at another place, on a disk that does as it is told."""

    def __init__(self, tmp_path):
        self.behind, self.path, self.socket = tmp_path / "behind", tmp_path / "slow", tmp_path / "control"
        self.behind.mkdir()
        self.path.mkdir()
        self.process = subprocess.Popen([program("frtest-slowfs"), str(self.behind), str(self.path)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=die_with_parent)
        if self.process.stdout.readline() != "ready\n":
            _, err = self.process.communicate(timeout=10)
            assert self.process.returncode == SKIP, err
            pytest.skip(f"no FUSE here: {err.strip()}")

    def tell(self, *command):
        """Returns how many requests are being held."""
        self.process.stdin.write(" ".join(map(str, command)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        assert answer and answer[0] == "ok", self.process.stderr.read()
        return int(answer[1])

    def held(self):
        return self.tell("count")

    def end(self):
        # Not before who writes there: what waits for the file system is let go by its end, with an error.
        self.process.kill()
        self.process.communicate()
        ctypes.CDLL(None).umount2(str(self.path).encode(), MNT_DETACH)


@pytest.fixture
def disk(recorder, tmp_path):  # ends before the recorder, which could not be killed while a write waits
    fs = SlowFs(tmp_path)
    yield fs
    fs.end()


@pytest.fixture
def on_disk(recorder, disk):
    """on_disk("-e", "x", …): a recorder whose files are there."""
    return lambda *args, **kwargs: recorder(*args, directory=disk.path, socket_path=disk.socket, **kwargs)


def start_dump(d, *args):
    return start(program("flightrecctl"), "--socket", d.socket, "dump", *args, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE, text=True)


def finish_dump(p):
    out, err = p.communicate(timeout=180)
    assert p.returncode == 0, err
    return Path(out.strip())


def sequence(path, did):
    return json.loads(must(program("frtest-sequence"), path, did["pid"], did["nr"]).out)


def has_all(d, path, did, also=()):
    """Every number of the load, but for what the kernel had no room for on a machine that is busy otherwise; it is counted.
    Side-band that the tracker had no room for while its disk did not write is counted, too, and healed by a scan."""
    found, lost = sequence(path, did), d.lost()
    assert set(lost) <= {"kernel-ring-full", "side-band-queue", *also}, lost
    assert did["calls"] - found["count"] <= lost.get("kernel-ring-full", 0) and found["twice"] == 0, (found, did, lost)


def counted(d):
    return d.event_status("raw_syscalls:sys_enter")["samples"]


def answers_at_once(d):
    """In little more than it takes to start the client on this machine, now."""
    took, nothing = [], []
    for _ in range(5):
        begin = time.monotonic()
        d.ctl("--version")
        nothing.append(time.monotonic() - begin)
        begin = time.monotonic()
        d.status()
        took.append(time.monotonic() - begin)
    assert statistics.median(took) < 0.1 + 5 * statistics.median(nothing), (took, nothing)


def never_blocked(d, calls):
    """The disk does nothing until it is told to, and the recorder goes on: all that the load ever did gets into the ring."""
    until("all of it in the ring", lambda: counted(d) + d.lost().get("kernel-ring-full", 0) >= calls)


def test_the_file_system_of_these_tests(on_disk, disk):
    """With nothing wrong, what is written there is what should be."""
    d = on_disk(*SYSCALLS, "-M", "256M")
    p = start_load("count", "-t", "0.3")
    for cpu in sorted(os.sched_getaffinity(p.pid)) * 4:  # as a scheduler may do: then a dump is not in order, and a merge is
        os.sched_setaffinity(p.pid, {cpu})
        time.sleep(0.02)
    did = finish_load(p)
    path = d.dump_by_control()
    has_all(d, path, did)
    assert (disk.behind / path.name).read_bytes() == path.read_bytes()
    whole = sequence(path, did)
    merged = d.finish()
    found = sequence(merged, did)
    assert {k: found[k] for k in NUMBERS} == {k: whole[k] for k in NUMBERS} and found["backwards"] == 0, (found, whole)
    assert sum(hole["missing"] for hole in found["holes"]) == found["missing"], "in order, what is missing is in the holes"
    perf_clean("report", "-i", merged, "--stdio")


def test_slow(on_disk, disk):
    """A disk that takes less than a load makes: the file is whole, recording goes on, and what the ring had no room for is
    counted."""
    d = on_disk(*SYSCALLS, "-M", "4M")
    p = start_load("count", "-t", "600", "-c", last_cpu())
    until("a full ring", lambda: d.status()["ring"]["evicted_samples"] > 100000)
    disk.tell("only", "sample")
    disk.tell("rate", 200000)
    dump = start_dump(d)
    writing = until("word of a slow write", lambda: (w := d.status()["dumps"].get("writing", {})).get("seconds", 0) > 1.2 and w)
    assert "disk is slow or stuck" in d.ctl("status", "--no-pager").out
    answers_at_once(d)
    before = counted(d)
    until("more samples", lambda: counted(d) > before + 100000)
    until("sample for which there is no room", lambda: "back-pressure" in d.lost())
    assert dump.poll() is None and not d.samples(), "all of that while it was being written"
    disk.tell("rate", 1000000)
    path = finish_dump(dump)
    assert writing["file"] == path.name
    p.terminate()
    did = finish_load(p)
    disk.tell("go")
    status = d.status()
    assert "writing" not in status["dumps"]
    dropped = status["losses"]["back-pressure"]
    assert dropped > 0 and dropped == status["ring"]["dropped_samples"]
    lost = d.lost()
    assert set(lost) <= {"back-pressure", "kernel-ring-full", "side-band-queue"}, lost
    found = sequence(path, did)
    assert found["count"] > 100000 and found["twice"] == 0, found
    assert found["missing"] <= lost.get("kernel-ring-full", 0), "what was dropped is not of this window"
    perf_clean("report", "-i", path, "--stdio")
    after = d.dump_by_control()
    found = sequence(after, did)
    assert found["last"] == did["calls"] - 1 and found["missing"] <= sum(lost.values()), found
    told = [x for x in json.loads(sidecar(after).read_text())["losses"] if x["cause"] == "back-pressure"]
    assert [x["count"] for x in told] == [dropped]
    d.stop()


def test_stuck_under_the_dump(on_disk, disk):
    d = on_disk(*SYSCALLS, "-M", "256M")
    before = load("count", "-t", "0.3")
    disk.tell("only", "sample")
    disk.tell("hold")
    dump = start_dump(d)
    until("a write that waits", lambda: disk.held() > 0)
    until("word of it", lambda: "disk is slow or stuck" in d.ctl("status", "--no-pager").out)
    answers_at_once(d)
    during = load("count", "-t", "1")
    another = start_dump(d)
    until("one that waits for it", lambda: d.status()["dumps"]["queued"] == 2)
    never_blocked(d, before["calls"] + during["calls"])
    assert dump.poll() is None and not d.samples()
    disk.tell("go")
    first, second = finish_dump(dump), finish_dump(another)
    has_all(d, first, before)
    assert sequence(first, during)["count"] == 0, "the window ends with its trigger, however long the write takes"
    has_all(d, second, during)
    d.stop()


def test_stuck_as_a_whole(on_disk, disk):
    """The auxiliary file, too."""
    d = on_disk(*SYSCALLS, "-M", "256M")
    disk.tell("hold")
    load("spawn", "-n", "50")
    dump = start_dump(d)
    until("writes that wait", lambda: disk.held() > 0)
    during = load("count", "-t", "1")
    answers_at_once(d)
    never_blocked(d, during["calls"])
    assert dump.poll() is None
    disk.tell("go")
    finish_dump(dump)
    path = d.dump_by_control()
    has_all(d, path, during)
    d.stop()


def test_reload_while_a_scan_waits_for_the_disk(on_disk, disk, tmp_path):
    """The tracker holds the ring then; nobody waits for it but who wants another ring, and that for two seconds."""
    config = tmp_path / "flightrecd.conf"

    def write(ring, frequency):
        quiet = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
        config.write_text(f"[Recorder]\nEvents=cpu-clock\nFrequency={frequency}\nRingSize={ring}\nSidebandBuffer=4K\n"
                          f"[Triggers]\nSocket={tmp_path}/trigger\n{quiet}")

    write("8M", 99)
    d = on_disk("--config", config, watchdog=True)
    disk.tell("only", "auxiliary")
    disk.tell("hold")
    d.lose_sideband()  # which asks for a scan
    sizes = itertools.cycle(("9M", "10M"))

    def is_held():  # one write after the other, until it is one of the scan's
        disk.tell("step")
        until("a write that waits", disk.held)
        write(next(sizes), 99)
        r = d.ctl("reload")
        assert r.code == 0, r.err
        return "during a scan of /proc" in r.out + r.err

    until("scan that waits for the disk", is_held)
    write("12M", 199)
    r = d.ctl("reload", timeout=60)
    assert r.code == 0 and "records cpu-clock" in r.out, (r.out, r.err)
    d.notify.until_fed(3)
    answers_at_once(d)
    disk.tell("go")
    d.dump_by_control()
    assert "RingSize= is" in d.ctl("reload").out
    d.stop()


def test_the_whole_directory_hangs(on_disk, disk, tmp_path):
    """Names and reads, too: jobs wait, and what a person or the service manager asks of the recorder is answered."""
    config = tmp_path / "flightrecd.conf"
    config.write_text(f"[Triggers]\nSocket={tmp_path}/trigger\n" + "".join(f"[Trigger {x}]\nEnabled=no\n" for x in ARMED_PROBES))
    d = on_disk(*SYSCALLS, "-M", "16M", "--config", config, watchdog=True)
    path = d.dump_by_control()
    disk.tell("hang")
    load("spawn", "-n", "20")
    asked = [start_dump(d), start(program("flightrecctl"), "--socket", d.socket, "rm", path.name)]
    until("somebody who waits for the disk", disk.held)
    for verb in ("triggers", "why", "metrics", "status", "reload"):
        r = d.ctl(verb, timeout=60)
        assert r.code == 0, (verb, r.err)
    assert d.ctl("dump", "--no-wait").code == 0
    d.signal(signal.SIGHUP)
    d.signal(signal.SIGUSR1)
    d.notify.until_fed(3)
    answers_at_once(d)
    did = load("count", "-t", "0.2")
    never_blocked(d, did["calls"])
    disk.tell("go")
    finish_dump(asked[0])
    assert asked[1].wait(60) == 0
    d.stop()


def test_stopped_while_stuck(on_disk, disk):
    """The end waits for the disk, as the dump that it was asked for does."""
    d = on_disk(*SYSCALLS, "-M", "256M")
    did = load("count", "-t", "0.2")
    disk.tell("only", "sample")
    disk.tell("hold")
    dump = start_dump(d)
    until("a write that waits", lambda: disk.held() > 0)
    d.signal(signal.SIGTERM)
    time.sleep(1)
    assert d.running() and not d.samples()
    disk.tell("go")
    assert d.wait() == 0
    path = finish_dump(dump)
    assert sidecar(path).exists() and sequence(path, did)["count"] > 0


def test_errors(on_disk, disk):
    d = on_disk(*SYSCALLS, "-M", "256M")
    did = load("count", "-t", "0.3")
    disk.tell("only", "sample")
    disk.tell("fail")
    r = d.ctl("dump", "--reason", "broken")
    assert r.code == EXIT["error"] and "Input/output error" in r.err and "kept in memory" in r.err, r
    status = d.status()
    assert status["dumps"]["failed"] == 1 and "Input/output error" in status["dumps"]["kept"]["why"]
    assert not list(disk.behind.glob("*sample*"))
    more = load("count", "-t", "0.3")
    disk.tell("go")
    path = until("the file", d.samples)[0]
    until("its JSON", sidecar(path).exists)
    assert json.loads(sidecar(path).read_text())["cause"]["reason"] == "broken"
    has_all(d, path, did)
    assert sequence(path, more)["count"] == 0
    has_all(d, d.dump_by_control(), more)
    d.stop()


def test_directory_not_synced(on_disk, disk):
    """The dump has its name: it is a dump, told with a word of what a power cut may do, and written once."""
    d = on_disk(*SYSCALLS, "-M", "64M")
    did = load("count", "-t", "0.2")
    disk.tell("nosync")
    r = d.ctl("dump")
    assert r.code == 0 and "not durable" in r.err and "Input/output error" in r.err, r
    path = Path(r.out.strip())
    has_all(d, path, did)
    assert json.loads(sidecar(path).read_text())["not_durable"] == "Input/output error"
    dumps = d.status()["dumps"]
    assert (dumps["done"], dumps["failed"], dumps["not_durable"]) == (1, 0, 1) and "kept" not in dumps
    assert "not durable" in d.ctl("status", "--no-pager").out
    assert f"{path} is not durable" in d.log()
    assert d.samples() == [path] and not d.lost().get("failed-dump")
    r = run(program("flightrec-merge"), disk.path)
    assert r.code == 0 and "not durable" in r.err and path.exists(), r
    disk.tell("go")
    d.stop()


def test_read_only(on_disk, disk):
    """A file system that becomes read-only under the recorder: nothing that the ring has is lost, and it heals."""
    d = on_disk(*SYSCALLS, "-M", "64M")
    did = load("count", "-t", "0.2")
    disk.tell("readonly")
    r = d.ctl("dump")
    assert r.code == EXIT["error"] and "mounted read-only" in r.err and "kept in memory" in r.err, r
    load("spawn", "-n", "50")
    until("word of the auxiliary file", lambda: "Read-only" in d.status()["sideband"].get("last_error", ""))
    more = load("count", "-t", "0.2")
    assert not d.samples() and not d.lost().get("failed-dump")
    disk.tell("go")
    has_all(d, until("the file", d.samples)[0], did, {"auxiliary-write"})
    has_all(d, d.dump_by_control(), more, {"auxiliary-write"})
    d.stop()


@pytest.fixture
def on_hung_file(disk, recorder, tmp_path):
    """on_hung_file(): a recorder with a trigger of a function whose file hangs; and that file."""
    config, file = tmp_path / "flightrecd.conf", disk.path / "program"
    shutil.copy2(program("frtest-function"), disk.behind / "program")
    quiet = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES[1:])
    config.write_text(f"[Recorder]\nRingSize=8M\n[Triggers]\nSocket={tmp_path}/trigger\n{quiet}"
                      f"[Trigger slow]\nFunction={file}:fr_function_slow\nThreshold=10ms\n")

    def start_there():
        disk.tell("only", "program")
        disk.tell("hang")
        d = recorder("--config", config, watchdog=True, armed=False)
        until("somebody who waits for the file", disk.held)
        return d, config, file

    return start_there


def state(d, name):
    triggers = json.loads(d.ctl("triggers", "--json=short").out)["triggers"]
    return next(t for t in triggers if t["name"] == name)["state"]


def test_the_file_of_a_trigger_hangs(on_hung_file, disk):
    """Neither the start nor anything else waits for it; the trigger is armed when it can be."""
    d, config, file = on_hung_file()
    until("the probe without a file", lambda: state(d, ARMED_PROBES[0]) == "armed")
    assert state(d, "slow") == "arming"
    assert "slow is still being armed: its file is being read" in d.ctl("triggers").out
    assert "1 still being armed" in d.ctl("status", "--no-pager").out
    d.notify.until_fed(3)
    answers_at_once(d)
    assert d.dump_by_control().exists()
    config.write_text(config.read_text() + "[Trigger tick]\nEvery=1h\n")
    r = d.ctl("reload")
    assert r.code == EXIT["partly"] and "trigger slow is not armed: its file is being read" in r.err, (r.out, r.err)
    assert state(d, "tick") == "armed" and state(d, "slow") == "arming"
    enable = start(program("flightrecctl"), "--socket", d.socket, "enable", "slow", stderr=subprocess.PIPE, text=True)
    d.notify.until_fed(3)
    disk.tell("go")
    _, err = enable.communicate(timeout=60)
    assert (enable.returncode, err) == (0, "")
    assert state(d, "slow") == "armed"
    before = len(d.samples())
    must(str(file), "call", "50", text="\n")
    until("its dump", lambda: len(d.samples()) > before)
    d.stop()


def test_disabled_and_stopped_while_the_file_of_a_trigger_hangs(on_hung_file, disk):
    d, config, _ = on_hung_file()
    assert d.ctl("disable", "slow").code == 0
    assert state(d, "slow") == "disabled"
    config.write_text(config.read_text().replace("[Trigger slow]", "[Trigger other]"))
    assert "trigger other is not armed: it waits for slow" in d.ctl("reload").err
    d.signal(signal.SIGTERM)
    # The process itself ends with its last thread, which the kernel does not let go.
    until("the end of all else", lambda: "stopped" in d.log())
    disk.tell("go")
    assert d.wait() == 0


def config_on(disk, tmp_path, frequency):
    quiet = "".join(f"[Trigger {x}]\nEnabled=no\n" for x in ARMED_PROBES)
    config = disk.behind / "flightrecd.conf"
    config.write_text(f"[Recorder]\nEvents=cpu-clock\nFrequency={frequency}\nRingSize=4M\n"
                      f"[Triggers]\nSocket={tmp_path}/trigger\n{quiet}")
    return disk.path / config.name


def test_reload_while_the_configuration_hangs(recorder, disk, tmp_path):
    """It fails after two seconds; what was read in the end, by then for nobody, is of no effect."""
    d = recorder("--config", config_on(disk, tmp_path, 99), watchdog=True)
    config_on(disk, tmp_path, 199)
    disk.tell("hang")
    for _ in range(2):
        r = d.ctl("reload", timeout=60)
        assert r.code == EXIT["error"] and "the configuration was not read within 2.0s" in r.err, r
        d.notify.until_fed(3)
        answers_at_once(d)
    assert disk.held() == 1, "one thread that hangs is enough"
    assert "not read within" in d.status()["config_error"]["what"]
    disk.tell("go")
    until("another thread", lambda: "records cpu-clock" in d.ctl("reload").out)
    assert "config_error" not in d.status()
    d.stop()


class Starting(Daemon):
    """One that is not waited for."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.notify = NotifySocket()
        with open(self.log_path, "wb") as log:
            self.process = start(*self.argv(), stdout=log, stderr=log, env=environment(NOTIFY_SOCKET=self.notify.address))
        self.notify.listen()

    def until_it_does(self, what, disk):
        until(what, lambda: what in self.notify.status() and disk.held())
        disk.tell("go")
        until("that it is ready", lambda: "READY=1" in self.notify.lines)
        self.stop()


def test_a_start_says_that_the_configuration_hangs(disk, tmp_path, state_dir):
    config = config_on(disk, tmp_path, 99)
    disk.tell("hang")
    Starting(state_dir, "--config", config).until_it_does("starting: reads the configuration", disk)


def test_a_start_says_that_the_directory_hangs(disk, tmp_path):
    config_on(disk, tmp_path, 99)
    config = shutil.copy2(disk.behind / "flightrecd.conf", tmp_path)
    disk.tell("hang")
    d = Starting(disk.path, "--config", config, socket_path=disk.socket)
    until("control socket", lambda: disk.socket.exists())
    assert d.status()["state"] == "starting"
    d.until_it_does("starting: opens the output directory", disk)


def test_a_restart_while_the_configuration_hangs(disk, tmp_path, state_dir):
    """There is the configuration of the instance before, and its history, which nothing may lose."""
    config, store = config_on(disk, tmp_path, 99), Store()
    try:
        d = StoredDaemon(store, state_dir, "--config", config).start()
        until("samples", lambda: d.status()["ring"]["samples"])
        d.kill()
        disk.tell("hang")
        d = StoredDaemon(store, state_dir, "--config", config).start()
        status = d.status()
        assert status["adopted"]["restarts"] == 1 and "was not read within 5" in status["config_error"]["what"], status
        disk.tell("go")
        until("the configuration", lambda: d.ctl("reload").code == 0)
        d.stop()
    finally:
        d.kill()
        store.close()
