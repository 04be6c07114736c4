# SPDX-License-Identifier: GPL-2.0-or-later
"""User stacks of programs without frame pointers, with call-graph=unwind.

FLIGHTREC_STACKS=fp judges other stacks in the same way, and so judges these tests: nearly all must fail.
"""
import json
import os
import re
import shutil
import time

import pytest

import callchains
import programs
from conftest import end_recorder
from harness import Daemon, finish_load, program, start

HOW = os.environ.get("FLIGHTREC_STACKS", "unwind")
KINDS = {"pie": "frtest-chain", "fixed": "frtest-chain-fixed", "static-pie": "frtest-chain-static"}
VARIANTS = ("call", "altstack", "lazy", "deep", "vdso", "system", "jit", "alloca", "realign", "jump", "hop", "thread", "fork",
            "exec")
CASES = [(kind, variant) for kind in KINDS for variant in VARIANTS if (kind, variant) != ("static-pie", "lazy")]
SECONDS = 7
LONG_SECONDS = 35  # on a machine that is so busy that programs with a low priority get less than a tenth of a CPU
# The recorder learns within a second from side-band which maps a new process has, and then makes the tables.
SETTLE_NS = 3 * 10**9
# The thread that makes the tables has a low priority. The loads leave it enough time.
NICE = ("nice", "-n", "19")
MARGIN_NS = 2 * 10**6
FEWEST = 20  # samples that a case must have
WRONG_PERCENT = 1
# Go interrupts goroutines by signals, the more the busier the machine is. The first function of its handler is on another stack
# and has no table, so its stack cannot be walked.
GO_WRONG_PERCENT = 4


class Chains:
    """One recording of all cases of frtest-chain. The cases of one kind run at once."""

    def __init__(self, directory, seconds):
        self.said, self.stacks, self.seconds = {}, {}, seconds
        daemon = Daemon(directory / "state", "-F", "499", "-e", f"cpu-clock/call-graph={HOW}/", "-e",
                        "task-clock/call-graph=fp,freq=99/", "-m", "8M", "-M", "512M")
        daemon.directory.mkdir()
        try:
            daemon.start()
            self.run(directory)
            sample = daemon.dump_by_control()
            status = daemon.status()
            self.counters = {k: status[k] for k in ("unwind", "sideband")}
        finally:
            end_recorder(daemon)
        self.restore(directory)
        pids = {s["pid"] for s in self.said.values()}
        for s in callchains.read(sample, pids=pids):
            self.stacks.setdefault((s.tid, s.event.split(":")[0].split("/")[0]), []).append(s)

    def run(self, directory):
        for kind, name in KINDS.items():
            started = {}
            for case in CASES:
                if case[0] == kind:
                    place = directory / "-".join(case)
                    place.mkdir()
                    started[case] = start(*NICE, program(name), "-t", self.seconds, case[1], cwd=place, stdout=-1, text=True)
            self.said.update({case: finish_load(p) for case, p in started.items()})

    def restore(self, directory):
        """Puts the executable files back that were replaced, so that perf finds the names in them."""
        for kind, variant in CASES:
            if variant == "exec":
                for end in ("", " (deleted)"):
                    shutil.copy(program(KINDS[kind]), directory / f"{kind}-{variant}" / f"frtest-chain-copy{end}")

    def of(self, case, event="cpu-clock"):
        said = self.said[case]
        return [s for s in self.stacks.get((said["tid"], event), [])
                if said["from_ns"] + SETTLE_NS < s.ns < said["to_ns"] - MARGIN_NS]

    def seconds_of(self, case, stacks):
        return [round((s.ns - self.said[case]["from_ns"]) / 1e9, 3) for s in (stacks[0], stacks[-1])]


def wrong_of(said, stacks):
    """Returns the STACKS that are not the chain that the load has said, or that have no start."""
    return [s for s in stacks if not re.fullmatch(said["expected"], callchains.names(s)) or not callchains.is_whole(s)]


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    short = Chains(tmp_path_factory.mktemp("chains"), SECONDS)
    enough = all(len(short.of(case)) >= FEWEST for case in CASES)
    return short if enough else Chains(tmp_path_factory.mktemp("chains"), LONG_SECONDS)


