# SPDX-License-Identifier: GPL-2.0-or-later
"""The event offcpu: how long tasks were off the CPU, in which state and with which stack, and who woke them. The loads know the
truth: frtest-incident prints each time that a thread did not run."""
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter, defaultdict

import pytest

from harness import Daemon, end, merge, meta, must, program, quiet_config, run, start, start_load, until
from offcpu import all_samples_of, ms, samples_of, truths

NEAR_MS = 1
# A sandbox can hide what its own threads do: switches to other threads, and so the ends of some sleeps; and interrupts during
# which they run, and so some wakings.
SEEN = 0.95
KNOWN_NS = 2_000_000_000  # the unwinder learns a new program and its maps in this time
FINE = "offcpu/threshold=50us/"


def incident(*args):
    return truths(must(program("frtest-incident"), *args, timeout=300).out)


def needs_bpf(log):
    if "not permitted to load the BPF" in log:
        pytest.skip("BPF programs are not permitted here")


def by_tid(samples):
    found = defaultdict(list)
    for s in samples:
        found[s.tid].append(s)
    return found


def during(samples, truth):
    """The samples that begin and end in the time of TRUTH."""
    return [s for s in samples if truth.from_ns <= s.ns - s.period and s.ns <= truth.to_ns]


@pytest.fixture(scope="module")
def sleeps(tmp_path_factory):
    """Runs frtest-incident with a fine threshold. Returns (truths, sleeps, wakers)."""
    directory = tmp_path_factory.mktemp("sleeps")
    d = Daemon(directory / "d", "-e", FINE, "-M", "256M")
    (directory / "d").mkdir()
    d.start()
    try:
        known = incident("-n", 160, "-m", 4, "-f", directory / "data", "-c", max(os.sched_getaffinity(0)), "sleeps")
        found = samples_of(d.dump_by_control())
        assert not d.lost(), d.lost()
    finally:
        d.stop()
        d.wait()
    return known, *found


def is_time_of(truth, inside):
    """The waits are all the time of TRUTH in which the thread did not run; it can also have been preempted before or after its
    sleep. A host that stops a CPU in the middle of a switch makes the kernel count the same time as CPU time of the thread, and
    as its wait for the CPU. So the waits can be as long as the whole time."""
    elapsed, waits = (truth.to_ns - truth.from_ns) / 1e6, sum(map(ms, inside))
    near = NEAR_MS + 0.1 * len(inside)
    return elapsed - truth.cpu_ns / 1e6 - near <= waits <= elapsed + near


def describe(truth, inside):
    return (f"{truth.kind}: {(truth.to_ns - truth.from_ns) / 1e6} ms, CPU {truth.cpu_ns / 1e6} ms, waits "
            f"{[(s.fields['state'], ms(s), ms(s, 'runqueue'), s.kernel[:2]) for s in inside]}")


KINDS = {"futex": ("S", "task"), "poll": ("S", "task"), "nanosleep": ("S", "hardirq"), "fsync": ("D", None), "preempted": ("R", None)}


@pytest.mark.parametrize("kind", KINDS)
def test_durations_states_and_stacks(sleeps, kind):
    known, found, _ = sleeps
    mine = by_tid(found)
    state, context = KINDS[kind]
    # A fast disk needs less than the threshold for some of the fsyncs.
    all_of_kind = [t for t in known if t.kind == kind and (kind != "fsync" or t.to_ns - t.from_ns > 2_000_000)]
    if kind == "fsync" and len(all_of_kind) < 5:
        pytest.skip("this disk is too fast for a test of state D")
    assert len(all_of_kind) >= 5
    seen = [(t, during(mine[t.tid], t)) for t in all_of_kind]
    seen = [(t, inside) for t, inside in seen if any(s.fields["state"].rstrip("+") == state for s in inside)]
    assert len(seen) >= int(SEEN * len(all_of_kind))
    wrong = [(t, inside) for t, inside in seen if not is_time_of(t, inside)]
    assert len(seen) - len(wrong) >= int(SEEN * len(seen)), [describe(t, inside) for t, inside in wrong[:3]]
    stacks = Counter()
    for t, inside in seen:
        longest = max(inside, key=ms)
        assert longest.period == round(ms(longest) * 1e6)
        assert abs(ms(longest, "blocked") + ms(longest, "runqueue") - ms(longest)) < 0.00001
        sleep = max((s for s in inside if s.fields["state"].rstrip("+") == state), key=ms)
        assert sleep.pid == t.pid and sleep.comm == "sleeper" and sleep.kernel
        if context and sleep.fields["context"] != "unknown":
            assert sleep.fields["context"] == context, sleep
        if t.from_ns > known[0].from_ns + KNOWN_NS:
            stacks[t.function in sleep.user] += 1
    assert stacks[True] >= SEEN * stacks.total(), (stacks, [inside[0] for t, inside in seen if t.function not in inside[0].user][-3:])


