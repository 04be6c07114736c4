# SPDX-License-Identifier: GPL-2.0-or-later
"""What dumps take of the disk is bounded, and a dump that the disk refuses is not lost."""
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from harness import EXIT, NO_LOSS, fill, load, program, run, script_lines, sidecar, until

# What others of this machine call is in no dump, which are as large as the load makes them.
CALLS = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 110")
CALLS_CONFIG = "Events=raw_syscalls:sys_enter\nFilter=id == 110\nKernelBuffer=16M\n"
CLOCK = ("-e", "cpu-clock", "-M", "4M")


def state_mib():
    """About what the processes of this machine take in an auxiliary file, and in each dump."""
    maps = 0
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            maps += path.read_bytes().count(b"\n")
        except OSError:  # it has ended
            pass
    return maps * 128 >> 20


def room(tmpfs, mib):
    return tmpfs(f"{mib + 4 * state_mib()}M")


def config(tmp_path, dump, recorder="Events=cpu-clock\nRingSize=4M\n"):
    path = tmp_path / "flightrecd.conf"
    path.write_text(f"[Recorder]\n{recorder}[Dump]\n{dump}")
    return path


def listed(d):
    return [os.path.basename(x["path"]) for x in json.loads(d.ctl("list", "--json=short").out)]


def test_max_files(recorder, tmp_path):
    d = recorder("--config", config(tmp_path, "MaxFiles=3\n"))
    names = [d.dump_by_control().name for _ in range(6)]
    assert listed(d) == names[3:]
    dumps = d.status()["dumps"]
    d.stop()
    assert (dumps["done"], dumps["removed"]) == (6, 3)
    left = sorted(p.name for p in d.directory.iterdir() if p.name.startswith("perf.data.sample") and p.suffix != ".jit")
    assert left == sorted(names[3:] + [n + ".json" for n in names[3:]])


def test_limits_at_the_start(recorder, state_dir, tmp_path):
    """What an older run left counts, and what a killed one left half-done goes."""
    d = recorder(*CLOCK)
    names = [d.dump_by_control().name for _ in range(4)]
    d.kill()
    (state_dir / ".perf.data.sample.20260101T000000.000000Z.01234567").write_bytes(b"x" * 4096)
    d = recorder("--config", config(tmp_path, "MaxFiles=2\n"))
    until("order", lambda: listed(d) == names[2:])
    assert not list(state_dir.glob(".perf.data.sample*"))
    d.stop()


def test_a_temporary_file_of_a_living_one_stays(recorder, state_dir):
    """A second recorder on the same directory is refused before it tidies up."""
    d = recorder(*CLOCK)
    d.dump_by_control()  # by then it has tidied up itself
    temporary = state_dir / ".perf.data.sample.20260101T000000.000000Z.01234567"
    temporary.write_bytes(b"x")
    r = run(program("flightrecd"), *CLOCK, "-o", state_dir, "--socket", state_dir / "other")
    assert r.code != 0 and temporary.exists(), r
    d.stop()


def test_max_use_and_age(recorder, tmp_path):
    d = recorder("--config", config(tmp_path, "MaxUse=1M\n", CALLS_CONFIG + "RingSize=16M\n"))
    load("syscalls", "-n", 100000)
    paths = [d.dump_by_control() for _ in range(6)]
    use = sum(p.stat().st_blocks * 512 for p in d.directory.glob("perf.data.sample.*"))
    assert paths[-1].exists()
    assert use <= 1 << 20 or d.samples() == [paths[-1]], use
    d.stop()


