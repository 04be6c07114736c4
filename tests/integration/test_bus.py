# SPDX-License-Identifier: GPL-2.0-or-later
"""src/bus with a real nats-server, and with brokers that lie."""
import itertools
import json
import socket
import ssl
import time
from pathlib import Path

import pytest

import harness
from broker import INFO, Broker, Honest, Liar, Operator, Session, bus

pytestmark = pytest.mark.waits
MEMORY_KIB = 96 << 10


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "nats") as b:
        yield b


def test_messages_are_stored_and_read(broker):
    r = bus(broker.url, ["ensure", "S", "a.>"], ["ensure", "S", "a.>"], ["ensure", "S", "a.>", 10**12], ["store", "S", "a.b", "one"],
            ["store", "S", "a.b", "two"], ["last", "S", "a.b"], ["last", "S", "a.c"], ["count", "S", "a.>"])
    assert r.code == 0 and r.lines[:5] == ["created", "unchanged", "changed", "stored 1", "stored 2"]
    assert r.lines[5].startswith("message a.b 2 ") and r.lines[5].endswith(" two")
    assert r.lines[6] == "none" and r.lines[7].startswith("read 1 ")


def test_condition(broker):
    r = bus(broker.url, ["ensure", "S", "a.>"], ["store", "S", "a.b", "one", 0], ["store", "S", "a.b", "two", 0], ["store", "S", "a.b", "two", 1])
    assert r.lines[1:] == ["stored 1", "conflict", "stored 2"]


def test_errors_say_what_to_do(broker):
    r = bus(broker.url, ["ensure", "S", "a.>"], ["ensure", "T", "b.>"], ["store", "S", "b.c", "x"], ["store", "S", "c.d", "x"], ["info", "U"],
            ["read", "U", "u.>"])
    stored, missing, info, read = r.lines[2:]
    assert "ENOENT" in stored and "expected stream" in stored
    assert "ENOENT" in missing and "fleet setup" in missing
    assert "ENOENT" in info and "stream not found" in info
    assert "ENOENT" in read


def test_full_stream(broker):
    r = bus(broker.url, ["ensure", "S", "a.>"], ["store", "S", "a.b", "x" * 60000], ["info", "S"])
    assert r.code == 0
    assert "stored 1" in r.lines


def test_large_read(broker):
    """20,000 subjects. The memory does not depend on the number."""
    r = bus(broker.url, ["ensure", "S", "a.>"], ["fill", "S", "a", 20000], ["count", "S", "a.>"], ["count", "S", "a.7"], ["count", "S", "a.>", 0, 100],
            timeout_s=60)
    assert [line.split(" in ")[0] for line in r.lines[2:]] == ["read 20000", "read 1", "read 100"]
    assert r.kib < MEMORY_KIB


def test_since(broker):
    r = bus(broker.url, ["ensure", "S", "a.>"], ["store", "S", "a.b", "one"], ["sleep", 0.01], ["store", "S", "a.c", "two"], ["last", "S", "a.c"])
    since = int(r.lines[4].split()[3])
    r = bus(broker.url, ["read", "S", "a.>", since], ["read", "S", "a.>", since + 1])
    assert [line.split()[1] for line in r.lines if line.startswith("message")] == ["a.c"]
    assert r.lines.count("end") == 2


def test_purge_within_a_read(broker):
    """A read ends also if its messages vanish. The purges come at different moments of the reads."""
    bus(broker.url, ["ensure", "S", "a.>"])
    for pause in (0.001, 0.01, 0.03, 0.1):
        bus(broker.url, ["fill", "S", "a", 3000], timeout_s=60)
        s = Session(broker.url)
        s += "count S a.>"
        time.sleep(pause)
        r = bus(broker.url, ["purge", "S", "a.>"])
        assert r.lines == ["ok"]
        s.until("read ")
        assert s.end() == 0


