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
record() { # NAME FIELDS EVENTS…
    name=$1; fields=$2; shift 2; rm -rf /tmp/d; mkdir /tmp/d
    flightrecd "$@" -m 4M -M 16M -o /tmp/d --socket /tmp/ctl 2>/share/$name.log & recorder=$!
    n=0; until flightrecctl --socket /tmp/ctl status 2>/dev/null | grep -q recording; do
        n=$((n + 1)); kill -0 $recorder && [ $n -lt 600 ] || exit 1; sleep 0.1; done
    frtest-syscalls -n 200 >/dev/null; sleep 0.2
    flightrecctl --socket /tmp/ctl dump >/dev/null || exit 1
    kill $recorder; wait $recorder
    perf script -f -i /tmp/d/perf.data.sample.*Z $fields >/share/$name 2>/dev/null
}
"""


def twice(events, terms=""):
    """Returns options for a recording of each event in both ways. The event with the number N has the names perf-N and bpf-N."""
    return " ".join(f"-e {event}/capture={way},name={way}-{n}{terms}/" for n, event in enumerate(events) for way in ("perf", "bpf"))


@pytest.mark.parametrize("series", kernel.SERIES if FULL else kernel.SERIES[:1])
def test_records_are_those_of_perf(series, tmp_path):
    reason = kernel.missing(series) or (None if shutil.which("perf") else "no perf")
    if reason:
        pytest.skip(reason)
    share = tmp_path / "share"
    share.mkdir()
    programs = [BIN / p for p in ("flightrecd", "flightrecctl", "frtest-syscalls")]
    vm = kernel.MiniVM(kernel.Kernel(series), share, programs=[*programs, shutil.which("perf")], memory=1024)
    fields = "-F comm,event,ip"
    script = f"""{SCRIPT}
record events "-G -F trace:comm,pid,tid,cpu,time,event,trace" {twice(EVENTS)}
record stacks "{fields}" {twice(STACKS, ",call-graph=fp")}
record unwind "{fields}" {" ".join(f"-e {e}/capture=bpf,call-graph=unwind/" for e in EVENTS)}
dmesg
"""
    try:
        out = vm.run(script)
    except (AssertionError, TimeoutError) as e:
        logs = "".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in sorted(share.glob("*.log")))
        raise AssertionError(f"{e}\n{logs}") from None
    assert "frame pointers" not in (share / "unwind.log").read_text()
    assert not re.search(r"WARNING:|BUG:|Oops:", out), out
    found = {}
    for who, name, trace in re.findall(r"^\s*(.*?)\s+[\d.]+:\s+((?:perf|bpf)-\d+):\s*(.*)$", (share / "events").read_text(), re.M):
        if who.startswith("frtest-sysc"):
            found.setdefault(name, Counter())[who, trace] += 1
    for n, event in enumerate(EVENTS):
        by_perf, by_bpf = (found.get(f"{way}-{n}", Counter()) for way in ("perf", "bpf"))
        assert by_perf == by_bpf and by_perf, f"{event}: {by_perf - by_bpf} {by_bpf - by_perf}"
    chains = {}
    for block in (share / "stacks").read_text().split("\n\n"):
        head, *frames = block.strip().splitlines() or [""]
        if head.startswith("frtest-sysc"):
            # With two recorders, perf's chain begins in the function that calls both of them.
            chains.setdefault(head.split()[-1].rstrip(":"), Counter())[len(frames)] += 1
    for n, event in enumerate(STACKS):
        by_perf, by_bpf = (chains.get(f"{way}-{n}", Counter()) for way in ("perf", "bpf"))
        assert sum(by_perf.values()) == sum(by_bpf.values()) > 0, f"{event}: {by_perf} {by_bpf}"
