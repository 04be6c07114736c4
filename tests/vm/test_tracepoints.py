# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracepoints through BPF on the kernels of Debian, in QEMU: the programs load, and their records are those of perf."""
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import kernel
import machine

FULL = "FLIGHTREC_FULL" in os.environ
BIN = Path(os.environ.get("FLIGHTREC_BIN", machine.BUILD / "dev/bin"))
EVENTS = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "sched:sched_switch", "sched:sched_waking", "syscalls:sys_enter_write",
          "syscalls:sys_exit_write", "kmem:kmalloc", "sched:sched_process_exec"]
STACKS = ["raw_syscalls:sys_exit", "sched:sched_waking", "syscalls:sys_enter_write", "kmem:kmalloc"]
SCRIPT = r"""
record() { # NAME EVENTS…
    name=$1; shift; rm -rf /tmp/d; mkdir /tmp/d
    flightrecd "$@" -m 4M -M 16M -o /tmp/d --socket /tmp/ctl 2>/share/$name.log & recorder=$!
    n=0; until flightrecctl --socket /tmp/ctl status 2>/dev/null | grep -q recording; do
        n=$((n + 1)); kill -0 $recorder && [ $n -lt 600 ] || exit 1; sleep 0.1; done
    frtest-syscalls -n 200 >/dev/null; sleep 0.2
    flightrecctl --socket /tmp/ctl dump >/dev/null || exit 1
    kill $recorder; wait $recorder
    perf script -f -i /tmp/d/perf.data.sample.*Z -G -F trace:comm,pid,tid,cpu,time,event,trace >/share/$name 2>/dev/null
    perf script -f -i /tmp/d/perf.data.sample.*Z -F comm,event,ip >/share/$name.chains 2>/dev/null
}
"""


def twice(event, terms=""):
    return " ".join(f"-e {event}/capture={way},name={way}{terms}/" for way in ("perf", "bpf"))


@pytest.mark.parametrize("series", kernel.SERIES if FULL else kernel.SERIES[:1])
def test_records_are_those_of_perf(series, tmp_path):
    reason = kernel.missing(series) or (None if shutil.which("perf") else "no perf")
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    programs = [BIN / p for p in ("flightrecd", "flightrecctl", "frtest-syscalls")]
    vm = kernel.MiniVM(kernel.Kernel(series), share, programs=[*programs, shutil.which("perf")], memory=1024)
    script = SCRIPT + "".join(f"record {i} {twice(e)}\n" for i, e in enumerate(EVENTS)) + \
        "".join(f"record s{i} {twice(e, ',call-graph=fp')}\n" for i, e in enumerate(STACKS))
    unwind = "".join(f"-e {e}/capture=bpf,call-graph=unwind/ " for e in EVENTS)
    try:
        out = vm.run(f"{script}record unwind {unwind}\ndmesg\n")
    except (AssertionError, TimeoutError) as e:
        logs = "".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(share.glob("*.log")))
        raise AssertionError(f"{e}\n{logs}") from None
    assert "frame pointers" not in (share / "unwind.log").read_text()
    assert not re.search(r"WARNING:|BUG:|Oops:", out), out
    for i, event in enumerate(EVENTS):
        found = re.findall(r"^\s*(.*?)\s+[\d.]+:\s+(perf|bpf):\s*(.*)$", (share / str(i)).read_text(), re.M)
        ways = [Counter((who, trace) for who, way, trace in found if way == w and who.startswith("frtest-sysc")) for w in ("perf", "bpf")]
        assert ways[0] == ways[1] and ways[0], f"{event}: {ways[0] - ways[1]} {ways[1] - ways[0]}"
    for i, event in enumerate(STACKS):
        ways = {"perf": Counter(), "bpf": Counter()}
        for block in (share / f"s{i}.chains").read_text().split("\n\n"):
            head, *frames = block.strip().splitlines() or [""]
            if head.startswith("frtest-sysc"):
                # With two recorders, perf's chain begins in the function that calls both of them.
                ways[head.split()[-1].rstrip(":")][len(frames)] += 1
        assert sum(ways["perf"].values()) == sum(ways["bpf"].values()) > 0, f"{event}: {ways}"
