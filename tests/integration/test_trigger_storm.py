# SPDX-License-Identifier: GPL-2.0-or-later
"""A storm of anomalies that a probe sees, objects that are none, and a reload: nobody pays for what goes wrong."""
import json
import os
import re
import time
from pathlib import Path

import pytest

from harness import ARMED_PROBES, BIN, load, program, run, until

OBJECTS = BIN.parent / "tests/unit/source/bpf"
# A million in a minute, or the same for a tenth of that.
FIRST = 20000  # by which all that the policy allows is made, and memory is what it will be
STORM = 1000000 if "FLIGHTREC_FULL" in os.environ else 100000
QUIET = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
MINE = f"[Trigger mine]\nProgram={OBJECTS}/getppid.bpf.o\nComm=frtest-provoke\nThreshold=1\n"


@pytest.fixture(autouse=True)
def objects():
    if not OBJECTS.is_dir():
        pytest.skip(f"{OBJECTS} is not there: build the target source-bpf-objects")


@pytest.fixture
def triggers(recorder, tmp_path):
    """triggers(of_all, sections): a recorder, whose configuration is its member `conf`."""
    def make(of_all, text):
        conf = tmp_path / "triggers.conf"
        write(conf, of_all, text)
        d = recorder("--config", conf)
        d.conf = conf
        return d
    return make


def write(conf, of_all, text):
    conf.write_text(f"[Recorder]\nEvents=cpu-clock\nRingSize=8M\n[Triggers]\nSocket=\n{of_all}{text}{QUIET}")


def answer(d, verb, *args):
    r = d.ctl(verb, *args, "--json=short")
    assert r.code == 0, r.err
    return json.loads(r.out)


def trigger(d, name="mine"):
    return next(t for t in answer(d, "triggers")["triggers"] if t["name"] == name)


def armed(d, name="mine"):
    t = trigger(d, name)
    if t["state"] == "failed":
        d.stop()
        pytest.skip(t["what"])
    return t