def test_vacuum_and_rm(recorder, state_dir):
    d = recorder(*CLOCK)
    names = [d.dump_by_control().name for _ in range(5)]
    r = d.ctl("rm", names[1], state_dir / names[3])
    assert r.code == 0 and names[1] in r.out, r
    assert listed(d) == [names[0], names[2], names[4]]
    assert d.ctl("rm", "perf.data.auxiliary").code == EXIT["error"]
    assert d.ctl("rm", names[1]).code == EXIT["error"]
    r = d.ctl("vacuum", "--max-files", "2", "--json=short")
    assert json.loads(r.out)["removed"] == [names[0]], r
    assert d.ctl("vacuum", "--max-age", "1us", "--max-use=0").code == 0
    assert not d.samples()
    names = [d.dump_by_control().name for _ in range(3)]
    d.stop()

    def ctl(*args):
        return run(program("flightrecctl"), "--socket", state_dir / "none", "-D", state_dir, *args)

    assert ctl("rm", names[0]).code == 0
    r = ctl("vacuum", "--max-files=1", "--keep-free=0")
    assert r.code == 0 and names[1] in r.out, r
    assert [p.name for p in d.samples()] == [names[2]]
    r = ctl("list")
    assert "1 dump in" in r.out


def calls(path, pid):
    return sum(line.tid == pid and line.trace.startswith("NR 110 ") for line in script_lines(path))


def test_a_refused_dump_is_written_when_there_is_room(recorder, tmpfs):
    path = room(tmpfs, 48)
    d = recorder(*NO_LOSS, *CALLS, "-M", "16M", "--no-compression", directory=path)
    did = load("syscalls", "-n", 100000)
    ballast = path / "ballast"
    fill(ballast)
    r = d.ctl("dump", "--reason", "refused")
    assert r.code == EXIT["no-space"] and "kept in memory" in r.err, r
    assert not d.samples() and not list(path.glob(".perf*"))
    status = d.status()
    assert status["dumps"]["failed"] == 1 and "kept" in status["dumps"] and status["ring"]["pinned"] > 0
    assert "1 dump waits for space" in d.ctl("status", "--no-pager").out
    # The ring goes around it: several laps later it is still there, and recording has not lost anything.
    evicted = status["ring"]["evicted_samples"]
    until("laps", lambda: load("syscalls", "-t", "1") and d.status()["ring"]["evicted_samples"] > evicted + 5000000, 300)
    assert d.status()["ring"]["dropped_samples"] == 0
    ballast.unlink()
    assert d.ctl("vacuum", "--keep-free=0", "--max-use=0").code == 0
    rescued = until("the file", d.samples)[0]
    until("its JSON", sidecar(rescued).exists)
    meta = json.loads(sidecar(rescued).read_text())
    assert meta["cause"]["reason"] == "refused"
    assert calls(rescued, did["pid"]) == 100000
    status = until("word of it", lambda: (s := d.status())["dumps"]["rescued"] == 1 and s)
    assert "kept" not in status["dumps"] and status["ring"]["pinned"] == 0
    assert status["losses"]["failed-dump"] == 0
    d.stop()


def test_it_is_tried_again_by_itself(recorder, tmpfs):
    path = room(tmpfs, 16)
    d = recorder("-e", "cpu-clock", "-M", "4M", directory=path)
    ballast = path / "ballast"
    fill(ballast)
    assert d.ctl("dump").code == EXIT["no-space"]
    ballast.unlink()
    until("the file", d.samples)
    d.stop()


def test_the_newest_refused_one_is_kept(recorder, tmpfs):
    path = room(tmpfs, 16)
    d = recorder("-e", "cpu-clock", "-M", "4M", directory=path)
    load("burn", "-t", "0.3")
    ballast = path / "ballast"
    fill(ballast)
    for reason in ("first", "second"):
        assert d.ctl("dump", "--reason", reason).code == EXIT["no-space"]
    status = d.status()
    assert status["dumps"]["given_up"] == 1, status["dumps"]
    assert status["losses"].get("failed-dump", 0) == 0, "the ring, and the newer one, have what the first had"
    ballast.unlink()
    d.ctl("vacuum", "--keep-free=0")
    sample = until("the file", d.samples)[0]
    until("its JSON", sidecar(sample).exists)
    assert json.loads(sidecar(sample).read_text())["cause"]["reason"] == "second"
    d.stop()


