# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the fleet: a command to many simulated machines, an index of many dumps, and whether the recorder of a machine has more
to do because of the agent.

Broker, store, operator and the simulated machines are on this machine, so all of them share its CPUs."""
import contextlib
import json
import signal
import statistics
import subprocess
import time

import fleet
import harness
import measure

AGENTS, QUICK_AGENTS = 1000, 200
ENTRIES, QUICK_ENTRIES = 100000, 10000
UPLOAD_MIB_PER_S = 10
PAIRS, QUICK_PAIRS = 24, 4
SETTLE_S, SLICE_S = 0.5, 0.8  # an upload sends one part of 8 MiB in a slice


@contextlib.contextmanager
def hub(work):
    with measure.new_directory(work) as directory:
        f = fleet.Fleet(directory)
        try:
            yield f.start()
        finally:
            with contextlib.redirect_stdout(None):
                f.close()


def timed(f, verb, *args, timeout=300):
    """Runs a verb of the operator. Returns (seconds, standard output)."""
    begin = time.monotonic()
    r = f.ctl(verb, *args, timeout=timeout)
    seconds = time.monotonic() - begin
    assert r.code == 0, f"fleet {verb}: exit code {r.code}\n{r.err[-2000:]}"
    return seconds, r.out


def median_of(turns, function):
    return statistics.median([function() for _ in range(turns)])


def commands(f, n, turns):
    """N simulated machines answer TURNS commands. Returns seconds from the start of the operator's program to its end, and from
    the first bell until the last machine has stored its last message."""
    agents = measure.start(*f.hub.prefix, harness.program("frtest-fleet"), "agents", "-s", f.broker.url, "-n", n,
                           stdout=subprocess.PIPE, text=True)
    connected = json.loads(agents.stdout.readline())
    operator, machines = [], []
    for _ in range(turns):
        seconds, out = timed(f, "dump", "--match", "role=*", "--last", "30s", "--json=short")
        operator.append(seconds)
        answer = json.loads(out)
        assert len(answer["machines"]) == n, len(answer["machines"])
        machines.append(json.loads(agents.stdout.readline())["ns"] / 1e9)
    agents.terminate()
    agents.communicate(timeout=60)
    return {"machines": n, "connect_s": connected["ns"] / 1e9, "operator_s": statistics.median(operator),
            "operator_worst_s": max(operator), "machines_s": statistics.median(machines)}


def index(f, n, turns):
    """The index has N entries, one for each machine and command: a command a minute to 100 machines."""
    filled = json.loads(f.hub.must(harness.program("frtest-fleet"), "index", "-s", f.broker.url, "-n", n, "-t", 64, "-c", 8).out)

    def entries(*args):
        return len(json.loads(timed(f, "list", *args, "--json=short")[1]))

    assert entries("-n", "20") == 20
    found = {"entries": n, "fill_per_s": n / (filled["ns"] / 1e9), "since_commands": entries("--since", "-1h"), "commands": entries()}
    assert found["commands"] == n // 100
    for name, args in {"all": (), "json": ("--json=short",), "newest": ("-n", "20"), "since": ("--since", "-1h"),
                       "trigger": ("--trigger", "none-has-this")}.items():
        found[name + "_s"] = median_of(turns, lambda: timed(f, "list", *args)[0])
    return found


def counters(m):
    """Returns the CPU time in ns, the events and the wakeups of the recorder, and the CPU time of the agent in ns."""
    pid = m.recorder.pid
    events = m.recorder.event_status(measure.EVENT)["samples"]
    return measure.cpu_ns(pid), events, measure.wakeups(pid), measure.cpu_ns(m.agent.pid)


def slice_of(m, kind):
    """Measures the recorder while the load runs, and the agent is stopped (kind "none") or runs."""
    m.agent.send_signal(signal.SIGSTOP if kind == "none" else signal.SIGCONT)
    time.sleep(SETTLE_S)  # after a stop, an upload sends as fast as it can until its mean rate is that of the limit
    begin, before = time.monotonic(), counters(m)
    time.sleep(SLICE_S)
    cpu, events, wakeups, agent = (after - b for after, b in zip(counters(m), before))
    seconds = time.monotonic() - begin
    return {"cpu_ns_per_event": cpu / events, "wakeups_per_million": wakeups / events * 1e6, "events_per_s": events / seconds,
            "agent_percent": agent / seconds / 1e7}


def pairs(m, kind, n, check=lambda: None):
    """Returns N pairs {"none": slice, KIND: slice}. This machine becomes slower and faster within a minute, by more than what is
    measured, so the two slices of a pair are neighbours, in changing order."""
    result = []
    for i in range(n):
        check()
        result.append({k: slice_of(m, k) for k in (("none", kind) if i % 2 else (kind, "none"))})
    m.agent.send_signal(signal.SIGCONT)
    return result


def summary(turns, kind):
    more = [100 * (t[kind]["cpu_ns_per_event"] / t["none"]["cpu_ns_per_event"] - 1) for t in turns]
    low, middle, high = statistics.quantiles(more, n=4)
    return {k: {name: statistics.median(t[k][name] for t in turns) for name in turns[0][k]} for k in ("none", kind)} | {
        "percent_more_cpu": middle, "percent_more_quartiles": [low, high]}


def recorder(f, args):
    """The recorder under the same load while the agent is idle and while it uploads, each in pairs with slices in which the agent is
    stopped."""
    # This load compresses well. Without compression, the upload of a small ring takes longer than all slices.
    m = f.machine("bench", recorder=("-e", measure.EVENT, "-M", "12M", "-m", "16M"), dump="[Dump]\nCompression=no\n",
                  agent_more=f"UploadLimit={UPLOAD_MIB_PER_S}M\n")
    m.recorder.start()
    m.start_agent()
    f.until_present(m)
    load = measure.start(harness.program("frtest-syscalls"), "-t", 600, "-c", harness.last_cpu(), stdout=subprocess.DEVNULL)
    n = QUICK_PAIRS if args.quick else PAIRS
    lost = sum(m.recorder.lost().values())
    idle = pairs(m, "idle", n)
    id = json.loads(f.ctl("dump", "--last", "1h", "--wait-limit", "1s", "--json=short").out)["id"]
    harness.until("an upload", f.store.uploads)

    def check():
        assert f.store.uploads(), "the upload has ended before the last slice"

    upload = pairs(m, "upload", n, check)
    check()
    lost = sum(m.recorder.lost().values()) - lost
    harness.end(load)
    f.until_answered(id, {m.name: "stored"}, 300)
    return {"pairs": n, "idle": summary(idle, "idle"), "upload": summary(upload, "upload"), "lost": lost}


def bench(work, args):
    reason = fleet.missing()
    if reason:
        raise SystemExit(f"the fleet cannot be measured: {reason}")
    with hub(work) as f:
        result = {"commands": commands(f, QUICK_AGENTS if args.quick else AGENTS, args.turns)}
    with hub(work) as f:
        result["index"] = index(f, QUICK_ENTRIES if args.quick else ENTRIES, args.turns)
    with hub(work) as f:
        result["recorder"] = recorder(f, args)
    return result


TARGETS = [
    ("fleet: from the command to the answers of all machines, s", 2, True, lambda r: r["fleet"]["commands"]["operator_s"]),
    ("fleet: list of the whole index, s", 1, True, lambda r: r["fleet"]["index"]["all_s"]),
    ("fleet: list of the newest 20, s", 1, True, lambda r: r["fleet"]["index"]["newest_s"]),
    ("fleet: recorder's CPU with an idle agent, % more", 5, True, lambda r: r["fleet"]["recorder"]["idle"]["percent_more_cpu"]),
    ("fleet: recorder's CPU under an upload, % more", 5, True, lambda r: r["fleet"]["recorder"]["upload"]["percent_more_cpu"]),
    ("fleet: recorder's losses with the agent", 0, True, lambda r: r["fleet"]["recorder"]["lost"]),
]


def report(result):
    c, i, r = result["commands"], result["index"], result["recorder"]
    print(f"fleet: {c['machines']:,} machines (connected in {c['connect_s']:.1f} s) answer a command in {c['operator_s']:.2f} s "
          f"(worst {c['operator_worst_s']:.2f} s); their last message is stored {c['machines_s']:.2f} s after the first bell")
    print(f"fleet: index of {i['entries']:,} dumps (stored at {i['fill_per_s']:,.0f} a second): list {i['all_s']:.2f} s, as JSON "
          f"{i['json_s']:.2f} s, -n 20 {i['newest_s']:.2f} s, --since -1h {i['since_s']:.2f} s ({i['since_commands']:,} commands), "
          f"--trigger {i['trigger_s']:.2f} s")
    for name, title in {"idle": "with an idle agent", "upload": f"while the agent uploads {UPLOAD_MIB_PER_S} MiB/s"}.items():
        q, with_agent, none = r[name], r[name][name], r[name]["none"]
        print(f"fleet: recorder {title}: {with_agent['cpu_ns_per_event']:.1f} ns per event, {none['cpu_ns_per_event']:.1f} while it is "
              f"stopped: {q['percent_more_cpu']:+.1f} % (median of {r['pairs']} pairs; half of them between "
              f"{q['percent_more_quartiles'][0]:+.1f} and {q['percent_more_quartiles'][1]:+.1f} %); "
              f"{with_agent['wakeups_per_million']:.0f} and {none['wakeups_per_million']:.0f} wakeups per million events; agent "
              f"{with_agent['agent_percent']:.1f} % of a CPU")
    print(f"fleet: recorder: {r['lost']} lost")
