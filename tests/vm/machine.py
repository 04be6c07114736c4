# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a Debian with a real systemd in a container (boot.sh), runs commands in it, and removes it."""
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent
BUILD = SOURCE / "build"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flightrec-tests"
KEEP_UNUSED = 30 * 24 * 3600
MIRROR = os.environ.get("FLIGHTREC_DEBIAN_MIRROR", "http://deb.debian.org/debian")
SUITE = "bookworm"
# Packages that the Debian has in addition to the dependencies of the flightrec package.
PACKAGES = ["systemd-sysv", "dbus", "init-system-helpers", "procps", "linux-perf"]
# Units that must not run, because they need devices or a network, or would disturb measurements.
MASKED = ["systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket", "systemd-udev-trigger.service",
          "systemd-networkd.service", "systemd-resolved.service", "systemd-timesyncd.service", "systemd-logind.service",
          "systemd-networkd.socket", "console-getty.service", "getty@.service", "apt-daily.timer", "apt-daily-upgrade.timer",
          "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer", "systemd-tmpfiles-clean.timer"]
TOOLS = ["systemd-nspawn", "debootstrap", "nsenter", "unshare", "setpriv", "dpkg-deb"]
PR_SET_PDEATHSIG = 1
LIMIT = 300  # seconds. Each step takes less, also on a slow machine

libc = ctypes.CDLL(None, use_errno=True)


def missing():
    """Returns a text that says why this host cannot boot such a container, or None."""
    if os.geteuid() != 0:
        return "not root: namespaces and cgroups are not permitted"
    for tool in TOOLS:
        if not shutil.which(tool):
            return f"no {tool}"
    hierarchy = Path("/sys/fs/cgroup/unified")
    hierarchy = hierarchy if hierarchy.is_dir() else Path("/sys/fs/cgroup")
    probe = hierarchy / f"flightrec-test-probe-{os.getpid()}"
    try:
        probe.mkdir()
        there = (probe / "cgroup.procs").exists()
        probe.rmdir()
    except OSError as e:
        return f"no cgroup of our own: {e}"
    return None if there else "no cgroup2 hierarchy"


def dependencies(deb):
    """Returns the names of the packages that a .deb depends on."""
    text = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], check=True, capture_output=True, text=True).stdout
    return [re.match(r"[a-z0-9.+-]+", one.strip()).group() for one in text.split(",")]


def agent_beside(deb):
    """Returns the package flightrec-agent that was made together with DEB."""
    return next(Path(deb).parent.glob("flightrec-agent_*.deb"))


def root_for(*debs):
    """Returns a directory with a Debian that has all packages that DEBS depend on. The directory is made once and stays in the
    user's cache.

    Raises CalledProcessError with the end of debootstrap's output if debootstrap fails."""
    needed = {name for deb in debs for name in dependencies(deb) if not name.startswith("flightrec")}
    packages = sorted(needed.union(PACKAGES))
    key = hashlib.sha256(repr((SUITE, MIRROR, packages, MASKED)).encode()).hexdigest()[:12]
    root = CACHE / f"vm-root-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w", encoding="utf-8") as lock:  # another process of ./dev test can be making the directory
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            make_root(root, packages)
        os.utime(root)
    return root


def make_root(root, packages):
    # Removes old directories. Not at once, because another checkout of the sources can still use them.
    for old in CACHE.glob("vm-root-*"):
        if old.stat().st_mtime + KEEP_UNUSED < time.time():
            shutil.rmtree(old, ignore_errors=True)
    making = CACHE / f".{root.name}.{os.getpid()}"
    try:
        done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, making, MIRROR],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1800)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, "debootstrap", done.stdout[-1000:])
        subprocess.run(["systemctl", f"--root={making}", "mask", *MASKED], check=True, capture_output=True)
        subprocess.run(["systemctl", f"--root={making}", "set-default", "multi-user.target"], check=True, capture_output=True)
        shutil.rmtree(making / "var/cache/apt/archives")
        (making / "etc/machine-id").write_text("")
        making.rename(root)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def descendants(pid):
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in children:
        yield int(child)
        yield from descendants(int(child))


def is_init(pid):
    """Returns whether the process PID has the pid 1 in its innermost pid namespace and has already executed systemd."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    ids = re.search(r"^NSpid:\s+(.*)$", status, re.M).group(1).split()
    return len(ids) > 2 and ids[-1] == "1" and status.startswith("Name:\tsystemd\n")


class Machine:
    def __init__(self, root, share):
        self.share = Path(share)
        self.console = open(self.share / "console", "wb")
        self.process = subprocess.Popen([HERE / "boot.sh", root, share], stdout=self.console, stderr=subprocess.STDOUT,
                                        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0))
        try:
            self.leader = self.wait_for(self.find_leader, "systemd that is PID 1")
            self.wait_for(lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"),
                          "system that is up")
        except BaseException:
            self.stop()
            raise

    def find_leader(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the container ended with {self.process.returncode}:\n{self.console_text()}")
        return next((pid for pid in descendants(self.process.pid) if is_init(pid)), None)

    def console_text(self):
        return (self.share / "console").read_text(errors="replace")

    def wait_for(self, done, what, seconds=LIMIT):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            result = done()
            if result:
                return result
            time.sleep(0.02)
        raise TimeoutError(f"after {seconds} s still no {what}:\n{self.console_text()[-3000:]}")

    def command(self, args, user=None):
        as_user = ["runuser", "-u", user, "--"] if user else []
        return ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "--", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", *as_user, *map(str, args)]

    def run(self, *args, user=None, check=True, timeout=LIMIT):
        """Runs a command in the machine, as root or as USER. Returns a CompletedProcess, which has the output."""
        done = subprocess.run(self.command(args, user), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, args))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done

    def shell(self, script, **kwargs):
        return self.run("sh", "-c", script, **kwargs)

    def journal(self, unit="flightrecd.service"):
        return self.run("journalctl", "--no-pager", "-o", "short-monotonic", "-u", unit, check=False).stdout

    def show(self, name, unit="flightrecd.service"):
        return self.run("systemctl", "show", "-P", name, unit).stdout.strip()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=LIMIT)
        self.console.close()

    def install(self, deb):
        return self.run("dpkg", "-i", deb)

    def is_active(self, unit="flightrecd.service"):
        return self.run("systemctl", "is-active", unit, check=False).stdout.strip()

    def wait_active(self):
        self.wait_for(lambda: self.is_active() == "active", "flightrecd.service")

    def pid(self):
        return int(self.show("MainPID"))

    def dump(self, *args, user="alice"):
        """Makes a dump. Returns its path in the machine."""
        return self.run("flightrecctl", "dump", *args, user=user).stdout.strip()

    def fetch(self, path):
        """Copies a file of the machine to the host. Returns the path of the copy."""
        self.run("cp", path, "/share/")
        return self.share / Path(path).name
