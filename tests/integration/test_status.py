# SPDX-License-Identifier: GPL-2.0-or-later
"""The numbers of status agree with the load and with each other."""
import json
import os
import subprocess
import time

import pytest

from harness import NO_LOSS, end, last_cpu, load, meta, quiet_config, start, until

CALLS = 100000
# Only the getppid() calls of the load, because other tests can call getppid() at the same time.
GETPPID = ("-e", "raw_syscalls:sys_enter", "--filter", 'id == 110 && COMM == "frtest-syscalls"')


def test_events_and_losses_agree_with_the_load(recorder):
    d = recorder(*NO_LOSS, *GETPPID, "-e", "cpu-clock", "-F", "99", "-M", "16M")
    before = d.event_status("raw_syscalls:sys_enter")["samples"]
    load("syscalls", "-n", CALLS, "-c", last_cpu())
    d.until_sampled("raw_syscalls:sys_enter", before + CALLS)
    status, text = d.status(), d.text_status()
    event = next(e for e in status["events"] if e["name"].startswith("raw_syscalls"))
    assert CALLS <= event["samples"] - before < 2 * CALLS
    assert sum(c["samples"] for c in event["cpus"]) == event["samples"]
    on_cpu = {c["cpu"]: c["samples"] for c in event["cpus"]}
    assert len(on_cpu) <= os.cpu_count() and on_cpu[last_cpu()] >= CALLS
    for e in status["events"]:
        for cause, n in e["lost"].items():
            assert n == sum(c["lost"].get(cause, 0) for c in e["cpus"]), (e["name"], cause)
    assert all(isinstance(n, int) and n == 0 for n in status["losses"].values()), status["losses"]
    assert "raw_syscalls:sys_enter" in text and "\x1b" not in text, text


def test_ring(recorder):
    begin = time.monotonic()
    d = recorder(*GETPPID, "-M", "8M")
    load("syscalls", "-n", 300000)
    load("syscalls", "-t", 0.2)
    ring = until("frames", lambda: (ring := d.status()["ring"])["frames"] > 0 and ring["span_s"] > 0.1 and ring)
    took = time.monotonic() - begin
    assert ring["size"] == 8 << 20 and 0 < ring["used"] <= ring["size"]
    assert ring["raw"] > ring["used"] and ring["compression"] > 5, ring
    assert ring["span_s"] < took
    assert abs((ring["last_ns"] - ring["first_ns"]) / 1e9 - ring["span_s"]) < 0.1
    assert begin * 1e9 < ring["last_ns"] < (begin + took) * 1e9, "the clock is CLOCK_MONOTONIC"


def test_losses_are_counted(recorder):
    """A kernel ring of one page must lose samples. The number of recorded and lost samples together is the number of calls of
    the load."""
    d = recorder(*GETPPID, "-m", "1", "-M", "16M")
    calls = load("syscalls", "-t", "0.5", "-c", last_cpu())["calls"]

    def counts():
        on_cpu = next(c for c in d.event_status("raw_syscalls:sys_enter")["cpus"] if c["cpu"] == last_cpu())
        return on_cpu["samples"], on_cpu["lost"].get("kernel-ring-full", 0)

    def add_up():
        nonlocal calls
        if sum(counts()) >= calls:
            return True
        calls += load("syscalls", "-n", 10, "-c", last_cpu())["calls"]  # the kernel reports a loss with a later record
        time.sleep(0.3)
        return False
    until("counts that add up", add_up)
    samples, lost = counts()
    losses = meta(d.dump_by_control())["losses"]
    assert lost > 0, "one page holds some thirty records and the load makes a million a second"
    assert calls <= samples + lost < 1.2 * calls + 1000
    assert "kernel-ring-full" in json.dumps(losses), losses


def test_dumps_and_sideband_are_counted_and_listed(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    before = d.status()["sideband"]
    first, second = d.dump_by_control("--reason", "one"), d.dump_by_signal()
    status, listed = d.status(), d.ctl("list", "--json=short").out
    info = d.ctl("info", first, "--json=short")
    load("spawn", "-n", 50, "-m", "1")
    # Each of 50 children has at least four side-band records: fork, comm, maps and exit.
    after = until("all side-band records", lambda: (s := d.status()["sideband"])["records"] >= before["records"] + 50 * 4
                  and s["file_bytes"] > before["file_bytes"] and s)
    assert status["dumps"]["done"] == 2 and status["dumps"]["failed"] == 0
    assert "io_uring" in status["writer"], "the writer is io_uring, or the text says why not"
    assert first.name in listed and second.name in listed
    assert info.code == 0 and "one" in info.out, info
    assert before["processes"] > 0 and before["maps"] > 0 and before["scans"] >= 1
    assert after["queue_drops"] == 0 and after["write_errors"] == 0


def test_unwind_memory_that_is_used_up(recorder, tmp_path):
    """The status says that there were more tables than UnwindMemory= has room for."""
    d = recorder("--config", quiet_config(tmp_path / "small.conf", "[Recorder]\nUnwindMemory=1M\n"), "-g", "-F", "499")
    if "unwind" not in d.status():
        pytest.skip("BPF programs are not permitted here")
    loads = [start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for words in (
        ("/usr/bin/python3", "-c", "while True: sorted(range(1000))"), ("openssl", "speed", "-seconds", "60", "sha256"),
        ("perl", "-e", "while (1) { $n =~ s/./x/ }"), ("node", "-e", "for (;;) JSON.stringify([1])"))]
    until("tables that were removed", lambda: "were removed to make room; a larger UnwindMemory=" in d.text_status())
    assert d.status()["unwind"]["memory"] <= 1 << 20
    end(*loads)
