# SPDX-License-Identifier: GPL-2.0-or-later
"""The exports of flightrec-report have the samples of stock perf, with the same names, and other programs read them."""
import bisect
import os
import pty
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import exports
from exports import FORMATS, Events, perf_profile, perf_samples, perf_stacks, stacks, sums
from harness import Daemon, end, environment, meta, must, program, quiet_config, read_terminal, run, start, until, until_ran

pytestmark = pytest.mark.long
EVENTS = ("cpu-clock", "offcpu", "sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new", "page-faults")
SCHED = ("sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new")
FILES = "import os, sys\nwhile True:\n    for path, _, names in os.walk('/usr/include'): [os.stat(os.path.join(path, n)) for n in names]"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two dumps of one recorder, the second one not compressed, and the pids of the loads: in user space, in the kernel, with
    waits that end and one that does not."""
    directory = tmp_path_factory.mktemp("export")
    (directory / "state").mkdir()
    lines = "".join(f"Events={e}\n" for e in EVENTS)
    d = Daemon(directory / "state", "--config", quiet_config(directory / "d.conf", f"[Recorder]\n{lines}CallGraph=fp\n"), "-F", "999")
    loads = {}
    try:
        d.start()
        if "flightrec:offcpu" not in [e["name"] for e in d.status()["events"]]:
            pytest.skip("BPF programs are not permitted here")
        loads = {"burn": start(program("frtest-burn"), "-t", 3600, stdout=subprocess.DEVNULL),
                 "copy": start("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", stderr=subprocess.DEVNULL),
                 "files": start("/usr/bin/python3", "-c", FILES)}
        for kind in ("lock", "stuck"):
            loads[kind] = start(program("frtest-culprit"), "-t", 3600, kind, stdout=subprocess.DEVNULL)
        until_ran(loads["burn"], loads["copy"], loads["files"], seconds=0.5)
        time.sleep(1.5)  # two waits of the lock, of 300 ms and longer, end
        found = d.dump_by_control("--last=3s"), d.dump_by_control("--last=1s", "--no-compression")
    finally:
        end(*loads.values())
        d.kill()
    return *found, {name: p.pid for name, p in loads.items()}


@pytest.fixture(scope="module")
def dump(recorded):
    return recorded[0]


@pytest.fixture(scope="module")
def pids(recorded):
    return recorded[2]


def skip_without(kind):
    reason = exports.missing(kind)
    if reason:
        pytest.skip(reason)


def report_sums(path, *args):
    """The sums of each event that flightrec-report prints."""
    out = must(program("flightrec-report"), "report", "-q", "--no-inline", *args, path).out
    return {event: (int(n), int(total)) for n, event, total in re.findall(r"^# (\d+) samples of event '(.*)', event count (\d+)$", out, re.M)}


# --- totals ---


@pytest.mark.parametrize("kind", FORMATS)
def test_totals(dump, kind, tmp_path):
    """Each event has the samples and the sum of periods that perf script prints."""
    skip_without(kind)
    wanted = sums(perf_profile(dump))
    assert set(wanted) >= {"cpu-clock", "flightrec:offcpu", "flightrec:waker", "flightrec:waiting", *SCHED[:2], "flightrec:trigger"}
    assert sums(exports.read(dump, kind, tmp_path / kind)) == wanted == report_sums(dump)


@pytest.mark.parametrize("kind", FORMATS)
def test_stacks(dump, pids, kind, tmp_path):
    """The stacks of all formats are those of speedscope, whose names test_names_of_functions compares with perf. Only those of
    the loads, because the files of other programs can change between two exports."""
    skip_without(kind)
    mine = f"--pid={','.join(map(str, pids.values()))}"
    profile = exports.read(dump, kind, tmp_path / kind, mine)
    reference = stacks(exports.read_speedscope(dump, tmp_path / "reference", mine))
    assert {"cpu-clock", "flightrec:offcpu", "flightrec:waiting"} <= set(reference)
    if kind == "folded":  # a ';' separates functions, so names have a ':' instead
        reference = {event: Counter({tuple(f.replace(";", ":") for f in s): n for s, n in c.items()}) for event, c in reference.items()}
    if kind == "perfetto":  # events of ftrace have no stacks
        reference = {event: c for event, c in reference.items() if event not in SCHED and event != "flightrec:trigger"}
    for event, found in reference.items():
        assert profile[event].stacks == found, event


def test_all_samples_of_one_process(dump, pids, tmp_path):
    """The totals of the whole machine could hide two errors that cancel each other."""
    found = {}
    for pid, _, event, samples in exports.speedscope_parts(exports.export(dump, "speedscope", tmp_path / "x", f"--pid={pids['lock']}")):
        assert pid == pids["lock"]
        found.setdefault(event, Events()).add(len(samples), sum(w for _, w in samples))
    assert sums(found) == sums(perf_profile(dump, lambda s: s.pid == pids["lock"]))
    assert {"flightrec:offcpu", "sched:sched_switch"} <= set(found)


# --- names ---


def frame_pairs(dump, pids, to):
    """Returns [(Sample, [(Frame of perf, name in the export), …]), …] for samples of the processes PIDS."""
    ours, pairs = {}, []
    for pid, tid, event, samples in exports.speedscope_parts(exports.export(dump, "speedscope", to, f"--pid={','.join(map(str, pids))}")):
        ours.setdefault((pid, tid, event), []).extend(stack for stack, _ in samples)
    theirs = perf_stacks(dump, tuple(sorted(pids)))
    assert len(theirs) == sum(map(len, ours.values()))
    for s in theirs:
        names = ours[s.pid, s.tid, s.event].pop(0)
        # perf leaves out a stack if one of its addresses is like a mark between kernel and user.
        assert len(names) == len(s.frames) or not s.frames, (s, names)
        pairs.append((s, list(zip(s.frames, names))))
    return pairs


def is_behind_call(i, frame):
    """A return address at the start of a function belongs to the function in front of it, whose last instruction is a call
    that does not return. perf 6.1 looks up the address itself. The innermost address is no return address."""
    return i > 0 and frame.offset == 0


def test_names_of_functions(dump, pids, tmp_path):
    total = wrong = apart = 0
    examples = Counter()
    for s, pairs in frame_pairs(dump, set(pids.values()), tmp_path / "x"):
        for i, (frame, name) in enumerate(pairs):
            same = name == frame.symbol or (frame.symbol == "[unknown]" and name.startswith("["))
            if not same and is_behind_call(i, frame):
                apart += 1
                continue
            total += 1
            if not same:
                wrong += 1
                examples[frame.symbol, name, frame.object] += 1
    assert total > 2000 and apart < total / 100
    assert wrong <= total / 1000, f"{wrong} of {total} names differ: {examples.most_common(10)}"
    # The comparison would be worth little if nobody knew names.
    names = Counter(frame.object for s in perf_stacks(dump, tuple(sorted(pids.values()))) for frame in s.frames if frame.symbol != "[unknown]")
    assert {"[kernel.kallsyms]", program("frtest-burn"), program("frtest-culprit")} <= set(names)
    assert any(re.search(r"/libc[.-]", path) for path in names)


def kernel_symbols():
    """Returns ([address, …], {address: {name, …}}) of the functions of the kernel without its modules, sorted."""
    names = {}
    for line in Path("/proc/kallsyms").read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWw":
            names.setdefault(int(words[0], 16), set()).add(words[2])
    return sorted(names), names


def test_names_of_the_kernel_are_those_of_kallsyms(dump, pids, tmp_path):
    """Also the names that perf does not know: those of the functions of the boot, to which the stacks of idle CPUs go back, and
    those behind a call that does not return."""
    addresses, names = kernel_symbols()
    if not addresses or addresses[-1] == 0:
        pytest.skip("the kernel hides the addresses of its functions")
    checked, boot, idle = 0, set(), 0
    for s, pairs in frame_pairs(dump, {0, *pids.values()}, tmp_path / "x"):
        idle += s.pid == 0 and s.cpu == 0 and any(frame.symbol.startswith("cpu_startup") for frame, _ in pairs)
        for i, (frame, name) in enumerate(pairs):
            if frame.object != "[kernel.kallsyms]":
                continue
            at = addresses[bisect.bisect_right(addresses, frame.ip - (i > 0)) - 1]
            if name not in names[at]:
                # An interrupt at the first instruction: the address is no return address.
                assert frame.ip in names and name in names[frame.ip], (frame, name, names[at])
            checked += 1
            boot |= {name} & {"start_kernel", "x86_64_start_kernel", "x86_64_start_reservations"}
    assert checked > 2000
    assert boot or not idle or os.uname().machine != "x86_64"


# --- readers ---


def test_values_of_pprof(dump, tmp_path):
    """pprof shows CPU time, and the user chooses the time of waits by a name."""
    skip_without("pprof")
    path = exports.export(dump, "pprof", tmp_path / "x.pb.gz")
    types = exports.pprof_types(exports.go_pprof("-raw", path).out)
    assert [t[:3] for t in types[:4]] == [("cpu-clock", True, "count"), ("cpu-clock", False, "nanoseconds"),
                                          ("flightrec:offcpu", True, "count"), ("flightrec:offcpu", False, "nanoseconds")]
    assert [t[3] for t in types] == [i == 1 for i in range(len(types))]
    units = {event: unit for event, is_count, unit, _ in types if not is_count}
    assert units["flightrec:waiting"] == "nanoseconds" and units["sched:sched_switch"] == "events"
    top = exports.go_pprof("-top", path)
    assert "Type: cpu\n" in top.out and "frtest_burn_hot" in top.out and not top.err.strip()
    waits = exports.go_pprof("-sample_index=off-cpu", "-top", "-nodefraction=0", "-focus=culprit_", path).out
    assert "Type: off-cpu\n" in waits and "culprit_serve" in waits
    one = exports.go_pprof("-sample_index=samples", "-tags", path).out
    assert re.search(r"^ +[\d.]+ \(.*\): dd$", one, re.M), one[:2000]


def trace_of(dump, to, *args):
    return exports.read_trace(exports.export(dump, "perfetto", to, *args))


def test_perfetto_by_protoc(dump, tmp_path):
    """protoc knows each field of the trace, and the names of triggers are there."""
    skip_without("perfetto")
    path = exports.export(dump, "perfetto", tmp_path / "x")
    with open(path, "rb") as f:
        text = subprocess.run(["protoc", f"-I{exports.READERS}", "--decode=Trace", exports.READERS / "perfetto.proto"], stdin=f,
                              capture_output=True, text=True, check=True, timeout=180).stdout
    assert not re.search(r"^\s*\d+(:| \{)", text, re.M), "a field without a name"
    mark = text[text.index("type: 3\n") - 500:][:1000]
    assert 'name: "control"' in mark and "flightrecctl dump" in mark
    assert f'release: "{os.uname().release}"' in text


SWITCH = re.compile(r"^\s*(\d+)\.(\d{9}): .*prev_comm=(.*) prev_pid=(\d+) prev_prio=(\d+) prev_state=\S+ ==> next_comm=(.*) next_pid=(\d+) next_prio=(\d+)$")


def switches(trace):
    """Returns [(time, CPU, SchedSwitch), …]."""
    return [(e.timestamp, p.ftrace_events.cpu, e.sched_switch) for p in trace.packet for e in p.ftrace_events.event if e.HasField("sched_switch")]


def test_switches_of_perfetto(dump, tmp_path):
    """Each switch has the fields that perf script prints."""
    skip_without("perfetto")
    ours = Counter((t, e.prev_comm, e.prev_pid, e.prev_prio, e.next_comm, e.next_pid, e.next_prio)
                   for t, _, e in switches(trace_of(dump, tmp_path / "x")))
    out = must("perf", "script", "-i", dump, "--ns", "-G", "-F", "trace:time,trace").out
    theirs = Counter((int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4]), int(m[5]), m[6], int(m[7]), int(m[8]))
                     for m in map(SWITCH.match, out.splitlines()) if m)
    assert ours == theirs and ours.total() > 100


def run_times(trace):
    """Returns {tid: [times on a CPU, in ns, …]}: from a switch to the thread to the next switch of this CPU."""
    begun, times = {}, {}
    for at, cpu, e in sorted(switches(trace), key=lambda x: x[0]):
        if cpu in begun:
            times.setdefault(e.prev_pid, []).append(at - begun[cpu])
        begun[cpu] = at
    return times


def test_run_times_of_perfetto(dump, pids, tmp_path):
    """perf sched timehist has the same run times of each thread."""
    skip_without("perfetto")
    ours = run_times(trace_of(dump, tmp_path / "x"))
    out = must("perf", "sched", "timehist", "-i", dump, "-n").out
    theirs = {}
    for m in re.finditer(r"^\s*\d+\.\d+ \[\d+\]\s+\S.*\[(\d+)(?:/(\d+))?\].*?\s+[\d.]+\s+[\d.]+\s+([\d.]+)(?:\s+\S.*)?$", out, re.M):
        theirs.setdefault(int(m[1]), []).append(float(m[3]))
    for name, pid in pids.items():
        mine, yours = ours.get(pid, []), theirs.get(pid, [])
        if name in ("burn", "copy", "files"):
            assert len(yours) > 5, name
        # perf does not know when the first switch of a CPU began.
        assert abs(len(mine) - len(yours)) <= os.cpu_count(), name
        assert abs(sum(mine) / 1e6 - sum(yours)) <= 0.001 * len(yours) + 0.01 * max(sum(yours), 1), name


def test_waits_of_perfetto(dump, pids, tmp_path):
    """A wait is a slice of its thread: as long as perf's period, also if it has not ended."""
    skip_without("perfetto")
    tracks, open_slices, found = {}, {}, Counter()
    for p in trace_of(dump, tmp_path / "x").packet:
        if p.HasField("track_descriptor") and p.track_descriptor.HasField("thread"):
            tracks[p.track_descriptor.uuid] = p.track_descriptor.thread.pid
        e = p.track_event
        if e.type == 1:
            open_slices[e.track_uuid] = p.timestamp
        elif e.type == 2:
            found[tracks[e.track_uuid], p.timestamp, p.timestamp - open_slices.pop(e.track_uuid)] += 1
    wanted = Counter((s.pid, s.ns, s.period) for s in perf_samples(dump)
                     if s.event in ("flightrec:offcpu", "flightrec:waiting") and s.pid in pids.values())
    assert Counter({k: n for k, n in found.items() if k[0] in pids.values()}) == wanted
    assert {pids["lock"], pids["stuck"]} <= {pid for pid, *_ in wanted} and not open_slices


