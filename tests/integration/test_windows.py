# SPDX-License-Identifier: GPL-2.0-or-later
"""A dump has exactly the records of its window. The window ends at the trigger, or after the post-trigger time."""
import threading
import time

import pytest

from harness import NO_LOSS, finish_dump, load, meta, script_lines, time_ns, until

EVENT = ("-e", "raw_syscalls:sys_enter", "--filter", "id == 110")


class Paced(threading.Thread):
    """A thread that makes bursts of CALLS calls. The pauses between the bursts are so long that also a busy machine loses no
    samples. finish() ends the thread."""

    def __init__(self, calls):
        super().__init__(daemon=True)
        self.burst = calls
        self.over = threading.Event()
        self.calls = {}  # {pid of a burst: its number of calls}
        self.times = []  # the end of each burst, by the wall clock
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            did = load("syscalls", "-n", self.burst)
            self.calls[did["pid"]] = did["calls"]
            self.times.append(time.time())

    def wait(self, bursts, seconds):
        """Waits until the thread has made BURSTS bursts, and SECONDS have passed between the first and the last burst."""
        until(f"{bursts} bursts", lambda: len(self.times) >= bursts and self.times[-1] - self.times[0] >= seconds, 60)

    def finish(self):
        self.over.set()
        self.join()
        return self.calls


@pytest.fixture
def paced():
    started = []

    def begin(bursts, seconds, calls=1000):
        started.append(Paced(calls))
        started[-1].wait(bursts, seconds)
        return started[-1]

    yield begin
    for p in started:
        p.finish()


def within(lines, window):
    return [line for line in lines if window["from_ns"] <= time_ns(line) <= window["to_ns"]]


@pytest.mark.parametrize("how", [(), ("--no-compression",)], ids=["compressed", "plain"])
def test_a_window_is_exact_to_the_record(recorder, paced, how):
    """A chunk has tens of thousands of these records, so the bounds of a window are in the middle of a chunk."""
    d = recorder(*NO_LOSS, *EVENT, *how, "-M", "32M")
    p = paced(30, 0.8, calls=4000)
    a, b = p.times[10], p.times[20]  # ten bursts are between them, also on a slow machine
    windows = [d.dump_by_control("--from", f"@{a:.6f}", "--to", f"@{b:.6f}"),
               d.dump_by_control("--last", "500ms"),
               d.dump_by_control("--last", f"{int((b - a) * 500)}ms", "--to", f"@{b:.6f}"),
               d.dump_by_control("--from", "-250ms")]
    calls = p.finish()
    everything = script_lines(d.dump_by_control())
    for path in windows:
        asked, lines = meta(path)["asked"], script_lines(path)
        expected = within(everything, asked)
        assert lines == expected, (path, asked, len(lines), len(expected))
        window = meta(path)["window"]
        assert not lines or (window["from_ns"], window["to_ns"]) == (time_ns(lines[0]), time_ns(lines[-1]))
        assert meta(path)["samples"] == len(lines)
    assert 32000 < meta(windows[0])["samples"] < len(everything)
    assert {pid: sum(line.tid == pid for line in everything) for pid in calls} == calls


def test_configured_window(recorder, paced):
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M", "--window", "1500ms")
    p = paced(10, 2)  # at least half a second longer than the window
    by_signal = d.dump_by_signal()
    p.finish()
    everything = d.dump_by_control("--last", "1h")
    asked, lines, everything = meta(by_signal)["asked"], script_lines(by_signal), script_lines(everything)
    assert asked["to_ns"] - asked["from_ns"] == 1500 * 10**6
    assert lines == within(everything, asked)
    assert 0 < len(lines) < len(everything)


def test_a_dump_ends_with_its_trigger(recorder, paced):
    """The dump has all records from before the trigger, also those that the recorder had not yet read from the kernel rings,
    and no later records."""
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M")
    p = paced(5, 0.2)
    paths = [d.dump_by_control("--last", "200ms") for _ in range(5)]
    p.finish()
    everything = script_lines(d.dump_by_control())  # immediately, while the last calls are still only in the kernel rings
    assert not d.lost(), d.lost()
    assert {pid: sum(line.tid == pid for line in everything) for pid in p.calls} == p.calls
    for path in paths:
        m, lines = meta(path), script_lines(path)
        assert m["asked"]["to_ns"] == m["monotonic_ns"]
        assert lines == within(everything, m["asked"])


@pytest.mark.parametrize("how", ["option", "configured"])
def test_post_trigger(recorder, paced, how):
    d = recorder(*NO_LOSS, *EVENT, "-M", "32M", *(["--post-trigger", "1500ms", "--window", "300ms"] if how == "configured" else []))
    p = paced(5, 0.4)
    began = time.monotonic()
    path = d.dump_by_control(*(["--post", "1500ms", "--last", "300ms"] if how == "option" else []))
    assert time.monotonic() - began > 1.5
    p.finish()
    everything = script_lines(d.dump_by_control("--last", "1h", "--post", "0"))
    m = meta(path)
    assert m["asked"] == {"from_ns": m["monotonic_ns"] - 300 * 10**6, "to_ns": m["monotonic_ns"] + 1500 * 10**6}
    lines = script_lines(path)
    assert lines == within(everything, m["asked"])
    assert time_ns(lines[-1]) > m["monotonic_ns"] + 200 * 10**6, "the recorder goes on recording"


def test_a_waiting_dump_delays_no_other_dump_and_is_made_at_a_stop(recorder):
    """If a dump waits for the end of its post-trigger time, a stop ends the wait. The dump is made, and its client gets an
    answer."""
    d = recorder(*EVENT, "-M", "8M")
    waits = d.start_ctl("dump", "--post", "60s", "--reason", "later")
    until("the dump that waits", lambda: d.status()["dumps"]["waiting_post_trigger"] == 1)
    others = {d.dump_by_control(), d.dump_by_signal()}
    assert waits.poll() is None and d.status()["dumps"]["waiting_post_trigger"] == 1
    d.stop()
    path = finish_dump(waits)
    assert path not in others and set(d.samples()) == {path, *others}
    assert "window closed after 0.0 ms" in d.log()
