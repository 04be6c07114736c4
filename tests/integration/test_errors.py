# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user can get wrong: each with what, where, what to do next, an exit code that is not 0, and no data lost."""
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from harness import ARMED_PROBES, EXIT, NO_LOSS, fill, load, merge, program, run, script_lines, start, until


def flightrecd(directory, *args, binary=None, prefix=()):
    return run(*prefix, binary or program("flightrecd"), *args, "-o", directory, "--socket", directory / "control")


# As many as the kernel's ring holds by itself, however late the recorder looks.
CALLS = 100000


def refused(r, *words, code=None):
    """It said why, in so many words, and left with the right code; never by a crash."""
    assert r.code > 0 if code is None else r.code == code, f"exit code {r.code}, wanted {code or '> 0'}\n{r.err}"
    assert r.err.strip(), "it failed without a word"
    if r.code != EXIT["salvaged"]:
        assert re.search(r"^  \S", r.err, re.M), f"what to do next is not said:\n{r.err}"
    for word in words:
        assert word in r.err, f"{word!r} is not in the message:\n{r.err}"
    assert "Sanitizer" not in r.err and "assert" not in r.err.lower(), r.err


@pytest.mark.parametrize("spec, near", [
    ("sched:sched_swich", "sched:sched_switch"),
    ("raw_syscalls:sys_entry", "raw_syscalls:sys_enter"),
    ("cpu-clok", "cpu-clock"),
    ("context-swiches", "context-switches"),
    ("cyles", "cycles"),
])
def test_unknown_event_is_answered_with_near_misses(state_dir, spec, near):
    refused(flightrecd(state_dir, "-e", spec), spec, near)


@pytest.mark.parametrize("spec", ["", ":::", "sched:", "cpu-clock/period=x/", "cpu-clock:q", "cpu/", "x" * 5000, "a:b:c:d",
                                  "cpu-clock/freq=10,period=10"])
def test_what_is_no_event(state_dir, spec):
    refused(flightrecd(state_dir, "-e", spec))


@pytest.mark.parametrize("size, word", [("512K", "1M"), ("1", "1M"), ("0", "1M"), ("32G", "16"), ("lots", "lots"), ("-5M", "-5M")])
def test_ring_size(state_dir, size, word):
    refused(flightrecd(state_dir, "-e", "cpu-clock", f"-M{size}"), word)


def test_a_frequency_past_the_kernels_limit(state_dir):
    limit = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text())
    if limit >= 1000000:
        pytest.skip(f"kernel.perf_event_max_sample_rate is {limit}")
    # The kernel lowers its limit where interrupts take too long.
    refused(flightrecd(state_dir, "-e", "cpu-clock", "-F", limit + 1), "kernel.perf_event_max_sample_rate", "give -F ")


def test_bad_filter(state_dir):
    refused(flightrecd(state_dir, "-e", "sched:sched_switch", "--filter", "no_such_field == 1"), "no_such_field")


def test_filter_on_what_is_no_tracepoint(state_dir):
    refused(flightrecd(state_dir, "-e", "cpu-clock", "--filter", "common_pid == 1"), "filter")


def test_usage(state_dir):
    refused(flightrecd(state_dir, "--no-such-option"), "no-such-option", code=EXIT["usage"])


def test_command_line_conflict(state_dir):
    r = run(program("flightrecd"), "-e", "cpu-clock", "-p", "1", "-o", state_dir, "--", "true")
    refused(r, "-p")


def test_frequency_and_period(state_dir):
    refused(flightrecd(state_dir, "-F", "99", "-c", "1000"), "-F", "-c", code=EXIT["usage"])


@pytest.mark.parametrize("args", [("-e", "cpu-clock", "-c", "1000"), ("-e", "task-clock/period=1000/")])
def test_period_that_is_a_storm(state_dir, args):
    refused(flightrecd(state_dir, *args), "1000 ns", "100000")


def test_pid_that_is_not_there(state_dir):
    refused(flightrecd(state_dir, "-e", "cpu-clock", "-p", "4194303"), "4194303")


