# SPDX-License-Identifier: GPL-2.0-or-later
"""The package flightrec-agent on a Debian whose PID 1 is systemd. Broker and store are programs of this host, in the network
namespace of the machine."""
import contextlib
import json
import re
import shutil
import subprocess
import time

import pytest

import machine as vm
from conftest import UPGRADE

pytestmark = pytest.mark.container
UNIT = "flightrec-agent.service"
STATE = "/var/lib/flightrec-agent"
EXPOSURE = 15  # the highest exposure that systemd-analyze security may find, in tenths
S3RVER = vm.BUILD / "readers/node_modules/s3rver"
BUCKET = "flight"
CONF = "/etc/flightrec/flightrecd.conf.d/fleet.conf"
SECTION = f"""[Fleet]
Enabled=yes
Servers=nats://127.0.0.1:4222
Name=db-1
Labels=role=db
Upload=s3://{BUCKET}/fleet
UploadEndpoint=http://127.0.0.1:4568
UploadCredentials=/run/credentials/{UNIT}/store.keys
"""
KEYS = "[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n"


class Hub:
    """Broker and store, and the configuration of the operator."""

    def __init__(self, machine, path):
        self.machine, self.path, self.processes = machine, path, []
        for name in ("broker", "store"):
            (path / name).mkdir()
        (path / "broker.conf").write_text(f'listen: "127.0.0.1:4222"\njetstream {{ store_dir: "{path / "broker"}" }}\n')
        self.start("broker", "Server is ready", "nats-server", "-c", path / "broker.conf")
        self.start("store", "listening", "node", S3RVER / "bin/s3rver.js", "-d", path / "store", "-a", "127.0.0.1", "-p", "4568",
                   "--configure-bucket", BUCKET)
        machine.shell(f"umask 077; printf '{SECTION}' | sed s:=/run/credentials/.*:=/root/store.keys: >/root/operator.conf;"
                      f" printf '{KEYS}' >/root/store.keys")

    def start(self, name, ready, *argv):
        """Starts a program of this host in the network namespace of the machine."""
        log = self.path / f"{name}.log"
        with open(log, "wb") as out:
            self.processes.append(subprocess.Popen(["nsenter", "-t", str(self.machine.leader), "-n", "--", *map(str, argv)],
                                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out))
        self.machine.wait_for(lambda: ready in log.read_text(errors="replace"), name)

    def fleet(self, verb, *args, check=True):
        return self.machine.run("flightrecctl", "fleet", verb, "--config", "/root/operator.conf", *args, check=check)

    def ask(self, verb, *args, check=True):
        return json.loads(self.fleet(verb, *args, "--json=short", check=check).stdout)

    def dumps(self):
        """Returns the dumps in the store, by the names of its files."""
        return [p for p in (self.path / "store" / BUCKET).rglob("perf.data.sample.*Z._S3rver_object")]

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def hub(service, tmp_path):
    """A machine with both packages, and broker and store. The agent is configured, and not started."""
    for tool in ("nats-server", "node"):
        if not shutil.which(tool):
            pytest.skip(f"no {tool}")
    if not S3RVER.is_dir():
        pytest.skip("s3rver is missing: ./dev install installs it")
    service.install("/share/agent-first.deb")
    with contextlib.ExitStack() as stack:
        (tmp_path / "hub").mkdir()
        hub = Hub(service, tmp_path / "hub")
        stack.callback(hub.close)
        configure(service)
        done = hub.fleet("setup", check=False)
        assert done.returncode in (0, 7), done  # 7: s3rver has no rules that remove old objects
        yield hub


def configure(machine):
    """[Fleet]; the keys of the store belong to root, and systemd passes them to the agent."""
    drop_in = f"/etc/systemd/system/{UNIT}.d"
    machine.shell(f"printf '{SECTION}' >{CONF}; umask 077; printf '{KEYS}' >/etc/flightrec/store.keys; umask 022; mkdir -p {drop_in};"
                  f" printf '[Service]\nLoadCredential=store.keys:/etc/flightrec/store.keys\n' >{drop_in}/keys.conf;"
                  " systemctl daemon-reload")


