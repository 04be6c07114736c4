# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the speed of dumps with fio, and the speed of merges with cat. Both are measured in turns, on the same file system,
in one run."""
import json
import os
import shutil
import statistics
import time
from pathlib import Path

import harness
from measure import EVENT, MIB, Flightrec, new_directory, recording

TURNS = 3


def fio_seconds(directory, size):
    """Returns how many seconds fio takes to write and sync SIZE bytes, with the block size and queue depth of flightrec's file
    writer.

    Returns None if fio is not installed.
    """
    if not shutil.which("fio"):
        return None
    path = Path(directory) / "fio"
    out = harness.must("fio", "--name=dump", f"--filename={path}", "--rw=write", "--bs=1M", "--iodepth=8", "--ioengine=io_uring",
                       "--direct=1", f"--size={size & ~4095}", "--end_fsync=1", "--output-format=json", timeout=300).out
    path.unlink()
    return json.loads(out[out.index("{"):])["jobs"][0]["write"]["runtime"] / 1e3


def longest_period(daemon, action):
    """Returns the longest time, during ACTION, between two reads of the kernel rings by the recorder. Each call of status
    begins a new measurement of this time."""
    daemon.status()
    action()
    return daemon.status()["self"]["longest_period_s"]


def dump(work, args, *options):
    """Measures dumps of a full ring: how fast they are while nothing else runs, and how much they delay the reads of the kernel
    rings under a load."""
    ours, fio, closed, normal, during = [], [], [], [], []

    def make_dump():
        r = daemon.ask("dump")
        Path(r["path"]).unlink()
        return r

    with recording(Flightrec, work, args, "-e", EVENT, "-m", "16M", *options) as recorder:
        daemon = recorder.daemon
        harness.load("syscalls", "-t", 8, "-c", harness.last_cpu())
        time.sleep(1.2)
        raw = daemon.status()["ring"]["raw"]
        for _ in range(TURNS):
            r = make_dump()
            ours.append(r["write_seconds"])
            fio.append(fio_seconds(recorder.directory, r["bytes"]))
        load = harness.start_load("syscalls", "-t", TURNS * 4, "-c", harness.last_cpu())
        time.sleep(0.5)
        for _ in range(TURNS):
            normal.append(longest_period(daemon, lambda: time.sleep(1)))
            during.append(longest_period(daemon, lambda: closed.append(make_dump()["window_closed_s"])))
        harness.end(load)
        recorder.stop()
    seconds, reference = statistics.median(ours), statistics.median(fio) if None not in fio else None
    return {"raw_mib": raw / MIB, "file_mb": r["bytes"] / 1e6, "mb_per_s": r["bytes"] / 1e6 / seconds,
            "fio_mb_per_s": r["bytes"] / 1e6 / reference if reference else None,
            "of_fio": reference / seconds if reference else None,
            "window_closed_ms": statistics.median(closed) * 1e3,
            "drain_period_ms": statistics.median(normal) * 1e3, "drain_period_in_dump_ms": statistics.median(during) * 1e3,
            "drain_period_ratio": statistics.median(during) / statistics.median(normal)}


def merge(work, mib):
    """Merges three files that overlap in time and have MIB mebibytes together. Compares the time with that of cat for the
    merged file."""
    ours, cat = [], []
    with new_directory(work) as directory:
        harness.must(harness.program("bench-generate"), directory, 3, mib // 3, 10, timeout=300)
        output, copy = directory / "perf.data", directory / "copy"
        for _ in range(2):
            begin = time.monotonic()
            pid = os.posix_spawn(harness.program("flightrec-merge"),
                                 ["flightrec-merge", "--keep", "-q", "-o", str(output), str(directory)], os.environ)
            _, status, usage = os.wait4(pid, 0)
            ours.append(time.monotonic() - begin)
            assert status == 0, f"flightrec-merge: {status}"
            size, begin = output.stat().st_size, time.monotonic()
            harness.must("sh", "-c", f"cat '{output}' > '{copy}'; sync '{copy}'", timeout=600)
            cat.append(time.monotonic() - begin)
            output.unlink()
            copy.unlink()
    return {"mib_in": mib, "bytes_out": size, "mb_per_s": size / 1e6 / min(ours), "cat_mb_per_s": size / 1e6 / min(cat),
            "of_cat": min(cat) / min(ours), "rss_mib": usage.ru_maxrss / 1024}


def measure(work, args):
    return {"dump": dump(work, args), "dump_plain": dump(work, args, "--no-compression")}


TARGETS = [  # what is measured, limit, whether the limit is an upper limit, function that takes the value from the result
    ("dump, compressed: of fio's speed", 0.7, False, lambda r: r["disk"]["dump"]["of_fio"]),
    ("dump, plain: of fio's speed", 0.7, False, lambda r: r["disk"]["dump_plain"]["of_fio"]),
    ("trigger to window closed, ms", 5, True, lambda r: r["disk"]["dump"]["window_closed_ms"]),
    ("drain period in a dump against before", 2, True, lambda r: r["disk"]["dump"]["drain_period_ratio"]),
    ("drain period in a plain dump against before", 2, True, lambda r: r["disk"]["dump_plain"]["drain_period_ratio"]),
    ("signal to file against perf record --overwrite", 5, False,
     lambda r: r["ratios"]["trigger_same_events_perf_overwrite_over_ours"]),
    ("merge of 4 GiB: of the speed of cat", 0.5, False, lambda r: r["merge"]["of_cat"]),
    ("merge of 4 GiB: resident MiB", 64, True, lambda r: r["merge"]["rss_mib"]),
]


def report(result):
    for name, title in (("dump", "compressed"), ("dump_plain", "plain")):
        d = result["disk"][name]
        fio = f"{d['fio_mb_per_s']:,.0f} MB/s" if d["fio_mb_per_s"] else "not installed"
        print(f"dump, {title}: {d['raw_mib']:,.0f} MiB of records as {d['file_mb']:,.0f} MB: {d['mb_per_s']:,.0f} MB/s; fio: {fio}; "
              f"window closed after {d['window_closed_ms']:.1f} ms; longest drain period {d['drain_period_in_dump_ms']:.1f} ms, "
              f"before {d['drain_period_ms']:.1f} ms")