def test_bells_and_a_new_link(broker):
    """Subscriptions survive a restart of the broker, and so do the messages."""
    bus(broker.url, ["ensure", "S", "a.>"])
    s = Session(broker.url, "-r")
    s += "subscribe a.*"
    s.until("ok")
    bus(broker.url, ["store", "S", "a.b", "one"])
    s.until("bell a.b")
    broker.stop()
    s.until("link down")
    s += "store S a.c lost"
    s.until("error ENOTCONN: there is no link")
    broker.start()
    s += "up"
    harness.until("the second link", lambda: s.count("link up") == 2)
    bus(broker.url, ["store", "S", "a.d", "two"])
    s.until("bell a.d")
    s += "last S a.b"
    s.until("message a.b 1 ")
    s += "stats"
    s.until("stats links=2 ")
    s.end()


def test_broker_that_starts_later(tmp_path):
    with Broker(tmp_path / "nats") as broker:
        broker.stop()
        s = Session(broker.url, "-r")
        s += "last S a.b"
        s.until("error ENOTCONN")
        broker.start()
        s.until("link up")
        s.end()


def test_no_broker():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    r = bus(f"nats://127.0.0.1:{port}", ["ping"])
    assert r.code == 1 and "error ECONNREFUSED" in r.error and "Is nats-server running" in r.error


def test_second_server(broker):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for _ in range(4):  # the first one is chosen at random
        assert bus(f"nats://127.0.0.1:{port}, {broker.url}", ["ping"]).lines == ["ok"]


@pytest.mark.parametrize("servers", ["", "http://x", "nats://", "nats://a:0", "nats://a:99999", ",".join(["nats://a:1"] * 17)])
def test_bad_servers(servers):
    r = bus(servers, ["ping"])
    assert r.code == 1 and "EINVAL" in r.error


def test_without_jetstream(tmp_path):
    with Broker(tmp_path / "nats", jetstream=False) as broker:
        r = bus(broker.url, ["info", "S"], ["store", "S", "a.b", "x"])
        assert all("error ENOENT" in line and "JetStream" in line for line in r.lines)


# Credentials and TLS

def test_credentials(tmp_path):
    operator = Operator()
    good = operator.credentials(tmp_path / "good.creds", "good")
    stranger = Operator().credentials(tmp_path / "bad.creds", "bad")
    expired = operator.credentials(tmp_path / "old.creds", "old", exp=int(time.time()) - 60)
    with Broker(tmp_path / "nats", operator.config()) as broker:
        assert bus(broker.url, ["ensure", "S", "a.>"], ["store", "S", "a.b", "x"], options=["-c", good]).lines == ["created", "stored 1"]
        for options in (["-c", stranger], ["-c", expired], []):
            r = bus(broker.url, ["ping"], options=options)
            assert r.code == 1 and "error EACCES" in r.error and "Credentials=" in r.error, options
    r = bus("nats://127.0.0.1:1", ["ping"], options=["-c", tmp_path / "none.creds"])
    assert "error EINVAL" in r.error and "none.creds" in r.error


def test_permissions(tmp_path):
    """The broker says that it does not permit something, and does not reply. The error is not a timeout."""
    operator = Operator()
    allow = ["a.b", "$JS.API.INFO", "$JS.API.CONSUMER.CREATE.>"]
    user = operator.credentials(tmp_path / "user.creds", "user", publish=allow, subscribe=["_INBOX.me.>", "a.*"])
    setup = operator.credentials(tmp_path / "setup.creds", "setup")
    with Broker(tmp_path / "nats", operator.config()) as broker:
        bus(broker.url, ["ensure", "S", "a.>"], ["store", "S", "a.c", "x"], options=["-c", setup])
        r = bus(broker.url, ["store", "S", "a.b", "x"], ["store", "S", "a.c", "x"], ["last", "S", "a.b"], ["subscribe", "a.*"], ["subscribe", "z.*"],
                ["read", "S", "a.>"], options=["-c", user, "-i", "_INBOX.me"], timeout_s=60)
        assert r.lines[0] == "stored 2" and r.lines[3] == "ok"
        for line, subject in ((1, "a.c"), (2, "$JS.API.DIRECT.GET.S.a.b"), (4, "z.*"), (5, "$JS.API.CONSUMER.MSG.NEXT.S.")):
            assert r.lines[line].startswith("error EACCES") and subject in r.lines[line]
        r = bus(broker.url, ["store", "S", "a.b", "x"], options=["-c", user], timeout_s=60)
        assert "error EACCES" in r.error and "inbox" in r.error


