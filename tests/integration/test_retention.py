# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk space of dumps is bounded, and a dump that has no room on the disk is not lost."""
import os
import shutil
import signal
from pathlib import Path

import pytest

from harness import EXIT, NO_LOSS, fill, getppid_calls, load, meta, perf, program, quiet_config, run, script_lines, sidecar, until

# Only the getppid() calls of the load, so that the size of a dump depends only on the load.
FILTER = 'id == 110 && COMM == "frtest-syscalls"'
CALLS = ("-e", "raw_syscalls:sys_enter", "--filter", FILTER)
CALLS_CONFIG = f"Events=raw_syscalls:sys_enter\nFilter={FILTER}\nKernelBuffer=16M\n"
CLOCK = ("-e", "cpu-clock", "-M", "4M")
TEMPORARY = ".perf.data.sample.20260101T000000.000000Z.01234567"


def state_mib():
    """Returns the approximate size, in MiB, of the side-band of all running processes. An auxiliary file and each dump have
    this side-band."""
    maps = 0
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            maps += path.read_bytes().count(b"\n")
        except OSError:  # the process has ended
            pass
    return maps * 128 >> 20


def room(tmpfs, mib):
    return tmpfs(f"{mib + 4 * state_mib()}M")


def config(tmp_path, dump, recorder="Events=cpu-clock\nRingSize=4M\n"):
    return quiet_config(tmp_path / "flightrecd.conf", f"[Recorder]\n{recorder}[Dump]\n{dump}")


def listed(d):
    return [os.path.basename(x["path"]) for x in d.ask("list")]


def dumped(d):
    """Makes a dump, and checks that it is in the recorder's directory and has its JSON. Returns its path."""
    path = d.dump_by_control()
    assert path.parent == d.directory and sidecar(path).exists()
    return path


def test_max_files(recorder, tmp_path):
    d = recorder("--config", config(tmp_path, "MaxFiles=3\n"))
    names = [dumped(d).name for _ in range(6)]
    assert listed(d) == names[3:]
    dumps = d.status()["dumps"]
    d.stop()
    assert (dumps["done"], dumps["removed"]) == (6, 3)
    left = sorted(p.name for p in d.directory.iterdir() if p.name.startswith("perf.data.sample") and p.suffix != ".jit")
    assert left == sorted(names[3:] + [n + ".json" for n in names[3:]])


def test_a_start_applies_the_limits_and_removes_temporary_files(recorder, state_dir, tmp_path):
    """A start removes the temporary files of a killed recorder. But if another recorder uses the directory, the start fails
    before it removes a file."""
    d = recorder(*CLOCK)
    names = [dumped(d).name for _ in range(4)]
    temporary = state_dir / TEMPORARY
    temporary.write_bytes(b"x" * 4096)
    r = run(program("flightrecd"), *CLOCK, "-o", state_dir, "--socket", state_dir / "other")
    assert r.code != 0 and temporary.exists(), r
    d.kill()
    assert d.socket.exists(), "the socket of a killed recorder stays, and does not keep the next one from starting"
    d = recorder("--config", config(tmp_path, "MaxFiles=2\n"))
    until("two dumps left", lambda: listed(d) == names[2:])
    assert not temporary.exists()


def test_max_use(recorder, tmp_path):
    d = recorder("--config", config(tmp_path, "MaxUse=1M\n", CALLS_CONFIG + "RingSize=16M\n"))
    load("syscalls", "-n", 100000)
    paths = [dumped(d) for _ in range(6)]
    use = sum(p.stat().st_blocks * 512 for p in d.directory.glob("perf.data.sample.*"))
    assert paths[-1].exists()
    assert use <= 1 << 20 or d.samples() == [paths[-1]], use


