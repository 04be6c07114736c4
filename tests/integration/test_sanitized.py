# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorder that is built with sanitizers starts, works and stops. If a sanitizer finds something (also a leak), the exit code
is not 0."""
import os
from pathlib import Path

import pytest

from harness import load, perf_clean, run

pytestmark = pytest.mark.sanitized
# Directories with programs, separated by colons.
SANITIZED = [Path(p) for p in os.environ.get("FLIGHTREC_SANITIZED", "").split(":") if p]


@pytest.mark.parametrize("name", ["asan-ubsan", "tsan"])
def test_a_recorder_with_sanitizers_from_start_to_stop(recorder, name):
    program = next((p / "flightrecd" for p in SANITIZED if name in p.parts), None)
    if not program or not program.exists():
        pytest.skip(f"FLIGHTREC_SANITIZED has no flightrecd of {name}: ./dev build {name} makes it")
    # With address randomisation, some kernels place programs at addresses for which thread sanitizer has no shadow memory.
    without_aslr = ("setarch", "-R") if name == "tsan" and run("setarch", "-R", "true").code == 0 else ()
    d = recorder("-e", "cpu-clock", "-e", "sched:sched_switch", "--call-graph=fp", "-M", "8M", binary=program, prefix=without_aslr,
                 env={"ASAN_OPTIONS": "detect_leaks=1"})
    load("spawn", "-n", 50, "-m", 1)
    first = d.dump_by_control()
    assert d.ctl("reload").code == 0
    load("spawn", "-n", 50, "-m", 1)
    for path in (first, d.dump_by_signal()):
        perf_clean("report", "-i", path, "--stdio")
    perf_clean("report", "-i", d.finish(), "--stdio")