@pytest.mark.parametrize("kind", ["speedscope", "pprof", "folded"])
def test_importer_of_speedscope(dump, kind, tmp_path):
    """The importer of speedscope reads three of the formats. Of a file of pprof, it takes the default value."""
    skip_without("import")
    wanted = sums(perf_profile(dump))
    found = exports.import_by_speedscope(exports.export(dump, kind, tmp_path / f"x.{kind}"))
    for p in found:
        assert sum(weight for _, weight in p["stacks"]) == p["weight"]
    if kind == "folded":
        assert [p["weight"] for p in found] == [wanted["cpu-clock"][0]]
    elif kind == "pprof":
        assert [(p["unit"], p["weight"]) for p in found] == [("nanoseconds", wanted["cpu-clock"][1])]
    else:
        total = Counter()
        for p in found:
            event = p["name"].rsplit(", ", 1)[1]
            assert p["unit"] == ("none" if event.startswith("sched:") or event in ("page-faults", "flightrec:trigger") else "nanoseconds")
            total[event] += p["weight"]
        assert total == Counter({event: period for event, (_, period) in wanted.items()})
    hot = [stack for p in found for stack, _ in p["stacks"] if stack and stack[-1] == "frtest_burn_hot"]
    assert hot and all("frtest_burn_middle" in stack[-3:] for stack in hot)


