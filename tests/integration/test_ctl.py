# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrecctl: its texts for people, its copies of dumps, and dumps without compression."""
import json
import os
import shutil
import signal
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import as_user
from harness import EXIT, NO_LOSS, environment, load, meta, program, run, script_text, start, trigger_samples, until

STAMP = "20261120T231137.123456Z"


def ctl(*args, **env):
    """Runs flightrecctl in a time zone that differs from UTC."""
    return run(program("flightrecctl"), *args, env=environment(**{"TZ": "XYZ-2", **env}))


@pytest.fixture
def dumps(tmp_path):
    """A directory with a dump of a recorder that has ended."""
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


@pytest.mark.parametrize("cause, text", [({"uid": 7}, "asked by user 7\n"),
                                         ({"uid": 7, "pid": 5, "comm": "x"}, "asked by x[5], user 7\n")])
def test_info_names_the_user_who_asked(dumps, cause, text):
    sidecar = next(dumps.glob("*.json"))
    sidecar.write_text(json.dumps({**json.loads(sidecar.read_text()), "cause": {"reason": "test", **cause}}))
    assert text in ctl("info", "-D", dumps).out


@pytest.mark.parametrize("option, lines", [("--json", 1), ("--json=short", 1), ("--json=pretty", 2)])
def test_json_needs_no_value(dumps, option, lines):
    out = ctl("list", option, "-D", dumps).out
    assert len(out.splitlines()) >= lines and (lines > 1) == (len(out.splitlines()) > 1)
    assert json.loads(out)[0]["samples"] == 7
    assert ctl("list", "--json=off", "-D", dumps).out.startswith("TIME")


@pytest.mark.parametrize("program_name, groups", [
    ("flightrecctl", ["Dumps:", "Triggers:", "The recorder:", "The fleet:", "Options of dump:", "Options:", "Examples:"]),
    ("flightrecd", ["Events:", "Tasks and CPUs:", "Dumps:", "Examples:"]),
    ("flightrec-merge", ["Options:", "Examples:"]),
])
def test_help_is_grouped_and_has_examples(program_name, groups):
    lines = run(program(program_name), "--help").out.splitlines()
    found = [line for line in lines if line in groups]
    assert found == groups
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("words, expected", [
    (["st"], {"status", "stop"}),
    (["dump", "--po"], {"--post"}),
    (["status", "--po"], set()),
    (["status", "--ver"], {"--verbose", "--version"}),
    (["vacuum", "--max"], {"--max-use", "--max-files", "--max-age"}),
    (["--last", "s"], set()),
    (["list", "--json=s"], {"short"}),
], ids=" ".join)
def test_bash_completes_verbs_and_options(words, expected):
    script = f"""
        _init_completion() {{ words=("${{COMP_WORDS[@]}}") cword=$COMP_CWORD cur=${{words[cword]}} prev=${{words[cword-1]}}; }}
        source {Path(__file__).parents[2]}/conf/completion/bash/flightrecctl
        COMP_WORDS=(flightrecctl "$@") COMP_CWORD=$# COMPREPLY=()
        _flightrecctl; printf "%s\\n" "${{COMPREPLY[@]}}" """
    path = f"{Path(program('flightrecctl')).parent}:{os.environ['PATH']}"
    out = run("bash", "-c", script, "bash", *words, env=environment(PATH=path)).out
    assert set(out.split()) == expected


def test_fleet_passes_all_words(tmp_path):
    """All words after `fleet`, also options, are those of flightrec-fleet. Without this program, the message names its package."""
    copy = tmp_path / "flightrecctl"  # flightrec-fleet is not beside the copy
    shutil.copy(program("flightrecctl"), copy)
    env = environment(PATH=str(tmp_path))
    missing = run(copy, "fleet", "dump", "--last=30s", env=env)
    assert missing.code == 1 and "apt install flightrec-agent" in missing.err, missing
    fleet = tmp_path / "flightrec-fleet"
    fleet.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    fleet.chmod(0o755)
    assert run(copy, "fleet", "dump", "--match", "role=db", "--help", env=env) == (7, "dump\n--match\nrole=db\n--help\n", "")
    assert run(copy, "fleet", env=env) == (7, "\n", "")


