# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/tutorial.md find the thread that holds the lock for too long: with the default configuration, for a
program without frame pointers, and run by a member of the group."""
import os
import re
import shutil
import subprocess
import time

import pytest

from harness import ROOT, end, environment, run, start, until

MEMBER = ("setpriv", "--reuid=65534", "--regid=65534", "--groups=1", "--no-new-privs", "--bounding-set=-all")
TUTORIAL = ROOT / "docs/tutorial.md"
LEARNT_S = 3  # the unwinder knows a new program after about a second


def commands(heading):
    """Returns the commands in the section HEADING of the tutorial, in their order."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", TUTORIAL.read_text(), re.M | re.S)[1]
    return re.findall(r"^\$ (.*)$", section, re.M)


@pytest.fixture
def service(open_dir):
    """Compiles the service and starts it as a member of the group. Returns (home, said): the directory of this user, and what
    the service has printed."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc: the example cannot be compiled")
    home = open_dir / "home"
    shutil.copytree(ROOT / "docs/examples", home)
    os.chown(home, 65534, 65534)
    _, compile_it, run_it = commands("Before")
    subprocess.run(compile_it, shell=True, check=True, cwd=home)
    with open(home / "said", "w", encoding="utf-8") as said:
        p = start(*MEMBER, *run_it.split(), cwd=home, stdout=said)
    yield home, lambda: (home / "said").read_text()
    end(p)


def test_tutorial(recorder, open_dir, service):
    home, said = service
    (open_dir / "state").mkdir()
    d = recorder("--group", "daemon", directory=open_dir / "state")
    if "flightrec:offcpu" not in [e["name"] for e in d.status()["events"]]:
        pytest.skip("BPF programs are not permitted here")
    (open_dir / "state").chmod(0o755)
    time.sleep(LEARNT_S)
    before = len(said().splitlines())
    begin = time.time()
    until("slow requests", lambda: len(said().splitlines()) >= before + 8)
    until("the next second, as times of day are given in seconds", lambda t=time.time(): time.time() > t + 1)
    env = environment(PATH=f"{open_dir}:{os.environ['PATH']}", FLIGHTREC_SOCKET=str(d.socket))
    incident = commands("The incident") + commands("The same with perf")
    assert len(incident) == 8 and not any(re.search(r"(^| )(-f|--force)( |$)", c) for c in incident)
    outs = []
    for command in (commands("Before")[0], *incident):
        for text, at in (("14:02:30", begin), ("14:03:30", time.time())):
            command = command.replace(text, time.strftime("%H:%M:%S", time.gmtime(at)))
        done = run(*MEMBER, "sh", "-c", command, cwd=home, env=env)
        assert done.code == 0, (command, done)
        outs.append(done.out)
        print(f"$ {command}\n{done.out}")
    status, path, why, explanation, page, waits, waiter, waker, profile = outs
    assert re.search(r"^ *Stacks: .* whole", status, re.M) and re.search(r"^flightrec:waker", status, re.M)
    assert path == "slow.data\n"
    assert re.search(r" control .* fired ", why)
    # Other programs of this machine can be causes, too.
    assert re.search(r"^\d\. lock: slow-service \(pid \d+, thread \d+ \"rebuild_index\"\) held up others", explanation, re.M), explanation
    assert re.search(r"^ +request \(thread \d+\) waited [\d.]+ ms in look_up$", explanation, re.M), explanation
    html = (home / "slow.html").read_text()
    assert page == "" and html.startswith("<!DOCTYPE html>") and html.count("rebuild_index") > 1
    assert len(waits.splitlines()) == 4 and all(re.match(r"request .* state=S .*waker_context=task$", w) for w in waits.splitlines())
    assert waits.count("waker=rebuild_index[") >= 1
    functions = [re.findall(r"^\s+[0-9a-f]+ (\w+)\S*\+0x", stack, re.M) for stack in (waiter, waker)]
    # Only a C library with symbols shows more functions.
    assert re.search("pthread_mutex_lock look_up handle_request serve", " ".join(functions[0])), functions
    assert re.search("rebuild_index rebuild", " ".join(functions[1])), functions
    percent = {name: float(p) for p, name in re.findall(r"^ +([\d.]+)% .*\[\.\] (\w+)$", profile, re.M)}
    assert percent["rebuild_index"] > 90 and max(p for name, p in percent.items() if name.endswith("qsort_r")) > 50, profile
