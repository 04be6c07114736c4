# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracepoints through BPF programs: the records are those that perf would write. Each test records events twice at once, by perf
and by programs. Event number N of a test has the names perf-N and bpf-N."""
import os
import socket
from collections import Counter

import pytest

from harness import NO_LOSS, last_cpu, load, perf_clean, program, run, script_lines


@pytest.fixture(autouse=True)
def needs_btf():
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("the kernel has no BTF")


def twice(events, terms=""):
    """EVENTS are pairs of an event and its filter, or None."""
    options = [x for n, (event, text) in enumerate(events) for way in ("perf", "bpf")
               for x in ("-e", f"{event}/capture={way},name={way}-{n}{terms}/", *(("--filter", text) if text else ()))]
    return [*NO_LOSS, *options, "-M", "64M"]


def content(line, whose):
    # perf does not know the pid of a thread that has ended, so the pid is compared only for threads that are known.
    return (line.comm, line.pid, line.tid, line.cpu, line.trace) if whose else (line.cpu, line.trace)


def events_of(sample, of=None):
    """Returns the samples of a dump by the name of their event, in the order of time. OF chooses samples."""
    events = {}
    for line in sorted(script_lines(sample), key=lambda line: line.time):
        # perf does not record that it wakes a recorder.
        if (not of or of(line)) and "comm=fr-recorder" not in line.trace:
            events.setdefault(line.event, []).append(line)
    return events


def both_ways(events, n, of_processes=False):
    """Returns the content of the samples of both ways of event number N. If OF_PROCESSES, they belong to processes that have begun
    and ended while both ways recorded. Otherwise, the first and the last samples of one way are left out if the other way cannot
    have them, because the recorder enables and drains one ring after the other."""
    ways = [events.get(f"{way}-{n}", []) for way in ("perf", "bpf")]
    if of_processes or not all(ways):
        return [[content(line, of_processes) for line in way] for way in ways]
    both = [[], []]
    for cpu in {line.cpu for line in ways[0]} & {line.cpu for line in ways[1]}:
        there = [[line for line in way if line.cpu == cpu] for way in ways]
        begin, end = max(way[0].time for way in there), min(way[-1].time for way in there)
        for i, way in enumerate(there):
            both[i] += [content(line, of_processes) for line in way if begin <= line.time <= end]
    return both


def judge(recorder, events, n, what, least=2):
    """Fails if a way has fewer than LEAST samples, or if a program misses what perf has. The first and the last event of each CPU can be in one of the ways only. The other
    way round, perf itself misses events that happen while it handles another event, on a busy machine most of those of
    softirqs. test_system_calls() compares events that perf does not miss, and both ways must be equal."""
    ways = both_ways(events, n)
    assert min(map(len, ways)) >= least, f"{what}: {ways}"
    by_perf, by_bpf = map(Counter, ways)
    missing = by_perf - by_bpf
    lost = sum(sum(recorder.event_status(f"{way}-{n}")["lost"].values()) for way in ("perf", "bpf"))
    assert sum(missing.values()) <= 2 * os.cpu_count() + lost, f"{what}: {missing}"


def work(directory):
    """Does a little of all that the tracepoints below see, and returns the pids of the processes that did it."""
    pids = {load("syscalls", "-n", 2000)["pid"]}
    load("spawn", "-n", 20, "-m", "10")
    load("pingpong", "-t", "0.2")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        for _ in range(100):
            s.sendto(b"x", s.getsockname())
    with open(directory / "written", "wb") as f:
        f.write(b"x" * (1 << 20))
        os.fsync(f.fileno())
    return pids


def test_system_calls(recorder, tmp_path):
    names = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "syscalls:sys_enter_write", "syscalls:sys_enter_openat",
             "syscalls:sys_exit_openat", "syscalls:sys_enter_mmap"]
    d = recorder(*twice([(name, None) for name in names]))
    pids = work(tmp_path)
    events = events_of(d.dump_by_control(), lambda line: line.pid in pids)
    for n, name in enumerate(names):
        by_perf, by_bpf = both_ways(events, n, of_processes=True)
        assert by_perf == by_bpf and by_perf, name
    assert sum(d.lost().values()) == 0


def test_other_tracepoints(recorder, tmp_path):
    names = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup", "sched:sched_process_exec", "sched:sched_migrate_task",
             "task:task_newtask", "irq:softirq_raise", "irq:softirq_entry", "timer:timer_start", "timer:hrtimer_start",
             "block:block_rq_issue", "block:block_bio_queue", "net:net_dev_queue", "net:netif_rx", "kmem:kmalloc", "kmem:mm_page_alloc"]
    d = recorder(*twice([(name, None) for name in names]))
    work(tmp_path)
    events = events_of(d.dump_by_control())
    for n, name in enumerate(names):
        judge(d, events, n, name)


FILTERS = [
    ("raw_syscalls:sys_enter", "id == {nr}"),
    ("raw_syscalls:sys_enter", "id != {nr} && id < 100"),
    ("raw_syscalls:sys_enter", "!(id == {nr} || id == 1)"),
    ("raw_syscalls:sys_enter", "id >= 0x10 && (id <= 20 || id > 200)"),
    ("raw_syscalls:sys_enter", 'comm == "frtest-syscalls" && (CPU == {cpu} || CPU == 0)'),
    ("raw_syscalls:sys_enter", 'comm ~ "frtest*" && id & 4'),
    ("raw_syscalls:sys_exit", "ret < 0"),
    ("raw_syscalls:sys_exit", "ret >= -2 && ret <= 3 && id != {nr}"),
    ("sched:sched_switch", 'prev_comm ~ "frtest*" && next_prio > 100'),
    ("sched:sched_switch", "prev_state == 1 || prev_state & 0x70"),
    ("sched:sched_waking", 'comm != "frtest-pingpong"'),
    ("sched:sched_waking", "pid > 0 && target_cpu != {cpu}"),
    ("syscalls:sys_enter_write", "fd == 1"),
    ("syscalls:sys_exit_openat", "ret > 0"),
    ("kmem:kmalloc", "bytes_req > 64 && common_pid != 0"),
]


def test_filter(recorder, tmp_path):
    """The kernel's filter and ours let the same events pass."""
    nr = load("syscalls", "-n", 1)["nr"]
    filters = [(event, text.format(nr=nr, cpu=last_cpu())) for event, text in FILTERS]
    d = recorder(*twice(filters))
    work(tmp_path)
    events = events_of(d.dump_by_control())
    for n, (event, text) in enumerate(filters):
        judge(d, events, n, f"{event} {text}", least=1)


