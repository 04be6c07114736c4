# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a kernel of Debian in QEMU, without a disk, for tests of kernel modules and of crashes.

The system is busybox and the programs of the test, in an initramfs. A directory of the host is /share in it. The processor is
emulated, so that no hardware support is needed; a boot takes 2 to 5 s.
"""
import fcntl
import lzma
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from machine import CACHE, HERE, SOURCE

TOOLS = ["qemu-system-x86_64", "busybox", "cpio", "modprobe", "depmod", "dpkg-deb", "apt-get", "make"]
SERIES = ["6.1", "6.12"]
MODULES = ["virtio_pci", "9pnet_virtio", "9p"]
LIMIT = 1500  # seconds for a script, with the boot; on a slow and busy machine, one of them takes more than 600
INIT = """#!/bin/sh
export PATH=/bin:/sbin:/usr/bin LD_LIBRARY_PATH=/lib
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm /tmp /run /etc /var
mount -t tmpfs tmp /tmp; mount -t tracefs trace /sys/kernel/tracing; mount -t debugfs debug /sys/kernel/debug
while read m; do insmod /modules/$m || echo "no module $m"; done </modules/list
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /share || echo "no share"
cd /share; sh ./run.sh >/share/out 2>&1; echo $? >/share/rc; sync; poweroff -f
"""


def headers(series):
    """Returns the version of the installed headers of a kernel series ("6.1"), or None."""
    found = [p.parents[1].name for p in Path("/lib/modules").glob(f"{series}.*/build/Makefile")]
    return max(found, key=lambda v: [int(n) for n in re.findall(r"\d+", v)], default=None)


def missing(series):
    """Returns a text that says what this host lacks for a VM with a kernel of SERIES, or None."""
    for tool in TOOLS:
        if not shutil.which(tool):
            return f"no {tool}"
    return None if headers(series) else f"no headers of Linux {series}"


def lock(name):
    CACHE.mkdir(parents=True, exist_ok=True)
    file = open(CACHE / name, "w", encoding="utf-8")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def payload_of(image):
    """Returns the compressed kernel in a bzImage (Documentation/arch/x86/boot.rst), without its size, which ends it."""
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1f1] + 1) * 512 + offset
    return image[start:start + length - 4]


def unpacker(payload):
    """Returns a function that unpacks the compressed kernel, or None."""
    if payload.startswith(b"\xfd7zXZ\0"):
        return lambda: lzma.decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd") and shutil.which("zstd"):
        return lambda: subprocess.run(["zstd", "-dc"], input=payload, check=True, capture_output=True).stdout
    return None


class Kernel:
    """A kernel of Debian: self.version, self.image and self.tree, a directory with lib/modules. If it is not installed, it is
    downloaded once, and stays in the user's cache. The modules of kmod/ are built for it."""

    def __init__(self, series):
        self.version = headers(series)
        self.tree = Path("/")
        if not self.find_image().exists() or not Path(f"/lib/modules/{self.version}/modules.dep").exists():
            self.tree = CACHE / f"kernel-{self.version}"
            with lock("kernel-lock"):
                if not self.tree.is_dir():
                    self.download()
        self.image = self.unpacked()

    def unpacked(self):
        """Returns a file with the kernel that QEMU can start. The emulated processor would need 2 s to unpack the image, so that is done
        here, once."""
        unpack = unpacker(payload_of(self.find_image().read_bytes()))
        if not unpack:
            return self.find_image()
        path = CACHE / f"vmlinux-{self.version}"
        with lock("kernel-lock"):
            if not path.exists() or path.stat().st_mtime < self.find_image().stat().st_mtime:
                series = ".".join(self.version.split(".")[:2])
                for old in CACHE.glob(f"vmlinux-{series}.*"):
                    old.unlink()
                made = CACHE / "vmlinux.new"
                made.write_bytes(unpack())
                made.rename(path)
        return path

    def find_image(self):
        return self.tree / f"boot/vmlinuz-{self.version}"

    def download(self):
        series = ".".join(self.version.split(".")[:2])
        for old in CACHE.glob(f"kernel-{series}.*"):
            shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", f"linux-image-{self.version}"], cwd=made,
                           check=True, capture_output=True, timeout=600)
            deb = next(Path(made).glob("*.deb"))
            subprocess.run(["dpkg-deb", "-x", deb, f"{made}/tree"], check=True)
            subprocess.run(["depmod", "-b", f"{made}/tree", self.version], check=True)
            (Path(made) / "tree").rename(self.tree)

    def build(self, to):
        """Builds the modules of kmod/, and flightrec_crash, in the directory TO, with all checks. Returns what make printed."""
        flags = ["W=1", *(["C=2"] if shutil.which("sparse") else [])]
        shutil.copytree(SOURCE / "kmod", to / "kmod")
        shutil.copy(HERE / "flightrec_crash.c", to / "kmod")
        shutil.copytree(SOURCE / "include", to / "include")
        done = subprocess.run(["make", "-C", f"/lib/modules/{self.version}/build", f"M={to}/kmod", *flags, "modules"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def files_of(self, module):
        """Returns the files of a module and of the modules that it needs, in the order of loading."""
        out = subprocess.run(["modprobe", "-d", self.tree, "-S", self.version, "--show-depends", module], check=True,
                             capture_output=True, text=True).stdout
        return [Path(line.split()[1]) for line in out.splitlines() if line.startswith("insmod")]


def libraries(program):
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [Path(p) for p in re.findall(r"(/\S+) \(0x", out)]


def make_initramfs(kernel, to, programs, modules):
    root = Path(tempfile.mkdtemp(dir=to.parent))
    for name in ("bin", "sbin", "lib", "lib64", "usr/bin", "modules", "share", "proc", "sys", "dev"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    subprocess.run(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"], check=True)
    for program in programs:
        target = root / "bin" / Path(program).name
        target.unlink(missing_ok=True)
        shutil.copy(program, target)
        for library in libraries(program):
            shutil.copy(library, root / ("lib64" if "ld-linux" in library.name else "lib") / library.name)
    loaded = []
    for path in [f for m in [*MODULES, *modules] for f in kernel.files_of(m)]:
        name = path.name.removesuffix(".xz")
        if name not in loaded:
            loaded.append(name)
            data = path.read_bytes()
            (root / "modules" / name).write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
    (root / "modules/list").write_text("".join(f"{name}\n" for name in loaded))
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    files = subprocess.run(["find", ".", "-print0"], cwd=root, check=True, capture_output=True).stdout
    archive = subprocess.run(["cpio", "-o0", "-H", "newc", "--quiet"], cwd=root, input=files, check=True, capture_output=True).stdout
    to.write_bytes(archive)  # not compressed, because the emulated processor would need a second to unpack it
    shutil.rmtree(root)


def receive_prompt(monitor):
    """Receives what QEMU's monitor says, up to its prompt."""
    said = b""
    while not said.endswith(b"(qemu) "):
        piece = monitor.recv(4096)
        assert piece, said
        said += piece


class MiniVM:
    """A VM that can be started several times. SHARE is a directory of the host, /share in the VM. MODULES are loaded at each boot.
    APPEND is added to the command line of the kernel. If MEMORY_FILE is given, it holds the memory of the VM, which then survives a
    kill of QEMU, and is not cleared by the next start. DEVICES are further options of QEMU."""

    def __init__(self, kernel, share, *, programs=(), modules=(), append="", memory=512, memory_file=None, smp=1, devices=(), cpu="max"):
        self.share = Path(share)
        self.initramfs = self.share.parent / f"{self.share.name}.initramfs"
        make_initramfs(kernel, self.initramfs, programs, modules)
        self.monitor_path = self.share.parent / f"{self.share.name}.monitor"
        self.console = self.share.parent / f"{self.share.name}.console"
        backing = (["-object", f"memory-backend-file,id=ram0,size={memory}M,mem-path={memory_file},share=on", "-machine",
                    "memory-backend=ram0"] if memory_file else [])
        self.command = [
            "nice", "-n", "5",  # tests that record this machine go first
            "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=single", "-cpu", cpu, "-smp", str(smp), "-m", str(memory),
            "-display", "none", "-no-user-config", "-nodefaults", "-serial", f"file:{self.console}", "-rtc", "base=utc",
            "-monitor", f"unix:{self.monitor_path},server,nowait", "-kernel", kernel.image, "-initrd", self.initramfs,
            "-append", f"console=ttyS0 panic=-1 quiet mitigations=off cryptomgr.notests {append}",
            "-virtfs", f"local,path={self.share},mount_tag=share,security_model=none,id=s", *backing, *devices]
        self.process = None

    def start(self, script):
        """Starts QEMU. The VM runs SCRIPT after each boot, and ends after SCRIPT."""
        (self.share / "run.sh").write_text(script)
        for name in ("rc", "out"):
            (self.share / name).unlink(missing_ok=True)
        self.lock = lock("qemu-lock")  # two emulated processors at a time take more than twice the time
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def monitor(self, command):
        """Gives a command to QEMU's monitor, for example system_reset."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.monitor_path))
            s.settimeout(LIMIT)
            receive_prompt(s)
            s.sendall(command.encode() + b"\n")
            receive_prompt(s)  # QEMU does not run a command whose sender has gone

    def wait_for(self, done, what, limit=LIMIT):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            result = done()
            if result:
                return result
            assert self.process.poll() is None, f"the VM ended before {what}:\n{self.report()}"
            time.sleep(0.05)
        raise TimeoutError(f"no {what} after {limit} s:\n{self.report()}")

    def report(self):
        out = self.share / "out"
        return self.console.read_text(errors="replace")[-3000:] + (out.read_text(errors="replace")[-3000:] if out.exists() else "")

    def wait(self, limit=LIMIT):
        """Waits for the end of the script. Returns its output."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the script still runs after {limit} s:\n{self.report()}") from None
        finally:
            self.kill()
        rc = self.share / "rc"
        assert rc.exists() and rc.read_text().strip() == "0", self.report()
        return (self.share / "out").read_text(errors="replace")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.lock.close()
            self.process = None

    def run(self, script, limit=LIMIT):
        self.start(script)
        return self.wait(limit)
