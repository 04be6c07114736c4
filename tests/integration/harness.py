# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts flightrecd, talks to it, and reads its files with stock perf.

The time limits are long, because a machine can be slow or busy. They only end a test that hangs."""
import contextlib
import ctypes
import json
import os
import re
import select
import signal
import subprocess
import time
from collections import namedtuple
from pathlib import Path

from manager import ServiceManager

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("FLIGHTREC_BIN", ROOT / "build/dev/bin"))
FULL = bool(os.environ.get("FLIGHTREC_FULL"))  # ./dev test --full: also run the long tests
EXIT = {"ok": 0, "error": 1, "usage": 2, "unreachable": 3, "salvaged": 3, "suppressed": 4, "permission": 5, "no-space": 6, "partly": 7}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
# The probes that flightrecd arms even if its configuration has no section for them.
ARMED_PROBES = ("hung-task", "soft-lockup", "oom-kill")
WATCHED = {"WATCHDOG_USEC": "400000"}  # an environment in which flightrecd feeds the watchdog of its manager


def program(name):
    path = BIN / name
    assert path.exists(), f"{path} is not built: run ./dev build, or set FLIGHTREC_BIN"
    return str(path)


def last_cpu():
    """Returns the CPU to which tests pin a load. It is the last CPU, because more interrupts go to the first CPUs."""
    return max(os.sched_getaffinity(0))


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment(**more):
    """Returns an environment that is the same on each machine, so that no configuration of a user has an effect, plus MORE."""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent", "PERF_CONFIG": "/dev/null"}
    env.update(more)
    return env


Result = namedtuple("Result", "code out err")


def run(*argv, timeout=180, cwd=None, env=None, preexec=die_with_parent, text=None):
    """Runs a program to its end. TEXT is its standard input. Returns its exit code, standard output and standard error."""
    stdin = {"stdin": subprocess.DEVNULL} if text is None else {"input": text}
    p = subprocess.run([str(a) for a in argv], **stdin, capture_output=True, text=True, errors="replace",
                       timeout=timeout, cwd=cwd, env=env or environment(), preexec_fn=preexec)
    return Result(p.returncode, p.stdout, p.stderr)


def must(*argv, **kwargs):
    """The same as run(), but fails if the exit code is not 0."""
    r = run(*argv, **kwargs)
    assert r.code == 0, f"{' '.join(map(str, argv))}: exit code {r.code}\n{r.err}\n{r.out[-2000:]}"
    return r


def start(*argv, **kwargs):
    """Starts a program in the background. The kernel kills the program when the process of the tests ends."""
    kwargs.setdefault("env", environment())
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(a) for a in argv], preexec_fn=die_with_parent, **kwargs)


def end(*processes):
    """Kills programs that start() started."""
    for p in processes:
        p.kill()
        p.wait()


def read_terminal(terminal):
    """Reads all that is written to a pseudo-terminal until no program has its other end open, and closes it. Returns bytes."""
    shown = b""
    with contextlib.suppress(OSError):  # read() fails when the programs have closed the terminal
        while data := os.read(terminal, 65536):
            shown += data
    os.close(terminal)
    return shown


def script_of_loads(*loads):
    """Returns a shell script that runs these commands until it gets a SIGTERM. It also removes the names of run-time code of the last
    one, if it makes such code."""
    started = " ".join(f'{load} & pids="$pids $!";' for load in loads)
    return f"pids=; {started} trap 'kill -9 $pids; rm -f /tmp/perf-$!.map; exit' TERM; while :; do sleep 0.05; done"


def load(name, *args, timeout=180):
    """Runs the load program frtest-NAME to its end. Returns the JSON that it prints."""
    return json.loads(must(program(f"frtest-{name}"), *args, timeout=timeout).out)


def start_load(name, *args):
    return start(program(f"frtest-{name}"), *args, stdout=subprocess.PIPE, text=True)


def finish_load(p, stop=False):
    """Waits for the end of a load. If STOP is true, sends it a SIGTERM first. Returns the JSON that the load prints."""
    if stop:
        p.terminate()
    out, _ = p.communicate(timeout=180)
    assert p.returncode == 0
    return json.loads(out)


class Steps:
    """A load that does a fixed amount of work, which is called a step, for each byte of its input. After each step it writes a
    byte.

    So the test decides how much work the load does between two actions of the test, and the speed of the machine does not
    matter."""

    AHEAD = 2

    def __init__(self, *argv):
        self.process = start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.ahead = 0

    def fill(self, wait=False):
        """Gives steps to the load until AHEAD steps wait or are being done. If WAIT is true, first waits until a step is
        done."""
        while self.ahead and select.select([self.process.stdout], [], [], 180 if wait else 0)[0]:
            done = os.read(self.process.stdout.fileno(), self.ahead if not wait else 1)
            assert done, "the load ended"
            self.ahead -= len(done)
            wait = False
        assert not wait or not self.ahead, "a step of the load does not end"
        self.process.stdin.write(b"." * (self.AHEAD - self.ahead))
        self.ahead = self.AHEAD

    def finish(self):
        """Ends the input and waits until all steps are done. Returns the JSON that the program prints at its end."""
        out, _ = self.process.communicate(timeout=180)
        assert self.process.returncode == 0
        return json.loads(out[self.ahead:])


def until(what, condition, seconds=60):
    """Waits until CONDITION() is true, and returns its value. Fails after SECONDS. WHAT is the text for the message of the
    failure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"after {seconds} s still no {what}"
        time.sleep(0.02)