def test_call_chain(recorder, tmp_path):
    """The call chain, which begins at the tracepoint, and the address of the sample are those of perf."""
    names = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "sched:sched_waking", "syscalls:sys_enter_write", "kmem:kmalloc"]
    d = recorder(*twice([(name, None) for name in names], terms=",call-graph=fp"))
    pids = work(tmp_path)
    out = perf_clean("script", "-i", d.dump_by_control(), "--pid", ",".join(map(str, pids)), "-F", "event,ip,sym")
    chains = {}
    for block in out.split("\n\n"):
        head, *lines = block.strip().splitlines() or [""]
        # With two recorders, perf's address is in the function that calls both of them.
        frames = [f.split()[0] for f in lines if "__traceiter_" not in f]
        # It also takes one of the 127 frames, which a frame pointer that points to itself fills.
        chains.setdefault(head.split(":")[0].strip(), Counter())[tuple(frames[:100])] += 1
    for n, name in enumerate(names):
        theirs, ours = chains[f"perf-{n}"], chains[f"bpf-{n}"]
        more = sum((ours - theirs).values())
        # perf leaves out a waking in an interrupt while it makes a sample in another one.
        assert not theirs - ours and more <= max(3, sum(theirs.values()) / 10), (name, theirs - ours, ours - theirs)


def test_what_no_program_can_record_is_refused(recorder, tmp_path):
    for event, extra, words in [
            ("sched:sched_switch/capture=bpf,overwrite/", (), ("overwrite",)),
            ("sched:sched_switch/capture=bpf/", ("-p", os.getpid()), ("chosen processes",)),
            ("raw_syscalls:sys_enter/capture=bpf/", ("--filter", 'comm ~ "*a*"'), ("pattern",)),
            ("raw_syscalls:sys_enter/capture=bpf/", ("--filter", "nothing == 1"), ("does not accept", "fields of")),
            ("raw_syscalls:sys_enter/capture=disk/", (), ("capture=bpf, capture=perf or capture=auto",)),
            ("cpu-clock/capture=bpf/", (), ("not a tracepoint",))]:
        r = run(program("flightrecd"), "-o", tmp_path, "--socket", tmp_path / "control", "-e", event, *extra)
        assert r.code != 0 and all(w in r.err for w in words), f"{event}: {r.err}"


def test_what_no_program_can_record_goes_through_perf(recorder):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", 'comm ~ "*test-sysc*"')
    did = load("syscalls", "-n", 500)
    calls = [line for line in script_lines(d.dump_by_control()) if line.tid == did["pid"]]
    assert len(calls) >= 500


def test_losses_are_counted(recorder):
    """With a small ring, the samples that arrived and those that are counted as lost are all events."""
    d = recorder("-m", "16K", "-e", "raw_syscalls:sys_enter/capture=bpf/", "--filter", "id == 110", "-M", "64M")
    did = load("syscalls", "-n", 300000)
    assert did["nr"] == 110
    sample = d.dump_by_control()
    status = d.event_status("raw_syscalls:sys_enter")
    arrived = sum(1 for line in script_lines(sample) if line.tid == did["pid"])
    lost = sum(d.lost().values())
    assert lost > 0 and arrived + lost >= 300000, status
