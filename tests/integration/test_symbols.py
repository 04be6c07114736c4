# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbols that survive: of code that a process made as it ran, of files that are gone or another, of BPF programs."""
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness import cpu_seconds, finish_load, load, must, perf, perf_clean, program, run, sidecar, start_load, start, until

PROFILE = ("-e", "cpu-clock", "-F", "999", "-g")
SAMPLE = re.compile(r"^\s*(?P<time>\d+\.\d{9}):\s+[0-9a-f]+ (?P<sym>.*?)(?:\+0x[0-9a-f]+)? \((?P<dso>.*)\)$")


def samples(path, pid, *perf_args):
    """(time in ns, symbol, object) of each sample of a process, innermost frame."""
    r = perf(*perf_args, "script", "-i", path, "--pid", str(pid), "--ns", "-G", "-F", "time,ip,sym,dso")
    assert r.code == 0, r.err
    found = [SAMPLE.match(line) for line in r.out.splitlines()]
    assert found and all(found), f"lines that are none: {[line for line, m in zip(r.out.splitlines(), found) if not m][:3]}"
    return [(int(m["time"].replace(".", "")), m["sym"], m["dso"]) for m in found]


def jit_load(*args):
    if run(program("frtest-jit"), "-t", "0.01").code == 77:
        pytest.skip("no machine code for this processor")
    return start_load("jit", "-t", "7200", *args)


def until_ran(*processes):
    """So much of a CPU more that hundreds of samples are sure."""
    had = [cpu_seconds(p.pid) for p in processes]
    for p, before in zip(processes, had):
        until("CPU time of a load", lambda p=p, before=before: p.poll() is not None or cpu_seconds(p.pid) > before + 0.8, 120)


def user(found):
    return [s for s in found if "[kernel" not in s[2]]


def judge_map(path, pid, most):
    found = user(samples(path, pid))
    count = Counter(sym for _, sym, _ in found)
    assert count["frtest_jit_one"] > most / 10 and count["frtest_jit_two(int, char)"] > most / 10, count
    assert sum(n for sym, n in count.items() if sym.startswith("frtest_jit")) >= 0.98 * len(found), count


def judge_dump(path, pid, turn_ns):
    found = user(samples(path, pid))
    named = [s for s in found if s[1].startswith("frtest_jit")]
    assert len(named) >= 0.98 * len(found), Counter(s[1] for s in found)
    for when, sym, _ in named:
        # The second takes the first one's place within a millisecond after the turn is told.
        if abs(when - turn_ns) > 1000000:
            assert sym == ("frtest_jit_first" if when < turn_ns else "frtest_jit_second"), (when, turn_ns)
    assert {sym for _, sym, _ in named} == {"frtest_jit_first", "frtest_jit_second"}


def test_jit_code_has_its_names_when_the_process_and_its_files_are_gone(recorder, tmp_path):
    d = recorder(*PROFILE)
    loads = mapped, dumped = jit_load(), jit_load("-d", tmp_path)
    until_ran(*loads)
    for p in loads:
        p.terminate()  # to its second function
    until_ran(*loads)
    sample = d.dump_by_control()
    for p in loads:
        p.terminate()
    told = finish_load(mapped), finish_load(dumped)
    assert not Path(f"/tmp/perf-{told[0]['pid']}.map").exists() and not list(tmp_path.glob("jit-*.dump"))
    jit = json.loads(sidecar(sample).read_text())["jit"]
    assert jit.pop("bytes") == sum(p.stat().st_size for p in Path(f"{sample}.jit").iterdir())
    assert jit == {"objects": 2, "functions": 4, "cut": 0}
    judge_map(sample, told[0]["pid"], 2000)
    judge_dump(sample, told[1]["pid"], told[1]["turn_ns"])
    merged = d.finish()
    assert not list(d.directory.glob("perf.data.sample.*")), "the objects went with their dump"
    assert len(list((d.directory / "perf.data.jit").iterdir())) == 2
    judge_map(merged, told[0]["pid"], 2000)
    judge_dump(merged, told[1]["pid"], told[1]["turn_ns"])


@pytest.mark.parametrize("end", ["crash", "removed"])
def test_jit_code_of_a_process_that_exited_before_the_dump(recorder, end):
    """Its perf map is open since the process made code, so that neither has to be there any more."""
    d = recorder(*PROFILE)
    p = jit_load()
    until_ran(p)
    p.terminate()
    until_ran(p)
    if end == "crash":
        p.kill()
        p.wait()
    else:
        p.terminate()
        finish_load(p)
    path = Path(f"/tmp/perf-{p.pid}.map")
    assert path.exists() == (end == "crash")
    try:
        sample = d.dump_by_control()
    finally:
        path.unlink(missing_ok=True)
    judge_map(sample, p.pid, 1000)
    judge_map(d.finish(), p.pid, 1000)


