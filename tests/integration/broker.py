# SPDX-License-Identifier: GPL-2.0-or-later
"""A real broker on this machine, credentials for it, and brokers that lie."""
import base64
import contextlib
import hashlib
import json
import os
import shutil
import socket
import threading
import time
from collections import namedtuple

import pytest

import harness


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


Bus = namedtuple("Bus", "code lines error kib seconds")


def bus(url, *commands, options=(), timeout_s=5, text=None):
    """Runs frtest-bus with COMMANDS, each a list of words. Returns its lines without those of the link, and its peak memory."""
    words = []
    for c in commands:
        words += (["--"] if words else []) + [str(w) for w in c]
    begin = time.monotonic()
    argv = [harness.program("frtest-bus"), "-s", url, "-t", str(timeout_s), *map(str, options), *words]
    p = harness.start(*argv, stdout=-1, text=True)
    killer = threading.Timer(120, p.kill)
    killer.start()
    lines = p.stdout.read().splitlines()
    p.stdout.close()
    _, status, usage = os.wait4(p.pid, 0)
    killer.cancel()
    p.returncode = os.waitstatus_to_exitcode(status)
    errors = [line for line in lines if line.startswith("error ")]
    return Bus(p.returncode, [line for line in lines if not line.startswith("link ")], errors[0] if errors else "",
               usage.ru_maxrss, time.monotonic() - begin)


class Session:
    """frtest-bus with one command for each line of its input."""

    def __init__(self, url, *options):
        self.p = harness.start(harness.program("frtest-bus"), "-s", url, *map(str, options), "lines", stdin=-1, stdout=-1, text=True)
        self.lines = []
        self.thread = threading.Thread(target=lambda: self.lines.extend(iter(self.p.stdout.readline, "")), daemon=True)
        self.thread.start()

    def __iadd__(self, command):
        self.p.stdin.write(command + "\n")
        self.p.stdin.flush()
        return self

    def until(self, text, seconds=60):
        harness.until(f"the line {text!r}, in {self.lines}", lambda: any(line.startswith(text) for line in self.lines), seconds)

    def count(self, text):
        return sum(line.startswith(text) for line in self.lines)

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.p.stdin.close()
        code = self.p.wait(60)
        self.thread.join(60)
        self.p.stdout.close()
        return code


class Broker:
    """nats-server. CONFIG is its configuration without the address and the folder of JetStream."""

    def __init__(self, directory, config="", jetstream=True):
        if not shutil.which("nats-server"):
            pytest.skip("nats-server is not installed")
        directory.mkdir(exist_ok=True)
        self.directory, self.port = directory, free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.log = directory / "log"
        store = f'jetstream {{ store_dir: "{directory}" }}\n' if jetstream else ""
        (directory / "conf").write_text(f'listen: "127.0.0.1:{self.port}"\n{store}{config}')
        self.p = None
        self.start()

    def start(self):
        self.log.unlink(missing_ok=True)
        self.p = harness.start("nats-server", "-c", self.directory / "conf", "-l", self.log, stdout=-3, stderr=-3)
        harness.until("nats-server listens", lambda: self.log.exists() and "Server is ready" in self.log.read_text() or
                      self.p.poll() is not None)
        assert self.p.poll() is None, self.log.read_text()
        return self

    def stop(self):
        self.p.terminate()
        self.p.wait(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.p)


# Keys and credentials, in the formats of github.com/nats-io/nkeys and /jwt. They are ed25519 keys.
KINDS = {"O": 14 << 3, "A": 0, "U": 20 << 3}


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return crc


def encode_key(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, "little")).decode().rstrip("=")


def url64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    def __init__(self, kind):
        ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
        raw = os.urandom(32)
        self.private = ed25519.Ed25519PrivateKey.from_private_bytes(raw)
        serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
        public = self.private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.public = encode_key(bytes([KINDS[kind]]) + public)
        self.seed = encode_key(bytes([18 << 3 | KINDS[kind] >> 5, (KINDS[kind] & 31) << 3]) + raw)

    def sign(self, subject, name, nats, **more):
        """Returns a JWT in which this key says something about the key SUBJECT."""
        claims = {"jti": "", "iat": int(time.time()), "iss": self.public, "name": name, "sub": subject, "nats": {**nats, "version": 2},
                  **more}
        claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
        text = ".".join(url64(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims))
        return f"{text}.{url64(self.private.sign(text.encode()))}"


