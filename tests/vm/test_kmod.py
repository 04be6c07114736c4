# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the modules of kmod/ for the kernels of Debian, lets the kernel crash with flightrec_mem loaded, and checks the bytes of
flightrec_pmu."""
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
RANGE = "memmap=16M$0x10000000"
LOAD = "insmod /share/flightrec_mem.ko address=0x10000000 size=16M"
MEMORY = "/dev/flightrec_mem"
SNAPSHOTS = 200  # of each CPU
EACH = pytest.mark.parametrize("built", kernel.SERIES, indirect=True, scope="module")
# One kernel is enough for what does not depend on the kernel.
OLDEST = pytest.mark.parametrize("built", kernel.SERIES[:1], indirect=True, scope="module")
NEWEST = pytest.mark.parametrize("built", kernel.SERIES[-1:], indirect=True, scope="module")


@pytest.fixture(scope="module")
def built(request, tmp_path_factory):
    """A kernel, and a directory with its modules."""
    reason = kernel.missing(request.param)
    if reason:
        pytest.skip(reason)
    made = kernel.Kernel(request.param)
    to = tmp_path_factory.mktemp(f"kmod-{request.param}")
    checks = ["C=2"] if shutil.which("sparse") else []
    printed = made.build(to, "W=1", *checks)
    assert "warning" not in printed and "error" not in printed, printed
    return made, to / "kmod"


@pytest.fixture
def boot(built, tmp_path):
    """Makes a VM with flightrec_mem.ko and frtest-crashmem. Its end kills QEMU."""
    made, modules = built
    started = []

    def make(append=RANGE, **options):
        share = tmp_path / f"share{len(started)}"
        share.mkdir()
        for ko in modules.glob("*.ko"):
            shutil.copy(ko, share)
        vm = kernel.MiniVM(made, share, programs=[BIN / "frtest-crashmem", BIN / "frtest-aux"], append=append, **options)
        started.append(vm)
        return vm

    yield make
    for vm in started:
        vm.kill()


def crash_script(crash):
    """Returns a script that formats the memory and crashes at the first boot, and prints what is in the memory at the second."""
    return f"""
        {LOAD} || exit 1
        if [ ! -e /share/crashed ]; then
            frtest-crashmem format {MEMORY} >/share/formatted || exit 1
            touch /share/crashed; sync
            {crash}
            sleep 60
        fi
        frtest-crashmem show {MEMORY}
    """


def shown(output):
    return json.loads(output.splitlines()[-1])


@EACH
def test_a_panic_leaves_a_record(boot):
    found = shown(boot().run(crash_script("exec sh -c 'echo c >/proc/sysrq-trigger'")))
    assert found["content"] == "other-boot" and found["right"] == 1
    record = found["record"]
    assert record["kind"] == "panic" and record["reason"] == "sysrq triggered crash" and record["comm"] == "sh"
    assert any("sysrq triggered crash" in line for line in record["log"])
    assert len(record["stack"]) > 3 and all(address.startswith("0xffffffff") for address in record["stack"])
    assert 0 < record["monotonic_ns"] < 600e9 and record["user_registers"]["rip"] != "0x0"


@OLDEST
def test_a_reset_leaves_the_memory_without_a_record(boot):
    vm = boot()
    vm.start(crash_script("touch /share/ready; sync"))
    vm.wait_for((vm.share / "ready").exists, "formatted memory")
    vm.monitor("system_reset")
    found = shown(vm.wait())
    assert found["content"] == "other-boot" and found["right"] == 1 and found["result"] != 0 and "record" not in found


@OLDEST
def test_memory_in_a_file_survives_a_power_cut(boot, tmp_path):
    options = {"memory_file": tmp_path / "ram"}
    vm = boot(**options)
    vm.start(crash_script("touch /share/ready; sync"))
    vm.wait_for((vm.share / "ready").exists, "formatted memory")
    vm.kill()
    again = boot(**options)
    (again.share / "crashed").touch()
    found = shown(again.run(crash_script("false")))
    assert found["content"] == "other-boot" and found["right"] == 1


@OLDEST
def test_foreign_memory_gets_no_record(boot):
    found = shown(boot().run(crash_script(f"""
        frtest-crashmem clear {MEMORY} && echo c >/proc/sysrq-trigger""")))
    assert found["content"] == "empty" and found["result"] == -2


@OLDEST
def test_a_range_that_the_kernel_uses_is_refused(boot):
    out = boot(append="").run("""
        insmod /share/flightrec_mem.ko address=0x10000000 size=16M
        insmod /share/flightrec_mem.ko
        insmod /share/flightrec_mem.ko address=0xfed00000 size=16M
        dmesg; [ ! -e /dev/flightrec_mem ]""")
    for message in ("the kernel uses this range as RAM: boot with memmap=16M$0x10000000", "give address= and size=",
                    "the firmware does not say that there is memory at 0xfed00000"):
        assert message in out


@EACH
def test_reserve_mem(boot, built):
    script = crash_script("echo c >/proc/sysrq-trigger").replace("address=0x10000000 size=16M", "reserve_name=flightrec")
    if built[0].version.startswith("6.1."):
        out = boot(append="").run("insmod /share/flightrec_mem.ko reserve_name=flightrec; dmesg | grep flightrec_mem")
        assert "no range has the name flightrec" in out
        return
    found = shown(boot(append="reserve_mem=16M:4096:flightrec nokaslr").run(script))
    assert found["content"] == "other-boot" and found["record"]["kind"] == "panic"


@OLDEST
def test_the_module_can_be_removed(boot):
    out = boot().run(f"{LOAD}; frtest-crashmem format {MEMORY} >/dev/null; rmmod flightrec_mem && {LOAD} && "
                     f"dmesg && frtest-crashmem show {MEMORY}")
    assert shown(out)["content"] == "same-boot"
    assert not re.search(r"WARNING:|BUG:|Oops:", out)


@NEWEST
def test_snapshots_of_aux_areas_have_nothing_stale(boot):
    """In each mode of the PMU, for all tasks and for one task that moves between the CPUs. At the low rate, an area is hardly ever
    full at its snapshot; at the high rate, it nearly always is."""
    runs = [(mode, whom, rate) for mode in range(4) for whom in ("cpu", "task") for rate in (20, 1000)]
    commands = [f"frtest-aux flightrec_pmu {mode | rate << 8} {whom} {SNAPSHOTS}" for mode, whom, rate in runs]
    out = boot(append="", smp=2).run(f"insmod /share/flightrec_pmu.ko && {' && '.join(commands)} && rmmod flightrec_pmu && dmesg")
    assert not re.search(r"WARNING:|BUG:|Oops:", out)
    for run, line in zip(runs, out.splitlines()):
        found, rate = json.loads(line), run[2]
        assert found.pop("records") > 1000, (run, line)
        assert found.pop("wrapped") > (0 if rate == 1000 else -1), (run, line)
        del found["nothing"]
        assert set(found.values()) == {0}, (run, line)