@pytest.mark.parametrize("kind, variant", CASES)
def test_each_stack_is_the_known_chain(chains, kind, variant):
    stacks = chains.of((kind, variant))
    wrong = wrong_of(chains.said[kind, variant], stacks)
    assert len(stacks) >= FEWEST
    assert len(wrong) <= WRONG_PERCENT / 100 * len(stacks), \
        f"{len(wrong)} of {len(stacks)} stacks are wrong, such as {sorted({callchains.names(s) for s in wrong})[:5]}, " \
        f"{chains.seconds_of((kind, variant), wrong)} s after the start; {chains.counters}"
    if variant == "vdso":
        assert any(s.frames[0].dso == "[vdso]" for s in stacks), "no sample is in the vDSO"


def test_frame_pointers_would_not_do(chains):
    """The same programs, in the same recording, have broken stacks without tables. So the test above can fail."""
    for kind, variant in CASES:
        stacks = chains.of((kind, variant), "task-clock")
        wrong = wrong_of(chains.said[kind, variant], stacks)
        assert stacks and len(wrong) >= 0.95 * len(stacks), (kind, variant, len(wrong), len(stacks))


# --- the same occurrence, by the recorder and by perf -----------------------------------------------------------------

# Makes page faults in many functions of several libraries. The recorder makes the table of an object when a stack needs it, so
# the first seconds do not count.
FAULTS = """
import json, re, sqlite3, sys, time, zlib, decimal
def work(n):
    words = sorted((str(i * 7919 % 100003) for i in range(n)), key=lambda s: s[::-1])
    text = json.dumps(words)
    found = re.sub("([0-9]+)", r"<\\\\1>", text)
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(a TEXT)")
    db.executemany("INSERT INTO t VALUES(?)", ((w,) for w in words))
    rows = db.execute("SELECT a FROM t ORDER BY a DESC").fetchall()
    return len(zlib.compress(found.encode())) + len(rows) + sum(bytearray(1 << 20))
def round():
    for i in range(4):
        work(20000 + 1000 * i)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    round()
open(sys.argv[2], "w").write(str(time.monotonic_ns()))
for i in range(4):
    round()
"""


# malloc() gives memory back to the kernel at once, so new memory has page faults.
NEW_MEMORY = ("PYTHONMALLOC=malloc", "MALLOC_MMAP_THRESHOLD_=16384", "MALLOC_TRIM_THRESHOLD_=0", "MALLOC_TOP_PAD_=0")


def compare_with_perf(directory, script):
    """Records one run of SCRIPT with both events. Returns the figures of callchains.compare()."""
    said = directory / "said"
    d = Daemon(directory, "-e", "page-faults/call-graph=dwarf,16384,period=1/", "-e", f"minor-faults/call-graph={HOW},period=1/",
               "-m", "32M", "-M", "1G", command=["setarch", "-R", "env", *NEW_MEMORY, "/usr/bin/python3", script, SETTLE_NS / 1e9, said])
    try:
        assert d.launch().wait() == 0, d.log()
    finally:
        d.kill()
    stacks = [s for s in callchains.read(directory / "perf.data") if s.ns > int(said.read_text())]
    reference, judged = ([s for s in stacks if s.event.startswith(name)] for name in ("page-faults", "minor-faults"))
    figures = callchains.compare(callchains.pair(reference, judged))
    print(callchains.text(figures))
    return figures


def test_stacks_equal_those_of_perf(tmp_path):
    """Two events with the same occurrences: perf unwinds the one from copies of the stack. The events have two types, because a
    second event of one software type got the samples of both (seen on Linux 6.18). Where perf's
    libunwind stops depends on the addresses at which the process has its libraries, so they are always the same here. It often
    stops before the outermost frames, mostly in __libc_start_call_main. So the recorder's stacks can have more."""
    script = tmp_path / "faults.py"
    script.write_text(FAULTS)
    figures = compare_with_perf(tmp_path, script)
    whole = figures["reference_whole"]
    assert figures["pairs"] > 1000 and whole > 100, figures
    assert figures["equal_frames"] >= 0.995 * figures["frames"], figures
    assert figures["equal_to_whole"] + figures["longer_than_whole"] >= 0.995 * whole, figures