def test_older_dumps_make_room(recorder, tmpfs, tmp_path):
    """A full directory is no reason to fail while there is something old in it."""
    path = room(tmpfs, 24)
    conf = config(tmp_path, "KeepFree=0\nMaxUse=0\nCompression=no\n", CALLS_CONFIG + "RingSize=4M\n")
    d = recorder("--config", conf, directory=path)
    load("syscalls", "-n", 30000)
    paths = [d.dump_by_control() for _ in range(12)]
    assert paths[-1].exists() and not paths[0].exists()
    assert d.status()["dumps"]["failed"] == 0
    d.stop()


def test_a_last_dump_that_is_refused(recorder, tmpfs, tmp_path):
    """USR2 on a full disk: an error and its exit code; the earlier files do not go for it, and are merged."""
    path = room(tmpfs, 64)
    conf = config(tmp_path, "KeepFree=0\nMaxUse=0\nCompression=no\n", CALLS_CONFIG + "RingSize=16M\n")
    d = recorder("--config", conf, directory=path)
    before = load("syscalls", "-n", 20000)
    d.dump_by_control()
    load("syscalls", "-n", 300000)
    fill(path / "ballast")
    os.truncate(path / "ballast", (path / "ballast").stat().st_size - (16 + 2 * state_mib() << 20))  # of some 35M that it needs
    d.signal(signal.SIGUSR2)
    assert d.wait(300) == EXIT["no-space"], d.log()
    assert "dump failed" in d.log()
    assert calls(path / "perf.data", before["pid"]) == 20000


def test_keep_failed_can_be_switched_off(recorder, tmpfs, tmp_path):
    path = room(tmpfs, 16)
    d = recorder("--config", config(tmp_path, "KeepFailed=no\n"), directory=path)
    fill(path / "ballast")
    r = d.ctl("dump")
    assert r.code == EXIT["no-space"] and "kept" not in r.err
    status = d.status()
    d.stop()
    assert "kept" not in status["dumps"] and status["ring"]["pinned"] == 0


def dumped(d):
    """A dump of now, at the path that was printed."""
    path = d.dump_by_control()
    assert path.parent == d.directory and sidecar(path).exists()
    return path


@pytest.mark.parametrize("removed", [False, True], ids=["renamed", "removed"])
def test_the_directory_is_made_again(recorder, state_dir, tmp_path, removed):
    """The path is what counts: a dump goes to what it names now, and the auxiliary file follows."""
    conf = config(tmp_path, "CacheObjects=1G\n", CALLS_CONFIG + "RingSize=16M\n")
    d = recorder("--config", conf, socket_path=tmp_path / "control")
    load("syscalls", "-n", "1000")
    first = dumped(d)
    moved = tmp_path / "moved"
    state_dir.rename(moved)
    if removed:  # while copies of object files may still be written to it
        until("the end of it", lambda: shutil.rmtree(moved, ignore_errors=True) or not moved.exists())
    r = d.ctl("dump", "--reason", "nowhere")
    assert r.code != 0 and not r.out and "make it again" in r.err and "kept in memory" in r.err, r
    again = d.ctl("dump", "--reason", "nowhere again")
    assert again.code != 0 and not again.out, again
    assert d.status()["losses"].get("failed-dump", 0) == 0, "the ring has all of it"
    state_dir.mkdir()
    second = dumped(d)
    assert len(script_lines(second)) >= 1000
    until("the one that was kept", lambda: len(d.samples()) == 2)
    until("copies of object files", lambda: list(state_dir.glob("debug/.build-id/*/*")))
    auxiliary = state_dir / "perf.data.auxiliary"
    until("the auxiliary file", lambda: auxiliary.exists() or not load("spawn", "-n", 5, "-m", 1))
    assert d.ctl("vacuum", "--max-files=1").code == 0 and len(d.samples()) == 1
    assert "another directory than before" in d.log()
    assert removed or (moved / first.name).exists()
    merged = d.finish()
    assert len(script_lines(merged)) >= 1000


def test_the_auxiliary_file_is_made_again(recorder):
    d = recorder(*CLOCK)
    auxiliary = d.directory / "perf.data.auxiliary"
    auxiliary.unlink()
    until("a new one", auxiliary.exists)
    assert run("perf", "report", "-i", auxiliary, "--stdio").code == 0
    merged = d.finish()
    assert merged.exists()
