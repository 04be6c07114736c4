# SPDX-License-Identifier: GPL-2.0-or-later
"""Events are switched while recording goes on: by a BPF program, by flightrecctl, and by actions of triggers."""
import re
import time

import pytest

import offcpu
from harness import (BIN, EXIT, NO_LOSS, load, meta, must, program, quiet_config, run, script_lines, time_ns, trigger_samples, until)
from openmetrics import Metrics

OBJECTS = BIN.parent / "tests/unit/source/bpf"
COMM = "frtest-switch"
ENTER = "raw_syscalls:sys_enter"
# Only the calls of the load, so that there are few samples.
EVENTS = f"[Recorder]\nEvents={ENTER}\nFilter=COMM == \"{COMM}\"\nRingSize=16M\n"
MINE = f"[Trigger mine]\nProgram={OBJECTS}/switches.bpf.o\nThreshold=1\nAction=enable {ENTER}\nCooldown=0\n"


@pytest.fixture
def configured(recorder, tmp_path):
    """configured(TEXT, *ARGS) starts a recorder with the configuration TEXT."""
    def make(text, *args):
        return recorder("--config", quiet_config(tmp_path / "switch.conf", text), *args)
    return make


@pytest.fixture
def objects():
    if not OBJECTS.is_dir():
        pytest.skip(f"{OBJECTS} is not there: build the target source-bpf-objects")
    return OBJECTS


def with_program(configured, *args, text=EVENTS):
    d = configured(text + MINE, *NO_LOSS, *args)
    t = d.trigger("mine")
    if t["state"] == "failed":
        pytest.skip(t["what"])
    return d


def event(d, name=ENTER):
    return next(e for e in d.ask("event") if e["name"] == name)


def is_on(d, name=ENTER):
    return event(d, name)["enabled"]


def switches(path):
    """Returns the switches of a dump, and checks that each of its window has a trigger sample."""
    found = meta(path).get("switches", [])
    samples = [s for s in trigger_samples(path) if s.trace.startswith("switch: ")]
    inside = [s for s in found if "before_window" not in s]
    assert [time_ns(s) for s in samples] == [s["monotonic_ns"] for s in inside], (samples, inside)
    for sample, s in zip(samples, inside):
        assert sample.trace.startswith(f"switch: {s['reason']}"), (sample, s)
        assert f"by {s['by']}" in sample.trace, sample
    return found


def measured(d, which):
    """Returns what the BPF program has measured."""
    before = d.trigger("mine").get("last_value_at_ns", 0)
    must(program(COMM), "-o", which)
    until("a measurement", lambda: d.trigger("mine").get("last_value_at_ns", 0) > before)
    return d.trigger("mine")["last_value"]


def test_a_program_switches_at_once(configured, objects, tmp_path):
    """All calls while the event is on are recorded, and none while it is off, also those right after each switch."""
    d = with_program(configured)
    rounds, calls = 60, 20
    did = load("switch", "-n", rounds, "-k", calls)
    until("records of the switches", lambda: d.status()["switches"]["count"] == 2 * rounds)
    dump = d.dump_by_control()

    lines = [line for line in script_lines(dump) if line.tid == did["pid"]]
    on = [line for line in lines if line.trace.startswith(f"NR {did['on']} ")]
    assert not [line for line in lines if line.trace.startswith(f"NR {did['off']} ")]
    assert len(on) == rounds * calls
    found = switches(dump)
    assert len(found) == 2 * rounds
    assert [s["enabled"] for s in found] == [False, True] * rounds
    for s in found:
        assert s["by"] == "the program of trigger mine" and s["pid"] == did["pid"] and COMM in s["why"], s
    # Each call is recorded between a switch to on and the next switch to off.
    edges = [(s["monotonic_ns"], 1 if s["enabled"] else -1) for s in found]
    state = 0
    for at, what in sorted(edges + [(time_ns(line), 0) for line in on]):
        state = max(what, 0) if what else state
        assert what or state == 1, at
    assert d.status()["switches"]["now"] == 0 and is_on(d), "on is the configuration"
    must(program(COMM), "-o", "off")
    switched = until("the entry of the switch", lambda: event(d).get("switched"))
    assert switched["by"] == "the program of trigger mine" and 500 * 10**9 < switched["left_ns"] <= 600 * 10**9
    assert d.ctl("event", "reset", ENTER).out == f"{ENTER}\n"

    # A record of a switch wakes flightrecd. In a virtual machine, this can take much longer than the switch itself.
    whole = measured(d, "mean")
    quiet_config(tmp_path / "switch.conf", EVENTS + MINE + "Set=effect=1\n")
    assert d.ctl("reload").code == 0
    until("the armed trigger", lambda: d.trigger("mine")["state"] == "armed")
    before = d.status()["switches"]["count"]
    load("switch", "-n", rounds, "-k", calls)
    until("records of the switches", lambda: d.status()["switches"]["count"] == before + 2 * rounds)
    mean, fast = measured(d, "mean"), measured(d, "fast")
    first = [min(time_ns(line) - at for line in on if time_ns(line) >= at) for at, what in edges if what > 0]
    print(f"a switch has effect after {mean} ns, and {fast / 10} % after less than 1 µs; the whole call takes {whole} ns; "
          f"the first call after a switch to on is recorded {min(first)} to {max(first)} ns after it")
    assert fast >= 900, "the host can stop a virtual machine during some switches"


