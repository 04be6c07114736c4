# SPDX-License-Identifier: GPL-2.0-or-later
"""A merged file has all records of its inputs, each once. If an input is damaged, the merged file has the undamaged part of it,
and flightrec-merge reports the damage."""
import json
import os
import pty
import re
import shutil
import struct
import subprocess
from collections import Counter

import pytest

from harness import (EXIT, NO_LOSS, Daemon, end, getppid_calls, last_cpu, load, merge, must, perf, perf_clean, program, read_terminal,
                     run, script_text, start, start_load)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three dumps whose windows overlap, and their auxiliary file: (directory, dumps)."""
    state = tmp_path_factory.mktemp("merge") / "state"
    state.mkdir()
    d = Daemon(state, *NO_LOSS, "-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "-M", "32M").start()
    p = start_load("pingpong", "-t", "600", "-c", last_cpu())
    try:
        for i in range(3):
            d.until_sampled("sched:sched_switch", (i + 1) * 4000, load=p)
            d.dump_by_control()
        end(p)
        d.stop()
    finally:
        p.kill()
        d.kill()
    return state, d.samples()


@pytest.fixture
def overlapping(recorded, tmp_path):
    """A copy of `recorded` for one test."""
    directory = tmp_path / "copy"
    shutil.copytree(recorded[0], directory)
    return directory, [directory / s.name for s in recorded[1]]


def union(samples):
    """Returns {sample: count}. The count is how often the sample is in one file, at most."""
    result = Counter()
    for path in samples:
        result |= Counter(script_text(path))
    return result


def listing(directory):
    return sorted(p.name for p in directory.iterdir())


def merge_files(output, *files):
    return run(program("flightrec-merge"), "--keep", "-o", output, *files, timeout=300)


def test_the_merge_is_the_union(overlapping):
    """Merges a directory, then single files, then the directory with compression. Without --keep, flightrec-merge removes the
    inputs."""
    directory, samples = overlapping
    wanted, before = union(samples), listing(directory)
    assert sum(len(script_text(s)) for s in samples) > sum(wanted.values()), "the windows do not overlap, so this tests nothing"
    assert set(script_text(samples[0])) & set(script_text(samples[2]))

    r = merge(directory, "--dry-run")
    assert r.code == 0 and (r.out + r.err).strip(), "a dry run says what would be merged"
    assert listing(directory) == before
    assert merge_files(directory / "files", *samples).code == 0
    assert merge(directory, "--keep", "-z", "-o", directory / "zstd").code == 0
    assert merge(directory, "--keep", "-o", directory / "plain").code == 0
    assert set(before) <= set(listing(directory)), "--keep"
    (directory / "perf.data").write_bytes(b"older")
    assert merge(directory).code == 0
    for name in ("perf.data", "files", "zstd", "plain"):
        merged = Counter(script_text(directory / name))
        missing, extra = wanted - merged, merged - wanted
        assert not missing, f"{name}: {sum(missing.values())} of {sum(wanted.values())} are missing, e.g. {list(missing)[:3]}"
        assert not extra, f"{name}: {sum(extra.values())} too many, e.g. {list(extra)[:3]}"
    assert (directory / "zstd").stat().st_size < (directory / "plain").stat().st_size / 2
    older, = directory.glob("perf.data.2*")
    assert older.read_bytes() == b"older"
    left = listing(directory)
    assert not [n for n in left if n.startswith((".", "perf.data.sample")) or n == "perf.data.auxiliary"], left
    # perf sorts the records that it reads. So the test finds the order of the records in the file by their offsets, which `perf
    # script -D` prints.
    out = perf_clean("script", "-i", directory / "perf.data", "-D", timeout=300)
    raw = re.findall(r"^\d+ (\d+) (0x[0-9a-f]+) \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE", out, re.M)
    times = [int(time) for time, offset in sorted(raw, key=lambda r: int(r[1], 16))]
    assert len(times) > 1000 and times == sorted(times)


@pytest.mark.parametrize("options", [["--dry-run"], ["--keep"], ["--dry-run", "-q"]])
def test_a_terminal_has_a_progress_bar(overlapping, options):
    terminal, theirs = pty.openpty()
    p = start(program("flightrec-merge"), *options, overlapping[0], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = read_terminal(terminal)
    assert p.wait(60) == 0
    assert (b"100%" in shown) == ("-q" not in options), shown


def test_a_truncated_input_is_salvaged(overlapping):
    directory, samples = overlapping
    whole, others = union(samples), union(samples[:2])
    with open(samples[2], "rb") as f:
        offset, size = struct.unpack("<2Q", f.read(56)[40:])  # of the data section
    # An odd offset is never between two records.
    os.truncate(samples[2], (offset + size * 2 // 3) | 1)
    r = merge(directory, "--json=short")
    assert r.code == EXIT["salvaged"], (r.code, r.err)
    line = next(x for x in r.err.splitlines() if samples[2].name in x)
    assert "at offset" in line and "bytes lost" in line
    report = json.loads(r.out)
    assert report["damaged"] == 1 and report["lost_bytes"] > 0
    assert [s.exists() for s in samples] == [False, False, True], "a damaged input is kept"
    merged = Counter(script_text(directory / "perf.data"))
    assert not merged - whole, "nothing that was not there"
    assert not others - merged, "all of the inputs that are whole"


GARBAGE = {"empty": b"", "magic": b"PERFILE2", "text": b"no perf.data at all\n" * 100, "noise": b"PERFILE2" + b"\xff" * 4096,
           "zeros": b"\0" * 10000}


@pytest.mark.parametrize("content", GARBAGE)
def test_garbage_is_named_and_kept(overlapping, tmp_path, content):
    """Two cases: a directory has only garbage, and a directory has garbage and good inputs. The good inputs are merged."""
    for directory, code in ((tmp_path / "alone", EXIT["error"]), (overlapping[0], EXIT["salvaged"])):
        directory.mkdir(exist_ok=True)
        bad = directory / "perf.data.sample.20200101T000000.000000Z"
        bad.write_bytes(GARBAGE[content])
        r = merge(directory)
        assert r.code == code and bad.name in r.err, r
        assert bad.read_bytes() == GARBAGE[content]
    if content == "text":
        assert "not a perf.data" in r.err, r.err
    for s in overlapping[1]:
        assert not s.exists() and s.name not in r.err


def test_two_recordings_in_one_directory_are_merged(recorder, state_dir):
    """The events of the second recorder have other ids than those of the first."""
    loads = []
    for _ in range(2):
        d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M")
        loads.append(load("syscalls", "-n", 5000))
        d.dump_by_control()
        d.stop()
    r = merge(state_dir)
    assert r.code == 0, r.err
    assert [len(getppid_calls(state_dir / "perf.data", did)) for did in loads] == [5000, 5000]


def test_a_dump_that_is_gone_is_an_error_only_where_it_was_named(overlapping):
    """If a merge reads a directory, a dump that is gone is not an error, because retention can remove a dump during the
    merge."""
    directory, samples = overlapping
    gone = samples[0].with_name("perf.data.sample.20010101T000000.000000Z")
    gone.symlink_to("/nowhere")
    assert merge(gone, "--keep").code == EXIT["error"]
    assert merge(directory).code == 0
    assert (directory / "perf.data").is_file()


def aux_pieces(path):
    """Returns the pieces of AUX data as perf lists them: [(queue, thread, offset, size)], in units of branches."""
    found = re.findall(r"PERF_RECORD_AUXTRACE size: (\S+)  offset: (\S+)  ref: \S+  idx: (\d+)  tid: (\d+)  cpu: -1",
                       perf_clean("script", "-D", "--no-itrace", "-i", path))
    return [(int(idx), int(tid), int(offset, 16) // 24, int(size, 16) // 24) for size, offset, idx, tid in found]


def branches(path):
    """Returns the branches that perf decodes from the AUX data: [(thread, number)]."""
    out = perf_clean("script", "--itrace=b", "-F", "tid,ip,addr", "-i", path)
    found = re.findall(r"^\s*(\d+)\s+([0-9a-f]+) => +([0-9a-f]+)$", out, re.M)
    assert len(found) == len(out.splitlines())
    assert all(int(to, 16) == int(at, 16) + 8 for _, at, to in found)
    return [(int(tid), (int(at, 16) - 0x400000) // 16) for tid, at, _ in found]


@pytest.mark.parametrize("options", [[], ["-z"]])
def test_aux_data_is_merged_once_and_decoded_by_perf(tmp_path, options):
    """Two dumps of one recording, whose AUX data overlaps, a copy of the first dump, and a dump of another recording."""
    content = {"a": (500, 10, "0:0:1000", "1:0:50"), "b": (500, 20, "0:600:2000", "1:50:70"), "c": (900, 5, "0:0:10")}
    files = [tmp_path / name for name in content]
    for path, args in zip(files, content.values()):
        must(program("frtest-auxfile"), path, *args)
    assert aux_pieces(files[0]) == [(0, 4711, 0, 1000), (1, 4712, 0, 50)]
    files.append(tmp_path / "copy")
    shutil.copy(files[0], files[-1])
    output = tmp_path / "out"
    r = run(program("flightrec-merge"), *options, "--keep", "--json", "-o", output, *files)
    assert r.code == 0 and not r.err, r.err
    report = json.loads(r.out)
    assert report["aux_bytes"] == (2000 + 70 + 10) * 24
    assert report["aux_duplicates"] == (1000 + 50 + 400) * 24
    expected = [(0, 4711, 0, 1000), (0, 4711, 1000, 1000), (1, 4712, 0, 50), (1, 4712, 50, 20), (2, 4711, 0, 10)]
    assert aux_pieces(output) == expected
    dump = perf_clean("script", "-D", "--no-itrace", "-i", output)
    ids = re.findall(r"id: (\d+)  idx: (\d+)  cpu: -1  tid: (\d+)", dump)
    assert ids == [(str(first + i), str(base + i % 2), str(4711 + i % 2)) for first, base in ((500, 0), (900, 2)) for i in range(4)]
    assert dump.count("PERF_RECORD_AUXTRACE_INFO type: 2") == 1
    # The copy has the same records as the first dump.
    kernel = re.findall(r"(\d+) \S+ \[\S+\]: PERF_RECORD_(AUX offset|ITRACE_START)", dump)
    assert [int(t) // 10**9 for t, _ in kernel] == [5] * 2 + [10] * 4 + [20] * 4
    assert Counter(kind for _, kind in kernel) == {"AUX offset": 5, "ITRACE_START": 5}
    # perf's decoder of this PMU leaves out the last branch of each piece.
    assert Counter(branches(output)) == Counter(
        (tid, n) for _, tid, offset, size in expected for n in range(offset, offset + size - 1))
    report = perf("report", "-D", "-i", output)  # it warns that there is no map of the kernel
    assert report.code == 0 and report.out.count("PERF_RECORD_AUXTRACE size") == len(expected), report.err
    # The output and an input, merged again, give the same.
    again = tmp_path / "again"
    assert run(program("flightrec-merge"), "--keep", "-o", again, output, files[1]).code == 0
    assert aux_pieces(again) == expected
