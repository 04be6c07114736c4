# SPDX-License-Identifier: GPL-2.0-or-later
"""The signals USR1, USR2, TERM, INT and HUP, and recordings that end when their command ends."""
import json
import os
import signal

import pytest

from harness import (NO_LOSS, Daemon, getppid_calls, in_program, load, meta, perf_clean, program, quiet_config, report_rows,
                     run, samples_of, script_lines, stolen_s, until)

GETPPID = (*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110")


def test_usr1_dumps_and_recording_goes_on(recorder):
    d = recorder(*GETPPID, "-M", "16M")
    before = load("syscalls", "-n", 2000)
    first = d.dump_by_signal()
    between = load("syscalls", "-n", 2000)
    second = d.dump_by_signal()
    assert not [line for line in script_lines(first) if line.tid == between["pid"]]
    for did in (before, between):
        assert len(getppid_calls(second, did)) == 2000, "a dump takes nothing out of the ring"


def test_the_json_beside_a_dump(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-t", "0.1")
    by_signal, by_control = meta(d.dump_by_signal()), meta(d.dump_by_control("--reason", 'slow "answers"'))
    boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip().replace("-", "")
    for fields in (by_signal, by_control):
        assert fields["boot_id"].replace("-", "") == boot
        assert {"losses", "window", "cause"} <= set(fields)
    assert by_signal["cause"]["trigger"] == "signal" and "USR1" in by_signal["cause"]["reason"]
    assert by_control["cause"]["reason"] == 'slow "answers"'


def test_usr2_ends_in_one_file(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-F", "499", "--call-graph=fp", "-M", "8M")
    stolen, cpu_s = stolen_s(), load("burn", "-u", "0.5")["cpu_s"]
    d.dump_by_signal()
    cpu_s += load("burn", "-u", "0.5")["cpu_s"]
    stolen = stolen_s() - stolen
    count = samples_of(report_rows(d.finish()), "frtest-burn")
    assert 0.85 * 499 * cpu_s - 499 * stolen < count < 1.15 * 499 * (cpu_s + stolen), "each sample is there once"
    left = sorted(p.name for p in state_dir.iterdir())
    assert not [n for n in left if "sample" in n or "auxiliary" in n or n == "control"], left


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_term_and_int_stop_cleanly(recorder, state_dir, number):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    d.signal(number)
    assert d.wait() == 0, d.log()
    assert not d.socket.exists() and not d.samples()
    assert perf_clean("script", "-i", state_dir / "perf.data.auxiliary", "--show-mmap-events")
    assert not [p for p in state_dir.iterdir() if p.name.startswith(".")], "no temporary files"


def test_hup_reloads(recorder, tmp_path):
    """SIGHUP reloads the configuration. If the file has a mistake, the reload changes nothing."""
    conf, text = tmp_path / "flightrecd.conf", "[Recorder]\nEvents=cpu-clock\nRingSize=4M\n[Dump]\nCompression="
    d = recorder("--config", quiet_config(conf, text + "yes\n"))
    paths = [d.dump_by_control()]
    for value, words in (("no", "configuration reloaded"), ("perhaps", f"{conf}:5")):
        quiet_config(conf, f"{text}{value}\n")
        d.signal(signal.SIGHUP)
        d.until_logged(words)
        paths.append(d.dump_by_control())
    assert ["compressed" in perf_clean("report", "-i", p, "--header-only") for p in paths] == [True, False, False]


def run_command(tmp_path, *command):
    return run(program("flightrecd"), "-e", "cpu-clock", "-F", "999", "--call-graph=fp", "-M", "8M", "-o", tmp_path, "--socket", tmp_path / "control",
               "--", *command)


def test_a_command_is_recorded_to_its_end(tmp_path):
    stolen = stolen_s()
    r = run_command(tmp_path, program("frtest-burn"), "-u", "0.6")
    stolen = stolen_s() - stolen
    assert r.code == 0, r.err
    rows, did = report_rows(tmp_path / "perf.data"), json.loads(r.out)  # standard output has only what the command prints
    count, hot = samples_of(rows, "frtest-burn"), samples_of(rows, "frtest-burn", "frtest_burn_hot")
    assert hot >= 0.9 * samples_of(in_program(rows), "frtest-burn"), rows
    assert 0.9 * 999 * did["cpu_s"] - 999 * stolen < count < 1.1 * 999 * (did["cpu_s"] + stolen), rows
    assert {row.comm for row in rows} <= {"frtest-burn", "flightrecd", "frtest-burn:exec"}, "only the command is recorded"


def test_the_children_of_a_command_are_recorded(tmp_path):
    r = run_command(tmp_path, program("frtest-spawn"), "-n", "10", "-m", "20")
    assert r.code == 0, r.err
    rows = report_rows(tmp_path / "perf.data")
    assert samples_of(rows, "frtest-child", "frtest_child_hot") > 100, rows


def test_the_exit_code_of_a_command_is_passed_on(tmp_path):
    assert run_command(tmp_path, "sh", "-c", "exit 7").code == 7
    r = run_command(tmp_path, "/no/such/command")
    assert r.code != 0 and "/no/such/command" in r.err, (r.code, r.err)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.waits
@pytest.mark.parametrize("ignores_term", [False, True])
def test_term_ends_the_command_too(state_dir, ignores_term):
    """A SIGTERM to the recorder also ends the command. If the command ignores SIGTERM, the recorder still ends at once."""
    trap = "trap '' TERM; " if ignores_term else ""
    d = Daemon(state_dir, "-e", "cpu-clock", "-M", "4M", command=["sh", "-c", f"{trap}touch {state_dir}/up; sleep 3600 & wait; wait"])
    try:
        d.start()
        until("the command", (state_dir / "up").exists)
        command = [int(p) for t in os.listdir(f"/proc/{d.pid}/task") for p in open(f"/proc/{d.pid}/task/{t}/children").read().split()]
        d.signal(signal.SIGTERM)
        d.wait()
        if not ignores_term:
            until("the end of the command", lambda: not any(is_alive(p) for p in command))
    finally:
        d.kill()
