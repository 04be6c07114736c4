# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the modules of kmod/ for the kernels of Debian, and lets the kernel crash with flightrec_mem loaded."""
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
EACH = pytest.mark.parametrize("built", kernel.SERIES, indirect=True, scope="module")
# One kernel is enough for what does not depend on the kernel.
OLDEST = pytest.mark.parametrize("built", kernel.SERIES[:1], indirect=True, scope="module")


@pytest.fixture(scope="module")
def built(request, kernel_with_modules):
    """A kernel, and a directory with its modules."""
    return kernel_with_modules(request.param)


@pytest.fixture
def boot(built, tmp_path):
    """Makes a VM with flightrec_mem.ko and frtest-crashmem. Its end kills QEMU."""
    made, modules = built
    started = []

    def make(append=RANGE, programs=(), **options):
        share = tmp_path / f"share{len(started)}"
        share.mkdir()
        for ko in modules.glob("*.ko"):
            shutil.copy(ko, share)
        vm = kernel.MiniVM(made, share, programs=[BIN / "frtest-crashmem", *programs], append=append, **options)
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


FORMAT = f"frtest-crashmem format {MEMORY} >/dev/null || exit 1"
PANIC = "exec sh -c 'echo c >/proc/sysrq-trigger'"
OOPS = "insmod /share/flightrec_crash.ko kind=oops"
ON_OOPS = "echo 1 >/proc/sys/kernel/panic_on_oops"


def chain(vm, *steps):
    """Runs one step in each boot; each step ends the boot. Returns what is in the memory after each step, at the next boot."""
    cases = "".join(f"{number}) touch /share/found.last; {step}; sleep 60; exit 1;;\n" for number, step in enumerate(steps))
    vm.run(f"""
        {LOAD} || exit 1
        n=$(ls /share/found.[0-9]* 2>/dev/null | wc -l)
        [ ! -e /share/found.last ] || frtest-crashmem show {MEMORY} >/share/found.$n
        case $(ls /share/found.[0-9]* 2>/dev/null | wc -l) in
        {cases}
        esac""")
    return [json.loads((vm.share / f"found.{number}").read_text()) for number in range(len(steps))]


def check_panic(found, reason, comm):
    record = found["record"]
    assert found["content"] == "other-boot" and found["right"] == 1
    assert record["kind"] == "panic" and record["reason"] == reason and record["comm"] == comm
    assert 0 < record["monotonic_ns"] < 600e9
    assert len(record["stack"]) > 3 and all(address.startswith("0xffffffff") for address in record["stack"])
    assert any(reason.split(" (")[0] in line for line in record["log"])
    return record


def check_oops(record):
    assert int(record["registers"]["rip"], 16) > 0xffffffffc0000000 and "user_registers" not in record
    assert any("flightrec_crash_here" in line for line in record["log"])


@EACH
def test_panics_leave_a_record(boot, built):
    """The newest kernel also has to stop another CPU."""
    smp = 1 if built[0].version.startswith("6.1.") else 2
    panic, oops = chain(boot(smp=smp), f"{FORMAT}; {PANIC}", f"{FORMAT}; {ON_OOPS}; {OOPS}")
    record = check_panic(panic, "sysrq triggered crash", "sh")
    assert record["user_registers"]["rip"] != "0x0" and "registers" not in record
    check_oops(check_panic(oops, "Fatal exception (Oops)", "insmod"))


