# SPDX-License-Identifier: GPL-2.0-or-later
"""The BPF programs of call-graph=unwind in the kernels of Debian: they load, and the unit tests of the unwinder pass."""
import os
from pathlib import Path

import pytest

import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
PROGRAMS = [BIN / name for name in ("flightrecd", "flightrecctl", "frtest-turn-one", "frtest-turn-two", "test-unwind-unwinder")]
SCRIPT = """
test-unwind-unwinder 2>&1
echo "unit tests: $?"
mkdir -p /tmp/state
flightrecd -e cpu-clock -F 199 --call-graph unwind -o /tmp/state --socket /tmp/state/s 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1; flightrecctl --socket /tmp/state/s status >/dev/null 2>&1 && break; done
for i in 1 2 3 4; do /bin/frtest-turn-one 20 30 /bin/frtest-turn-two; sleep 2; done
flightrecctl --socket /tmp/state/s status
"""


@pytest.mark.parametrize("series", kernel.SERIES)
def test_stacks_are_unwound_by_bpf(series, tmp_path):
    reason = kernel.missing(series)
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    vm = kernel.MiniVM(kernel.Kernel(series), share, programs=[*PROGRAMS, "/usr/bin/sleep", "/usr/bin/true"], memory=1024)
    try:
        out = vm.run(SCRIPT, limit=400)
    finally:
        vm.kill()
    print(out)
    assert "unit tests: 0" in out
    assert "changes of maps are noted" in out
    assert "OK ] test_a_new_map_is_noted_and_then_known" in out
    assert " unwound, " in out