def make_pki(d, **names):
    """Makes a CA, and a certificate for each name, in the folder D."""
    d.mkdir()
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    harness.must("openssl", "req", "-x509", *key, "-subj", "/CN=test ca", "-days", "2", "-keyout", d / "ca.key", "-out", d / "ca.pem")
    for name, alt in names.items():
        harness.must("openssl", "req", *key, "-subj", f"/CN={name}", "-keyout", d / f"{name}.key", "-out", d / f"{name}.csr")
        (d / "ext").write_text(f"subjectAltName={alt}\n")
        harness.must("openssl", "x509", "-req", "-in", d / f"{name}.csr", "-CA", d / "ca.pem", "-CAkey", d / "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", d / "ext", "-out", d / f"{name}.pem")
    return d


@pytest.fixture
def pki(tmp_path):
    return make_pki(tmp_path / "pki", server="IP:127.0.0.1,DNS:localhost", client="DNS:client", other="DNS:other.example")


def tls_config(pki, name, verify=False):
    return (f'tls {{ cert_file: "{pki}/{name}.pem", key_file: "{pki}/{name}.key", ca_file: "{pki}/ca.pem", timeout: 5, '
            f'verify: {str(verify).lower()} }}\n')


def test_tls(tmp_path, pki):
    with Broker(tmp_path / "nats", tls_config(pki, "server")) as broker:
        tls = broker.url.replace("nats", "tls")
        r = bus(tls, ["ensure", "S", "a.>"], ["fill", "S", "a", 300], ["count", "S", "a.>"], options=["-a", pki / "ca.pem"])
        assert r.code == 0 and r.lines[2].startswith("read 300 ")
        assert bus(tls.replace("127.0.0.1", "localhost"), ["ping"], options=["-a", pki / "ca.pem"]).lines == ["ok"]
        r = bus(tls, ["ping"])  # no CA
        assert "error EPROTO" in r.error and "CACertificate=" in r.error
    with Broker(tmp_path / "other", tls_config(pki, "other")) as broker:
        r = bus(broker.url.replace("nats", "tls"), ["ping"], options=["-a", pki / "ca.pem"])
        assert "error EPROTO" in r.error and "mismatch" in r.error
    with Broker(tmp_path / "plain") as broker:
        r = bus(broker.url.replace("nats", "tls"), ["ping"], options=["-a", pki / "ca.pem"])
        assert "error EPROTO" in r.error


def test_client_certificate(tmp_path, pki):
    with Broker(tmp_path / "nats", tls_config(pki, "server", verify=True)) as broker:
        tls, ca = broker.url.replace("nats", "tls"), ["-a", pki / "ca.pem"]
        assert bus(tls, ["ping"], options=[*ca, "-C", pki / "client.pem", "-K", pki / "client.key"]).lines == ["ok"]
        assert "error EPROTO" in bus(tls, ["ping"], options=ca).error
        assert "error EINVAL" in bus(tls, ["ping"], options=[*ca, "-C", pki / "client.pem"]).error


# Brokers that lie: first those with which no link is possible.

class Silence(Honest):
    def greet(self):
        self.stay()


class HalfGreeting(Honest):
    def greet(self):
        self.send(b'INFO {"server_id":')
        self.stay()


class GiantGreeting(Honest):
    def greet(self):
        self.send(b'INFO {"server_id":"')
        for _ in range(4096):
            self.send(b"x" * 65536)


