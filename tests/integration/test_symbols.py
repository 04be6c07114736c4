# SPDX-License-Identifier: GPL-2.0-or-later
"""perf finds the symbols of run-time code (JIT), of files that are gone or replaced, and of BPF programs, also when the
processes are gone."""
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness import (end, finish_load, load, meta, must, perf, perf_clean, program, quiet_config, run, start, start_load, until,
                     until_ran)

PROFILE = ("-e", "cpu-clock", "-F", "999", "--call-graph=fp")
SAMPLE = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<time>\d+\.\d{9}):\s+[0-9a-f]+ (?P<sym>.*?)(?:\+0x[0-9a-f]+)? \((?P<dso>.*)\)$")


def samples(path, pid, *perf_args):
    """Returns, for each sample of a process, (time in ns, symbol, object) of its innermost stack frame. Leaves out the samples
    from before the exec of its program, when it is a copy of this Python process."""
    r = perf(*perf_args, "script", "-i", path, "--pid", str(pid), "--ns", "-G", "-F", "comm,time,ip,sym,dso")
    assert r.code == 0, r.err
    found = [SAMPLE.match(line) for line in r.out.splitlines()]
    assert found and all(found), f"unknown lines: {[line for line, m in zip(r.out.splitlines(), found) if not m][:3]}"
    return [(int(m["time"].replace(".", "")), m["sym"], m["dso"]) for m in found if not m["comm"].startswith(("python", "pytest"))]


def jit_load(*args):
    if run(program("frtest-jit"), "-t", "0.01").code == 77:
        pytest.skip("no machine code for this processor")
    return start_load("jit", "-t", "7200", *args)


def cache_config(tmp_path, dump, recorder=""):
    return quiet_config(tmp_path / "cache.conf", f"[Recorder]\n{recorder}[Dump]\n{dump}")


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
        # The second function replaces the first within a millisecond after turn_ns. The load has printed turn_ns.
        if abs(when - turn_ns) > 1000000:
            assert sym == ("frtest_jit_first" if when < turn_ns else "frtest_jit_second"), (when, turn_ns)
    assert {sym for _, sym, _ in named} == {"frtest_jit_first", "frtest_jit_second"}


def functions_in(obj):
    return must("readelf", "-Ws", obj).out.count(" FUNC ")


def objects_of(path, loads):
    """Checks that each load in LOADS has one object beside the file, with both functions of the load."""
    for did in loads:
        obj, = Path(f"{path}.jit").glob(f"jitted-{did['pid']}-*.so")
        assert functions_in(obj) == 2, obj


def test_run_time_code_has_its_names_when_the_process_and_its_files_are_gone(recorder, tmp_path):
    d = recorder(*PROFILE)
    loads = mapped, dumped = jit_load(), jit_load("-d", tmp_path)
    until_ran(*loads, seconds=0.4)
    for p in loads:
        p.terminate()  # at the first SIGTERM, the load changes to its second function
    until_ran(*loads, seconds=0.4)
    sample = d.dump_by_control()
    for p in loads:
        p.terminate()
    did = finish_load(mapped), finish_load(dumped)
    assert not Path(f"/tmp/perf-{did[0]['pid']}.map").exists() and not list(tmp_path.glob("jit-*.dump"))
    objects_of(sample, did)
    # Other processes on the machine may also have run-time code.
    jit, files = meta(sample)["jit"], list(Path(f"{sample}.jit").iterdir())
    assert jit["objects"] == len(files) and jit["bytes"] == sum(p.stat().st_size for p in files)
    assert jit["functions"] == sum(map(functions_in, files)) >= 4
    judge_map(sample, did[0]["pid"], 1000)
    judge_dump(sample, did[1]["pid"], did[1]["turn_ns"])
    merged = d.finish()
    assert not list(d.directory.glob("perf.data.sample.*")), "the objects went with their dump"
    objects_of(merged, did)
    judge_map(merged, did[0]["pid"], 1000)
    judge_dump(merged, did[1]["pid"], did[1]["turn_ns"])


