# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUBudget=: a recorder that uses too much CPU time samples less often. The log, status, metrics and dumps report it."""
import statistics
import subprocess
from pathlib import Path

import pytest

from harness import NO_LOSS, end, last_cpu, meta, program, quiet_config, script_lines, start, trigger_samples, until
from openmetrics import Metrics

MAX_RATE = Path("/proc/sys/kernel/perf_event_max_sample_rate")


def with_budget(tmp_path, budget):
    return quiet_config(tmp_path / "budget.conf", f"[Recorder]\nCPUBudget={budget}\n")


def frequency(d):
    return d.status()["frequency"]


def median_distance(lines, cpu, from_s, to_s):
    """Returns the median of the times between two successive samples of a CPU, in seconds. (The median, because the host can
    stop a virtual machine for some time.)"""
    times = [float(line.time) for line in lines if line.cpu == cpu and from_s <= float(line.time) < to_s]
    return statistics.median(b - a for a, b in zip(times, times[1:]))


def test_the_frequency_is_halved_and_reported(recorder, tmp_path):
    hz = 4000  # a slow virtual machine can make so many samples
    if int(MAX_RATE.read_text()) < hz:
        pytest.skip(f"{MAX_RATE} is below {hz}")
    # `exhausted` is a second recorder, whose event has no sampling frequency. It is tested at the same time, because each of
    # the two tests has to wait.
    no_frequency = tmp_path / "no-frequency"
    no_frequency.mkdir()
    exhausted = recorder("--config", with_budget(no_frequency, "0.01%"), "-e", "sched:sched_switch", "-M", "8M", directory=no_frequency)
    # The event has a ring of its own: CPUBudget= holds for the events of all rings.
    d = recorder("--config", with_budget(tmp_path, "0.01%"), *NO_LOSS, "-F", hz, "-M", "1M", "--ring", "cpu:64M", "-e", "cpu-clock")
    burn, pingpong = (start("nice", "-n", "19", program(f"frtest-{name}"), "-t", "600", *args, stdout=subprocess.DEVNULL)
                      for name, args in (("burn", ("-c", last_cpu())), ("pingpong", ())))  # for half a minute, beside other tests
    assert frequency(d)["hz"] == hz
    until("step down", lambda: frequency(d)["divisor"] > 1, 120)
    # At least ten seconds pass between two steps of the frequency, so this dump has one step.
    dump = d.dump_by_control("--post", "2s")
    f, text = frequency(d), d.text_status()
    m, steps = Metrics(d.ctl("metrics").out), meta(dump)["frequency_steps"]

    step = steps[0]
    assert step["from_hz"] == hz and step["to_hz"] == hz // 2 and "before_window" not in step
    assert f["steps_down"] >= 1 and f["full_hz"] == hz and f["hz"] == hz / f["divisor"]
    assert f"instead of {hz} Hz" in text, text
    assert m.get("flightrec_frequency_divisor") == f["divisor"]
    assert m.get("flightrec_frequency_steps_total", direction="down") >= 1
    lowered = f"{hz} Hz to {hz // 2} Hz"
    assert f"sampling frequency {lowered}" in d.log()
    at = step["monotonic_ns"] / 1e9
    shown = [sample for sample in trigger_samples(dump) if "cpu-budget" in sample.trace]
    assert len(shown) == len(steps)
    assert abs(float(shown[0].time) - at) < 1e-6 and lowered in shown[0].trace, shown
    lines = script_lines(dump, trace=False)
    before, after = median_distance(lines, last_cpu(), at - 2, at - 0.5), median_distance(lines, last_cpu(), at + 0.5, at + 2)
    print(f"from sample to sample of a CPU: {before * 1e6:.0f} µs before the step, {after * 1e6:.0f} µs after it")
    assert 1.4 < after / before < 3, (before, after)

    # If the window begins after the step, the JSON still has the step.
    late = meta(d.dump_by_control("--last", "500ms"))["frequency_steps"]
    assert late[0].get("before_window") or late[0]["monotonic_ns"] > step["monotonic_ns"], late
    # When CPUBudget= is removed, the frequency goes back to its full value at once.
    with_budget(tmp_path, "no")
    assert d.ctl("reload").code == 0
    assert frequency(d)["divisor"] == 1 and frequency(d)["steps_up"] == 1
    assert "there is no CPUBudget= any more" in d.log()

    until("report that it costs too much", lambda: frequency(exhausted)["exhausted"], 120)
    assert frequency(exhausted)["divisor"] == 1 and "record fewer events" in exhausted.text_status()
    end(burn, pingpong)
    log = exhausted.log()
    exhausted.stop()
    assert log.count("cannot be stepped down") == 1, log


def test_without_a_budget_there_are_no_steps(recorder):
    d = recorder("-e", "cpu-clock", "-F", "99", "-M", "4M")
    f, dump = frequency(d), d.dump_by_control()
    assert f["budget_percent"] == 0 and f["divisor"] == 1 and "frequency_steps" not in meta(dump)
