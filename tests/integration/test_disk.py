# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that is slow, stuck or broken delays only what uses it: dumps and other jobs of the dumper, triggers on files of this
disk, and reads of files on it. It delays neither the recording nor the answers to other calls."""
import itertools
import os
import shutil
import signal
import statistics
import subprocess
import time

import pytest

from conftest import unmount
from harness import (ARMED_PROBES, EXIT, WATCHED, Daemon, die_with_parent, exact, finish_dump, finish_load, last_cpu, load, merge,
                     meta, must, perf_clean, program, quiet_config, sequence, sidecar, start_load, triggers_config, until)

# Records only lseek(), the system call of frtest-count, so that few other records evict frames of the ring.
SYSCALLS = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 8", "-m", "16M")
# Losses that other programs of the machine can cause: the kernel rings are full, or the queue of the tracker is full while its
# disk does not write.
BUSY = ("kernel-ring-full", "side-band-queue", "side-band-lost")
SKIP = 77


class SlowFs:
    """A frtest-slowfs, which is a FUSE file system. It shows the files of the directory .behind at .path. Commands make it
    delay or refuse requests."""

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

    def command(self, *commands):
        """Gives commands to frtest-slowfs. Returns the number of requests that wait."""
        for command in commands:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().split()
            assert answer and answer[0] == "ok", self.process.stderr.read()
        return int(answer[1])

    def until_held(self):
        until("request that the disk holds", lambda: self.command("count") > 0)

    def end(self):
        """Ends frtest-slowfs. All requests that wait then fail, so the processes that wait for them can end."""
        self.process.kill()
        self.process.communicate()
        unmount(self.path)


@pytest.fixture
# Uses `recorder` so that the disk ends before the recorder: a recorder whose write waits cannot be killed.
def disk(recorder, tmp_path):
    fs = SlowFs(tmp_path)
    yield fs
    fs.end()


@pytest.fixture
def on_disk(recorder, disk):
    """on_disk("-e", "x", …) starts a recorder whose files are on the slow disk."""
    return lambda *args, **kwargs: recorder(*args, directory=disk.path, socket_path=disk.socket, **kwargs)


def has_all(d, path, did, also=()):
    """Checks that a dump has each number of the load once. Numbers may be missing only if they were counted as lost because the
    kernel rings of a busy machine were full. Side-band may be lost if the tracker's queue was full while its disk did not
    write. A loss of side-band is counted, and a scan repairs it. The parameter `also` has further causes of losses that are
    permitted."""
    found, lost = sequence(path, did), d.lost()
    assert set(lost) <= {*BUSY, *also}, lost
    assert did["calls"] - found["count"] <= lost.get("kernel-ring-full", 0) and found["twice"] == 0, (found, did, lost)


def counted(d):
    return d.event_status("raw_syscalls:sys_enter")["samples"]


def answers_at_once(d):
    """Checks that a call to the recorder takes only a little longer than the start of flightrecctl takes on this machine at
    this time."""
    def median_seconds(call):
        took = []
        for _ in range(5):
            begin = time.monotonic()
            call()
            took.append(time.monotonic() - begin)
        return statistics.median(took)

    nothing, status = median_seconds(lambda: d.ctl("--version")), median_seconds(d.status)
    assert status < 0.1 + 5 * nothing, (status, nothing)


def still_records(d, calls):
    """While the disk does nothing, waits until the samples of CALLS system calls of the load are in the ring or are counted as
    lost."""
    until("all calls in the ring", lambda: counted(d) + d.lost().get("kernel-ring-full", 0) >= calls)


def test_the_file_system_of_these_tests_is_transparent(on_disk, disk):
    d = on_disk(*SYSCALLS, "-M", "256M")
    p = start_load("count", "-t", "0.3")
    for cpu in sorted(os.sched_getaffinity(p.pid)) * 4:  # so that the numbers are out of order in the dump, but not in a merge
        os.sched_setaffinity(p.pid, {cpu})
        time.sleep(0.02)
    did = finish_load(p)
    path = d.dump_by_control()
    has_all(d, path, did)
    assert (disk.behind / path.name).read_bytes() == path.read_bytes()
    whole = sequence(path, did)
    merged = d.finish()
    found = sequence(merged, did)
    for key in ("count", "missing", "twice", "first", "last"):  # these do not depend on the order
        assert found[key] == whole[key], (key, found, whole)
    assert found["backwards"] == 0
    assert sum(hole["missing"] for hole in found["holes"]) == found["missing"], "what is missing is in the holes"
    perf_clean("report", "-i", merged, "--stdio")


def test_losses_on_a_slow_disk_are_counted(on_disk, disk):
    """The load makes more data than the disk can write. The dump is complete, and records for which the ring had no room are
    counted as lost."""
    d = on_disk(*SYSCALLS, "-M", "4M")
    p = start_load("count", "-t", "600", "-c", last_cpu())
    until("full ring", lambda: d.status()["ring"]["evicted_samples"] > 100000)
    disk.command("only sample", "rate 500000")  # so that the write of each block takes two seconds
    dump = d.start_ctl("dump")
    writing = until("report of a slow write", lambda: (w := d.status()["dumps"].get("writing", {})).get("seconds", 0) > 1.2 and w)
    disk.command("hold")  # so that the dump does not end during these checks
    assert "disk is slow or stuck" in d.text_status()
    answers_at_once(d)
    before = counted(d)
    until("more samples", lambda: counted(d) > before + 100000)
    until("sample for which there is no room", lambda: "back-pressure" in d.lost())
    assert dump.poll() is None and not d.samples(), "all checks were made while the dump was being written"
    disk.command("go")
    path = finish_dump(dump)
    assert writing["file"] == path.name

    def drops_no_more():
        dropped, before = d.lost()["back-pressure"], counted(d)
        until("more samples", lambda: counted(d) > before + 100000)
        return d.lost()["back-pressure"] == dropped
    until("samples for which there is room", drops_no_more)
    did = finish_load(p, stop=True)
    status = d.status()
    assert "writing" not in status["dumps"]
    dropped = status["losses"]["back-pressure"]
    assert dropped > 0 and dropped == status["ring"]["dropped_samples"]
    lost = d.lost()
    assert set(lost) <= {"back-pressure", *BUSY}, lost
    found = sequence(path, did)
    assert found["count"] > 100000 and found["twice"] == 0, found
    assert found["missing"] <= lost.get("kernel-ring-full", 0), "what was dropped is not in this window"
    perf_clean("report", "-i", path, "--stdio")
    paced = load("count", "-t", 0.1, "-c", last_cpu(), "-p", 1000)
    after = d.dump_by_control()
    found = sequence(after, paced)
    exact(found)
    assert found["count"] == paced["calls"], "after the slow dump, nothing is lost any more"
    found, lost = sequence(after, did), d.lost()
    assert did["calls"] - 1 - found["last"] <= lost.get("kernel-ring-full", 0), (found, lost)
    assert did["calls"] - found["first"] - found["count"] <= sum(lost.values()), (found, lost)
    assert [x["count"] for x in meta(after)["losses"] if x["cause"] == "back-pressure"] == [dropped]
    d.stop()


def test_a_stuck_disk_delays_only_dumps(on_disk, disk):
    d = on_disk(*SYSCALLS, "-M", "256M")
    before = load("count", "-t", "0.3")
    disk.command("only sample", "hold")
    dump = d.start_ctl("dump")
    disk.until_held()
    until("report of the stuck disk", lambda: "disk is slow or stuck" in d.text_status())
    answers_at_once(d)
    during = load("count", "-t", "0.5")
    another = d.start_ctl("dump")
    until("second dump in the queue", lambda: d.status()["dumps"]["queued"] == 2)
    still_records(d, before["calls"] + during["calls"])
    disk.command("only", "hold")  # hold the writes of all files, also of the auxiliary file
    load("spawn", "-n", "50", "-m", "1")
    disk.until_held()
    third = load("count", "-t", "0.5")
    answers_at_once(d)
    still_records(d, before["calls"] + during["calls"] + third["calls"])
    assert dump.poll() is None and not d.samples()
    disk.command("go")
    first, second = finish_dump(dump), finish_dump(another)
    has_all(d, first, before)
    assert sequence(first, during)["count"] == 0, "the window ends with its trigger, however long the write takes"
    has_all(d, second, during)
    has_all(d, d.dump_by_control(), third)
    d.stop()


@pytest.mark.waits
def test_reload_while_a_scan_waits_for_the_disk(on_disk, disk, tmp_path):
    """During a scan of /proc the ring cannot change its size, because the low watermark is frozen. A reload that changes the
    size waits for two seconds, and then applies only the other changes. No other call waits."""
    config = tmp_path / "flightrecd.conf"

    def write(ring, frequency):
        quiet_config(config, f"[Recorder]\nEvents=cpu-clock\nFrequency={frequency}\nRingSize={ring}\nSidebandBuffer=4K\n")

    write("8M", 99)
    d = on_disk("--config", config, env=WATCHED)
    disk.command("only auxiliary", "hold")
    d.lose_sideband()  # this causes a scan
    sizes = itertools.cycle(("9M", "10M"))

    def is_frozen():  # lets the disk do one write at a time, until the write that waits is one of the scan
        disk.command("step")
        disk.until_held()
        write(next(sizes), 99)
        r = d.ctl("reload")
        assert r.code == 0, r.err
        return "during a scan of /proc" in r.out + r.err

    until("scan that waits for the disk", is_frozen)
    write("12M", 199)
    r = d.ctl("reload", timeout=60)
    assert r.code == 0 and "records cpu-clock" in r.out, (r.out, r.err)
    d.manager.until_fed(3)
    answers_at_once(d)
    disk.command("go")
    d.dump_by_control()
    assert "RingSize= is" in d.ctl("reload").out
    d.stop()


def test_a_directory_that_hangs_delays_only_jobs(on_disk, disk, tmp_path):
    """The disk also does not answer requests to look up names and to read. Jobs of the dumper wait, but the recorder answers
    calls and feeds the watchdog."""
    d = on_disk(*SYSCALLS, "-M", "16M", "--config", quiet_config(tmp_path / "flightrecd.conf", ""), env=WATCHED)
    path = d.dump_by_control()
    disk.command("hang")
    load("spawn", "-n", "20")
    dump, remove = d.start_ctl("dump"), d.start_ctl("rm", path.name)
    disk.until_held()
    for verb in ("triggers", "why", "metrics", "status", "reload"):
        r = d.ctl(verb, timeout=60)
        assert r.code == 0, (verb, r.err)
    assert d.ctl("dump", "--no-wait").code == 0
    d.signal(signal.SIGHUP)
    d.signal(signal.SIGUSR1)
    d.manager.until_fed(3)
    answers_at_once(d)
    did = load("count", "-t", "0.2")
    still_records(d, did["calls"])
    disk.command("go")
    finish_dump(dump)
    assert remove.wait(60) == 0
    d.stop()


def test_the_end_waits_for_a_dump_that_is_stuck(on_disk, disk):
    d = on_disk(*SYSCALLS, "-M", "256M")
    did = load("count", "-t", "0.2")
    disk.command("only sample", "hold")
    dump = d.start_ctl("dump")
    disk.until_held()
    d.signal(signal.SIGTERM)
    time.sleep(0.5)
    assert d.running() and not d.samples()
    disk.command("go")
    assert d.wait() == 0
    path = finish_dump(dump)
    assert sidecar(path).exists() and sequence(path, did)["count"] > 0


@pytest.mark.parametrize("ring", [("-M", "256M"), ("-M", "1M", "--ring", "calls:256M")], ids=["default", "calls"])
@pytest.mark.parametrize("fault, words, why", [("fail", "Input/output error", "Input/output error"),
                                               ("readonly", "read-write", "Read-only file system")])
def test_a_dump_that_cannot_be_written_is_kept_and_written_later(on_disk, disk, fault, words, why, ring):
    d = on_disk(*ring, *SYSCALLS)
    did = load("count", "-t", "0.2")
    disk.command(*(["only sample"] if fault == "fail" else []), fault)
    r = d.ctl("dump", "--reason", "broken")
    assert r.code == EXIT["error"] and words in r.err and "stays in memory" in r.err, r
    dumps = d.status()["dumps"]
    assert dumps["failed"] == 1 and why in dumps["kept"]["why"], dumps
    if fault == "readonly":
        load("spawn", "-n", "50", "-m", "1")
        until("report of the auxiliary file", lambda: why in d.status()["sideband"].get("last_error", ""))
    assert not list(disk.behind.glob("*sample*")) and not d.lost().get("failed-dump")
    more = load("count", "-t", "0.2")
    disk.command("go")
    assert d.ctl("vacuum").code == 0  # after a vacuum, the dumper tries again to write the kept dump
    path = d.until_dumped()
    assert meta(path)["cause"]["reason"] == "broken"
    has_all(d, path, did, {"auxiliary-write"})
    assert sequence(path, more)["count"] == 0
    has_all(d, d.dump_by_control(), more, {"auxiliary-write"})
    d.stop()


def test_a_directory_that_cannot_be_synced_makes_a_dump_that_is_not_durable(on_disk, disk):
    """The dump already has its final name, so it is not written again. It is reported as not durable, because a power cut can
    remove it."""
    d = on_disk(*SYSCALLS, "-M", "64M")
    did = load("count", "-t", "0.2")
    disk.command("nosync")
    r = d.ctl("dump")
    assert r.code == 0 and "not durable" in r.err and "Input/output error" in r.err, r
    path, = d.samples()
    assert r.out == f"{path}\n"
    has_all(d, path, did)
    assert meta(path)["not_durable"] == "Input/output error"
    dumps = d.status()["dumps"]
    assert (dumps["done"], dumps["failed"], dumps["not_durable"]) == (1, 0, 1) and "kept" not in dumps
    assert "not durable" in d.text_status() and f"{path} is not durable" in d.log()
    assert not d.lost().get("failed-dump")
    r = merge(disk.path)
    assert r.code == 0 and "not durable" in r.err and path.exists(), r
    disk.command("go")
    d.stop()


@pytest.fixture
def on_hung_file(disk, recorder, tmp_path):
    """A recorder with a trigger on a function of a program whose file hangs. The value is (recorder, configuration, file)."""
    config, file = tmp_path / "flightrecd.conf", disk.path / "program"
    shutil.copy2(program("frtest-function"), disk.behind / "program")
    config.write_text("[Recorder]\nRingSize=8M\n" + triggers_config(
        tmp_path / "trigger", f"[Trigger {ARMED_PROBES[0]}]\n[Trigger slow]\nFunction={file}:fr_function_slow\nThreshold=10ms\n"))
    disk.command("only program", "hang")
    d = recorder("--config", config, env=WATCHED, armed=False)
    disk.until_held()
    return d, config, file


@pytest.mark.waits
def test_a_trigger_whose_file_hangs_delays_nothing(on_hung_file, disk):
    """Neither the start of the recorder nor a call waits for the file. The trigger is armed when its file can be read."""
    d, config, file = on_hung_file
    until("the probe without a file", lambda: d.trigger(ARMED_PROBES[0])["state"] == "armed")
    assert d.trigger("slow")["state"] == "arming"
    assert "slow is still being armed: its file is being read" in d.ctl("triggers").out
    assert "1 still being armed" in d.text_status()
    d.manager.until_fed(3)
    answers_at_once(d)
    assert d.dump_by_control().exists()
    text = config.read_text()
    config.write_text(f"{text}[Trigger tick]\nEvery=1h\n[Trigger other]\nFunction={file}:fr_function_slow\nThreshold=10ms\n")
    r = d.ctl("reload")
    assert r.code == EXIT["partly"] and "trigger slow is not armed: its file is being read" in r.err, (r.out, r.err)
    assert "trigger other is not armed: it waits for slow" in r.err
    assert d.trigger("tick")["state"] == "armed" and d.trigger("slow")["state"] == "arming"
    enable = d.start_ctl("enable", "slow")
    d.manager.until_fed(3)
    disk.command("go")
    _, err = enable.communicate(timeout=60)
    assert (enable.returncode, err) == (0, "")
    assert d.trigger("slow")["state"] == "armed"
    before = len(d.samples())
    must(str(file), "call", "50", text="\n")
    until("dump of the trigger", lambda: len(d.samples()) > before)
    d.stop()


def test_the_end_does_not_wait_for_the_file_of_a_trigger(on_hung_file, disk):
    d, _, _ = on_hung_file
    assert d.ctl("disable", "slow").code == 0 and d.trigger("slow")["state"] == "disabled"
    d.signal(signal.SIGTERM)
    # The recorder has stopped. But its process ends only when its last thread ends, and this thread still waits in the kernel
    # for the file.
    d.until_logged("stopped")
    disk.command("go")
    assert d.wait() == 0


def config_on(disk, frequency):
    """Writes a configuration file on the slow disk. Returns its path."""
    quiet_config(disk.behind / "flightrecd.conf", f"[Recorder]\nEvents=cpu-clock\nFrequency={frequency}\nRingSize=4M\n")
    return disk.path / "flightrecd.conf"


@pytest.mark.waits
def test_reload_fails_while_the_configuration_hangs(recorder, disk):
    """The reload fails after two seconds. If the file can be read later, its content has no effect."""
    d = recorder("--config", config_on(disk, 99), env=WATCHED)
    config_on(disk, 199)
    disk.command("hang")
    for _ in range(2):
        r = d.ctl("reload", timeout=60)
        assert r.code == EXIT["error"] and "the configuration was not read within 2.0s" in r.err, r
        d.manager.until_fed(3)
        answers_at_once(d)
    assert disk.command("count") == 1, "one thread that hangs is enough"
    assert "not read within" in d.status()["config_error"]["what"]
    disk.command("go")
    until("another thread", lambda: "records cpu-clock" in d.ctl("reload").out)
    assert "config_error" not in d.status()
    d.stop()


@pytest.mark.parametrize("hangs, doing", [("configuration", "reads the configuration"), ("directory", "opens the output directory")])
def test_a_start_reports_what_hangs(disk, tmp_path, state_dir, hangs, doing):
    config = config_on(disk, 99)
    if hangs == "directory":
        config = shutil.copy2(disk.behind / "flightrecd.conf", tmp_path)
    disk.command("hang")
    d = Daemon(disk.path if hangs == "directory" else state_dir, "--config", config, socket_path=disk.socket).launch()
    try:
        until(f"starting: {doing}", lambda: f"starting: {doing}" in d.manager.status() and disk.command("count"))
        if hangs == "directory":
            until("control socket", disk.socket.exists)
            assert d.status()["state"] == "starting"
        disk.command("go")
        d.until_ready()
        d.stop()
    finally:
        disk.command("go")
        d.kill()


@pytest.mark.waits
def test_a_restart_while_the_configuration_hangs_uses_the_previous_configuration(recorder, disk, service_manager):
    """The new instance uses the configuration of the previous instance, and adopts its ring."""
    config = config_on(disk, 99)
    d = recorder("--config", config, manager=service_manager)
    until("samples", lambda: d.status()["ring"]["samples"])
    d.kill()
    disk.command("hang")
    d = recorder("--config", config, manager=service_manager, armed=False)
    status = d.status()
    assert status["adopted"]["restarts"] == 1 and "was not read within 5" in status["config_error"]["what"], status
    disk.command("go")
    until("reload that succeeds", lambda: d.ctl("reload").code == 0)
    d.stop()
