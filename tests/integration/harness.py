# SPDX-License-Identifier: GPL-2.0-or-later
"""Starting flightrecd, talking to it, and asking stock perf what stands in its files.

Every limit of time here is for what hangs: a machine may be slow, or have better things to do."""
import ctypes
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("FLIGHTREC_BIN", ROOT / "build/dev/bin"))
EXIT = {"ok": 0, "error": 1, "usage": 2, "unreachable": 3, "salvaged": 3, "suppressed": 4, "permission": 5, "no-space": 6, "partly": 7}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
# What flightrecd arms without a section.
ARMED_PROBES = ("hung-task", "soft-lockup", "oom-kill")


def program(name):
    path = BIN / name
    assert path.exists(), f"{path} is not built: ./dev build, or set FLIGHTREC_BIN"
    return str(path)


def last_cpu():
    """A CPU for a pinned load; the last, as interrupts prefer the first."""
    return max(os.sched_getaffinity(0))


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(**more):
    """perf and the programs as on a machine where nobody has configured anything."""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent", "PERF_CONFIG": "/dev/null"}
    env.update(more)
    return env


Result = namedtuple("Result", "code out err")


def run(*argv, timeout=180, cwd=None, env=None, preexec=die_with_parent, text=None):
    """A program to its end: exit code, standard output, standard error."""
    stdin = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
    p = subprocess.run([str(a) for a in argv], **stdin, capture_output=True, text=True, errors="replace",
                       timeout=timeout, cwd=cwd, env=env or environment(), preexec_fn=preexec)
    return Result(p.returncode, p.stdout, p.stderr)


def must(*argv, **kwargs):
    r = run(*argv, **kwargs)
    assert r.code == 0, f"{' '.join(map(str, argv))}: exit code {r.code}\n{r.err}\n{r.out[-2000:]}"
    return r


def start(*argv, **kwargs):
    """A program in the background; dies with the tests."""
    kwargs.setdefault("env", environment())
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(a) for a in argv], preexec_fn=die_with_parent, **kwargs)


def load(name, *args, timeout=180):
    """A load program to its end; what it says of itself."""
    return json.loads(must(program(f"frtest-{name}"), *args, timeout=timeout).out)


def start_load(name, *args):
    return start(program(f"frtest-{name}"), *args, stdout=subprocess.PIPE, text=True)


def finish_load(p):
    out, _ = p.communicate(timeout=180)
    assert p.returncode == 0
    return json.loads(out)


class Steps:
    """A program that does so much for each byte of its input and answers each with a byte: so there is as much work between
    two things that a test does as the test gives, and not as the machine is fast."""

    AHEAD = 2

    def __init__(self, *argv):
        self.process = start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.ahead = 0

    def fill(self, wait=False):
        """Gives steps until AHEAD are not done yet; WAIT: one of those from before has to be done first."""
        while self.ahead and select.select([self.process.stdout], [], [], 180 if wait else 0)[0]:
            done = os.read(self.process.stdout.fileno(), self.ahead if not wait else 1)
            assert done, "the load ended"
            self.ahead -= len(done)
            wait = False
        assert not wait or not self.ahead, "a step of the load does not come to its end"
        self.process.stdin.write(b"." * (self.AHEAD - self.ahead))
        self.ahead = self.AHEAD

    def finish(self):
        """All steps done, and what the program says of itself."""
        out, _ = self.process.communicate(timeout=180)
        assert self.process.returncode == 0
        return json.loads(out[self.ahead:])


