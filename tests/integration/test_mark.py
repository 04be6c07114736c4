# SPDX-License-Identifier: GPL-2.0-or-later
"""The anomaly is in the data: stock perf shows each cause of a dump, once, at its instant."""
import json
import os
import time

import pytest

from harness import (MARK, NO_LOSS, Daemon, last_cpu, load, marks, merge, must, perf_clean, report_rows, samples_of, script_lines,
                     sidecar, start, start_load, until)

EVENTS = {
    "no-tracepoint": ["-e", "cpu-clock"],
    "stacks": ["-e", "cpu-clock", "-g"],
    "tracepoint": ["-e", "sched:sched_switch"],
    "tracepoint-stacks": ["-e", "sched:sched_switch", "-g"],
    "both": ["-e", "cpu-clock", "-e", "sched:sched_switch"],
    "overwrite": ["-e", "sched:sched_switch/overwrite/", "-e", "cpu-clock"],
    "plain": ["-e", "cpu-clock", "--no-compression"],
}


def ns(line):
    seconds, fraction = line.time.split(".")
    return int(seconds) * 10**9 + int(fraction)


def causes(path):
    meta = json.loads(sidecar(path).read_text())
    assert meta["marks"] == len(meta["causes"])
    return meta["causes"]


def check(path, expected):
    """Exactly one mark for each cause, with its time, process and words."""
    found = marks(path)
    expected = sorted(expected, key=lambda c: c["monotonic_ns"])
    assert [ns(m) for m in found] == [c["monotonic_ns"] for c in expected], (path, found)
    for mark, cause in zip(found, expected):
        assert mark.event == MARK
        assert mark.pid == cause.get("pid", -1) and mark.tid == cause.get("tid", mark.pid), (mark, cause)
        assert mark.trace.startswith(f"{cause['trigger']}: {cause['reason']}"), (mark, cause)
    return found


def check_order(path):
    """What perf prints is in the order of time: no record came when it had let go of younger ones."""
    times = [float(t.rstrip(":")) for t in perf_clean("script", "-i", path, "--ns", "-G", "-F", "time").split()]
    assert times == sorted(times) and len(times) > 10


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS.keys())
def test_signal_and_control(recorder, state_dir, events):
    d = recorder(*events, "-M", "16M")
    p = start_load("pingpong", "-t", "600", "-c", last_cpu())
    load("burn", "-u", "0.2")
    by_signal = d.dump_by_signal()
    load("burn", "-u", "0.2")
    by_control = d.dump_by_control("--reason", "slow answers\nof %s")
    p.kill()
    p.wait()
    d.stop()

    expected = causes(by_signal) + causes(by_control)
    assert len(expected) == 2
    expected[1]["reason"] = "slow answers of %s"  # one line of it
    first, = check(by_signal, expected[:1])
    second, = check(by_control, expected[1:])
    assert first.pid == os.getpid(), "who sent the signal"
    assert second.comm == "flightrecctl"
    for path in (by_signal, by_control):
        check_order(path)

    assert merge(state_dir, "--keep").code == 0
    assert merge(state_dir, "--keep", "-z", "-o", state_dir / "packed").code == 0
    for path in (state_dir / "perf.data", state_dir / "packed"):
        check(path, expected)
        check_order(path)


def test_probe(recorder, tmp_path):
    """An anomaly that a probe saw: the mark is of the thread it happened to, where that ran, with what was measured, and
    stands between what came before and after."""
    name = tmp_path / "frtest-marked"
    name.symlink_to("/bin/sh")
    d = recorder(*NO_LOSS, "-e", "sched:sched_switch", "-M", "16M", "--trigger", "fatal-signal",
                 "--trigger", "fatal-signal:MinFill=0", "--trigger", f"fatal-signal:Comm={name.name}",
                 "--trigger", "fatal-signal:PostTrigger=1s")
    refused = [line for line in d.log().splitlines() if "fatal-signal is not armed" in line]
    if refused:
        d.stop()
        pytest.skip(refused[0])
    p = start(name, "-c", "sleep 0.1; kill -SEGV $$")
    p.wait(timeout=180)
    path = until("dump of the signal", lambda: [s for s in d.samples() if sidecar(s).exists()])[0]
    d.stop()
    cause, = causes(path)
    mark, = check(path, [cause])
    assert (mark.pid, mark.tid, mark.comm, mark.cpu) == (p.pid, p.pid, name.name, cause["cpu"])
    assert f"value={cause['value']}" in mark.trace and cause["detail"] in mark.trace, mark
    times = [ns(line) for line in script_lines(path) if line.cpu == mark.cpu]
    assert min(times) < ns(mark) < max(times)
    # It is in between two switches, of which the first brought the thread on its CPU and the second took it away.
    before = max((line for line in script_lines(path) if line.cpu == mark.cpu and ns(line) < ns(mark)), key=ns)
    after = min((line for line in script_lines(path) if line.cpu == mark.cpu and ns(line) > ns(mark)), key=ns)
    assert f"next_pid={p.pid} " in before.trace and after.tid == p.pid, (before, mark, after)


