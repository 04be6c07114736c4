# SPDX-License-Identifier: GPL-2.0-or-later
"""No blind window: a load counts up in an argument of a system call while dump after dump is made, and in what they
make together each number stands once."""
import json
import os

import pytest

from harness import Steps, last_cpu, merge, must, program

DUMPS = 100 if os.environ.get("FLIGHTREC_FULL") else 20
# Numbers from one dump to the next are at most one more of these than are given ahead: a kernel's ring of 32 MiB holds
# them, and a ring of 4 MiB, so that windows overlap however slow the machine is.
STEP = 80000


def sequence(path, load):
    return json.loads(must(program("frtest-sequence"), path, load["pid"], load["nr"], timeout=300).out)


def dump_while_counting(recorder):
    """Dumps that overlap while the load counts, and one after it; (load, dumps)."""
    steps, dumps = Steps(program("frtest-count"), "-s", STEP, "-c", last_cpu()), []
    for _ in range(DUMPS):
        steps.fill(wait=True)
        dumps.append(recorder.dump_by_control())
    load = steps.finish()
    dumps.append(recorder.dump_by_control())
    return load, dumps


def record(recorder, directory, spec, ring):
    """Into DIRECTORY without a loss: the kernel's buffers overflow where others take the CPUs for too long, which is the
    machine's doing, so there are three tries."""
    for i in range(3):
        state = directory / f"try{i}"
        state.mkdir()
        daemon = recorder("-m", "32M", *spec, "-M", ring, directory=state)
        load, dumps = dump_while_counting(daemon)
        lost, evicted = daemon.lost(), daemon.status()["ring"]["evicted_samples"]
        daemon.stop()
        if not lost:
            return state, load, dumps, evicted
        for path in state.iterdir():
            path.unlink()
    raise AssertionError(f"three times something was lost, at last {lost}")


@pytest.mark.parametrize("filtered", [False, True], ids=["whole-machine", "one-syscall"])
def test_every_number_once(recorder, tmp_path, filtered):
    """With the calls of the load alone in a ring that they turn over; and among those of the whole machine, which may be many."""
    spec = ["-e", "raw_syscalls:sys_enter"] + (["--filter", "id == 8"] if filtered else [])
    state, load, dumps, evicted = record(recorder, tmp_path, spec, "4M" if filtered else "48M")
    assert load["calls"] % STEP == 0 and len(set(dumps)) == len(dumps)
    assert evicted or not filtered, "the ring held all of it"
    midst = sum((sequence(path, load)["last"] + 1) % STEP != 0 for path in dumps)
    assert midst >= DUMPS / 4, f"only {midst} dumps while the load counted: this tests little"

    r = merge(state, timeout=600)
    assert r.code == 0, r.err
    found = sequence(state / "perf.data", load)
    (state / "perf.data").unlink()
    assert found["count"] > 0
    assert (found["missing"], found["twice"], found["backwards"]) == (0, 0, 0), found
    assert found["first"] == 0, "the first window begins after the load"
    assert found["last"] == load["calls"] - 1, "a dump after the end of the load has all that the kernel had"
