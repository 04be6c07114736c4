# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the fleet: a command to many simulated machines, an index of many dumps, and whether the recorder of a machine has more
to do because of the agent.

Broker, store, operator and the simulated machines are on this machine, so all of them share its CPUs."""
import contextlib
import json
import statistics
import time

import fleet
import harness
import measure

AGENTS, QUICK_AGENTS = 1000, 200
ENTRIES, QUICK_ENTRIES = 100000, 10000
UPLOAD_MB_PER_S = 10


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
    agents = harness.start(*f.hub.prefix, harness.program("frtest-fleet"), "agents", "-s", f.broker.url, "-n", n, stdout=-1, text=True)
    measure.started.append(agents)
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


def load_turn(machine, seconds):
    """Runs a load. Returns the recorder's CPU time for each event that it recorded (those of agent, broker and store are among
    them), and the number of its losses."""
    pid, recorder = machine.recorder.pid, machine.recorder
    events = recorder.event_status(measure.EVENT)["samples"]
    lost = sum(recorder.lost().values())
    cpu = measure.cpu_ns(pid)
    did = measure.syscalls(seconds)
    time.sleep(1.2)  # until the recorder has drained the kernel rings
    cpu = measure.cpu_ns(pid) - cpu
    events = recorder.event_status(measure.EVENT)["samples"] - events
    return {"cpu_ns_per_event": cpu / events, "events_per_call": events / did["calls"], "load_ns_per_call": did["ns_per_call"],
            "lost": sum(recorder.lost().values()) - lost}


def without(f, m, seconds):
    m.stop_agent()
    return load_turn(m, seconds)


def idle(f, m, seconds):
    m.start_agent()
    f.until_present(m)
    return load_turn(m, seconds)


def uploading(f, m, seconds):
    """The dump is so large that the upload goes on for the whole turn."""
    id = json.loads(f.ctl("dump", "--last", "1h", "--wait-limit", "1s", "--json=short").out)["id"]
    harness.until("an upload", lambda: f.store.uploads())
    turn = load_turn(m, seconds)
    assert f.store.uploads(), "the upload has ended before the turn"
    f.until_answered(id, {m.name: "stored"}, 300)
    return turn


def recorder(f, args):
    """The recorder under the same load without an agent, with an idle agent, and while the agent uploads: one after the other in
    each turn."""
    # This load compresses well: without compression, the upload of a small ring takes longer than a turn.
    m = f.machine("bench", recorder=("-e", measure.EVENT, "-M", "8M", "-m", "16M"), dump="[Dump]\nCompression=no\n",
                  agent_more=f"UploadLimit={UPLOAD_MB_PER_S}M\n")
    m.recorder.start()
    m.start_agent()
    f.until_present(m)
    harness.load("syscalls", "-t", 8, "-c", harness.last_cpu())  # until the ring is full
    kinds = {"none": without, "idle": idle, "upload": uploading}
    turns = [{name: kind(f, m, args.seconds) for name, kind in kinds.items()} for _ in range(max(args.turns, 3))]
    result = {name: {key: statistics.median(t[name][key] for t in turns) for key in turns[0][name]} for name in kinds}
    for name in ("idle", "upload"):
        result[name]["percent_more_cpu"] = statistics.median(
            100 * (t[name]["cpu_ns_per_event"] / t["none"]["cpu_ns_per_event"] - 1) for t in turns)
    result["lost"] = sum(t[name]["lost"] for t in turns for name in ("idle", "upload"))
    result["lost_without"] = sum(t["none"]["lost"] for t in turns)
    return result


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
    for name, title in {"none": "without an agent", "idle": "with an idle agent", "upload": f"uploading at {UPLOAD_MB_PER_S} MB/s"}.items():
        more = f", {r[name]['percent_more_cpu']:+.1f} % in paired turns" if "percent_more_cpu" in r[name] else ""
        print(f"fleet: recorder {title}: {r[name]['cpu_ns_per_event']:.1f} ns per event{more}; {r[name]['lost']:.0f} lost a turn; load "
              f"{r[name]['load_ns_per_call']:.0f} ns a call")
