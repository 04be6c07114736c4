# SPDX-License-Identifier: GPL-2.0-or-later
"""Trigger samples, with which stock perf shows each cause of a dump once, at the time of its anomaly."""
import os
import re
import time

import pytest

from harness import (MARK, NO_LOSS, end, last_cpu, load, merge, meta, must, perf_clean, report_rows, samples_of, script_lines, start,
                     start_load, time_ns, trigger_samples)

EVENTS = {
    "no-tracepoint": ["-e", "cpu-clock"],
    "stacks": ["-e", "cpu-clock", "--call-graph=fp"],
    "tracepoint": ["-e", "sched:sched_switch"],
    "tracepoint-stacks": ["-e", "sched:sched_switch", "--call-graph=fp"],
    "both": ["-e", "cpu-clock", "-e", "sched:sched_switch"],
    "overwrite": ["-e", "sched:sched_switch/overwrite/", "-e", "cpu-clock"],
    "plain": ["-e", "cpu-clock", "--no-compression"],
}


def causes(path):
    fields = meta(path)
    assert fields["marks"] == len(fields["causes"])
    return fields["causes"]


def check(path, expected):
    """Checks that the file has exactly one trigger sample for each cause, with the time, process and texts of the cause. Returns
    the trigger samples."""
    found = trigger_samples(path)
    expected = sorted(expected, key=lambda c: c["monotonic_ns"])
    assert [time_ns(m) for m in found] == [c["monotonic_ns"] for c in expected], (path, found)
    for sample, cause in zip(found, expected):
        assert sample.event == MARK
        assert sample.pid == cause.get("pid", -1) and sample.tid == cause.get("tid", sample.pid), (sample, cause)
        assert sample.trace.startswith(f"{cause['trigger']}: {cause['reason']}"), (sample, cause)
    return found


def check_order(path):
    """Checks that perf prints the samples in the order of time. (perf would print a record that comes too late out of order.)"""
    times = [float(t.rstrip(":")) for t in perf_clean("script", "-i", path, "--ns", "-G", "-F", "time").split()]
    assert times == sorted(times) and len(times) > 10


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS.keys())
def test_signal_and_control(recorder, state_dir, events):
    d = recorder(*events, "-M", "16M")
    p = start_load("pingpong", "-t", "600", "-c", last_cpu())
    load("burn", "-u", "0.1")
    by_signal = d.dump_by_signal()
    load("burn", "-u", "0.1")
    by_control = d.dump_by_control("--reason", "slow answers\nof %s")
    end(p)
    d.stop()

    expected = causes(by_signal) + causes(by_control)
    assert len(expected) == 2
    expected[1]["reason"] = "slow answers of %s"  # the trigger sample has the reason without its newline
    first, = check(by_signal, expected[:1])
    second, = check(by_control, expected[1:])
    assert first.pid == os.getpid(), "the sender of the signal"
    assert second.comm == "flightrecctl"
    assert merge(state_dir, "--keep").code == 0
    assert merge(state_dir, "--keep", "-z", "-o", state_dir / "packed").code == 0
    for path in (state_dir / "perf.data", state_dir / "packed"):
        check(path, expected)
    for path in (by_signal, by_control, state_dir / "perf.data", state_dir / "packed"):
        check_order(path)


def test_a_probe_marks_the_thread_and_the_instant(recorder, tmp_path):
    """The trigger sample has the thread, its CPU and the value. Its place in the file is between the samples of the thread from
    before and after the anomaly: the call of kill(), and the exit."""
    name = tmp_path / "frtest-marked"
    name.symlink_to("/bin/sh")
    options = [x for key in ("", ":MinFill=0", f":Comm={name.name}", ":PostTrigger=300ms") for x in ("--trigger", f"fatal-signal{key}")]
    events = ("-e", "raw_syscalls:sys_enter", "--filter", f'COMM == "{name.name}"', "-e", "sched:sched_process_exit")
    d = recorder(*NO_LOSS, *events, "-M", "16M", *options)
    refused = [line for line in d.log().splitlines() if "fatal-signal is not armed" in line]
    if refused:
        pytest.skip(refused[0])
    p = start(name, "-c", "sleep 0.1; kill -SEGV $$")
    p.wait(timeout=180)
    path = d.until_dumped()
    cause, = causes(path)
    sample, = check(path, [cause])
    assert (sample.pid, sample.tid, sample.comm, sample.cpu) == (p.pid, p.pid, name.name, cause["cpu"])
    assert f"value={cause['value']}" in sample.trace and cause["detail"] in sample.trace, sample
    own = [line for line in script_lines(path) if line.tid == p.pid]
    before = max((line for line in own if time_ns(line) < time_ns(sample)), key=time_ns)
    after = min((line for line in own if time_ns(line) > time_ns(sample)), key=time_ns)
    assert "NR 62 " in before.trace and after.event == "sched:sched_process_exit", (before, sample, after)


