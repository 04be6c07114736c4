# SPDX-License-Identifier: GPL-2.0-or-later
"""How long flightrec-report takes for a large file with stacks, against perf report for the same file, and how much memory its
views need for a file of 4 GiB.

The file is a dump of a mixed load: short processes, a busy loop with a deep stack, and the machine's own work. bench-repeat
writes its records several times, each time later, so the file has real stacks and names."""
import os
import re
import statistics
import time

import harness
from measure import MIB, Flightrec, new_directory, recording

SAMPLES = 1_000_000
LARGE_MIB = 4096
VIEWS = {"report": ("report",), "report --flame": ("report", "--flame"), "explain": ("explain",), "report --html": ("report", "--html"),
         **{f"export {f}": ("export", "--format", f) for f in ("folded", "pprof", "perfetto", "speedscope", "firefox")}}


def record(directory, work, args):
    """Makes a dump. Returns its path, which is in DIRECTORY, and the number of its samples."""
    with recording(Flightrec, work, args, "-F", "997") as recorder:
        loads = [harness.start_load("spawn", "-t", 8, "-m", 3), harness.start_load("chain", "-t", 8, "call")]
        for load in loads:
            load.communicate(timeout=180)
        recorder.dump()
        path = recorder.result_file().rename(directory / "dump")
        recorder.stop()
    heads = harness.must(harness.program("flightrec-report"), "report", path).out
    return path, sum(int(n) for n in re.findall(r"^# (\d+) samples of event", heads, re.M))


def repeat(path, times, to):
    harness.must(harness.program("bench-repeat"), path, max(1, times), to, timeout=600)
    return to


def run(*argv):
    """Runs a program without its output. Returns its time in seconds, its CPU time and its memory in MiB."""
    null, begin = os.open("/dev/null", os.O_WRONLY), time.monotonic()
    pid = os.posix_spawnp(argv[0], [str(a) for a in argv], harness.environment(),
                          file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    assert status == 0, f"{argv}: {status}"
    return {"s": time.monotonic() - begin, "cpu_s": usage.ru_utime + usage.ru_stime, "rss_mib": usage.ru_maxrss / 1024}


def pairs(path, turns):
    """Runs both programs one after the other, so that each pair has the same other load of the machine."""
    ours, theirs = [], []
    for _ in range(turns):
        ours.append(run(harness.program("flightrec-report"), "report", path))
        theirs.append(run("perf", "report", "--stdio", "-i", path))
    return {"ours_s": statistics.median(o["s"] for o in ours), "perf_s": statistics.median(p["s"] for p in theirs),
            "ratio": statistics.median(o["s"] / p["s"] for o, p in zip(ours, theirs)),
            "cpu_ratio": statistics.median(o["cpu_s"] / p["cpu_s"] for o, p in zip(ours, theirs)),
            "rss_mib": max(o["rss_mib"] for o in ours), "perf_rss_mib": max(p["rss_mib"] for p in theirs)}


def bench(work, args):
    wanted = SAMPLES // 10 if args.quick else SAMPLES
    with new_directory(work) as directory:
        path, samples = record(directory, work, args)
        times = -(-wanted // samples)
        file = repeat(path, times, directory / "file")
        result = {"samples": samples * times, "mib": file.stat().st_size / MIB, **pairs(file, args.turns)}
        if not args.quick:
            file.unlink()
            large = repeat(path, LARGE_MIB * MIB // path.stat().st_size + 1, directory / "large")
            result["large"] = {"mib": large.stat().st_size / MIB}
            result["large"]["views"] = {name: run(harness.program("flightrec-report"), *argv, "-o", "/dev/null", large)
                                        for name, argv in VIEWS.items()}
    return result


def report(r):
    print(f"flightrec-report of {r['samples']:,.0f} samples with stacks in {r['mib']:,.0f} MiB: {r['ours_s']:.1f} s, "
          f"perf report {r['perf_s']:.1f} s ({r['ratio']:.2f} times as long; CPU {r['cpu_ratio']:.2f}); "
          f"{r['rss_mib']:.0f} MiB resident, perf {r['perf_rss_mib']:.0f} MiB")
    for name, view in r["large"]["views"].items() if "large" in r else ():
        print(f"{name} of {r['large']['mib']:,.0f} MiB: {view['s']:.0f} s, {view['rss_mib']:.0f} MiB resident")


TARGETS = [("report of 1,000,000 samples: times as long as perf report", 2, True, lambda r: r["reports"]["ratio"]),
           ("views of 4 GiB: resident MiB", 1024, True,
            lambda r: max((v["rss_mib"] for v in r["reports"].get("large", {}).get("views", {}).values()), default=0))]