def test_hotspot_reads_the_dump(recorded, tmp_path):
    """The parser of hotspot, of Debian, knows no compressed records."""
    skip_without("hotspot")
    path = recorded[1]
    wanted = sum(n for n, _ in sums(perf_profile(path)).values())
    stats = must(exports.PERFPARSER, "--print-stats", "--input", path).out
    assert int(re.search(r"^samples: (\d+)$", stats, re.M)[1]) == wanted
    assert re.search(r"^samples time violations: 0$", stats, re.M)
    must(exports.PERFPARSER, "--input", path, "--output", tmp_path / "x")
    assert exports.count_hotspot_samples(tmp_path / "x") == wanted


# --- filters ---


def filters(dump, pids):
    """Returns {name: (options, the same as a function)}."""
    end_ns = meta(dump)["window"]["to_ns"]
    two = {pids["burn"], pids["lock"]}
    cut, cut2 = end_ns - 800_000_000, end_ns - 100_000_000
    return {"pid": ([f"--pid={pids['burn']},{pids['lock']}"], lambda s: s.pid in two),
            "comm": (["--comm=frtest-*", "--cpu=0"], lambda s: s.comm.startswith("frtest-") and s.cpu == 0),
            "time": (["--from=-800ms", "--to=-100ms"], lambda s: cut <= s.ns <= cut2)}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("which", ["pid", "comm", "time"])