def test_a_file_describes_its_trigger_samples_without_tracefs(recorder, state_dir):
    hide = ["unshare", "-m", "sh", "-c", 'while umount -l /sys/kernel/tracing 2>/dev/null; do :; done; exec "$@"', "sh"]
    must(*hide, "sh", "-c", "test ! -e /sys/kernel/tracing/events")
    d = recorder("-e", "cpu-clock", "-M", "8M", prefix=hide)
    load("burn", "-t", "0.1")
    paths = [d.dump_by_signal(), d.dump_by_control()]
    d.stop()
    for path in paths:
        check(path, causes(path))
    expected = [c for path in paths for c in causes(path)]
    assert merge(state_dir).code == 0
    check(state_dir / "perf.data", expected)


def test_each_cause_of_a_joined_dump_has_a_sample(recorder):
    """Further causes join the dump during its post-trigger time. Each cause has a trigger sample."""
    d = recorder("-e", "cpu-clock", "-M", "8M", "--post-trigger", "1500ms")
    for _ in range(3):
        d.ctl("dump", "--no-wait")
    path = d.dump_by_control()
    assert len(causes(path)) > 1
    check(path, causes(path))
    check_order(path)


def test_a_cause_after_the_window_has_a_sample(recorder):
    """A dump of a window in the past has only samples from this window. But its trigger sample has the time of the cause, which
    is after the window."""
    d = recorder("-e", "cpu-clock", "-F", "999", "-M", "8M")
    begin = time.time()
    load("burn", "-u", "0.5")
    took = time.time() - begin
    path = d.dump_by_control("--from", f"@{begin + 0.1 * took:.6f}", "--to", f"@{begin + 0.8 * took:.6f}")
    fields, lines = meta(path), script_lines(path, trace=False)
    sample, = check(path, causes(path))
    assert 10 < len(lines) == fields["samples"], "a trigger sample is not counted as a sample"
    assert all(fields["window"]["from_ns"] <= time_ns(line) <= fields["window"]["to_ns"] for line in lines)
    assert time_ns(sample) > fields["window"]["to_ns"]


def test_a_merge_of_several_recordings_has_the_samples_of_all(recorder, state_dir):
    """Recordings with and without stacks have different attributes of their events. The last dump, which a SIGUSR2 makes, has a
    trigger sample, too."""
    expected = []
    for events in (["-e", "cpu-clock", "--call-graph=fp"], ["-e", "cpu-clock"], ["-e", "sched:sched_switch"]):
        d = recorder(*events, "-M", "8M")
        load("burn", "-u", "0.1")
        expected += causes(d.dump_by_control())
        d.stop()
    r = merge(state_dir)
    assert r.code == 0, r.err
    check(state_dir / "perf.data", expected)
    (state_dir / "perf.data").unlink()
    d = recorder("-e", "cpu-clock", "-M", "8M")
    load("burn", "-t", "0.1")
    last, = trigger_samples(d.finish())
    assert last.trace.startswith("stop: ")


@pytest.mark.parametrize("events", [["-e", "cpu-clock", "--call-graph=fp"], ["-e", "cpu-clock"]], ids=["stacks", "none"])
def test_a_report_begins_with_the_recorded_event(recorder, events):
    d = recorder(*events, "-F", "499", "-M", "8M")
    load("burn", "-u", "0.3")
    path = d.dump_by_control()
    d.stop()
    assert samples_of(report_rows(path), "frtest-burn") > 50
    out = perf_clean("report", "-i", path, "--stdio")
    sections = out.split("# Samples: ")
    assert "of event 'cpu-clock'" in sections[1] and f"1  of event '{MARK}'" in sections[-1]
    columns = [line for line in out.splitlines() if re.match(r"# *(Children +Self|Overhead) +Command ", line)]
    assert len(columns) == len(sections) - 1, columns
    assert all(("Children" in line) == ("--call-graph=fp" in events) for line in columns), \
        f"a trigger sample turns on no columns of stacks: {columns}"
    rows = [line for line in sections[-1].splitlines() if line.strip() and not line.startswith("#")
            and "of event" not in line]
    assert len(rows) == 1 and "flightrecctl" in rows[0] and "[unknown]" in rows[0], f"it has no other sample's stack: {rows}"
    assert perf_clean("evlist", "-i", path).splitlines()[:3] == ["cpu-clock", "dummy", MARK]
