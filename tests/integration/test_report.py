# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrec-report report: its sums and names are those of stock perf, its filters leave out what they say, it reads files of any
perf, it says what is wrong with other files, and it needs little memory."""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import time
from collections import Counter, namedtuple
from pathlib import Path

import pytest

from callchains import read as read_stacks
from conftest import as_user
from harness import EXIT, Daemon, die_with_parent, end, environment, load, must, perf, program, read_terminal, run, start, until_ran

Sample = namedtuple("Sample", "comm pid tid ns cpu period event")
SAMPLE = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)(?:\s+\[(?P<cpu>\d+)\])?\s+(?P<sec>\d+)\.(?P<ns>\d{9}):\s+"
                    r"(?P<period>\d+)\s+(?P<event>\S+):")
HEAD = re.compile(r"^# (\d+) samples of event '(.*)', event count (\d+)$")
Row = namedtuple("Row", "percent samples comm object function")
ROW = re.compile(r"^ +([\d.]+)% +(\d+)  (.{15,}?)  (.{28,}?)  (.*)$")


def report(path, *args, **kwargs):
    return must(program("flightrec-report"), "report", "--no-inline", *args, path, **kwargs)


def tables(path, *args):
    """Returns {event: (samples, event count, [Row, …])}."""
    found, rows = {}, None
    for line in report(path, *args).out.splitlines():
        if m := HEAD.match(line):
            rows = []
            found[m[2]] = int(m[1]), int(m[3]), rows
        elif m := ROW.match(line):
            rows.append(Row(float(m[1]), int(m[2]), *(x.strip() for x in m.groups()[2:])))
        else:
            assert not line or line.startswith("#") or line == "no samples", f"an unknown line: {line!r}"
    return found


def sums(path, *args):
    return {event: (n, total) for event, (n, total, _) in tables(path, "--min-percent=100", *args).items()}


def perf_samples(path, has_cpu=True):
    """A file of perf record of one program does not have the CPUs."""
    r = perf("script", "-i", path, "--ns", "-G", "-F", "comm,pid,tid,time,period,event" + ",cpu" * has_cpu)
    assert r.code == 0, r.err
    return [Sample(m["comm"], int(m["pid"]), int(m["tid"]), int(m["sec"]) * 10**9 + int(m["ns"]), int(m["cpu"] or 0), int(m["period"]),
                   m["event"]) for m in map(SAMPLE.match, r.out.splitlines()) if m]


def perf_sums(samples):
    found = {}
    for s in samples:
        n, total = found.get(s.event, (0, 0))
        found[s.event] = n + 1, total + s.period
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recorder that has ended: two dumps, the merged file, and the pids of short processes and of a busy loop."""
    directory = tmp_path_factory.mktemp("report")
    (directory / "state").mkdir()
    d = Daemon(directory / "state", "-e", "sched:sched_switch", "--filter", 'prev_comm ~ "frtest-*"', "-e", "cpu-clock", "-F", "999",
               "--call-graph=fp", "-M", "64M")
    burn = start(program("frtest-burn"), "-t", 3600, stdout=subprocess.DEVNULL)
    try:
        d.start()
        children = load("spawn", "-n", 300, "-m", 2)["children"]
        until_ran(burn, seconds=0.5)
        first = d.dump_by_control()
        children += load("spawn", "-n", 100, "-m", 2)["children"]
        d.dump_by_control()  # the merged file is of both
        keep = directory / "first"
        keep.write_bytes(first.read_bytes())
        merged = d.finish()
    finally:
        end(burn)
        d.kill()
    return namedtuple("Recorded", "dump merged children burn")(keep, merged, set(children), burn.pid)


@pytest.fixture(scope="module")
def samples(recorded):
    return perf_samples(recorded.dump)


# --- sums, rows and names ---


def test_sums_are_those_of_perf(recorded, samples):
    assert sums(recorded.dump) == perf_sums(samples)
    assert {"cpu-clock", "sched:sched_switch"} <= set(perf_sums(samples))
    assert sums(recorded.merged) == perf_sums(perf_samples(recorded.merged))


def test_rows_are_sorted_and_add_up(recorded):
    for event, (n, total, rows) in tables(recorded.dump, "--min-percent=0").items():
        assert sum(r.samples for r in rows) == n, event
        percents = [r.percent for r in rows]
        assert percents == sorted(percents, reverse=True) and abs(sum(percents) - 100) < 0.01 * len(rows), event