def triggers_config(socket, text=""):
    """Returns the section [Triggers] with the key Socket=SOCKET, followed by TEXT. Adds sections that disable the probes that
    are armed by default, except those for which TEXT has a section. So an anomaly of the machine does not make a dump in a
    test."""
    off = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES if f"[Trigger {name}]" not in text)
    return f"[Triggers]\nSocket={socket}\n{text}{off}"


def quiet_config(path, text):
    """Writes a configuration file that has TEXT and triggers_config(). Returns its path."""
    path.write_text(text + triggers_config(path.with_suffix(".trigger")))
    return path


class Daemon:
    """A flightrecd in the foreground, with its own directory. By default, its control socket is in this directory.

    MANAGER acts as systemd. If several instances share a manager, each instance gets the descriptors that the previous instance
    has stored."""

    def __init__(self, directory, *args, command=(), binary=None, env=None, prefix=(), socket_path=None, log_path=None, armed=True,
                 manager=None):
        self.directory = Path(directory)
        self.socket = socket_path or self.directory / "control"
        self.args = [str(a) for a in args]
        self.command = [str(a) for a in command]
        self.binary = binary or program("flightrecd")
        self.extra_env = env or {}
        self.prefix = [str(a) for a in prefix]
        self.log_path = log_path or self.directory.parent / f"{self.directory.name}.flightrecd.{id(self)}.log"
        self.process = None
        self.manager, self.owns_manager = manager or ServiceManager(), not manager
        self.armed = armed  # whether until_ready() also waits for the arming of all triggers

    def argv(self):
        quiet = []
        if not self.command and "--config" not in self.args:
            path = self.directory.parent / f"{self.directory.name}.quiet.conf"
            path.write_text((SIDEBAND_ROOM if "-m" in self.args else "") + triggers_config(f"{self.directory}/trigger"))
            quiet = ["--config", str(path)]
        where = ["-o", str(self.directory), "--socket", str(self.socket)]
        return self.prefix + [self.binary] + quiet + self.args + where + (["--"] + self.command if self.command else [])

    def launch(self):
        """Starts the process, and does not wait until it is ready."""
        argv, env, fds = self.manager.next_instance(self.argv())
        with open(self.log_path, "wb") as log:
            self.process = start(*argv, stdout=log, stderr=log, pass_fds=fds, env=environment(**env, **self.extra_env))
        return self

    def until_ready(self, seconds=120):
        """Waits until the recorder is ready. If .armed is true, also waits until each trigger is armed or has failed to arm."""
        def is_armed():
            return not self.armed or re.match("recording(?!.* being armed)", self.manager.status())

        def ready():
            return self.manager.said("READY=1") and is_armed()

        until("recorder that is ready", lambda: ready() or not self.running(), seconds)
        self.manager.settle()
        assert self.manager.said("READY=1"), \
            f"{' '.join(self.argv())}\nended with {self.process.poll()} before it was ready:\n{self.log()}"
        return self

    def start(self):
        return self.launch().until_ready()

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        try:
            return self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def until_logged(self, *words, seconds=60):
        until(f"{words} in the log", lambda: all(w in self.log() for w in words), seconds)

    def running(self):
        return self.process is not None and self.process.poll() is None

    # --- dumps

    def samples(self):
        """Returns the sample files, the oldest first. Their names have the time, so the order of names is the order of time."""
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
        assert path.is_file(), f"flightrecctl dump names {r.out!r}, which is not a file"
        return path

    def until_dumped(self):
        """Waits until a dump and its JSON exist, and returns the oldest such dump. For dumps that no call of the test has asked
        for."""
        return until(f"a dump; log:\n{self.log()}", lambda: [p for p in self.samples() if sidecar(p).exists()])[0]

    # --- control

    def ctl(self, verb, *args, timeout=120):
        return run(program("flightrecctl"), "--socket", self.socket, verb, *args, timeout=timeout)

    def start_ctl(self, *args, **kwargs):
        """Starts flightrecctl in the background."""
        return start(program("flightrecctl"), "--socket", self.socket, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     **{"text": True, **kwargs})

    def ask(self, verb, *args):
        """Runs a verb of flightrecctl, which must succeed. Returns the JSON that flightrecctl prints."""
        r = self.ctl(verb, *args, "--json=short")
        assert r.code == 0, f"flightrecctl {verb}: exit code {r.code}\n{r.err}"
        return json.loads(r.out)

    def status(self):
        status = self.ask("status")
        return status.get("status", status)

    def text_status(self):
        return self.ctl("status", "--no-pager").out

    def trigger(self, name):
        return next(t for t in self.ask("triggers")["triggers"] if t["name"] == name)

    def decisions(self, name):
        """Returns the decisions about the trigger NAME, the newest first."""
        return [d for d in self.ask("why", "-n", "256") if d["trigger"] == name]

    def event_status(self, name):
        """Returns the status of the event whose name is NAME, or else of the first event whose name begins with NAME."""
        events = self.status()["events"]
        found = [e for e in events if e["name"] == name] or [e for e in events if e["name"].startswith(name)]
        assert found, f"status knows no event {name}, only {[e['name'] for e in events]}"
        return found[0]

    def until_sampled(self, name, n, *, load=None):
        """Waits until the event NAME has N samples since it was opened. Fails if the process LOAD ends earlier."""
        def enough():
            assert load is None or load.poll() is None, f"the load ended with {load.returncode} before that"
            return self.event_status(name)["samples"] >= n
        until(f"{n} samples of {name}", enough)

    def lost(self):
        """Returns {cause: number of losses since the start}, only with causes that have losses."""
        return {cause: n for cause, n in self.status().get("losses", {}).items() if n}

    def lost_to_others(self):
        """Returns how many samples were lost because other processes used the CPUs for too long."""
        lost = self.lost()
        return lost.get("kernel-ring-full", 0) + lost.get("back-pressure", 0)

    def lose_sideband(self):
        """Makes the recorder lose side-band. 100 processes start while the recorder is stopped, and each start needs 1 KB of
        the kernel ring for side-band. The configuration of the recorder must have SidebandBuffer=4K."""
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
        """Waits for the end of the process. Returns the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"flightrecd still runs after {seconds} s; log:\n{self.log()}") from None

    def stop(self):
        self.signal(signal.SIGTERM)
        code = self.wait()
        assert code == 0, f"SIGTERM: exit code {code}\n{self.log()}"

    def finish(self):
        """Sends SIGUSR2. The recorder makes a last dump, merges all files into perf.data, and ends. Returns the path of
        perf.data."""
        self.signal(signal.SIGUSR2)
        code = self.wait(300)
        assert code == 0, f"SIGUSR2: exit code {code}\n{self.log()}"
        merged = self.directory / "perf.data"
        assert merged.is_file(), f"SIGUSR2 left no perf.data, only {sorted(p.name for p in self.directory.iterdir())}"
        return merged

    def kill(self):
        if self.running():
            end(self.process)
        if self.owns_manager:
            self.manager.close()


def finish_dump(p):
    """Waits for the end of P, a process of start_ctl("dump"). Returns the path of the dump."""
    out, err = p.communicate(timeout=180)
    assert p.returncode == 0, err
    return Path(out.strip())


def sidecar(sample):
    """Returns the path of the JSON beside a sample file."""
    return sample.with_name(sample.name + ".json")


def meta(sample):
    """Returns the content of the JSON beside a sample file."""
    return json.loads(sidecar(Path(sample)).read_text())


def fill(path):
    """Makes a file that takes all free space of its file system."""
    with open(path, "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4096):
                pass
        except OSError:
            pass


def merge(directory, *args, timeout=300):
    return run(program("flightrec-merge"), *args, directory, timeout=timeout)


def sequence(path, did):
    """Returns the JSON of frtest-sequence, which says which numbers of a frtest-count are in the file. DID is the JSON of the
    frtest-count."""
    return json.loads(must(program("frtest-sequence"), path, did["pid"], did["nr"], timeout=300).out)


def exact(found):
    """Checks FOUND, the result of sequence(): no number is missing, in the file twice, or out of order."""
    assert (found["missing"], found["twice"], found["backwards"]) == (0, 0, 0), found


# An option for tests that count each event. The kernel rings are so large that they do not overflow if the CPUs have other
# work.
NO_LOSS = ("-m", "16M")
# The configuration of a recorder that has -m and no other configuration. While it waits for a CPU, other tests can start many
# processes. But a drain of the kernel rings must not bring more side-band than the queue of the tracker has room for.
SIDEBAND_ROOM = "[Recorder]\nSidebandBuffer=1M\n"


def stolen_s():
    """Returns for how long, in seconds and summed over all CPUs, the host has stopped CPUs of this virtual machine (steal).
    While a CPU is stopped, some clocks go on, and some do not."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """Returns utime + stime of a process with all its threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until_ran(*processes, seconds=0.8):
    """Waits until each process has used SECONDS more of CPU time, or has ended."""
    enough = [(p, cpu_seconds(p.pid) + seconds) for p in processes]
    for p, wanted in enough:
        until("CPU time of a load", lambda: p.poll() is not None or cpu_seconds(p.pid) > wanted, 120)


