# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrec-report of the dumps of many machines: the folder that `flightrecctl fleet get` writes.

The recorder of this machine makes two dumps, one of them with a known culprit. Their manifests give them two names and two clocks,
as if they came from two machines. Stock perf says at which time of its machine each sample was made."""
import html
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import exports
from harness import Daemon, end, must, program, run, sidecar, start

pytestmark = pytest.mark.alone
INCIDENT_S, BEFORE_S = 4, 4
LINES_MAX = 30
MS = 10**6
PIDS = 1 << 22  # FR_PERFETTO_PIDS
MACHINES_MAX = 1000


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Returns {"web-1": a dump of a quiet time, "db-1": a dump with a program that computes at its end}."""
    directory = tmp_path_factory.mktemp("fleet-report") / "d"
    directory.mkdir()
    d = Daemon(directory, "-g")
    d.start()
    try:
        time.sleep(BEFORE_S + INCIDENT_S)
        quiet = d.dump_by_control()
        time.sleep(BEFORE_S)
        culprit = start(program("frtest-culprit"), "-t", INCIDENT_S, "-f", directory / "file", "hog", stdout=subprocess.PIPE)
        try:
            assert culprit.wait(60) == 0
        finally:
            end(culprit)
        return {"web-1": quiet, "db-1": d.dump_by_control(f"--from=-{BEFORE_S + INCIDENT_S}s")}
    finally:
        d.stop()
        d.kill()


def window(dump):
    """Returns the times of the first and the last sample, by perf: without those that the dump adds at its end."""
    added = ("flightrec:waiting", "flightrec:trigger")
    times = [s.ns for s in exports.perf_samples(dump) if not s.event.startswith(added)]
    return min(times), max(times)


def new_id():
    return time.strftime("%Y%m%dT%H%M%SZ-1f3a5c7e", time.gmtime())


class Folder:
    """A folder ID/ with the dumps of machines."""

    def __init__(self, parent, dumps):
        self.id = new_id()
        self.path = Path(parent) / self.id
        self.path.mkdir()
        self.machines, self.offsets, self.dumps = [], {}, dumps
        self.end_ns = time.time_ns()

    def add(self, machine, dump=None, ends_s=0.0, error_ns="250000", changes=None):
        """Adds a machine whose dump ends ENDS_S after those of others."""
        dump = dump or self.dumps[machine]
        folder = self.path / machine
        folder.mkdir()
        for path in (dump, sidecar(dump), Path(f"{dump}.kallsyms")):
            if path.exists():
                shutil.copy(path, folder)
        begin, last = window(dump)
        offset = self.offsets[machine] = self.end_ns - last + int(ends_s * 10**9)
        manifest = {"id": self.id, "machine": machine, "labels": {"role": machine[:-2]},
                    "clock": {"offset_ns": str(offset), "error_ns": error_ns, "wall_offset_ns": "0", "measured_ns": str(last)},
                    "from_ns": str(begin + offset), "to_ns": str(last + offset), "at_ns": str(last + offset), "trigger": "fleet",
                    "cause": "slow requests", "by": "alice@ops", "file": dump.name, "bytes": dump.stat().st_size}
        (folder / f"{dump.name}.manifest.json").write_text(json.dumps({**manifest, **(changes or {})}))
        self.machines.append({"machine": machine, "state": "stored", "why": "", "folder": machine})
        return folder

    def miss(self, machine, why="no presence for 5 min"):
        self.machines.append({"machine": machine, "state": "unreachable", "why": why, "folder": None})

    def write(self):
        command = {"id": self.id, "selector": "*", "from_ns": "0", "to_ns": "0", "last_ns": "30000000000", "post_ns": "0",
                   "limit_ns": "60000000000", "reason": "slow requests", "by": "alice@ops"}
        (self.path / "fleet.json").write_text(json.dumps({"id": self.id, "command": command, "machines": self.machines}))
        return self.path


@pytest.fixture(scope="module")
def folder(dumps, tmp_path_factory):
    """Three machines: db-1 has the culprit, the dump of web-1 ends 250 ms earlier, and web-2 has none."""
    f = Folder(tmp_path_factory.mktemp("get"), dumps)
    f.add("db-1")
    f.add("web-1", ends_s=-0.25, error_ns="40000000")
    f.miss("web-2")
    f.write()
    return f


def report(*args, **kwargs):
    return must(program("flightrec-report"), *args, **kwargs).out


def refused(*args):
    r = run(program("flightrec-report"), *args)
    assert r.code in (1, 2) and r.err.startswith("flightrec-report: "), f"{args}: exit code {r.code}\n{r.out}\n{r.err}"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", r.err), f"control characters: {r.err!r}"
    return r.err