def test_filters(dump, pids, kind, which, tmp_path):
    skip_without(kind)
    options, keep = filters(dump, pids)[which]
    wanted = sums(perf_profile(dump, keep))
    assert wanted and report_sums(dump, *options) == wanted
    some = {"events": ("cpu-clock", "flightrec:offcpu")} if kind == "folded" else {}  # each event is an export
    found = sums(exports.read(dump, kind, tmp_path / kind, *options, **some))
    assert found == {event: n for event, n in wanted.items() if not some or event in some["events"]}


# --- output ---


def on_terminal(cwd, *argv):
    """Runs a program with a terminal as its output. Returns its exit code and what it wrote."""
    here, there = pty.openpty()
    p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=there, stderr=there, cwd=cwd, env=environment())
    os.close(there)
    text = read_terminal(here)
    return p.wait(180), text.decode(errors="replace").replace("\r\n", "\n")


SUFFIXES = {"pprof": ".pb.gz", "perfetto": ".perfetto-trace", "speedscope": ".speedscope.json", "firefox": ".firefox.json"}


@pytest.mark.parametrize("kind", SUFFIXES)
def test_an_export_on_a_terminal_makes_a_file(dump, kind, tmp_path):
    argv = [program("flightrec-report"), "export", "-q", "--no-inline", f"--format={kind}", "--event=cpu-clock", dump]
    code, text = on_terminal(tmp_path, *argv)
    path = tmp_path / (dump.name + SUFFIXES[kind])
    assert (code, text) == (0, f"{path.name}\n")
    must(*argv[:-1], "-o", tmp_path / "other", dump)
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    code, text = on_terminal(tmp_path, *argv)
    assert code == 1 and "there is already a file" in text and "-o" in text


