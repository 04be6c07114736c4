# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks by tables in processes that are so young that side-band has not reached the recorder."""
import time

from harness import chains, load, program

COUNT, MS = 60, 20
ONE = ["frtest_one_spin", "frtest_one_outer", "main"]
TWO = ["frtest_two_spin", "frtest_two_middle", "frtest_two_outer", "main"]


def take_turns():
    return load("turn-one", COUNT, MS, program("frtest-turn-two"))


def user_part(chain):
    """Returns the part of a call chain from the first known function on."""
    for i, symbol in enumerate(chain):
        if symbol.startswith("frtest_") or symbol == "main":
            return chain[i:]
    return []


def test_programs_that_live_for_a_moment_have_whole_stacks(recorder):
    d = recorder("-e", "cpu-clock", "-F", "499", "--call-graph", "unwind", "-M", "32M")
    for _ in range(3):  # the recorder learns the files, and makes the tables
        take_turns()
        time.sleep(1.5)
    did = take_turns()
    found = [chain for chain in map(user_part, chains(d.dump_by_control(), did["pid"])) if chain]
    assert len(found) > COUNT * MS * 499 / 1000 / 2
    for chain in found:
        names = {symbol.split("_")[1] for symbol in chain if symbol.startswith("frtest_")}
        assert len(names) <= 1, f"a stack with functions of both programs: {chain}"
    spins = [chain for chain in found if chain[0].endswith("_spin")]
    whole = [chain for chain in spins
             if chain[-1] == "_start" and (chain[:len(ONE)] == ONE or chain[:len(TWO)] == TWO)]
    assert len(spins) > 0.8 * len(found)
    assert len(whole) >= 0.97 * len(spins), (len(whole), len(spins), [c for c in spins if c not in whole][:5])
    for name in ("one", "two"):
        assert sum(name in chain[0] for chain in whole) > 0.3 * len(whole)