@pytest.mark.parametrize("how", ["crash", "removed"])
def test_run_time_code_of_a_process_that_exited_before_the_dump(recorder, how):
    """The tracker opens the perf map when the process makes code, and keeps it open. So neither the process nor the file has to
    exist when the dump is made."""
    d = recorder(*PROFILE)
    p = jit_load()
    until_ran(p, seconds=0.4)
    p.terminate()
    until_ran(p, seconds=0.4)
    if how == "crash":
        end(p)
    else:
        finish_load(p, stop=True)
    path = Path(f"/tmp/perf-{p.pid}.map")
    assert path.exists() == (how == "crash")
    try:
        sample = d.dump_by_control()
    finally:
        path.unlink(missing_ok=True)
    judge_map(sample, p.pid, 500)
    judge_map(d.finish(), p.pid, 500)


def test_run_time_code_in_a_kept_dump(recorder, state_dir, tmp_path):
    """A kept dump (one that could not be written) has records that the ring no longer has for a new dump. Perf maps that the
    kept dump needs stay open after their processes have ended."""
    d = recorder("-e", "raw_syscalls:sys_enter", "--filter", "id == 110", *PROFILE, "-M", "2M", socket_path=tmp_path / "control")
    p = jit_load()
    until_ran(p, seconds=0.4)
    p.terminate()
    until_ran(p, seconds=0.4)
    finish_load(p, stop=True)
    state_dir.rename(tmp_path / "moved")
    r = d.ctl("dump")
    assert "stays in memory" in r.err, r
    ring = d.status()["ring"]
    newest = ring["evicted_samples"] + ring["samples"]
    until("newer samples only", lambda: load("syscalls", "-n", 200000) and d.status()["ring"]["evicted_samples"] > newest)
    (tmp_path / "moved").rename(state_dir)
    d.ctl("vacuum")
    found = Counter(sym for _, sym, _ in user(samples(d.until_dumped(), p.pid)))
    assert sum(n for sym, n in found.items() if sym.startswith("frtest_jit")) >= 0.9 * found.total(), found


def test_a_perf_map_of_another_user_is_not_used(recorder):
    """A perf map in /tmp is not used if it belongs neither to the user of the process nor to root."""
    p = jit_load()
    path = Path(f"/tmp/perf-{p.pid}.map")
    until("perf map", path.exists)
    os.chown(path, 65534, 65534)
    d = recorder(*PROFILE)  # starts after the chown, because a recorder can open a perf map as soon as the file exists
    until_ran(p, seconds=0.2)
    sample = d.dump_by_control()
    end(p)
    path.unlink()
    assert not list(Path(f"{sample}.jit").glob(f"jitted-{p.pid}-*"))
    assert not [s for s in samples(sample, p.pid) if s[1].startswith("frtest_jit")]


def test_a_container_that_is_gone_has_no_names_of_the_host(recorder, tmp_path):
    """The files of the container are gone with the container. The host has another file at the same path, and its symbols must
    not be used. A file that the cache of object files could not copy is counted."""
    place = tmp_path / "place"
    place.mkdir()
    shutil.copy2(program("frtest-syscalls"), place / "app")
    d = recorder("--config", cache_config(tmp_path, "CacheObjects=512M\n", "KernelBuildIDs=no\n"), *PROFILE)
    inside = f"mount -t tmpfs none {place} && cp {program('frtest-burn')} {place}/app && exec {place}/app -u 0.3"
    p = start("unshare", "--mount", "sh", "-c", inside, stdout=subprocess.DEVNULL)
    assert p.wait() == 0
    sample = d.dump_by_control()
    until("object that is missed", lambda: objects(d)["missed"] > 0)
    found = Counter(sym for _, sym, dso in samples(sample, p.pid, "--buildid-dir", d.directory / "debug") if str(place) in dso)
    assert set(found) == {"[unknown]"} and found["[unknown]"] > 100, found
    assert not list((d.directory / "debug").glob("**/app/*/elf"))


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    shutil.copy2(program("frtest-burn"), path)
    return path


