# SPDX-License-Identifier: GPL-2.0-or-later
"""Damaged copies of real dumps, 1,000 with --full: flightrec-report says what is wrong, or shows what is left. It does not crash,
does not run for ever, does not use much memory, and sanitizers find nothing.

fuzz-report shows all views of many files in one process, which is fast, but searches no object files. So flightrec-report itself
also reads some of the files. If a test fails, the damaged file stays in the directory of the test."""
import os
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from harness import FULL, EXIT, Daemon, environment, program, quiet_config, run, script_of_loads

pytestmark = pytest.mark.sanitized
# Directories with programs, separated by colons.
SANITIZED = [Path(p) for p in os.environ.get("FLIGHTREC_SANITIZED", "").split(":") if p]
COPIES, BATCH = 1000 if FULL else 200, 50
WHOLE_EVERY = 5 if FULL else 20  # so many copies are also read by flightrec-report itself
SPAN = "-1s"  # of a dump
FILE_S, PROGRAM_S = 20, 120  # limits for one file
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:hard_rss_limit_mb=1500:allocator_may_return_null=1",
              "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
VIEWS = [("explain",), ("explain", "--json=short"), ("report",), ("report", "--flame"), ("report", "--html"),
         *(("export", f"--format={form}") for form in ("folded", "pprof", "perfetto", "speedscope", "firefox"))]