# --- explain ---


def test_explain_names_the_machine_with_the_cause(folder):
    text = report("explain", folder.path, f"--incident={INCIDENT_S}s")
    lines = text.splitlines()
    assert len(lines) <= LINES_MAX, text
    assert folder.id in lines[0] and "slow requests" in lines[0] and "alice@ops" in lines[0]
    assert "missing: web-2, no presence for 5 min" in text
    assert re.search(r"^Clocks: web-1 can be wrong by 40 ms$", text, re.M), text
    assert re.search(r"^[1-3]\. cpu-hog on db-1: frtest-culprit", text, re.M), text
    first = re.search(r"^1\. \S+ on (\S+): ", text, re.M)[1]
    assert lines[-1] == f"Next: flightrec-report explain --machine={first} {folder.path}"


def load_of(machine):
    """Returns how many CPUs were busy in the incident, and how many threads waited, but not for work."""
    incident = machine["explanation"]["incident"]
    waits = sum(ns for kind, ns in incident["waits_ns"].items() if kind not in ("sleep", "idle"))
    return incident["cpu_ns"] / incident["seconds"] / 1e9, waits / incident["seconds"] / 1e9


def check_difference(found, machines):
    """Of two machines, the one differs that has more than the other one, if it is clearly more."""
    (a, b), (x, y) = ("db-1", "web-1"), (load_of(machines["db-1"]), load_of(machines["web-1"]))
    more = {a: sum(max(p - q, 0) for p, q in zip(x, y)), b: sum(max(q - p, 0) for p, q in zip(x, y))}
    if max(more.values()) > 0.26:
        assert more[found["differs"]["machine"]] == max(more.values())
    elif max(more.values()) < 0.24:
        assert "differs" not in found


def test_json_has_all_of_each_machine(folder):
    found = json.loads(report("explain", folder.path, "--json", f"--incident={INCIDENT_S}s"))
    machines = {m["machine"]: m for m in found["machines"]}
    assert found["version"] == 1 and found["id"] == folder.id and list(machines) == ["db-1", "web-1", "web-2"]
    assert machines["web-2"]["why"] == "no presence for 5 min" and "explanation" not in machines["web-2"]
    culprit, = (f for f in found["findings"] if f.get("comm") == "frtest-culprit")
    assert (culprit["rule"], culprit["machine"], culprit["machines"]) == ("cpu-hog", "db-1", ["db-1"])
    scores = [f["score"] for f in found["findings"]]
    assert scores == sorted(scores, reverse=True)
    check_difference(found, machines)
    for name in ("db-1", "web-1"):
        alone = json.loads(report("explain", folder.path, f"--machine={name}", "--json", f"--incident={INCIDENT_S}s"))
        assert machines[name]["explanation"] == alone
        begin, last = window(next((folder.path / name).glob("perf.data.sample.*Z")))
        assert int(machines[name]["from_ns"]) == begin + folder.offsets[name]
        assert int(machines[name]["to_ns"]) == last + folder.offsets[name]


def test_one_machine_is_like_its_dump(folder, dumps):
    for verb in (["explain"], ["report"], ["export", "--format=folded", "--quiet"]):
        of_folder = report(*verb, folder.path, "--machine=web-1")
        path = next((folder.path / "web-1").glob("perf.data.sample.*Z"))
        assert of_folder == report(*verb, path)
    assert "there is no machine 'web-9'" in refused("explain", folder.path, "--machine=web-9")
    assert "web-2 has no dump: no presence for 5 min" in refused("explain", folder.path, "--machine=web-2")


def test_dumps_one_by_one(folder, dumps):
    paths = [next((folder.path / name).glob("perf.data.sample.*Z")) for name in ("web-1", "db-1")]
    text = report("explain", *paths, f"--incident={INCIDENT_S}s")
    assert folder.id in text.splitlines()[0] and re.search(r"^1\. cpu-hog on db-1: ", text, re.M)
    # Without manifests, both are of this machine.
    assert "is there twice" in refused("explain", *dumps.values())


# --- report ---


def test_the_table_has_each_machine(folder):
    text = report("report", folder.path)
    parts = re.split(r"^# Machine (\S+)\n", text, flags=re.M)
    assert parts[1::2] == ["db-1", "web-1"]
    assert "frtest-culprit" in parts[2] and "frtest-culprit" not in parts[4]


def page_data(path):
    return json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)\n</script>', path.read_text(), re.S)[1])