def test_small_rows_are_left_out(recorded):
    every = tables(recorded.dump, "--min-percent=0")
    some = tables(recorded.dump, "--min-percent=2")
    default = tables(recorded.dump)
    for event, (n, total, rows) in every.items():
        assert some[event][:2] == default[event][:2] == (n, total)
        assert {r for r in some[event][2] if r.percent > 2} == {r for r in rows if r.percent > 2}
        assert all(r.percent >= 2 for r in some[event][2]) and all(r.percent >= 0.5 for r in default[event][2])
    assert len(every["cpu-clock"][2]) > len(default["cpu-clock"][2]) > 0


def test_rows_are_those_of_perf(recorded):
    """The busy loop and the short processes: the same names of the thread, the object and the function. perf before 6.3 gives
    functions that choose their code at the start, such as strlen@plt, no name but "@plt"."""
    wanted = Counter()
    for s in read_stacks(recorded.dump, comms=["frtest-burn", "frtest-child"], event="cpu-clock"):
        if s.frames and not s.kernel:
            wanted[s.comm, Path(s.frames[0].dso).name, s.frames[0].symbol] += 1
    found = Counter()
    for r in tables(recorded.dump, "--min-percent=0")["cpu-clock"][2]:
        if r.comm in ("frtest-burn", "frtest-child") and r.object != "[kernel.kallsyms]":
            found[r.comm, r.object, r.function] += r.samples
    named = {key: n for key, n in wanted.items() if key[2] not in ("[unknown]", "@plt")}
    differ = sum(abs(n - found[key]) for key, n in named.items())
    assert sum(named.values()) > 500 and differ <= sum(named.values()) / 1000, [(k, n, found[k]) for k, n in named.items() if n != found[k]]


def folded(path, *args):
    """Returns {(thread, outermost function, …): samples}."""
    found = Counter()
    for line in must(program("flightrec-report"), "export", "--no-inline", "--format=folded", "--weight=samples", *args, path).out.splitlines():
        stack, n = line.rsplit(" ", 1)
        found[tuple(stack.split(";"))] += int(n)
    return found


def as_text(comm):
    """Another test can run a thread with bytes in its name that are no text, each of which is shown as a '?'."""
    return re.sub(r"(?:[^ -~]|\?)+", "?", comm)


def test_names_of_short_processes_are_those_of_perf(recorded, samples):
    """Also of the samples after the records of their exit, and before that of their exec."""
    mine = recorded.children
    wanted = Counter(s.comm for s in samples if s.pid in mine and s.event == "sched:sched_switch")
    found = Counter()
    for stack, n in folded(recorded.dump, "--event=sched:sched_switch", f"--pid={','.join(map(str, mine))}").items():
        found[stack[0]] += n
    assert wanted["frtest-child"] > 300 and found == wanted
    assert not [name for name in found if name.startswith(":")]
    wanted = Counter(as_text(s.comm) for s in samples if s.event == "cpu-clock")
    found = Counter()
    for stack, n in folded(recorded.dump, "--event=cpu-clock").items():
        found[as_text(stack[0])] += n
    assert sum(wanted.values()) == sum(found.values())
    assert sum((wanted - found).values()) <= sum(wanted.values()) / 1000, (wanted - found, found - wanted)


def test_frames_are_those_of_perf(recorded):
    """Of all processes of the machine: the frames of 99.9 % have the same names. A frame without a name is shown as its object.
    perf takes the address behind a call that does not return as that of the next function, so the start of a function does not
    count there."""
    wanted = Counter()
    out = perf("script", "-i", recorded.dump, "--no-inline", "--max-stack", "8192", "-F", "comm,pid,event,ip,sym,symoff,dso").out
    for block in out.split("\n\n"):
        lines = block.split("\n")
        if "cpu-clock" not in lines[0]:
            continue
        for i, line in enumerate(lines[1:]):
            if m := re.match(r"^\s+[0-9a-f]+ (.*?)(?:\+0x([0-9a-f]+))? \((.*)\)$", line):
                if m[1] != "[unknown]" and not m[1].startswith("@plt") and not (i > 0 and m[2] == "0"):
                    wanted[m[1].replace(";", ":")] += 1
    found = Counter()
    for stack, n in folded(recorded.dump, "--event=cpu-clock").items():
        for name in stack[1:]:
            found[name] += n
    missing = wanted - found
    assert sum(wanted.values()) > 5000
    assert sum(missing.values()) <= sum(wanted.values()) / 1000, (sum(missing.values()), sum(wanted.values()), missing.most_common(10))