@pytest.mark.parametrize("kind", ["futex", "poll"])
def test_the_waker_is_right_each_time(sleeps, kind):
    known, found, wakers = sleeps
    mine, woken = by_tid(found), defaultdict(list)
    for w in wakers:
        woken[int(w.fields["woken_tid"])].append(w)
    n = 0
    for t in (t for t in known if t.kind == kind):
        sleep = max((s for s in during(mine[t.tid], t) if s.fields["state"] == "S"), key=ms, default=None)
        # If the waking is hidden, an earlier one can look like it, which came before the thread had left its CPU.
        if not sleep or sleep.fields["context"] == "unknown" or not ms(sleep, "blocked"):
            continue
        n += 1
        assert int(sleep.fields["waker_tid"]) == t.waker_tid and int(sleep.fields["waker_pid"]) == t.pid
        assert sleep.fields["waker_comm"] == "waker"
        # The sample of the waker itself: at the time of the waking, with the same duration.
        same = [w for w in woken[t.tid] if abs(float(w.fields["slept"]) - ms(sleep, "blocked")) < 1e-6 and t.from_ns < w.ns <= sleep.ns]
        assert len(same) == 1 and same[0].tid == t.waker_tid and same[0].comm == "waker", (t, sleep, same)
        assert same[0].fields["woken_comm"] == "sleeper" and same[0].kernel[0] == "try_to_wake_up"
    assert n >= SEEN * len([t for t in known if t.kind == kind])


def test_who_holds_the_mutex(recorder):
    """The incident: with the default events and stock perf, the stack of the waker has the function that held the mutex."""
    d = recorder()
    needs_bpf(d.log())
    known = incident("-n", 100, "-m", 40, "mutex")
    found, wakers = samples_of(d.dump_by_control())
    n = 0
    for t in (t for t in known if t.from_ns > known[0].from_ns + KNOWN_NS):
        long = [s for s in during(by_tid(found)[t.tid], t) if ms(s, "blocked") > 10]
        assert len(long) < 2
        n += len(long)
        if not long:
            continue
        assert "serve_request" in long[0].user, (t, long)
        assert int(long[0].fields["waker_tid"]) == t.waker_tid
        by_waker = [w for w in wakers if int(w.fields["woken_tid"]) == t.tid and w.tid == t.waker_tid
                    and t.from_ns < w.ns <= t.to_ns]
        assert len(by_waker) == 1 and "rebuild_index" in by_waker[0].user, (t, by_waker)
    assert n >= 0.4 * len(known)


def test_the_stack_of_a_waker_begins_with_the_waking(recorder, tmp_path):
    """If other recorders come and go, the kernel calls our program in another way, with another number of frames between."""
    d = recorder("-e", FINE, "-M", "64M")
    needs_bpf(d.log())
    sleeper = start("sh", "-c", "while :; do sleep 0.002; done")
    try:
        for n in range(3):
            (tmp_path / f"other{n}").mkdir()
            other = Daemon(tmp_path / f"other{n}", "-e", FINE).start()
            time.sleep(0.2)
            other.stop()
            other.wait()
    finally:
        end(sleeper)
    _, wakers = samples_of(d.dump_by_control())
    first = Counter(w.kernel[0] for w in wakers if w.kernel)
    assert first["try_to_wake_up"] > 100 and len(first) == 1, first


def test_nothing_below_the_threshold(recorder):
    d = recorder("-e", "offcpu/threshold=20ms,name=slow/", "-e", "cpu-clock")
    incident("-n", 5, "-m", 5, "-f", d.directory / "data", "sleeps")
    incident("-n", 5, "-m", 40, "mutex")
    dump = d.dump_by_control()
    out = must("perf", "script", "-i", dump, "-F", "event,period,trace").out
    periods = [int(m[1]) for m in re.finditer(r"^\s*(\d+)\s+(?:slow|slow-waker): ", out, re.M)]
    assert len(periods) >= 10 and min(periods) >= 20_000_000


