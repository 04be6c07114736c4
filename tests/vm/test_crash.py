# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecd in a VM that crashes again and again. Each boot finds the ring of the one before it in the memory of flightrec_mem, and
writes it to a dump before it begins a new ring."""
import os
import random

import pytest

import crash
import kernel

FULL = bool(os.environ.get("FLIGHTREC_FULL"))
CRASHES = 20 if FULL else 2  # of each kind
# In seconds. A round comes each 50 ms, but the emulated processor can be slow: more than USUAL seconds from the boot to the crash.
LATE = 0.5
USUAL = 30


@pytest.fixture
def built(kernel_with_modules):
    """The oldest kernel, and its module flightrec_mem."""
    made, modules = kernel_with_modules(kernel.SERIES[0])
    return made, modules / "flightrec_mem.ko"


@pytest.fixture
def crash_vm(built, tmp_path):
    """Makes a CrashVM. Its end kills QEMU."""
    share, started = tmp_path / "share", []
    share.mkdir()

    def make(**options):
        started.append(crash.CrashVM(built[0], share, module=built[1], config="RingMemory=/dev/flightrec_mem\n", **options))
        return started[-1]

    yield make
    for one in started:
        one.vm.kill()


def check(vm, boot, how):
    """Checks the dump of a boot that crashed. Returns how many numbers are in the dump, how many are missing at its end, and how much
    time before the panic is missing (None: no panic)."""
    dump = vm.dumps()[boot - 1]
    m, found, counted = crash.sidecar(dump), vm.numbers(dump, boot), vm.counted(boot)
    assert (found["first"], found["missing"], found["twice"], found["backwards"]) == (0, 0, 0, 0), found
    assert m["cause"]["trigger"] == "machine-crash" and m["crash"]["names_are_whole"], m
    assert {x["cause"] for x in m["losses"]} == {"machine-crash"}, m["losses"]
    late = LATE * max(1, m["crash"]["recorded_until_ns"] / 1e9 / USUAL)
    # The load counts about 10,000 numbers a second.
    assert counted - late * 10000 <= found["last"] + 1 <= counted + crash.STEP, (found, counted)
    if how == "panic":
        assert m["cause"]["reason"] == "sysrq triggered crash" and m["cause"]["comm"] == "sh" and m["crash"]["kind"] == "panic", m
        assert any("sysrq triggered crash" in line for line in m["crash"]["log"])
        assert 0 <= m["crash"]["missing_seconds"] < late, m["crash"]["missing_seconds"]
    else:
        assert m["cause"]["reason"] == "reset or power loss" and "kind" not in m["crash"]
        assert m["crash"]["missing_seconds_about"] == 0.06
    lines = crash.perf_script(dump)
    assert sum(line.split()[0] == "frtest-count" and "sys_enter" in line for line in lines) == found["count"]
    assert not [line for line in lines if line.startswith(":")]  # the thread has no name
    return found["count"], counted - found["count"], m["crash"].get("missing_seconds")


def test_the_next_boot_makes_a_dump_of_each_crash(crash_vm, tmp_path):
    """Panics, resets and power cuts, at random moments."""
    vm, moment = crash_vm(memory_file=tmp_path / "ram"), random.Random()
    kinds = ["panic", "reset", "kill"] * CRASHES
    for how in kinds:
        vm.next_boot()
        crash.sleep_random(moment)
        getattr(vm, how)()
    vm.next_boot()
    vm.end("flightrecctl --socket /run/control stop")
    assert len(vm.dumps()) == len(kinds)
    found = [check(vm, boot, how) for boot, how in enumerate(kinds, 1)]
    seconds = [x[2] for x in found if x[2] is not None]
    print(f"{len(kinds)} crashes: {sum(x[0] for x in found)} numbers in the dumps, at most {max(x[1] for x in found)} missing after the "
          f"last one of a dump; missing before a panic: {sum(seconds) / len(seconds) * 1e3:.0f} ms, at most {max(seconds) * 1e3:.0f} ms")
    report = crash.perf("report", "-i", vm.dumps()[0], "--stdio", "-s", "comm", "--kallsyms", f"{vm.dumps()[0]}.kallsyms")
    assert "frtest-count" in report
    # The recorder of the last boot has ended as asked, so there is nothing to rescue.
    assert "from the ring" not in vm.log(len(kinds) + 1).split("recording")[-1]
