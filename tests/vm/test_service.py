# SPDX-License-Identifier: GPL-2.0-or-later
"""The package on a Debian whose PID 1 is systemd: an administrator installs, configures, stops, upgrades and removes it."""
import json
import os
import random
import re
import shutil
import subprocess
import threading
import time

import pytest

import machine as vm
from conftest import UPGRADE

pytestmark = pytest.mark.container
STATE = "/var/lib/flightrec"
EXPOSURE = 26  # the highest exposure that systemd-analyze security may find, in tenths
DRAIN = 1.3  # seconds after which the recorder has surely read the kernel rings: it reads them at least once a second
KILLS = 20 if os.environ.get("FLIGHTREC_FULL") else 8
CONF = "/etc/flightrec/flightrecd.conf.d/test.conf"
MSG_STARTED = "3c1a76b0a7b24d5a9d1f6a0a5be3c201"
DROP_IN = "/etc/systemd/system/flightrecd.service.d/test.conf"


def samples(path):
    """Returns the samples of a file as stock perf prints them, one line each."""
    if not shutil.which("perf"):
        pytest.skip("no perf: the package linux-perf is missing")
    done = subprocess.run(["perf", "script", "-i", path, "-F", "comm,pid,time,event", "--ns"], capture_output=True, text=True,
                          errors="replace", env={**os.environ, "HOME": str(path.parent), "PERF_CONFIG": "/dev/null"}, timeout=vm.LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def times(lines):
    """Returns the times of the samples LINES (from samples()), without trigger samples."""
    return [float(re.search(r"(\d+\.\d+): ", one).group(1)) for one in lines if "flightrec:trigger" not in one]


def files(machine):
    return sorted(machine.run("ls", "-A", STATE).stdout.split())


def now():
    """Returns the time in seconds, by the clock that samples have. The host and the machine have the same clock."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def test_first_start(shared):
    """After the installation the service is enabled, and runs as its own user with only the capabilities that it needs."""
    assert shared.run("systemctl", "is-enabled", "flightrecd.service").stdout.strip() == "enabled"
    status = shared.run("cat", f"/proc/{shared.pid()}/status").stdout
    uid = shared.run("id", "-u", "flightrec").stdout.strip()
    assert re.search(rf"^Uid:\s+{uid}\s+{uid}\s", status, re.M)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
    capabilities = int(re.search(r"^CapEff:\s+(\w+)$", status, re.M).group(1), 16)
    assert capabilities & (1 << 38), "CAP_PERFMON"
    assert not capabilities & (1 << 21), "CAP_SYS_ADMIN"
    assert not capabilities & (1 << 0), "CAP_CHOWN is effective only while a file is given to root"
    assert "recording" in shared.show("StatusText")
    assert "Listen" in shared.run("systemctl", "status", "flightrecd.socket").stdout
    # The sandbox of the service permits the default probes, and lets the recorder read the addresses of kernel symbols.
    assert "cannot be armed" not in shared.run("flightrecctl", "--no-pager", "status").stdout
    assert "not permitted" not in shared.journal()
    assert "records" in shared.run("journalctl", "--list-catalog", MSG_STARTED).stdout


def test_access(shared):
    """Members of the group can make a dump and read it. For other users, the message names the group that they need."""
    path = shared.dump("--reason", "a member asks")
    assert path.startswith(f"{STATE}/perf.data.sample.")
    assert shared.run("stat", "-c", "%a %U %G", path).stdout.strip() == "640 root flightrec"
    shared.run("head", "-c1", path, user="alice")
    for verb in ("dump", "status"):
        refused = shared.run("flightrecctl", verb, user="nobody", check=False)
        assert refused.returncode == 5
        assert "'flightrec'" in refused.stderr
    assert shared.run("head", "-c1", path, user="nobody", check=False).returncode != 0
    assert samples(shared.fetch(path))


def opens_in_perf(machine, path):
    """Checks that stock perf in the machine opens the file without -f, for root and for a member of the group."""
    for user in (None, "alice"):
        for args in (("report", "--stdio"), ("script",), ("sched", "latency")):
            done = machine.run("perf", args[0], "-i", path, *args[1:], user=user, check=False)
            assert done.returncode == 0 and "not owned" not in done.stderr, (user, args, done.stderr)
            assert len(done.stdout.splitlines()) > 5, (user, args, done)


def test_stock_perf_opens_all_files(service):
    """Stock perf opens dumps of two instances, and the merged file that a stop makes. `flightrecctl vacuum` can remove dumps of
    a previous instance."""
    service.shell("printf '[Recorder]\\nEvents=sched:sched_switch,cpu-clock\\n' >/etc/flightrec/flightrecd.conf.d/sched.conf")
    service.run("systemctl", "reload", "flightrecd")
    service.wait_for(lambda: "configuration reloaded" in service.journal(), "reload")
    opens_in_perf(service, service.dump())
    pid = service.pid()
    service.run("systemctl", "restart", "flightrecd")
    service.wait_for(lambda: service.pid() not in (0, pid), "the next instance")
    opens_in_perf(service, service.dump())
    owners = service.shell(f"stat -c '%U %G' {STATE}/perf.data*").stdout.splitlines()
    assert set(owners) == {"root flightrec"}, owners
    assert "last error" not in service.run("flightrecctl", "--no-pager", "status").stdout
    before = {name for name in files(service) if name.endswith("Z")}
    service.run("flightrecctl", "vacuum", "--max-files=1")
    # Another test on the host can cause an anomaly, which makes one more dump at any time.
    left = {name for name in files(service) if name.endswith("Z")}
    assert len(before) >= 2 and left and len(left & before) <= 1, (before, left)
    service.run("systemctl", "stop", "flightrecd")
    assert files(service) == ["perf.data", "perf.data.json"]
    opens_in_perf(service, f"{STATE}/perf.data")


def test_verbs_open_dumps(service):
    """The verbs report, script and `dump -o FILE` work for root and for a member of the group. `list` shows the merged file
    that a stop makes."""
    service.dump("--reason", "to be opened")
    for user in ("root", "alice"):
        for args in (("perf", "latest", "--", "--stdio"), ("script",)):
            done = service.run("flightrecctl", *args, user=user, check=False)
            assert done.returncode == 0 and len(done.stdout.splitlines()) > 5, (user, args, done)
        copy = f"/tmp/{user}.data"
        assert service.run("flightrecctl", "dump", "-o", copy, user=user).stdout.strip() == copy
        assert service.run("stat", "-c", "%U %a", copy).stdout.strip() == f"{user} 600"
        assert service.run("perf", "script", "-i", copy, user=user).stdout
    service.run("systemctl", "stop", "flightrecd")
    listed = service.run("flightrecctl", "--no-pager", "list", user="alice").stdout
    assert "0 dumps and 1 merged file in" in listed and "to be opened" in listed, listed
    info = service.run("flightrecctl", "--no-pager", "info", "perf.data", user="alice").stdout
    assert "Samples: 0" not in info and "to be opened" in info and "Losses:" in info, info


def test_the_directory_is_made_again(service):
    """If the output directory is removed and made again, dumps fail until a restart, because the sandbox still has the old
    directory.

    The restart keeps the ring."""
    service.dump()
    before = now()
    service.run("mv", STATE, f"{STATE}.moved")
    for _ in range(2):  # the first time there is no directory, the second time there is a new one
        refused = service.run("flightrecctl", "dump", check=False)
        assert refused.returncode != 0 and not refused.stdout and "restart" in refused.stderr, refused
        service.run("mkdir", "-p", STATE)
    service.run("systemctl", "restart", "flightrecd")
    service.wait_active()
    path = service.dump()
    service.run("test", "-f", path)
    assert min(times(samples(service.fetch(path)))) < before
    assert "failed-dump" not in service.run("flightrecctl", "--no-pager", "status").stdout


def test_the_recorder_can_chown_only_its_own_files(shared):
    """In the sandbox, CAP_CHOWN lets the recorder change only its own files, because all other files are read-only."""
    shared.shell("echo secret >/dev/shm/of-root; chmod 600 /dev/shm/of-root")
    inside = ["nsenter", "-t", str(shared.pid()), "-m", "--", "chown", "flightrec"]
    for path in ("/dev/shm/of-root", "/etc/shadow", "/proc/irq", "/proc/sys/kernel/core_pattern", "/tmp"):
        refused = shared.run(*inside, path, check=False)
        assert refused.returncode != 0, path
    shared.run(*inside, f"{STATE}/perf.data.auxiliary")  # of its own files, the recorder can change the owner


def test_kernel_symbols(shared):
    """The sandbox lets the recorder read the addresses in /proc/kallsyms. Many of the usual protections of a service would hide
    these addresses."""
    shared.shell("for i in $(seq 300); do cat /proc/self/maps >/dev/null; done")
    path = shared.fetch(shared.dump())
    done = subprocess.run(["perf", "script", "-i", path, "-F", "comm,ip,sym", "--no-inline"], capture_output=True, text=True,
                          errors="replace", env={**os.environ, "HOME": str(path.parent)}, timeout=vm.LIMIT)
    assert re.search(r"^\s+[0-9a-f]+ (do_syscall_64|entry_SYSCALL_64|asm_)", done.stdout, re.M), done.stdout[-2000:]


def fired(machine):
    """Returns, for all causes of all dumps, the name of the cause's trigger."""
    metas = [machine.run("cat", f"{STATE}/{name}").stdout for name in files(machine) if name.endswith("Z.json")]
    return [cause["trigger"] for meta in metas for cause in json.loads(meta)["causes"]]


def test_probe_fires(service):
    """After a drop-in of the configuration and a reload, a BPF probe is armed. An anomaly then makes a dump."""
    service.shell("printf '[Trigger exec]\\nComm=frtest-exec\\nCooldown=0\\n' >/etc/flightrec/flightrecd.conf.d/exec.conf")
    service.run("systemctl", "reload", "flightrecd")
    service.wait_for(lambda: re.search(r"^exec +bpf +armed", service.run("flightrecctl", "triggers").stdout, re.M), "the probe")
    service.shell("cp /bin/true /run/frtest-exec; mount -o remount,exec /run; /run/frtest-exec")
    # The machine shares the kernel of the host, so other probes can see anomalies of the host and also make dumps.
    service.wait_for(lambda: "exec" in fired(service), "a dump of the probe")


def start_busy(service):
    """Starts a service that executes programs. systemd gives it its own cgroup."""
    service.run("systemd-run", "--unit=frtest", "--collect", "sh", "-c", "while sleep 0.3; do /bin/true; done")


def test_the_new_cgroup_of_a_restarted_service_is_recorded(service):
    """A restarted service gets a new cgroup with the same name. The recorder (in its sandbox) and a trigger on this cgroup then
    use the new cgroup."""
    start_busy(service)
    group = service.show("ControlGroup", "frtest.service")
    service.shell(f"printf '[Recorder]\nCGroup={group}\n[Trigger exec]\nCGroup={group}\nCooldown=1s\n'"
                  " >/etc/flightrec/flightrecd.conf.d/follow.conf")
    service.run("systemctl", "reload", "flightrecd")
    service.wait_for(lambda: "exec" in fired(service), "a dump of the service's exec")
    service.run("systemctl", "stop", "frtest")
    start_busy(service)
    service.wait_for(lambda: f"the cgroup {group} was created again" in service.journal(), "cgroup that is recorded again")
    service.wait_for(lambda: "trigger exec is armed now" in service.journal(), "trigger that is armed again")
    before = fired(service).count("exec")
    service.wait_for(lambda: fired(service).count("exec") > before, "a dump of the new service's exec")


def test_reload(service):
    """A reload applies new settings in the same process. An invalid file changes nothing."""
    pid = service.pid()
    service.shell("printf '[Dump]\\nWindow=1h\\n' >/etc/flightrec/flightrecd.conf.d/test.conf")
    service.run("systemctl", "reload", "flightrecd")
    service.wait_for(lambda: "configuration reloaded" in service.journal(), "the reload")
    service.shell("printf '[Dump]\\nWindow=never\\n' >/etc/flightrec/flightrecd.conf.d/test.conf")
    assert service.run("systemctl", "reload", "flightrecd", check=False).returncode != 0
    said = ("stays in force", "test.conf:2")  # systemctl can end before the journal has the messages
    service.wait_for(lambda: all(text in service.journal() for text in said), "the messages about the invalid file")
    assert "test.conf:2" in service.run("flightrecctl", "status").stdout
    # This trigger needs CAP_SYS_ADMIN, which the service does not have.
    service.shell("printf '[Trigger slow]\\nFunction=/usr/sbin/flightrecd:main\\n' >/etc/flightrec/flightrecd.conf.d/test.conf")
    partly = service.run("flightrecctl", "reload", check=False)
    assert partly.returncode == 7 and "trigger slow is not armed" in partly.stderr and "test.conf:1" in partly.stderr, partly
    assert "test.conf" not in service.run("flightrecctl", "status").stdout
    assert service.pid() == pid and service.is_active() == "active"


def test_a_typo_loses_nothing(service):
    """After a restart with an invalid configuration, the new instance uses the old ring and the old configuration."""
    service.shell(f"printf '[Recorder]\\nRingSize=32M\\n' >{CONF}")
    service.run("systemctl", "restart", "flightrecd")
    before = now()
    time.sleep(DRAIN)
    service.shell(f"printf '[Recorder]\\nRingSize=lots\\n' >{CONF}")
    service.run("systemctl", "restart", "flightrecd")
    shown = service.run("flightrecctl", "status").stdout
    assert f"{CONF}:2" in shown and "of 32.0M" in shown, shown
    assert f"{CONF}:2" in service.run("systemctl", "status", "flightrecd").stdout
    assert min(times(samples(service.fetch(service.dump())))) < before + DRAIN
    service.shell(f"printf '[Recorder]\\nRingSize=32M\\n' >{CONF}")
    service.run("systemctl", "reload", "flightrecd")
    service.wait_for(lambda: f"{CONF}:2" not in service.run("flightrecctl", "status").stdout, "the end of the warning")


def test_a_first_start_that_fails_can_be_mended(service):
    """A first start with an invalid configuration fails and reports file and line. After the correction, a start succeeds
    without `systemctl reset-failed`."""
    service.run("systemctl", "stop", "flightrecd")
    service.shell(f"printf '[Recorder]\\nRingSize=lots\\n' >{CONF}")
    assert service.run("systemctl", "start", "flightrecd", check=False).returncode != 0
    assert f"{CONF}:2" in service.run("systemctl", "status", "flightrecd", check=False).stdout
    assert service.run("systemctl", "show", "-P", "NRestarts", "flightrecd").stdout.strip() == "0"
    service.run("rm", CONF)
    service.run("systemctl", "start", "flightrecd")
    assert service.is_active() == "active"


def test_restart_keeps_the_socket(service):
    """A client that connects during a restart waits for the new instance, which has the old ring. Nothing is merged."""
    service.dump()
    pid = service.pid()
    restarted = now()
    service.run("systemctl", "restart", "--no-block", "flightrecd")
    service.wait_for(lambda: service.pid() != pid, "the end of the old recorder")
    path = service.dump()
    assert min(times(samples(service.fetch(path)))) < restarted
    assert service.pid() not in (0, pid)
    assert service.is_active("flightrecd.socket") == "active"
    assert "about to be started again" in service.journal()
    assert "perf.data" not in files(service)


def test_stop_leaves_one_file(service):
    """The merged file that a stop makes has all records, also records that are in no dump. The socket unit does not start the
    service again."""
    service.dump()
    time.sleep(0.5)
    before = now()
    service.run("systemctl", "stop", "flightrecd")
    assert service.is_active() == "inactive", service.journal()
    assert files(service) == ["perf.data", "perf.data.json"]
    service.run("test", "-r", f"{STATE}/perf.data", user="alice")
    seen = times(samples(service.fetch(f"{STATE}/perf.data")))
    assert seen and before - 0.3 < max(seen) and min(seen) < before - 0.4
    gone = service.run("flightrecctl", "status", check=False)
    assert gone.returncode == 3 and "not running" in gone.stderr
    assert service.is_active() == "inactive"


def test_other_ways_to_stop(service):
    """After `flightrecctl stop`, the files are also merged, and the service stays stopped. A stop without D-Bus merges, too,
    although the recorder then cannot know whether systemd stops or restarts it."""
    service.run("flightrecctl", "stop")
    service.wait_for(lambda: service.is_active() == "inactive", "end")
    assert files(service) == ["perf.data", "perf.data.json"]
    assert samples(service.fetch(f"{STATE}/perf.data"))
    service.shell(f"rm {STATE}/*; systemctl start flightrecd")
    service.run("systemctl", "stop", "dbus.socket", "dbus.service")
    service.run("systemctl", "stop", "flightrecd")
    assert files(service) == ["perf.data", "perf.data.json"]


def kill(machine):
    """Kills the recorder by SIGKILL and waits for the next instance. Returns the pid of the next instance."""
    pid = machine.pid()
    machine.run("kill", "-9", str(pid))
    machine.wait_for(lambda: machine.pid() not in (0, pid) and machine.is_active() == "active", "a new recorder")
    return machine.pid()


def test_kill(service):
    """After a kill, systemd starts the recorder again (Restart=), and nothing is merged. A later stop merges."""
    before = service.dump()
    kill(service)
    assert "perf.data" not in files(service)
    assert before.rpartition("/")[2] in files(service)
    assert service.dump() != before
    service.run("systemctl", "stop", "flightrecd")
    assert files(service) == ["perf.data", "perf.data.json"]
    assert samples(service.fetch(f"{STATE}/perf.data"))


class Stalls:
    """Measures the longest time for which a process had to wait for a CPU. The recorder may have waited for the same time."""

    def __init__(self):
        self.worst, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        last = now()
        while not self.over.wait(0.01):
            last, before = now(), last
            self.worst = max(self.worst, last - before)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()


def test_kill_keeps_history(service):
    """Kills the recorder at random moments. A dump of the next instance has all records that the killed instance had read from
    the kernel rings."""
    service.run("systemd-run", "--unit=burn", "sh", "-c", "while :; do :; done")
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for i in range(KILLS):
        service.run("systemctl", "reset-failed", "flightrecd")  # so that systemd's limit of starts is not reached
        begin = now()
        with Stalls() as stalls:
            time.sleep(moments.uniform(0.2, 1.2) + (DRAIN if i == 0 else 0))
            killed = now()
            kill(service)
        path = service.dump("--last", "30s")
        old = sorted(t for t in times(samples(service.fetch(path))) if t < killed)
        service.run("rm", path, f"{path}.json")
        assert old and old[0] < begin + 0.2 + stalls.worst, f"kill {i}: the history before the kill is gone"
        assert old[-1] > killed - DRAIN - stalls.worst, f"kill {i}: {killed - old[-1]:.3f} s before the kill are gone"
        recent = [t for t in old if t > begin - 0.05]
        gaps = [b - a for a, b in zip(recent, recent[1:])]
        assert max(gaps, default=0) < 0.5 + stalls.worst, f"kill {i}: a hole in the history"


def test_in_a_container_the_kernel_makes_the_samples(service):
    """BPF programs see the pids of the first pid namespace, and this system is in another one. test_restart.py has the tests of
    BPF programs that go on between two instances."""
    service.shell(f"printf '[Recorder]\nCallGraph=unwind\nOffCPU=auto\n' >{CONF}")
    service.run("systemctl", "restart", "flightrecd")
    status = json.loads(service.run("flightrecctl", "status", "--json=short").stdout)
    status = status.get("status", status)
    assert [e["name"] for e in status["events"]] == ["cpu-clock"], status["events"]
    assert any("pid namespace" in n for n in status["notices"]), status["notices"]


def test_the_ring_in_a_memory(service):
    """RingMemory=: a restart moves the ring into the memory, a restart and a kill continue it there, and a stop leaves one file and
    nothing to rescue. (Here the memory is a file on tmpfs. test_crash.py uses the kernel module.)"""
    def status():
        reply = json.loads(service.run("flightrecctl", "status", "--json=short").stdout)
        return reply.get("status", reply)

    def restart(*command):
        pid = service.pid()
        service.run(*command)
        service.wait_for(lambda: service.pid() not in (0, pid) and service.is_active() == "active", "the next instance")
        return status()

    service.shell(f"printf '[Recorder]\\nRingMemory=/run/flightrec/ring\\nRingSize=16M\\n' >{CONF}")
    moved = restart("systemctl", "restart", "flightrecd")
    assert moved["ring"]["memory"]["path"] == "/run/flightrec/ring", moved
    assert moved["adopted"]["samples"] > 0 and not moved["adopted"]["in_place"]
    for command in ("systemctl restart flightrecd", "kill -9 $(systemctl show -P MainPID flightrecd)"):
        adopted = restart("sh", "-c", command)["adopted"]
        assert adopted["samples"] > 0 and adopted["in_place"], adopted
    assert not [name for name in files(service) if ".sample." in name]
    service.run("systemctl", "stop", "flightrecd")
    assert files(service) == ["perf.data", "perf.data.json"]
    service.run("systemctl", "start", "flightrecd")
    assert not [name for name in files(service) if ".sample." in name]
    assert status()["ring"]["memory"]["path"] == "/run/flightrec/ring"


def test_watchdog(service):
    """systemd kills a recorder that hangs, and starts it again."""
    service.run("mkdir", "-p", os.path.dirname(DROP_IN))
    service.shell(f"printf '[Service]\\nWatchdogSec=4s\\nTimeoutAbortSec=1s\\n' >{DROP_IN}")
    service.run("systemctl", "daemon-reload")
    service.run("systemctl", "restart", "flightrecd")
    time.sleep(9)  # more than twice the time after which the watchdog kills a recorder that does not feed it
    if service.show("NRestarts") != "0":
        pytest.fail("the watchdog killed a recorder that records")
    pid = service.pid()
    service.run("kill", "-STOP", str(pid))
    service.wait_for(lambda: service.pid() not in (0, pid) and service.is_active() == "active", "a new recorder")
    assert int(service.show("NRestarts")) >= 1
    assert "Watchdog timeout" in service.journal()


def test_upgrade(service):
    """The new version adopts the ring of the running recorder. An upgrade does not start a service that was stopped."""
    path = service.dump()
    pid = service.pid()
    upgraded = now()
    service.install("/share/upgrade.deb")
    service.wait_active()
    assert service.pid() != pid
    assert service.run("dpkg-query", "-W", "-f", "${Version}", "flightrec").stdout == UPGRADE
    assert path.rpartition("/")[2] in files(service) and "perf.data" not in files(service)
    assert min(times(samples(service.fetch(service.dump())))) < upgraded
    service.run("systemctl", "stop", "flightrecd")
    service.install("/share/upgrade.deb")
    assert service.is_active() == "inactive"


def leftovers(machine):
    return machine.shell("find / -xdev -path /proc -prune -o -name '*flightrec*' -print; find /run -name '*flightrec*'").stdout.split()


@pytest.mark.parametrize("dumps_too", [False, True])
def test_purge(service, dumps_too):
    """After a purge of the package, only the dumps are left, and they belong to root. With FLIGHTREC_PURGE_DUMPS=1 nothing is
    left."""
    service.dump()
    service.run("dpkg", "--remove", "flightrec")
    assert files(service) == ["perf.data", "perf.data.json"]
    service.run("env", f"FLIGHTREC_PURGE_DUMPS={int(dumps_too)}", "dpkg", "--purge", "flightrec")
    left = [path for path in leftovers(service) if not path.startswith(f"{STATE}/")]
    assert left == ([] if dumps_too else [STATE])
    if not dumps_too:
        assert files(service) == ["perf.data", "perf.data.json"]
        assert service.run("stat", "-c", "%u:%g", STATE, f"{STATE}/perf.data").stdout.split() == ["0:0", "0:0"]
    for database in ("passwd", "group"):
        assert service.run("getent", database, "flightrec", check=False).returncode == 2
    assert not service.run("systemctl", "list-units", "--all", "--no-legend", "flightrec*").stdout.strip()


def test_installed_again(service):
    """If the package is removed or purged, and then installed again, the recorder runs again. The group can read the old
    dumps."""
    service.dump()
    service.run("dpkg", "--remove", "flightrec")
    service.install("/share/first.deb")
    service.wait_active()
    service.run("dpkg", "--purge", "flightrec")
    service.install("/share/first.deb")
    service.wait_active()
    service.run("usermod", "-aG", "flightrec", "alice")
    # Another test on the host may have caused an anomaly, which has made a new dump (perf.data.sample.*).
    left = [name for name in files(service) if re.fullmatch(r"perf\.data(\.\d.*Z)?", name)]
    assert len(left) == 2, files(service)
    for name in left:
        path = f"{STATE}/{name}"
        assert service.run("stat", "-c", "%U %G", path).stdout.strip() == "root flightrec"
        assert service.run("perf", "report", "-i", path, "--stdio", user="alice").stdout.strip()
    service.run("systemctl", "stop", "flightrecd")


def test_contents(debs):
    """The package has each file at the place where programs look for it."""
    listed = subprocess.run(["dpkg-deb", "-c", debs[0]], check=True, capture_output=True, text=True).stdout
    paths = {line.split()[5].removeprefix(".") for line in listed.splitlines()}
    wanted = ["/usr/sbin/flightrecd", "/usr/bin/flightrecctl", "/usr/bin/flightrec-merge", "/etc/flightrec/flightrecd.conf",
              "/usr/lib/sysusers.d/flightrec.conf", "/usr/lib/tmpfiles.d/flightrec.conf", "/usr/lib/systemd/catalog/flightrec.catalog",
              "/usr/share/doc/flightrec/README.md", "/usr/include/flightrec/trigger.h", "/usr/include/flightrec/trigger.bpf.h"]
    wanted += [f"/usr/share/man/man{page[-1]}/{page}" for page in
               ("flightrecctl.1", "flightrec-merge.1", "flightrecd.conf.5", "flightrec.7", "flightrecd.8")]
    for name in ("flightrecd", "flightrecctl", "flightrec-merge"):
        wanted += [f"/usr/share/bash-completion/completions/{name}", f"/usr/share/zsh/vendor-completions/_{name}"]
    assert set(wanted) <= paths, set(wanted) - paths
    conffiles = subprocess.run(["dpkg-deb", "-I", debs[0], "conffiles"], check=True, capture_output=True, text=True).stdout
    assert conffiles.split() == sorted(p for p in paths if p.startswith("/etc/") and not p.endswith("/"))


def test_no_path_of_the_build(debs, tmp_path):
    """The programs do not contain the path of the source folder. (It would be in the field CODE_FILE= of the journal.)"""
    subprocess.run(["dpkg-deb", "-x", debs[0], tmp_path], check=True)
    for name in ("usr/sbin/flightrecd", "usr/bin/flightrecctl", "usr/bin/flightrec-merge"):
        assert os.fsencode(vm.SOURCE) not in (tmp_path / name).read_bytes(), name


def test_exposure(debs, tmp_path):
    """The exposure of the unit, as `systemd-analyze security` computes it, is at most EXPOSURE."""
    subprocess.run(["dpkg-deb", "-x", debs[0], tmp_path], check=True)
    unit = next(tmp_path.glob("**/flightrecd.service"))
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", unit],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