def test_only_the_recorded_processes(recorder):
    other = start_load("pingpong")
    sleeper = start("sh", "-c", "while :; do sleep 0.02; done")
    d = recorder("-e", "offcpu", "-p", sleeper.pid)
    until("samples", lambda: d.event_status("flightrec:offcpu")["samples"] > 20)
    found, _ = samples_of(d.dump_by_control())
    names = Counter(s.comm for s in found)
    assert set(names) <= {"sh", "sleep"} and names["sh"] and names["sleep"], names
    assert sleeper.pid in {s.pid for s in found}
    for p in (other, sleeper):
        p.kill()
        p.wait()


def test_a_command(recorder):
    """The recording of a command begins with its exec, and ends with the command."""
    d = recorder("-e", "offcpu", command=("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done"), armed=False)
    assert d.wait() == 0
    found, _ = samples_of(d.directory / "perf.data")
    blocked = [round(ms(s, "blocked")) for s in found if s.comm == "sleep" and ms(s, "blocked") > 45]
    # The kernel can hide one of the switches (see SEEN).
    assert 9 <= len(blocked) <= 10 and min(blocked) >= 50 and sorted(blocked)[5] <= 55, blocked


def test_a_reload_records_each_sleep_once(recorder, tmp_path):
    conf = tmp_path / "flightrecd.conf"
    d = recorder("--config", quiet_config(conf, "[Recorder]\nEvents=offcpu\n"))
    nap = tmp_path / "frtest-nap"  # a name that no other process has
    nap.symlink_to(shutil.which("sleep"))
    sleeper = start("sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {nap} 0.2; done")
    for n in range(4):
        quiet_config(conf, f"[Recorder]\nEvents=offcpu/max-stack={20 + n}/\n")
        assert d.ctl("reload").code == 0
    assert sleeper.wait() == 0
    found, _ = samples_of(d.dump_by_control())
    sleeps = [s for s in found if s.comm == "frtest-nap" and 199 < ms(s)]
    # The kernel can hide one of the switches (see SEEN).
    assert 11 <= len(sleeps) == len({s.tid for s in sleeps}) <= 12, [(s.tid, ms(s)) for s in sleeps]


def test_status_and_the_default(recorder):
    d = recorder()
    names = [e["name"] for e in d.status()["events"]]
    assert names[1:3] == ["flightrec:offcpu", "flightrec:waker"], names
    assert d.status()["frequency"]["off_cpu_threshold_ns"] == 1_000_000
    d.stop()
    assert d.wait() == 0
    d = recorder("-e", "cpu-clock")
    assert not [e["name"] for e in d.status()["events"] if "offcpu" in e["name"]]


@pytest.mark.waits
def test_the_budget_raises_the_threshold(recorder, tmp_path):
    d = recorder("--config", quiet_config(tmp_path / "budget.conf", "[Recorder]\nCPUBudget=0.01%\n"), "-e", "offcpu/threshold=100us/")
    load = start_load("pingpong", "-t", "600")
    until("step", lambda: d.status()["frequency"]["divisor"] > 1, 120)
    f, text = d.status()["frequency"], d.text_status()
    step = meta(d.dump_by_control())["frequency_steps"][0]
    assert f["off_cpu_threshold_ns"] == 100_000 * f["divisor"] and f["full_off_cpu_threshold_ns"] == 100_000
    assert step["from_off_cpu_threshold_ns"] == 100_000 and step["to_off_cpu_threshold_ns"] == 200_000
    assert "threshold of offcpu 100us to 200us" in d.log() and "instead of 100us" in text, (d.log(), text)
    time.sleep(1)
    found, _ = samples_of(d.dump_by_control("--last", "500ms"))
    assert found and min(s.period for s in found) >= 200_000
    end(load)


def test_without_the_capability(recorder):
    """By default, the recorder then records the other events and says why. An explicit offcpu is an error."""
    drop = ["setpriv", "--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin", "--no-new-privs", "--reuid", "0"]
    if run(*drop, "true").code:
        pytest.skip("setpriv cannot drop capabilities here")
    d = recorder(prefix=drop)
    assert "waiting tasks are not recorded (OffCPU=): not permitted to load the BPF programs" in d.log(), d.log()
    assert "libbpf" not in d.log()
    assert "flightrec:offcpu" not in [e["name"] for e in d.status()["events"]]
    bad = run(*drop, program("flightrecd"), "-e", "offcpu", "-o", d.directory, "--socket", d.directory / "other")
    assert bad.code != 0 and "CAP_BPF" in bad.err, bad.err