def test_lanes_are_on_one_clock(folder, tmp_path):
    report("report", "--html", folder.path, "-o", tmp_path / "page.html")
    data = page_data(tmp_path / "page.html")
    lanes = {m["machine"]: m for m in data["machines"]}
    assert list(lanes) == ["db-1", "web-1", "web-2"] and "no presence" in lanes["web-2"]["why"]
    begin_ns = int(data["from_ns"])
    for name in ("db-1", "web-1"):
        lane, dump = lanes[name], next((folder.path / name).glob("perf.data.sample.*Z"))
        begin, last = window(dump)
        for shown, true in ((lane["from_ns"], begin), (lane["to_ns"], last)):
            assert abs(begin_ns + shown - (true + folder.offsets[name])) < MS
        assert len(lane["busy"]) == len(lane["waiting"]) == data["buckets"]
        for at, text in lane["marks"]:
            assert text and at <= int(data["to_ns"]) - begin_ns + 10**9
    # The lane of db-1 has the CPU time of the time in which the culprit ran, by perf.
    dump = next((folder.path / "db-1").glob("perf.data.sample.*Z"))
    to_page = folder.offsets["db-1"] - begin_ns
    ran = [s for s in exports.perf_samples(dump) if s.tid != 0 and s.event.startswith(("cpu-clock", "cycles"))]
    times = [s.ns + to_page for s in ran if s.comm == "frtest-culprit"]
    first, last = (t // data["bucket_ns"] for t in (min(times), max(times)))
    true = sum(s.period for s in ran if first <= (s.ns + to_page) // data["bucket_ns"] <= last)
    shown = sum(lanes["db-1"]["busy"][first:last + 1]) / 1000 * data["bucket_ns"]
    assert abs(shown - true) < 0.05 * true
    assert int(data["to_ns"]) - int(data["from_ns"]) >= (BEFORE_S + INCIDENT_S - 1) * 10**9


def test_the_page_runs_nothing(folder, tmp_path):
    report("report", "--html", folder.path, "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in text and "script-src" not in text
    assert text.count("<script") == 1 and text.count("<svg ") == 2
    shown = html.unescape(re.sub(r"<[^>]*>", "", text.split('id="explanation"')[1].split("</pre>")[0].split(">", 1)[1]))
    assert shown.split() == report("explain", folder.path).split()


def test_a_trace_has_all_machines_on_one_clock(folder, tmp_path):
    if exports.missing("perfetto"):
        pytest.skip(exports.missing("perfetto"))
    out = tmp_path / "x.perfetto-trace"
    report("export", "--format=perfetto", folder.path, "-o", out)
    events, times, names = {}, {0: {}, 1: {}}, {}
    for p in exports.read_trace(out).packet:
        if p.HasField("trace_packet_defaults"):
            events[p.trusted_packet_sequence_id] = p.trace_packet_defaults.perf_sample_defaults.timebase.name
        for process in p.process_tree.processes:
            names[process.pid] = process.cmdline[0]
        if p.HasField("perf_sample"):
            number = p.trusted_packet_sequence_id >> 20
            assert p.perf_sample.tid // PIDS in (number, 0)
            times[number].setdefault(events[p.trusted_packet_sequence_id], []).append(p.timestamp)
    for number, name in enumerate(("db-1", "web-1")):
        dump = next((folder.path / name).glob("perf.data.sample.*Z"))
        for event, shown in times[number].items():
            true = sorted(s.ns + folder.offsets[name] for s in exports.perf_samples(dump) if s.event.rstrip(":") == event)
            assert len(shown) == len(true) and all(abs(a - b) < MS for a, b in zip(sorted(shown), true)), event
        assert times[number]
        assert all(n.startswith(f"{name}: ") for pid, n in names.items() if pid > 0 and pid // PIDS == number)
    assert any("db-1: frtest-culprit" in n for n in names.values())


@pytest.mark.parametrize("args", [["export", "--format=pprof"], ["export", "--format=firefox"], ["export"], ["report", "--flame"],
                                  ["bundle"]])
def test_views_of_one_machine_say_so(folder, args):
    assert "--machine=NAME" in refused(*args, folder.path, "-o", "-")


def test_times_are_those_of_the_fleet(folder):
    """The dump of web-1 ends 250 ms before that of db-1, so the last 200 ms have no sample of web-1."""
    parts = re.split(r"^# Machine (\S+)\n", report("report", folder.path, "--from=-0.2s"), flags=re.M)
    assert "Samples" in parts[2] and re.search(r"\d+\.\d+%", parts[2]) and not re.search(r"\d+\.\d+%", parts[4])
    assert "--from: 'never' is not a time" in refused("report", folder.path, "--from=never")


# --- hostile folders ---


@pytest.fixture
def hostile(dumps, tmp_path):
    """db-1 is in order, and web-1 becomes hostile."""
    f = Folder(tmp_path, dumps)
    f.add("db-1")
    return f


def left_out(folder):
    """Returns why web-1 is missing. The other machine is shown."""
    r = must(program("flightrec-report"), "explain", folder.write())
    assert "Machines: 1 with a dump (db-1), 1 without" in r.out and len(r.out.splitlines()) <= LINES_MAX
    return re.search(r"^   missing: web-1, (.*)$", r.out, re.M)[1]


def test_a_truncated_manifest(hostile):
    path = next(hostile.add("web-1").glob("*.manifest.json"))
    path.write_text(path.read_text()[:200])
    assert "its manifest is damaged" in left_out(hostile)


@pytest.mark.parametrize("offset", [str(2**63 - 1), str(-2**63), "0", str(10**9 * 3600 * 24 * 365 * 100)])
def test_an_impossible_offset(hostile, offset):
    hostile.add("web-1", changes={"clock": {"offset_ns": offset, "error_ns": "1"}})
    assert "the offset of its clock cannot be right" in left_out(hostile)


def test_an_offset_that_is_no_number(hostile):
    hostile.add("web-1", changes={"clock": {"offset_ns": "1e99", "error_ns": "1"}})
    assert "its manifest is damaged" in left_out(hostile)


def test_manifests_of_others(hostile):
    hostile.add("web-1", changes={"machine": "web-7"})
    assert "another machine, web-7" in left_out(hostile)


def test_a_manifest_of_another_id(hostile):
    hostile.add("web-1", changes={"id": "20200101T000000Z-00000000"})
    assert "another id" in left_out(hostile)


def test_symbolic_links(hostile, tmp_path):
    folder = hostile.add("web-1")
    dump = next(folder.glob("perf.data.sample.*Z"))
    dump.rename(tmp_path / "elsewhere")
    dump.symlink_to(tmp_path / "elsewhere")
    assert "is a symbolic link" in left_out(hostile)


def test_a_folder_that_is_a_link(hostile, tmp_path):
    folder = hostile.add("web-1")
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in left_out(hostile)


def test_a_list_that_is_a_link(hostile, tmp_path):
    hostile.write()
    (hostile.path / "fleet.json").rename(tmp_path / "list")
    (hostile.path / "fleet.json").symlink_to(tmp_path / "list")
    assert "symbolic link" in refused("explain", hostile.path)


def test_a_pipe_does_not_block(hostile):
    folder = hostile.add("web-1")
    dump = next(folder.glob("perf.data.sample.*Z"))
    dump.unlink()
    os.mkfifo(dump)
    assert "is not a file" in left_out(hostile)


def test_a_damaged_dump(hostile):
    folder = hostile.add("web-1")
    dump = next(folder.glob("perf.data.sample.*Z"))
    dump.write_bytes(b"PERFILE2" + b"\xff" * 4096)
    assert left_out(hostile)


def test_too_many_machines(hostile):
    for i in range(2 * MACHINES_MAX):
        hostile.miss(f"web-{i}")
    assert f"more than {MACHINES_MAX} machines" in refused("explain", hostile.write())


def test_too_many_folders(hostile):
    for i in range(2 * MACHINES_MAX):
        (hostile.path / f"web-{i}").mkdir()
    assert f"more than {MACHINES_MAX} machines" in refused("explain", hostile.path)


def test_names_with_control_characters(hostile):
    hostile.miss("web\x1b[31m\n9")
    assert "cannot be the name of a machine" in refused("explain", hostile.write())


def test_texts_with_control_characters(hostile):
    hostile.miss("web-2", "\x1b[2J\nfake line \x07" + "x" * 5000)
    text = report("explain", hostile.write())
    assert "missing: web-2, ?[2J fake line ?xxx" in text and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"id":"../..","machines":[]}', '{"id":1,"machines":{}}'])
def test_a_list_that_is_damaged(hostile, text):
    (hostile.path / "fleet.json").write_text(text)
    assert "fleet.json is damaged" in refused("explain", hostile.path)


def test_no_dump_at_all(hostile):
    shutil.rmtree(hostile.path / "db-1")
    assert "has a dump that can be read" in refused("explain", hostile.write())


def test_many_machines(hostile, dumps):
    """The text has at most 30 lines, also with many machines with a dump and without one."""
    for i in range(20):
        hostile.add(f"app-{i:02}", dumps["db-1"], ends_s=i / 100, error_ns=None if i % 2 else "90000000")
        hostile.miss(f"lost-{i:02}")
    text = report("explain", hostile.write(), f"--incident={INCIDENT_S}s")
    assert len(text.splitlines()) <= LINES_MAX, text
    assert "Machines: 21 with a dump" in text and "also on" in text and "16 more, see --json" in text