def until_present(hub):
    def present():
        return [m for m in hub.ask("status", check=False) if m["machine"] == "db-1" and not m.get("recorder")]
    hub.machine.wait_for(present, "presence of the machine")


def until_stored(hub, id):
    def stored():
        return [m["state"] for m in hub.ask("status", id, check=False)["machines"]] == ["stored"]
    hub.machine.wait_for(stored, f"dump of {id} in the store")


def dump(hub):
    """Asks for a dump. Returns the id, when the store has the dump."""
    id = hub.ask("dump", "--last", "5s", "--reason", "a test")["id"]
    until_stored(hub, id)
    return id


def pid(machine):
    return int(machine.show("MainPID", UNIT))


def held(machine):
    """Returns the number of dumps that the recorder keeps for the agent."""
    status = json.loads(machine.run("flightrecctl", "status", "--json=short").stdout)
    return status.get("status", status)["dumps"]["held"]


def test_an_agent_that_is_not_configured(service):
    """After the installation, the service is neither enabled nor started. A start without Enabled=yes is no failure."""
    service.install("/share/agent-first.deb")
    assert service.run("systemctl", "is-enabled", UNIT, check=False).stdout.strip() == "disabled"
    assert service.is_active(UNIT) == "inactive"
    service.run("systemctl", "start", UNIT)
    service.wait_for(lambda: service.is_active(UNIT) == "inactive", "the end of the agent")
    assert service.show("Result", UNIT) == "success"
    service.wait_for(lambda: "Enabled=" in service.journal(UNIT), "line in the journal")


def test_a_fleet_dump(hub):
    """A command makes a dump, which arrives in the store. A restart of the agent loses nothing. The agent has no privileges."""
    machine = hub.machine
    machine.run("systemctl", "start", UNIT)
    assert machine.is_active(UNIT) == "active"
    until_present(hub)
    first = dump(hub)
    assert len(hub.dumps()) == 1
    status = machine.run("cat", f"/proc/{pid(machine)}/status").stdout
    uid = machine.run("id", "-u", "flightrec-agent").stdout.strip()
    assert re.search(rf"^Uid:\s+{uid}\s", status, re.M) and re.search(r"^NoNewPrivs:\s+1$", status, re.M)
    for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        assert re.search(rf"^{kind}:\s+0+$", status, re.M), status
    assert machine.run("stat", "-c", "%a %U", STATE).stdout.strip() == "700 flightrec-agent"
    before = pid(machine)
    machine.run("systemctl", "restart", UNIT)
    assert pid(machine) not in (0, before)
    until_present(hub)
    second = dump(hub)
    assert len(hub.dumps()) == 2
    listed = hub.ask("list")
    assert sorted(d["id"] for d in listed) == sorted((first, second))
    hub.fleet("get", first, "-o", "/tmp")
    assert "db-1" in machine.run("cat", f"/tmp/{first}/fleet.json").stdout
    machine.wait_for(lambda: held(machine) == 0, "release of the dumps")


def test_kill_and_watchdog(hub):
    """systemd starts an agent again that was killed, or that hangs."""
    machine = hub.machine
    machine.shell(f"printf '[Service]\nWatchdogSec=4s\nTimeoutAbortSec=1s\n' >/etc/systemd/system/{UNIT}.d/watchdog.conf;"
                  " systemctl daemon-reload")
    machine.run("systemctl", "start", UNIT)
    time.sleep(9)  # more than twice the time after which the watchdog kills an agent that does not feed it
    assert machine.show("NRestarts", UNIT) == "0", machine.journal(UNIT)
    for sent in ("-KILL", "-STOP"):
        before = pid(machine)
        machine.run("kill", sent, str(before))
        machine.wait_for(lambda: pid(machine) not in (0, before) and machine.is_active(UNIT) == "active", "a new agent")
    until_present(hub)
    dump(hub)