def test_jit_code_in_a_dump_that_had_to_wait(recorder, state_dir, tmp_path):
    """A dump that could not be written has more than the ring: what ended in it is held for it, too."""
    d = recorder("-e", "raw_syscalls:sys_enter", "--filter", "id == 110", *PROFILE, "-M", "2M", socket_path=tmp_path / "control")
    p = jit_load()
    until_ran(p)
    p.terminate()
    until_ran(p)
    p.terminate()
    finish_load(p)
    state_dir.rename(tmp_path / "moved")
    r = d.ctl("dump")
    assert "kept in memory" in r.err, r
    until("the ring to have forgotten it", lambda: load("syscalls", "-n", 200000) and
          d.status()["ring"]["evicted_samples"] > 1000000)
    (tmp_path / "moved").rename(state_dir)
    d.ctl("vacuum")
    until("the dump", d.samples)
    found = Counter(sym for _, sym, _ in user(samples(d.samples()[0], p.pid)))
    assert sum(n for sym, n in found.items() if sym.startswith("frtest_jit")) >= 0.9 * found.total(), found


def test_perf_map_of_somebody_else_does_not_count(recorder):
    """A file in /tmp that neither the process's user nor root has put there."""
    d = recorder(*PROFILE)
    p = jit_load()
    path = Path(f"/tmp/perf-{p.pid}.map")
    until("perf map", path.exists)
    os.chown(path, 65534, 65534)
    until_ran(p)
    sample = d.dump_by_control()
    for _ in range(2):
        p.terminate()
        until_ran(p)
    finish_load(p)
    assert "jit" not in json.loads(sidecar(sample).read_text())
    assert not [s for s in samples(sample, p.pid) if s[1].startswith("frtest_jit")]


def test_a_container_that_is_gone_has_no_names_of_the_host(recorder, tmp_path):
    """Its files are gone with it: what cannot be copied is counted, and the host's file of that path is another."""
    config, place = tmp_path / "cache.conf", tmp_path / "place"
    config.write_text("[Recorder]\nKernelBuildIDs=no\n[Dump]\nCacheObjects=512M\n")
    place.mkdir()
    shutil.copy2(program("frtest-syscalls"), place / "app")
    d = recorder("--config", config, *PROFILE)
    inside = f"mount -t tmpfs none {place} && cp {program('frtest-burn')} {place}/app && exec {place}/app -u 0.5"
    p = start("unshare", "--mount", "sh", "-c", inside, stdout=subprocess.DEVNULL)
    assert p.wait() == 0
    sample = d.dump_by_control()
    until("what was looked for", lambda: objects(d)["missed"] > 0)
    found = Counter(sym for _, sym, dso in samples(sample, p.pid, "--buildid-dir", d.directory / "debug") if str(place) in dso)
    assert set(found) == {"[unknown]"} and found["[unknown]"] > 100, found
    assert not list((d.directory / "debug").glob("**/app/*/elf"))


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    shutil.copy2(program("frtest-burn"), path)
    return path


def objects(d):
    return d.status()["objects"]


@pytest.mark.parametrize("outcome", ["deleted", "replaced", "never-there"])
def test_a_file_that_is_gone_resolves_from_its_copy(recorder, victim, tmp_path, outcome):
    config = tmp_path / "cache.conf"
    config.write_text("[Dump]\nCacheObjects=512M\n")
    d = recorder("--config", config, *PROFILE)
    argv = [victim]
    if outcome == "never-there":
        memfd = f"import os; fd = os.memfd_create('victim'); os.write(fd, open('{victim}', 'rb').read()); os.execve(fd, ['victim', '-t', '3600'], {{}})"
        argv = [sys.executable, "-c", memfd]
    p = start(*argv, "-t", "3600", stdout=subprocess.DEVNULL)
    until_ran(p)
    # Deleted before the dump: what the process has mapped is still there.
    victim.unlink()
    if outcome == "replaced":
        shutil.copy2(program("frtest-syscalls"), victim)
    sample = d.dump_by_control()
    until("copies", lambda: objects(d)["added"] > 0)
    p.kill()
    p.wait()
    debug = d.directory / "debug"
    hot = [s for s in samples(sample, p.pid, "--buildid-dir", debug) if s[1] == "frtest_burn_hot"]
    assert len(hot) >= 0.9 * len(user(samples(sample, p.pid))) > 0
    for link in (debug / ".build-id").glob("*/*"):
        assert link.is_symlink() and link.resolve().is_relative_to(debug.resolve()) and link.exists()
    assert str(debug) in must(program("flightrecctl"), "info", sample).out


