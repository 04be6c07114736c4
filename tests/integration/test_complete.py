# SPDX-License-Identifier: GPL-2.0-or-later
"""No blind window: a load counts up in an argument of a system call while dump after dump is made, and in what they
make together each number stands once."""
import json
import os
import time

import pytest

from harness import finish_load, last_cpu, merge, must, program, start_load, until

DUMPS = 100 if os.environ.get("FLIGHTREC_FULL") else 20
EVERY = 0.25  # seconds


def sequence(path, load):
    return json.loads(must(program("frtest-sequence"), path, load["pid"], load["nr"], timeout=300).out)


def reached(recorder):
    """Whether the recorder has taken in anything of the load."""
    return recorder.status()["ring"]["samples"] > 1000


def dump_while_counting(recorder):
    """Dumps that overlap for as long as the load counts, and one after it; (load, dumps)."""
    process = start_load("count", "-t", DUMPS * EVERY, "-c", last_cpu())
    until("sample of the load", lambda: reached(recorder))
    dumps = []
    while process.poll() is None:
        begin = time.monotonic()
        dumps.append(recorder.dump_by_control())
        time.sleep(max(0, begin + EVERY - time.monotonic()))
    load = finish_load(process)
    dumps.append(recorder.dump_by_control())
    return load, dumps


def record(recorder, directory, spec):
    """Into DIRECTORY without a loss: the kernel's buffers overflow where others take the CPUs for too long, which is the
    machine's doing, so there are three tries."""
    for i in range(3):
        state = directory / f"try{i}"
        state.mkdir()
        daemon = recorder("-m", "32M", *spec, "-M", "48M", directory=state)
        load, dumps = dump_while_counting(daemon)
        lost = daemon.lost()
        daemon.stop()
        if not lost:
            return state, load, dumps
        for path in state.iterdir():
            path.unlink()
    raise AssertionError(f"three times something was lost, at last {lost}")


@pytest.mark.parametrize("filtered", [False, True], ids=["whole-machine", "one-syscall"])
def test_every_number_once(recorder, tmp_path, filtered):
    """48 MiB hold some seconds of this load, so that windows overlap, and the first one begins with the load."""
    spec = ["-e", "raw_syscalls:sys_enter"] + (["--filter", "id == 8"] if filtered else [])
    state, load, dumps = record(recorder, tmp_path, spec)
    assert len(dumps) >= DUMPS * 3 / 4, f"only {len(dumps)} dumps while the load ran: this tests little"
    assert len(set(dumps)) == len(dumps)

    r = merge(state, timeout=600)
    assert r.code == 0, r.err
    found = sequence(state / "perf.data", load)
    (state / "perf.data").unlink()
    assert found["count"] > 0
    assert (found["missing"], found["twice"], found["backwards"]) == (0, 0, 0), found
    assert found["first"] == 0, "the first window begins after the load"
    assert found["last"] == load["calls"] - 1, "a dump after the end of the load has all that the kernel had"