def build_id_of(path):
    return re.search(r"Build ID: (\w+)", must("readelf", "-n", path).out)[1]


def objects(d):
    return d.status()["objects"]


@pytest.mark.parametrize("outcome", ["deleted", "replaced", "never-there"])
def test_a_file_that_is_gone_resolves_from_its_copy(recorder, victim, tmp_path, outcome):
    d = recorder("--config", cache_config(tmp_path, "CacheObjects=512M\n"), *PROFILE)
    argv, build_id = [victim], build_id_of(victim)
    if outcome == "never-there":
        memfd = (f"import os; fd = os.memfd_create('victim'); os.write(fd, open('{victim}', 'rb').read()); "
                 "os.execve(fd, ['victim', '-t', '3600'], {})")
        argv = [sys.executable, "-c", memfd]
    p = start(*argv, "-t", "3600", stdout=subprocess.DEVNULL)
    until_ran(p, seconds=0.4)
    # The file is removed before the dump, while the process still has it mapped.
    victim.unlink()
    if outcome == "replaced":
        shutil.copy2(program("frtest-syscalls"), victim)
    sample = d.dump_by_control()
    debug = d.directory / "debug"
    until("copy", (debug / ".build-id" / build_id[:2] / build_id[2:] / "elf").exists)
    end(p)
    hot = [s for s in samples(sample, p.pid, "--buildid-dir", debug) if s[1] == "frtest_burn_hot"]
    assert len(hot) >= 0.9 * len(user(samples(sample, p.pid))) > 0
    for link in (debug / ".build-id").glob("*/*"):
        assert link.is_symlink() and link.resolve().is_relative_to(debug.resolve()) and link.exists()
    assert str(debug) in must(program("flightrecctl"), "info", sample).out


@pytest.mark.parametrize("how", (os.rename, shutil.copyfile))
def test_an_old_process_gets_no_names_from_the_new_file_at_its_path(recorder, victim, tmp_path, how):
    """Without the kernel's build-ids, a map record has only a path, and a reader opens the file at this path. After an upgrade,
    another file is at the path, or the same file with other content (cp). In this case the old process must have no symbols
    rather than wrong symbols. Processes of the new file have their symbols, in the dump and in the merged file."""
    new = tmp_path / "new"
    d = recorder("--config", cache_config(tmp_path, "", "KernelBuildIDs=no\n"), *PROFILE)
    old_id = build_id_of(victim)
    old = start(victim, "-u", "0.4", stdout=subprocess.DEVNULL)
    old.wait()
    d.until_sampled("cpu-clock", 300)
    shutil.copy2(program("frtest-syscalls"), new)
    how(new, victim)
    newer = start(victim, "-t", "0.4", stdout=subprocess.DEVNULL)
    newer.wait()
    sample = d.dump_by_control()
    ids = dict(reversed(line.split(None, 1)) for line in perf_clean("buildid-list", "-i", sample).splitlines())
    assert ids.get(f"{victim} (deleted)", old_id) == old_id != ids[str(victim)]
    for path in sample, None:
        path = path or d.finish()
        found = Counter(sym for _, sym, dso in samples(path, old.pid) if "victim" in dso)
        assert set(found) == {"[unknown]"} and found["[unknown]"] > 100, (path, found)
        assert any(sym == "frtest_getppid" for _, sym, _ in samples(path, newer.pid)), path


