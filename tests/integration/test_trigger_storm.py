# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of anomalies costs little, and each anomaly is counted. BPF objects that cannot be loaded are reported. A reload does
not change the counts of triggers whose sections it does not change."""
import re
import shutil
import time
from pathlib import Path

import pytest

from harness import BIN, FULL, load, must, program, run, triggers_config, until

OBJECTS = BIN.parent / "tests/unit/source/bpf"
# Numbers of anomalies. The load makes a million anomalies in a minute.
FIRST = 20000  # after this number of anomalies, the policy permits no more dumps, and the recorder has all memory that it needs
STORM = 1000000 if FULL else 60000
# A copy of frtest-provoke with another name, because other tests can run frtest-provoke at the same time.
COMM = "frtest-storming"
MINE = f"[Trigger mine]\nProgram={OBJECTS}/getppid.bpf.o\nComm={COMM}\nThreshold=1\n"


@pytest.fixture(autouse=True)
def objects():
    if not OBJECTS.is_dir():
        pytest.skip(f"{OBJECTS} is not there: build the target source-bpf-objects")


@pytest.fixture
def provoke(tmp_path):
    """provoke(WHAT, N) runs "frtest-provoke WHAT N" under the name COMM. Each call of getppid() is an anomaly."""
    copy = shutil.copy2(program("frtest-provoke"), tmp_path / COMM)
    return lambda what, n: must(copy, what, n, timeout=600)


@pytest.fixture
def triggers(recorder, tmp_path):
    """triggers(OF_ALL, TEXT) starts a recorder. Its configuration has OF_ALL in the section [Triggers], and the sections TEXT.
    The member `conf` of the recorder is the path of the configuration."""
    def make(of_all, text):
        conf = tmp_path / "triggers.conf"
        write(conf, of_all, text)
        d = recorder("--config", conf)
        d.conf = conf
        if d.trigger("mine")["state"] == "failed":
            pytest.skip(d.trigger("mine")["what"])
        return d
    return make


def write(conf, of_all, text):
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=8M\nSidebandBuffer=1M\n" + triggers_config("", of_all + text))


def memory_mib(pid):
    """Returns the memory of a process in MiB, without the ring and the kernel rings, because these grow also without
    triggers."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def cpu_s(pid):
    return sum(int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def settled(d, n):
    """Waits until N anomalies are counted, and no dump waits or is being written. Returns the trigger's status."""
    def all_there():
        t = d.trigger("mine")
        assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values()), t
        return t["asked"] + t["cooled"] + t["lost"] == n and d.status()["dumps"]["queued"] == 0 and t
    return until(f"the end of {n}: {d.trigger('mine')}", all_there)


@pytest.mark.parametrize("of_all, section, dumps", [
    ("", "", 1),
    ("RateLimit=5/1h\n", "Cooldown=0\n", 5),
], ids=["default", "no-cool-down"])
def test_a_storm_costs_little_and_is_counted(triggers, provoke, of_all, section, dumps):
    d = triggers(of_all, MINE + section)
    begin, n = time.monotonic(), 0
    # On a slow disk more anomalies join one dump, so that the test needs more anomalies.
    while n == 0 or len(d.samples()) < dumps:
        provoke("storm", FIRST)
        n += FIRST
        settled(d, n)
        assert n < 20 * FIRST, d.samples()
    if section:
        assert len(d.samples()) == dumps
    memory, cpu = memory_mib(d.pid), cpu_s(d.pid)
    # Other work of the machine can make the memory grow during one of the two storms, but not during both.
    for _ in range(2):
        provoke("storm", STORM)
        n += STORM
        t = settled(d, n)
        grown, memory = memory_mib(d.pid) - memory, memory_mib(d.pid)
        if grown < 1:
            break
    took = time.monotonic() - begin
    cpu = cpu_s(d.pid) - cpu
    if not section:  # with the default cool-down, the trigger can fire once more in each full minute
        dumps = t["fired"]
        assert dumps <= 1 + took // 60
    assert t["fired"] == len(d.samples()) == dumps, t
    assert grown < 1, f"{grown:.2f} MiB more"
    assert cpu < 0.1 * took, f"{cpu:.2f} s of CPU in {took:.1f} s"
    assert t["cooled"] > 0.95 * n and len(d.ask("why", "-n", "256")) < 60, t


