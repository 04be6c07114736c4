# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line on damaged inputs: what is whole is merged, each loss gets a line, and stock perf reads the result."""
import json
import random

import pytest

from harness import EXIT, NO_LOSS, load, merge, perf_clean, program, run, script_text


@pytest.fixture
def dumped(recorder, state_dir):
    """A directory with an auxiliary file and two dumps, and no recorder any more."""
    d = recorder(*NO_LOSS, "-e", "sched:sched_switch", "-M", "16M")
    samples = []
    for _ in range(2):
        load("spawn", "-n", 200, "-m", "1")
        samples.append(d.dump_by_control())
    d.stop()
    return state_dir, samples


def test_cut_input_is_salvaged(dumped):
    directory, samples = dumped
    whole = set(script_text(samples[1]))
    with open(samples[0], "r+b") as f:
        f.truncate(samples[0].stat().st_size * 2 // 3)
    r = merge(directory, "--json=short")
    assert r.code == EXIT["salvaged"], r.err
    line = next(x for x in r.err.splitlines() if samples[0].name in x)
    assert "at offset" in line and "bytes lost" in line
    report = json.loads(r.out)
    assert report["damaged"] == 1 and report["lost_bytes"] > 0
    assert samples[0].exists(), "a damaged input is kept"
    assert not samples[1].exists()
    perf_clean("script", "-i", directory / "perf.data")
    assert whole <= set(script_text(directory / "perf.data"))


def test_what_is_no_perf_data_is_named_and_kept(dumped):
    directory, samples = dumped
    other = directory / "perf.data.sample.20200101T000000.000000Z"
    other.write_text("no such thing\n" * 10)
    r = merge(directory)
    assert r.code == EXIT["salvaged"]
    assert other.name in r.err and "no perf.data" in r.err
    assert other.exists() and not samples[0].exists()


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_get_a_verdict(dumped, tmp_path, seed):
    """Bits flipped in one input: a verdict, and where there is an output it is a whole file.

    Not judged by stock perf: perf.data has no checksums, so a bit that flips inside of a text or a number stays
    what it is, and perf ends at many of them (one letter in a tracepoint's format is enough)."""
    directory, samples = dumped
    rnd = random.Random(seed)
    victim = samples[seed % 2]
    data = bytearray(victim.read_bytes())
    for _ in range(8):
        data[rnd.randrange(4096, len(data))] ^= 1 << rnd.randrange(8)
    victim.write_bytes(data)
    r = merge(directory, "--keep", "-q")
    assert r.code in (EXIT["ok"], EXIT["error"], EXIT["salvaged"]), r.err
    if r.code == EXIT["error"]:
        assert r.err and not (directory / "perf.data").exists()
        return
    again = merge(directory / "perf.data", "--keep", "-q", "-o", tmp_path / "again")
    assert again.code == EXIT["ok"], again.err


def test_usage(tmp_path):
    m = program("flightrec-merge")
    assert run(m, "--help").code == 0
    assert run(m, "--version").code == 0
    assert run(m, "--no-such-thing").code == EXIT["usage"]
    assert run(m, "-z99", tmp_path).code == EXIT["usage"]
    assert run(m, "--json=loud", tmp_path).code == EXIT["usage"]
    r = run(m, tmp_path)
    assert r.code == EXIT["error"] and str(tmp_path) in r.err
