# SPDX-License-Identifier: GPL-2.0-or-later
"""No record is lost between two dumps: a load passes the numbers 0, 1, 2 … as an argument of a system call, while many dumps
are made one after the other. The merge of the dumps has each number once."""
import pytest

from harness import FULL, Steps, exact, last_cpu, merge, program, sequence

DUMPS = 100 if FULL else 20
# The number of calls in one step of the load. The load does at most Steps.AHEAD + 1 steps between two dumps. A kernel ring of
# 32 MiB and a ring of 4 MiB have room for the calls of these steps. So the windows of the dumps overlap also on a slow machine.
STEP = 80000


def dump_while_counting(recorder):
    """Makes overlapping dumps while the load counts, and one dump after its end. Returns (JSON of the load, dumps)."""
    steps, dumps = Steps(program("frtest-count"), "-s", STEP, "-c", last_cpu()), []
    for _ in range(DUMPS):
        steps.fill(wait=True)
        dumps.append(recorder.dump_by_control())
    load = steps.finish()
    dumps.append(recorder.dump_by_control())
    return load, dumps


def record_without_loss(recorder, directory, spec, ring):
    """Tries three times to record without a loss, because kernel rings overflow if other programs use the CPUs for too
    long."""
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
    raise AssertionError(f"there were losses in each of three tries, at last {lost}")


@pytest.mark.parametrize("filtered", [False, True], ids=["whole-machine", "one-syscall"])
def test_every_number_is_in_the_merge_once(recorder, tmp_path, filtered):
    """With the filter, only the system call of the load is recorded, into a small ring that evicts frames. Without the filter,
    all system calls of the machine are recorded."""
    spec = ["-e", "raw_syscalls:sys_enter"] + (["--filter", "id == 8"] if filtered else [])
    state, load, dumps, evicted = record_without_loss(recorder, tmp_path, spec, "4M" if filtered else "48M")
    assert load["calls"] % STEP == 0 and len(set(dumps)) == len(dumps)
    assert evicted or not filtered, "the ring had room for all records"
    midst = sum((sequence(path, load)["last"] + 1) % STEP != 0 for path in dumps)
    assert midst >= DUMPS / 4, f"only {midst} dumps while the load counted: this tests little"

    r = merge(state, timeout=600)
    assert r.code == 0, r.err
    found = sequence(state / "perf.data", load)
    (state / "perf.data").unlink()
    assert found["count"] > 0
    exact(found)
    assert found["first"] == 0, "the first window begins after the load"
    assert found["last"] == load["calls"] - 1, "a dump after the end of the load has all that the kernel had"
