# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecd in a VM that crashes."""
import random

import pytest

import crash
import kernel


@pytest.fixture
def crash_vm(tmp_path):
    """Makes a CrashVM with the oldest kernel. Its end kills QEMU."""
    reason = kernel.missing(kernel.SERIES[0])
    if reason:
        pytest.skip(reason)
    made, started = kernel.Kernel(kernel.SERIES[0]), []

    def make(**options):
        share = tmp_path / f"share{len(started)}"
        share.mkdir()
        started.append(crash.CrashVM(made, share, **options))
        return started[-1]

    yield make
    for one in started:
        one.vm.kill()


def test_the_next_boot_records_after_each_crash(crash_vm, tmp_path):
    """A panic, a reset and a power cut, at random moments. The boot after each of them records, and a dump has every number."""
    vm, moment = crash_vm(memory_file=tmp_path / "ram"), random.Random(1)
    for how in (vm.panic, vm.reset, vm.kill):
        vm.next_boot()
        crash.sleep_random(moment)
        how()
    vm.next_boot()
    crash.sleep_random(moment)
    vm.end("flightrecctl --socket /run/control dump || exit 1")
    dump, counted = vm.dumps()[-1], vm.counted(4)
    found = vm.numbers(dump, 4)
    assert (found["first"], found["missing"], found["twice"], found["backwards"]) == (0, 0, 0, 0)
    assert 0 < found["last"] < counted + crash.STEP
    assert crash.sidecar(dump)["losses"] == []
    lines = crash.perf_script(dump)
    assert sum(line.split()[0] == "frtest-count" and "sys_enter" in line for line in lines) == found["count"]