LOADS = script_of_loads(f"{program('frtest-burn')} -t 600", f"{program('frtest-culprit')} -t 600 lock", f"{program('frtest-jit')} -t 600")
# Numbers that lengths, counts and offsets are replaced by.
WRONG = (0, 1, 7, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def sanitized(name):
    path = next((p / name for p in SANITIZED if "asan-ubsan" in p.parts), None)
    if not path or not path.exists():
        pytest.skip(f"FLIGHTREC_SANITIZED has no {name} of asan-ubsan: ./dev build asan-ubsan makes it")
    return path


def record(directory, compression):
    """Makes a short dump of some programs with CPU time, waits, wakers, switches, new processes and run-time code. It has nothing of
    other processes, because the test needs a small file."""
    (directory / "state").mkdir(parents=True)
    config = quiet_config(directory / "d.conf", "[Recorder]\nEvents=cpu-clock\nEvents=offcpu\nEvents=sched:sched_switch\n"
                          f"Frequency=999\nCallGraph=fp\n[Dump]\nCompression={compression}\n")
    daemon = Daemon(directory / "state", "--config", config, command=("sh", "-c", LOADS))
    try:
        daemon.start()
        daemon.until_sampled("cpu-clock", 1000)
        path = daemon.dump_by_control(f"--from={SPAN}")
        daemon.stop()
    finally:
        daemon.kill()
    return path


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Two dumps: damage of compressed records mostly hits the decompression, and other damage the records."""
    directory = tmp_path_factory.mktemp("damaged")
    return [record(directory / name, name) for name in ("yes", "no")]


def flip(rng, data):
    for _ in range(rng.choice((1, 2, 5, 50))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def flip_ends(rng, data):
    """The head of the file, and the sections behind the data, which describe all the rest."""
    for _ in range(rng.choice((1, 2, 5, 50))):
        at = rng.randrange(3000)
        data[at if rng.random() < 0.5 else len(data) - 1 - at] ^= 1 << rng.randrange(8)


def cut(rng, data):
    del data[rng.randrange(len(data)):]


def cut_out(rng, data):
    at = rng.randrange(len(data))
    del data[at:at + rng.choice((1, 4, 8, 1000, 20000))]


def repeat(rng, data):
    at, to = rng.randrange(len(data)), rng.randrange(len(data))
    data[to:to] = data[at:at + rng.choice((8, 64, 1000, 20000))]


def clear(rng, data):
    at = rng.randrange(len(data))
    n = min(rng.choice((8, 64, 4096)), len(data) - at)
    data[at:at + n] = bytes((rng.choice((0, 0xff)),)) * n


def inflate_words(rng, data):
    """Words of the head of the file, which are offsets, sizes and counts."""
    for _ in range(rng.randrange(1, 4)):
        struct.pack_into("<Q", data, rng.randrange(0, 104, 8), rng.choice((*WRONG, len(data), rng.randrange(len(data)))))


def records_of(data):
    """Returns the offsets of the records of a file."""
    at, size = struct.unpack_from("<QQ", data, 40)
    last, found = min(len(data), at + size), []
    while at + 8 <= last:
        length = struct.unpack_from("<H", data, at + 6)[0]
        if length < 8:
            break
        found.append(at)
        at += length
    return found


def inflate_records(rng, data):
    """The sizes of some records, or words in them, which can be lengths of stacks, of names and of raw data."""
    found = records_of(data)
    for _ in range(rng.choice((1, 5, 50))):
        at = rng.choice(found)
        length = struct.unpack_from("<H", data, at + 6)[0]
        if rng.random() < 0.3:
            struct.pack_into("<H", data, at + 6, rng.choice((0, 8, 16, length - 8 & 0xffff, length + 8 & 0xffff, 0xfff8)))
        elif rng.random() < 0.2:
            struct.pack_into("<I", data, at, rng.randrange(90))  # another type
        elif at + 16 <= len(data):
            word = at + 8 * rng.randrange(1, max(2, length // 8))
            if word + 8 <= len(data):
                struct.pack_into("<Q", data, word, rng.choice((*WRONG, rng.getrandbits(64))))


DAMAGES = (flip, flip_ends, cut, cut_out, repeat, clear, inflate_words, inflate_records)


def damaged(dumps, number):
    """Returns the copy with this number, which is the same in each run of a test for equal dumps."""
    rng = random.Random(number)
    data = bytearray(dumps[number // len(DAMAGES) % len(dumps)].read_bytes())
    DAMAGES[number % len(DAMAGES)](rng, data)
    if rng.random() < 0.2 and len(data) > 5000:
        rng.choice((flip, flip_ends))(rng, data)
    return bytes(data)


def environment_of(tmp_path):
    return environment(TMPDIR=str(tmp_path), **SANITIZERS)


def show_all(files, tmp_path):
    """Runs fuzz-report. Returns None if it has shown all files, or else why not."""
    try:
        r = run(sanitized("fuzz-report"), *files, env=environment_of(tmp_path), timeout=FILE_S * len(files))
    except subprocess.TimeoutExpired:
        return "it still runs"
    return None if r.code == 0 and not r.err else f"exit code {r.code}\n{r.err[-6000:]}"


def test_the_dumps_have_all_records(dumps):
    """So that there is something to damage."""
    for path in dumps:
        out = run(sanitized("flightrec-report"), "report", "-q", path, timeout=PROGRAM_S).out
        assert all(f"'{name}'" in out for name in ("cpu-clock", "flightrec:offcpu", "flightrec:waker", "sched:sched_switch")), out
        assert path.stat().st_size < 4_000_000


def test_damaged_dumps_do_no_harm(dumps, tmp_path):
    begin = time.monotonic()
    for first in range(0, COPIES, BATCH):
        folder = tmp_path / f"{first}"
        folder.mkdir()
        files = [folder / f"{n}" for n in range(first, first + BATCH)]
        for n, path in enumerate(files, first):
            path.write_bytes(damaged(dumps, n))
        if show_all(files, tmp_path):
            assert not [(path, why) for path in files if (why := show_all([path], tmp_path))]
        shutil.rmtree(folder)
    print(f"{COPIES} damaged dumps of {[p.stat().st_size for p in dumps]} bytes in {time.monotonic() - begin:.0f} s")


def test_the_program_reads_damaged_dumps(dumps, tmp_path):
    """Also with the object files of this machine, and into a bundle that can be opened again."""
    report, path, packed = sanitized("flightrec-report"), tmp_path / "damaged", tmp_path / "damaged.tar.zst"
    for n in range(0, COPIES, WHOLE_EVERY):
        path.write_bytes(damaged(dumps, n))
        for args in (VIEWS[n // WHOLE_EVERY % len(VIEWS)], ("bundle", "-q", "-o", packed)):
            r = run(report, *args, path, env=environment_of(tmp_path), timeout=PROGRAM_S)
            assert r.code in (EXIT["ok"], EXIT["error"]) and "Sanitizer" not in r.err and "runtime error" not in r.err, (n, args, r)
            assert r.code == 0 or r.err.startswith("flightrec-report: "), (n, args, r)
        if packed.exists():
            r = run(report, "explain", packed, env=environment_of(tmp_path), timeout=PROGRAM_S)
            assert r.code in (EXIT["ok"], EXIT["error"]) and "Sanitizer" not in r.err and "runtime error" not in r.err, (n, r)
            packed.unlink()