# --- stock perf ---------------------------------------------------------------------------------------------

Line = namedtuple("Line", "comm pid tid cpu time event trace")
LINE = re.compile(r"^\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<time>\d+\.\d{9}):"
                  r"\s+(?P<event>\S+?):(?:\s+(?P<trace>.*))?$")


def perf(*args, timeout=600, cwd=None):
    return run("perf", *args, timeout=timeout, cwd=cwd)


def has_pmu():
    return "not supported" not in perf("stat", "-e", "cycles", "true").err


def perf_clean(*args, **kwargs):
    """Runs perf, which must succeed and print nothing on standard error. Returns its output."""
    r = perf(*args, **kwargs)
    assert r.code == 0, f"perf {' '.join(map(str, args))}: exit code {r.code}\n{r.err[-3000:]}"
    assert not r.err.strip(), f"perf {' '.join(map(str, args))} complains:\n{r.err[-3000:]}"
    return r.out


MARK = "flightrec:trigger"  # the event of trigger samples


def script_text(path, trace=True):
    """Returns all samples except trigger samples, one line each, as perf script prints them. If TRACE is true, the lines have
    the fields of the tracepoints. In this case all events of the file must be tracepoints, because perf warns about other
    events."""
    fields = "comm,pid,tid,cpu,time,event"
    if trace:
        fields = f"trace:{fields},trace"
    # -G: without call chains, so that each sample has one line
    lines = perf_clean("script", "-i", path, "--ns", "-G", "-F", fields).splitlines()
    return [line for line in lines if f" {MARK}:" not in line]


