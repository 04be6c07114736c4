# SPDX-License-Identifier: GPL-2.0-or-later
"""USR1, USR2, TERM, HUP; and a recording that ends with its command."""
import json
import os
import signal
import time

from harness import (NO_LOSS, Daemon, finish_load, load, must, perf_clean, program, report_rows, run, samples_of, script_lines,
                     sidecar, start_load, until)
from test_record import GETPPID, stolen_s


def test_usr1_dumps_and_recording_goes_on(recorder):
    d = recorder(*GETPPID, "-M", "16M")
    before = load("syscalls", "-n", 2000)
    first = d.dump_by_signal()
    between = load("syscalls", "-n", 2000)
    second = d.dump_by_signal()
    d.stop()
    assert not [line for line in script_lines(first) if line.tid == between["pid"]]
    count = {pid: 0 for pid in (before["pid"], between["pid"])}
    for line in script_lines(second):
        if line.tid in count and line.trace.startswith("NR 110 "):
            count[line.tid] += 1
    assert count == {before["pid"]: 2000, between["pid"]: 2000}, "the second dump has both: nothing is used up"


def test_nothing_is_missed_during_a_dump(recorder):
    """One thread counts its own calls while three dumps are made: all of them are in the last."""
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 8", "-M", "64M")
    p = start_load("count", "-t", 3600, "-p", 2000)
    until("samples", lambda: d.status()["ring"]["samples"] > 1000)
    for _ in range(3):
        time.sleep(0.1)
        d.dump_by_signal()
    p.terminate()
    did = finish_load(p)
    assert not d.lost(), d.lost()
    last = d.dump_by_control()
    d.stop()
    found = json.loads(must(program("frtest-sequence"), last, did["pid"], did["nr"], timeout=300).out)
    assert (found["count"], found["missing"]) == (did["calls"], 0), found