@pytest.fixture
def fake_perf(tmp_path):
    """A directory for $PATH with a program perf that prints its arguments and ends with exit code 7."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "perf").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    (path / "perf").chmod(0o755)
    return path


@pytest.mark.parametrize("verb", ["perf", "script"])
def test_the_file_and_the_options_are_passed_to_perf(dumps, fake_perf, verb):
    """The user can name the dump by `latest`, its name, its path, or the path of its JSON. Without an argument, the newest
    dump is used. The exit code is that of perf."""
    newest = dumps / f"perf.data.sample.{STAMP}"
    of_perf = {"perf": "report", "script": "script"}[verb]
    for words in ([], ["latest"], [newest.name], [str(newest)], [f"{newest}.json"]):
        r = ctl(verb, *words, "-D", dumps, "--", "-F", "time", PATH=str(fake_perf))
        assert (r.code, r.out.split()) == (7, [of_perf, "-i", str(newest), "-F", "time"]), (words, r)
    merged = dumps / "perf.data"
    merged.write_bytes(b"PERFILE2")
    assert ctl(verb, "-D", dumps, PATH=str(fake_perf)).out.split() == [of_perf, "-i", str(merged)], "the newest file"
    symbols = dumps / "perf.data.kallsyms"
    symbols.touch()
    assert ctl(verb, "-D", dumps, PATH=str(fake_perf)).out.split() == [of_perf, "-i", str(merged), "--kallsyms", str(symbols)]
    (dumps / "debug" / ".build-id").mkdir(parents=True)
    assert ctl(verb, "-D", dumps, PATH=str(fake_perf)).out.split()[:2] == ["--buildid-dir", str(dumps / "debug")]


def test_perf_that_is_not_installed(dumps, tmp_path):
    r = ctl("perf", "-D", dumps, PATH=str(tmp_path))
    assert r.code == EXIT["error"] and "perf is not installed" in r.err and "linux-perf" in r.err, r


def test_list_and_info_show_merged_files(recorder, state_dir):
    """`stop --merge` makes a merged file. `list` and `info` show the merged files of two such stops."""
    n = []
    for reason in ("first", "second"):
        d = recorder("-e", "cpu-clock", "-F", "999", "-M", "4M")
        load("burn", "-u", "0.1")
        d.dump_by_control("--reason", reason)
        assert d.ctl("stop", "--merge").code == 0 and d.wait() == 0
        merged = state_dir / "perf.data"
        n.append(len(script_text(merged, trace=False)) + len(trigger_samples(merged)))
    older = next(state_dir.glob("perf.data.2*Z"))
    listed = json.loads(ctl("list", "-D", state_dir, "--json").out)
    assert [(x["path"], x["samples"]) for x in listed] == [(str(older), n[0]), (str(state_dir / "perf.data"), n[1])]
    text = ctl("list", "-D", state_dir).out
    assert "0 dumps and 2 merged files in" in text and "second (control" in text, text
    info = ctl("info", "perf.data", "-D", state_dir).out
    assert f"Samples: {n[1]}\n" in info and "second, trigger control" in info and "Losses: " in info, info
    fields = json.loads(ctl("info", "-D", state_dir, "--json").out)
    window = fields["window"]
    assert window["from_ns"] < window["to_ns"] and window["from"] < window["to"] <= fields["time"]
    assert fields["causes"][0]["reason"] == "second" and len(fields["dumps"]) == len(fields["causes"])


MEMBER = ("setpriv", "--reuid=65534", "--regid=65534", "--groups=1", "--no-new-privs", "--bounding-set=-all")


def test_printed_paths_are_absolute(state_dir, tmp_path):
    """The printed paths are absolute also if -o is relative to the directory in which the recorder was started."""
    p = start(program("flightrecd"), "-e", "cpu-clock", "-M", "1M", "-o", ".", "--socket", "control", cwd=state_dir,
              stderr=subprocess.DEVNULL)
    r = until("dump", lambda: (r := ctl("--socket", state_dir / "control", "dump")).code == 0 and r)
    assert r.out.startswith(f"{state_dir}/perf.data.sample.")
    assert ctl("--socket", state_dir / "control", "dump", "-o", tmp_path / "copy").code == 0
    assert "2 dumps in" in ctl("--socket", state_dir / "control", "list").out
    p.terminate()
    assert p.wait(60) == 0


def test_a_member_of_the_group_makes_a_private_copy(recorder, open_dir):
    """The copy is complete, belongs to the member of the group, and only this user can read it. If the target cannot be
    written, the command fails before a dump is made."""
    state, home = open_dir / "state", open_dir / "home"
    state.mkdir()
    home.mkdir()
    os.chown(home, 65534, 65534)
    d = recorder("-e", "cpu-clock", "-F", "999", "-M", "4M", "--group", "daemon", directory=state)
    load("burn", "-u", "0.1")
    copy = home / "mine.data"

    def dump(*args):
        return run(*MEMBER, open_dir / "flightrecctl", "--socket", d.socket, "dump", *args, cwd=home)

    state.chmod(0o755)
    for target in (home, "/dev/null", home / "no" / "such", open_dir / "x", state):
        r = dump("-o", target)
        assert r.code > 0 and not d.samples(), (target, r)
        assert len(r.err.splitlines()) > 1, f"the message does not say what to do next: {r.err}"
    copy.write_text("older")
    r = dump("-o", "mine.data")
    assert (r.code, r.out) == (0, "mine.data\n"), r
    st = copy.stat()
    assert (st.st_uid, st.st_mode & 0o777) == (65534, 0o600)
    assert copy.read_bytes() == d.samples()[0].read_bytes()
    with open(home / "piped", "wb") as f:
        p = start(*MEMBER, open_dir / "flightrecctl", "--socket", d.socket, "dump", "-o", "-", stdout=f)
        assert p.wait(60) == 0
    assert (home / "piped").read_bytes() == d.samples()[1].read_bytes()
    assert sorted(x.name for x in home.iterdir()) == ["mine.data", "piped"]
    # A signal ends flightrecctl also while it waits for the reader of its output.
    p = start(program("flightrecctl"), "--socket", d.socket, "dump", "-o", "-", stdout=subprocess.PIPE, pipesize=4096)
    assert p.stdout.read(1) == b"P"
    p.terminate()
    assert p.wait(60) == -signal.SIGTERM
    d.stop()
    assert run(*as_user(), "perf", "script", "-i", copy).code == 0, "perf refuses the copy: the option -f is needed"


def test_a_recorder_that_a_person_starts_does_not_arm_the_triggers_of_the_service(tmp_path, state_dir):
    """A recorder that a person starts beside the service knows the triggers of the configuration in /etc, but arms only the
    triggers that --trigger= names. If the person gives --config=, it arms all triggers of that file."""
    etc = [tmp_path / x for x in ("upper", "work")]
    for path in etc:
        path.mkdir()
    conf = etc[0] / "flightrec" / "flightrecd.conf"
    conf.parent.mkdir()
    conf.write_text("[Trigger hourly]\nEvery=1h\n[Trigger daily]\nEvery=1d\n")
    mount = f"mount -t overlay overlay -o lowerdir=/etc,upperdir={etc[0]},workdir={etc[1]} /etc"
    if run("unshare", "-m", "sh", "-c", mount).code != 0:
        pytest.skip("no overlay over /etc here")
    socket = state_dir / "control"
    for more, armed in ((["--trigger=daily"], {"daily"}), (["--config=/etc/flightrec/flightrecd.conf"], {"hourly", "daily"})):
        p = start("unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", program("flightrecd"), "-e", "cpu-clock", "-M", "1M",
                  "-o", state_dir, "--socket", socket, *more, stderr=subprocess.DEVNULL)
        r = until("answer", lambda: (r := ctl("triggers", "--json", "--socket", socket)).code == 0 and r)
        triggers = {t["name"]: t["state"] for t in json.loads(r.out)["triggers"]}
        assert {"hourly", "daily"} <= set(triggers), "the recorder knows the triggers"
        own = {"signal", "control", "application", "fleet"}
        if len(armed) == 1:
            assert {n for n, state in triggers.items() if state == "armed"} - own == armed
        assert {n for n in ("hourly", "daily") if triggers[n] == "armed"} == armed
        p.terminate()
        assert p.wait(60) == 0


def record_types(path):
    """Returns {type: number of records in the file}."""
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
    """--no-compression makes a dump for readers that do not know compressed records. `info` on a compressed dump prints a
    command, which makes a copy without compression."""
    # The filter selects getppid(), which the load calls and other programs rarely call. On a busy machine, the other system
    # calls would evict the earlier calls from the ring.
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110", "-M", "8M")
    load("syscalls", "-n", 20000)
    packed, plain = d.dump_by_control(), d.dump_by_control("--no-compression")
    d.stop()
    assert COMPRESSED & set(record_types(packed)) and not COMPRESSED & set(record_types(plain))
    assert not meta(plain)["compressed"]
    assert set(script_text(packed)) <= set(script_text(plain)), "the later dump has all samples of the earlier dump"
    line = next(x for x in ctl("info", packed).out.splitlines() if "Compressed:" in x)
    words = line.split("plain copy: ")[1].split()
    assert words[0] == "flightrec-merge"
    assert run(program(words[0]), *words[1:], cwd=tmp_path).code == 0
    copy = tmp_path / "plain.data"
    assert not COMPRESSED & set(record_types(copy)) and packed.exists()
    assert script_text(copy) == script_text(packed)
    assert "Compressed:" not in ctl("info", plain).out
