# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecd in a VM, with a load that numbers its events, and crashes of the VM.

Each boot starts flightrecd and the load. A crash ends the boot, and the next boot begins by itself. The load writes to the host
how far it has counted, so that a test knows which numbers were lost."""
import json
import os
import subprocess
import time
from pathlib import Path

import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
PROGRAMS = ["flightrecd", "flightrecctl", "frtest-count", "frtest-crashmem"]
STEP = 50  # numbers
LSEEK = 8  # the system call of frtest-count
CONFIG = """[Recorder]
Events=raw_syscalls:sys_enter
Filter=id == 8
Events=sched:sched_switch
RingSize=16M
Directory=/share/rec
ControlSocket=/run/control
Group=root
"""
# Probes need a second of the emulated processor at each boot.
CONFIG_END = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ("hung-task", "soft-lockup", "oom-kill"))
# Waits for a script of the host after the load has started. About 10,000 numbers a second.
SCRIPT = """
n=$(($(cat /share/boots 2>/dev/null || echo 0) + 1)); echo $n >/share/boots
echo root:x:0:0:root:/root:/bin/sh >/etc/passwd; echo root:x:0: >/etc/group; mkdir -p /root /share/rec
[ ! -e /share/flightrec_mem.ko ] || insmod /share/flightrec_mem.ko address=0x10000000 size=64M || exit 1
flightrecd --config /share/flightrecd.conf -v >/share/log.$n 2>&1 &
until grep -q recording /share/log.$n; do sleep 0.05; kill -0 $! || exit 1; done
# On a very slow machine, the recording begins before the names are known, and before the first checkpoint of the tail.
if grep -q "records before" /share/log.$n; then
    until flightrecctl --socket /run/control status --json=short | grep -q '"scans":[1-9]'; do sleep 0.05; done; sleep 2
fi
(while :; do printf 0123456789; usleep 50000; done) | frtest-count -s STEP >/share/steps.$n &
echo $! >/share/tid.$n.new; mv /share/tid.$n.new /share/tid.$n
until [ -e /share/go.$n ]; do sleep 0.05; done
. /share/go.$n
sleep 60; exit 1
""".replace("STEP", str(STEP))


class CrashVM:
    """A VM that crashes again and again. SHARE is an empty directory, in which MODULE, the file flightrec_mem.ko, is put if it is
    given. CONFIG is added to the configuration of flightrecd. OPTIONS are those of MiniVM: with memory_file, the memory survives
    also kill()."""

    def __init__(self, made, share, *, module=None, config="", **options):
        self.share = Path(share)
        (self.share / "flightrecd.conf").write_text(CONFIG + config + CONFIG_END)
        if module:
            (self.share / "flightrec_mem.ko").write_bytes(Path(module).read_bytes())
        self.vm = kernel.MiniVM(made, self.share, programs=[BIN / name for name in PROGRAMS], append="memmap=64M$0x10000000",
                                **{"memory": 768, **options})
        self.boot = 0  # number of the boot that runs

    def next_boot(self):
        """Waits until flightrecd records in the next boot, and the load counts."""
        self.boot += 1
        if not self.vm.process:
            self.vm.start(SCRIPT)
        self.vm.wait_for((self.share / f"tid.{self.boot}").exists, f"boot {self.boot}")

    def go(self, script):
        """Lets the VM run a script, which ends the boot."""
        new = self.share / "go.new"
        new.write_text(script)
        new.rename(self.share / f"go.{self.boot}")

    def panic(self):
        self.go("echo c >/proc/sysrq-trigger")

    def reset(self):
        self.vm.monitor("system_reset")

    def kill(self):
        """As a power cut. The memory survives it only with memory_file."""
        self.vm.kill()

    def end(self, script=""):
        """Ends the VM after SCRIPT. Returns the output of the scripts of this boot."""
        self.go(f"{script}\nexit 0")
        return self.vm.wait()

    def counted(self, boot):
        """Returns how many numbers the load of a boot has counted; it has counted at most STEP more."""
        return (self.share / f"steps.{boot}").stat().st_size * STEP

    def log(self, boot):
        return (self.share / f"log.{boot}").read_text()

    def dumps(self):
        """Returns the dumps, oldest first."""
        return sorted(path for path in (self.share / "rec").glob("perf.data.sample.*Z"))

    def numbers(self, dump, boot):
        """Returns the JSON of frtest-sequence: which numbers of the load of a boot are in a dump."""
        tid = (self.share / f"tid.{boot}").read_text().strip()
        out = subprocess.run([BIN / "frtest-sequence", dump, tid, str(LSEEK)], check=True, capture_output=True, text=True).stdout
        return json.loads(out)


def sidecar(dump):
    return json.loads(Path(f"{dump}.json").read_text())


def perf(verb, *args):
    """Returns what stock perf prints."""
    done = subprocess.run(["perf", verb, "-f", *args], capture_output=True, text=True, check=False,
                          env={**os.environ, "PERF_CONFIG": "/dev/null"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def perf_script(dump, fields="comm,tid,time,event"):
    return perf("script", "-i", dump, "-F", fields).splitlines()


def sleep_random(random, least=0.2, most=2.0):
    """Waits for a time that the generator RANDOM chooses."""
    time.sleep(random.uniform(least, most))
