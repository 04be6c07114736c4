# SPDX-License-Identifier: GPL-2.0-or-later
"""Rings of their own for events of different rates: [Ring NAME] and --ring."""
import subprocess
import time

from harness import (Daemon, end, exact, last_cpu, load, meta, perf_clean, program, quiet_config, script_lines, sequence, start, until,
                     until_ran)

SWITCHES = ("--ring", "sched:1M", "-e", "sched:sched_switch")


def rings_of(d):
    return d.status()["rings"]


def nameless(lines):
    """Returns the lines without a name. The kernel gives the tid -1 to a thread that has all but ended."""
    return [line for line in lines if line.comm.startswith(":") and line.tid != -1]


def stored(service_manager):
    """Returns the names of the descriptors of rings and state, without those of BPF programs."""
    return [name for name in service_manager.names() if not name.startswith("flightrec-bpf")]


def until_sched_has_evicted(d, samples):
    until("eviction", lambda: load("pingpong", "-t", 0.5) and rings_of(d)["sched"]["evicted_samples"] > samples)


def test_a_flood_in_one_ring_leaves_the_other_as_it_is(recorder):
    d = recorder("-M", "2M", "--ring", "cpu:2M", "-e", "cpu-clock", "-F", "99", "--call-graph=fp", *SWITCHES)
    burn = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
    until_ran(burn, seconds=0.5)
    end(burn)
    until_sched_has_evicted(d, 100000)
    rings = rings_of(d)
    assert rings["cpu"]["evicted_samples"] == 0 and rings["cpu"]["samples"] > 50
    assert rings["cpu"]["span_s"] > rings["sched"]["span_s"] + 0.5
    assert rings["default"]["samples"] == 0

    dump = d.dump_by_control()
    windows = meta(dump)["rings"]
    lines = script_lines(dump, trace=False)
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    for name, event in (("cpu", "cpu-clock"), ("sched", "sched:sched_switch")):
        found = [line for line in lines if line.event == event]
        assert len(found) == windows[name]["samples"] > 0, name
    assert windows["cpu"]["from_ns"] < windows["sched"]["from_ns"] <= windows["cpu"]["to_ns"]
    of_burn = [line for line in lines if line.pid == burn.pid and line.event == "cpu-clock"]
    assert of_burn and {line.comm for line in of_burn[-10:]} == {"frtest-burn"}, "the process ended before the flood"
    assert not nameless(lines), "each sample has a name"


def test_a_ring_has_its_own_window(recorder, tmp_path):
    config = quiet_config(tmp_path / "conf", "[Recorder]\nEvents=cpu-clock\nFrequency=99\nCallGraph=no\n[Dump]\nWindow=2s\n"
                          "[Ring sched]\nSize=4M\nEvents=sched:sched_switch\nWindow=500ms\n")
    d = recorder("--config", config, "-M", "2M")
    load("pingpong", "-t", 4)
    windows = meta(d.dump_by_control())["rings"]
    assert 0.3e9 < windows["sched"]["to_ns"] - windows["sched"]["from_ns"] <= 0.6e9, windows
    assert 1e9 < windows["default"]["to_ns"] - windows["default"]["from_ns"] <= 2.2e9, windows
    assert "sched:sched_switch" in perf_clean("script", "-i", d.dump_by_control("--last", "2s"), "-F", "event")


def test_restarts_keep_each_ring(recorder, service_manager):
    args = ("-M", "2M", "-e", "cpu-clock", "-F", "99", "--call-graph=no", "--ring", "calls:1M", "-e", "raw_syscalls:sys_enter",
            "--filter", "id == 110")
    d = recorder(*args, manager=service_manager)
    until("eviction", lambda: load("syscalls", "-n", 100000) and rings_of(d)["calls"]["evicted_samples"] > 0)
    names = stored(service_manager)
    for way in (Daemon.stop, Daemon.kill):
        load("syscalls", "-n", 1000)
        d.until_sampled("raw_syscalls:sys_enter", 1000)
        before = rings_of(d)
        way(d)
        d = recorder(*args, manager=service_manager)
        after = rings_of(d)
        assert stored(service_manager) == names, "the same memory is used again"
        assert after["calls"]["samples"] >= 0.9 * before["calls"]["samples"] > 0
        assert after["calls"]["first_ns"] >= before["calls"]["first_ns"]
        assert abs(after["default"]["first_ns"] - before["default"]["first_ns"]) < 1e9
    d.stop()
    larger = [arg.replace("calls:1M", "calls:2M") for arg in args]
    d = recorder(*larger, manager=service_manager)
    assert rings_of(d)["calls"]["size"] == 2 << 20 and rings_of(d)["calls"]["samples"] >= 0.9 * after["calls"]["samples"]
    did = load("syscalls", "-n", 1000)
    lines = [line for line in script_lines(d.dump_by_control(), trace=False) if line.tid == did["pid"] and "sys_enter" in line.event]
    assert len(lines) >= 1000 and {line.comm for line in lines} == {"frtest-syscalls"}


def test_killed_while_a_ring_changes_its_size(recorder, service_manager, tmp_path):
    """While a ring changes its size, the descriptor store has its old and its new memory, and each has a part of the records."""
    text = ("[Recorder]\nEvents=cpu-clock\nFrequency=99\nCallGraph=no\nRingSize=2M\nKernelBuffer=16M\n"
            "[Ring calls]\nEvents=raw_syscalls:sys_enter\nFilter=id == 8\nSize={}\n")
    config = quiet_config(tmp_path / "conf", text.format("8M"))
    d = recorder("--config", config, manager=service_manager)
    counted = load("count", "-t", 0.3, "-c", last_cpu(), "-p", 5000)
    d.until_sampled("raw_syscalls:sys_enter", counted["calls"])
    names = stored(service_manager)
    quiet_config(config, text.format("256M"))
    reload = d.start_ctl("reload")
    until("the new memory of the ring", lambda: len(stored(service_manager)) > len(names))
    d.kill()
    reload.communicate()
    quiet_config(config, text.format("32M"))
    d = recorder("--config", config, manager=service_manager)
    assert rings_of(d)["calls"]["size"] == 32 << 20
    assert len(stored(service_manager)) == len(names), "memory without use is not kept"
    found = sequence(d.dump_by_control(), counted)
    exact(found)
    assert found["last"] == counted["calls"] - 1