@OLDEST
def test_crashes_of_other_kinds(boot):
    show, close = f"frtest-crashmem show {MEMORY} >/share/shown", f"frtest-crashmem close {MEMORY}"
    load = "insmod /share/flightrec_crash.ko"
    vm = boot(modules=["i6300esb"], devices=["-device", "i6300esb", "-action", "watchdog=reset"])
    interrupt, still, lockup, reset, oops, foreign = chain(
        vm,
        f"{FORMAT}; {load} kind=interrupt",
        f"{ON_OOPS}; {OOPS}",
        f"{FORMAT}; echo 1 >/proc/sys/kernel/watchdog_thresh; echo 1 >/proc/sys/kernel/softlockup_panic; {load} kind=softlockup",
        f"{FORMAT}; watchdog -T 2 -t 1 /dev/watchdog; killall -STOP watchdog",
        f"{FORMAT}; {OOPS}; {show}; {close}; reboot -f",
        f"frtest-crashmem clear {MEMORY}; {PANIC}")
    check_oops(check_panic(interrupt, "Fatal exception in interrupt (Oops)", "insmod"))
    assert still == interrupt  # a crash does not change what an earlier boot has left
    record = check_panic(lockup, "softlockup: hung tasks", "insmod")
    assert any("soft lockup" in line for line in record["log"])
    # The watchdog resets the machine. No kernel can write a record.
    assert reset["content"] == "other-boot" and reset["right"] == 1 and reset["result"] == -2
    # The machine goes on after an oops.
    shown = json.loads((vm.share / "shown").read_text())
    assert shown["content"] == "same-boot" and oops["content"] == "closed" and shown["record"] == oops["record"]
    assert oops["record"]["kind"] == "oops" and oops["record"]["comm"] == "insmod"
    check_oops(oops["record"])
    assert foreign["content"] == "empty" and foreign["result"] == -2


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
@pytest.mark.skipif(not os.environ.get("FLIGHTREC_FULL"), reason="a power cut tests the same memory: ./dev test --full runs it")
def test_power_button(boot, tmp_path):
    """The button of ACPI ends the system, and the power of its memory remains. At the next boot, `reboot -f` does the same."""
    options = {"memory_file": tmp_path / "ram", "modules": ["button", "evdev"]}
    vm = boot(**options)
    vm.start(crash_script("""
        for e in /dev/input/event*; do (head -c 1 $e >/dev/null && poweroff -f)& done
        touch /share/ready; sync"""))
    vm.wait_for((vm.share / "ready").exists, "formatted memory")
    vm.monitor("system_powerdown")
    vm.process.wait(60)
    vm.kill()
    found = chain(boot(**options), "reboot -f", f"{FORMAT}; reboot -f")
    for one in found:
        assert one["content"] == "other-boot" and one["right"] == 1 and one["result"] == -2


@OLDEST
def test_persistent_memory(boot):
    """A file on a DAX file system, and a DAX device; the kernel's own /dev/pmem0 is refused. The device is made as ndctl does it."""
    ndctl = """
        cd /sys/bus/nd/devices/dax1.0; echo namespace1.0 >/sys/bus/nd/drivers/nd_pmem/unbind
        echo 6b3ac4b6-6a1f-4a0b-8d4d-0a2d4f0b1c2e >uuid; echo 4096 >align; echo ram >mode; echo namespace1.0 >namespace
        echo dax1.0 >/sys/bus/nd/drivers/dax_pmem/bind"""
    vm = boot(append="memmap=64M!0x10000000 memmap=32M!0x18000000", modules=["nd_e820", "nd_pmem", "dax_pmem", "device_dax", "ext4"],
              programs=[shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")])
    out = vm.run(f"""
        mkdir /mnt
        if [ ! -e /share/crashed ]; then
            (! frtest-crashmem show /dev/pmem0) >/share/refused 2>&1 || exit 1
            mkfs.ext4 -q -b 4096 /dev/pmem0 && mount -t ext4 -o dax /dev/pmem0 /mnt && (umask 077; fallocate -l 16M /mnt/ring) || exit 1
            ({ndctl}) || exit 1
            touch /share/crashed; sync
            frtest-crashmem format /mnt/ring && frtest-crashmem format /dev/dax1.0 && {PANIC}
            exit 1
        fi
        mount -t ext4 -o dax /dev/pmem0 /mnt && frtest-crashmem show /mnt/ring && frtest-crashmem show /dev/dax1.0""")
    for found in map(json.loads, out.splitlines()[-2:]):
        assert found == {"content": "other-boot", "right": 1, "result": -2}
    assert "/dev/pmem0 is a block device" in (vm.share / "refused").read_text()


@OLDEST
def test_a_range_that_the_kernel_uses_is_refused(boot):
    out = boot(append="").run("""
        insmod /share/flightrec_mem.ko address=0x10000000 size=16M
        insmod /share/flightrec_mem.ko
        insmod /share/flightrec_mem.ko address=0xfed00000 size=16M
        dmesg; [ ! -e /dev/flightrec_mem ]""")
    for message in ("the kernel uses this range as RAM: boot with memmap=16M$0x10000000", "give address= and size=",
                    "no map of the firmware has memory at 0xfed00000"):
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
