# SPDX-License-Identifier: GPL-2.0-or-later
"""A merged file is the union of its inputs, each record once."""
import contextlib
import json
import os
import pty
import re
import subprocess
from collections import Counter

import pytest

from harness import EXIT, NO_LOSS, last_cpu, load, merge, perf_clean, program, run, script_lines, script_text, start, start_load


@pytest.fixture
def overlapping(recorder, state_dir):
    """A directory with three dumps whose windows overlap, and no recorder any more; (directory, samples)."""
    d = recorder(*NO_LOSS, "-e", "sched:sched_switch", "-e", "sched:sched_wakeup", "-M", "32M")
    p = start_load("pingpong", "-t", "600", "-c", last_cpu())
    samples = []
    for i in range(3):
        d.until_sampled("sched:sched_switch", (i + 1) * 10000, load=p)
        samples.append(d.dump_by_control())
    p.kill()
    p.wait()
    d.stop()
    return state_dir, samples


def union(samples):
    """Each sample as often as it stands in the one file that has it most often."""
    result = Counter()
    for path in samples:
        result |= Counter(script_text(path))
    return result


def test_merged_is_the_union(overlapping):
    directory, samples = overlapping
    assert len(set(samples)) == 3
    wanted = union(samples)
    sizes = [sum(Counter(script_text(s)).values()) for s in samples]
    assert sum(sizes) > sum(wanted.values()), "the windows do not overlap, so this would test nothing"
    assert set(script_text(samples[0])) & set(script_text(samples[2]))

    r = merge(directory, "--keep")
    assert r.code == 0, r.err
    merged = Counter(script_text(directory / "perf.data"))
    missing, extra = wanted - merged, merged - wanted
    assert not missing, f"{sum(missing.values())} of {sum(wanted.values())} are missing, e.g. {list(missing)[:3]}"
    assert not extra, f"{sum(extra.values())} too many, e.g. {list(extra)[:3]}"
    assert all(s.exists() for s in samples), "--keep"


def test_inputs_go_when_the_output_is_there(overlapping):
    directory, _ = overlapping
    assert merge(directory).code == 0
    left = sorted(p.name for p in directory.iterdir())
    assert [n for n in left if n.startswith("perf.data.sample") or n == "perf.data.auxiliary"] == []
    assert "perf.data" in left
    assert not [n for n in left if n.startswith(".")], f"temporary files stay behind: {left}"


def test_merged_again_is_the_same(overlapping):
    directory, samples = overlapping
    assert merge(directory, "--keep", "-o", directory / "one").code == 0
    assert run_merge_files(directory / "two", *samples).code == 0
    assert Counter(script_text(directory / "one")) == Counter(script_text(directory / "two"))


def run_merge_files(output, *files):
    return run(program("flightrec-merge"), "--keep", "-o", output, *files, timeout=300)


def test_compressed_output_reads_the_same(overlapping):
    directory, _ = overlapping
    assert merge(directory, "--keep", "-o", directory / "plain").code == 0
    assert merge(directory, "--keep", "-z", "-o", directory / "zstd").code == 0
    assert Counter(script_text(directory / "plain")) == Counter(script_text(directory / "zstd"))
    assert (directory / "zstd").stat().st_size < (directory / "plain").stat().st_size / 2


def test_dry_run_changes_nothing(overlapping):
    directory, _ = overlapping
    before = sorted((p.name, p.stat().st_size) for p in directory.iterdir())
    r = merge(directory, "--dry-run")
    assert r.code == 0, r.err
    assert (r.out + r.err).strip(), "a dry run says what would be merged"
    assert sorted((p.name, p.stat().st_size) for p in directory.iterdir()) == before


@pytest.mark.parametrize("options", [["--dry-run"], ["--keep"], ["--dry-run", "-q"]])
def test_a_terminal_has_a_bar(recorder, state_dir, options):
    d = recorder("-e", "cpu-clock", "-M", "1M")
    d.dump_by_control()
    d.stop()
    terminal, theirs = pty.openpty()
    p = start(program("flightrec-merge"), *options, state_dir, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # of the end
        while data := os.read(terminal, 4096):
            shown += data
    os.close(terminal)
    assert p.wait(60) == 0
    assert (b"100%" in shown) == ("-q" not in options), shown


def test_older_output_is_kept_under_its_time(overlapping):
    directory, _ = overlapping
    (directory / "perf.data").write_bytes(b"older")
    assert merge(directory).code == 0
    kept = [p for p in directory.glob("perf.data.2*")]
    assert len(kept) == 1 and kept[0].read_bytes() == b"older", sorted(p.name for p in directory.iterdir())


def test_merged_file_is_sorted(overlapping):
    """perf sorts what it reads, so the order in the file is that of the offsets in its raw dump."""
    directory, _ = overlapping
    assert merge(directory).code == 0
    out = perf_clean("script", "-i", directory / "perf.data", "-D", timeout=300)
    raw = re.findall(r"^\d+ (\d+) (0x[0-9a-f]+) \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE", out, re.M)
    times = [int(time) for time, offset in sorted(raw, key=lambda r: int(r[1], 16))]
    assert len(times) > 1000
    assert times == sorted(times)


def test_other_boot_is_refused(overlapping):
    directory, samples = overlapping
    changed = samples[1].with_name(samples[1].name + ".json")
    meta = json.loads(changed.read_text())
    mine, other = meta["boot_id"], "0123456789abcdef0123456789abcdef"
    meta["boot_id"] = other
    changed.write_text(json.dumps(meta))
    r = merge(directory)
    assert r.code == EXIT["error"], (r.code, r.err)
    assert other in r.err.replace("-", "") and mine.replace("-", "") in r.err.replace("-", ""), f"both boots are named: {r.err}"
    assert all(s.exists() for s in samples) and not (directory / "perf.data").exists()


def test_truncated_input_is_salvaged(overlapping):
    directory, samples = overlapping
    whole = union(samples)
    size = samples[2].stat().st_size
    with open(samples[2], "r+b") as f:
        f.truncate(size * 2 // 3)
    r = merge(directory, "--keep")
    assert r.code == EXIT["salvaged"], (r.code, r.err)
    assert samples[2].name in r.err, f"says which file was damaged: {r.err}"
    merged = Counter(script_text(directory / "perf.data"))
    assert not merged - whole, "nothing that was not there"
    assert not union(samples[:2]) - merged, "all of the inputs that are whole"


def test_nothing_to_merge(tmp_path):
    r = merge(tmp_path)
    assert r.code == EXIT["error"] and str(tmp_path) in r.err, (r.code, r.err)


def test_recorded_again_beside_old_files(recorder, state_dir):
    """Two runs of the recorder in one directory: other ids, one merge."""
    pids = []
    for _ in range(2):
        d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M")
        pids.append(load("syscalls", "-n", 5000)["pid"])
        d.dump_by_control()
        d.stop()
    r = merge(state_dir)
    assert r.code == 0, r.err
    count = Counter(line.tid for line in script_lines(state_dir / "perf.data") if line.trace.startswith("NR 110 "))
    assert [count[p] for p in pids] == [5000, 5000]


def test_a_dump_that_went_meanwhile_is_no_error(recorder, state_dir):
    """Retention removes dumps while a merge looks over the directory; one that the caller names has to be there."""
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-u", "0.3")
    gone = d.dump_by_control().with_name("perf.data.sample.20010101T000000.000000Z")
    d.stop()
    gone.symlink_to("/nowhere")
    assert merge(gone, "--keep").code == 1
    assert merge(state_dir).code == 0
    assert (state_dir / "perf.data").is_file()