class DeepGreeting(Honest):
    def greet(self):
        self.send(b"INFO " + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\r\n")
        self.stay()


class GarbageGreeting(Honest):
    def greet(self):
        self.send(bytes(range(256)) * 4 + b"\r\n")
        self.stay()


class HttpGreeting(Honest):
    def greet(self):
        self.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


class CloseAtOnce(Honest):
    def greet(self):
        raise OSError


class NoPong(Honest):
    def ping(self):
        self.stay()


class EndlessPong(Honest):
    def ping(self):
        while True:
            self.send(b"x" * 65536)


class SlowGreeting(Honest):
    def greet(self):
        for byte in b"INFO " + json.dumps(INFO).encode():
            self.send(bytes([byte]))
            time.sleep(0.5)


class ErrorForPong(Honest):
    def ping(self):
        self.send(b"-ERR 'maximum connections exceeded'\r\n")


class GarbageForPong(Honest):
    def ping(self):
        self.send(b"\x00\xff\x1b[31mPONGO\r\n")
        self.stay()


class TlsWithoutTls(Honest):
    def greet(self):
        self.send(b"INFO " + json.dumps({**INFO, "tls_required": True}).encode() + b"\r\n")
        self.stay()


class WrongTypes(Honest):
    def greet(self):
        self.send(b'INFO {"server_id":7,"max_payload":"x","connect_urls":{"a":1}}\r\n')
        self.stay()


@pytest.mark.parametrize("attack", [Silence, HalfGreeting, GiantGreeting, DeepGreeting, GarbageGreeting, HttpGreeting, CloseAtOnce, NoPong, EndlessPong,
                                    SlowGreeting, ErrorForPong, GarbageForPong, TlsWithoutTls, WrongTypes], ids=lambda a: a.__name__)
def test_no_link(attack):
    """The connect ends, with a reason, and later links are tried."""
    with Liar(attack) as liar:
        r = bus(liar.url, ["ping"], timeout_s=3)
        assert r.code == 1 and r.error.split()[1] in ("EPROTO:", "ETIMEDOUT:", "ECONNREFUSED:"), r
        assert f"127.0.0.1:{liar.port}: " in r.error and "\x1b" not in r.error
        assert r.seconds < 60 and r.kib < MEMORY_KIB


def test_link_after_bad_greetings(tmp_path):
    """The bus tries again after greetings after which libnats would give up for ever."""
    bad = itertools.chain([GarbageGreeting, HttpGreeting, CloseAtOnce, ErrorForPong, GarbageForPong], itertools.repeat(Honest))
    with Liar(lambda liar, s: next(bad)(liar, s)) as liar:
        s = Session(liar.url, "-r")
        s.until("link up")
        s += "last S a.b"
        s.until("message a.b 7 ")
        s.end()


# Then those that make a link. Each is asked for a message, to store, and to read.

class NoReplies(Honest):
    def published(self, subject, reply, data):
        pass


class CloseAfterEach(Honest):
    def published(self, subject, reply, data):
        raise OSError


class Garbage(Honest):
    def published(self, subject, reply, data):
        self.send(bytes(range(256)) * 16)
        self.stay()


class HugeMessage(Honest):
    def published(self, subject, reply, data):
        self.send(f"MSG {reply} 1 2000000000\r\n".encode())
        for _ in range(4096):
            self.send(b"x" * 65536)


class HugeSize(Honest):
    def published(self, subject, reply, data):
        self.send(f"MSG {reply} 1 99999999999999999999\r\n".encode() + b"x" * 100)
        self.stay()


class EndlessLine(Honest):
    def published(self, subject, reply, data):
        self.send(b"MSG ")
        for _ in range(4096):
            self.send(b"x" * 65536)


class EndlessError(Honest):
    def published(self, subject, reply, data):
        self.send(b"-ERR '")
        for _ in range(4096):
            self.send(b"x" * 65536)


class EndlessInfo(Honest):
    def published(self, subject, reply, data):
        self.send(b"INFO {")
        for _ in range(4096):
            self.send(b"x" * 65536)


class EndlessHeader(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b"", headers=b"NATS/1.0\r\nA: " + b"x" * 900000, size=900014)


class HeaderLongerThanMessage(Honest):
    def published(self, subject, reply, data):
        self.send(f"HMSG {reply} 1 500 10\r\n0123456789\r\n".encode())
        self.stay()


class WrongSid(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b"{}", sid="4711")


class OtherInbox(Honest):
    def published(self, subject, reply, data):
        for i in range(100 if reply else 0):  # none of these is the right one, also if that ends with a digit
            self.message(f"{reply[:-1]}.{i}", b'{"stream":"S","seq":7}', headers=self.origin(), sid="1")


class Drip(Honest):
    def published(self, subject, reply, data):
        while True:
            self.send(b"P")
            time.sleep(0.2)
            self.send(b"ING\r\n")


class Flood(Honest):
    """Messages for an inbox that nobody asked for."""
    def published(self, subject, reply, data):
        chunk = f"MSG {reply}x 1 100\r\n".encode() + b"x" * 100 + b"\r\n"
        for _ in range(2000):
            self.send(chunk * 100)


class NotJson(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b'{"stream":"S","seq":')


class DeepJson(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b"[" * 50000 + b"]" * 50000)


class EmptyReply(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b"")


class JsonOfOtherTypes(Honest):
    def published(self, subject, reply, data):
        self.json(reply, {"stream": 7, "seq": "x", "num_pending": -1, "config": [], "state": 1, "error": None and 0, "name": {}})


class ErrorOfOtherTypes(Honest):
    def published(self, subject, reply, data):
        self.json(reply, {"error": "\x1b[31mno"})


class StrangeStatus(Honest):
    def published(self, subject, reply, data):
        self.message(reply, b"", headers=b"NATS/1.0 999 \x1b[31mWhat\r\n\r\n")


class NotPermitted(Honest):
    def published(self, subject, reply, data):
        self.send(f"-ERR 'Permissions Violation for Publish to \"{subject}\"'\r\n".encode())


@pytest.mark.parametrize("attack", [NoReplies, CloseAfterEach, Garbage, HugeMessage, HugeSize, EndlessLine, EndlessError, EndlessInfo, EndlessHeader,
                                    HeaderLongerThanMessage, WrongSid, OtherInbox, Drip, Flood, NotJson, DeepJson, EmptyReply, JsonOfOtherTypes,
                                    ErrorOfOtherTypes, StrangeStatus, NotPermitted], ids=lambda a: a.__name__)
@pytest.mark.parametrize("command", [["last", "S", "a.b"], ["store", "S", "a.b", "x"], ["read", "S", "a.>"], ["info", "S"]], ids=lambda c: c[0])
def test_hostile_replies(attack, command):
    with Liar(attack) as liar:
        r = bus(liar.url, command, timeout_s=2)
        assert r.code == 1 and len(r.lines) == 1, r
        name = r.error.split()[1].rstrip(":")
        assert name in ("EBADMSG", "ETIMEDOUT", "EACCES", "EREMOTEIO", "ENOTCONN"), r
        assert (name == "EACCES") == (attack is NotPermitted)
        assert "\x1b" not in r.error and "(" in r.error
        assert r.seconds < 60 and r.kib < MEMORY_KIB, r


@pytest.mark.parametrize("headers", [dict(stream="T"), dict(subject="a.c"), dict(sequence="0"), dict(sequence="-1"), dict(sequence="07"),
                                     dict(sequence="99999999999999999999"), dict(sequence="7x"), dict(stamp=""), dict(stamp="2026-11-28 20:00:00Z"),
                                     dict(stamp="2026-02-30T20:00:00Z"), dict(stamp="2026-11-28T20:00:00.Z"), dict(stamp="2026-11-28T20:00:00+01:00"),
                                     dict(stamp="2026-11-28T20:00:00.1234567890Z"), dict(stamp="1969-11-28T20:00:00Z"),
                                     dict(stamp="2026-11-28T20:00:00Z\r\nNats-Stream: S")], ids=lambda h: "-".join(map(repr, h.values())))
def test_forged_last_message(headers):
    class Forger(Honest):
        def direct(self, reply, stream, subject):
            self.message(reply, b"forged", headers=self.origin(**headers))
    with Liar(Forger) as liar:
        r = bus(liar.url, ["last", "S", "a.b"], ["stats"], timeout_s=2)
        assert "error EBADMSG" in r.lines[0] and "not accepted" in r.lines[0] and "refused=1" in r.lines[1], r


def test_last_message_without_headers_or_too_large():
    class Bare(Honest):
        def direct(self, reply, stream, subject):
            self.message(reply, b"forged")

    class Large(Honest):
        def direct(self, reply, stream, subject):
            self.message(reply, b"x" * 70000, headers=self.origin(stream, subject))
    for attack in (Bare, Large):
        with Liar(attack) as liar:
            assert "error EBADMSG" in bus(liar.url, ["last", "S", "a.b"]).error


@pytest.mark.parametrize("stamp, ns", [("2026-11-28T20:00:00Z", 0), ("2026-11-28T20:00:00.5Z", 5 * 10**8), ("2026-11-28T20:00:00.000000001Z", 1)])
def test_time_of_a_message(stamp, ns):
    class Clock(Honest):
        def direct(self, reply, stream, subject):
            self.message(reply, b"x", headers=self.origin(stream, subject, stamp=stamp))
    with Liar(Clock) as liar:
        assert bus(liar.url, ["last", "S", "a.b"]).lines == [f"message a.b 7 {1795896000 * 10**9 + ns} x"]


@pytest.mark.parametrize("ack", [{}, {"stream": "T", "seq": 7}, {"stream": "S"}, {"stream": "S", "seq": 0}, {"stream": "S", "seq": -7},
                                 {"stream": "S", "seq": 1.5}, {"stream": "S", "seq": 1e300}, {"stream": "S", "seq": 7, "duplicate": True}], ids=json.dumps)
def test_forged_acknowledgement(ack):
    class Forger(Honest):
        def ack(self, reply):
            self.json(reply, ack)
    with Liar(Forger) as liar:
        assert "error EBADMSG" in bus(liar.url, ["store", "S", "a.b", "x"]).error


@pytest.mark.parametrize("stream, name, first, last", [("T", None, 7, 9), (None, "x", 7, 9), (None, None, 7, 6), (None, None, 0, 0)])
def test_forged_messages_of_a_read(stream, name, first, last):
    """Messages of another stream or consumer, or out of order, are not passed on. The read ends with an error."""
    class Forger(Honest):
        def next(self, reply, of, consumer):
            for i, sequence in enumerate((first, last, last)):
                self.message("a.b", b"forged", f"$JS.ACK.{stream or of}.{name or consumer}.1.{sequence}.{i + 1}.1795900000000000000.{2 - i}",
                             sid=self.sid(reply))
    with Liar(Forger) as liar:
        r = bus(liar.url, ["read", "S", "a.>"], ["stats"], timeout_s=2)
        assert "error ETIMEDOUT" in r.error
        assert sum(line.startswith("message") for line in r.lines) == (first == 7 and not stream and not name)
        assert "refused=0" not in r.lines[-1]


def test_message_of_a_read_with_another_subject():
    class Forger(Honest):
        def next(self, reply, stream, consumer):
            for i, subject in enumerate(("b.c", "a", "a.b")):
                self.message(subject, b"x", f"$JS.ACK.{stream}.{consumer}.1.{i + 7}.{i + 1}.1795900000000000000.{2 - i}", sid=self.sid(reply))
    with Liar(Forger) as liar:
        r = bus(liar.url, ["read", "S", "a.>"], ["stats"])
        assert [line.split()[1] for line in r.lines if line.startswith("message")] == ["a.b"] and "refused=2" in r.lines[-1]


def test_messages_behind_the_end_of_a_read():
    """libnats 3.4 uses the subscription of a message also after it was destroyed, so the bus must not destroy it at that moment."""
    class Talker(Honest):
        def next(self, reply, stream, consumer):
            sid = self.sid(reply)
            self.message("a.b", b"hello", f"$JS.ACK.{stream}.{consumer}.1.7.1.1795900000000000000.0", sid=sid)
            # libnats needs the subscription before and after it copies a message, which takes a while if the message is large.
            self.send((f"MSG a.b {sid} 500000\r\n".encode() + b"x" * 500000 + b"\r\n") * 2)
    with Liar(Talker) as liar:
        r = bus(liar.url, *[["count", "S", "a.>"]] * 100, timeout_s=60)
        assert r.code == 0 and [line.split(" in ")[0] for line in r.lines] == ["read 1"] * 100, r


@pytest.mark.parametrize("why", ["Server Shutdown", "Leadership Change", "Consumer Deleted"])
def test_end_of_a_consumer_within_a_read(why):
    """A broker that stops, or a cluster with a new leader, ends the consumer. The read goes on behind the last message."""
    class Ender(Honest):
        turn = 0

        def create(self, reply, stream, name):
            self.json(reply, {"type": "x", "stream_name": stream, "name": name, "num_pending": 2 - self.turn})

        def next(self, reply, stream, consumer):
            sid, turn, self.turn = self.sid(reply), self.turn, 1
            self.message("a.b", b"hello", f"$JS.ACK.{stream}.{consumer}.1.{turn + 7}.1.1795900000000000000.{1 - turn}", sid=sid)
            if turn == 0:
                self.message(reply, b"", headers=f"NATS/1.0 409 {why}\r\n\r\n".encode(), sid=sid)
    with Liar(Ender) as liar:
        r = bus(liar.url, ["read", "S", "a.>"])
        assert r.code == 0 and [line.split()[2] for line in r.lines if line.startswith("message")] == ["7", "8"], r


def test_end_of_each_consumer():
    class Ender(Honest):
        consumers = 0

        def next(self, reply, stream, consumer):
            Ender.consumers += 1
            self.message(reply, b"", headers=b"NATS/1.0 409 Server Shutdown\r\n\r\n", sid=self.sid(reply))
    with Liar(Ender) as liar:
        r = bus(liar.url, ["read", "S", "a.>"], timeout_s=2)
        assert "error ETIMEDOUT" in r.error and "status 409" in r.error and r.seconds < 60, r
        assert 1 < Ender.consumers < 100, "the read has no pause"


def test_honest_broker_of_the_tests():
    """The lies above are the only reason of their errors."""
    with Liar(Honest) as liar:
        r = bus(liar.url, ["last", "S", "a.b"], ["store", "S", "a.b", "x"], ["read", "S", "a.>"], ["info", "S"])
        assert r.code == 0 and r.lines[1] == "stored 7" and r.lines[2:6] == [
            f"message a.b {i} 1795900000000000000 hello" for i in (7, 8, 9)] + ["end"]


def test_silent_tls(tmp_path, pki):
    """A broker that stops within the TLS handshake, or after it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server.pem", pki / "server.key")

    class Handshake(Honest):
        def greet(self):
            self.send(b"INFO " + json.dumps({**INFO, "tls_required": True}).encode() + b"\r\n")
            self.s.recv(10)
            time.sleep(60)

    class After(Honest):
        def greet(self):
            self.send(b"INFO " + json.dumps({**INFO, "tls_required": True}).encode() + b"\r\n")
            with context.wrap_socket(self.s, server_side=True) as s:
                while s.recv(65536):
                    pass
    for attack in (Handshake, After):
        with Liar(attack) as liar:
            r = bus(liar.url.replace("nats", "tls"), ["ping"], options=["-a", pki / "ca.pem"], timeout_s=3)
            assert "error ETIMEDOUT" in r.error and r.seconds < 60, r


# The example of a configuration

CONF = Path(__file__).parents[2] / "docs/examples/nats-server.conf"
STREAMS = {"COMMANDS": "command", "ANSWERS": "answer", "PRESENCE": "presence", "INDEX": "index", "INCIDENTS": "incident"}
ID = "20261128T205726Z-1f3a5c7e"


@pytest.fixture(scope="module")
def roles(tmp_path_factory):
    """A broker with the example as its configuration. Returns a function that runs commands as one of its users."""
    d = tmp_path_factory.mktemp("roles")
    names = ["db-1", "web-1", "operator", "reader", "admin", "stranger"]
    make_pki(d / "pki", server="IP:127.0.0.1", **{name: f"DNS:{name}.fleet.example" for name in names})
    text = CONF.read_text().replace("/etc/nats/", f"{d}/pki/").replace("/var/lib/nats", str(d / "nats"))
    text = "\n".join(line for line in text.splitlines() if not line.startswith("listen:"))

    def run(who, *commands, timeout_s=60):
        inbox = ["-i", f"_INBOX.{who}"] if who in ("db-1", "web-1") else []
        tls = ["-a", d / "pki/ca.pem", "-C", d / f"pki/{who}.pem", "-K", d / f"pki/{who}.key"]
        return bus(broker.url.replace("nats", "tls"), *commands, options=tls + inbox, timeout_s=timeout_s)

    with Broker(d / "nats", text, jetstream=False) as broker:
        r = run("admin", *(["ensure", f"FLIGHTREC_{s}", f"flightrec.{k}.>"] for s, k in STREAMS.items()))
        assert r.lines == ["created"] * 5, r
        run("admin", ["store", "FLIGHTREC_COMMANDS", f"flightrec.command.{ID}", "x"], ["store", "FLIGHTREC_INCIDENTS", "flightrec.incident.f00", "x"])
        for name in ("db-1", "web-1"):
            run("admin", *stores_of(name))
        yield run


def stores_of(name):
    return [["store", "FLIGHTREC_PRESENCE", f"flightrec.presence.{name}", "x"], ["store", "FLIGHTREC_ANSWERS", f"flightrec.answer.{ID}.{name}", "x"],
            ["store", "FLIGHTREC_INDEX", f"flightrec.index.{ID}.{name}", "x"]]


def lasts_of(name):
    return [["last", *c[1:3]] for c in stores_of(name)]


COMMAND = [["store", "FLIGHTREC_COMMANDS", f"flightrec.command.{ID}", "x"]]
INCIDENT = [["store", "FLIGHTREC_INCIDENTS", "flightrec.incident.f00", "x"]]
READ_COMMANDS = [["last", "FLIGHTREC_COMMANDS", f"flightrec.command.{ID}"], ["count", "FLIGHTREC_COMMANDS", "flightrec.command.*"],
                 ["count", "FLIGHTREC_COMMANDS", "flightrec.command.*", 0, 100], ["subscribe", "flightrec.command.*"]]
READ_ALL = READ_COMMANDS + lasts_of("db-1") + lasts_of("web-1") + [["count", f"FLIGHTREC_{s}", f"flightrec.{k}.>"] for s, k in STREAMS.items()] + [
    ["info", "FLIGHTREC_INDEX"], ["subscribe", "flightrec.answer.*.*"]]
LISTS = [["count", f"FLIGHTREC_{s}", f"flightrec.{k}.>"] for s, k in STREAMS.items()]
MANAGE = [["ensure", "FLIGHTREC_INDEX", "flightrec.index.>", 10**15], ["purge", "FLIGHTREC_ANSWERS", f"flightrec.answer.{ID}.gone"],
          ["ensure", "OTHER", "other.>"]]
EAVESDROP = [["subscribe", ">"], ["subscribe", "$JS.>"]]
OTHERS = [["subscribe", "_INBOX.>"], ["subscribe", "_INBOX.web-2.>"], ["subscribe", "flightrec.answer.*.*"], ["subscribe", "flightrec.presence.*"]]

ROLES = {
    "db-1": (stores_of("db-1") + lasts_of("db-1") + READ_COMMANDS,
             stores_of("web-1") + lasts_of("web-1") + COMMAND + INCIDENT + LISTS[1:] + MANAGE + EAVESDROP + OTHERS),
    "web-1": (stores_of("web-1") + lasts_of("web-1") + READ_COMMANDS + COMMAND + INCIDENT + [["last", "FLIGHTREC_INCIDENTS", "flightrec.incident.f00"]],
              stores_of("db-1") + lasts_of("db-1") + LISTS[1:] + MANAGE + EAVESDROP + OTHERS),
    "operator": (READ_ALL + COMMAND, stores_of("db-1") + INCIDENT + MANAGE + EAVESDROP),
    "reader": (READ_ALL, COMMAND + stores_of("db-1") + INCIDENT + MANAGE + EAVESDROP),
    "admin": (READ_ALL + MANAGE[:2], EAVESDROP),
}


@pytest.mark.parametrize("who", ROLES)
def test_role(roles, who):
    """Each role can do what it must, and not more."""
    may, must_not = ROLES[who]
    r = roles(who, *may)
    assert r.code == 0 and not r.error, r.error
    if who != "admin":
        r = roles(who, *must_not)
        assert len(r.lines) == len(must_not)
        for command, line in zip(must_not, r.lines):
            assert line.startswith("error EACCES"), (command, line)


def test_nobody_without_a_user(roles):
    assert "error EACCES" in roles("stranger", ["ping"]).error