def memory_mib(pid):
    """Without the ring and the kernel's buffers, which fill as they do without any trigger."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024


def cpu_s(pid):
    return sum(int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def settled(d, n, name="mine"):
    """The trigger when N anomalies are each in one of its counts; no dump is under way."""
    def all_there():
        t = trigger(d, name)
        assert t["asked"] == t["fired"] + t["joined"] + sum(t["suppressed"].values()), t
        return t["asked"] + t["cooled"] + t["lost"] == n and d.status()["dumps"]["queued"] == 0 and t
    return until(f"the end of {n}: {trigger(d, name)}", all_there)


@pytest.mark.parametrize("of_all, section, dumps", [
    ("", "", 1),
    ("RateLimit=5/1h\n", "Cooldown=0\n", 5),
], ids=["default", "no-cool-down"])
def test_storm(triggers, of_all, section, dumps):
    d = triggers(of_all, MINE + section)
    armed(d)
    begin, n = time.monotonic(), 0
    while n == 0 or len(d.samples()) < dumps:  # on a slow disk more causes share a file
        load("provoke", "storm", FIRST)
        n += FIRST
        settled(d, n)
        assert n < 20 * FIRST, d.samples()
    if section:
        assert len(d.samples()) == dumps
    memory, cpu = memory_mib(d.pid), cpu_s(d.pid)
    # What else happens at the machine, which the recorder keeps in mind, does not happen twice.
    for _ in range(2):
        load("provoke", "storm", STORM, timeout=600)
        n += STORM
        t = settled(d, n)
        grown, memory = memory_mib(d.pid) - memory, memory_mib(d.pid)
        if grown < 1:
            break
    took = time.monotonic() - begin
    cpu = cpu_s(d.pid) - cpu
    if not section:  # a full minute lets it fire once more
        dumps = t["fired"]
        assert dumps <= 1 + took // 60
    assert t["fired"] == len(d.samples()) == dumps, t
    assert grown < 1, f"{grown:.2f} MiB more"
    assert cpu < 0.1 * took, f"{cpu:.2f} s of CPU in {took:.1f} s"
    assert t["cooled"] > 0.95 * n and len(answer(d, "why", "-n", "256")) < 60, t
    d.stop()


BAD = {  # section: (object, what is said of it, whether verify-config sees it without the kernel)
    "no-program": ("bad-no-program", "has no program", True),
    "rejected": ("bad-verifier", "verifier rejects the program 'reads_anywhere'", False),
    "no-map": ("bad-map", "flightrec_counters", True),
    "version": ("bad-version", "99", True),
    "not-elf": (None, "is not an ELF file", True),
}


def test_bad_objects(triggers, tmp_path):
    """Each is told by name, with the reason, everywhere; the others go on."""
    (tmp_path / "not.bpf.o").write_text("#!/bin/sh\n" * 100)
    paths = {name: OBJECTS / f"{o}.bpf.o" if o else tmp_path / "not.bpf.o" for name, (o, _, _) in BAD.items()}
    text = "".join(f"[Trigger {name}]\nProgram={path}\n" for name, path in paths.items())
    d = triggers("", text + MINE + "[Trigger tick]\nEvery=1h\n")
    table = d.ctl("triggers").out
    for name, (_, words, _) in BAD.items():
        t = trigger(d, name)
        assert t["state"] == "failed" and words in t["what"] and str(paths[name]) in t["what"], t
        line = next(x for x in d.log().splitlines() if f"trigger {name} is not armed" in x)
        assert words in line and str(d.conf) in line, line
        assert t["what"] in table
        r = d.ctl("test-trigger", name)
        assert r.code != 0 and words in r.err
    assert answer(d, "triggers")["tokens"] == 20
    armed(d)
    load("provoke", "getppid", 1)
    until("dump of the good one", lambda: trigger(d)["fired"] == 1)
    assert trigger(d, "tick")["state"] == "armed"
    d.stop()


def test_verify_config_of_bad_objects(tmp_path):
    """As far as the kernel need not be asked."""
    (tmp_path / "not.bpf.o").write_text("#!/bin/sh\n" * 100)
    for name, (o, words, seen) in BAD.items():
        conf = tmp_path / f"{name}.conf"
        path = OBJECTS / f"{o}.bpf.o" if o else tmp_path / "not.bpf.o"
        conf.write_text(f"\n[Trigger {name}]\nProgram={path}\n")
        r = run(program("flightrecctl"), "verify-config", conf)
        assert (r.code != 0) == seen, (name, r)
        if seen:
            assert f"{conf}:2: " in r.err and words in r.err and str(path) in r.err, r.err


def test_reload(triggers):
    """The ring goes on, what is unchanged stays as it is, what is changed is armed anew."""
    d = triggers("", MINE + f"[Trigger other]\nProgram={OBJECTS}/getppid.bpf.o\nComm=frtest-provoke\nThreshold=100\n"
                     "[Trigger gone]\nEvery=1h\n")
    armed(d)
    load("burn", "-t", "1")
    load("provoke", "getppid", 1000)
    settled(d, 1000)
    before = until("its file", lambda: (t := trigger(d)).get("last_file") and t)
    assert before["fired"] == 1 and before["cooled"] > 900 and before["last_value"] == 1
    assert trigger(d, "other")["asked"] == 0, "1 does not reach 100"
    ring = d.status()["ring"]

    write(d.conf, "", MINE + f"[Trigger other]\nProgram={OBJECTS}/getppid.bpf.o\nComm=frtest-provoke\nThreshold=100\nSet=size=200\n"
                             "[Trigger new]\nEvery=1h\n")
    assert d.ctl("reload").code == 0
    until("the new trigger", lambda: any(t["name"] == "new" for t in answer(d, "triggers")["triggers"]))
    after = d.status()["ring"]
    for key in ("span_s", "samples", "frames", "used"):
        assert after[key] >= ring[key] > 0, (key, ring, after)
    t = trigger(d)
    assert {k: t[k] for k in ("asked", "fired", "cooled", "last_file")} == {
        k: before[k] for k in ("asked", "fired", "cooled", "last_file")}
    assert 0 < t["cooldown_left_ns"] < 60 * 10**9, "its cool-down goes on"
    assert "gone" not in {t["name"] for t in answer(d, "triggers")["triggers"]}

    load("provoke", "getppid", 1)
    t = until("dump of the changed one", lambda: (t := trigger(d, "other"))["fired"] and t)
    assert t["threshold"] == 100 and t["last_value"] == 200
    settled(d, 1001)
    assert d.ctl("dump").code == 0
    assert not d.lost()
    d.stop()