def test_folded_stacks_are_for_people_too(dump, tmp_path):
    code, text = on_terminal(tmp_path, program("flightrec-report"), "export", "--no-inline", dump)
    assert code == 0 and "frtest_burn_hot " in text and not list(tmp_path.iterdir())
    note = run(program("flightrec-report"), "export", "--no-inline", "-o", tmp_path / "x", dump).err
    assert "the event is cpu-clock" in note and "flightrec:offcpu" in note


def test_binary_data_never_goes_to_a_terminal(dump, tmp_path):
    code, text = on_terminal(tmp_path, program("flightrec-report"), "export", "--no-inline", "--format=pprof", "-o", "-", dump)
    assert code == 2 and "not for a terminal" in text and not list(tmp_path.iterdir())


# --- the flame graph ---


def test_flame_graph_of_a_terminal(dump, pids):
    """The names and the shares of the first line, which are the threads, are those of perf."""
    totals = Counter()
    for s in perf_samples(dump):
        if s.event == "cpu-clock":
            totals[s.comm] += s.period
    whole = totals.total()
    head, first, *rest = must(program("flightrec-report"), "report", "--flame", "-q", dump).out.splitlines()
    assert head == f"# {sum(s.event == 'cpu-clock' for s in perf_samples(dump))} samples of event 'cpu-clock', event count {whole}"
    width, shown = len(first), 0
    assert width <= 120 and all(len(line) <= 120 for line in rest)
    for m in re.finditer(r"([^|\s][^|]*?) (\d+\.\d)% *\|", first):
        share = totals[m[1]] / whole
        assert abs(share * 100 - float(m[2])) <= 0.051 and abs(share * 120 - (m.end() - m.start())) <= 1, m[0]
        shown += 1
    assert shown >= 1
    one = must(program("flightrec-report"), "report", "--flame", "-q", f"--pid={pids['burn']}", dump).out
    burn = [s for s in perf_samples(dump) if s.event == "cpu-clock" and s.pid == pids["burn"]]  # with those from before its exec
    share = 100 * sum(s.period for s in burn if s.comm == "frtest-burn") / sum(s.period for s in burn)
    shown = re.search(r"^frtest-burn (\d+\.\d)% .*\|", one, re.M)
    assert abs(float(shown[1]) - share) <= 0.051 and re.search(r"^frtest_burn_hot \d+\.\d% .*\|", one, re.M), (share, one)
    waits = must(program("flightrec-report"), "report", "--flame", "-q", "--event=flightrec:offcpu", f"--pid={pids['lock']}", dump).out
    period = sum(s.period for s in perf_samples(dump) if s.event == "flightrec:offcpu" and s.pid == pids["lock"])
    assert f"of event 'flightrec:offcpu', event count {period}\n" in waits and all(f"run_{name}" in waits for name in ("holder", "middle", "victim"))