def test_events_of_children_keep_their_names(tmp_path):
    """The kernel gives the perf events of a child the BPF program, but not what says which event it is."""
    d = Daemon(tmp_path, "-e", "cpu-clock/call-graph=unwind,freq=99/", "-e", "page-faults/call-graph=unwind,period=1/",
               "-m", "8M", "-M", "64M", command=[program("frtest-spawn"), "-n", 20, "-m", 5])
    try:
        assert d.launch().wait() == 0, d.log()
    finally:
        d.kill()
    stacks = list(callchains.read(tmp_path / "perf.data"))
    children = [s.event.split("/")[0].split(":")[0] for s in stacks if s.pid != stacks[0].pid]
    print({name: children.count(name) for name in set(children)})
    assert children.count("page-faults") > 20 * 20
    assert children.count("cpu-clock") < 200


def test_in_a_pid_namespace_the_kernel_makes_the_samples(tmp_path):
    """BPF programs would write pids that side-band does not have there, so no sample would have the name of its program."""
    d = Daemon(tmp_path, "-e", "cpu-clock/call-graph=unwind,freq=499/", "-m", "8M", "-M", "64M",
               prefix=("unshare", "--pid", "--fork", "--mount-proc"), command=[program("frtest-burn"), "-u", "0.5"])
    try:
        assert d.launch().wait() == 0, d.log()
    finally:
        d.kill()
    assert "in a pid namespace" in d.log()
    stacks = callchains.read(tmp_path / "perf.data")
    assert len([s for s in stacks if s.comm == "frtest-burn" and 0 < s.pid < 100]) > 100


# --- ordinary programs ------------------------------------------------------------------------------------------------

SHORT = ("python3", "gzip", "perl", "sort", "openssl", "sqlite3", "redis", "go (fzf)", "rust (rg)")


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory):
    """One recording of all programs. Returns {name: Stacks, or None if the program is not installed}."""
    directory = tmp_path_factory.mktemp("programs")
    place, running, result = programs.Workplace(directory), [], {}
    daemon = Daemon(directory / "state", "-F", "499", "-e", f"cpu-clock/call-graph={HOW}/", "-m", "8M", "-M", "512M")
    daemon.directory.mkdir()
    try:
        daemon.start()
        for name in SHORT:
            try:
                running.append(programs.Running(name, place))
            except FileNotFoundError:
                result[name] = None
        time.sleep(SETTLE_NS / 1e9)
        begin = time.monotonic_ns()
        time.sleep(8)
        assert all(p.is_running() for p in running), [p.name for p in running if not p.is_running()]
        pids = {p.name: p.pids() for p in running}
        pids = {p.name: p.pids() for p in running}
        sample = daemon.dump_by_control()
    finally:
        for p in running:
            p.end()
        end_recorder(daemon)
    for p in running:
        result[p.name] = [s for s in callchains.read(sample, pids=pids[p.name]) if s.ns > begin]
    return result


@pytest.mark.parametrize("name", SHORT)
def test_stacks_of_programs_are_whole(ordinary, name):
    if ordinary[name] is None:
        pytest.skip(f"{name} is not installed: ./dev install")
    figures = callchains.summary(ordinary[name])
    print(callchains.text(figures))
    assert figures["samples"] > 50
    assert figures["broken_percent"] <= (GO_WRONG_PERCENT if name.startswith("go ") else WRONG_PERCENT), figures


# --- incidents --------------------------------------------------------------------------------------------------------

SWITCHES = ("-e", f"context-switches/call-graph={HOW},period=1/", "-e", "sched:sched_switch", "-e", "sched:sched_waking")


def test_the_thread_that_waits_for_a_mutex_is_seen(recorder):
    """The stack at the switch shows in which function the waiter waits for the mutex."""
    d = recorder(*SWITCHES, "-m", "8M", "-M", "256M")
    time.sleep(0.1)
    p = start(program("frtest-incident"), "-n", 20, "-m", 300, "mutex", stdout=-1, text=True)
    out, _ = p.communicate(timeout=60)
    waits = [json.loads(line) for line in out.splitlines()]
    stacks = callchains.read(d.dump_by_control(), pids={p.pid}, event="context-switches")
    settled = [w for w in waits if w["from_ns"] > waits[0]["from_ns"] + SETTLE_NS]
    assert len(settled) >= 5
    for w in settled:
        mine = [s for s in stacks if s.tid == w["tid"] and w["from_ns"] <= s.ns <= w["to_ns"]]
        assert any("serve_request;run_waiter;" in callchains.names(s) and callchains.is_whole(s) for s in mine), \
            f"{w} at {w['from_ns'] - waits[0]['from_ns']} ns: {[(callchains.names(s), s.kernel) for s in mine]}; {d.status()['unwind']}"