def test_the_json_beside_a_dump(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-t", "0.3")
    by_signal = json.loads(sidecar(d.dump_by_signal()).read_text())
    by_control = json.loads(sidecar(d.dump_by_control("--reason", 'slow "answers"')).read_text())
    boot = open("/proc/sys/kernel/random/boot_id", encoding="ascii").read().strip().replace("-", "")
    d.stop()
    for meta in (by_signal, by_control):
        assert meta["boot_id"].replace("-", "") == boot
        assert "losses" in meta and "window" in meta and "cause" in meta, sorted(meta)
    assert "USR1" in json.dumps(by_signal["cause"]) or "signal" in json.dumps(by_signal["cause"])
    assert 'slow "answers"' in json.dumps(by_control, ensure_ascii=False).replace('\\"', '"')


def test_usr2_ends_in_one_file(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-F", "499", "-g", "-M", "8M")
    stolen = stolen_s()
    cpu_s = load("burn", "-u", "0.5")["cpu_s"]
    d.dump_by_signal()
    cpu_s += load("burn", "-u", "0.5")["cpu_s"]
    stolen = stolen_s() - stolen
    merged = d.finish()
    count = samples_of(report_rows(merged), "frtest-burn")
    assert 0.85 * 499 * cpu_s - 499 * stolen < count < 1.15 * 499 * (cpu_s + stolen), \
        "what came after the last dump is in it too, once"
    left = sorted(p.name for p in state_dir.iterdir())
    assert not [n for n in left if "sample" in n or "auxiliary" in n], left
    assert "control" not in left, "its socket goes with it"


def test_term_stops_cleanly(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    d.stop()
    assert not d.socket.exists() and not d.samples()
    assert perf_clean("script", "-i", state_dir / "perf.data.auxiliary", "--show-mmap-events")
    assert not [p for p in state_dir.iterdir() if p.name.startswith(".")], "no temporary files"


def test_int_stops_too(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    d.signal(signal.SIGINT)
    assert d.wait() == 0, d.log()


def test_hup_reloads(recorder, tmp_path):
    conf = tmp_path / "flightrecd.conf"
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n[Dump]\nCompression=yes\n")
    d = recorder("--config", conf)
    load("burn", "-t", "0.3")
    compressed = d.dump_by_control()
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n[Dump]\nCompression=no\n")
    d.signal(signal.SIGHUP)
    until("word of the reload", lambda: "configuration reloaded" in d.log())
    plain = d.dump_by_control()
    d.stop()
    assert "compressed" in perf_clean("report", "-i", compressed, "--header-only")
    assert "compressed" not in perf_clean("report", "-i", plain, "--header-only")


def test_hup_tells_of_what_waits_for_a_restart(recorder, tmp_path):
    conf = tmp_path / "flightrecd.conf"
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n")
    d = recorder("--config", conf)
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\nCompressionLevel=3\n")
    d.signal(signal.SIGHUP)
    until("word of the restart", lambda: "CompressionLevel= waits for a restart" in d.log())
    d.stop()


def test_hup_with_a_bad_file_changes_nothing(recorder, tmp_path):
    conf = tmp_path / "flightrecd.conf"
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=4M\n")
    d = recorder("--config", conf)
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSice=4M\n")
    d.signal(signal.SIGHUP)
    until("complaint that names file and line", lambda: f"{conf}:3" in d.log())
    assert d.running() and d.status()["ring"]["size"] == 4 << 20
    d.stop()


def run_command(tmp_path, *command, options=()):
    return run(program("flightrecd"), "-e", "cpu-clock", "-F", "999", "-g", "-M", "8M", *options, "-o", tmp_path,
               "--socket", tmp_path / "control", "--", *command, timeout=180)


def test_command_is_recorded_to_its_end(tmp_path):
    stolen = stolen_s()
    r = run_command(tmp_path, program("frtest-burn"), "-u", "1")
    stolen = stolen_s() - stolen
    assert r.code == 0, r.err
    assert '"rounds"' in r.out, "the command's own output passes"
    files = sorted(p.name for p in tmp_path.iterdir())
    assert "perf.data" in files, f"one perf.data at the end: {files}\n{r.err}"
    rows = report_rows(tmp_path / "perf.data")
    count, cpu_s = samples_of(rows, "frtest-burn", "frtest_burn_hot"), json.loads(r.out)["cpu_s"]
    assert 0.9 * 999 * cpu_s - 999 * stolen < count < 1.1 * 999 * (cpu_s + stolen), rows
    assert {row.comm for row in rows} <= {"frtest-burn", "flightrecd", "frtest-burn:exec"}, "the command alone"


def test_the_commands_children_are_recorded(tmp_path):
    r = run_command(tmp_path, program("frtest-spawn"), "-n", "10", "-m", "20")
    assert r.code == 0, r.err
    rows = report_rows(tmp_path / "perf.data")
    assert samples_of(rows, "frtest-child", "frtest_child_hot") > 100, rows


def test_the_commands_exit_code_is_passed_on(tmp_path):
    assert run_command(tmp_path, "sh", "-c", "exit 7").code == 7


def test_a_command_that_is_not_there(tmp_path):
    r = run_command(tmp_path, "/no/such/command")
    assert r.code != 0 and "/no/such/command" in r.err, (r.code, r.err)


def test_term_ends_the_command_too(tmp_path):
    d = Daemon(tmp_path / "state", "-e", "cpu-clock", "-M", "4M", command=[program("frtest-burn"), "-t", "3600"])
    d.directory.mkdir()
    try:
        d.start()
        command = until("the command", lambda: [int(p) for t in os.listdir(f"/proc/{d.pid}/task")
                                                for p in open(f"/proc/{d.pid}/task/{t}/children").read().split()])
        d.signal(signal.SIGTERM)
        d.wait()
        until("the command's end", lambda: not any(alive(p) for p in command))
    finally:
        d.kill()


def test_a_command_that_is_deaf_to_term_does_not_hold_up_the_end(tmp_path):
    d = Daemon(tmp_path / "state", "-e", "cpu-clock", "-M", "4M",
               command=["sh", "-c", "trap '' TERM; touch up; sleep 3600 & wait; wait"])
    d.directory.mkdir()
    d.command[2] = d.command[2].replace("touch up", f"touch {d.directory}/up")
    try:
        d.start()
        until("the command", (d.directory / "up").exists)
        d.signal(signal.SIGTERM)
        d.wait()
    finally:
        d.kill()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