def test_a_ring_that_the_next_instance_does_not_have(recorder, service_manager):
    args = ("-M", "2M", "-e", "cpu-clock", "-F", "99", "--call-graph=no")
    d = recorder(*args, "--ring", "calls:1M", "-e", "raw_syscalls:sys_enter", manager=service_manager)
    assert len(stored(service_manager)) == 4  # two rings, that of the side-band, the state
    burn = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
    until_ran(burn, seconds=0.5)
    end(burn)
    d.stop()
    d = recorder(*args, manager=service_manager)
    assert "rings" not in d.status() and len(stored(service_manager)) == 3
    d.stop()
    d = recorder(*args, "--ring", "calls:1M", "-e", "raw_syscalls:sys_enter", manager=service_manager)
    assert len(stored(service_manager)) == 4 and d.status()["adopted"]["samples"] > 0
    lines = [line for line in script_lines(d.dump_by_control(), trace=False) if line.pid == burn.pid]
    assert len(lines) > 20 and not nameless(lines), "its side-band is from the first instance"


def test_a_reload_that_is_refused(recorder, tmp_path, service_manager):
    """The ring is larger than the process may make a file. The recorder goes on, and a restart has all names."""
    base = "[Recorder]\nEvents=cpu-clock\nFrequency=99\nCallGraph=no\nRingSize=2M\n"
    ring = "[Ring calls]\nEvents=raw_syscalls:sys_enter\nFilter=id == 110\nSize={}\n"
    path = quiet_config(tmp_path / "conf", base)
    limited = ("sh", "-c", "trap '' XFSZ; ulimit -f 65536; exec \"$@\"", "sh")  # files of at most 32 MiB, also memory files
    d = recorder("--config", path, manager=service_manager, prefix=limited)
    for text, words in ((ring.format("64M"), "File too large"), (ring.format("1M") + "[Ring sched]\nEvents=cpu-clock\n", "two rings")):
        quiet_config(path, base + text)
        r = d.ctl("reload")
        assert r.code != 0 and words in r.err, r
        assert "rings" not in d.status()
    burn = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
    until_ran(burn, seconds=0.5)
    end(burn)
    killed = time.monotonic()
    d.kill()
    quiet_config(path, base)
    d = recorder("--config", path, manager=service_manager)
    lines = script_lines(d.dump_by_control(), trace=False)
    assert {line.comm for line in lines if line.pid == burn.pid} >= {"frtest-burn"}
    before = [line for line in lines if float(line.time) < killed]
    assert len(before) > 50 and not nameless(before), nameless(before)


def test_a_reload_adds_resizes_and_drops_one_ring(recorder, tmp_path, service_manager):
    base = "[Recorder]\nEvents=cpu-clock\nFrequency=99\nCallGraph=no\nRingSize=2M\n"
    calls = "[Ring calls]\nEvents=raw_syscalls:sys_enter\nFilter=id == 110\nSize={}\n"
    path = tmp_path / "conf"

    def reload(text):
        quiet_config(path, text)
        r = d.ask("reload")
        assert not r["waiting"], r
        return d.status()

    d = recorder("--config", quiet_config(path, base), manager=service_manager)
    burn = start(program("frtest-burn"), "-t", 600, stdout=subprocess.DEVNULL)
    until_ran(burn, seconds=0.5)
    end(burn)
    first_ns = d.status()["ring"]["first_ns"]
    status = reload(base + calls.format("4M"))
    assert set(status["rings"]) == {"default", "calls"} and status["rings"]["calls"]["size"] == 4 << 20
    load("syscalls", "-n", 100000)
    d.until_sampled("raw_syscalls:sys_enter", 100000)
    assert rings_of(d)["calls"]["samples"] >= 100000

    status = reload(base + calls.format("1M"))
    assert status["rings"]["calls"]["size"] == 1 << 20 and status["rings"]["default"]["first_ns"] == first_ns
    kept = status["rings"]["calls"]["samples"]
    assert 0 < kept

    other = "[Ring switches]\nEvents=sched:sched_switch\nSize=1M\n"
    status = reload(base + other + calls.format("1M"))
    assert list(status["rings"]) == ["default", "switches", "calls"]
    assert status["rings"]["calls"]["samples"] >= kept, "a ring keeps its samples when another one is added"
    dump = d.dump_by_control()
    lines = script_lines(dump, trace=False)
    assert {"cpu-clock", "raw_syscalls:sys_enter", "sched:sched_switch"} <= {line.event for line in lines}
    assert {line.comm for line in lines if line.pid == burn.pid and line.event == "cpu-clock"} >= {"frtest-burn"}
    assert not nameless(lines)

    status = reload(base + other)
    assert list(status["rings"]) == ["default", "switches"] and len(stored(service_manager)) == 4
    status = reload(base)
    assert "rings" not in status and status["ring"]["first_ns"] == first_ns
    lines = script_lines(d.dump_by_control(), trace=False)
    assert {line.comm for line in lines if line.pid == burn.pid} >= {"frtest-burn"}
