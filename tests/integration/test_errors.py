# SPDX-License-Identifier: GPL-2.0-or-later
"""Mistakes of users. Each message says what is wrong, where it is wrong, and what to do next. The exit code is not 0, and no
data is lost."""
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from conftest import NOBODY, as_user
from harness import EXIT, NO_LOSS, fill, load, merge, program, quiet_config, run, start, until


def flightrecd(directory, *args, binary=None, prefix=()):
    return run(*prefix, binary or program("flightrecd"), *args, "-o", directory, "--socket", directory / "control")


def refused(r, *words, code=None):
    """Checks that the program did not crash, but failed with the exit code CODE, or with any exit code except 0 if CODE is
    None. The message must have all WORDS and say what to do next."""
    assert r.code > 0 if code is None else r.code == code, f"exit code {r.code}, wanted {code or '> 0'}\n{r.err}"
    if r.code != EXIT["salvaged"]:
        assert re.search(r"^  \S", r.err, re.M), f"the message does not say what to do next:\n{r.err}"
    for word in words:
        assert word in r.err, f"{word!r} is not in the message:\n{r.err}"
    assert "Sanitizer" not in r.err and "assert" not in r.err.lower(), r.err


def test_a_frequency_above_the_limit_of_the_kernel(state_dir):
    limit = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text())
    if limit >= 1000000:
        pytest.skip(f"kernel.perf_event_max_sample_rate is {limit}")
    # The kernel lowers its limit if interrupts take too long, so the message may have a lower number.
    refused(flightrecd(state_dir, "-e", "cpu-clock", "-F", limit + 1), "kernel.perf_event_max_sample_rate", "give -F ")


@pytest.mark.parametrize("what", ["missing", "file", "read-only"])
def test_a_directory_that_cannot_be_used(tmpfs, tmp_path, what):
    path = tmpfs("1M")
    if what == "read-only":
        assert run("mount", "-o", "remount,ro", path).code == 0
    else:
        (path / "file").write_text("data")
        path = path / ("file" if what == "file" else "nowhere/at-all")
    refused(run(program("flightrecd"), "-e", "cpu-clock", "-o", path, "--socket", tmp_path / "control"), str(path))
    assert not path.is_file() or path.read_text() == "data"


def test_merge_on_a_full_file_system(recorder, tmpfs):
    path = tmpfs("64M")
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M", directory=path)
    load("syscalls", "-n", 50000)
    d.dump_by_control()
    d.stop()
    before = sorted(p.name for p in path.iterdir())
    ballast = path / "ballast"
    fill(ballast)
    r = merge(path)
    refused(r, "space", code=EXIT["no-space"])
    ballast.unlink()
    assert sorted(p.name for p in path.iterdir()) == before, "inputs untouched, nothing half-written"
    assert merge(path).code == 0


# A Python program that makes 20000 maps. Each call maps the same page of the file, because the kernel would join maps of
# neighbouring pages.
MANY_MAPS = """
import ctypes, time
c = ctypes.CDLL(None)
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
with open("/bin/true") as f:
    for _ in range(20000):
        c.mmap(None, 4096, 5, 2, f.fileno(), 0)  # PROT_READ | PROT_EXEC, MAP_PRIVATE
print(flush=True)
time.sleep(600)
"""