def test_an_event_that_a_program_switches_comes_back(configured, objects):
    text = EVENTS.replace(ENTER, f"{ENTER}/enabled=no/")
    d = with_program(configured, text=text + "[Triggers]\nSwitchLimit=700ms\n")
    assert not is_on(d) and "switched" not in event(d)
    for n, call in enumerate(("for", "on")):
        must(program(COMM), "-o", call)
        until("the end of the switch", lambda n=n: d.status()["switches"]["count"] == 2 * (n + 1))
        assert not is_on(d) and "switched" not in event(d)
    found = switches(d.dump_by_control())
    assert [s["enabled"] for s in found] == [True, False] * 2
    assert [s["why"] for s in found if not s["enabled"]] == ["its time is over", "SwitchLimit= is over"]
    for on, off, ms in ((found[0], found[1], 500), (found[2], found[3], 700)):
        assert on["by"] == "the program of trigger mine" and off["by"] == "flightrecd"
        assert off["monotonic_ns"] - on["monotonic_ns"] >= ms * 10**6


def test_a_program_cannot_switch_what_perf_records(configured, objects, tmp_path):
    d = configured(EVENTS.replace(ENTER, f"{ENTER}/capture=perf/") + MINE)
    t = d.trigger("mine")
    assert t["state"] == "failed" and ENTER in t["what"] and "capture=bpf" in t["hint"], t
    quiet_config(tmp_path / "switch.conf", EVENTS + MINE)
    d.ctl("reload")
    until("the armed trigger", lambda: d.trigger("mine")["state"] == "armed")
    # When the event is gone, the trigger is not armed any more.
    quiet_config(tmp_path / "switch.conf", EVENTS.replace(ENTER, "raw_syscalls:sys_exit") + MINE)
    d.ctl("reload")
    t = until("the failed trigger", lambda: d.trigger("mine")["state"] == "failed" and d.trigger("mine"))
    assert f"no event {ENTER} is recorded" in t["what"], t


@pytest.mark.parametrize("terms", ["capture=bpf", "capture=perf"])
def test_flightrecctl_switches(configured, terms):
    d = configured(EVENTS.replace(ENTER, f"{ENTER}/{terms}/"), *NO_LOSS)
    counts = []

    def calls():
        before = event_samples(d)
        did = load("switch", "-n", 10, "-k", 10)
        time.sleep(1.2)  # the recorder looks at the rings at least once a second
        counts.append(event_samples(d) - before)
        return did

    calls()
    r = d.ctl("event", "off", "raw_*", "--why", "too much")
    assert r.code == 0 and r.out == f"{ENTER}\n", r
    assert d.ctl("event", "off", ENTER).out == "no state has changed\n"
    calls()
    row = next(line for line in d.ctl("event", "--no-pager").out.splitlines() if line.startswith(ENTER))
    assert re.search(r" off .*\(flightrecctl\) of uid 0: too much", row), row
    text, metrics = d.text_status(), Metrics(d.ctl("metrics").out)
    assert re.search(rf"Switched: {ENTER}: off since .*, for another .*: too much", text), text
    assert metrics.get("flightrec_event_enabled", event=ENTER) == 0
    assert metrics.get("flightrec_events_switched") == 1 and metrics.get("flightrec_event_switches_total") == 1
    assert d.ctl("event", "on", ENTER).out == f"{ENTER}\n"
    calls()
    assert counts[1] == 0 and counts[0] >= 220 and counts[2] >= 220, counts
    assert "switched" not in event(d)
    off, on = switches(d.dump_by_control())
    assert off["reason"] == f"{ENTER} off" and "too much" in off["detail"]
    assert on["reason"] == f"{ENTER} on, as configured"
    assert f"event {ENTER}: off, by pid" in d.log()