BAD = {  # {section: (object, a part of the report, whether verify-config finds the fault: it does not ask the kernel)}
    "no-program": ("bad-no-program", "has no program", True),
    "rejected": ("bad-verifier", "verifier rejects the program 'reads_anywhere'", False),
    "no-map": ("bad-map", "flightrec_counters", True),
    "version": ("bad-version", "99", True),
    "not-elf": (None, "is not an ELF file", True),
}


def test_bad_objects_are_reported(triggers, provoke, tmp_path):
    """The log, `triggers` and `test-trigger` report each bad object with the reason. The other triggers are armed.
    `verify-config` reports what it can find without the kernel."""
    (tmp_path / "not.bpf.o").write_text("#!/bin/sh\n" * 100)
    paths = {name: OBJECTS / f"{o}.bpf.o" if o else tmp_path / "not.bpf.o" for name, (o, _, _) in BAD.items()}
    text = "".join(f"[Trigger {name}]\nProgram={path}\n" for name, path in paths.items())
    d = triggers("", text + MINE + "[Trigger tick]\nEvery=1h\n")
    table = d.ctl("triggers").out
    for name, (_, words, found) in BAD.items():
        t = d.trigger(name)
        assert t["state"] == "failed" and words in t["what"] and str(paths[name]) in t["what"], t
        line = next(x for x in d.log().splitlines() if f"trigger {name} is not armed" in x)
        assert words in line and str(d.conf) in line, line
        assert t["what"] in table
        r = d.ctl("test-trigger", name)
        assert r.code != 0 and words in r.err
        conf = tmp_path / f"{name}.conf"
        conf.write_text(f"\n[Trigger {name}]\nProgram={paths[name]}\n")
        r = run(program("flightrecctl"), "verify-config", conf)
        assert (r.code != 0) == found, (name, r)
        if found:
            assert f"{conf}:2: " in r.err and words in r.err and str(paths[name]) in r.err, r.err
    assert d.ask("triggers")["tokens"] == 20
    provoke("getppid", 1)
    until("dump of the good object", lambda: d.trigger("mine")["fired"] == 1)
    assert d.trigger("tick")["state"] == "armed"


def test_reload(triggers, provoke):
    """A reload keeps the ring. If the section of a trigger is unchanged, the trigger does not change. If the section has
    changed, the trigger is armed again."""
    other = f"[Trigger other]\nProgram={OBJECTS}/getppid.bpf.o\nComm={COMM}\nThreshold=100\n"
    d = triggers("", MINE + other + "[Trigger gone]\nEvery=1h\n")
    load("burn", "-t", "0.5")
    provoke("getppid", 1000)
    settled(d, 1000)
    before = until("its file", lambda: (t := d.trigger("mine")).get("last_file") and t)
    assert before["fired"] == 1 and before["cooled"] > 900 and before["last_value"] == 1
    assert d.trigger("other")["asked"] == 0, "1 does not reach 100"
    ring = d.status()["ring"]

    write(d.conf, "", MINE + other + "Set=size=200\n[Trigger new]\nEvery=1h\n")
    assert d.ctl("reload").code == 0
    until("the new trigger", lambda: any(t["name"] == "new" for t in d.ask("triggers")["triggers"]))
    after = d.status()["ring"]
    for key in ("span_s", "samples", "frames", "used"):
        assert after[key] >= ring[key] > 0, (key, ring, after)
    t = d.trigger("mine")
    assert {k: t[k] for k in ("asked", "fired", "cooled", "last_file")} == {
        k: before[k] for k in ("asked", "fired", "cooled", "last_file")}
    assert 0 < t["cooldown_left_ns"] < 60 * 10**9, "its cool-down goes on"
    assert "gone" not in {t["name"] for t in d.ask("triggers")["triggers"]}

    provoke("getppid", 1)
    t = until("dump of the changed trigger", lambda: (t := d.trigger("other"))["fired"] and t)
    assert t["threshold"] == 100 and t["last_value"] == 200
    settled(d, 1001)
    assert d.ctl("dump").code == 0
    assert not d.lost(), d.lost()