def waiting_in(path):
    """The waits that had not ended, by thread."""
    _, _, found = all_samples_of(path)
    mine = by_tid(found)
    assert all(len(x) == 1 for x in mine.values()), "each wait once"
    return {tid: x[0] for tid, x in mine.items()}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    """Dumps while the threads of frtest-stuck wait. Returns (what they print, the recorder, the path of the dump)."""
    directory = tmp_path_factory.mktemp("stuck")
    (directory / "d").mkdir()
    d = Daemon(directory / "d", "-e", "cpu-clock", "-e", "offcpu")
    d.start()
    needs_bpf(d.log())
    load = start(program("frtest-stuck"), stdout=subprocess.PIPE, text=True)
    known = [json.loads(load.stdout.readline()) for _ in range(3)]
    time.sleep(1)
    yield known, d, d.dump_by_control()
    end(load)
    d.stop()
    d.wait()


def test_waits_that_have_not_ended(stuck):
    known, _, dump = stuck
    found, fields = waiting_in(dump), meta(dump)
    to_ns = fields["monotonic_ns"]
    for w in known:
        s = found[w["tid"]]
        assert s.pid == w["pid"] and s.comm == "frtest-stuck" and s.fields["state"] == w["state"]
        # The wait begins a little later than the thread has printed its line.
        assert s.ns == to_ns and 1e9 <= s.period <= to_ns - w["from_ns"] and s.period == round(ms(s) * 1e6) == round(ms(s, "blocked") * 1e6)
        assert s.fields["context"] == "none" and s.fields["waker_tid"] == "0"
        assert any(("futex" if w["state"] == "S" else "vfork") in name for name in s.kernel), s
    # The threshold is a limit for the time up to the read of the waits, which is a little later than the end of the window.
    assert fields["waiting"] == len(found) and min(s.period for s in found.values()) > 0, fields
    sleeps, wakers, _ = all_samples_of(dump)
    assert fields["samples"] >= len(found) + len(sleeps) + len(wakers)


def test_a_wait_is_as_long_as_the_window_lets_it(stuck):
    """A dump of a window that has passed has the waits at its end."""
    known, d, _ = stuck
    dump = d.dump_by_control("--to", f"@{time.time() - 0.5:.6f}")
    found, to_ns = waiting_in(dump), meta(dump)["asked"]["to_ns"]
    for w in known:
        s = found[w["tid"]]
        assert s.ns == to_ns and 0 < s.period <= to_ns - w["from_ns"]


def test_a_wait_is_in_a_dump_once(recorder):
    """While it lasts, as flightrec:waiting; when it has ended, as flightrec:offcpu."""
    d = recorder("-e", "offcpu")
    needs_bpf(d.log())
    readers = [start("cat", stdin=subprocess.PIPE) for _ in range(20)]
    pids = {p.pid for p in readers}
    time.sleep(2)
    early = d.dump_by_control()
    for p in readers:
        p.communicate()
    late = d.dump_by_control()
    waits, ended = [], []
    for dump in (early, late):
        waits.append(pids & set(waiting_in(dump)))
        long = [s.tid for s in samples_of(dump)[0] if s.tid in pids and ms(s) > 1000]
        assert len(long) == len(set(long)), "twice"
        ended.append(set(long))
    # The kernel can hide a switch (see SEEN).
    assert len(waits[0]) >= SEEN * len(pids) and not ended[0], (waits, ended)
    assert len(ended[1]) >= SEEN * len(pids) and len(waits[1]) <= (1 - SEEN) * len(pids) and not waits[1] & ended[1], (waits, ended)


def test_a_merged_file_has_the_waits_of_its_inputs(stuck):
    known, d, dump = stuck
    directory = d.directory / "merge"
    directory.mkdir()
    for path in [d.directory / "perf.data.auxiliary", *d.samples()]:
        shutil.copy(path, directory)
    merged = merge(directory, "--keep", "-o", directory / "perf.data")
    assert merged.code == 0, merged.err
    _, _, found = all_samples_of(directory / "perf.data")
    for w in known:
        assert len([s for s in found if s.tid == w["tid"]]) == len(list(directory.glob("perf.data.sample.*Z")))
