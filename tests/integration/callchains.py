# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the user stacks of a file with stock perf, and judges them.

A stack is whole if its outermost frame is the start of a program or of a thread. All other stacks are broken: the unwinder lost
its way. is_start() is the only definition of such a start.
"""
import bisect
import contextlib
import re
import statistics
import struct
import subprocess
from collections import Counter, defaultdict, namedtuple
from functools import lru_cache
from pathlib import Path

from harness import environment, run, start

KERNEL = 1 << 63
HEADER = re.compile(r"^\s*(?P<comm>\S.*?|)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<sec>\d+)\.(?P<ns>\d{9}):\s+"
                    r"(?P<event>\S.*?):(?:\s*|\s+[0-9a-f]+ .*)$")
FRAME = re.compile(r"^\t\s*([0-9a-f]+) (.*) \(((?:[^()]|\(deleted\))*)\)$")

# "frames" has only the user frames, the innermost first. "kernel" is the number of kernel frames.
Stack = namedtuple("Stack", "comm pid tid ns event frames kernel")
Frame = namedtuple("Frame", "ip symbol dso")

# --- what is the start of a program or of a thread --------------------------------------------------------------

# The C library: entry of a program, of a thread, and of a program in the dynamic linker. Go: entry of a program, of a goroutine
# and of a thread, and the switches to another stack, below which Go's own unwinder sees nothing either.
STARTS = {"_start", "_dl_start_user", "start_thread", "clone", "__clone", "clone3", "__clone3", "thread_start",
          "runtime.goexit", "runtime.goexit.abi0", "runtime.rt0_go", "runtime.rt0_go.abi0", "runtime.mstart",
          "runtime.mstart.abi0", "runtime.mcall", "runtime.systemstack", "runtime.systemstack.abi0", "runtime.morestack",
          "runtime.morestack.abi0", "runtime.sigtramp", "runtime.sigtramp.abi0"}
STARTS_LIKE = re.compile(r"^(__libc_start_main|__libc_start_call_main|_rt0_)")
PAGE = 4096
MEMORY = 1 << 36  # objects are smaller than this, and in memory they have greater addresses


def name_of(frame):
    """Returns the name of the function of a frame, without the version of the symbol."""
    return frame.symbol if frame.symbol.endswith("@plt") else frame.symbol.split("@", 1)[0]


def is_start(frame):
    """Says whether a frame is the start of a program or of a thread: by its name, or if perf has no name for it, by its address
    (see outermost_functions())."""
    name = name_of(frame)
    if name in STARTS or STARTS_LIKE.match(name):
        return True
    # Stripped objects: perf knows no name, or takes the name of an exported function before the right one. It prints addresses
    # in the file. Only for memory without a symbol, or in later versions, it prints addresses in memory.
    if frame.ip < MEMORY:
        return any(begin <= frame.ip < end for begin, end in outermost_functions(frame.dso))
    return any(begin % PAGE <= frame.ip % PAGE < begin % PAGE + end - begin for begin, end in outermost_functions(frame.dso))


@lru_cache(maxsize=None)
def outermost_functions(path):
    """Returns the functions of a stripped ELF object that have no caller, as offsets in the file (begin, end).

    These are the functions whose call frame information says so (the return address is "undefined"), the entry point, and the
    functions of Go's own table whose names are in STARTS. Returns nothing for an object with a symbol table, whose names perf
    knows."""
    sections = section_table(path)
    if not sections or ".symtab" in sections:
        return ()
    found = [*undefined_callers(path), *go_starts(path, sections)]
    entry = re.search(r"Entry point address:\s+0x([0-9a-f]+)", run("readelf", "-hW", path).out)
    if entry and int(entry[1], 16):
        found.append((int(entry[1], 16), int(entry[1], 16) + 48))  # _start of x86-64 has 34 or 38 bytes
    shifts = [(address, address + size, offset - address) for address, offset, size in sections.values() if address]
    return tuple((begin + shift, end + shift) for begin, end in found for low, high, shift in shifts if low <= begin < high)


@lru_cache(maxsize=None)
def section_table(path):
    """Returns {name: (address, offset, size)} of the sections of an ELF object; nothing if PATH is no ELF object."""
    if not Path(path).is_file():
        return {}
    rows = re.findall(r"^\s*\[ *\d+\] (\S+)\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", run("readelf", "-SW", path).out, re.M)
    return {name: tuple(int(x, 16) for x in numbers) for name, *numbers in rows}


def undefined_callers(path):
    pc = None
    p = start("readelf", "--debug-dump=frames", path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in p.stdout:
        if " FDE " in line:
            pc = re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        elif pc and "DW_CFA_undefined: r16" in line:
            yield int(pc[1], 16), int(pc[2], 16)
            pc = None
    p.wait()


def go_starts(path, sections):
    """Yields the functions of Go's table (.gopclntab of Go 1.18 and later) whose names are in STARTS."""
    if ".gopclntab" not in sections:
        return
    _, offset, size = sections[".gopclntab"]
    with open(path, "rb") as f:
        f.seek(offset)
        table = f.read(size)
    if table[:4] not in (b"\xf0\xff\xff\xff", b"\xf1\xff\xff\xff") or table[7] != 8:
        return
    n, _, text, names, *_, functions = struct.unpack_from("<8Q", table, 8)
    rows = struct.unpack_from(f"<{2 * n + 1}I", table, functions)
    for i in range(0, 2 * n, 2):
        name = names + struct.unpack_from("<i", table, functions + rows[i + 1] + 4)[0]
        if table[name:table.index(b"\0", name)].decode() in STARTS:
            yield text + rows[i], text + rows[i + 2]


# --- reading ------------------------------------------------------------------------------------------------------


