# SPDX-License-Identifier: GPL-2.0-or-later
"""RingMemory=: a ring in memory that survives a crash of the machine. Here, the memory is a file on tmpfs. A copy of this file,
made while the recorder is stopped at a random moment, is what a crash at this moment would leave. The recorder of the next boot
runs with another boot id. tests/vm crashes a real kernel."""
import os
import random
import shutil
import signal
import time
import uuid

import pytest

from harness import (FULL, exact, fill, finish_load, last_cpu, load, meta, must, perf, program, quiet_config, report_rows, run, samples_of, sequence,
                     start_load, until)

CRASHES = 20 if FULL else 4
# Only the lseek() calls of the load, and the exits of short processes. A load that counts without pauses fills a kernel ring in
# less than 0.1 s, so loads whose numbers must all be there have pauses.
EVENTS = ("-e", "raw_syscalls:sys_enter", "--filter", 'id == 8 && COMM == "frtest-count"', "-e", "sched:sched_process_exit",
          "--filter", 'comm == "frtest-child"', "-m", "16M", "-M", "16M")
LATE = 2e9  # ns. The longest time between two rounds is 50 ms, but other tests can keep the CPUs.
# Sets another boot id, in a mount namespace.
OTHER_BOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


@pytest.fixture
def memory():
    """The path of a memory that does not exist yet."""
    path = f"/dev/shm/flightrec-test-{uuid.uuid4().hex}"
    yield path
    for p in (path, path + ".crashed"):
        if os.path.exists(p):
            os.unlink(p)


@pytest.fixture
def next_boot(tmp_path):
    """next_boot() returns the arguments for a recorder that runs in another boot."""
    def prefix():
        boot_id = tmp_path / f"boot-id-{uuid.uuid4().hex}"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        return {"prefix": ("unshare", "--mount", "--propagation", "private", "bash", "-c", OTHER_BOOT, boot_id)}
    return prefix


def crash(daemon, memory):
    """Stops the recorder for ever, and copies the memory. Returns the path of the copy, and the time of the stop."""
    daemon.signal(signal.SIGSTOP)
    stopped = time.monotonic_ns()
    until("stopped recorder", lambda: open(f"/proc/{daemon.pid}/stat", encoding="ascii", errors="replace").read().split(") ")[1][0] == "T")
    shutil.copy(memory, memory + ".crashed")
    daemon.kill()
    return memory + ".crashed", stopped


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip().replace("-", "")


def test_the_dump_after_a_crash_is_whole(recorder, memory, next_boot, tmp_path):
    """Crashes at random moments: each number that had been drained is in the dump, and the processes that died before the crash
    have their names."""
    for n in range(CRASHES):
        directory, after = tmp_path / f"state{n}", tmp_path / f"after{n}"
        directory.mkdir(), after.mkdir()
        d = recorder(*EVENTS, "--ring-memory", memory, directory=directory)
        counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 1000)
        spawning = start_load("spawn", "-t", 3600, "-m", 1)
        until("numbers", lambda: d.status()["ring"]["samples"] > 1000)  # pylint: disable=cell-var-from-loop
        time.sleep(random.uniform(0, 1.5))
        lost = d.lost_to_others()
        copy, stopped = crash(d, memory)
        counted = finish_load(counting, stop=True)
        spawning.kill(), spawning.wait()

        d = recorder("-e", "dummy", "--ring-memory", copy, directory=after, **next_boot())
        sample, = d.samples()
        found, m = sequence(sample, counted), meta(sample)
        assert (found["twice"], found["backwards"]) == (0, 0) and found["missing"] <= lost, (found, lost)
        assert found["first"] == 0 and found["last"] > 1000
        assert m["cause"]["trigger"] == "machine-crash" and m["cause"]["reason"] == "reset or power loss", m
        assert m["boot_id"] == boot_id() and m["crash"]["names_are_whole"] is True, m
        assert [x["cause"] for x in m["losses"]][-1] == "machine-crash", m
        assert stopped - LATE < m["crash"]["recorded_until_ns"] < stopped, (m["crash"], stopped)
        assert stopped - LATE < m["window"]["to_ns"] <= m["monotonic_ns"] < stopped
        rows = report_rows(sample)
        assert samples_of(rows, comm="frtest-count", tids={counted["pid"]}) == found["count"]
        assert samples_of(rows, comm="frtest-child") > 10
        assert not [r for r in rows if r.comm.startswith(":")], rows
        os.unlink(copy), os.unlink(memory)
        d.stop()


