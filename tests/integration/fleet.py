# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole fleet on one machine: a real broker, a real object store, and machines that are network namespaces.

The hub is a network namespace with a bridge. Broker, store and the operator are in it. Each machine has a network namespace and a
host name of its own, a link to the bridge, a recorder and an agent. A namespace ends with the process that holds it, so nothing
is left when the tests are killed, and several fleets do not disturb each other."""
import contextlib
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import threading
from pathlib import Path

import harness
from harness import ROOT, Daemon, end, must, program, run, start, until

CLONE_NEWNET = 0x40000000
HUB = "10.77.0.1"
NATS_PORT, STORE_PORT, METRICS_PORT = 4222, 4568, 9101
BUCKET, PREFIX = "flight", "fleet"
KEYS = "[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n"
S3RVER = ROOT / "build/readers/node_modules/s3rver"
MS, S = 10**6, 10**9
libc = ctypes.CDLL(None, use_errno=True)


def missing():
    """Returns what these tests lack on this machine, or None."""
    for name in ("nats-server", "node", "ip", "nsenter", "unshare"):
        if not shutil.which(name):
            return f"the program {name} is missing"
    if not S3RVER.is_dir():
        return "s3rver is missing: ./dev install installs it"
    if run("unshare", "-n", "-u", "true").code != 0:
        return "no network namespace can be made here"
    return None


class Namespace:
    """A network namespace and a host name. The process that holds them ends with the tests."""

    def __init__(self, name):
        self.name = name
        self.process = start("unshare", "-n", "-u", "sh", "-c", 'hostname "$1" && ip link set lo up && echo ready && exec sleep infinity',
                             "sh", name, stdout=-1, text=True)
        assert self.process.stdout.readline() == "ready\n", f"no namespace for {name}"
        self.prefix = ("nsenter", "-t", self.process.pid, "-n", "-u", "--")

    def run(self, *argv, **kwargs):
        return run(*self.prefix, *argv, **kwargs)

    def must(self, *argv):
        return must(*self.prefix, *argv)

    def call(self, function, *args):
        """Calls FUNCTION in a thread that is in this network namespace, and returns its result."""
        result = []

        def body():
            fd = os.open(f"/proc/{self.process.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if libc.setns(fd, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
                result.append((function(*args), None))
            except BaseException as e:
                result.append((None, e))
            finally:
                os.close(fd)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        value, error = result[0]
        if error:
            raise error
        return value

    def close(self):
        end(self.process)
        self.process.stdout.close()


class Server:
    """A program in the hub that says in its log when it is ready."""

    def __init__(self, hub, name, directory, ready):
        self.hub, self.name, self.directory, self.ready = hub, name, Path(directory), ready
        self.directory.mkdir(exist_ok=True)
        self.log_path = self.directory.with_suffix(".log")
        self.process = None

    def argv(self):
        raise NotImplementedError

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def start(self):
        with open(self.log_path, "wb") as log:
            self.process = start(*self.hub.prefix, *self.argv(), stdout=log, stderr=log)
        until(f"{self.name} that is ready", lambda: self.ready in self.log() or self.process.poll() is not None)
        assert self.process.poll() is None, f"{self.name} ended:\n{self.log()}"
        return self

    def stop(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)

    def kill(self):
        self.stop(signal.SIGKILL)

    def restart(self):
        self.stop()
        self.start()


class Broker(Server):
    """nats-server with JetStream. MORE is added to its configuration."""

    def __init__(self, hub, directory, more=""):
        super().__init__(hub, "nats-server", directory, "Server is ready")
        self.url = f"nats://{HUB}:{NATS_PORT}"
        self.config = self.directory / "nats.conf"
        self.config.write_text(f'listen: "{HUB}:{NATS_PORT}"\njetstream {{ store_dir: "{self.directory}" }}\n{more}')

    def argv(self):
        return "nats-server", "-c", self.config


class Store(Server):
    """s3rver."""

    def __init__(self, hub, directory):
        super().__init__(hub, "s3rver", directory, "listening")
        self.url = f"http://{HUB}:{STORE_PORT}"

    def argv(self):
        return "node", S3RVER / "bin/s3rver.js", "-d", self.directory, "-a", HUB, "-p", STORE_PORT, "--configure-bucket", BUCKET

    def client(self):
        from botocore.config import Config
        from botocore.session import Session
        return Session().create_client("s3", region_name="us-east-1", endpoint_url=self.url, aws_access_key_id="S3RVER",
                                       aws_secret_access_key="S3RVER",
                                       config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}))

    def keys(self, prefix=PREFIX + "/"):
        """Returns {key: size} of the objects, as the store lists them."""
        def lists():
            pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            return {o["Key"]: o["Size"] for page in pages for o in page.get("Contents", [])}
        return self.hub.call(lists)

    def get(self, key):
        return self.hub.call(lambda: self.client().get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def count_part(self, number):
        """Returns how often the store has accepted the part NUMBER of an upload. (The end of its URL is in the log.)"""
        return len(re.findall(rf"partNumber={number}\b\S* 200 ", self.log()))

    def parts(self):
        return sum(1 for n in range(1, 20) if self.count_part(n))

    def uploads(self):
        """Returns the folders of unfinished uploads."""
        folder = self.directory / BUCKET / "._S3rver_uploads"
        return list(folder.iterdir()) if folder.is_dir() else []


class Nats:
    """A client of the broker that shares no code with ours: the text protocol of NATS."""

    def __init__(self, hub, url_user=None, host=HUB):
        self.socket = hub.call(socket.create_connection, (host, NATS_PORT), 10)
        self.socket.settimeout(30)
        self.file = self.socket.makefile("rb")
        self.n = 0
        assert self.file.readline().startswith(b"INFO ")
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python", "version": "1",
                   "protocol": 1}
        if url_user:
            options["user"], options["pass"] = url_user
        self.send(b"CONNECT " + json.dumps(options).encode() + b"\r\nSUB _INBOX.t.* 1\r\nPING\r\n")
        while (line := self.file.readline()) != b"PONG\r\n":
            assert line and not line.startswith(b"-ERR"), line

    def send(self, data):
        self.socket.sendall(data)

    def message(self):
        """Returns (subject, status or headers, payload) of the next message."""
        while True:
            words = self.file.readline().split()
            assert words, "the broker closed the connection"
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] == b"MSG":
                return words[1].decode(), b"", self.file.read(int(words[-1]) + 2)[:-2]
            elif words[0] == b"HMSG":
                head = int(words[-2])
                data = self.file.read(int(words[-1]) + 2)[:-2]
                return words[1].decode(), data[:head], data[head:]
            else:
                assert words[0] != b"-ERR", words

    def request(self, subject, data=b""):
        self.n += 1
        inbox = f"_INBOX.t.{self.n}"
        self.send(f"PUB {subject} {inbox} {len(data)}\r\n".encode() + data + b"\r\n")
        while True:
            to, head, body = self.message()
            if to == inbox:
                return head, body

    def store(self, subject, data):
        """Stores a message in the stream of its subject."""
        _, body = self.request(subject, data if isinstance(data, bytes) else json.dumps(data).encode())
        answer = json.loads(body)
        assert "seq" in answer, answer
        return answer["seq"]

    def subjects(self, stream, filter=">"):
        """Returns the subjects of the stored messages."""
        _, body = self.request(f"$JS.API.STREAM.INFO.{stream}", json.dumps({"subjects_filter": filter}).encode())
        info = json.loads(body)
        assert "state" in info, info
        return sorted(info["state"].get("subjects") or {})

    def last(self, stream, subject):
        """Returns the stored message as JSON, or None."""
        head, body = self.request(f"$JS.API.DIRECT.GET.{stream}", json.dumps({"last_by_subj": subject}).encode())
        return None if b" 404" in head.split(b"\r\n", 1)[0] else json.loads(body)

    def close(self):
        self.file.close()
        self.socket.close()


def token(name):
    """The name of a machine as one token of a subject."""
    return "".join(c if re.match("[A-Za-z0-9_-]", c) else f"={ord(c):02X}" for c in name)


class Machine:
    """A network namespace with a recorder and an agent. SKEW is the error of its wall clock in seconds."""

    def __init__(self, fleet, index, name, labels, skew, more, recorder, agent_more, dump):
        self.fleet, self.index, self.name, self.skew = fleet, index, name, skew
        self.home = fleet.path / f"m{index}"
        self.home.mkdir()
        self.link = f"m{index}"
        self.address = f"10.77.1.{index + 1}"
        self.space = Namespace("m" + re.sub("[^A-Za-z0-9-]", "x", name)[:60])
        self.connect()
        self.env = {"LD_PRELOAD": program("frtest-wallclock.so"), "FRTEST_WALL_SHIFT": str(skew)} if skew else {}
        self.config = self.home / "flightrecd.conf"
        self.config.write_text(self.text(labels, more, agent_more, dump))
        # The recorder finds its service manager by an abstract socket, which only its network namespace has. It needs no network.
        prefix = "nsenter", "-t", self.space.process.pid, "-u", "--"
        state = self.home / "state"
        state.mkdir()
        self.recorder = Daemon(state, "--config", self.config, *recorder, prefix=prefix, env=self.env)
        self.agent = None
        self.agent_log = self.home / "agent.log"
        self.starts = 0

    def text(self, labels, more, agent_more, dump):
        """The configuration of recorder and agent."""
        name = f"Name={self.name}\n" if self.name != self.space.name else ""
        return (harness.SIDEBAND_ROOM + dump + f"[Fleet]\nEnabled=yes\nServers={self.fleet.broker.url}\n{name}Labels={labels}\n"
                + self.fleet.upload_keys() + agent_more + "\n" + harness.triggers_config(self.home / "trigger", more))

    def connect(self):
        pid = self.space.process.pid
        hub = self.fleet.hub
        hub.must("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
        hub.must("ip", "link", "set", self.link, "master", "br0", "up")
        self.space.must("ip", "addr", "add", f"{self.address}/16", "dev", "eth0")
        self.space.must("ip", "link", "set", "eth0", "up")

    def argv(self):
        return (*self.space.prefix, program("flightrec-agent"), "--config", self.config, "--socket", self.recorder.socket,
                "--state", self.home / "agent")

    def start_agent(self):
        self.starts += 1
        (self.home / "agent").mkdir(exist_ok=True)
        with open(self.agent_log, "ab") as log:
            self.agent = start(*self.argv(), stdout=log, stderr=log, env=harness.environment(**self.env))
        return self

    def kill_agent(self):
        if self.agent and self.agent.poll() is None:
            end(self.agent)

    def stop_agent(self):
        if self.agent and self.agent.poll() is None:
            self.agent.terminate()
            assert self.agent.wait(60) == 0, self.agent_says()

    def die(self):
        """The machine loses its power."""
        self.kill_agent()
        self.recorder.kill()
        self.cut()

    def cut(self):
        """Nobody reaches the machine any more, and nobody is told."""
        self.fleet.hub.must("ip", "link", "set", self.link, "nomaster")

    def join(self):
        self.fleet.hub.must("ip", "link", "set", self.link, "master", "br0")

    def agent_says(self):
        return self.agent_log.read_text(errors="replace") if self.agent_log.exists() else ""

    def dumps(self):
        return self.recorder.samples()

    def close(self):
        self.kill_agent()
        with contextlib.suppress(AssertionError):
            if self.recorder.running():
                self.recorder.stop()
        self.recorder.kill()
        self.space.close()
        print(f"--- agent of {self.name}:\n{self.agent_says()}\n--- recorder of {self.name}:\n{self.recorder.log()}")


class Fleet:
    """The hub with broker, store and operator; and the machines."""

    def __init__(self, path, broker_more="", upload=True, store=None):
        self.path = Path(path)
        self.hub = Namespace("operator")
        self.hub.must("ip", "link", "add", "br0", "type", "bridge")
        self.hub.must("ip", "addr", "add", f"{HUB}/16", "dev", "br0")
        self.hub.must("ip", "link", "set", "br0", "up")
        self.keys = self.path / "keys"
        self.keys.write_text(KEYS)
        self.keys.chmod(0o600)
        self.upload = upload
        self.broker = Broker(self.hub, self.path / "broker", broker_more)
        self.store = Store(self.hub, store or self.path / "store")
        self.machines = []
        self.loads = []
        self.clients = []

    def upload_keys(self, location=f"s3://{BUCKET}/{PREFIX}"):
        if not self.upload:
            return ""
        return f"Upload={location}\nUploadEndpoint={self.store.url}\nUploadCredentials={self.keys}\n"

    def start(self):
        self.broker.start()
        if self.upload:
            self.store.start()
        self.operator = self.path / "operator.conf"
        self.operator.write_text(f"[Fleet]\nEnabled=yes\nServers={self.broker.url}\n{self.upload_keys()}")
        self.set_up()
        return self

    def set_up(self):
        """Returns what `setup` says. s3rver has no rules that remove old objects, and `setup` says so with its exit code."""
        return self.must("setup", code=harness.EXIT["partly"] if self.upload else 0).out

    # --- load

    def count(self, pause_us=20000):
        """Starts a program that counts, which all recorders of the fleet can record: an event that all machines see."""
        load = start(program("frtest-count"), "-t", 600, "-p", pause_us, stdout=-1, text=True)
        self.loads.append(load)
        return load

    def recording(self, load):
        """Options for a recorder that records only the numbers of LOAD."""
        return ("-e", "raw_syscalls:sys_enter", "--filter", "id == 8", "-p", load.pid, "-M", "4M", "-m", "512K")

    # --- machines

    def machine(self, name, labels="role=web", skew=0, more="", recorder=(), agent_more="", dump=""):
        """MORE is added to [Triggers], AGENT_MORE to [Fleet]; DUMP is a section [Dump]; RECORDER are options of flightrecd."""
        m = Machine(self, len(self.machines), name, labels, skew, more, recorder, agent_more, dump)
        self.machines.append(m)
        return m

    def start_machines(self, *machines):
        machines = machines or self.machines
        for m in machines:
            m.recorder.launch()
        for m in machines:
            m.recorder.until_ready()
            m.start_agent()
        self.until_present(*machines)

    def until_present(self, *machines):
        names = {m.name for m in machines}
        until(f"presence of {names}", lambda: names <= {m["machine"] for m in self.presence() if not m.get("recorder")}, 60)

    # --- the bus, without our programs

    def nats(self):
        client = Nats(self.hub)
        self.clients.append(client)
        return client

    def presence(self):
        client = Nats(self.hub)
        try:
            subjects = client.subjects("FLIGHTREC_PRESENCE")
            return [m for s in subjects if (m := client.last("FLIGHTREC_PRESENCE", s))]
        finally:
            client.close()

    def commands(self):
        """Returns the ids of all commands, the oldest first."""
        client = Nats(self.hub)
        try:
            return [s.rsplit(".", 1)[1] for s in client.subjects("FLIGHTREC_COMMANDS")]
        finally:
            client.close()

    def stored(self, stream, kind, id):
        """Returns {machine: message} of the messages for ID in STREAM."""
        client = Nats(self.hub)
        try:
            found = {}
            for s in client.subjects(stream, f"flightrec.{kind}.{id}.*"):
                m = client.last(stream, s)
                assert m["machine"] not in found
                found[m["machine"]] = m
            return found
        finally:
            client.close()

    def answers(self, id):
        return self.stored("FLIGHTREC_ANSWERS", "answer", id)

    def index(self, id):
        return self.stored("FLIGHTREC_INDEX", "index", id)

    def until_answered(self, id, states, seconds=90):
        """Waits until the machines have these states: {name: state}."""
        def reached():
            answers = self.answers(id)
            return {n: answers[n]["state"] for n in states if n in answers} == states and answers
        try:
            return until(f"answers {states}", reached, seconds)
        except AssertionError:
            raise AssertionError(f"answers to {id} after {seconds} s: {self.answers(id)}, wanted: {states}") from None

    def objects(self, id, machine):
        """Returns the keys of the dumps of a machine for ID, without the files beside them."""
        keys = self.store.keys(f"{PREFIX}/{id}/{token(machine)}/")
        return [k for k in keys if re.fullmatch(r"perf\.data\.sample\.[\dTZ.]+", k.rsplit("/", 1)[1])]

    def check_stored(self, id, machine):
        """Checks that the dump of the machine MACHINE is in the store exactly once and undamaged. Returns (manifest, content)."""
        m = self.index(id)[machine.name]
        keys = self.objects(id, machine.name)
        assert keys == [m["object"]], f"{machine.name}: objects {keys}, index {m['object']}"
        data = self.store.get(keys[0])
        assert len(data) == int(m["bytes"])
        assert hashlib.sha256(data).hexdigest() == m["sha256"]
        json.loads(self.store.get(keys[0] + ".json"))
        assert json.loads(self.store.get(keys[0] + ".manifest.json")) == m
        return m, data

    # --- the operator

    def argv(self, verb, *args):
        return (*self.hub.prefix, program("flightrecctl"), "fleet", verb, "--config", self.operator, *args)

    def ctl(self, verb, *args, timeout=120):
        return run(*self.argv(verb, *args), timeout=timeout)

    def start_ctl(self, verb, *args):
        return start(*self.argv(verb, *args), stdout=-1, stderr=-1, text=True)

    def must(self, verb, *args, code=0):
        r = self.ctl(verb, *args)
        assert code in (None, r.code), f"flightrecctl fleet {verb}: exit code {r.code}\n{r.err}\n{r.out}"
        return r

    def ask(self, verb, *args, code=0):
        """Returns the JSON that the verb prints."""
        return json.loads(self.must(verb, *args, "--json=short", code=code).out)

    def close(self):
        for client in self.clients:
            client.close()
        for m in self.machines:
            m.close()
        end(*self.loads)
        for load in self.loads:
            load.stdout.close()
        for server in (self.broker, self.store):
            server.kill()
            print(f"--- {server.name}:\n{server.log()[-5000:]}")
        self.hub.close()
