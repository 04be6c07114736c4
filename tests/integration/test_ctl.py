# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecctl as a person meets it: what it prints, and in which words and times."""
import json
import struct
from collections import Counter

import pytest

from harness import NO_LOSS, environment, load, program, run, script_text, sidecar

STAMP = "20261120T231137.123456Z"


def ctl(*args, **env):
    """In a time zone whose local time is another than UTC."""
    return run(program("flightrecctl"), *args, env=environment(**{"TZ": "XYZ-2", **env}))


@pytest.fixture
def dumps(tmp_path):
    """A directory with what a recorder has left there."""
    path = tmp_path / "dumps"
    path.mkdir()
    name = f"perf.data.sample.{STAMP}"
    (path / name).write_bytes(b"PERFILE2")
    (path / f"{name}.json").write_text(json.dumps({
        "version": 1, "file": name, "samples": 7, "time": "2026-11-20T23:11:37.123456Z",
        "window": {"from": "2026-11-20T23:11:07.123456Z", "to": "2026-11-20T23:11:37.000001Z",
                   "from_ns": 1000000000, "to_ns": 31000000000},
        "cause": {"trigger": "control", "reason": "test", "time": "2026-11-20T23:11:37.123456Z"}, "losses": []}))
    return path


def test_times_are_local_unless_utc_is_wanted(dumps):
    local, utc = (ctl("list", "-D", dumps, *more).out.splitlines() for more in ([], ["--utc"]))
    assert local[0].split()[:2] == ["TIME", "SIZE"] and local[1].startswith("2026-11-21 01:11:37  ")
    assert utc[0].split()[:3] == ["TIME", "(UTC)", "SIZE"] and utc[1].startswith("2026-11-20 23:11:37Z  ")
    info = ctl("info", "-D", dumps).out
    assert "from 2026-11-21 01:11:07.123456 to 2026-11-21 01:11:37.000001" in info
    assert "at 2026-11-20 23:11:37.123456Z" in ctl("info", "-D", dumps, "--utc").out
    assert json.loads(ctl("info", "-D", dumps, "--json=short").out)["time"] == "2026-11-20T23:11:37.123456Z"


@pytest.mark.parametrize("option, lines", [("--json", 1), ("--json=short", 1), ("--json=pretty", 2)])
def test_json_needs_no_value(dumps, option, lines):
    out = ctl("list", option, "-D", dumps).out
    assert len(out.splitlines()) >= lines and (lines > 1) == (len(out.splitlines()) > 1)
    assert json.loads(out)[0]["samples"] == 7
    assert ctl("list", "--json=off", "-D", dumps).out.startswith("TIME")


@pytest.mark.parametrize("program_name, groups", [
    ("flightrecctl", ["Dumps:", "Triggers:", "The recorder:", "Options of dump:", "Options:", "Examples:"]),
    ("flightrecd", ["Events:", "Tasks and CPUs:", "Dumps:", "Examples:"]),
    ("flightrec-merge", ["Options:", "Examples:"]),
])
def test_help_is_grouped_and_has_examples(program_name, groups):
    lines = run(program(program_name), "--help").out.splitlines()
    found = [line for line in lines if line in groups]
    assert found == groups
    assert max(map(len, lines)) <= 120


def record_types(path):
    """Of all records, by number of their type, as they stand in the file."""
    data = path.read_bytes()
    at, size = struct.unpack_from("<QQ", data, 40)  # perf_file_header.data
    types = Counter()
    end = at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        types[kind] += 1
        at += length
    return types


COMPRESSED = {81, 83}  # PERF_RECORD_COMPRESSED, PERF_RECORD_COMPRESSED2


def test_a_dump_without_compression(recorder, tmp_path):
    """For readers that know no compressed records; and the command that `info` prints makes such a file of another dump."""
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M")
    load("syscalls", "-n", 20000)
    packed, plain = d.dump_by_control(), d.dump_by_control("--no-compression")
    d.stop()
    assert COMPRESSED & set(record_types(packed)) and not COMPRESSED & set(record_types(plain))
    assert not json.loads(sidecar(plain).read_text())["compressed"]
    assert set(script_text(packed)) <= set(script_text(plain)), "the later one has all of the earlier"
    line = next(x for x in ctl("info", packed).out.splitlines() if "Compressed:" in x)
    words = line.split("plain copy: ")[1].split()
    assert words[0] == "flightrec-merge"
    assert run(program(words[0]), *words[1:], cwd=tmp_path).code == 0
    copy = tmp_path / "plain.data"
    assert not COMPRESSED & set(record_types(copy)) and packed.exists()
    assert script_text(copy) == script_text(packed)
    assert "Compressed:" not in ctl("info", plain).out