# --- filters ---


def test_filters_of_tasks_and_cpus(recorded, samples):
    children = sorted(recorded.children)[:50]
    cases = [([f"--pid={recorded.burn}"], lambda s: s.pid == recorded.burn), ([f"--pid={','.join(map(str, children))}"], lambda s: s.pid in children),
             (["--comm=frtest-*"], lambda s: s.comm.startswith("frtest-")), (["--comm=frtest-child"], lambda s: s.comm == "frtest-child"),
             (["--cpu=0"], lambda s: s.cpu == 0), (["--event=sched:sched_switch"], lambda s: s.event == "sched:sched_switch"),
             (["--comm=frtest-burn", "--cpu=1", "--event=cpu-clock"], lambda s: (s.comm, s.cpu, s.event) == ("frtest-burn", 1, "cpu-clock")),
             (["--pid=4000000"], lambda s: False), (["--comm=no such thread"], lambda s: False)]
    for args, keep in cases:
        assert sums(recorded.dump, *args) == perf_sums(filter(keep, samples)), args


def test_filters_of_times(recorded, samples):
    """A relative time counts from the last sample, and other times are wall times, which the head of the file relates to the
    clock."""
    head = perf("report", "-i", recorded.dump, "--header-only").out
    reference = re.search(r"^# reference time: .* = (\d+)\.(\d{6}) \(TOD\) = (\d+)\.(\d{9}) \(monotonic\)", head, re.M)
    wall, clock = int(reference[1] + reference[2] + "000"), int(reference[3] + reference[4])
    last = max(s.ns for s in samples)
    middle = last - 400 * 10**6
    stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime((middle + wall - clock) // 10**9))}.{(middle + wall - clock) % 10**9 // 1000:06d}Z"
    for args, low, high in ((["--from=-400ms"], middle, last), (["--to=-400ms"], 0, middle), ([f"--from={stamp}"], middle, last),
                            (["--from=-600ms", "--to=-200ms"], middle - 2 * 10**8, middle + 2 * 10**8)):
        n = sums(recorded.dump, *args)["cpu-clock"][0]
        # perf prints the reference in µs, and the samples of triggers are not in the head.
        slack = 2 * 10**6
        least, most = (sum(s.event == "cpu-clock" and low - x <= s.ns <= high + x for s in samples) for x in (-slack, slack))
        assert 0 < least <= n <= most < sum(s.event == "cpu-clock" for s in samples), (args, n, least, most)


# --- the graph ---


def test_the_graph_shows_the_shares_of_perf(recorded, samples):
    """The first line has a part for each name of a thread, as wide as its share, the largest one first."""
    shares = Counter()
    for s in samples:
        if s.event == "cpu-clock":
            shares[s.comm] += s.period
    line = next(x for x in report(recorded.dump, "--flame", "--event=cpu-clock").out.splitlines() if not x.startswith("#"))
    total, at = sum(shares.values()), 0
    for comm, share in shares.most_common():
        begin, to = int(at / total * 120), int((at + share) / total * 120)
        at += share
        if to - begin > 8 and [*shares.values()].count(share) == 1 and as_text(comm) == comm:  # equal shares have no order
            assert re.fullmatch(rf"{re.escape(comm[:to - begin - 1])}[ \d.%]*\|", line[begin:to]), (line, comm, begin, to)
    assert at == total and len(line) <= 120


# --- other files ---


def perf_record(to, *args):
    must("perf", "record", "-N", "-o", to, "-e", "cpu-clock", "-F", "999", *args, "--", program("frtest-burn"), "-u", "0.3")
    return to


@pytest.mark.parametrize("args", [[], ["-g"], ["-z"], ["-g", "-z"], ["-a", "-g"], ["--no-bpf-event"]], ids=" ".join)
def test_files_of_perf_record(tmp_path, args):
    path = perf_record(tmp_path / "perf.data", *args)
    assert sums(path) == perf_sums(perf_samples(path, "-a" in args))
    top = tables(path)["cpu-clock"][2][0] if "-a" not in args else next(r for r in tables(path)["cpu-clock"][2] if r.comm == "frtest-burn")
    assert top[2:] == ("frtest-burn", "frtest-burn", "frtest_burn_hot")


def test_a_file_of_perf_record_to_a_pipe(tmp_path):
    path = tmp_path / "perf.data"
    with open(path, "wb") as f:
        p = start("perf", "record", "-o", "-", "-e", "cpu-clock", "-F", "999", "-g", "--", program("frtest-burn"), "-u", "0.3", stdout=f,
                  stderr=subprocess.DEVNULL)
        assert p.wait(60) == 0
    found = sums(path)
    assert found == perf_sums(perf_samples(path, False)) and found["cpu-clock"][0] > 100


def test_a_recording_without_samples(tmp_path):
    path = tmp_path / "perf.data"
    must("perf", "record", "-o", path, "-e", "cpu-clock/period=1000000000/u", "-N", "--", "true")
    assert not perf_samples(path, False)
    for args in (["report"], ["report", "--flame"], ["export"]):
        r = run(program("flightrec-report"), *args, path)
        assert (r.code, r.err) == (0, ""), args
    expect_error(EXIT["error"], f"{path} has no samples", "explain", path)
    assert "no samples" in report(path).out and "no samples" in report(path, "--flame").out


def test_a_recording_without_side_band(tmp_path):
    """The records of processes and maps become records that no reader knows. The samples still count, without names."""
    path = perf_record(tmp_path / "perf.data")
    wanted = sums(path)
    data = bytearray(path.read_bytes())
    at, size = (int.from_bytes(data[i:i + 8], "little") for i in (40, 48))
    end_of_data = at + size
    while at < end_of_data:
        kind, length = int.from_bytes(data[at:at + 4], "little"), int.from_bytes(data[at + 6:at + 8], "little")
        if kind in (1, 3, 4, 7, 10, 16, 17):  # MMAP, COMM, EXIT, FORK, MMAP2, NAMESPACES, KSYMBOL
            data[at:at + 4] = (63).to_bytes(4, "little")
        at += length
    path.write_bytes(data)
    assert sums(path) == wanted
    rows = tables(path)["cpu-clock"][2]
    assert all(re.fullmatch(r":\d+", r.comm) for r in rows) and rows[0].function == "[unknown]"


# --- errors ---


def expect_error(code, pattern, *args, **kwargs):
    r = run(program("flightrec-report"), *args, **kwargs)
    assert (r.code, r.out) == (code, ""), r
    assert re.search(pattern, r.err) and r.err.startswith("flightrec-report: "), r.err


@pytest.mark.parametrize("verb", ["report", "explain", "export"])
def test_files_that_cannot_be_read(tmp_path, verb):
    (tmp_path / "text").write_text("no perf.data at all\n" * 100)
    (tmp_path / "nothing").write_bytes(b"")
    (tmp_path / "magic").write_bytes(b"PERFILE2")
    for name in ("text", "nothing", "magic"):
        expect_error(EXIT["error"], rf"{tmp_path / name}: .*perf\.data", verb, tmp_path / name)
    expect_error(EXIT["error"], rf"{tmp_path}: the folder has no dumps of a fleet\n  give a dump", verb, tmp_path)
    expect_error(EXIT["error"], rf"{tmp_path / 'missing'}\b.*No such file", verb, tmp_path / "missing")
    expect_error(EXIT["error"], r"there is no dump in", verb, "-D", tmp_path, "latest")


def test_no_permission(open_dir, recorded):
    """As a user who may not read the file."""
    shutil.copy2(program("flightrec-report"), open_dir)
    path = open_dir / "perf.data"
    path.write_bytes(recorded.dump.read_bytes())
    path.chmod(0o600)
    r = run(*as_user(), open_dir / "flightrec-report", "report", path)
    assert r.code == EXIT["permission"] and f"{path}: Permission denied" in r.err, r


@pytest.mark.parametrize("args, pattern", [
    (["--min-percent=much"], "--min-percent: 'much' is not a percentage"), (["--min-percent=101"], "--min-percent"), (["--pid=1,x"], "--pid: 'x'"),
    (["--from=yesterday-ish"], "--from: 'yesterday-ish' is not a time"), (["--color=blue"], "--color: 'blue'"), (["--cpu=-1"], "--cpu"),
    (["--format=xml"], "--format: unknown format 'xml'"), (["--what"], "--what")])
def test_wrong_command_lines(recorded, args, pattern):
    expect_error(EXIT["usage"], re.escape(pattern), "report", *args, recorded.dump)


def test_a_full_disk(recorded):
    expect_error(EXIT["no-space"], "cannot write /dev/full: No space left on device", "report", "-o", "/dev/full", recorded.dump)


# --- memory and the terminal ---


@pytest.fixture(scope="module")
def long_file(recorded, tmp_path_factory):
    """A file of more than 128 MiB that has the head of the dump once and its records many times. It is removed at the end."""
    path = tmp_path_factory.mktemp("long") / "perf.data"

    def repeat(times):
        path.unlink(missing_ok=True)
        must(program("bench-repeat"), recorded.dump, times, path, timeout=600)
        return path.stat().st_size
    once, twice = repeat(1), repeat(2)
    repeat((128 << 20) // (twice - once) + 1)
    yield path
    path.unlink()


def memory_of(*args):
    """Returns how much memory the program has needed at most, in MiB. The pages of mapped files count, too."""
    with subprocess.Popen([program("flightrec-report"), *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=environment(), preexec_fn=die_with_parent) as p:
        err = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    assert (p.returncode, err) == (0, b"")
    return usage.ru_maxrss / 1024


@pytest.mark.parametrize("args", [["report"], ["explain"], ["export", "--format=folded", "--event=cpu-clock"]], ids=lambda a: a[0])
def test_memory_does_not_grow_with_the_file(recorded, long_file, args):
    """The objects and their symbols are the same, and so are the stacks."""
    assert long_file.stat().st_size > 128 << 20
    assert memory_of(*args, long_file) < memory_of(*args, recorded.dump) + 32


def in_terminal(*argv, env, columns=100, stderr=None):
    """Runs a program whose standard output is a terminal, and also its standard error if STDERR is None. Returns the exit code
    and what it wrote there."""
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
    p = start(*argv, stdout=theirs, stderr=theirs if stderr is None else stderr, env=environment(**env))
    os.close(theirs)
    shown = read_terminal(terminal)
    return p.wait(600), shown.decode(errors="replace")


def without_progress(shown):
    return re.sub(r"\r\[#*\.*\] +\d+%|\r +\r", "", shown)


def test_pager_and_colours(recorded):
    argv = [program("flightrec-report"), "report", "--quiet", recorded.dump]
    mark = {"TERM": "xterm", "FLIGHTREC_PAGER": "sed s/^/PAGED/"}
    code, shown = in_terminal(*argv, env=mark)
    assert code == 0 and shown.startswith("PAGED#") and "\x1b[1m" in shown
    for args, env in ((["--no-pager"], mark), ([], {"TERM": "xterm", "PAGER": "cat"})):
        code, shown = in_terminal(*argv, *args, env=env)
        assert code == 0 and "PAGED" not in shown and "\x1b[1m" in shown, args
    for args, env in ((["--color=never"], mark), ([], {**mark, "NO_COLOR": "1"}), ([], {**mark, "TERM": "dumb"})):
        code, shown = in_terminal(*argv, *args, env=env)
        assert code == 0 and shown.startswith("PAGED#") and "\x1b" not in shown, (args, env)
    # A user who leaves the pager early has seen enough: this is no error.
    assert in_terminal(*argv, "--min-percent=0", env={"FLIGHTREC_PAGER": "true"}) == (0, "")
    # No terminal: no pager and no colours, except if they are asked for.
    plain = run(*argv, env=environment(**mark)).out
    assert plain.startswith("#") and "\x1b" not in plain
    coloured = run(*argv, "--color=always", env=environment(**mark)).out
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain and "\x1b[1m" in coloured


def test_the_graph_is_as_wide_as_the_terminal(recorded):
    for columns in (60, 140):
        code, shown = in_terminal(program("flightrec-report"), "report", "--quiet", "--flame", "--no-pager", "--color=never", f"--pid={recorded.burn}",
                                  "--event=cpu-clock", recorded.dump, env={}, columns=columns)
        assert code == 0 and max(len(x) for x in shown.split("\r\n") if not x.startswith("#")) == columns


def test_long_work_shows_its_progress(long_file):
    argv = [program("flightrec-report"), "report", "--no-pager", long_file]
    code, shown = in_terminal(*argv, env={})
    assert code == 0 and re.match(r"\r\[#*\.*\] +\d+%", shown)
    assert without_progress(shown).startswith("# "), "the progress is removed before the output"
    code, shown = in_terminal(*argv, env={}, stderr=subprocess.DEVNULL)
    assert code == 0 and shown.startswith("# ")


def test_quiet_work_has_no_progress(long_file):
    argv = [program("flightrec-report"), "report", "--no-pager", "--quiet", long_file]
    code, shown = in_terminal(*argv, env={})
    assert code == 0 and shown.startswith("# ")
    assert run(*argv[:-2], long_file, timeout=600).err == ""