def until(what, condition, seconds=60):
    """The first value of CONDITION that is true; an assertion about WHAT after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"after {seconds} s still no {what}"
        time.sleep(0.02)


class NotifySocket:
    """The other end of sd_notify(): an abstract datagram socket, so there is no path to be too long or left over."""

    count = 0

    def __init__(self):
        NotifySocket.count += 1
        self.name = f"flightrec-notify-{os.getpid()}-{NotifySocket.count}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind("\0" + self.name)
        self.lines = []

    @property
    def address(self):
        return "@" + self.name

    def status(self):
        """The newest STATUS=, or nothing."""
        return next((x.removeprefix("STATUS=") for x in reversed(self.lines) if x.startswith("STATUS=")), "")

    def wait(self, what, has_come, alive, seconds):
        """True once has_come(); False where alive() says that nobody can send it any more."""
        end, gone = time.monotonic() + seconds, False
        while not has_come():
            ready, _, _ = select.select([self.socket], [], [], 0.05)
            if ready:
                self.lines += self.socket.recv(65536).decode(errors="replace").splitlines()
            elif gone:
                return False
            else:
                gone = not alive()  # what it said before that may still be to be read
            assert time.monotonic() < end, f"no {what} within {seconds} s; got {self.lines}"
        return True

    def listen(self):
        """Take all that comes from now on, so that nobody waits for us to read it."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while data := self.socket.recv(65536):
            self.lines += data.decode(errors="replace").splitlines()

    def until_fed(self, times):
        """The watchdog was fed that often from now on."""
        before = self.lines.count("WATCHDOG=1")
        until("food for the watchdog", lambda: self.lines.count("WATCHDOG=1") >= before + times)

    def close(self):
        self.socket.close()


