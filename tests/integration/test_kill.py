# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder is killed by SIGKILL at a random moment. The files that it leaves can be read and merged."""
import json
import os
import random
import re
import signal
import time

import pytest

from harness import FULL, NO_LOSS, end, merge, perf, perf_clean, start_load, until

TURNS = 20 if FULL else 6
SEED = int(os.environ.get("FLIGHTREC_SEED", "0")) or random.SystemRandom().randrange(1 << 32)


@pytest.mark.parametrize("turn", range(TURNS))
def test_killed_at_a_random_moment(recorder, state_dir, turn):
    print(f"FLIGHTREC_SEED={SEED}")
    rng = random.Random(SEED + turn)
    d = recorder(*NO_LOSS, "-e", "sched:sched_switch", "-e", "cpu-clock", "-F", "499", "--call-graph=fp", "-M", "16M")
    loads = [start_load("pingpong", "-t", "3"), start_load("spawn", "-t", "3", "-m", "5")]
    time.sleep(rng.uniform(0, 0.6))
    for _ in range(rng.randrange(0, 4)):
        d.signal(signal.SIGUSR1)
        time.sleep(rng.uniform(0, 0.08))  # so that about half of the kills happen while a dump is being written
    if rng.random() < 0.25:
        d.signal(signal.SIGUSR2)
        time.sleep(rng.uniform(0, 0.3))
    d.kill()
    end(*loads)

    auxiliary = state_dir / "perf.data.auxiliary"
    if auxiliary.exists() and auxiliary.stat().st_size:
        r = perf("script", "-i", auxiliary, "--show-task-events", "--show-mmap-events")
        assert r.code == 0, f"perf script cannot read the auxiliary file: {r.err[-2000:]}"
        assert "PERF_RECORD_MMAP" in r.out and "PERF_RECORD_COMM" in r.out
    for sample in d.samples():  # a file that has its final name is complete
        assert perf_clean("script", "-i", sample, "-F", "comm,tid,time")
    if not d.samples() and not auxiliary.exists():
        assert (state_dir / "perf.data").exists(), "killed after the merge, or something went missing"
        return
    r = merge(state_dir)
    assert r.code in (0, 3), f"flightrec-merge: exit code {r.code}\n{r.err}"
    assert perf("script", "-i", state_dir / "perf.data").code == 0


def test_auxiliary_is_readable_while_it_is_written(recorder, state_dir):
    recorder("-e", "cpu-clock", "-M", "4M")
    p = start_load("spawn", "-t", "1", "-m", "1")

    def read():
        out = perf("script", "-i", state_dir / "perf.data.auxiliary", "--show-task-events")
        assert out.code == 0, out.err
        return out.out

    for _ in range(3):
        time.sleep(0.2)
        read()
    children = json.loads(p.communicate(timeout=180)[0])["children"]
    until("the newest process", lambda: re.search(rf"PERF_RECORD_COMM exec: frtest-child:{children[-1]}/", read()))
