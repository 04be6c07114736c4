# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases of the test matrix. Each case runs programs, and each program prints the phases that it runs
(tests/load/matrix/phase.h). The samples of a recording must agree with these phases."""
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from harness import FULL, ROOT, environment, must, start, until
from judge import parse_phases

SOURCES = ROOT / "tests/load/matrix"
EXIT_SKIP = 77
PHASE_MS = 300 if FULL else 150
CFLAGS = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fno-omit-frame-pointer", "-fno-stack-protector",
          "-Wl,--build-id")


class Programs:
    """Compiles the programs of tests/load/matrix. If the parameter `only` has names, compiles only one.c, once for each of
    these names."""

    PLAIN = ("fork", "threads", "reuse", "dl", "comm", "vdso", "text", "bpf", "jitdump")
    ONES = ("first", "second", "third", "deleted", "upgraded", "contained", "forked")

    def __init__(self, directory, only=None):
        self.directory = directory
        for name in only or self.ONES:
            self.compile(name, "one.c", "phase.c", "-static", f"-DFR_NAME=frtest_{name}")
        if only:
            return
        for name in self.PLAIN:
            self.compile(name, f"{name}.c", "phase.c", "-pthread", "-ldl", *(["-lbpf"] if name == "bpf" else []))
        for name in ("a", "b"):
            self.compile(f"lib{name}.so", "lib.c", "-shared", "-fPIC", f"-DFR_NAME=frtest_lib_{name}")
        self.compile("flood", "flood.c")

    def compile(self, name, *what):
        must("gcc", *CFLAGS, *(SOURCES / w if w.endswith(".c") else w for w in what), "-o", self.directory / name)

    def __getitem__(self, name):
        return str(self.directory / name)


class Runner:
    """Runs the programs of a case. While they run, it calls `tick` every few milliseconds. test_matrix.py makes dumps in
    `tick`, so that there are dumps from the whole life of a program."""

    def __init__(self, programs, directory, objects, tick):
        self.programs, self.directory, self.objects, self.tick = programs, directory, objects, tick
        self.notes, self.names = {}, set(STARTERS)
        self.process = None
        self.tidy = []  # files that clean_up() removes before perf reads a dump

    @property
    def said(self):
        return self.directory / "said"

    def begin(self, *argv, **env):
        self.names |= {Path(a).name[:15] for a in map(str, argv) if os.access(a, os.X_OK)}
        with open(self.said, "wb") as out, open(self.directory / "errors", "wb") as err:
            self.process = start(*argv, stdout=out, stderr=err, cwd=self.directory,
                                 env=environment(FR_PHASE_MS=str(PHASE_MS), **env))

    def tick_until(self, condition):
        end = time.monotonic() + 300
        while not condition():
            assert time.monotonic() < end, f"{self.process.args} does not end"
            self.tick()

    def run(self, *argv, early=None):
        """Runs a program to its end, and calls `early` 100 ms after its start. Returns the phases that the program prints."""
        self.begin(*argv)
        if early:
            time.sleep(0.1)
            early()
        return self.finish()

    def finish(self):
        self.tick_until(lambda: self.process.poll() is not None)
        err = (self.directory / "errors").read_text(errors="replace")
        if self.process.returncode == EXIT_SKIP:
            pytest.skip(err.strip())
        assert self.process.returncode == 0, f"{self.process.args}: exit code {self.process.returncode}\n{err}"
        phases, self.notes = parse_phases(self.said.read_text())
        return phases

    def run_and_hold(self, n, *argv):
        """Starts a program and waits until it has printed N phases. Returns the phases. The program then waits, so that it is
        alive in all dumps, until Recording.clean_up() in test_matrix.py kills it after the last dump."""
        self.begin(*argv, FR_PHASE_HOLD="1")
        self.tick_until(lambda: self.said.read_text().count("\n") == n or self.process.poll() is not None)
        assert self.process.poll() is None, (self.directory / "errors").read_text(errors="replace")
        return parse_phases(self.said.read_text())[0]

    def begin_stopped(self, *argv):
        """Starts a program before the recorder starts. The program stops itself with SIGSTOP. resume() sends it a SIGCONT."""
        self.begin(*argv, FR_PHASE_STOP="1")
        until("stop", lambda: Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        return self.finish()

    def keep_object(self, path):
        """Puts an object file into the build-id cache that perf reads, because the file will no longer be at its path when perf
        reads the dumps."""
        must("perf", "--buildid-dir", self.objects, "buildid-cache", "--add", path)


def pid_reuse(r):
    phases = r.run(r.programs["reuse"], r.programs["first"], r.programs["second"])
    assert {p.pid for p in phases} == {r.notes["reused"]} and len({p.comm for p in phases}) == 3
    return phases


def dlopen_same_address(r):
    phases = r.run(r.programs["dl"], r.programs["liba.so"], r.programs["libb.so"])
    assert r.notes["same-address"], "the loader put the libraries at different addresses, so this would test nothing"
    return phases


def text_copied(r):
    return r.run(r.programs["text"], "copied", shutil.copy(r.programs["liba.so"], r.directory / "a copy.so"))


def text_memfd(r):
    r.keep_object(r.programs["liba.so"])
    return r.run(r.programs["text"], "memfd", r.programs["liba.so"])


def perf_map(r):
    """The perf map and the process exist while dumps are made, and are gone when the dumps are read."""
    phases = r.run_and_hold(2, r.programs["text"], "perfmap")
    r.tidy.append(Path(f"/tmp/perf-{r.process.pid}.map"))
    return phases


def jitdump(r):
    phases = r.run_and_hold(2, r.programs["jitdump"], r.directory)
    r.tidy.append(r.directory / f"jit-{r.process.pid}.dump")
    return phases


def in_container(r):
    """Returns a command that runs a program in a mount namespace with its own root. The program's path does not exist outside
    of this namespace."""
    r.keep_object(r.programs["contained"])
    root = r.directory / "root"
    root.mkdir()
    script = 'mount -t tmpfs none "$1" && cp "$2" "$1/frtest-only-here" && exec chroot "$1" /frtest-only-here'
    return "unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", root, r.programs["contained"]


def service(r):
    """Returns the path of a program, and a function to call while the program runs. The function upgrades the program: it
    removes the file, and puts another program in its place."""
    r.keep_object(r.programs["deleted"])
    path = Path(shutil.copy(r.programs["deleted"], r.directory / "service"))

    def upgrade():
        path.unlink()
        shutil.copy(r.programs["upgraded"], path)

    return path, upgrade


def deleted(r):
    path, upgrade = service(r)
    return r.run(path, early=upgrade)


def deleted_before(r):
    path, upgrade = service(r)
    r.begin_stopped(path)
    upgrade()


def odd_name(r, name):
    return shutil.copy(r.programs[name], r.directory / "we ird) 1 (x")


CASES = {
    "exec": lambda r: r.run(r.programs["first"], r.programs["second"], r.programs["third"]),
    "fork": lambda r: r.run(r.programs["fork"], r.programs["liba.so"]),
    "fork-exec": lambda r: r.run(r.programs["fork"], r.programs["liba.so"], r.programs["forked"]),
    "thread-names": lambda r: r.run(r.programs["threads"]),
    "leader-exited": lambda r: r.run(r.programs["threads"], "leader"),
    "pid-reuse": pid_reuse,
    "dlopen-same-address": dlopen_same_address,
    "text-mprotected": lambda r: r.run(r.programs["text"], "mprotect", r.programs["liba.so"]),
    "text-copied": text_copied,
    "text-memfd": text_memfd,
    "text-anonymous": lambda r: r.run(r.programs["text"], "anon"),
    "text-huge": lambda r: r.run(r.programs["text"], "huge"),
    "perf-map": perf_map,
    "jitdump": jitdump,
    "container": lambda r: r.run(*in_container(r)),
    "deleted": deleted,
    "comm": lambda r: r.run(odd_name(r, "comm")),
    "vdso": lambda r: r.run(r.programs["vdso"]),
    "bpf": lambda r: r.run(r.programs["bpf"]),
}
# Cases whose processes start before the recorder, so that the recorder knows these processes only from its scan of /proc. The
# functions start the processes, and resume() continues the processes when the recorder runs.
BEFORE = {
    "before-plain": lambda r: r.begin_stopped(r.programs["first"]),
    "before-container": lambda r: r.begin_stopped(*in_container(r)),
    "before-deleted": deleted_before,
    "before-odd-name": lambda r: r.begin_stopped(odd_name(r, "second")),
}
STARTERS = {Path("/proc/self/comm").read_text().strip(), "unshare", "sh", "cp", "mount", "chroot"}
