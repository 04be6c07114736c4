# SPDX-License-Identifier: GPL-2.0-or-later
"""Each sample has the right name, also when programs exec, fork, reuse a pid, unload a library, or are renamed. matrix_cases.py
has a case for each of these situations.

All cases are recorded twice. The first recording has a ring that is large enough for all records, and one dump at the end. The
second recording has a ring of 1 MiB and many dumps, while a flood of system calls evicts all frames several times a second. So
only the tail model (the processes and maps at the time of the oldest frame) knows what the programs did before.
"""
import os
import re
import shutil
import time

import pytest

from conftest import mount, unmount
from harness import Daemon, Steps, end, merge, must, perf_clean, program, quiet_config
from judge import Judge, Verdict, samples_of
from matrix_cases import BEFORE, CASES, PHASE_MS, Programs, Runner

pytestmark = pytest.mark.long
PROFILE = ("-F", "999", "-e", "cpu-clock", "--call-graph=fp")
# Only the calls of the flood, because calls of other programs would evict frames between two dumps. The filter compares the
# name and not the pid, because in a pid namespace the kernel's common_pid is another number.
FLOOD = ("-e", "raw_syscalls:sys_enter", "--filter", 'id == 110 && COMM == "flood"')
# A ring of 1 MiB has room for about 10000 of these calls. Each tick makes FLOOD_PER_TICK calls, and a dump is made after every
# DUMP_EVERY_TICKS ticks. So the windows of the dumps overlap, even if a tick takes long.
FLOOD_PER_TICK = 600
DUMP_EVERY_TICKS = 8
KERNEL_RING = ("-m", "4M")  # has room for more than the flood makes between two dumps


class Recording:
    """One recording of all cases, with the phases of the cases and the files of the recorder."""

    def __init__(self, directory, wrapped):
        self.directory, self.wrapped = directory, wrapped
        self.cases, self.skipped, self.dumps = {}, {}, []
        self.state, self.objects, self.runners = directory / "state", directory / "objects", []
        for name in ("state", "objects", "programs"):
            (directory / name).mkdir()
        self.programs = Programs(directory / "programs")
        self.flood, self.ticks = None, 0

    def record(self):
        ring = (1 if self.wrapped else 64) << 20
        events = (*PROFILE, *FLOOD) if self.wrapped else PROFILE
        stopped = {name: self.runner(name) for name in BEFORE}
        for name, begin in BEFORE.items():
            begin(stopped[name])
        # SidebandBuffer=8M: while the recorder waits for a CPU, there is room for the side-band of all programs of the machine.
        config = quiet_config(self.directory / "state.conf", "[Recorder]\nSidebandBuffer=8M\n")
        self.daemon = Daemon(self.state, "--config", config, *KERNEL_RING, *events, "-M", ring).start()
        if self.wrapped:
            self.flood = Steps(self.programs["flood"], FLOOD_PER_TICK)
        for name, runner in stopped.items():
            self.run(name, runner, Runner.resume)
        for name, case in CASES.items():
            self.run(name, self.runner(name), case)
        if not self.wrapped:
            self.dump()
        self.clean_up()
        self.status = self.daemon.status()
        self.daemon.stop()
        self.merging = merge(self.state, "--keep", timeout=900)
        self.merged = self.state / "perf.data"
        return self

    def runner(self, name):
        directory = self.directory / name
        directory.mkdir()
        self.runners.append(Runner(self.programs, directory, self.objects, self.tick))
        return self.runners[-1]

    def run(self, name, runner, case):
        try:
            phases = case(runner)
            self.cases[name] = Judge(phases, runner.names)
        except pytest.skip.Exception as e:
            self.skipped[name] = str(e)
        if self.wrapped:
            self.dump()

    def clean_up(self):
        """Ends all programs, and removes their files, because perf must be able to read the dumps without the programs and
        files."""
        end(*(r.process for r in self.runners if r.process), *([self.flood.process] if self.flood else []))
        for r in self.runners:
            for path in r.tidy:
                path.unlink(missing_ok=True)

    def tick(self):
        time.sleep(0.02)
        if not self.wrapped:
            return
        self.flood.fill()
        self.ticks += 1
        if self.ticks % DUMP_EVERY_TICKS == 0:
            self.dump()

    def dump(self):
        self.dumps.append(self.daemon.dump_by_control())

    def judge(self):
        """Reads each file once for all cases. Sets .verdicts to {case: (Verdict of the sample files, Verdict of the merged
        file)}."""
        pids = set().union(*(j.pids for j in self.cases.values()))
        self.verdicts = {name: (Verdict(), Verdict()) for name in self.cases}
        for i, files in enumerate((self.dumps, [self.merged])):
            for path in files:
                samples = samples_of(path, pids, self.objects)
                for name, judge in self.cases.items():
                    judge.verdict(samples, self.verdicts[name][i])
        return self

    def close(self):
        self.daemon.kill()
        self.clean_up()

    def table(self):
        rows = [("case", "dumps", "merged")]
        rows += [(name, *map(str, self.verdicts[name])) for name in self.verdicts]
        rows += [(name, f"skipped: {why}", "") for name, why in self.skipped.items()]
        title = f"ring of 1 MiB that wrapped, {len(self.dumps)} dumps" if self.wrapped else "all within the ring, one dump"
        return "\n".join(["", title] + ["{:24}{:>22}{:>22}".format(*row) for row in rows])


