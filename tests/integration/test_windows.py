# SPDX-License-Identifier: GPL-2.0-or-later
"""Windows: exact to the record, whether compressed or not; post-trigger; the end of a dump is the trigger's time."""
import json
import subprocess
import threading
import time

import pytest

from harness import EXIT, NO_LOSS, load, program, script_lines, sidecar, start, until

EVENT = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 110")


class Paced(threading.Thread):
    """Bursts of 5000 calls with pauses, until it is told to end: slow enough for a machine that has other work to lose none."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.calls = {}  # by pid: others may run the same load
        self.times = []  # of the bursts' ends, by the wall clock
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            did = load("syscalls", "-n", 5000)
            self.calls[did["pid"]] = did["calls"]
            self.times.append(time.time())

    def wait(self, bursts, seconds):
        """Goes on until it has made so many, over so many seconds."""
        until(f"{bursts} bursts", lambda: len(self.times) >= bursts and self.times[-1] - self.times[0] >= seconds, 60)

    def finish(self):
        self.over.set()
        self.join()
        return self.calls


@pytest.fixture
def paced():
    started = []

    def begin():
        started.append(Paced())
        return started[-1]

    yield begin
    for p in started:
        p.finish()


def ns(line):
    """A sample's time as perf prints it, exactly."""
    seconds, fraction = line.time.split(".")
    return int(seconds) * 10**9 + int(fraction)


def meta(path):
    return json.loads(sidecar(path).read_text())


def within(lines, window):
    return [line for line in lines if window["from_ns"] <= ns(line) <= window["to_ns"]]


@pytest.mark.parametrize("how", [(), ("--no-compression",)], ids=["compressed", "plain"])
def test_exact_to_the_record(recorder, paced, how):
    """Chunks hold tens of thousands of these records: a window's bounds lie in the midst of them."""
    d = recorder(*NO_LOSS, *EVENT, *how, "-M", "32M")
    p = paced()
    p.wait(30, 0.8)
    a, b = p.times[10], p.times[20]  # ten bursts lie between, however long that takes
    windows = [d.dump_by_control("--from", f"@{a:.6f}", "--to", f"@{b:.6f}"),
               d.dump_by_control("--last", "500ms"),
               d.dump_by_control("--last", f"{int((b - a) * 500)}ms", "--to", f"@{b:.6f}"),
               d.dump_by_control("--from", "-250ms")]
    calls = p.finish()
    everything = script_lines(d.dump_by_control())
    d.stop()
    for path in windows:
        asked, lines = meta(path)["asked"], script_lines(path)
        expected = within(everything, asked)
        assert lines == expected, (path, asked, len(lines), len(expected))
        assert within(lines, asked) == lines
        told = meta(path)["window"]
        assert not lines or (told["from_ns"], told["to_ns"]) == (ns(lines[0]), ns(lines[-1]))
        assert meta(path)["samples"] == len(lines)
    assert 40000 < len(script_lines(windows[0])) < len(everything)
    assert {pid: sum(line.tid == pid for line in everything) for pid in calls} == calls


def test_configured_window(recorder, paced):
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M", "--window", "1500ms")
    p = paced()
    p.wait(10, 2)  # for as long as the signal takes to be heard
    by_signal = d.dump_by_signal()
    p.finish()
    everything = d.dump_by_control("--last", "1h")
    d.stop()
    asked = meta(by_signal)["asked"]
    assert asked["to_ns"] - asked["from_ns"] == 1500 * 10**6
    assert script_lines(by_signal) == within(script_lines(everything), asked)
    assert 0 < len(script_lines(by_signal)) < len(script_lines(everything))


def test_a_dump_ends_with_its_trigger(recorder, paced):
    """All that the kernel had at the trigger is in, also what nobody has drained yet; nothing later is."""
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M")
    p = paced()
    p.wait(5, 0.2)
    paths = [d.dump_by_control("--last", "200ms") for _ in range(5)]
    p.finish()
    everything = script_lines(d.dump_by_control())  # at once: the last of it is in the kernel's rings only
    assert not d.lost(), d.lost()
    d.stop()
    assert {pid: sum(line.tid == pid for line in everything) for pid in p.calls} == p.calls
    for path in paths:
        m, lines = meta(path), script_lines(path)
        assert m["asked"]["to_ns"] == m["monotonic_ns"]
        assert lines == within(everything, m["asked"])


@pytest.mark.parametrize("how", ["option", "configured"])
def test_post_trigger(recorder, paced, how):
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M", *(["--post-trigger", "1500ms", "--window", "300ms"] if how == "configured" else []))
    p = paced()
    p.wait(5, 0.4)
    began = time.monotonic()
    path = d.dump_by_control(*(["--post", "1500ms", "--last", "300ms"] if how == "option" else []))
    assert time.monotonic() - began > 1.5
    p.finish()
    everything = script_lines(d.dump_by_control("--last", "1h", "--post", "0"))
    d.stop()
    m = meta(path)
    assert m["asked"] == {"from_ns": m["monotonic_ns"] - 300 * 10**6, "to_ns": m["monotonic_ns"] + 1500 * 10**6}
    lines = script_lines(path)
    assert lines == within(everything, m["asked"])
    assert ns(lines[-1]) > m["monotonic_ns"] + 200 * 10**6, "it went on recording"


def test_post_trigger_does_not_hold_up_others(recorder):
    d = recorder(*EVENT, "-M", "8M")
    waits = start_ctl(d, "dump", "--post", "60s", "--reason", "later")
    until("the dump that waits", lambda: d.status()["dumps"]["waiting_post_trigger"] == 1)
    first = d.dump_by_control()
    second = d.dump_by_signal()
    assert waits.poll() is None and d.status()["dumps"]["waiting_post_trigger"] == 1
    d.stop()
    out, _ = waits.communicate(timeout=60)
    assert out.strip() not in (str(first), str(second)) and waits.returncode == 0


def test_a_stop_does_not_lose_what_waits(recorder):
    """Its time is cut short, and its sender has an answer."""
    d = recorder(*EVENT, "-M", "8M")
    waits = start_ctl(d, "dump", "--post", "60s")
    until("the dump that waits", lambda: d.status()["dumps"]["waiting_post_trigger"] == 1)
    d.stop()
    out, err = waits.communicate(timeout=60)
    assert waits.returncode == 0, err
    assert [str(p) for p in d.samples()] == [out.strip()]
    assert "window closed after 0.0 ms" in d.log()


def start_ctl(d, *args):
    return start(program("flightrecctl"), "--socket", d.socket, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_windows_that_make_no_sense(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    load("burn", "-t", "0.2")
    for code, args in [("usage", ["--last", "5s", "--from", "-5s"]), ("usage", ["--post", "5s", "--to", "now"]),
                       ("usage", ["--from", "-1s", "--to", "-2s"]), ("usage", ["--from", "25:00"]),
                       ("error", ["--to", "+1h"]), ("error", ["--from", "2001-01-01", "--to", "2001-01-02"])]:
        r = d.ctl("dump", *args)
        assert r.code == EXIT[code] and r.err.strip() and not r.out, (args, r)
    assert not d.samples()
    d.stop()
