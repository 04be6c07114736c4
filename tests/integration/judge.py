# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that stock perf shows the right name and function for each sample of a program.

The programs in tests/load/matrix run in phases. In a phase, one thread runs one function. The program prints each phase: the
thread, its name, its function, the start and the end. A sample within a phase must have the phase's name as its comm. If the
rule of the phase is "leaf", the innermost user frame of the sample must be one of the symbols of the phase. If the rule is
"kernel", the innermost frame must have a name. A sample near the start or end of a phase, or outside all phases (during an
exec, in the dynamic loader), must have a name that the thread had before or after the sample.
"""
import bisect
import json
import re
import subprocess
from collections import namedtuple

from harness import environment, start

NEAR_NS = 1_000_000
KERNEL = 1 << 63
HEADER = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<sec>\d+)\.(?P<ns>\d{9}):\s*$", re.S)
FRAME = re.compile(r"^\s+([0-9a-f]+) (.*?) \((.*)\)$")

Sample = namedtuple("Sample", "comm pid tid ns frames")
Frame = namedtuple("Frame", "ip symbol dso")
Phase = namedtuple("Phase", "pid tid comm begin end symbols rule")


def parse_phases(text):
    """Returns (phases, notes) from the output of a program. A note is a fact that the program prints (fr_phase_note())."""
    phases, notes = [], {}
    for line in text.splitlines():
        said = json.loads(line)
        if "note" in said:
            notes[said["note"]] = said["value"]
        else:
            comm = bytes.fromhex(said["comm"]).decode(errors="surrogateescape")
            phases.append(Phase(said["pid"], said["tid"], comm, said["from"], said["to"], said["symbols"].split(","), said["rule"]))
    return phases, notes


def parse_sample(block):
    lines = block.split("\n")
    first = next((i for i, line in enumerate(lines) if FRAME.match(line)), len(lines))
    m = HEADER.match("\n".join(lines[:first]))
    assert m, f"perf script prints an unknown sample: {block!r}"
    frames = [FRAME.match(line) for line in lines[first:] if line.strip()]
    assert all(frames), f"perf script prints an unknown frame: {block!r}"
    return Sample(m["comm"], int(m["pid"]), int(m["tid"]), int(m["sec"]) * 10**9 + int(m["ns"]),
                  [Frame(int(f[1], 16), f[2], f[3]) for f in frames])


def samples_of(path, pids, objects):
    """Returns the samples of the processes PIDS in a file. OBJECTS is a build-id cache with object files that are no longer at
    their paths."""
    p = start("perf", "--buildid-dir", objects, "script", "--ns", "--no-inline", "-i", path, "--pid",
              ",".join(str(x) for x in sorted(pids)), "-F", "comm,pid,tid,time,ip,sym,dso", stdout=subprocess.PIPE,
              stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="surrogateescape", env=environment())
    out, err = p.communicate(timeout=900)
    assert p.returncode == 0, f"perf script -i {path}: exit code {p.returncode}\n{err[-2000:]}"
    return [parse_sample(b) for b in out.split("\n\n") if b.strip()]


def matches(frame, symbols):
    return any(frame.dso.startswith(s[4:]) if s.startswith("dso:") else frame.symbol.split("@")[0] == s for s in symbols)


class Verdict:
    """Counts the samples of a case, and how many of them are right."""

    def __init__(self):
        self.total = self.right = self.inside = self.named = 0
        self.wrong = []

    def add(self, sample, good, why):
        self.total += 1
        self.right += good
        if not good and len(self.wrong) < 5:
            self.wrong.append(f"{why}: {sample._replace(frames=sample.frames[:6])}")

    @property
    def percent(self):
        return 100 * self.right / self.total if self.total else None

    def __str__(self):
        return "no samples" if not self.total else f"{self.percent:.2f} % of {self.total}"


class Judge:
    """Checks the samples of one case against its phases. OTHERS are the names that the processes of the case may have outside
    of the phases: the names of the programs that start them."""

    def __init__(self, phases, others):
        self.phases, self.others = phases, set(others)
        self.pids = {p.pid for p in phases}
        self.threads = {}
        for p in sorted(phases, key=lambda p: p.begin):
            self.threads.setdefault((p.pid, p.tid), []).append(p)
        self.comms = {p.comm for p in phases}

    def verdict(self, samples, verdict=None):
        v = verdict or Verdict()
        for s in samples:
            # At the very end of its exit a thread has no tid, and the kernel gives -1.
            if s.pid in self.pids and s.tid != -1:
                v.add(s, *self.check(s, v))
        return v

    def check(self, s, v):
        mine = self.threads.get((s.pid, s.tid), [])
        i = bisect.bisect([p.begin for p in mine], s.ns)
        phase = mine[i - 1] if i else None
        if phase and phase.begin + NEAR_NS <= s.ns <= phase.end - NEAR_NS:
            v.inside += 1
            return self.check_inside(s, phase, v)
        allowed = {p.comm for p in mine[max(0, i - 2):i + 1]} or self.comms
        if not i or not mine:
            allowed |= self.others | self.comms
        if i == len(mine) or i and mine[i].comm != mine[i - 1].comm:
            allowed |= self.others
        return s.comm in {a.strip() for a in allowed}, f"outside of phases, one of {sorted(allowed)}"

    @staticmethod
    def check_inside(s, phase, v):
        if s.comm != phase.comm.strip():
            return False, f"comm must be {phase.comm!r}"
        users = [f for f in s.frames if f.ip < KERNEL]
        leaf = s.frames[0] if s.frames else None
        if phase.rule == "kernel" or not users:
            v.named += leaf is not None and matches(leaf, phase.symbols)
            return leaf is not None and leaf.symbol != "[unknown]", "the leaf must have a name"
        return matches(users[0], phase.symbols), f"the first user frame must be one of {phase.symbols}"
