# SPDX-License-Identifier: GPL-2.0-or-later
"""call-graph=unwind on the kernels of Debian, in QEMU: the BPF programs load, and the stacks of known chains of calls are right.
perf runs in the VM, where the objects are."""
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import kernel
import machine

sys.path.append(str(Path(__file__).parent.parent / "integration"))
import callchains  # noqa: E402

BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
FULL = "FLIGHTREC_FULL" in os.environ
# What a kernel without a fast clock prints is the same; these variants have all kinds of frames.
VARIANTS = ["call", "deep", "vdso", "alloca", "realign", "thread", "fork"]
SECONDS = 15  # the second half of this time counts; on a busy machine, the tables of all loads took more than 5 s
# Other unit tests need libraries that the VM does not have, or are too slow for an emulated processor.
PASS = ["a_new_map_is_noted_and_then_known", "after_an_exec_a_young_process_has_the_maps_of_the_kernel",
        "a_file_that_was_missed_is_known_in_the_next_process", "a_file_that_has_changed_is_not_known", "a_deleted_file_has_a_table",
        "a_forked_process_has_maps_at_once", "the_vdso_has_a_table", "other_objects_share_the_maps"]
PROGRAMS = ["flightrecd", "flightrecctl", "frtest-chain", "frtest-chain-plugin.so"]
SCRIPT = r"""
flightrecd -F 97 -M 4M -o /tmp --socket /tmp/ctl 2>/share/log & recorder=$!
n=0; until flightrecctl --socket /tmp/ctl status 2>/dev/null | grep -q recording; do
    n=$((n + 1)); [ $n -lt 600 ] || exit 1; sleep 0.1; done
# The thread that makes the tables has a low priority, and all loads share a CPU.
loads=; for v in {variants}; do nice -n 19 frtest-chain -t {seconds} $v >/share/truth.$v & loads="$loads $!"; done; wait $loads
flightrecctl --socket /tmp/ctl status --json >/share/status
flightrecctl --socket /tmp/ctl dump >/dev/null || exit 1
kill $recorder; wait $recorder
perf script -f -i /tmp/perf.data.sample.*Z --max-stack 300 --ns -F comm,pid,tid,time,event,ip,sym,dso >/share/script 2>/share/perf.log
"""


@pytest.mark.parametrize("series", kernel.SERIES if FULL else kernel.SERIES[:1])
def test_stacks_are_right(series, tmp_path):
    reason = kernel.missing(series) or (None if shutil.which("perf") else "no perf")
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    vm = kernel.MiniVM(kernel.Kernel(series), share, programs=[*(BIN / p for p in PROGRAMS), *map(shutil.which, ("nice", "perf"))],
                       memory=1024)
    out = vm.run(SCRIPT.format(variants=" ".join(VARIANTS), seconds=SECONDS) + "dmesg\n")
    assert not re.search(r"WARNING:|BUG:|Oops:", out), out
    log = (share / "log").read_text()
    assert "frame pointers" not in log, log
    walks = json.loads((share / "status").read_text())["unwind"]["walks"]
    stacks = [s for s in callchains.parse((share / "script").read_text().splitlines()) if s.frames]
    for t in (json.loads((share / f"truth.{variant}").read_text()) for variant in VARIANTS):
        # The tables are made while the chain already stands.
        mine = [s for s in stacks if s.tid == t["tid"] and (t["from_ns"] + t["to_ns"]) / 2 < s.ns < t["to_ns"]]
        chains = ["".join(f"{callchains.name_of(f)};" for f in s.frames) for s in mine]
        wrong = [c for c in chains if not re.fullmatch(t["expected"], c)]
        assert len(chains) >= 20 and not wrong, (t["variant"], len(chains), wrong[:3], walks)


@pytest.mark.parametrize("series", kernel.SERIES if FULL else kernel.SERIES[:1])
def test_unit_tests_of_the_unwinder(series, tmp_path):
    """These kernels can run BPF programs at the exit of kernel functions, which some hosts cannot."""
    reason = kernel.missing(series)
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    programs = [BIN / "test-unwind-unwinder", "/usr/bin/sleep", "/usr/bin/true"]
    out = kernel.MiniVM(kernel.Kernel(series), share, programs=programs, memory=1024).run("test-unwind-unwinder 2>&1; dmesg", limit=400)
    assert not re.search(r"WARNING:|BUG:|Oops:", out), out
    missing = [name for name in PASS if f"OK ] test_{name}" not in out]
    assert not missing, (missing, out)