def test_cpu_that_is_not_there(state_dir):
    refused(flightrecd(state_dir, "-e", "cpu-clock", "-C", "4000"), "4000")


def test_cgroup_that_is_not_there(state_dir):
    refused(flightrecd(state_dir, "-e", "cpu-clock", "--cgroup", "no-such-cgroup"), "no-such-cgroup")


def test_missing_directory(state_dir):
    missing = state_dir / "nowhere" / "at-all"
    r = run(program("flightrecd"), "-e", "cpu-clock", "-o", missing, "--socket", state_dir / "control")
    refused(r, str(missing))


def test_directory_that_is_a_file(state_dir):
    path = state_dir / "file"
    path.write_text("data")
    r = run(program("flightrecd"), "-e", "cpu-clock", "-o", path, "--socket", state_dir / "control")
    refused(r, str(path))
    assert path.read_text() == "data"


def test_read_only_directory(tmpfs):
    path = tmpfs("1M")
    assert run("mount", "-o", "remount,ro", path).code == 0
    r = run(program("flightrecd"), "-e", "cpu-clock", "-o", path, "--socket", path.parent / "control")
    refused(r, str(path))


def test_full_file_system(recorder, tmpfs):
    """The dump fails in words, the ring keeps what it has, and the next dump, with room, has everything."""
    path = tmpfs("24M")
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "16M", "--no-compression", directory=path)
    did = load("syscalls", "-n", CALLS)
    ballast = path / "ballast"
    fill(ballast)
    r = d.ctl("dump")
    refused(r, "space", code=EXIT["no-space"])
    assert d.running() and not d.samples(), "no half files"
    assert not [p for p in path.iterdir() if p.name.startswith(".perf.data.sample")], "and no temporary ones"
    assert d.status()["dumps"]["failed"] == 1
    ballast.unlink()
    assert run("mount", "-o", "remount,size=400M", path).code == 0
    lines = script_lines(d.dump_by_control())
    d.stop()
    assert sum(line.tid == did["pid"] and line.trace.startswith("NR 110 ") for line in lines) == CALLS


def test_merge_on_a_full_file_system(recorder, tmpfs):
    path = tmpfs("64M")
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M", directory=path)
    load("syscalls", "-n", 100000)
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


def test_full_auxiliary_is_counted(recorder, tmpfs):
    path = tmpfs("24M")
    d = recorder("-e", "cpu-clock", "-M", "4M", directory=path)
    fill(path / "ballast")

    def failed():
        load("spawn", "-n", 100, "-m", "1")
        return d.status()["sideband"]["write_errors"]

    until("write that fails", failed)
    assert d.running(), "and it records on"


# Each call maps the same page of the file: the kernel joins only mappings of pages that follow each other.
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


def test_a_compaction_that_fails_is_told(recorder, tmpfs, tmp_path, request):
    """There is room for what comes, however busy the machine is, and none for a second file."""
    path = tmpfs("24M")
    conf = tmp_path / "compact.conf"
    probes = "".join(f"[Trigger {name}]\nEnabled=no\n" for name in ARMED_PROBES)
    conf.write_text(f"[Recorder]\nEvents=cpu-clock\nRingSize=4M\nAuxiliaryMaxAge=1s\n[Triggers]\nSocket={path}/trigger\n{probes}")
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
    until("line in the log", lambda: "cannot be compacted" in d.log())
    assert d.status()["sideband"]["compactions_failed"] > 0 and d.running()