def new_stack(m, frames):
    users = [f for f in frames if f.ip < KERNEL]
    return Stack(m["comm"], int(m["pid"]), int(m["tid"]), int(m["sec"]) * 10**9 + int(m["ns"]), m["event"], users,
                 len(frames) - len(users))


def parse(lines):
    """Yields the Stacks of the text that perf script prints. A sample of an event without call chains has no frames."""
    header, frames = None, []
    for line in lines:
        frame, begin = FRAME.match(line), HEADER.match(line)
        if frame and header:
            frames.append(Frame(int(frame[1], 16), frame[2], frame[3]))
        elif begin:
            if header:
                yield new_stack(header, frames)
            header, frames = begin, []
    if header:
        yield new_stack(header, frames)


def read(path, *, pids=None, comms=None, event=None, options=(), may_fail=False):
    """Returns the Stacks of a file: all, or those of the processes PIDS, of the names COMMS, and of the events whose name begins
    with EVENT. OPTIONS are more options of perf. If MAY_FAIL is true, perf script may end early, which perf 6.1 does with some
    files of its own."""
    more = ["--pid", ",".join(map(str, sorted(pids)))] if pids else []
    more += ["--comms", ",".join(comms)] if comms else []
    p = start("perf", *options, "script", "--ns", "--no-inline", "--max-stack", "1024", "-i", path, *more, "-F",
              "comm,pid,tid,time,event,ip,sym,dso", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
              errors="surrogateescape", env=environment(HOME="/root"))
    stacks = list(parse(p.stdout))
    assert p.wait() == 0 or may_fail, f"perf script -i {path}: exit code {p.returncode}"
    return [s for s in stacks if event is None or s.event.startswith(event)]


# --- judging ------------------------------------------------------------------------------------------------------


def is_whole(stack):
    return bool(stack.frames) and is_start(stack.frames[-1])


def summary(stacks):
    """Returns figures of STACKS. A sample without user frames is not a broken stack, because at its exit a process has no user
    stack; it counts as "without"."""
    users = [s for s in stacks if s.frames]
    broken = [s for s in users if not is_whole(s)]
    return {"samples": len(stacks), "without": len(stacks) - len(users), "broken": len(broken),
            "broken_percent": 100 * len(broken) / len(users) if users else None,
            "median_depth": statistics.median(len(s.frames) for s in users) if users else None,
            "ends": Counter(f"{name_of(s.frames[-1])} ({Path(s.frames[-1].dso).name})" for s in broken).most_common(5)}


def names(stack):
    """Returns the names of the frames, with ";" after each one, the innermost frame first."""
    return "".join(f"{name_of(f)};" for f in stack.frames)


# --- two stacks of the same occurrence ----------------------------------------------------------------------------


def pair(firsts, seconds):
    """Pairs the stacks of two events that happen at once, such as page-faults/call-graph=dwarf/ and page-faults. The kernel
    serves the two events of one occurrence one after the other, always in the same order on one CPU. So the stack that follows
    the other one before the next occurrence is its partner. Returns the pairs."""
    def in_order(a, b):
        pairs, later = [], defaultdict(list)
        for s in b:
            later[s.tid].append(s)
        nexts = defaultdict(list)
        for s in a:
            nexts[s.tid].append(s)
        for tid, mine in nexts.items():
            mine.sort(key=lambda s: s.ns)
            others = sorted(later[tid], key=lambda s: s.ns)
            times = [s.ns for s in others]
            for s, n in zip(mine, [*mine[1:], None]):
                i = bisect.bisect_left(times, s.ns)
                if i < len(others) and (n is None or times[i] < n.ns):
                    pairs.append((s, others[i]))
        return pairs

    def same_leaf(pairs):
        return sum(bool(a.frames and b.frames) and a.frames[0].ip == b.frames[0].ip for a, b in pairs)

    one = in_order(firsts, seconds)
    two = [(a, b) for b, a in in_order(seconds, firsts)]
    return max(one, two, key=same_leaf)


def equal_frames(a, b):
    """Returns how many frames the stacks A and B have in common, from the innermost on. For return addresses, a recorder may give
    the address or the address minus 1. (perf prints addresses in the object.)"""
    n = 0
    for x, y in zip(a.frames, b.frames):
        if abs(x.ip - y.ip) > 1 or x.dso != y.dso:
            break
        n += 1
    return n


def compare(pairs):
    """Compares pairs (reference, candidate). Returns figures; "differ" says after which frame the candidate goes wrong if the
    reference is whole."""
    result = {"pairs": len(pairs), "equal": 0, "reference_whole": 0, "equal_to_whole": 0, "only_candidate_whole": 0,
              "longer_than_whole": 0, "frames": 0, "equal_frames": 0}
    differ = Counter()
    for a, b in pairs:
        n, whole = equal_frames(a, b), is_whole(a)
        same = n == len(a.frames) == len(b.frames)
        result["equal"] += same
        result["only_candidate_whole"] += not whole and is_whole(b)
        if not whole:
            continue
        result["reference_whole"] += 1
        result["equal_to_whole"] += same
        result["longer_than_whole"] += n == len(a.frames) < len(b.frames) and is_whole(b)
        result["frames"] += len(a.frames)
        result["equal_frames"] += n
        if not same:
            last = a.frames[n - 1] if n else None
            differ[f"{name_of(last)} ({Path(last.dso).name})" if last else "the innermost frame"] += 1
    return {**result, "differ": differ.most_common(10)}


def text(figures):
    """Returns figures as one line of text."""
    return ", ".join(f"{k.replace('_', ' ')} {v:.2f}" if isinstance(v, float) else f"{k.replace('_', ' ')} {v}"
                     for k, v in figures.items())
