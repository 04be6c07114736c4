# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the events flightrec:offcpu, flightrec:waker and flightrec:waiting of a file with stock perf."""
import json
import re
from collections import namedtuple

from harness import must

HEADER = re.compile(r"^\s*(?P<comm>\S.*?|)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<sec>\d+)\.(?P<ns>\d{9}):\s+"
                    r"(?P<period>\d+)\s+(?P<event>\S+):\s+(?P<text>.*)$")
FRAME = re.compile(r"^\s+([0-9a-f]+) (.*)$")
SLEEP = re.compile(r"state=(?P<state>\S+) duration=(?P<duration>[\d.]+)ms blocked=(?P<blocked>[\d.]+)ms "
                   r"runqueue=(?P<runqueue>[\d.]+)ms waker=(?P<waker_comm>.*)\[(?P<waker_pid>-?\d+)/(?P<waker_tid>-?\d+)\] "
                   r"waker_context=(?P<context>\w+)$")
WAKER = re.compile(r"woken=(?P<woken_comm>.*)\[(?P<woken_pid>-?\d+)/(?P<woken_tid>-?\d+)\] slept=(?P<slept>[\d.]+)ms context=(?P<context>\w+)$")
KERNEL = 1 << 63

# "fields" has the fields of the raw data, "user" and "kernel" the names of the functions, the innermost first.
Sample = namedtuple("Sample", "comm pid tid cpu ns period fields kernel user")
Truth = namedtuple("Truth", "pid tid kind function from_ns to_ns cpu_ns waker_tid")


def parse(block, pattern):
    lines = block.splitlines()
    m = HEADER.match(lines[0])
    assert m, f"perf script prints an unknown sample: {block!r}"
    fields = pattern.match(m["text"])
    assert fields, f"perf script prints unknown fields: {m['text']!r}"
    frames = [FRAME.match(line) for line in lines[1:]]
    names = [(int(f[1], 16) >= KERNEL, re.sub(r"@.*", "", f[2].split(" ")[0])) for f in frames]
    return Sample(m["comm"], int(m["pid"]), int(m["tid"]), int(m["cpu"]), int(m["sec"]) * 10**9 + int(m["ns"]), int(m["period"]),
                  fields.groupdict(), [n for k, n in names if k], [n for k, n in names if not k])


def all_samples_of(path):
    """Returns (sleeps, wakers, waits that had not ended): the samples of the three events."""
    out = must("perf", "script", "--ns", "--no-inline", "-i", path, "-F", "comm,pid,tid,cpu,time,event,period,trace,ip,sym",
               timeout=600).out
    blocks = [b for b in out.split("\n\n") if b.strip()]
    return tuple([parse(b, pattern) for b in blocks if f" flightrec:{event}: " in b.split("\n", 1)[0]]
                 for event, pattern in (("offcpu", SLEEP), ("waker", WAKER), ("waiting", SLEEP)))


def samples_of(path):
    """Returns (sleeps, wakers)."""
    return all_samples_of(path)[:2]


def ms(sample, field="duration"):
    return float(sample.fields[field])


def truths(text):
    """Returns what frtest-incident has printed."""
    return [Truth(**json.loads(line)) for line in text.splitlines()]