def parse_lines(path, texts):
    lines = []
    for text in texts:
        m = LINE.match(text)
        assert m, f"perf script -i {path} prints a line that is not a sample: {text!r}"
        lines.append(Line(m["comm"], int(m["pid"]), int(m["tid"]), int(m["cpu"]), m["time"], m["event"], m["trace"] or ""))
    return lines


def script_lines(path, trace=True):
    """Returns the same samples as script_text(), but as Lines."""
    return parse_lines(path, script_text(path, trace))


def time_ns(line):
    """Returns the time of a Line in ns."""
    seconds, fraction = line.time.split(".")
    return int(seconds) * 10**9 + int(fraction)


def trigger_samples(path):
    """Returns the trigger samples of a file as Lines."""
    out = perf_clean("script", "-i", path, "--ns", "-G", "-F", "trace:comm,pid,tid,cpu,time,event,trace")
    return parse_lines(path, [line for line in out.splitlines() if f" {MARK}:" in line])


def getppid_calls(path, did):
    """Returns the Lines of the system calls of a frtest-syscalls. DID is the JSON that this load printed."""
    return [line for line in script_lines(path) if line.tid == did["pid"] and line.trace.startswith(f"NR {did['nr']} ")]


Row = namedtuple("Row", "samples tid comm symbol in_kernel")


