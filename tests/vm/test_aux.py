# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder with the synthetic PMU (kmod/flightrec_pmu.c), in QEMU: each byte of its AUX area says when, where and for whom it
was written. The same with `perf record --snapshot`, for comparison. With FLIGHTREC_FULL, 1,000 snapshots. The figures go to
build/aux.json."""
import json
import os
import re
import shutil
import statistics
import subprocess
from pathlib import Path

import pytest

import auxdata
import kernel
import machine

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
FULL = "FLIGHTREC_FULL" in os.environ
WORK_US = 5000  # of the task before each snapshot
AREA = 64 << 10
MODES = {0: "PT, counter", 1: "CoreSight, counter", 2: "PT, place", 3: "CoreSight, place"}
# The mode of the PMU, and what is recorded.
RUNS = [(mode, whom) for mode in MODES for whom in ("-a", "-p")] if FULL else [(0, "-a"), (1, "-p"), (2, "-p"), (3, "-a")]
# perf expects of this PMU that aux_head is a place.
PERF_RUNS = [run for run in RUNS if run[0] >= 2] if FULL else [(2, "-p")]
SNAPSHOTS = 125 if FULL else 12  # of each run
LARGE = 10 if FULL else 4  # dumps with areas of 1M
RATE = {"-a": 20, "-p": 100}  # records in a millisecond: with -a, each area is overwritten
FUNCTIONS = r"""
area=64K
wait_for() { # COMMAND…: runs it until it succeeds
    n=0; until "$@" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 300 ] || exit 1; sleep 0.1; done
}
load() { # NAME COMMAND…: starts the load of the run NAME, and waits for its pid
    to=/share/$1; shift; rm -rf /tmp/pid* /tmp/d; mkdir -p /tmp/d
    frtest-auxload /tmp/pid $to/script "$@" >$to/cpu & load=$!
    wait_for [ -s /tmp/pid ]; pid=$(cat /tmp/pid); echo $pid >$to/pid
}
record() { # OPTIONS…: starts the recorder
    flightrecd "$@" --aux-buffer $area -M 4M -o /tmp/d --socket /tmp/ctl >>$to/log 2>&1 & recorder=$!
    wait_for is_recording
}
set_target() { [ $1 = -a ] && target=-a || target="-p $pid"; }
is_recording() { flightrecctl --socket /tmp/ctl status | grep -q recording; }
dump() { flightrecctl --socket /tmp/ctl dump "$@" >/dev/null && mv /tmp/d/perf.data.sample.* $to/; }
configure() { printf "[Recorder]\\nAuxBuffer=256K\\n" >/tmp/conf; for e; do echo "Events=$e" >>/tmp/conf; done; }
reload() { configure "$@"; flightrecctl --socket /tmp/ctl reload; }
run() { # NAME WHOM OPTIONS…
    load $1 sh -c ". /share/functions; to=/share/$1; dump"; shift; set_target "$@"
    shift; record $target "$@"; touch /tmp/pid.go; wait $load; kill $recorder 2>/dev/null; wait $recorder
}
perf_run() { # NAME WHOM OPTIONS…
    to=/share/$1
    load $1 sh -c 'kill -USR2 $(cat /tmp/perf.pid); sleep 0.15'; shift; set_target "$@"
    rm -f /tmp/ctl /tmp/ack; mkfifo /tmp/ctl /tmp/ack
    shift; perf record -S $target -m,16 -o $to/perf.data --control fifo:/tmp/ctl,/tmp/ack "$@" >>$to/log 2>&1 & recorder=$!
    echo $recorder >/tmp/perf.pid
    timeout 60 sh -c "echo ping >/tmp/ctl; read answer </tmp/ack" || echo "perf does not answer" >>$to/log
    touch /tmp/pid.go; wait $load; kill -INT $recorder 2>/dev/null; wait $recorder; true
}
"""


def name_of(mode, whom, tool="flightrec"):
    return f"{tool}-{mode}{whom}"


def event(mode, whom, pmu="flightrec_pmu"):
    return f"-e {pmu}/mode={mode & 1},head={mode >> 1},rate={RATE[whom]}/"


def make_run(share, name, lines):
    (share / name).mkdir()
    (share / name / "script").write_text("".join(f"{cpu} {us} {snapshot:d}\n" for cpu, us, snapshot in lines))


@pytest.fixture(scope="module")
def made(request, kernel_with_modules):
    """A kernel, and a directory with its modules."""
    if not shutil.which("perf"):
        pytest.skip("no perf")
    return kernel_with_modules(request.param)


@pytest.fixture
def boot(made, tmp_path):
    k, modules = made
    share = tmp_path / "share"
    share.mkdir()
    shutil.copy(modules / "flightrec_pmu.ko", share)
    (share / "functions").write_text(FUNCTIONS)
    programs = [BIN / "flightrecd", BIN / "flightrecctl", BIN / "frtest-auxload", shutil.which("perf")]
    # perf takes the PMU for intel_pt only on a processor of Intel.
    vm = kernel.MiniVM(k, share, programs=programs, smp=2, memory=1024, cpu="max,vendor=GenuineIntel")
    yield vm
    vm.kill()


def dumps_of(directory):
    return sorted(directory.glob("perf.data.sample.*Z"))


def check_run(share, name, whom, snapshots=SNAPSHOTS, area=AREA):
    """Checks the dumps of a run. Returns its figures."""
    directory = share / name
    files = dumps_of(directory)
    tid = int((directory / "pid").read_text())
    used = [int(line.split()[0]) for line in (directory / "cpu").read_text().splitlines()]
    checker = auxdata.Checker(tid if whom == "-p" else None, area)
    gaps, bytes_, rates = [], 0, []
    assert len(files) == snapshots, (directory / "log").read_text()
    for n, file in enumerate(files):
        snapshot = auxdata.pieces(file)
        records = checker.add(snapshot)
        meta = json.loads(Path(f"{file}.json").read_text())
        assert [a["bytes"] for a in meta["aux"] if a["bytes"]] == [len(p.data) for p in snapshot]
        assert [a["offset"] for a in meta["aux"] if a["bytes"]] == [p.offset for p in snapshot]
        gaps += [a["gap_ns"] for a in meta["aux"]]
        bytes_ += sum(len(p.data) for p in snapshot)
        if n and whom == "-p":
            # On a slow machine, the work can be more than its area holds.
            wanted = min((used[n] - used[n - 1]) * RATE[whom] / 1e6, area / auxdata.RECORD.size)
            rates.append(sum(map(len, records)) / wanted)
    paused = [x["count"] for x in meta["losses"] if x["cause"] == "aux-paused"]
    assert sum(paused) == 2 * snapshots, meta["losses"]
    assert checker.counts["records"] > 100 * snapshots
    return {"snapshots": len(files), "bytes": bytes_, **checker.counts, "gap_median_us": statistics.median(gaps) / 1e3,
            "gap_max_us": max(gaps) / 1e3, **({"size_median": statistics.median(rates)} if rates else {})}


def check_perf_run(share, mode, whom):
    directory = share / name_of(mode, whom, "perf")
    checker = auxdata.Checker(int((directory / "pid").read_text()) if whom == "-p" else None, AREA)
    found = auxdata.pieces(directory / "perf.data")
    checker.add(found)
    return {"pieces": len(found), "bytes": sum(len(p.data) for p in found), **checker.counts}


def print_table(version, results):
    print(f"\n{'Linux ' + version:24} snapshots     bytes   records  torn  twice stale missing foreign  gap us median/max  size/work")
    for name, r in results.items():
        gap = f"{r['gap_median_us']:.0f} / {r['gap_max_us']:.0f}" if "gap_max_us" in r else "-"
        size = f"{r['size_median']:.3f}" if "size_median" in r else "-"
        print(f"{name:24} {r.get('snapshots', '-'):>9} {r['bytes']:>9} {r['records']:>9} {r['torn']:>5} {r['twice']:>6} "
              f"{r['stale']:>5} {r['missing']:>7} {r['foreign']:>7}  {gap:>17}  {size}")
    path = machine.BUILD / "aux.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, version: results}, indent=1))


@pytest.mark.parametrize("made", kernel.SERIES if FULL else kernel.SERIES[-1:], indirect=True, scope="module")
def test_dumps_have_each_byte_once(boot, made):
    share, lines = boot.share, [(n // 2 % 2, WORK_US, True) for n in range(SNAPSHOTS)]
    for mode, whom in RUNS:
        make_run(share, name_of(mode, whom), lines)
    for mode, whom in PERF_RUNS:
        make_run(share, name_of(mode, whom, "perf"), lines)
    # Much is written while a large area is copied.
    make_run(share, "large-2-a", lines[:LARGE])
    large = f"area=1M; run large-2-a -a {event(2, '-a').replace('rate=20', 'rate=200')}; area=64K"
    ours = "\n".join(f"run {name_of(mode, whom)} {whom} {event(mode, whom)}" for mode, whom in RUNS)
    theirs = "\n".join(f"perf_run {name_of(mode, whom, 'perf')} {whom} {event(mode, whom, 'intel_pt')}" for mode, whom in PERF_RUNS)
    out = boot.run(f". /share/functions\ninsmod /share/flightrec_pmu.ko || exit 1\n{ours}\n{large}\nrmmod flightrec_pmu\n"
                   f"insmod /share/flightrec_pmu.ko name=intel_pt || exit 1\n{theirs}\ndmesg", limit=1800 if FULL else kernel.LIMIT)
    assert not re.search(r"WARNING:|BUG:|Oops:", out), out
    results = {name_of(*run): check_run(share, name_of(*run), run[1]) for run in RUNS}
    results["large-2-a"] = check_run(share, "large-2-a", "-a", LARGE, 1 << 20)
    theirs = {name_of(*run, "perf"): check_perf_run(share, *run) for run in PERF_RUNS}
    print_table(made[0].version, {**results, **theirs})
    for name, r in results.items():
        assert [r[k] for k in ("torn", "foreign", "twice", "stale", "missing")] == [0] * 5, (name, r)
        # Equal work gives equal sizes. The CPU time in an emulated machine is not exact.
        assert 0.95 < r.get("size_median", 1) < 1.05, (name, r)
    check_merge(share / name_of(1, "-p"))


def check_merge(directory):
    """The merge of all dumps of a run has the same bytes, each of them once, in order. Returns its path."""
    files = dumps_of(directory)
    want = {}
    for file in files:
        for piece in auxdata.pieces(file):
            want[piece.cpu] = want.get(piece.cpu, b"") + piece.data
    done = subprocess.run([BIN / "flightrec-merge", "-o", directory / "merged", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "AUXTRACE_INFO" not in done.stderr.replace("no input has an AUXTRACE_INFO", ""), done.stderr
    got = {}
    for piece in auxdata.pieces(directory / "merged"):
        got[piece.cpu] = got.get(piece.cpu, b"") + piece.data
    assert got == want
    return directory / "merged"


def record_of(share, name):
    """Returns the files of a run, with the AUX data in the JSON and in the file."""
    return [(json.loads(Path(f"{f}.json").read_text()), auxdata.pieces(f), f) for f in dumps_of(share / name)]


def perf(*args):
    done = subprocess.run(["perf", *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "failed to process" not in done.stderr, done.stderr
    return done.stdout


def goes_on(before, after):
    """Returns whether AFTER begins where BEFORE ends: nothing is twice, and nothing is missing. If the machine was so slow that the
    area (AuxBuffer= in configure()) has gone round since, AFTER has the newest data that fit."""
    end = before.offset + len(before.data)
    return len(after.data) > 0 and (after.offset == end or (after.offset > end and len(after.data) == 256 << 10))


@pytest.mark.parametrize("made", kernel.SERIES if FULL else kernel.SERIES[:1], indirect=True, scope="module")
def test_reloads_windows_and_messages(boot):
    """The module has the name intel_pt, so perf takes the dumps for those of Intel PT. It cannot decode the data."""
    share = boot.share
    make_run(share, "window", [(0, 20000, False), (1, 4000000, True)])
    for name in ("reload", "past", "short", "kept", "command"):
        (share / name).mkdir()
    boot.run(r"""
        . /share/functions
        insmod /share/flightrec_pmu.ko name=intel_pt || exit 1
        # A task that has left CPU 0 for longer than the window.
        printf "[Dump]\nAuxWindow=2s\n" >/tmp/conf
        load window sh -c ". /share/functions; to=/share/window; dump; flightrecctl --socket /tmp/ctl status --json >/share/window/status"
        flightrecd -p $pid -e intel_pt/rate=1,head=1/ --config /tmp/conf --aux-buffer 256K -M 4M -o /tmp/d --socket /tmp/ctl >$to/log 2>&1 &
        recorder=$!; wait_for is_recording; touch /tmp/pid.go; wait $load; wait $recorder
        # A command: its exec enables the event.
        to=/share/command; rm -rf /tmp/d; mkdir /tmp/d
        flightrecd -e intel_pt/rate=100,head=1/ --aux-buffer 1M -M 4M -o /tmp/d -- sh -c 'i=0; while [ $i -lt 9000 ]; do i=$((i + 1)); done' \
            >$to/log 2>&1
        mv /tmp/d/perf.data $to/perf.data
        # Reloads.
        to=/share/reload; rm -rf /tmp/d /tmp/ctl; mkdir /tmp/d
        configure cpu-clock intel_pt/rate=1/
        flightrecd --config /tmp/conf -M 4M -o /tmp/d --socket /tmp/ctl >$to/log 2>&1 & recorder=$!
        wait_for is_recording; sleep 0.3; dump
        flightrecd -e intel_pt// --aux-buffer 64K -p $$ -M 2M -o /tmp/d --socket /tmp/ctl2 >$to/busy 2>&1
        echo 0 >/sys/devices/system/cpu/cpu1/online; sleep 0.5; echo 1 >/sys/devices/system/cpu/cpu1/online
        wait_for grep -q "CPUs from now on" $to/log; sleep 0.3; dump
        reload intel_pt/rate=1/ sched:sched_switch >$to/reload1 2>&1; sleep 0.3; dump
        reload intel_pt/rate=4/ >$to/reload2 2>&1
        reload cpu-clock >$to/reload3 2>&1; sleep 0.1; dump
        reload cpu-clock intel_pt/rate=1/ >$to/reload4 2>&1; sleep 0.3; dump
        # A window that has ended.
        to=/share/past; sleep 6; dump --from -4s --to -3s; dump
        to=/share/short; dump --last 200ms
        # A dump that cannot be written is kept, with its AUX data.
        to=/share/kept; mount -t tmpfs -o size=64k none /tmp/d
        flightrecctl --socket /tmp/ctl dump >$to/failed 2>&1 && exit 1
        mount -o remount,size=16m /tmp/d; flightrecctl --socket /tmp/ctl dump >/dev/null
        two_dumps() { [ "$(ls /tmp/d/*.json | wc -l)" = 2 ]; }
        wait_for two_dumps; mv /tmp/d/perf.data.sample.* $to/; to=/share/past
        flightrecctl --socket /tmp/ctl status >$to/status; flightrecctl --socket /tmp/ctl metrics >$to/metrics
        kill $recorder; wait $recorder""")
    (meta, found, _), = record_of(share, "window")
    assert [a["cpu"] for a in meta["aux"] if a["bytes"]] == [1], meta["aux"]
    times = [r[1] for r in auxdata.RECORD.iter_unpack(found[0].data)]
    worked = int((share / "window/cpu").read_text().split()[-1])  # On a busy machine, the dump can come much later.
    look = json.loads((share / "window/status").read_text())["aux"]["longest_look_s"] * 1e9  # the area is paused during a look
    assert worked - look - 2e6 < times[-1] < meta["monotonic_ns"], (worked, look, times[-1], meta["monotonic_ns"])
    # Without a window, the dump would have the 4 s of work on this CPU. The recorder looks at the areas each 0.5 s.
    assert 1.95e9 < meta["monotonic_ns"] - times[0] < 3.5e9, (times[0], meta["monotonic_ns"])

    checker = auxdata.Checker()
    checker.add(auxdata.pieces(share / "command/perf.data"))
    assert checker.counts.pop("records") > 1000 and set(checker.counts.values()) == {0}, checker.counts

    before_hotplug, first, second, third, fourth = record_of(share, "reload")
    queues = [[a["queue"] for a in r[0]["aux"]] for r in (before_hotplug, first, second)]
    assert queues[0][0] == queues[1][0] and queues[0][1] != queues[1][1] and queues[1] == queues[2], queues
    for before, after in zip(first[1], second[1]):
        assert goes_on(before, after)
    assert "aux" not in third[0] and third[1] == []
    assert not {a["queue"] for a in fourth[0]["aux"]} & {a["queue"] for a in first[0]["aux"]} and fourth[1][0].offset == 0
    log = share / "reload"
    assert "its PMU serves one user at a time" in (log / "busy").read_text()
    assert "its PMU serves one user at a time" in (log / "reload2").read_text(), (log / "reload2").read_text()
    for name in ("reload1", "reload3", "reload4"):
        assert "rror" not in (log / name).read_text(), (log / name).read_text()

    for name in ("past", "kept"):  # the second dump of a pair has what the first one does not have
        before, after = record_of(share, name)
        assert len(before[1]) == len(after[1]) == 2, (name, before[0]["aux"], after[0]["aux"])
        for a, b in zip(before[1], after[1]):
            assert goes_on(a, b), name
    assert "AUX: 2 areas, 512.0K" in (share / "past/status").read_text()
    assert re.search(r"^flightrec_aux_pauses_total 1[0-9]*$", (share / "past/metrics").read_text(), re.M)

    (_, _, file), = record_of(share, "short")
    assert perf("script", "--no-itrace", "-D", "-i", file).count("PERF_RECORD_ITRACE_START") >= 2  # they are older than the window
    file = second[2]
    raw = perf("script", "--no-itrace", "-D", "-i", file)
    for record in ("AUXTRACE_INFO type: 1", "ITRACE_START", "AUX offset", "AUXTRACE size", "ID_INDEX nr: 2", "SWITCH_CPU_WIDE"):
        assert f"PERF_RECORD_{record}" in raw, record
    assert "PERF_RECORD_AUXTRACE" in perf("report", "-D", "--stdio", "-i", file)
    perf("script", "--itrace=i1us", "-i", file)
    assert "sched:sched_switch" in perf("script", "-i", file)
    merged = check_merge(share / "past")
    assert perf("script", "--no-itrace", "-D", "-i", merged).count("PERF_RECORD_AUXTRACE_INFO type: 1") == 1
    perf("script", "--itrace=i1us", "-i", merged)