class Daemon:
    """One flightrecd in the foreground, with its own directory and socket in it."""

    def __init__(self, directory, *args, command=None, binary=None, env=None, prefix=(), socket_path=None,
                 watchdog=False, armed=True):
        self.directory = Path(directory)
        self.socket = socket_path or self.directory / "control"
        self.args = [str(a) for a in args]
        self.command = [str(a) for a in command or []]
        self.binary = binary or program("flightrecd")
        self.extra_env = env or {}
        self.prefix = [str(a) for a in prefix]
        self.log_path = self.directory.parent / f"{self.directory.name}.flightrecd.{id(self)}.log"
        self.process = None
        self.watchdog = watchdog  # it is to be fed: until_fed() of .notify
        self.notify = None
        self.armed = armed  # start() waits for that

    def quiet(self):
        """A configuration in which nothing that happens on the machine makes dumps that a test did not ask for."""
        if self.command or "--config" in self.args:
            return []
        path = self.directory.parent / f"{self.directory.name}.quiet.conf"
        probes = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
        path.write_text(f"[Triggers]\nSocket={self.directory}/trigger\n{probes}")
        return ["--config", str(path)]

    def argv(self):
        where = ["-o", str(self.directory), "--socket", str(self.socket)]
        return self.prefix + [self.binary] + self.quiet() + self.args + where + (["--"] + self.command if self.command else [])

    def start(self, ready_seconds=120):
        """Until it is ready, and its triggers are armed, or could not be; without .armed, until it is ready."""
        notify = self.notify = NotifySocket()
        watchdog = {"WATCHDOG_USEC": "400000"} if self.watchdog else {}
        try:
            with open(self.log_path, "wb") as log:
                self.process = start(*self.argv(), stdout=log, stderr=log,
                                     env=environment(NOTIFY_SOCKET=notify.address, **watchdog, **self.extra_env))
            def alive():
                return self.process.poll() is None

            ready = notify.wait("READY=1", lambda: "READY=1" in notify.lines, alive, ready_seconds)
            if ready and self.armed:
                notify.wait("word that all is armed", lambda: re.match("recording(?!.* being armed)", notify.status()), alive,
                            ready_seconds)
            if self.watchdog:
                notify.listen()
        finally:
            if not self.watchdog:
                notify.close()
        assert ready, f"{' '.join(self.argv())}\nended with {self.process.returncode} before it was ready:\n{self.log()}"
        return self

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        try:
            return self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def running(self):
        return self.process is not None and self.process.poll() is None

    # --- dumps

    def samples(self):
        """Sample files, oldest first (the name is the time)."""
        return sorted(p for p in self.directory.glob("perf.data.sample.*Z") if not p.name.endswith(".json"))

    def dump_by_signal(self, seconds=120):
        before = set(self.samples())
        self.signal(signal.SIGUSR1)
        new = until(f"dump after SIGUSR1; log:\n{self.log()}",
                    lambda: [p for p in self.samples() if p not in before and sidecar(p).exists()], seconds)
        assert len(new) == 1, f"one SIGUSR1, {len(new)} dumps: {new}"
        return new[0]

    def dump_by_control(self, *args):
        r = self.ctl("dump", *args, timeout=300)
        assert r.code == 0, f"flightrecctl dump: exit code {r.code}\n{r.err}\n{self.log()}"
        path = Path(r.out.strip())
        assert path.is_file(), f"flightrecctl dump names {r.out!r}, which is no file"
        return path

    # --- control

    def ctl(self, verb, *args, timeout=120):
        return run(program("flightrecctl"), "--socket", self.socket, verb, *args, timeout=timeout)

    def status(self):
        r = self.ctl("status", "--json=short")
        assert r.code == 0, f"flightrecctl status: exit code {r.code}\n{r.err}"
        status = json.loads(r.out)
        return status.get("status", status)

    def event_status(self, name):
        """The status of one event, by its name or what its name begins with."""
        events = self.status()["events"]
        found = [e for e in events if e["name"] == name] or [e for e in events if e["name"].startswith(name)]
        assert found, f"status knows no event {name}, only {[e['name'] for e in events]}"
        return found[0]

    def until_sampled(self, name, n, *, load=None):
        """N samples of an event since it was opened; LOAD: whose end would be in vain."""
        def enough():
            assert load is None or load.poll() is None, f"the load ended with {load.returncode} before that"
            return self.event_status(name)["samples"] >= n
        until(f"{n} samples of {name}", enough)

    def lost(self):
        """All losses so far, by cause, without those that are 0."""
        return {cause: n for cause, n in self.status().get("losses", {}).items() if n}

    def lose_sideband(self):
        """Makes the recorder lose side-band: it stands still while 100 processes start, and each start needs 1 KB of
        its buffer. It must have been started with SidebandBuffer=4K."""
        before = self.lost().get("side-band-lost", 0)
        self.signal(signal.SIGSTOP)
        load("spawn", "-n", 100, "-m", 1)
        self.signal(signal.SIGCONT)
        until("loss of side-band", lambda: self.lost().get("side-band-lost", 0) > before)

    # --- end

    def signal(self, number):
        assert self.running(), f"flightrecd is gone ({self.process.returncode}):\n{self.log()}"
        self.process.send_signal(number)

    def wait(self, seconds=180):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"flightrecd still runs after {seconds} s; log:\n{self.log()}") from None

    def stop(self):
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"SIGTERM: exit code {code}\n{self.log()}"

    def finish(self):
        """SIGUSR2: the last dump, the end, and one perf.data."""
        self.signal(signal.SIGUSR2)
        code = self.wait(300)
        assert code == 0, f"SIGUSR2: exit code {code}\n{self.log()}"
        merged = self.directory / "perf.data"
        assert merged.is_file(), f"SIGUSR2 left no perf.data, only {sorted(p.name for p in self.directory.iterdir())}"
        return merged

    def kill(self):
        if self.running():
            self.process.kill()
            self.process.wait()


def sidecar(sample):
    """The JSON beside a sample file."""
    return sample.with_name(sample.name + ".json")


def fill(path):
    """A file that takes all the room there is."""
    with open(path, "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4096):
                pass
        except OSError:
            pass


def merge(directory, *args, timeout=300):
    return run(program("flightrec-merge"), *args, directory, timeout=timeout)


# The kernel's buffers for tests that count to the event: large enough for a machine whose CPUs have other work too.
NO_LOSS = ("-m", "16M")

# --- stock perf ---------------------------------------------------------------------------------------------

Line = namedtuple("Line", "comm pid tid cpu time event trace")
LINE = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<time>\d+\.\d{9}):"
                  r"\s+(?P<event>\S+?):(?:\s+(?P<trace>.*))?$")


