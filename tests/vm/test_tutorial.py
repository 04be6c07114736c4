# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/tutorial.md find the thread that holds the lock for too long. There are also tests of `flightrecctl
profile`."""
import json
import re
import shutil
import time

import pytest

import machine as vm

pytestmark = pytest.mark.container
TUTORIAL = vm.SOURCE / "docs/tutorial.md"
DROP_IN = "/etc/flightrec/flightrecd.conf.d/50-profile.conf"


def commands(heading):
    """Returns the commands in the section HEADING of the tutorial, in their order."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", TUTORIAL.read_text(), re.M | re.S)[1]
    return re.findall(r"^\$ (.*)$", section, re.M)


def profiles(service):
    listed = json.loads(service.run("flightrecctl", "profile", "--json=short").stdout)["profiles"]
    return {p["name"]: p["set"] for p in listed}


def recorded(service):
    status = json.loads(service.run("flightrecctl", "status", "--json=short").stdout)
    return [e["name"] for e in status.get("status", status)["events"]]


def test_profiles(service):
    """The kernel of this machine can record each profile. Only root can set a profile. Only one profile is set at a time.

    The profile is set by a symbolic link. If the administrator has put a file in its place, the file is not replaced."""
    assert profiles(service) == {"default": True, "io": False, "latency": False, "syscalls": False}
    before = recorded(service)
    refused = service.run("flightrecctl", "profile", "latency", user="alice", check=False)
    assert refused.returncode == 5 and "root" in refused.stderr, refused
    for name, event in (("io", "block:block_rq_issue"), ("syscalls", "raw_syscalls:sys_enter"), ("latency", "sched:sched_switch")):
        service.run("flightrecctl", "profile", name)
        assert profiles(service)[name] and event in recorded(service) and recorded(service)[0] == "cpu-clock"
    wrong = service.run("flightrecctl", "profile", "latancy", check=False)
    assert wrong.returncode == 1 and "did you mean latency?" in wrong.stderr
    service.run("flightrecctl", "profile", "--no-reload", "default")
    assert profiles(service)["default"] and "sched:sched_switch" in recorded(service)
    service.run("flightrecctl", "reload")
    assert recorded(service) == before
    service.shell(f"echo '[Recorder]' >{DROP_IN}")
    mine = service.run("flightrecctl", "profile", "io", check=False)
    assert mine.returncode == 1 and "is a file, not a link" in mine.stderr and not any(profiles(service).values())
    assert service.run("cat", DROP_IN).stdout == "[Recorder]\n"


def test_a_profile_that_is_refused_changes_nothing(service):
    service.run("flightrecctl", "profile", "latency")
    service.shell("sed -i s/block_rq_issue/no_such_event/ /usr/lib/flightrec/profiles/io.conf")
    refused = service.run("flightrecctl", "profile", "io", check=False)
    assert refused.returncode == 1 and "no_such_event" in refused.stderr and "the previous profile is set again" in refused.stderr
    assert profiles(service)["latency"] and "sched:sched_switch" in recorded(service)
    service.run("dpkg", "--purge", "flightrec")
    assert service.run("test", "-e", "/etc/flightrec", check=False).returncode != 0


def test_tutorial(service):
    if not shutil.which("gcc"):
        pytest.skip("no gcc: the example cannot be compiled")
    profile, compile_it, run_it = commands("Before")
    incident = commands("The incident")
    assert len(incident) <= 5 and not any(re.search(r"(^| )(-f|--force)( |$)", c) for c in incident)
    service.shell(profile.removeprefix("sudo "))  # as root
    vm.subprocess.run(f"cd {vm.SOURCE}/docs/examples && {compile_it.replace('-o slow', f'-o {service.share}/slow')}", shell=True, check=True)
    home = "cd /home/alice && "
    service.shell(f"{home}cp /share/slow-service . && {{ {run_it} >said 2>&1 & }}")
    begin = time.time()
    service.wait_for(lambda: service.shell(f"{home}grep -c took said || true").stdout.strip() not in ("", "0", "1", "2", "3"), "slow requests")
    seen = time.time()
    service.wait_for(lambda: time.time() > seen + 1, "the next second, as times of day are given in seconds")
    print(service.shell(f"{home}head -4 said").stdout)
    out, waited = "", None
    for command in incident:
        for text, at in (("14:02:30", begin - 30), ("14:03:30", time.time())):
            command = command.replace(text, time.strftime("%H:%M:%S", time.gmtime(at)))
        if "--time" in command:  # like a reader, replaces the times by those that the previous command has printed
            command = re.sub(r"--time \S+", f"--time {waited - 0.2:.6f},{waited:.6f}", command)
        out = service.shell(home + command, user="alice").stdout
        if "timehist" in command:
            assert len(out.splitlines()) == 4, out
            first = out.split()
            waited = float(first[0])
            assert first[2].startswith("request[") and float(first[3]) > 200, out
        if "--time" in command:
            assert out.split()[0] == "rebuild_index" and "rebuild+" in out, out
        print(f"$ {command}\n{out}")
    assert "rebuild_index" in out
