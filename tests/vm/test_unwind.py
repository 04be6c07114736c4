# SPDX-License-Identifier: GPL-2.0-or-later
"""The BPF programs of call-graph=unwind in the kernels of Debian: they load, and note the maps of processes."""
import os
from pathlib import Path

import pytest

import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
PROGRAMS = [BIN / name for name in ("flightrecd", "flightrecctl", "frtest-turn-one", "frtest-turn-two", "test-unwind-unwinder")]
# Other unit tests need libraries that the VM does not have, or are too slow for an emulated processor.
PASS = ["a_new_map_is_noted_and_then_known", "after_an_exec_a_young_process_has_the_maps_of_the_kernel",
        "a_file_that_was_missed_is_known_in_the_next_process", "a_file_that_has_changed_is_not_known", "a_deleted_file_has_a_table",
        "a_forked_process_has_maps_at_once", "the_vdso_has_a_table", "other_objects_share_the_maps"]
SCRIPT = """
test-unwind-unwinder 2>&1
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
    assert "changes of maps are noted" in out
    for name in PASS:
        assert f"OK ] test_{name}" in out, name
    assert " unwound, " in out