def test_a_cache_that_is_a_symbolic_link_is_not_used(recorder, state_dir, tmp_path):
    """The recorder does not follow a symbolic link, because the link can be an attack, and works without a cache."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (state_dir / "debug").symlink_to(elsewhere)
    d = recorder("--config", cache_config(tmp_path, "CacheObjects=512M\n"), *PROFILE)
    must(program("frtest-burn"), "-u", "0.1")
    assert d.dump_by_control().exists() and "objects" not in d.status()
    notice, = (text for text in d.status()["notices"] if "copies of object files" in text)
    assert "debug" in notice and "CacheObjects=no" in notice and notice in d.ctl("status").out
    assert not list(elsewhere.iterdir())


def test_cached_objects_are_bounded(recorder, victim, tmp_path):
    d = recorder("--config", cache_config(tmp_path, "CacheObjects=1M\nCacheObjectMax=512K\n"), *PROFILE)
    for _ in range(2):
        must(victim, "-u", "0.2")
        d.dump_by_control()
    until("objects that do not fit", lambda: objects(d)["missed"] > 0)
    assert objects(d)["bytes"] <= 1 << 20
    d.stop()  # so that the recorder changes nothing in the cache while the test reads it
    files = [p for p in (d.directory / "debug").rglob("*") if p.is_file() and not p.is_symlink()]
    assert files and sum(p.stat().st_size for p in files) <= 1 << 20


def test_bpf_programs_are_listed_and_named(recorder):
    d = recorder(*PROFILE)
    p = start_load("bpf", "3600")
    until_ran(p, seconds=0.4)
    if p.poll() == 77:
        pytest.skip("BPF is not permitted")
    sample = d.dump_by_control()
    did = finish_load(p, stop=True)
    head = perf_clean("report", "--header-only", "-I", "-i", sample)
    assert re.search(rf"bpf_prog_info {did['prog']}:", head), head[-2000:]
    named = Counter(s[1] for s in samples(sample, did["pid"]))
    assert any(re.match(r"bpf_prog_[0-9a-f]{16}_frtest_bpf", sym) for sym in named), named.most_common(8)


def test_the_kernel_has_a_build_id_and_the_vdso_has_none(recorder):
    d = recorder(*PROFILE)
    must(program("frtest-burn"), "-u", "0.3")
    sample = d.dump_by_control()
    ids = {line.split()[1] for line in perf_clean("buildid-list", "-i", sample).splitlines()}
    assert "[kernel.kallsyms]" in ids or not d.status().get("kernel", True)
    # If the vdso has no build-id, perf uses the vdso of the running kernel. With a build-id, perf would look for a file, and
    # only CacheObjects= makes this file.
    assert "[vdso]" not in ids and any(path.endswith("/frtest-burn") for path in ids)


@pytest.mark.parametrize("shift", [0, 2 << 20])
def test_symbols_of_a_crashed_kernel_are_beside_its_dump(recorder, shift):
    """The names in this kallsyms are not those of the running kernel. The kernel of another boot can have other addresses:
    perf finds the difference by the address of the kernel's map record."""
    d = recorder(*PROFILE)
    p = start("dd", "if=/dev/zero", "of=/dev/null", "bs=1M")
    until_ran(p, seconds=0.4)
    sample = d.dump_by_control()
    end(p)
    with open(f"{sample}.kallsyms", "w") as to:
        for line in Path("/proc/kallsyms").read_text().splitlines():
            addr, kind, name = line.split(maxsplit=2)
            own = name if name in ("_text", "_stext") else f"crashed_{name}"
            print(f"{(int(addr, 16) + shift) % (1 << 64):016x} {kind} {own}", file=to)
    r = d.ctl("perf", sample, "--", "--stdio", "--no-children", "-g", "none", "--pid", str(p.pid), "-F", "sym")
    assert r.code == 0, r.err
    names = [line.split()[1] for line in r.out.splitlines() if line.strip().startswith("[k]")]
    # Other recorders of this machine can have BPF programs, which have names of their own.
    assert names and not [name for name in names if not name.startswith(("crashed_", "bpf_prog_"))], r.out
