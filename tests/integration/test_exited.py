# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that exited before the dump has its name and its symbols, in the sample file and in the merged file."""
import subprocess

import pytest

from conftest import as_user
from harness import end, in_program, load, perf, program, quiet_config, report_rows, samples_of, script_lines, start, until, until_ran

CHILDREN, MS = 12, 50  # MS is the run time of a child: much longer than the start of a program takes
PROFILE = ("-e", "cpu-clock", "-F", "999", "--call-graph=fp")


def judge(path, pids):
    lines = [line for line in script_lines(path, trace=False) if line.pid in pids]
    assert {line.pid for line in lines} == pids, f"no samples at all of {pids - {line.pid for line in lines}}"
    nameless = [line for line in lines if line.comm.startswith(":")]
    assert not nameless, f"{len(nameless)} of {len(lines)} have no comm, e.g. {nameless[0]}"
    rows = report_rows(path)
    total = samples_of(rows, "frtest-child", tids=pids)
    hot, user = samples_of(rows, "frtest-child", "frtest_child_hot", pids), samples_of(in_program(rows), "frtest-child", tids=pids)
    assert total >= CHILDREN * MS * 0.5, f"{total} samples of {CHILDREN} children with {MS} ms each"
    assert hot >= 0.85 * user and user >= 0.7 * total, f"{hot} of {user} in frtest_child_hot; {[r for r in rows if r.comm == 'frtest-child']}"


def test_exited_processes_resolve(recorder):
    d = recorder(*PROFILE, "-M", "32M")
    pids = set(load("spawn", "-n", CHILDREN, "-m", MS)["children"])
    sample = d.dump_by_signal()
    judge(sample, pids)
    judge(d.finish(), pids)


def test_exited_processes_resolve_after_their_start_left_the_ring(recorder):
    """A process starts, and the ring evicts the records of its exec and its maps. Then the process is sampled and exits. Then a
    dump is made."""
    d = recorder("-e", "raw_syscalls:sys_enter", "--filter", "id == 110", *PROFILE, "-M", "1M")
    child = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
    until("eviction", lambda: load("syscalls", "-n", 200000) and d.status()["ring"]["evicted_samples"] > 300000)
    until_ran(child, seconds=0.3)
    end(child)
    sample = d.dump_by_signal()
    lines = [line for line in script_lines(sample, trace=False) if line.pid == child.pid and line.event == "cpu-clock"]
    assert lines and {line.comm for line in lines} == {"frtest-burn"}
    rows = report_rows(sample)
    assert samples_of(rows, "frtest-burn", "frtest_burn_hot", {child.pid}) > 0, rows


def names_in(sample, pid):
    """Returns the name of the process PID in each of its samples, in the order of the file. perf may warn of lost side-band."""
    lines = [x.split() for x in perf("script", "-i", sample, "-F", "pid,comm", "-G").out.splitlines()]
    return [comm for comm, of in lines if of == str(pid)]


def start_known_burn(d, burn):
    """Starts a load. Returns its process if the recorder knows its name, or else None, because the small kernel ring can lose
    side-band at any time."""
    p = burn()
    d.until_sampled("cpu-clock", d.event_status("cpu-clock")["samples"] + 100)
    if names_in(d.dump_by_control(), p.pid)[-1:] == ["frtest-burn"]:
        return p
    p.kill()
    return None


@pytest.mark.parametrize("hidepid, sees", [(2, False), (1, False), (2, True)])
def test_a_proc_that_hides_processes(recorder, open_dir, nobodys_dir, request, hidepid, sees):
    """A recorder that does not see all processes in /proc reports that it does not know all names. It does not assume that a
    process that it cannot see has ended."""
    user = as_user("perfmon", "ipc_lock", "syslog", "dac_read_search", "chown", *["sys_ptrace"] * sees)
    config = quiet_config(open_dir / "flightrecd.conf", "[Recorder]\nEvents=cpu-clock\nFrequency=499\nRingSize=16M\nSidebandBuffer=4K\n")
    hide = ("unshare", "--mount", "--propagation", "private", "sh", "-c",
            f'mount -t proc -o hidepid={hidepid} proc /proc && exec "$@"', "sh")

    def burn():
        p = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
        request.addfinalizer(p.kill)
        return p

    before = burn()
    d = recorder("--config", config, directory=nobodys_dir, binary=open_dir / "flightrecd", prefix=(*hide, *user))
    assert any("hides processes" in n for n in d.status().get("notices", [])) == (not sees), d.status()
    after = until("a process whose name is known", lambda: start_known_burn(d, burn))
    scans = d.status()["sideband"]["scans"]
    d.lose_sideband()
    until("another scan", lambda: d.status()["sideband"]["scans"] > scans)
    after_scan = d.event_status("cpu-clock")["samples"]
    d.until_sampled("cpu-clock", after_scan + 100)
    sample = d.dump_by_control()
    assert f"PERF_RECORD_EXIT({after.pid}:" not in perf("script", "-i", sample, "--show-task-events").out
    after.kill()
    before.kill()
    assert names_in(sample, after.pid)[-1] == "frtest-burn"
    assert set(names_in(sample, before.pid)) == {"frtest-burn" if sees else f":{before.pid}"}