def test_vacuum_and_rm(recorder, state_dir):
    """Both verbs work while a recorder runs and without a recorder."""
    d = recorder(*CLOCK)
    names = [dumped(d).name for _ in range(5)]
    r = d.ctl("rm", names[1], state_dir / names[3])
    assert r.code == 0 and names[1] in r.out and "2 dumps removed, " in r.out, r
    assert listed(d) == [names[0], names[2], names[4]]
    assert d.ctl("rm", "perf.data.auxiliary").code == EXIT["error"]
    assert d.ctl("rm", names[1]).code == EXIT["error"]
    assert d.ask("vacuum", "--max-files", "2")["removed"] == [names[0]]
    assert d.ctl("vacuum", "--max-age", "1us", "--max-use=0").code == 0
    assert not d.samples()
    names = [dumped(d).name for _ in range(3)]
    d.stop()

    def ctl(*args):
        return run(program("flightrecctl"), "--socket", state_dir / "none", "-D", state_dir, *args)

    assert ctl("rm", names[0]).code == 0
    r = ctl("vacuum", "--max-files=1", "--keep-free=0")
    assert r.code == 0 and names[1] in r.out and "1 dump removed, " in r.out, r
    assert [p.name for p in d.samples()] == [names[2]]
    assert "1 dump in" in ctl("list").out


def test_a_refused_dump_is_written_when_there_is_room(recorder, tmpfs):
    """If several dumps failed, the newest of them is kept. Its frames stay in the ring, and recording goes on without a
    loss."""
    path = room(tmpfs, 48)
    d = recorder(*NO_LOSS, *CALLS, "-M", "8M", "--no-compression", directory=path)
    did = load("syscalls", "-n", 100000)
    ballast = path / "ballast"
    fill(ballast)
    for reason in ("first", "refused"):
        r = d.ctl("dump", "--reason", reason)
        assert r.code == EXIT["no-space"] and "stays in memory" in r.err, r
    assert [line for line in r.err.splitlines() if line.startswith("  ")], "the message says what to do next"
    assert not d.samples() and not list(path.glob(".perf*"))
    status = d.status()
    assert (status["dumps"]["failed"], status["dumps"]["given_up"]) == (2, 1) and "kept" in status["dumps"]
    assert status["ring"]["pinned"] > 0
    assert status["losses"].get("failed-dump", 0) == 0, "the ring, and the second dump, have all that the first had"
    assert "1 failed dump is kept (" in d.text_status()
    # The ring evicts all other frames, several times over. The kept dump still exists, and the recorder has lost nothing.
    evicted = status["ring"]["evicted_samples"]
    until("eviction", lambda: load("syscalls", "-t", "1") and d.status()["ring"]["evicted_samples"] > evicted + 2500000, 300)
    assert d.status()["ring"]["dropped_samples"] == 0
    ballast.unlink()
    assert d.ctl("vacuum", "--keep-free=0", "--max-use=0").code == 0
    rescued = d.until_dumped()
    assert meta(rescued)["cause"]["reason"] == "refused"
    assert len(getppid_calls(rescued, did)) == 100000
    status = until("rescued dump in status", lambda: (s := d.status())["dumps"]["rescued"] == 1 and s)
    assert "kept" not in status["dumps"] and status["ring"]["pinned"] == 0
    assert status["losses"]["failed-dump"] == 0


@pytest.mark.waits
def test_a_kept_dump_is_tried_again_by_itself(recorder, tmpfs):
    path = room(tmpfs, 16)
    d = recorder(*CLOCK, directory=path)
    fill(path / "ballast")
    assert d.ctl("dump").code == EXIT["no-space"]
    (path / "ballast").unlink()
    d.until_dumped()


def test_older_dumps_make_room(recorder, tmpfs, tmp_path):
    """A dump does not fail on a full file system as long as an older dump can be removed."""
    path = room(tmpfs, 24)
    conf = config(tmp_path, "KeepFree=0\nMaxUse=0\nCompression=no\n", CALLS_CONFIG + "RingSize=4M\n")
    d = recorder("--config", conf, directory=path)
    load("syscalls", "-n", 30000)
    paths = [dumped(d) for _ in range(12)]
    assert paths[-1].exists() and not paths[0].exists()
    assert d.status()["dumps"]["failed"] == 0