def test_torn_memory_is_never_half_believed(recorder, memory, next_boot, tmp_path):
    """Random cache lines of the memory are lost or damaged. The dump has less, or there is no dump, but no number is wrong."""
    d = recorder(*EVENTS, "-M", "4M", "--ring-memory", memory)
    until("full ring", lambda: load("count", "-t", 0.5) and d.status()["ring"]["evicted_samples"])
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 1000)
    time.sleep(0.5)
    copy, _ = crash(d, memory)
    counted = finish_load(counting, stop=True)
    with open(copy, "rb") as f:
        image = f.read()
    dumps = 0
    for n in range(CRASHES * 2):
        after, torn = tmp_path / f"after{n}", bytearray(image)
        after.mkdir()
        for _ in range(random.choice((1, 10, 1000))):
            at = random.choice((random.randrange(0, len(torn), 64), random.randrange(0, 1 << 20, 64)))
            torn[at:at + 64] = random.choice((bytes(64), os.urandom(64)))
        with open(copy, "wb") as f:
            f.write(torn)
        d = recorder("-e", "dummy", "--ring-memory", copy, directory=after, **next_boot())
        assert d.status()["ring"]["memory"]["path"] == copy
        for sample in d.samples():
            dumps += 1
            assert perf("script", "-i", sample, "-F", "time").code == 0
            found = sequence(sample, counted)
            assert (found["twice"], found["backwards"], found["missing"]) == (0, 0, 0), found
            assert found["count"] == 0 or found["last"] < counted["calls"], found
        d.stop()
    assert dumps > 0


def test_foreign_memory_is_formatted(recorder, memory):
    with open(memory, "wb") as f:
        f.write(os.urandom(16 << 20))
    os.chmod(memory, 0o600)
    d = recorder("-e", "dummy", "--ring-memory", memory)
    assert d.status()["ring"]["memory"]["used"] and not d.samples()
    assert "RingMemory" not in d.text_status()


def test_a_clean_end_leaves_nothing_to_rescue(recorder, memory, next_boot, tmp_path):
    """At a stop of the service, and at SIGUSR2. (The manager of these tests says nothing about a stop, so the recorder takes it for
    the end of the service.)"""
    for n, end in enumerate((lambda d: d.stop(), lambda d: d.finish())):
        after = tmp_path / f"after{n}"
        after.mkdir()
        d = recorder(*EVENTS, "--ring-memory", memory, directory=after, env={"INVOCATION_ID": uuid.uuid4().hex})
        load("count", "-t", 0.1)
        end(d)
        files = sorted(p.name for p in after.glob("perf.data*"))
        d = recorder("-e", "dummy", "--ring-memory", memory, directory=after, **next_boot())
        assert sorted(p.name for p in after.glob("perf.data.sample*")) == [f for f in files if ".sample." in f]
        d.stop()


def test_a_restart_continues_in_the_memory(recorder, service_manager, memory):
    """The next instance of the service adopts the ring in its memory, after a restart and after a kill."""
    def instance(*args):
        return recorder(*EVENTS, *args, manager=service_manager, armed=False)

    d = instance("--ring-memory", memory)
    counting = start_load("count", "-t", 3600, "-c", last_cpu(), "-p", 1000)
    until("numbers", lambda: d.status()["ring"]["samples"] > 1000)
    for stop in (lambda: d.kill(), lambda: d.stop()):
        stop()
        d = instance("--ring-memory", memory)
        status = d.status()
        assert status["adopted"]["in_place"] and status["ring"]["memory"]["path"] == memory, status
        assert [n for n in service_manager.names() if not n.startswith("flightrec-bpf-")] == ["flightrec-state"]
    counted = finish_load(counting, stop=True)
    found = sequence(d.dump_by_control(), counted)
    assert (found["first"], found["twice"], found["backwards"]) == (0, 0, 0), found
    assert d.lost()["restart"] == 2 and len(d.samples()) == 1
    # The ring moves from the memory to a dump if the next configuration has no memory, and from a memfd into the memory.
    d.stop()
    d = instance()
    assert len(d.samples()) == 2 and meta(d.samples()[-1])["cause"]["trigger"] == "recorder-killed"
    counted = load("count", "-t", 0.1, "-c", last_cpu(), "-p", 1000)
    d.stop()
    d = instance("--ring-memory", memory)
    assert d.status()["adopted"]["in_place"] is False and len(d.samples()) == 2
    exact(sequence(d.dump_by_control(), counted))


def test_the_ring_of_another_recorder_is_not_continued(recorder, service_manager, memory, tmp_path):
    """After an instance of the service was killed, another recorder uses the memory, and is killed, too. The recorder
    that finds a ring of another one writes it to a dump."""
    other = tmp_path / "other"
    other.mkdir()
    found = []
    for options in ({"manager": service_manager, "armed": False}, {"directory": other}):
        d = recorder(*EVENTS, "--ring-memory", memory, **options)
        found.append(d.samples())
        counted = load("count", "-t", 0.1, "-c", last_cpu(), "-p", 1000)
        until("all numbers", lambda: d.status()["ring"]["samples"] >= counted["calls"])  # pylint: disable=cell-var-from-loop
        time.sleep(0.3)  # several rounds
        d.kill()
        found.append(counted)
    none, first, (sample,), second = found
    assert not none and meta(sample)["cause"]["trigger"] == "recorder-killed"
    exact(sequence(sample, first))
    d = recorder(*EVENTS, "--ring-memory", memory, manager=service_manager, armed=False)
    sample, = d.samples()
    exact(sequence(sample, second))
    assert d.status()["ring"]["memory"]["used"]
    assert sequence(d.dump_by_control(), second)["count"] == 0  # other tests can run the same load, so the ring need not be empty