class Operator:
    """An operator with one account, FLEET, which has JetStream."""

    def __init__(self):
        self.operator, self.system, self.account = Key("O"), Key("A"), Key("A")

    def config(self):
        """Returns the configuration of a broker that believes this operator."""
        limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1) | {"wildcards": True}
        storage = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)
        operator = self.operator.sign(self.operator.public, "test", {"type": "operator", "system_account": self.system.public})
        system = self.operator.sign(self.system.public, "SYS", {"type": "account", "limits": limits})
        fleet = self.operator.sign(self.account.public, "FLEET", {"type": "account", "limits": limits | storage})
        return (f"operator: {operator}\nsystem_account: {self.system.public}\nresolver: MEMORY\n"
                f"resolver_preload: {{ {self.system.public}: {system}\n {self.account.public}: {fleet} }}\n")

    def credentials(self, path, name, publish=(), subscribe=(), **more):
        """Writes the credentials of a new user."""
        user = Key("U")
        permissions = {"pub": {"allow": list(publish)}, "sub": {"allow": list(subscribe)}} if publish or subscribe else {}
        token = self.account.sign(user.public, name, {"type": "user", "subs": -1, "data": -1, "payload": -1, **permissions}, **more)
        path.write_text(f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
                        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
        path.chmod(0o600)
        return path


INFO = {"server_id": "X", "version": "2.9.10", "proto": 1, "host": "127.0.0.1", "port": 1, "headers": True, "max_payload": 1048576,
        "jetstream": True}


class Liar:
    """A broker that speaks NATS as far as ATTACK wants: a class with some of the methods of Honest."""

    def __init__(self, attack):
        self.attack = attack
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.sockets, self.stopping, self.errors = [], False, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                self.sockets.append(s)
                threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        with contextlib.suppress(OSError, ValueError):
            self.attack(self, s).serve()
        with contextlib.suppress(OSError):
            s.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping = True
        for s in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()


class Honest:
    """One link of a Liar. The methods behave well; attacks replace some of them."""
    status_404 = b"NATS/1.0 404 Message Not Found\r\n\r\n"

    def __init__(self, liar, s):
        self.liar, self.s, self.f, self.sids, self.names = liar, s, s.makefile("rb"), {}, {}
        self.sequence = 0

    def send(self, data):
        self.s.sendall(data)

    def stay(self):
        """Reads and ignores, until the client goes."""
        while self.s.recv(65536):
            pass

    def greet(self):
        self.send(b"INFO " + json.dumps(INFO).encode() + b"\r\n")

    def serve(self):
        self.greet()
        while line := self.f.readline():
            self.command(line.decode().split())

    def command(self, words):
        op = words[0].upper()
        if op == "PING":
            self.ping()
        elif op == "SUB":
            self.sids[words[1]] = words[-1]
        elif op in ("PUB", "HPUB"):
            data = self.f.read(int(words[-1]))
            self.f.readline()
            reply = words[2] if len(words) == (4 if op == "PUB" else 5) else None
            self.published(words[1], reply, data[int(words[-2]) if op == "HPUB" else 0:])

    def ping(self):
        self.send(b"PONG\r\n")

    def sid(self, subject):
        for pattern, sid in self.sids.items():
            if pattern == subject or pattern.endswith(".*") and subject.rpartition(".")[0] == pattern[:-2]:
                return sid
        return "1"

    def message(self, subject, data, reply="", headers=b"", sid=None, size=None):
        if not subject:
            return  # the client wants no reply
        sid = sid or self.sid(subject)
        if headers:
            total = len(headers) + len(data) if size is None else size
            line = f"HMSG {subject} {sid} {reply + ' ' if reply else ''}{len(headers)} {total}\r\n"
        else:
            line = f"MSG {subject} {sid} {reply + ' ' if reply else ''}{len(data) if size is None else size}\r\n"
        self.send(line.encode() + headers + data + b"\r\n")

    def json(self, reply, value):
        self.message(reply, json.dumps(value).encode())

    def published(self, subject, reply, data):
        if subject.startswith("$JS.API.DIRECT.GET."):
            stream, _, of = subject.removeprefix("$JS.API.DIRECT.GET.").partition(".")
            self.direct(reply, stream, of)
        elif subject.startswith("$JS.API.CONSUMER.CREATE."):
            self.create(reply, *subject.split(".")[4:6])
        elif subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
            self.next(reply, *subject.split(".")[5:7])
        elif subject.startswith("$JS."):
            self.api(reply, subject)
        elif reply:
            self.ack(reply)

    def origin(self, stream="S", subject="a.b", sequence="7", stamp="2026-11-28T20:00:00.123456789Z"):
        return (f"NATS/1.0\r\nNats-Stream: {stream}\r\nNats-Subject: {subject}\r\nNats-Sequence: {sequence}\r\n"
                f"Nats-Time-Stamp: {stamp}\r\n\r\n").encode()

    def direct(self, reply, stream, subject):
        self.message(reply, b"hello", headers=self.origin(stream, subject))

    def ack(self, reply):
        self.json(reply, {"stream": "S", "seq": 7})

    def create(self, reply, stream, name):
        self.json(reply, {"type": "x", "stream_name": stream, "name": name, "num_pending": 3})

    def next(self, reply, stream, name):
        for i in (1, 2, 3):
            self.message("a.b", b"hello", f"$JS.ACK.{stream}.{name}.1.{i + 6}.{i}.1795900000000000000.{3 - i}", sid=self.sid(reply))

    def api(self, reply, subject):
        stream = subject.rpartition(".")[2]
        if reply:
            self.json(reply, {"config": {"name": stream, "max_age": 0, "max_bytes": -1}, "state": {"messages": 3, "bytes": 300, "last_seq": 9}})