# --- cgroups ---


@pytest.fixture
def two_groups(group2):
    """A cgroup in a cgroup."""
    inner = group2 / "inner"
    inner.mkdir()
    yield group2, inner
    until("empty cgroup", lambda: not (inner / "cgroup.procs").read_text())
    inner.rmdir()


@pytest.mark.parametrize("merged", [False, True], ids=["dump", "merged"])
def test_processes_of_a_cgroup(recorder, two_groups, merged, tmp_path):
    """Those that are there, one that had ended before the dump, and one of a cgroup below. Others are not shown."""
    group, inner = two_groups
    burn = program("frtest-burn")
    d = recorder("-e", "cpu-clock", "-F", "499", "-g")
    script = f"echo $$ > {group}/cgroup.procs; {burn} -u 0.1 >&2 & echo $!; wait; exec {burn} -t 3600 >&2"
    mine = start("sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    below = start("sh", "-c", f"echo $$ > {inner}/cgroup.procs; exec {burn} -t 3600", stdout=subprocess.DEVNULL)
    other = start(burn, "-t", 3600, stdout=subprocess.DEVNULL)
    try:
        ended = int(mine.stdout.readline())
        until("end of the child", lambda: not Path(f"/proc/{ended}").exists())
        until_ran(mine, below, other, seconds=0.1)
        path = d.dump_by_control()
    finally:
        end(mine, below, other)
        mine.stdout.close()
    if merged:
        path = d.finish()
    inside = {mine.pid, ended, below.pid}
    assert inside <= {s.pid for s in perf_samples(path)}
    for name, pids_of in ((group.name, inside), (f"/{group.name}/", inside), ("inner", {below.pid}), (f"{group.name}/inner", {below.pid})):
        wanted = sums(perf_profile(path, lambda s, pids_of=pids_of: s.pid in pids_of))
        option = f"--cgroup={name}"
        assert sums(exports.read_speedscope(path, tmp_path / "x", option)) == wanted == report_sums(path, option), name
    r = run(program("flightrec-report"), "report", "--cgroup=no-such-group", path)
    assert r.code == 1 and "'no-such-group'" in r.err
    assert run(program("flightrec-report"), "report", f"--cgroup={group.name[:-1]}", path).code == 1, "a part of a name"


def test_cgroups_of_perf_record(group2, tmp_path):
    """In a file of perf record --all-cgroups, each sample has its cgroup, so that of a process can change."""
    path, burn = tmp_path / "perf.data", program("frtest-burn")
    script = f"{burn} -u 0.1; echo $$ > {group2}/cgroup.procs; {burn} -u 0.1"
    must("perf", "record", "--all-cgroups", "-e", "cpu-clock", "-F", "999", "-o", path, "--", "sh", "-c", script)
    out = must("perf", "report", "-i", path, "--stdio", "-n", "--sort", "cgroup", "-t", "|").out
    wanted = {m[2]: int(m[1]) for m in re.finditer(r"^ *[\d.]+% *\| *(\d+) *\|(/\S*) *$", out, re.M)}
    assert wanted[f"/{group2.name}"] > 0 < wanted["/"]
    for name in (group2.name, f"/{group2.name}"):
        assert [n for n, _ in report_sums(path, f"--cgroup={name}").values()] == [wanted[f"/{group2.name}"]]
    assert [n for n, _ in report_sums(path, "--cgroup=/").values()] == [sum(wanted.values())]
    assert not report_sums(path, "--cgroup=no-such-group")


def test_a_file_without_cgroups(tmp_path):
    path = tmp_path / "perf.data"
    must("perf", "record", "-e", "cpu-clock", "-o", path, "--", program("frtest-burn"), "-u", "0.05")
    r = run(program("flightrec-report"), "report", "--cgroup=x", path)
    assert r.code == 1 and "--all-cgroups" in r.err


def test_an_event_that_is_not_there(dump, tmp_path):
    r = run(program("flightrec-report"), "export", "--event=cycles", "-o", tmp_path / "x", dump)
    assert r.code == 1 and "'cycles'" in r.err and "cpu-clock, flightrec:offcpu" in r.err and not (tmp_path / "x").exists()