def test_without_tracefs(state_dir):
    """The file says itself how its mark is decoded."""
    hide = ["unshare", "-m", "sh", "-c", 'while umount -l /sys/kernel/tracing 2>/dev/null; do :; done; exec "$@"', "sh"]
    must(*hide, "sh", "-c", "test ! -e /sys/kernel/tracing/events")
    d = Daemon(state_dir, "-e", "cpu-clock", "-M", "8M", prefix=hide)
    try:
        d.start()
        load("burn", "-u", "0.3")
        paths = [d.dump_by_signal(), d.dump_by_control()]
        d.stop()
    finally:
        d.kill()
    for path in paths:
        check(path, causes(path))
    expected = [c for path in paths for c in causes(path)]
    assert merge(state_dir).code == 0
    check(state_dir / "perf.data", expected)


def test_joined_triggers(recorder):
    """One file with a mark for each of its causes, the later ones after the first trigger."""
    d = recorder("-e", "cpu-clock", "-M", "8M", "--post-trigger", "3s")
    for _ in range(3):
        d.ctl("dump", "--no-wait")
    path = d.dump_by_control()
    d.stop()
    assert len(causes(path)) > 1
    check(path, causes(path))
    check_order(path)


def test_outside_of_the_window(recorder):
    """A window of the past: its samples are those in it, its mark is where the cause was."""
    d = recorder("-e", "cpu-clock", "-F", "999", "-M", "8M")
    begin = time.time()
    load("burn", "-u", "1")
    took = time.time() - begin
    path = d.dump_by_control("--from", f"@{begin + 0.1 * took:.6f}", "--to", f"@{begin + 0.8 * took:.6f}")
    d.stop()
    meta = json.loads(sidecar(path).read_text())
    lines = script_lines(path, trace=False)
    mark, = check(path, causes(path))
    assert 10 < len(lines) == meta["samples"], "a mark is not counted as one of the samples"
    assert all(meta["window"]["from_ns"] <= ns(line) <= meta["window"]["to_ns"] for line in lines)
    assert ns(mark) > meta["window"]["to_ns"]


def test_two_recorders_in_one_merge(recorder, state_dir):
    """With stacks and without: two attrs, and the marks of both."""
    expected = []
    for events in (["-e", "cpu-clock", "-g"], ["-e", "cpu-clock"], ["-e", "sched:sched_switch"]):
        d = recorder(*events, "-M", "8M")
        load("burn", "-u", "0.2")
        expected += causes(d.dump_by_control())
        d.stop()
    r = merge(state_dir)
    assert r.code == 0, r.err
    check(state_dir / "perf.data", expected)


@pytest.mark.parametrize("events", [["-e", "cpu-clock", "-g"], ["-e", "cpu-clock"]], ids=["stacks", "none"])
def test_reports_begin_with_what_was_recorded(recorder, events):
    d = recorder(*events, "-F", "499", "-M", "8M")
    load("burn", "-u", "0.5")
    path = d.dump_by_control()
    d.stop()
    assert samples_of(report_rows(path), "frtest-burn") > 50
    out = perf_clean("report", "-i", path, "--stdio")
    sections = out.split("# Samples: ")
    assert "of event 'cpu-clock'" in sections[1] and f"1  of event '{MARK}'" in sections[-1]
    assert ("Children" in out) == ("-g" in events), "a mark makes no report one of stacks"
    rows = [line for line in sections[-1].splitlines() if line.strip() and not line.startswith("#")
            and "of event" not in line]
    assert len(rows) == 1 and "flightrecctl" in rows[0] and "[unknown]" in rows[0], f"it shows no other sample's stack: {rows}"
    assert perf_clean("evlist", "-i", path).splitlines()[:3] == ["cpu-clock", "dummy", MARK]


def test_the_last_dump(recorder):
    """SIGUSR2: nobody's process; a mark stands for it in the merged file all the same."""
    d = recorder("-e", "cpu-clock", "-M", "8M")
    load("burn", "-u", "0.3")
    mark, = marks(d.finish())
    assert mark.trace.startswith("stop: ")