@pytest.fixture(scope="module", params=["held", "wrapped"])
def recording(request, tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc: the programs of the matrix cannot be compiled")
    r = Recording(tmp_path_factory.mktemp("matrix"), request.param == "wrapped")
    try:
        yield r.record().judge()
    finally:
        r.close()


def test_nothing_was_lost(recording, capsys):
    with capsys.disabled():
        print(recording.table())
    assert recording.merging.code == 0, recording.merging.err
    if recording.wrapped:
        ring = recording.status["ring"]
        assert ring["evicted_samples"] > 20 * ring["samples"], f"the flood did not turn the ring over: {ring}"
    # Samples may be lost: the kernel can throttle an event, and the ring of 1 MiB has no room while dumps pin its frames.
    # Side-band must not be lost.
    lost = {cause: n for cause, n in recording.status["losses"].items() if n and cause not in ("throttled", "back-pressure")}
    assert not lost, lost


@pytest.mark.parametrize("case", [*BEFORE, *CASES])
def test_all_samples_are_right(recording, case):
    if case in recording.skipped:
        pytest.skip(recording.skipped[case])
    judge = recording.cases[case]
    for what, v in zip(("sample files", "merged"), recording.verdicts[case]):
        # Other programs may use the CPUs, but there are samples for at least a third of the time of the phases.
        wanted = len(judge.phases) * PHASE_MS / 3
        assert v.inside >= wanted, f"{what}: {v.inside} samples within phases, {wanted:.0f} wanted"
        assert v.right == v.total, f"{what}: {v}; e.g.\n" + "\n".join(v.wrong)
        if judge.phases[0].rule == "kernel":
            assert v.named >= v.inside / 2, f"{what}: {v.named} of {v.inside} in {judge.phases[0].symbols}"


def test_namespaces_of_the_container(recording):
    """A NAMESPACES record shows that the process is in another mount namespace than the test."""
    pid = next(iter(recording.cases["container"].pids))
    out = perf_clean("script", "-i", recording.merged, "--show-namespace-events", "--pid", pid)
    own = os.stat("/proc/self/ns/mnt").st_ino
    found = re.findall(rf"PERF_RECORD_NAMESPACES {pid}/{pid} .*?mnt: \S+?/(0x[0-9a-f]+)", out, re.S)
    assert found and int(found[-1], 16) != own, f"{out[:1000]}"


@pytest.fixture
def cgroup2(tmp_path):
    """The cgroup2 hierarchy, mounted only in the mount namespace of the tests. (PERF_RECORD_CGROUP describes cgroups of this
    hierarchy.)"""
    root = tmp_path / "cgroup2"
    root.mkdir()
    try:
        mount("cgroup2", root)
    except OSError as e:
        pytest.skip(f"no cgroup2: {e}")
    yield root
    unmount(root)


def test_cgroup_has_its_name(recorder, cgroup2, state_dir):
    """The dump and the merged file have the path of a cgroup that existed only for a short time."""
    group = cgroup2 / f"frtest-matrix-{os.getpid()}"
    d = recorder(*PROFILE, "-M", "8M")
    try:
        group.mkdir()
    except OSError as e:
        pytest.skip(f"no cgroup can be made: {e}")
    try:
        must("sh", "-c", 'echo $$ >"$1/cgroup.procs" && exec "$2" -t 0.1', "sh", group, program("frtest-burn"))
    finally:
        group.rmdir()
    sample = d.dump_by_control()
    d.stop()
    assert merge(state_dir, "--keep").code == 0
    for path in (sample, state_dir / "perf.data"):
        out = perf_clean("script", "-i", path, "--show-cgroup-events", "-F", "comm,pid,time,event")
        assert re.search(rf"PERF_RECORD_CGROUP cgroup: \d+ /\S*{group.name}\s", out), out[:500]
