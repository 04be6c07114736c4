# SPDX-License-Identifier: GPL-2.0-or-later
"""The profiles: each of them can be recorded and set. And what the status says where the default profile cannot be recorded."""
import json
import re

import pytest

import machine as vm

pytestmark = pytest.mark.container
TUTORIAL = vm.SOURCE / "docs/tutorial.md"
DROP_IN = "/etc/flightrec/flightrecd.conf.d/50-profile.conf"


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


def test_the_status_in_a_container(service):
    """The machine is a container with a pid namespace, so no BPF program makes samples. The status says so in the words that the
    tutorial quotes."""
    status = service.run("flightrecctl", "status").stdout
    paragraph = re.search(r"^In most containers.*?^$", TUTORIAL.read_text(), re.M | re.S)[0].replace("\n", " ")
    quoted = re.findall(r"says `([^`]*)` and `([^`]*)`", paragraph)[0]
    assert all(re.search(rf"^ *Notice: .*{words}", status, re.M) for words in quoted), (quoted, status)
    assert "flightrec:offcpu" not in recorded(service)