def test_a_last_dump_that_is_refused(recorder, tmpfs, tmp_path):
    """A SIGUSR2 while the disk is full ends the recorder with the exit code for a lack of space. The earlier dumps remain, and
    are merged."""
    path = room(tmpfs, 64)
    conf = config(tmp_path, "KeepFree=0\nMaxUse=0\nCompression=no\n", CALLS_CONFIG + "RingSize=16M\n")
    d = recorder("--config", conf, directory=path)
    before = load("syscalls", "-n", 20000)
    dumped(d)
    # Run the load again if a busy machine delayed the recorder so long that the kernel ring was full.
    until("300,000 calls", lambda: load("syscalls", "-n", 300000) and d.status()["ring"]["samples"] > 300000)
    ballast = path / "ballast"
    fill(ballast)
    os.truncate(ballast, ballast.stat().st_size - (16 + 2 * state_mib() << 20))  # the dump would need about 35 MiB
    d.signal(signal.SIGUSR2)
    assert d.wait(300) == EXIT["no-space"], d.log()
    assert "dump failed" in d.log()
    assert len(getppid_calls(path / "perf.data", before)) == 20000


def test_keep_failed_can_be_switched_off(recorder, tmpfs, tmp_path):
    path = room(tmpfs, 16)
    d = recorder("--config", config(tmp_path, "KeepFailed=no\n"), directory=path)
    fill(path / "ballast")
    r = d.ctl("dump")
    assert r.code == EXIT["no-space"] and "kept" not in r.err
    status = d.status()
    assert "kept" not in status["dumps"] and status["ring"]["pinned"] == 0


@pytest.mark.parametrize("removed", [False, True], ids=["renamed", "removed"])
def test_dumps_follow_the_path_of_the_directory(recorder, state_dir, tmp_path, removed):
    """Dumps and the auxiliary file are written to the directory that now has the path."""
    conf = config(tmp_path, "CacheObjects=1G\n", CALLS_CONFIG + "RingSize=16M\n")
    d = recorder("--config", conf, socket_path=tmp_path / "control")
    load("syscalls", "-n", "1000")
    first = dumped(d)
    moved = tmp_path / "moved"
    state_dir.rename(moved)
    if removed:  # tries several times, because the recorder may still copy object files into the directory
        until("removed directory", lambda: shutil.rmtree(moved, ignore_errors=True) or not moved.exists())
    r = d.ctl("dump", "--reason", "nowhere")
    assert r.code != 0 and not r.out and "make the directory again" in r.err and "stays in memory" in r.err, r
    again = d.ctl("dump", "--reason", "nowhere again")
    assert again.code != 0 and not again.out, again
    assert d.status()["losses"].get("failed-dump", 0) == 0, "the ring has all samples"
    state_dir.mkdir()
    assert len(script_lines(dumped(d))) >= 1000
    until("the dump that was kept", lambda: len(d.samples()) == 2)
    until("copies of object files", lambda: list(state_dir.glob("debug/.build-id/*/*")))
    auxiliary = state_dir / "perf.data.auxiliary"
    until("the auxiliary file", lambda: auxiliary.exists() or not load("spawn", "-n", 5, "-m", 1))
    assert d.ctl("vacuum", "--max-files=1").code == 0 and len(d.samples()) == 1
    assert "another directory than before" in d.log()
    assert removed or (moved / first.name).exists()
    assert len(script_lines(d.finish())) >= 1000


def test_the_auxiliary_file_is_made_again(recorder):
    d = recorder(*CLOCK)
    auxiliary = d.directory / "perf.data.auxiliary"
    auxiliary.unlink()
    until("a new auxiliary file", auxiliary.exists)
    assert perf("report", "-i", auxiliary, "--stdio").code == 0
    assert d.finish().exists()
