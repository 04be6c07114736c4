# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what flightrec-report exports, by other programs where there is one, and brings all formats into one form.

A profile is {event: Events}. Events has the number of samples, the sum of their periods, and the stacks, as {(function, …):
number}, the innermost function first."""
import functools
import importlib.util
import json
import re
import shutil
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from harness import ROOT, environment, must, perf, program, run

READERS = ROOT / "tests/readers"
MODULES = ROOT / "build/readers/node_modules"  # of ./dev install
PERFPARSER = Path("/usr/lib/x86_64-linux-gnu/libexec/hotspot-perfparser")
FORMATS = ("folded", "pprof", "perfetto", "speedscope", "firefox")

Sample = namedtuple("Sample", "comm pid tid cpu ns period event frames")
Frame = namedtuple("Frame", "ip symbol offset object")
HEADER = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<sec>\d+)\.(?P<ns>\d{9}):\s+"
                    r"(?P<period>\d+)\s+(?P<event>\S+):\s*")
# The object of a file that is gone ends with " (deleted)".
FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<symbol>.*?)(?:\+0x(?P<offset>[0-9a-f]+))? \((?P<object>(?:[^()]|\(deleted\))*)\)$")


@dataclass
class Events:
    samples: int = 0
    period: int = 0
    stacks: Counter = field(default_factory=Counter)

    def add(self, samples, period, stack=None):
        self.samples += samples
        self.period += period
        if stack is not None and samples:
            self.stacks[tuple(stack)] += samples


def sums(profile):
    return {event: (e.samples, e.period) for event, e in profile.items() if e.samples}


def stacks(profile):
    return {event: e.stacks for event, e in profile.items() if e.samples}


# --- stock perf ---


def parse_sample(block):
    header, *lines = block.split("\n")
    m, frames = HEADER.fullmatch(header), [FRAME.match(line) for line in lines]
    assert m and all(frames), f"perf script prints an unknown sample: {block!r}"
    # At the very end of its exit, a thread has the number -1.
    return Sample(m["comm"], int(m["pid"]) % 2**32, int(m["tid"]) % 2**32, int(m["cpu"]), int(m["sec"]) * 10**9 + int(m["ns"]),
                  int(m["period"]), m["event"],
                  [Frame(int(f["ip"], 16), f["symbol"], f["offset"] and int(f["offset"], 16), f["object"]) for f in frames])


FIELDS = "comm,pid,tid,cpu,time,period,event"


@functools.lru_cache
def perf_samples(path):
    """Returns all Samples of a file, in the order of time, without their frames: other tests have programs and functions with
    names that nobody can parse."""
    r = perf("script", "-i", path, "--ns", "-G", "-F", FIELDS)
    assert r.code == 0, r.err
    return [parse_sample(line) for line in r.out.splitlines()]


@functools.lru_cache
def perf_stacks(path, pids):
    """Returns the Samples of the processes PIDS (a tuple) with their frames."""
    r = perf("script", "-i", path, "--ns", "--no-inline", "--max-stack", "8192", "--pid", ",".join(map(str, pids)), "-F",
             FIELDS + ",ip,sym,symoff,dso")
    assert r.code == 0, r.err
    return [parse_sample(block) for block in r.out.split("\n\n") if block.strip()]


def perf_profile(path, keep=lambda s: True):
    """Returns the profile of the Samples for which KEEP is true, without stacks."""
    profile = {}
    for s in filter(keep, perf_samples(path)):
        profile.setdefault(s.event, Events()).add(1, s.period)
    return profile


# --- exports ---


def export(dump, kind, to, *args):
    """Exports DUMP to the file TO, without inlined functions, which perf does not show here either. Returns TO."""
    must(program("flightrec-report"), "export", "-q", "--no-inline", f"--format={kind}", "-o", to, *args, dump)
    return to


def events_of(dump):
    lines = must("perf", "evlist", "-i", dump).out.splitlines()
    return [line for line in lines if line and not line.startswith(("#", "dummy"))]


def read_folded(dump, to, *args, events=None):
    """The format has one number for each stack, and one event. So there is an export for each event and weight."""
    profile = {}
    for event in events or events_of(dump):
        e = profile[event] = Events()
        for line in folded_lines(export(dump, "folded", to, "--weight=samples", f"--event={event}", *args)):
            e.add(line[1], 0, reversed(line[0][1:]))
        e.period = sum(n for _, n in folded_lines(export(dump, "folded", to, "--weight=periods", f"--event={event}", *args)))
    return profile


def folded_lines(path):
    """Returns [([thread, outermost function, …, innermost function], number), …]."""
    with open(path) as f:
        found = [line.rstrip("\n").rsplit(" ", 1) for line in f]
    return [(stack.split(";"), int(n)) for stack, n in found]


# The events of values with other names in pprof.
PPROF_NAMES = {"cpu": "cpu-clock", "off-cpu": "flightrec:offcpu", "waker": "flightrec:waker", "waiting": "flightrec:waiting",
               "trigger": "flightrec:trigger"}


def go_pprof(*args):
    return must("go", "tool", "pprof", *args, env=environment(HOME="/tmp", PPROF_TMPDIR="/tmp"))


def pprof_types(text):
    """Returns [(event, whether it is the number of samples, unit, whether it is the default), …]."""
    words = re.search(r"^Samples:\n(.*)$", text, re.M)[1].split()
    found = []
    for word in words:
        name, unit = re.sub(r"\[dflt\]$", "", word).rsplit("/", 1)
        if name == "samples":
            name = "cpu-samples"
        event = re.sub(r"-samples$", "", name) if unit == "count" else name
        found.append((PPROF_NAMES.get(event, event), unit == "count", unit, word.endswith("[dflt]")))
    return found


def read_pprof(dump, to, *args):
    """The text of go tool pprof: the values and the numbers of the locations of each sample, then the locations."""
    text = go_pprof("-raw", export(dump, "pprof", to, *args)).out
    types = pprof_types(text)
    names = {int(n): name for n, name in re.findall(r"^ +(\d+): 0x0 (?:M=\d+ )?(.*) :0(?::0)? s=0", text, re.M)}
    profile = {event: Events() for event, *_ in types}
    for values, ids in re.findall(r"^ +(\d+(?: +\d+)*):((?: \d+)*) *$", text.split("Locations\n")[0], re.M):
        stack = [names.get(int(i), "?") for i in ids.split()]
        numbers = list(map(int, values.split()))
        for (event, is_count, *_), n in zip(types, numbers):
            if is_count:
                profile[event].add(n, 0, stack)
            else:
                profile[event].add(0, n)
    return profile


@functools.lru_cache
def perfetto_messages():
    """Returns the module that protoc makes of perfetto.proto."""
    folder = Path(must("mktemp", "-d").out.strip())
    try:
        must("protoc", f"-I{READERS}", f"--python_out={folder}", READERS / "perfetto.proto")
        spec = importlib.util.spec_from_file_location("perfetto_pb2", folder / "perfetto_pb2.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        shutil.rmtree(folder)
    return module


def read_trace(path):
    trace = perfetto_messages().Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


FTRACE = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new")


class Sequence:
    """What a sequence of packets has defined so far, and the counters of its CPUs."""

    def __init__(self, event):
        self.event, self.strings, self.frames, self.stacks, self.counts = event, {}, {}, {}, {}

    def define(self, data):
        self.strings.update({s.iid: s.str.decode() for s in data.function_names})
        self.frames.update({f.iid: f.function_name_id for f in data.frames})
        self.stacks.update({s.iid: list(s.frame_ids) for s in data.callstacks})

    def stack(self, iid):
        return [self.strings[self.frames[f]] for f in reversed(self.stacks[iid])] if iid else []


def read_perfetto(dump, to, *args):
    profile, sequences = {}, {}
    for p in read_trace(export(dump, "perfetto", to, *args)).packet:
        key = p.trusted_packet_sequence_id
        if p.HasField("trace_packet_defaults"):
            sequences[key] = Sequence(p.trace_packet_defaults.perf_sample_defaults.timebase.name)
        if p.HasField("interned_data"):
            sequences[key].define(p.interned_data)
        if p.HasField("perf_sample"):
            s, q = p.perf_sample, sequences[key]
            period = s.timebase_count - q.counts.get(s.cpu, 0)
            q.counts[s.cpu] = s.timebase_count
            profile.setdefault(q.event, Events()).add(1, period, q.stack(s.callstack_iid))
        for e in p.ftrace_events.event:
            event, = (name for name in FTRACE if e.HasField(name))
            profile.setdefault(f"sched:{event}", Events()).add(1, 1)
        if p.HasField("track_event") and p.track_event.type == 3:
            profile.setdefault("flightrec:trigger", Events()).add(1, 1)
    return profile


def speedscope_parts(path):
    """Returns (pid, tid, event, [(stack, weight), …]) for each part of the file, in the order of time."""
    data = json.loads(Path(path).read_text())
    frames = [f["name"] for f in data["shared"]["frames"]]
    for p in data["profiles"]:
        m = re.match(r".* (\d+)/(\d+), (\S+)$", p["name"], re.S)
        assert len(p["samples"]) == len(p["weights"]) and sum(p["weights"]) == p["endValue"] - p["startValue"]
        yield int(m[1]), int(m[2]), m[3], [([frames[i] for i in reversed(s)], w) for s, w in zip(p["samples"], p["weights"])]


def read_speedscope(dump, to, *args):
    profile = {}
    for *_, event, samples in speedscope_parts(export(dump, "speedscope", to, *args)):
        for stack, weight in samples:
            profile.setdefault(event, Events()).add(1, weight, stack)
    return profile


def import_by_speedscope(path):
    """Returns what the importer of speedscope finds: a list of {"name", "unit", "weight", "stacks"}."""
    r = run("node", READERS / "speedscope.js", MODULES, path)
    assert r.code == 0, r.err
    return json.loads(r.out)


# The tables of a thread of Firefox Profiler (src/types/profile.ts, version 49). A column is a table's name if its values are
# numbers of rows of that table, or None if they are not; "?" says that a value can be null.
TABLES = {
    "frameTable": {"func": "funcTable", "category": "categories", "subcategory": None, "address": None, "inlineDepth": None,
                   "nativeSymbol": "nativeSymbols?", "innerWindowID": None, "implementation": "stringArray?", "line": None, "column": None},
    "funcTable": {"name": "stringArray", "resource": "resourceTable", "isJS": None, "relevantForJS": None, "fileName": "stringArray?",
                  "lineNumber": None, "columnNumber": None},
    "resourceTable": {"name": "stringArray", "lib": "libs?", "host": "stringArray?", "type": None},
    "stackTable": {"prefix": "stackTable?", "frame": "frameTable", "category": "categories", "subcategory": None},
    "nativeSymbols": {"libIndex": "libs", "address": None, "name": "stringArray", "functionSize": None},
    "markers": {"data": None, "name": "stringArray", "startTime": None, "endTime": None, "phase": None, "category": "categories"},
    "samples": {"stack": "stackTable?", "time": None, "weight": None}}


def check_thread(profile, thread):
    """Checks that each column of each table has the length of the table, and that each number of a row is one."""
    rows = {name: thread[name]["length"] for name in TABLES}
    rows.update(stringArray=len(thread["stringArray"]), libs=len(profile["libs"]), categories=len(profile["meta"]["categories"]))
    for table, columns in TABLES.items():
        assert set(columns) == set(thread[table]) - {"length", "weightType"}, table
        for name, of in columns.items():
            column = thread[table][name]
            assert len(column) == rows[table], (table, name)
            for value in column if of else ():
                assert (value is None and of.endswith("?")) or 0 <= value < rows[of.rstrip("?")], (table, name, value)
    for i, prefix in enumerate(thread["stackTable"]["prefix"]):
        assert prefix is None or prefix < i, "a stack comes behind the stack of its caller"
    times = thread["samples"]["time"]
    assert times == sorted(times) and times[0] >= 0
    assert isinstance(thread["pid"], str) and isinstance(thread["tid"], int)


def read_firefox(dump, to, *args):
    data = json.loads(export(dump, "firefox", to, *args).read_text(), parse_float=Decimal)
    profile = {}
    assert data["meta"]["preprocessedProfileVersion"] == 49
    for thread in data["threads"]:
        check_thread(data, thread)
        table, functions = thread["stackTable"], thread["funcTable"]["name"]
        names = [thread["stringArray"][functions[f]] for f in thread["frameTable"]["func"]]
        e = profile.setdefault(thread["name"].rsplit(", ", 1)[1], Events())
        unit = 10**6 if thread["samples"]["weightType"] == "tracing-ms" else 1
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            frames = []
            while stack is not None:
                frames.append(names[table["frame"][stack]])
                stack = table["prefix"][stack]
            e.add(1, int(weight * unit), frames)
    return profile


READ = {"folded": read_folded, "pprof": read_pprof, "perfetto": read_perfetto, "speedscope": read_speedscope, "firefox": read_firefox}


def read(dump, kind, to, *args, **kwargs):
    return READ[kind](dump, to, *args, **kwargs)


def missing(kind):
    """Returns what this machine lacks for the reader of a format, or None."""
    if kind == "pprof" and not shutil.which("go"):
        return "no go tool pprof: the package golang-go is missing"
    if kind == "perfetto" and not shutil.which("protoc"):
        return "the package protobuf-compiler is missing"
    if kind == "perfetto" and not importlib.util.find_spec("google.protobuf"):
        return "the package python3-protobuf is missing"
    if kind == "import" and not (MODULES / "speedscope").exists():
        return f"no speedscope in {MODULES}: ./dev install installs it from the npm registry"
    if kind == "hotspot" and not PERFPARSER.exists():
        return "the package hotspot is missing"
    return None


SAMPLE_TYPES = 13, 14  # of hotspot's stream: a sample, and a sample of a tracepoint


def count_hotspot_samples(path):
    """Counts the samples in the stream that hotspot-perfparser writes: messages with their size in front, which begin with
    their type."""
    data, n, at = Path(path).read_bytes(), 0, 16  # behind a word and the version
    assert data.startswith(b"QPERFSTREAM\0")
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "little")
        n += data[at + 4] in SAMPLE_TYPES
        at += 4 + size
    assert at == len(data)
    return n