def test_upgrade(hub):
    """An upgrade restarts an agent that runs, and does not start one that was stopped. Both packages have one version."""
    machine = hub.machine
    machine.run("systemctl", "start", UNIT)
    before = pid(machine)
    alone = machine.run("dpkg", "-i", "/share/agent-upgrade.deb", check=False)
    assert alone.returncode != 0 and "depend" in alone.stderr
    machine.run("dpkg", "-i", "/share/upgrade.deb", "/share/agent-upgrade.deb")
    machine.wait_for(lambda: machine.is_active(UNIT) == "active" and pid(machine) not in (0, before), "the new agent")
    assert machine.run("dpkg-query", "-W", "-f", "${Version}", "flightrec-agent").stdout == UPGRADE
    until_present(hub)
    dump(hub)
    machine.run("systemctl", "stop", UNIT)
    machine.run("dpkg", "-i", "/share/upgrade.deb", "/share/agent-upgrade.deb")
    assert machine.is_active(UNIT) == "inactive"


def test_purge(hub):
    """A purge of the agent leaves nothing of it, and the recorder and its dumps stay."""
    machine = hub.machine
    machine.run("systemctl", "enable", "--now", UNIT)
    until_present(hub)
    dump(hub)
    machine.run("dpkg", "--remove", "flightrec-agent")
    assert machine.is_active(UNIT) != "active"
    machine.run("test", "-d", STATE)
    machine.shell(f"rm -r /etc/systemd/system/{UNIT}.d")
    machine.run("dpkg", "--purge", "flightrec-agent")
    left = machine.shell("find / -xdev -path /proc -prune -o -name '*flightrec-agent*' -print; find /run -name '*flightrec-agent*'")
    assert left.stdout.split() == []
    for database in ("passwd", "group"):
        assert machine.run("getent", database, "flightrec-agent", check=False).returncode == 2
    assert not machine.run("getent", "group", "flightrec").stdout.strip().endswith("agent")
    assert machine.is_active() == "active"
    assert machine.shell("ls /var/lib/flightrec/perf.data.sample.*Z").stdout.split()
    missing = machine.run("flightrecctl", "fleet", "list", check=False)
    assert missing.returncode == 1 and "apt install flightrec-agent" in missing.stderr


def test_contents(debs):
    """The package has each file at its place. The recorder needs no library for the network, and the agent needs both."""
    agent = vm.agent_beside(debs[0])
    listed = subprocess.run(["dpkg-deb", "-c", agent], check=True, capture_output=True, text=True).stdout
    paths = {line.split()[5].removeprefix(".") for line in listed.splitlines()}
    wanted = ["/usr/bin/flightrec-agent", "/usr/bin/flightrec-fleet", "/usr/lib/sysusers.d/flightrec-agent.conf",
              f"/lib/systemd/system/{UNIT}", "/usr/share/man/man8/flightrec-agent.8", "/usr/share/man/man1/flightrec-fleet.1",
              "/usr/share/doc/flightrec-agent/examples/nats-server.conf"]
    for name in ("flightrec-agent", "flightrec-fleet"):
        wanted += [f"/usr/share/bash-completion/completions/{name}", f"/usr/share/zsh/vendor-completions/_{name}"]
    assert set(wanted) <= paths, set(wanted) - paths
    assert not [p for p in paths if p.startswith("/etc/")]
    of_recorder, of_agent = vm.dependencies(debs[0]), vm.dependencies(agent)
    assert not [name for name in of_recorder if re.match("libnats|libcurl|libssl", name)], of_recorder
    assert [name for name in of_agent if name.startswith("libnats")] and [name for name in of_agent if name.startswith("libcurl")]
    both = subprocess.run(["dpkg-deb", "-c", debs[0]], check=True, capture_output=True, text=True).stdout
    assert not paths & {p for line in both.splitlines() if not (p := line.split()[5].removeprefix(".")).endswith("/")}


def test_exposure(debs, tmp_path):
    """The exposure of the unit, as `systemd-analyze security` computes it, is at most EXPOSURE."""
    subprocess.run(["dpkg-deb", "-x", vm.agent_beside(debs[0]), tmp_path], check=True)
    unit = next(tmp_path.glob(f"**/{UNIT}"))
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", unit],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