def perf(*args, timeout=600, cwd=None):
    return run("perf", *args, timeout=timeout, cwd=cwd)


def until_perf_records(process):
    """perf record has its rings, and handlers of the signals that ask for a dump; or it has ended."""
    def ready():
        if process.poll() is not None:
            return True
        caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process.pid}/status").read_text(), re.M)
        return int(caught[1], 16) >> (signal.SIGUSR2 - 1) & 1 and "[perf_event]" in Path(f"/proc/{process.pid}/maps").read_text()
    until("perf record that records", ready)


def perf_clean(*args, **kwargs):
    """perf with nothing to complain about; its output."""
    r = perf(*args, **kwargs)
    assert r.code == 0, f"perf {' '.join(map(str, args))}: exit code {r.code}\n{r.err[-3000:]}"
    assert not r.err.strip(), f"perf {' '.join(map(str, args))} complains:\n{r.err[-3000:]}"
    return r.out


MARK = "flightrec:trigger"  # the event of the samples that tell what made a dump


def script_text(path, trace=True):
    """All samples of a file as perf script prints them, a line each, without the marks. TRACE: all its events are
    tracepoints."""
    fields = "comm,pid,tid,cpu,time,event"
    if trace:  # of tracepoints alone: perf warns of the other types otherwise
        fields = f"trace:{fields},trace"
    # -G: without call chains, one line a sample
    lines = perf_clean("script", "-i", path, "--ns", "-G", "-F", fields).splitlines()
    return [line for line in lines if f" {MARK}:" not in line]


def parse_lines(path, texts):
    lines = []
    for text in texts:
        m = LINE.match(text)
        assert m, f"perf script -i {path} prints a line that is none: {text!r}"
        lines.append(Line(m["comm"], int(m["pid"]), int(m["tid"]), int(m["cpu"]), m["time"], m["event"], m["trace"] or ""))
    return lines


def script_lines(path, trace=True):
    """The same, parsed."""
    return parse_lines(path, script_text(path, trace))


def marks(path):
    """The marks of a file, parsed."""
    out = perf_clean("script", "-i", path, "--ns", "-G", "-F", "trace:comm,pid,tid,cpu,time,event,trace")
    return parse_lines(path, [line for line in out.splitlines() if f" {MARK}:" in line])


Row = namedtuple("Row", "samples comm symbol")


def report_rows(path):
    """perf report of a file: number of samples per comm and symbol, without the marks."""
    out = perf_clean("report", "-i", path, "--stdio", "--no-children", "-g", "none", "-n", "--sort", "comm,sym",
                     "-t", "|")
    rows = []
    # An event is a section, and that of the marks is the last.
    for text in out.split(f"of event '{MARK}'")[0].splitlines():
        parts = [p.strip() for p in text.split("|")]
        if text.startswith("#") or len(parts) < 4:
            continue
        rows.append(Row(int(parts[1]), parts[2], re.sub(r"^\[.\]\s*", "", parts[3])))
    assert rows, f"perf report of {path} is empty:\n{out[:2000]}"
    return rows


def samples_of(rows, comm=None, symbol=None):
    return sum(r.samples for r in rows if comm in (None, r.comm) and symbol in (None, r.symbol))


def chains(path, pid):
    """Call chains of a process, innermost first, as lists of symbols."""
    out = perf_clean("script", "-i", path, "--pid", str(pid), "-F", "comm,pid,ip,sym")
    result = []
    for block in out.split("\n\n"):
        frames = [line.split(None, 1) for line in block.splitlines()[1:] if line.strip()]
        if frames:
            result.append([f[1].split("+0x")[0].strip() if len(f) > 1 else "[unknown]" for f in frames])
    return result


def cpu_seconds(pid):
    """utime + stime of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
