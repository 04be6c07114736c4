# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder that is built with sanitizers, through its whole life: what it does wrong, or does not free, ends it
with another exit code."""
import os
from pathlib import Path

import pytest

from harness import load, perf_clean

BIN = os.environ.get("FLIGHTREC_ASAN_BIN")


def test_a_whole_life(recorder):
    if not BIN or not Path(BIN, "flightrecd").exists():
        pytest.skip("FLIGHTREC_ASAN_BIN has no flightrecd: ./dev build asan-ubsan")
    d = recorder("-e", "cpu-clock", "-e", "sched:sched_switch", "-g", "-M", "8M", binary=str(Path(BIN, "flightrecd")),
                 env={"ASAN_OPTIONS": "detect_leaks=1"})
    load("spawn", "-n", 50)
    first = d.dump_by_control()
    assert d.ctl("reload").code == 0
    load("spawn", "-n", 50)
    for path in (first, d.dump_by_signal()):
        perf_clean("report", "-i", path, "--stdio")
    perf_clean("report", "-i", d.finish(), "--stdio")
