# SPDX-License-Identifier: GPL-2.0-or-later
"""Ordinary programs of Debian that use a CPU, and whose stacks the tests and the benchmark judge.

Each function gets a Workplace, and returns the command of the program. The program runs until it is killed, or for at least a
minute. If the program is not installed, the result is None.
"""
import os
import random
import shutil
import subprocess
from pathlib import Path

import harness

PYTHON = """
import json, re, zlib
from collections import Counter
def words(n):
    return [str(i * 2654435761 % 1000003) for i in range(n)]
def work(n):
    w = sorted(words(n), key=lambda s: s[::-1])
    text = json.dumps(w)
    Counter(re.findall("[0-9]+", text)).most_common(5)
    return len(zlib.compress(text.encode())) + len(json.loads(text))
while True:
    work(20000)
"""
PERL = r"""
sub words { my %h; $h{$_ * 7919 % 100003} .= "x$_" for 1 .. 20000; return \%h }
sub work { my $h = words(); my $s = join ",", sort { $h->{$a} cmp $h->{$b} } keys %$h; $s =~ s/(\d+)/<$1>/g; return length $s }
work() while 1;
"""
NODE = """
function words(n) { return Array.from({length: n}, (_, i) => String(i * 7919 % 100003)); }
function work(n) {
  const text = JSON.stringify(words(n).sort((a, b) => a.localeCompare(b)));
  return JSON.parse(text).length + text.replace(/[0-9]+/g, x => '<' + x + '>').length;
}
for (;;) work(20000);
"""
SQLITE = """
CREATE TABLE t(a INTEGER, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
  INSERT INTO t SELECT i * 7919 % 100003, hex(i * 31) FROM n;
CREATE INDEX x ON t(b);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
  SELECT sum(c) FROM (SELECT n.i, (SELECT count(*) FROM t WHERE a % 1000 = n.i % 1000 AND b LIKE '%7%') AS c FROM n);
"""
SHORT = 'while :; do head -n 20000 "$1" | sort | gzip -c | wc -c >/dev/null; done'
LINES = 2_000_000
# The thread of the recorder that makes the tables has a low priority. The programs leave it enough time.
NICE = ("nice", "-n", "19")


class Workplace:
    """A directory with the input of the programs."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.lines = self.directory / "lines"
        rng = random.Random(1)
        block = "".join(f"{rng.getrandbits(64):016x} {rng.randrange(1000)}\n" for _ in range(LINES // 20))
        with open(self.lines, "w", encoding="ascii") as f:
            for _ in range(20):
                f.write(block)

    def input(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path


def python(place):
    return ["/usr/bin/python3", place.input("work.py", PYTHON)]


def gzip(place):
    return ["gzip", "-9", "-c", *[place.lines] * 20]


def perl(place):
    return ["/usr/bin/perl", place.input("work.pl", PERL)]


def sort(place):
    return ["sort", "-k2n", "-T", place.directory, "-S", "512M", *[place.lines] * 10]


def openssl(place):
    return ["openssl", "speed", "-seconds", "2", "rsa2048", "ecdsap384", "ffdh2048", "sha256", "aes-256-cbc"]


def node(place):
    return ["node", place.input("work.js", NODE)]


def sqlite(place):
    return ["sqlite3", "-batch", "-init", place.input("work.sql", SQLITE), ":memory:", ".quit"]


def redis(place):
    """The package redis-server would start a service. The same program is in redis-tools, and acts by its name."""
    server = place.directory / "redis-server"
    if not server.exists():
        server.symlink_to("/usr/bin/redis-check-rdb")
    return [server, "--port", "0", "--unixsocket", place.directory / "redis", "--save", "", "--dir", place.directory]


def go(place):
    return ["sh", "-c", 'while :; do cat "$@"; done | exec fzf -f 7f3a', "sh", *[place.lines] * 3]


def rust(place):
    return ["rg", "-j2", "-o", "-r", "$2$1", "([0-9]+[a-f]+)(7|8|[a-f]+9)+ 1", *[place.lines] * 3000]


def shell(place):
    return ["sh", "-c", SHORT, "sh", place.lines]


# The name in tables, the function, and the name of the processes whose stacks count.
PROGRAMS = {"python3": (python, "python3"), "gzip": (gzip, "gzip"), "perl": (perl, "perl"), "sort": (sort, "sort"),
            "openssl": (openssl, "openssl"), "node": (node, "node"), "sqlite3": (sqlite, "sqlite3"),
            "redis": (redis, "redis-server"), "go (fzf)": (go, "fzf"), "rust (rg)": (rust, "rg"),
            "short processes": (shell, None)}


class Running:
    """A program of PROGRAMS that runs, with what it needs to be busy."""

    def __init__(self, name, place):
        make, self.comm = PROGRAMS[name]
        self.name = name
        argv = make(place)
        if not shutil.which(str(argv[0])) or (name.startswith("go") and not shutil.which("fzf")):
            raise FileNotFoundError(f"{name} is not installed")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": place.directory}
        self.processes = [harness.start(*NICE, *argv, start_new_session=True, **quiet)]
        if name == "redis":
            socket = place.directory / "redis"
            harness.until("socket of redis", socket.exists)
            self.processes.append(harness.start(*NICE, "redis-benchmark", "-s", socket, "-n", 10**9, "-P", 16, "-t",
                                                "set,lpush,zadd", "-r", 100000, start_new_session=True, **quiet))

    @property
    def pid(self):
        return self.processes[0].pid

    def is_running(self):
        return all(p.poll() is None for p in self.processes)

    def pids(self):
        """Returns the processes of the program that exist now, without those of another name that it needs. Returns nothing for
        a program whose processes are short."""
        found = set()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(path.name)) == self.pid and (path / "comm").read_text().strip() == self.comm:
                    found.add(int(path.name))
            except (ProcessLookupError, FileNotFoundError):
                pass
        return found

    def end(self):
        for p in self.processes:
            try:
                os.killpg(p.pid, 9)
            except ProcessLookupError:
                pass
            p.wait()