@pytest.mark.parametrize("how", (os.rename, shutil.copyfile))
def test_no_names_of_a_file_that_has_taken_the_path(recorder, victim, tmp_path, how):
    """Without the kernel's build-ids a map record has a path, which a reader opens: an upgrade in place is another file, or (cp) the
    same one with other content. No names are better than wrong ones, and the new file's own processes keep theirs, in the dump
    and in the merge."""
    config, new = tmp_path / "ids.conf", tmp_path / "new"
    config.write_text("[Recorder]\nKernelBuildIDs=no\n")
    d = recorder("--config", config, *PROFILE)
    old_id = re.search(r"Build ID: (\w+)", must("readelf", "-n", victim).out)[1]
    old = start(victim, "-u", "0.4", stdout=subprocess.DEVNULL)
    old.wait()
    d.until_sampled("cpu-clock", 300)
    shutil.copy2(program("frtest-syscalls"), new)
    how(new, victim)
    newer = start(victim, "-t", "1", stdout=subprocess.DEVNULL)
    newer.wait()
    sample = d.dump_by_control()
    ids = dict(reversed(line.split(None, 1)) for line in perf_clean("buildid-list", "-i", sample).splitlines())
    assert ids.get(f"{victim} (deleted)", old_id) == old_id != ids[str(victim)]
    for path in sample, None:
        path = path or d.finish()
        found = Counter(sym for _, sym, dso in samples(path, old.pid) if "victim" in dso)
        assert set(found) == {"[unknown]"} and found["[unknown]"] > 100, (path, found)
        assert any(sym == "frtest_getppid" for _, sym, _ in samples(path, newer.pid)), path


def test_a_recorder_without_its_cache_goes_on(recorder, state_dir, tmp_path):
    """debug/ as a symbolic link is somebody's trap, or an administrator's wish: neither is followed, and neither ends the recorder."""
    config, elsewhere = tmp_path / "cache.conf", tmp_path / "elsewhere"
    config.write_text("[Dump]\nCacheObjects=512M\n")
    elsewhere.mkdir()
    (state_dir / "debug").symlink_to(elsewhere)
    d = recorder("--config", config, *PROFILE)
    must(program("frtest-burn"), "-u", "0.1")
    assert d.dump_by_control().exists() and "objects" not in d.status()
    said = [text for text in d.status()["notices"] if "copies of object files" in text]
    assert len(said) == 1 and "debug" in said[0] and "CacheObjects=no" in said[0] and said[0] in d.ctl("status").out
    assert not list(elsewhere.iterdir())


def test_cached_objects_are_bounded(recorder, victim, tmp_path):
    config = tmp_path / "cache.conf"
    config.write_text("[Dump]\nCacheObjects=1M\nCacheObjectMax=512K\n")
    d = recorder("--config", config, *PROFILE)
    for _ in range(2):
        must(victim, "-u", "0.3")
        d.dump_by_control()
    until("objects that do not fit", lambda: objects(d)["missed"] > 0)
    used = sum(p.stat().st_size for p in (d.directory / "debug").rglob("*") if p.is_file() and not p.is_symlink())
    assert used <= 1 << 20 and objects(d)["bytes"] <= 1 << 20


def test_bpf_programs_are_listed_and_named(recorder):
    d = recorder(*PROFILE)
    p = start_load("bpf", "3600")
    until_ran(p)
    if p.poll() == 77:
        pytest.skip("BPF is not permitted")
    sample = d.dump_by_control()
    p.terminate()
    told = finish_load(p)
    head = perf_clean("report", "--header-only", "-I", "-i", sample)
    assert re.search(rf"bpf_prog_info {told['prog']}:", head), head[-2000:]
    named = Counter(s[1] for s in samples(sample, told["pid"]))
    assert any(re.match(r"bpf_prog_[0-9a-f]{16}_frtest_bpf", sym) for sym in named), named.most_common(8)


def test_objects_without_an_own_file_have_their_ids_or_names(recorder):
    d = recorder(*PROFILE)
    must(program("frtest-burn"), "-u", "0.3")
    sample = d.dump_by_control()
    ids = {line.split()[1] for line in perf_clean("buildid-list", "-i", sample).splitlines()}
    assert "[kernel.kallsyms]" in ids or not d.status().get("kernel", True)
    # Without an id perf takes the running kernel's; with one it looks for a file, which only CacheObjects= makes.
    assert "[vdso]" not in ids and any(path.endswith("/frtest-burn") for path in ids)