def test_a_dump_that_cannot_be_written_stays_in_the_memory(recorder, memory, next_boot, tmpfs, tmp_path):
    """The directory is full. The recorder records into ordinary memory, and the next one makes the dump."""
    directory = tmpfs("16m")  # the recorder also counts the loads of other tests
    config = quiet_config(tmp_path / "no-limits.conf", "[Dump]\nMaxUse=0\nKeepFree=0\n")
    d = recorder(*EVENTS, "--ring-memory", memory, directory=directory)
    counted = load("count", "-t", 0.9, "-c", last_cpu(), "-p", 1000)  # the dump must be larger than the room that is left below
    until("all numbers", lambda: d.status()["ring"]["samples"] >= counted["calls"])
    time.sleep(0.3)  # several rounds
    copy, _ = crash(d, memory)
    fill(directory / "full")
    os.truncate(directory / "full", (directory / "full").stat().st_size - (256 << 10))  # room for perf.data.auxiliary
    d = recorder("--config", config, "-e", "dummy", "--ring-memory", copy, directory=directory, **next_boot())
    ring = d.status()["ring"]["memory"]
    assert not ring["used"] and "still has the samples from before the crash" in ring["error"], ring
    assert "RingMemory= is not used" in d.text_status()
    d.stop()
    (directory / "full").unlink()
    d = recorder("--config", config, "-e", "dummy", "--ring-memory", copy, directory=directory, **next_boot())
    sample, = d.samples()
    exact(sequence(sample, counted))


def test_memory_that_cannot_be_used_is_reported(recorder, memory, tmp_path):
    disk = tmp_path / "on-a-disk"
    disk.touch(0o600)
    os.truncate(disk, 16 << 20)
    with open(memory, "wb") as f:
        f.truncate(16 << 20)
    os.chmod(memory, 0o644)
    for path, why in ((disk, "is on a disk"), (memory, "others can read or write it"), ("/dev/null", "is no memory: it has no size"),
                      ("/dev/flightrec_mem.missing", "cannot open /dev/flightrec_mem.missing")):
        d = recorder("-e", "dummy", "--ring-memory", path)
        assert "RingMemory= is not used" in d.text_status() and why in d.text_status()
        d.stop()
    os.unlink(memory)
    d = recorder("-e", "dummy", "--ring-memory", memory, "-M", "16M")
    (tmp_path / "other").mkdir()
    second = recorder("-e", "dummy", "--ring-memory", memory, directory=tmp_path / "other")
    assert "one recorder at a time" in second.text_status()
    second.stop()
    assert d.status()["ring"]["memory"]["path"] == memory


def test_memory_without_room_is_reported(recorder, tmpfs):
    """The file system of the memory is smaller than the ring. (A store into a hole of its file would be a SIGBUS.)"""
    small = tmpfs("8m")
    d = recorder("-e", "dummy", "--ring-memory", small / "ring", "-M", "32M")
    assert "there is no room for the 32.0M" in d.text_status() and not (small / "ring").exists()


def test_a_start_that_fails_leaves_nothing_to_rescue(recorder, memory, state_dir):
    for _ in range(2):
        failed = run(program("flightrecd"), "-e", "cpu-clock", "--ring-memory", memory, "-M", "16M", "-o", state_dir, "--", "/nonexistent")
        assert failed.code != 0 and "history" not in failed.err, failed
    d = recorder("-e", "dummy", "--ring-memory", memory)
    assert not d.samples() and "history" not in d.log()


def test_symbols_of_the_crashed_kernel(recorder, memory, next_boot, tmp_path):
    """The dump has a file with the symbols of its kernel, which is removed with the dump. A merge leaves a dump of another boot."""
    d = recorder("-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "32M", "--ring-memory", memory)
    load("syscalls", "-n", 300000)
    time.sleep(0.3)
    copy, _ = crash(d, memory)
    after = tmp_path / "after"
    after.mkdir()
    d = recorder("-e", "cpu-clock", "--ring-memory", copy, directory=after, **next_boot())
    sample, = d.samples()
    kallsyms = sample.with_name(sample.name + ".kallsyms")
    assert any(line.endswith(" T _text") for line in kallsyms.read_text().splitlines())
    out = perf("report", "-i", sample, "--stdio", "--kallsyms", kallsyms, "--sort", "sym").out
    assert "do_syscall_64" in out or "entry_SYSCALL_64" in out, out
    info = must(program("flightrecctl"), "info", sample).out
    assert "machine-crash" in info and "about the last 60ms before it are missing" in info and f" {kallsyms}\n" in info, info
    merged = d.finish()
    assert merged.exists() and sample.exists() and kallsyms.exists()
    must(program("flightrecctl"), "rm", "-D", after, sample.name)
    assert not sample.exists() and not kallsyms.exists()
