# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures triggers: the time from an anomaly to the end of the window, a storm of anomalies, and by how much armed probes slow
a load that only switches tasks."""
import contextlib
import re
import statistics
import time
from pathlib import Path

import harness
import measure

FIRINGS = 50
STORM = 1000000  # anomalies. frtest-provoke makes this number in a minute
# The groups of probes for which TARGETS has limits. These groups are measured more often.
JUDGED = ("armed by default", "all that say no cost")
FIRST = 20000  # anomalies after which the recorder has all memory that it needs


def programs():
    return harness.BIN.parent / "tests/unit/source/bpf"


@contextlib.contextmanager
def recorder(work, args, of_all, sections):
    """Runs a flightrecd whose configuration has the keys OF_ALL in [Triggers], and SECTIONS. Kills it at the end."""
    with measure.new_directory(work) as directory:
        conf = directory / "conf"
        conf.write_text(harness.triggers_config("", of_all + sections))
        with measure.recording(measure.Flightrec, work, args, "--config", conf, "-F", "99", "--call-graph=fp") as r:
            yield r.daemon


def closed_ms(work, args, busy):
    """Makes FIRINGS anomalies, each with a dump. Returns for each anomaly the time from its time stamp to the end of the
    window, in ms."""
    with recorder(work, args, "RateLimit=no\nCooldown=0\n", "[Trigger exec]\nComm=frtest-provoke\n") as d:
        time.sleep(1)
        load = measure.start(harness.program("frtest-pingpong"), "-t", "600", "-c", harness.last_cpu()) if busy else None
        for i in range(FIRINGS):
            harness.load("provoke", "exec")
            harness.until("the dump", lambda: d.trigger("exec")["fired"] == i + 1 and d.status()["dumps"]["queued"] == 0)
        if load:
            harness.end(load)
        metas = [harness.meta(p) for p in d.samples()]
        assert len(metas) == FIRINGS
        d.stop()
    return [(m["window_closed_ns"] - m["cause"]["monotonic_ns"]) / 1e6 for m in metas]


def storm(work, args, of_all, section, n):
    """Makes N anomalies. Measures whether each is counted once, the number of files, the recorder's CPU time, and how much its
    memory grows."""
    section = f"[Trigger mine]\nProgram={programs()}/getppid.bpf.o\nComm=frtest-provoke\nThreshold=1\n{section}"
    with recorder(work, args, of_all, section) as d:
        assert d.trigger("mine")["state"] == "armed", d.trigger("mine")
        harness.load("provoke", "storm", FIRST)
        settle(d.pid)
        memory, cpu, begin = rss_mib(d.pid), measure.cpu_ns(d.pid), time.monotonic_ns()
        harness.load("provoke", "storm", n, timeout=120)
        took = time.monotonic_ns() - begin
        time.sleep(1)
        cpu = measure.cpu_ns(d.pid) - cpu
        t = d.trigger("mine")
        result = {"anomalies": n + FIRST, "seconds": took / 1e9, "cpu_percent": 100 * cpu / took, "grown_mib": rss_mib(d.pid) - memory,
                  "counted": t["asked"] + t["cooled"] + t["lost"], "files": len(d.samples()),
                  **{k: t[k] for k in ("fired", "joined", "suppressed", "cooled", "lost")}}
        d.stop()
    result["unaccounted"] = abs(result["anomalies"] - result["counted"]) + abs(result["files"] - result["fired"])
    return result


def settle(pid):
    """Waits until the memory of the recorder, which grows after a start, no longer grows."""
    for _ in range(10):
        before = rss_mib(pid)
        time.sleep(3)
        if rss_mib(pid) - before < 0.05:
            break


def rss_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def trips(seconds):
    """Returns the round trips of frtest-pingpong for each second of its CPU time. (CPU time, because other programs can use the
    CPU, too.)

    Both of its threads are on one CPU, so this CPU never idles.
    """
    did = harness.load("pingpong", "-t", seconds, "-c", harness.last_cpu())
    return did["round_trips"] * 1e9 / did["cpu_ns"]


def paired(off, on, pairs, seconds):
    """Returns by how many percent the load is slower after ON() than after OFF(). The result is the median of PAIRS turns."""
    ratios = []
    for i in range(pairs):
        got = {}
        for what in (off, on) if i % 2 == 0 else (on, off):
            what()
            got[what] = trips(seconds)
        ratios.append(got[off] / got[on])
    return 100 * (statistics.median(ratios) - 1)


def recorder_slowdown(work, args, sections, pairs, seconds):
    """Returns by how many percent the load is slower with the recorder than without it."""
    ratios = []
    for i in range(pairs):
        got = {}
        for recorded in (False, True) if i % 2 == 0 else (True, False):
            if not recorded:
                got[recorded] = trips(seconds)
                continue
            with recorder(work, args, "MinFill=1h\n", sections) as d:
                time.sleep(0.5)
                got[recorded] = trips(seconds)
                d.stop()
        ratios.append(got[False] / got[True])
    return 100 * (statistics.median(ratios) - 1)


def probe_slowdowns(work, args, pairs, seconds):
    """Returns by how many percent the load is slower while the recorder has armed probes than while it has none.

    Measures each probe, and groups of probes.
    """
    said = costs(work, args)
    names = list(said)
    sections = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in names)
    groups = {JUDGED[0]: list(harness.ARMED_PROBES), JUDGED[1]: [n for n in names if not said[n]], "all": names} | {name: [name] for name in names}
    result = {}
    with recorder(work, args, "MinFill=1h\n", sections) as d:
        for title, group in groups.items():
            r = d.ctl("enable", *group)  # a probe that this kernel lacks remains in the state "failed"
            there = [n for n in group if d.trigger(n)["state"] == "armed"]
            if not there:
                result[title] = {"probes": group, "percent": None, "why": r.err.strip()}
                continue
            turns = pairs * 3 if title in JUDGED else pairs
            percent = paired(lambda: d.ctl("disable", *there), lambda: d.ctl("enable", *there), turns, seconds)
            d.ctl("disable", *there)
            result[title] = {"probes": there, "percent": percent, "says": said.get(title)}
        d.stop()
    return result


def costs(work, args):
    """Returns {probe: the cost that the manual page states, or None}."""
    with recorder(work, args, "", "") as d:
        names = [t["name"] for t in d.ask("triggers")["triggers"] if t["source"] == "bpf"]
        d.stop()
    page = (harness.ROOT / "docs/man/flightrecd.conf.5").read_text().split("The probes end here")[0].replace("\\-", "-")
    text = {name: page.split(f".B {name}\n", 1)[1].split(".TP")[0] for name in names}
    return {name: (re.search(r"^Cost: (.*)", t, re.M) or [None, None])[1] for name, t in text.items()}


def bench(work, args):
    pairs, seconds = (7, 0.1) if args.quick else (31, 0.1)
    n = STORM // 10 if args.quick else STORM
    return {"closed_ms": closed_ms(work, args, False), "closed_busy_ms": closed_ms(work, args, True),
            "storm": storm(work, args, "", "", n), "storm_without_cooldown": storm(work, args, "RateLimit=5/1h\n", "Cooldown=0\n", n),
            "recorder_percent": recorder_slowdown(work, args, "", pairs, 3 * seconds),
            "armed_percent": recorder_slowdown(work, args, "".join(f"[Trigger {n}]\n" for n in harness.ARMED_PROBES), pairs,
                                               3 * seconds),
            "probes": probe_slowdowns(work, args, pairs, seconds)}


TARGETS = [  # what is measured, limit, whether the limit is an upper limit, function that takes the value from the result
    # An automatic dump waits 50 ms for other triggers that see the same anomaly (flightrecd.conf(5)).
    ("anomaly to window closed, ms", 50 + 10, True, lambda r: statistics.median(r["triggers"]["closed_ms"])),
    ("storm of anomalies: % of one CPU", 5, True, lambda r: r["triggers"]["storm"]["cpu_percent"]),
    ("storm without a cool-down: % of one CPU", 5, True, lambda r: r["triggers"]["storm_without_cooldown"]["cpu_percent"]),
    ("storms: anomalies and files without a count", 0, True,
     lambda r: r["triggers"]["storm"]["unaccounted"] + r["triggers"]["storm_without_cooldown"]["unaccounted"]),
    ("storms: MiB of memory more", 1, True,
     lambda r: max(r["triggers"]["storm"]["grown_mib"], r["triggers"]["storm_without_cooldown"]["grown_mib"])),
    ("probes armed by default: % slower switches", 3, True, lambda r: r["triggers"]["probes"][JUDGED[0]]["percent"]),
    ("all probes that say no cost: % slower switches", 3, True, lambda r: r["triggers"]["probes"][JUDGED[1]]["percent"]),
]


def report(result):
    t = result["triggers"]
    for key, title in (("closed_ms", "at rest"), ("closed_busy_ms", "with a load")):
        v = sorted(t[key])
        print(f"anomaly to window closed, {title}, {len(v)} times: median {statistics.median(v):.2f} ms, longest {v[-1]:.2f} ms")
    for key, title in (("storm", "default cool-down"), ("storm_without_cooldown", "Cooldown=0, RateLimit=5/1h")):
        s = t[key]
        print(f"{s['anomalies']:,} anomalies in {s['seconds']:.0f} s, {title}: {s['fired']} dumps, {s['joined']} joined, "
              f"{sum(s['suppressed'].values()):,} suppressed, {s['cooled']:,} cooled, {s['lost']:,} lost; {s['cpu_percent']:.2f} % of a CPU, "
              f"{s['grown_mib']:+.2f} MiB")
    print(f"{'switches are slower':44}{'against':>24}{'by':>12}")
    print(f"{'  flightrecd, default profile, no probe':44}{'alone':>24}{t['recorder_percent']:>10.1f} %")
    print(f"{'  flightrecd as it is by default':44}{'alone':>24}{t['armed_percent']:>10.1f} %")
    for title, p in t["probes"].items():
        cell = "not here" if p["percent"] is None else f"{p['percent']:.1f} %"
        print(f"{'  ' + title:44}{'the same, no probe':>24}{cell:>12}" + (f"  says: {p['says']}" if p.get("says") else ""))