def report_rows(path):
    """Returns Rows, which have the number of samples for each thread, comm and symbol. perf report counts them. Trigger samples
    do not count."""
    out = perf_clean("report", "-i", path, "--stdio", "--no-children", "-g", "none", "-n", "--sort", "pid,comm,sym", "-t", "|")
    rows = []
    # The output has a section for each event. The last section is the section of the trigger samples.
    for text in out.split(f"of event '{MARK}'")[0].splitlines():
        fields = [p.strip() for p in text.split("|")]
        if text.startswith("#") or len(fields) < 5:
            continue
        tid = int(fields[2].split(":")[0])  # the sort key pid prints TID:COMM
        rows.append(Row(int(fields[1]), tid, fields[3], re.sub(r"^\[.\]\s*", "", fields[4]), fields[4].startswith("[k]")))
    assert rows, f"perf report of {path} is empty:\n{out[:2000]}"
    return rows


def in_program(rows):
    """Returns the rows without those of the kernel. On a loaded machine, the kernel takes a part of the samples of each program,
    because it switches between programs all the time."""
    return [r for r in rows if not r.in_kernel]


def samples_of(rows, comm=None, symbol=None, tids=None):
    """Returns the number of samples with the name COMM, the symbol SYMBOL and a thread of TIDS. None means any."""
    return sum(r.samples for r in rows
               if comm in (None, r.comm) and symbol in (None, r.symbol) and (tids is None or r.tid in tids))


def chains(path, pid, *events):
    """Returns the call chains of a process as lists of symbols, the innermost first. If EVENTS are given, only those of events
    whose names begin so."""
    out = perf_clean("script", "-i", path, "--pid", str(pid), "-F", "comm,pid,event,ip,sym")
    result = []
    for block in out.split("\n\n"):
        frames = [line.split(None, 1) for line in block.splitlines()[1:] if line.strip()]
        if frames and (not events or block.split("\n", 1)[0].split()[-1].startswith(events)):
            result.append([f[1].split("+0x")[0].strip() if len(f) > 1 else "[unknown]" for f in frames])
    return result