def test_second_instance_on_the_directory(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    r = run(program("flightrecd"), "-e", "cpu-clock", "-o", state_dir, "--socket", state_dir.parent / "other.control")
    refused(r, str(state_dir))
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
def test_bad_configuration_names_file_and_line(state_dir, tmp_path, text, line, words):
    conf = tmp_path / "bad.conf"
    conf.write_text(text)
    refused(flightrecd(state_dir, "--config", conf), f"{conf}:{line}", *words)


def many_files(drop_ins):
    for i in range(300):
        (drop_ins / f"{i}.conf").touch()


HOSTILE = {
    "a-fifo": (lambda p: os.mkfifo(p), ["not a regular file"]),
    "a-socket": (lambda p: socket.socket(socket.AF_UNIX).bind(str(p)), ["cannot open"]),
    "a-loop": (lambda p: p.symlink_to(p.name), ["symbolic links"]),
    "a-directory": (lambda p: p.mkdir(), ["directory"]),
    "zeros": (lambda p: p.symlink_to("/dev/zero"), None),  # a device masks, as /dev/null does
    "a-sparse-file": (lambda p: p.touch() or os.truncate(p, 1 << 40), [":1: "]),
    "noise": (lambda p: p.write_bytes(bytes(range(256)) * 4096), [":1: "]),
    "comments": (lambda p: p.write_bytes(b"# x\n" * (2 << 20)), ["1 MiB"]),
    "events": (lambda p: p.write_text("[Recorder]\n" + "Events=cpu-clock\n" * 60000), [":8194: ", "8192 events"]),
    "triggers": (lambda p: p.write_text("".join(f"[Trigger t{i}]\nEvery=1h\n" for i in range(40000))), [":513: ", "256 triggers"]),
    "files": (lambda p: many_files(p.parent), ["256 files"]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_configuration(state_dir, tmp_path, what):
    """Bounded and answered, whatever lies among the drop-ins."""
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


def test_bad_drop_in(state_dir, tmp_path):
    conf = tmp_path / "good.conf"
    conf.write_text("[Recorder]\nEvents=cpu-clock\n")
    drop_ins = tmp_path / "good.conf.d"
    drop_ins.mkdir()
    (drop_ins / "10-bad.conf").write_text("[Recorder]\nRingSize=-1\n")
    refused(flightrecd(state_dir, "--config", conf), f"{drop_ins}/10-bad.conf:2")


def test_verify_config(tmp_path):
    conf = tmp_path / "c.conf"
    conf.write_text("[Recorder]\nEvents=cpu-clock\nRingSize=8M\n")
    assert run(program("flightrecctl"), "verify-config", conf).code == 0
    conf.write_text("[Recorder]\nRingSize=8Q\n")
    refused(run(program("flightrecctl"), "verify-config", conf), f"{conf}:2", code=EXIT["error"])


@pytest.mark.parametrize("verb", ["dump", "status"])
def test_daemon_not_running(tmp_path, verb):
    socket = tmp_path / "nobody-here"
    r = run(program("flightrecctl"), "--socket", socket, verb)
    refused(r, "not running", str(socket), code=EXIT["unreachable"])


def test_daemon_died(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    d.kill()
    refused(d.ctl("status"), "not running", code=EXIT["unreachable"])


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--bounding-set=-all")


def test_not_permitted_names_the_capability(open_dir):
    state = open_dir / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    r = flightrecd(state, "-e", "cpu-clock", binary=open_dir / "flightrecd", prefix=NOBODY)
    refused(r, "CAP_PERFMON", code=EXIT["permission"])


def test_tracepoints_are_not_permitted(open_dir):
    state = open_dir / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    r = flightrecd(state, "-e", "sched:sched_switch", binary=open_dir / "flightrecd", prefix=NOBODY)
    refused(r, "CAP_", code=EXIT["permission"])


def test_control_is_not_for_everyone(recorder, open_dir):
    state = open_dir / "state"
    state.mkdir(mode=0o755)
    d = recorder("-e", "cpu-clock", "-M", "4M", directory=state)
    state.chmod(0o755)
    r = run(*NOBODY, open_dir / "flightrecctl", "--socket", d.socket, "dump")
    refused(r, code=EXIT["permission"])
    assert not d.samples()


def test_files_stay_their_users_where_the_group_is_not_his(open_dir):
    """A command of one's own, on a machine that has the group of the recorder's files."""
    state = open_dir / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+perfmon,+ipc_lock",
              "--ambient-caps=-all,+perfmon,+ipc_lock", "--bounding-set=-all,+perfmon,+ipc_lock")
    if run(*prefix, "true").code != 0:
        pytest.skip("setpriv cannot hand on CAP_PERFMON here")
    r = run(*prefix, open_dir / "flightrecd", "-e", "cpu-clock", "-F", "999", "-M", "4M", "--group", "daemon", "-o", state,
            "--", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done")
    assert r.code == 0, r.err
    merged = state / "perf.data"
    assert (merged.stat().st_uid, merged.stat().st_gid) == (65534, 65534)
    assert int(re.search(r"/perf\.data: (\d+) samples", r.err)[1]) > 10, r.err


def test_a_merge_is_for_whom_the_dumps_were_for(recorder, state_dir):
    d = recorder("-e", "cpu-clock", "-M", "4M", "--group", "daemon")
    load("burn", "-t", "0.3")
    group = d.dump_by_control().stat().st_gid
    merged = d.finish()
    assert group != os.getegid()
    assert [merged.stat().st_gid, (state_dir / "perf.data.json").stat().st_gid] == [group, group]


def test_locked_memory_limit(open_dir):
    """With CAP_PERFMON but without CAP_IPC_LOCK, and more buffer than the limits allow."""
    limit_kb = int(open("/proc/sys/kernel/perf_event_mlock_kb", encoding="ascii").read())
    buffer = 1 << (limit_kb * 1024 * os.cpu_count()).bit_length()
    if buffer > 1 << 30:
        pytest.skip(f"kernel.perf_event_mlock_kb is {limit_kb}: no buffer that flightrecd takes comes near it")
    state = open_dir / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    perfmon = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+perfmon",
               "--ambient-caps=-all,+perfmon", "--bounding-set=-all,+perfmon")
    if run(*perfmon, "true").code != 0:
        pytest.skip("setpriv cannot hand on CAP_PERFMON here")
    if run("prlimit", "--memlock=65536:65536", "true").code != 0:
        pytest.skip("RLIMIT_MEMLOCK cannot be set here")
    r = flightrecd(state, "-e", "cpu-clock", "-m", f"{buffer >> 10}K", binary=open_dir / "flightrecd",
                   prefix=("prlimit", "--memlock=65536:65536", *perfmon))
    refused(r, "perf_event_mlock_kb", code=EXIT["permission"])


@pytest.mark.parametrize("content", [b"", b"PERFILE2", b"no perf.data at all\n" * 100, b"PERFILE2" + b"\xff" * 4096],
                         ids=["empty", "magic", "text", "noise"])
def test_corrupt_input(tmp_path, content):
    bad = tmp_path / "perf.data.sample.20261120T231137.123456Z"
    bad.write_bytes(content)
    r = run(program("flightrec-merge"), tmp_path)
    refused(r, bad.name)
    assert bad.read_bytes() == content, "what could not be read is never removed"


def test_corrupt_input_beside_a_good_one(recorder, state_dir):
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "-M", "8M")
    did = load("syscalls", "-n", 3000)
    good = d.dump_by_control()
    d.stop()
    bad = state_dir / "perf.data.sample.20200101T000000.000000Z"
    bad.write_bytes(b"\0" * 10000)
    r = merge(state_dir)
    refused(r, bad.name, code=EXIT["salvaged"])
    assert bad.exists()
    lines = script_lines(state_dir / "perf.data")
    assert sum(line.tid == did["pid"] and line.trace.startswith("NR 110 ") for line in lines) == 3000
    assert good.name not in r.err


def test_programs_say_who_they_are():
    for name in ("flightrecd", "flightrecctl", "flightrec-merge"):
        r = run(program(name), "--version")
        assert r.code == 0 and r.out.strip(), (name, r)
        r = run(program(name), "--help")
        assert r.code == 0 and name in r.out, (name, r)


# --- a table of mistakes: program, words, what the message has -----------------------------------------------------------------

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
    ("dump -o x --no-wait", "leave one of them out"),
    ("dump -o /no/such/x", "/no/such/x"),
    ("dump -o /dev/null", "/dev/null is no ordinary file"),
    ("vacuum --max-use lots", "512M or 2G"),
    ("vacuum --max-files=-1", "write it as 10"),
    ("vacuum --max-age x", "30s or 5min"),
    ("vacuum -D /no/such", "/no/such"),
    ("why -n 0", "from 1 to 256"),
    ("enable", "needs an argument: NAME"),
    ("info nosuch -D {empty}", "{empty}/nosuch"),
    ("info /no/such", "/no/such"),
    ("info {text}", "is no perf.data"),
    ("script {text}", "is no perf.data"),
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

RECORD_MISTAKES = [
    ("--evnt x", "did you mean --event?"),
    ("ls", "after --"),
    ("-e cpu-clock/freq=x/", "freq"),
    ("-F x", "-F: Frequency="),
    ("-F 99 -c 200000", "exclude each other"),
    ("-c 0", "Period="),
    ("-C x", "0-3,8"),
    ("-p x", "-p 1234"),
    ("-m 0", "one page"),
    ("--call-graph nix", "fp, dwarf"),
    ("--call-graph dwarf,x", "dwarf,8192"),
    ("--window x", "30s, 5min"),
    ("--post-trigger 2h", "at most 1h"),
    ("--block-size 3", "64K"),
    ("--queue-depth 0", "1 to 64"),
    ("--trigger oom-kil", "did you mean [Trigger oom-kill]?"),
    ("--trigger x:y", "Threshold="),
    ("--trigger oom-kill:Treshold=1", "did you mean Threshold=?"),
    ("--filter x", "no -e before it"),
    ("--config /no/such", "/no/such"),
    ("--config {empty}", "{empty}"),
    ("-M 64M -a -p 1", "exclude each other"),
    ("-e cpu-clock:zz", "modifiers are"),
    ("-e cpu-clock -- /no/such/command", "/no/such/command"),
    ("-e cpu-clock -- {text}", "{text}"),
]


@pytest.mark.parametrize("name, words, expected", [("flightrecctl", *x) for x in CTL_MISTAKES] +
                         [("flightrec-merge", *x) for x in MERGE_MISTAKES] + [("flightrecd", *x) for x in RECORD_MISTAKES])
def test_every_mistake_is_answered_with_what_to_do(tmp_path, name, words, expected):
    places = {"empty": tmp_path / "empty", "text": tmp_path / "text"}
    places["empty"].mkdir()
    places["text"].write_text("no perf.data\n")
    argv = words.format(**places).split()
    if name == "flightrecd":
        argv = ["-o", str(places["empty"]), "--socket", str(tmp_path / "control"), *argv]
    r = run(program(name), *argv, cwd=tmp_path, timeout=60)
    refused(r, expected.format(**places))
    assert r.code != EXIT["salvaged"] or "not running" in r.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "text"], "and nothing was made"


def test_mistakes_that_the_recorder_answers(recorder):
    """To root; and to a user who is nobody here, who is told what it takes."""
    d = recorder("-e", "cpu-clock", "-M", "1M")
    for words, expected in (("disable hung-tsk", "did you mean hung-task?"), ("test-trigger contrl", "did you mean control?"),
                            ("enable frobnicate", "flightrecctl triggers"), ("dump --from 2001-01-01 --to 2001-01-02", "no longer holds"),
                            ("dump --from +1h", "ends before it begins"), ("dump --to +1h", "in the future"),
                            ("rm perf.data.sample.20010101T000000.000000Z", "flightrecctl list")):
        refused(d.ctl(*words.split()), expected)
    assert not d.samples()


@pytest.mark.parametrize("words", ["dump", "status", "stop", "list -D {dir}", "report {dir}/perf.data"])
def test_who_may_not_is_told_what_it_takes(recorder, open_dir, words):
    state = open_dir / "state"
    state.mkdir(mode=0o750)
    (state / "perf.data").write_bytes(b"PERFILE2")
    d = recorder("-e", "cpu-clock", "-M", "1M", directory=state)
    state.chmod(0o750)
    r = run(*NOBODY, open_dir / "flightrecctl", "--socket", d.socket, *words.format(dir=state).split())
    refused(r, "root", code=EXIT["permission"])