def test_a_compaction_that_fails_is_reported(recorder, tmpfs, tmp_path, request):
    """The file system has room for new records, but not for the second auxiliary file, which a compaction writes."""
    path = tmpfs("24M")
    conf = quiet_config(tmp_path / "compact.conf", "[Recorder]\nEvents=cpu-clock\nRingSize=4M\nAuxiliaryMaxAge=1s\n")
    mapping = start("/usr/bin/python3", "-c", MANY_MAPS, stdout=subprocess.PIPE)
    request.addfinalizer(mapping.kill)
    mapping.stdout.readline()
    d = recorder("--config", conf, directory=path)

    def file_bytes():
        return d.status()["sideband"]["file_bytes"]

    until("a file with the maps", lambda: file_bytes() > 2 << 20)
    ballast = path / "ballast"
    fill(ballast)
    os.truncate(ballast, ballast.stat().st_size - file_bytes() // 2)

    def notices():
        load("spawn", "-n", 1, "-m", "1")
        time.sleep(0.5)
        return [x for x in d.status()["notices"] if "cannot be compacted" in x]

    until("notice", notices, 100)
    d.until_logged("cannot be compacted")
    assert d.status()["sideband"]["compactions_failed"] > 0 and d.running()


def test_second_instance_on_the_directory(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    r = run(program("flightrecd"), "-e", "cpu-clock", "-o", state_dir, "--socket", state_dir.parent / "other.control")
    refused(r, f"(pid {d.pid})", str(state_dir))
    assert d.running()
    assert d.dump_by_control().exists(), "the first is unharmed"


def test_second_instance_on_the_socket(recorder, state_dir, tmp_path):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    other = tmp_path / "other"
    other.mkdir()
    refused(run(program("flightrecd"), "-e", "cpu-clock", "-o", other, "--socket", d.socket), str(d.socket))
    assert d.status()["pid"] == d.pid


@pytest.mark.parametrize("text, line, words", [
    ("[Recorder]\nRingSize=banana\n", 2, ["RingSize", "banana"]),
    ("[Recorder]\n\n# fine\nRingSice=64M\n", 4, ["RingSice", "RingSize"]),
    ("[Recorder]\nFrequency=99\n[Dumpp]\nCompression=yes\n", 3, ["Dumpp", "Dump"]),
    ("[Recorder]\nEvents=sched:sched_swich\n", 2, ["sched:sched_swich", "sched:sched_switch"]),
    ("[Dump]\nCompression=perhaps\n", 2, ["perhaps"]),
    ("[Recorder]\nthis is no assignment\n", 2, []),
])
def test_a_mistake_in_the_configuration_is_reported_with_file_and_line(state_dir, tmp_path, text, line, words):
    """flightrecd and `flightrecctl verify-config` report it, both for the file and for a drop-in."""
    conf, drop_ins = tmp_path / "c.conf", tmp_path / "c.conf.d"
    drop_ins.mkdir()
    conf.write_text("[Recorder]\nEvents=cpu-clock\n")
    assert run(program("flightrecctl"), "verify-config", conf).code == 0
    for path in (drop_ins / "10-bad.conf", conf):
        path.write_text(text)
        refused(flightrecd(state_dir, "--config", conf), f"{path}:{line}", *words)
        refused(run(program("flightrecctl"), "verify-config", conf), f"{path}:{line}", code=EXIT["error"])
        path.unlink()


def many_files(drop_ins):
    for i in range(300):
        (drop_ins / f"{i}.conf").touch()


HOSTILE = {
    "a-fifo": (lambda p: os.mkfifo(p), ["not a regular file"]),
    "a-socket": (lambda p: socket.socket(socket.AF_UNIX).bind(str(p)), ["cannot open"]),
    "a-loop": (lambda p: p.symlink_to(p.name), ["symbolic links"]),
    "a-directory": (lambda p: p.mkdir(), ["directory"]),
    "zeros": (lambda p: p.symlink_to("/dev/zero"), None),  # not an error: a link to a device disables a drop-in
    "a-sparse-file": (lambda p: p.touch() or os.truncate(p, 1 << 40), [":1: "]),
    "noise": (lambda p: p.write_bytes(bytes(range(256)) * 4096), [":1: "]),
    "comments": (lambda p: p.write_bytes(b"# x\n" * (2 << 20)), ["1 MiB"]),
    "events": (lambda p: p.write_text("[Recorder]\n" + "Events=cpu-clock\n" * 60000), [":8194: ", "8192 events"]),
    "triggers": (lambda p: p.write_text("".join(f"[Trigger t{i}]\nEvery=1h\n" for i in range(40000))), [":513: ", "256 triggers"]),
    "files": (lambda p: many_files(p.parent), ["256 files"]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_configuration(state_dir, tmp_path, what):
    """A drop-in can be any file. The recorder reads a limited amount of it, and reports what is wrong."""
    make, words = HOSTILE[what]
    conf, drop_ins = tmp_path / "c.conf", tmp_path / "c.conf.d"
    conf.touch()
    drop_ins.mkdir()
    make(drop_ins / "a.conf")
    r = run(program("flightrecctl"), "verify-config", conf, timeout=60)
    if words is None:
        assert r.code == 0, r
    else:
        refused(r, *words)
        refused(flightrecd(state_dir, "--config", conf), *words)


@pytest.mark.parametrize("verb", ["dump", "status"])
def test_no_recorder_runs(recorder, tmp_path, verb):
    """Two cases: there was never a recorder with this socket, and the recorder was killed."""
    socket = tmp_path / "nobody-here"
    refused(run(program("flightrecctl"), "--socket", socket, verb), "not running", str(socket), "systemctl start flightrecd", code=EXIT["unreachable"])
    d = recorder("-e", "cpu-clock", "-M", "4M")
    d.kill()
    refused(d.ctl(verb), "not running", code=EXIT["unreachable"])


@pytest.mark.parametrize("event, capability", [("cpu-clock", "CAP_PERFMON"), ("sched:sched_switch", "CAP_")])
def test_a_missing_capability_is_named(open_dir, nobodys_dir, event, capability):
    r = flightrecd(nobodys_dir, "-e", event, binary=open_dir / "flightrecd", prefix=as_user())
    refused(r, capability, code=EXIT["permission"])


def test_files_belong_to_a_user_who_is_not_in_the_group(open_dir, nobodys_dir):
    """A user records a command, but is not a member of the group that --group names. In this case the files get the user's
    group."""
    r = run(*as_user("perfmon", "ipc_lock"), open_dir / "flightrecd", "-e", "cpu-clock", "-F", "999", "-M", "4M", "--group", "daemon",
            "-o", nobodys_dir, "--", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    assert r.code == 0, r.err
    merged = nobodys_dir / "perf.data"
    assert (merged.stat().st_uid, merged.stat().st_gid) == (NOBODY, NOBODY)
    assert int(re.search(r"/perf\.data: (\d+) samples", r.err)[1]) > 10, r.err


def test_a_merge_has_the_group_of_its_dumps(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-M", "4M", "--group", "daemon")
    load("burn", "-t", "0.1")
    group = d.dump_by_control().stat().st_gid
    merged = d.finish()
    assert group != os.getegid()
    assert [merged.stat().st_gid, (state_dir / "perf.data.json").stat().st_gid] == [group, group]


def test_locked_memory_limit(open_dir, nobodys_dir):
    """A user with CAP_PERFMON but without CAP_IPC_LOCK asks for larger kernel rings than the limits permit."""
    limit_kb = int(open("/proc/sys/kernel/perf_event_mlock_kb", encoding="ascii").read())
    buffer = 1 << (limit_kb * 1024 * os.cpu_count()).bit_length()
    if buffer > 1 << 30:
        pytest.skip(f"kernel.perf_event_mlock_kb is {limit_kb}: no buffer that flightrecd takes comes near it")
    if run("prlimit", "--memlock=65536:65536", "true").code != 0:
        pytest.skip("RLIMIT_MEMLOCK cannot be set here")
    r = flightrecd(nobodys_dir, "-e", "cpu-clock", "-m", f"{buffer >> 10}K", binary=open_dir / "flightrecd",
                   prefix=("prlimit", "--memlock=65536:65536", *as_user("perfmon")))
    refused(r, "perf_event_mlock_kb", code=EXIT["permission"])


@pytest.mark.parametrize("name", ["flightrecd", "flightrecctl", "flightrec-merge"])
def test_options_of_all_programs(name):
    r = run(program(name), "--version")
    assert r.code == 0 and r.out.strip(), r
    r = run(program(name), "--help")
    assert r.code == 0 and name in r.out, r
    refused(run(program(name), "--no-such-option"), "no-such-option", code=EXIT["usage"])


# --- tables of mistakes: (arguments, a part of the message) --------------------------------------------------------------

CTL_MISTAKES = [
    ("", "no verb"),
    ("dmp", "did you mean dump?"),
    ("statsu", "did you mean status?"),
    ("frobnicate", "unknown verb 'frobnicate'"),
    ("dump x", "unexpected argument 'x'"),
    ("--lats=3s dump", "did you mean --last?"),
    ("-x", "unknown option '-x'"),
    ("--socket", "needs a value"),
    ("--utc=yes list", "takes no value"),
    ("dump --merge", "belongs to the verb stop"),
    ("list --json short", "--json=short"),
    ("list --json=pritty", "pretty, short or off"),
    ("report --stdio", "report latest -- --stdio"),
    ("dump --last banana", "30s or 5min"),
    ("dump --last 0", "30s or 5min"),
    ("dump --post=-5s", "30s or 5min"),
    ("dump --from 25:00", "23:11"),
    ("dump --to tomorrow", "23:11"),
    ("dump --from -1min --to -2min", "--from is later than --to"),
    ("dump --last 5s --from -3s", "exclude each other"),
    ("dump --post 5s --to now", "excludes"),
    ("dump -o x --no-wait", "give only one of the two options"),
    ("dump -o /no/such/x", "/no/such/x"),
    ("dump -o /dev/null", "/dev/null is not an ordinary file"),
    ("vacuum --max-use lots", "512M or 2G"),
    ("vacuum --max-files=-1", "write it as 10"),
    ("vacuum --max-age x", "30s or 5min"),
    ("vacuum -D /no/such", "/no/such"),
    ("why -n 0", "from 1 to 256"),
    ("enable", "needs an argument: NAME"),
    ("info nosuch -D {empty}", "{empty}/nosuch"),
    ("info /no/such", "/no/such"),
    ("info {text}", "is not a perf.data file"),
    ("script {text}", "is not a perf.data file"),
    ("info -D {empty}", "there is no dump in {empty}"),
    ("report -D {empty}", "there is no dump in {empty}"),
    ("list -D /no/such", "-D"),
    ("list -D {text}", "-D"),
    ("rm nosuch -D {empty}", "is not the name of a dump"),
    ("rm perf.data.sample.20261120T231137.123456Z -D {empty}", "flightrecctl list"),
    ("verify-config /no/such", "/no/such"),
    ("verify-config {empty}", "{empty}"),
    ("verify-config {text}", "{text}:1"),
    ("--socket {empty}/none dump", "not running"),
    ("--socket {text} dump", "not running"),
    ("--socket " + "x" * 200 + " dump", "too long"),
]

MERGE_MISTAKES = [
    ("--dry-rn", "did you mean --dry-run?"),
    ("/no/such", "/no/such"),
    ("{empty}", "{empty}"),
    ("{text}", "{text}"),
    ("{empty} {empty}", "one directory"),
    ("-z99 {empty}", "1 to 22"),
    ("--block-size 3 {empty}", "64K"),
    ("--queue-depth 0 {empty}", "1 to 64"),
    ("--json=x {empty}", "pretty"),
    ("--service {empty}", "SERVICE_RESULT"),
    ("-o /no/such/x {text}", "/no/such"),
    ("-o {empty} {text}", "{empty} is not a regular file"),
    ("-o /dev/null {text}", "/dev/null is not a regular file"),
]

# More mistakes in events, options and keys are in the unit tests.
RECORD_MISTAKES = [
    ("--event=", "-e"),
    ("-e sched:sched_swich", "sched:sched_switch"),
    ("-e cpu-clock -M512K", "1M"),
    ("-e cpu-clock --filter common_pid", "filter"),
    ("-e sched:sched_switch --filter no_such_field==1", "no_such_field"),
    ("-e cpu-clock -c 1000", "1000 ns"),
    ("-e task-clock/period=1000/", "1000 ns"),
    ("-e cpu-clock -p 4194303", "4194303"),
    ("-e cpu-clock -C 4000", "4000"),
    ("-e cpu-clock --cgroup no-such-cgroup", "no-such-cgroup"),
    ("--evnt x", "did you mean --event?"),
    ("ls", "after --"),
    ("--call-graph nix", "fp, dwarf"),
    ("--call-graph dwarf,x", "dwarf,8192"),
    ("--trigger oom-kil", "did you mean [Trigger oom-kill]?"),
    ("--trigger x:y", "Threshold="),
    ("--trigger oom-kill:Treshold=1", "did you mean Threshold=?"),
    ("--config /no/such", "/no/such"),
    ("--config {empty}", "{empty}"),
    ("-e cpu-clock -- /no/such/command", "/no/such/command"),
    ("-e cpu-clock -- {text}", "{text}"),
]


@pytest.mark.parametrize("name, words, expected", [("flightrecctl", *x) for x in CTL_MISTAKES] +
                         [("flightrec-merge", *x) for x in MERGE_MISTAKES] + [("flightrecd", *x) for x in RECORD_MISTAKES])
def test_the_message_about_a_mistake_says_what_to_do(tmp_path, name, words, expected):
    places = {"empty": tmp_path / "empty", "text": tmp_path / "text"}
    places["empty"].mkdir()
    places["text"].write_text("no perf.data\n")
    argv = words.format(**places).split()
    if name == "flightrecd":
        argv = ["-o", str(places["empty"]), "--socket", str(tmp_path / "control"), *argv]
    r = run(program(name), *argv, cwd=tmp_path, timeout=60)
    refused(r, expected.format(**places))
    assert r.code != EXIT["salvaged"] or "not running" in r.err
    if words.startswith("dump --"):
        assert r.code == EXIT["usage"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "text"], "no file was made"


def test_mistakes_that_the_recorder_finds(recorder):
    d = recorder("-e", "cpu-clock", "-M", "1M")
    for words, expected in (("disable hung-tsk", "did you mean hung-task?"), ("test-trigger contrl", "did you mean control?"),
                            ("enable frobnicate", "flightrecctl triggers"), ("dump --from 2001-01-01 --to 2001-01-02", "no longer holds"),
                            ("dump --from +1h", "ends before it begins"), ("dump --to +1h", "in the future"),
                            ("rm perf.data.sample.20010101T000000.000000Z", "flightrecctl list")):
        refused(d.ctl(*words.split()), expected)
    assert not d.samples()


@pytest.mark.parametrize("words", ["dump", "status", "stop", "list -D {dir}", "report {dir}/perf.data"])
def test_a_user_without_permission_is_told_who_has_it(recorder, open_dir, words):
    state = open_dir / "state"
    state.mkdir(mode=0o750)
    (state / "perf.data").write_bytes(b"PERFILE2")
    d = recorder("-e", "cpu-clock", "-M", "1M", directory=state)
    for mode in (0o750, 0o755):
        state.chmod(mode)
        if mode == 0o750 or words == "dump":
            r = run(*as_user(), open_dir / "flightrecctl", "--socket", d.socket, *words.format(dir=state).split())
            refused(r, *["root"] * (mode == 0o750), code=EXIT["permission"])
    assert not d.samples()
