# SPDX-License-Identifier: GPL-2.0-or-later
"""The event offcpu on the kernels of Debian, in QEMU: durations, states, wakers and stacks, and without a missed sleep."""
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

import kernel
import machine

sys.path.insert(0, str(machine.SOURCE / "tests/integration"))
from offcpu import all_samples_of, ms, truths  # noqa: E402

FULL = "FLIGHTREC_FULL" in os.environ
BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
PROGRAMS = [BIN / p for p in ("flightrecd", "flightrecctl", "frtest-incident", "frtest-stuck")]
TIMES, MUTEX_TIMES, HELD_MS = 60, 40, 60
SCRIPT = f"""
    flightrecd -e offcpu -o /tmp --socket /tmp/ctl >/share/log 2>&1 &
    n=0; until flightrecctl --socket /tmp/ctl status 2>&1 | grep -q flightrec:offcpu; do n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
    sleep 0.5
    frtest-stuck >/share/stuck &
    frtest-incident -n {TIMES} -m 20 -f /tmp/data sleeps >/share/sleeps || exit 1
    frtest-incident -n {MUTEX_TIMES} -m {HELD_MS} mutex >/share/mutex || exit 1
    flightrecctl --socket /tmp/ctl dump >/dev/null && flightrecctl --socket /tmp/ctl status --json=short >/share/status
    cp /tmp/perf.data.sample.*Z /share/dump
"""


@pytest.mark.parametrize("series", kernel.SERIES if FULL else kernel.SERIES[:1])
def test_on_a_kernel_of_debian(series, tmp_path):
    reason = kernel.missing(series)
    if reason:
        pytest.skip(reason)
    (tmp_path / "share").mkdir()
    vm = kernel.MiniVM(kernel.Kernel(series), tmp_path / "share", programs=PROGRAMS, smp=2)
    share = tmp_path / "share"
    try:
        vm.run(SCRIPT)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{(share / 'log').read_text()}") from None
    finally:
        vm.kill()
    sleeps, wakers, waiting = all_samples_of(share / "dump")
    stuck = {w["tid"]: w for w in map(json.loads, (share / "stuck").read_text().splitlines())}
    found = [s for s in waiting if s.tid in stuck]
    assert len(stuck) == 3 and sorted(s.tid for s in found) == sorted(stuck), (stuck, waiting)
    for s in found:
        assert s.fields["state"] == stuck[s.tid]["state"] and s.period <= s.ns - stuck[s.tid]["from_ns"] and s.kernel, s
    known = truths((share / "sleeps").read_text()) + truths((share / "mutex").read_text())
    kinds = {"futex": "S", "poll": "S", "nanosleep": "S", "mutex": "S"}
    by_tid = {}
    for s in sleeps:
        by_tid.setdefault(s.tid, []).append(s)
    checked = Counter()
    stacks = 0
    for t in (t for t in known if t.kind in kinds):
        # If the waiter comes to the mutex late, it waits only for a short time, or not at all.
        if t.kind == "mutex" and t.to_ns - t.from_ns < HELD_MS / 2 * 1e6:
            continue
        inside = [s for s in by_tid.get(t.tid, []) if t.from_ns <= s.ns - s.period and s.ns <= t.to_ns]
        slept = [s for s in inside if s.fields["state"] == "S"]
        # The emulated machine is slow: what the thread does before and after its sleep takes many milliseconds. So durations are
        # compared with the program's own clock on real machines only (tests/integration/test_offcpu.py).
        assert slept and 5 < max(map(ms, slept)) <= (t.to_ns - t.from_ns) / 1e6, (t, inside)
        longest = max(slept, key=ms)
        context = longest.fields["context"]
        assert context == ("hardirq" if t.kind == "nanosleep" else "task"), (t, longest)
        if t.waker_tid:
            assert int(longest.fields["waker_tid"]) == t.waker_tid, (t, longest)
            assert any(w.tid == t.waker_tid and t.from_ns < w.ns <= longest.ns for w in wakers), t
        checked[t.kind] += 1
        stacks += len(longest.user) >= 4  # the host has no symbols for the programs of the VM
    assert {k: n for k, n in checked.items() if k != "mutex"} == {"futex": TIMES, "poll": TIMES, "nanosleep": TIMES}, checked
    assert checked["mutex"] >= MUTEX_TIMES / 2 and stacks > checked.total() / 4, (checked, stacks)
    assert {s.fields["state"].rstrip("+") for s in sleeps} >= {"S", "R"}
    assert all(s.kernel for s in sleeps if s.fields["state"] == "S")
