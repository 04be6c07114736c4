# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUBudget=: a recorder that costs too much samples less often, and says so everywhere."""
import json
import statistics
from pathlib import Path

import pytest

from harness import ARMED_PROBES, NO_LOSS, last_cpu, marks, script_lines, sidecar, start_load, until
from openmetrics import Metrics

MAX_RATE = Path("/proc/sys/kernel/perf_event_max_sample_rate")


def with_budget(tmp_path, budget, more=""):
    probes = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
    path = tmp_path / "budget.conf"
    path.write_text(f"[Recorder]\nCPUBudget={budget}\n{more}[Triggers]\nSocket={tmp_path}/trigger\n{probes}")
    return path


def frequency(d):
    return d.status()["frequency"]


def distance(lines, cpu, from_s, to_s):
    """From sample to sample of a CPU, whoever has it, in seconds: most of them, where a machine stood still for a while."""
    times = [float(line.time) for line in lines if line.cpu == cpu and from_s <= float(line.time) < to_s]
    return statistics.median(b - a for a, b in zip(times, times[1:]))


def test_steps_down_and_says_so(recorder, tmp_path):
    hz = 20000
    if int(MAX_RATE.read_text()) < hz:
        pytest.skip(f"{MAX_RATE} is below {hz}")
    config = with_budget(tmp_path, "0.01%")
    d = recorder("--config", config, *NO_LOSS, "-e", "cpu-clock", "-F", hz, "-M", "64M")
    burn = start_load("burn", "-t", "600", "-c", last_cpu())
    assert frequency(d)["hz"] == hz
    until("step down", lambda: frequency(d)["divisor"] > 1, 120)
    # The next step is ten seconds away: there is time to see what came of this one.
    dump = d.dump_by_control("--post", "4s")
    f, text = frequency(d), d.ctl("status", "--no-pager").out
    m = Metrics(d.ctl("metrics").out)
    meta = json.loads(sidecar(dump).read_text())

    step = meta["frequency_steps"][0]
    assert step["from_hz"] == hz and step["to_hz"] == hz // 2 and "before_window" not in step
    assert f["steps_down"] >= 1 and f["full_hz"] == hz and f["hz"] == hz / f["divisor"]
    assert f"instead of {hz} Hz" in text, text
    assert m.get("flightrec_frequency_divisor") == f["divisor"]
    assert m.get("flightrec_frequency_steps_total", direction="down") >= 1
    assert "sampling frequency 20000 Hz to 10000 Hz" in d.log()
    at = step["monotonic_ns"] / 1e9
    told = [mark for mark in marks(dump) if "cpu-budget" in mark.trace]
    assert len(told) == len(meta["frequency_steps"])
    assert abs(float(told[0].time) - at) < 1e-6 and "20000 Hz to 10000 Hz" in told[0].trace, told
    lines = script_lines(dump, trace=False)
    before, after = distance(lines, last_cpu(), at - 3, at - 0.5), distance(lines, last_cpu(), at + 0.5, at + 3)
    print(f"from sample to sample of a CPU: {before * 1e6:.0f} µs before the step, {after * 1e6:.0f} µs after it")
    assert 1.4 < after / before < 3, (before, after)

    # A window that begins after it knows it still.
    late = json.loads(sidecar(d.dump_by_control("--last", "500ms")).read_text())["frequency_steps"]
    assert late[0].get("before_window") or late[0]["monotonic_ns"] > step["monotonic_ns"], late
    # Without a budget all of it is back at once.
    with_budget(tmp_path, "no")
    assert d.ctl("reload").code == 0
    assert frequency(d)["divisor"] == 1 and frequency(d)["steps_up"] == 1
    assert "there is no CPUBudget= any more" in d.log()
    burn.kill()
    burn.wait()
    d.stop()


def test_what_cannot_step_is_told_once(recorder, tmp_path):
    d = recorder("--config", with_budget(tmp_path, "0.01%"), "-e", "sched:sched_switch", "-M", "8M")
    load = start_load("pingpong", "-t", "600")
    until("word that it is too much", lambda: frequency(d)["exhausted"], 120)
    assert frequency(d)["divisor"] == 1
    assert "record fewer events" in d.ctl("status", "--no-pager").out
    load.kill()
    load.wait()
    log = d.log()
    d.stop()
    assert log.count("cannot be stepped down") == 1, log


def test_no_budget_no_steps(recorder):
    d = recorder("-e", "cpu-clock", "-F", "99", "-M", "4M")
    f = frequency(d)
    dump = d.dump_by_control()
    d.stop()
    assert f["budget_percent"] == 0 and f["divisor"] == 1
    assert "frequency_steps" not in json.loads(sidecar(dump).read_text())