def test_stacks_that_a_program_unwinds(configured, objects):
    """A program of a trigger, and flightrecctl, switch an event whose samples another BPF program makes."""
    # The program of the tests knows only one name.
    d = with_program(configured, text=f"[Recorder]\nEvents=cpu-clock/freq=499,call-graph=unwind,name={ENTER}/\nRingSize=16M\n")

    def samples():
        time.sleep(1.2)  # the recorder looks at the rings at least once a second
        before = event_samples(d)
        load("burn", "-u", 1)
        time.sleep(1.2)
        return event_samples(d) - before

    assert samples() > 0
    must(program(COMM), "-o", "off")
    assert samples() == 0 and not is_on(d)
    must(program(COMM), "-o", "on")
    assert samples() > 0 and is_on(d)
    assert d.ctl("event", "off", ENTER).code == 0
    assert samples() == 0
    assert d.ctl("event", "on", ENTER).code == 0
    assert samples() > 0
    assert [s["enabled"] for s in switches(d.dump_by_control())] == [False, True] * 2


def event_samples(d):
    return d.event_status(ENTER)["samples"]


def test_wrong_calls_are_explained(configured):
    d = configured(EVENTS)
    for args, code, words in ((["on", "nonsense"], "error", "no event nonsense is recorded"),
                              (["on", ENTER[:-1]], "error", f"did you mean {ENTER}?"),
                              (["rate", ENTER, "99"], "error", "every occurrence"),
                              (["rate", ENTER, "0"], "usage", "'0' is not a rate"),
                              (["rate", ENTER], "usage", "event rate NAME NUMBER"),
                              (["upside-down", ENTER], "usage", "event list"),
                              (["on"], "usage", "event on NAME")):
        r = d.ctl("event", *args)
        assert r.code == EXIT[code] and words in r.err, (args, r)
    assert d.status()["switches"]["count"] == 0


def test_rates_and_reloads(configured, tmp_path):
    text = "[Recorder]\nEvents=cpu-clock/freq=99,name=clock/\nEvents=task-clock/freq=99,name=other,enabled=no/\nRingSize=4M\n"
    d = configured(text)
    assert d.ctl("event", "rate", "clock", "499").out == "clock\n"
    assert d.ctl("event", "on", "other", "--for", "1h").out == "other\n"
    assert event(d, "clock")["switched"]["rate"] == 499
    # A reload with other events keeps the switches of the events that stay.
    quiet_config(tmp_path / "switch.conf", text + "Events=page-faults\n")
    r = d.ctl("reload")
    assert r.code == 0 and "page-faults" in r.out, r
    assert event(d, "clock")["switched"]["rate"] == 499
    assert is_on(d, "other") and event(d, "other")["switched"]["left_ns"] > 3000 * 10**9
    assert d.ctl("event", "reset", "*").out.split() == ["clock", "other"]
    assert not is_on(d, "other") and d.status()["switches"]["now"] == 0
    found = switches(d.dump_by_control())
    assert [s["reason"] for s in found] == ["clock on, 499 Hz instead of 99 Hz", "other on", "clock on, as configured",
                                            "other off, as configured"]


