# SPDX-License-Identifier: GPL-2.0-or-later
"""A merged file has all records of its inputs, each once. If an input is damaged, the merged file has the undamaged part of it,
and flightrec-merge reports the damage."""
import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
from collections import Counter

import pytest

from harness import (EXIT, NO_LOSS, Daemon, end, getppid_calls, last_cpu, load, merge, perf_clean, program, run, script_text, start,
                     start_load)


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
    shown = b""
    with contextlib.suppress(OSError):  # read() fails when the program has closed the terminal
        while data := os.read(terminal, 4096):
            shown += data
    os.close(terminal)
    assert p.wait(60) == 0
    assert (b"100%" in shown) == ("-q" not in options), shown


def test_a_truncated_input_is_salvaged(overlapping):
    directory, samples = overlapping
    whole, others = union(samples), union(samples[:2])
    os.truncate(samples[2], samples[2].stat().st_size * 2 // 3)
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