def test_a_trigger_raises_the_detail_and_then_dumps(configured):
    """The first sign of an anomaly switches an event on. The dump is made when its time is over, and has what was recorded."""
    d = configured(EVENTS.replace(ENTER, f"{ENTER}/enabled=no/") +
                   f"[Trigger sign]\nEvery=1h\nAction=raise {ENTER} for 5s\nAction=dump\nPostTrigger=6s\n"
                   f"[Trigger only]\nEvery=1h\nAction=disable {ENTER}\nAction=enable nonsense\n", *NO_LOSS)
    load("switch", "-n", 1, "-k", 10)
    assert d.trigger("sign")["actions"] == [f"raise {ENTER} for 5s", "dump"]
    assert d.ctl("test-trigger", "sign").code == 0
    assert is_on(d)
    did = load("switch", "-n", 1, "-k", 10)
    dump = d.until_dumped()
    lines = [line for line in script_lines(dump) if line.tid == did["pid"]]
    assert len([line for line in lines if line.trace.startswith(f"NR {did['on']} ")]) == 10
    assert len({line.tid for line in script_lines(dump)}) == 1
    on, off = switches(dump)
    assert on["by"] == "trigger sign" and on["why"] == "test" and off["by"] == "flightrecd"
    assert off["monotonic_ns"] - on["monotonic_ns"] >= 5 * 10**9
    why = d.decisions("sign")[0]["why"]
    assert why.endswith(f"raise {ENTER} for 5s"), why

    # A trigger without the action dump makes no dump.
    assert d.ctl("event", "on", ENTER).code == 0
    r = d.ctl("test-trigger", "only")
    assert r.code == 0 and r.out == "0\n", r
    assert not is_on(d)
    decision = d.decisions("only")[0]
    assert decision["verdict"] == "fire" and "dump_id" not in decision and decision["why"] == f"disable {ENTER}"
    assert "Action=enable nonsense: no event nonsense is recorded" in d.log()
    assert len(d.samples()) == 1


def test_a_probe_raises_the_detail_and_then_dumps(configured, objects):
    """As the test before, but a real probe in the kernel sees the first sign, and nobody asks for anything."""
    d = configured(EVENTS.replace(ENTER, f"{ENTER}/enabled=no/") +
                   f"[Trigger sign]\nProgram={objects}/getppid.bpf.o\nComm={COMM}\nThreshold=1\nCooldown=1h\n"
                   f"Action=raise {ENTER} for 4s\nAction=dump\nPostTrigger=6s\n", *NO_LOSS)
    if d.trigger("sign")["state"] == "failed":
        pytest.skip(d.trigger("sign")["what"])
    before = load("switch", "-n", 1, "-k", 10)
    until("the raised detail", lambda: is_on(d))
    did = load("switch", "-n", 1, "-k", 10)
    until("the end of the detail", lambda: not is_on(d))
    after = load("switch", "-n", 1, "-k", 10)
    dump = d.until_dumped()
    calls = [(line.tid, line.trace.split()[1]) for line in script_lines(dump)]
    assert calls.count((did["pid"], str(did["on"]))) == calls.count((did["pid"], str(did["off"]))) == 10
    assert after["pid"] not in [tid for tid, _ in calls]
    on, off = switches(dump)
    assert on["by"] == "trigger sign" and on["why"] == "getppid" and on["pid"] == before["pid"], on
    assert off["by"] == "flightrecd" and off["why"] == "its time is over", off
    assert off["monotonic_ns"] - on["monotonic_ns"] >= 4 * 10**9
    assert meta(dump)["cause"]["trigger"] == "sign"


def test_offcpu_measures_no_sleep_that_began_before_the_switch(configured):
    d = configured("[Recorder]\nEvents=offcpu/enabled=no,threshold=1ms/\nRingSize=16M\n")
    time.sleep(0.5)
    assert d.event_status("flightrec:offcpu")["samples"] == 0
    begin = time.monotonic_ns()
    assert d.ctl("event", "on", "offcpu").out == "flightrec:offcpu\n"
    time.sleep(1.5)
    dump = d.dump_by_control()
    sleeps, _ = offcpu.samples_of(dump)
    assert sleeps
    for s in sleeps:
        assert s.ns - offcpu.ms(s) * 10**6 >= begin, s


def test_a_restart_forgets_the_switches(recorder, state_dir):
    d = recorder("-e", f"{ENTER}/enabled=no/", "--filter", f'COMM == "{COMM}"', "-M", "4M")
    assert d.ctl("event", "on", ENTER).code == 0
    assert is_on(d)
    d.stop()
    d.start()
    assert not is_on(d) and d.status()["switches"]["count"] == 0
    assert run(program("flightrecctl"), "--socket", d.socket, "event", "list").code == 0
