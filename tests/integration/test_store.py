# SPDX-License-Identifier: GPL-2.0-or-later
"""src/store, by the command line frtest-store: with s3rver; with a small store that has what s3rver 3.7.1 lacks (the list of
parts, the end of an upload, rules of a bucket) and that checks each signature by botocore; and with stores that do harm."""
import gzip
import hashlib
import os
import time
import xml.etree.ElementTree as ElementTree

import pytest

import stores
from harness import environment, program
from stores import BUCKET, Reference, S3rver, Server, client, good

pytestmark = pytest.mark.waits
SHA = hashlib.sha256(b"hello").hexdigest()
MIB = 1 << 20


@pytest.fixture
def s3rver(tmp_path):
    if not S3rver.PROGRAM.exists():
        pytest.skip("s3rver is missing: ./dev install installs it")
    with S3rver(tmp_path / "s3") as server:
        yield server


@pytest.fixture
def reference():
    pytest.importorskip("botocore")
    store = Reference()
    with Server(store) as server:
        server.store = store
        yield server


@pytest.fixture(params=["s3rver", "reference"])
def store(request):
    return request.getfixturevalue(request.param)


def make_file(path, size):
    data = os.urandom(size)
    path.write_bytes(data)
    return data


# --- what a store is for ---

def test_objects_come_back(tmp_path, store):
    key = "pre/2026-1/m=2Ex/a b+c&d.json"
    out = good(tmp_path, store.url, "put", key, "hello", SHA, ",", "head", key, ",", "small", key, 5, ",", "remove", key, ",", "remove", key)
    assert out.splitlines() == [f"5 {hashlib.md5(b'hello').hexdigest()} {SHA}", "5 hello"]
    assert client(tmp_path, store.url, "head", key).err.startswith("ENOENT: ")


def test_what_is_missing(tmp_path, store):
    r = client(tmp_path, store.url, "small", "no", 10)
    assert r.err.startswith("ENOENT: ") and "NoSuchKey" in r.err and f"GET {BUCKET}/no" in r.err
    r = client(tmp_path, store.url, "small", "no", 10, bucket="other")
    assert r.err.startswith("ENOENT: ") and "NoSuchBucket" in r.err


@pytest.mark.parametrize("key", ["", "/a", "a//b", "a/", "a/../b", "./a", "x" * 1025])
def test_a_key_that_is_not_possible(tmp_path, key):
    assert client(tmp_path, "http://127.0.0.1:1", "head", key).err.startswith("EINVAL: ")


def test_a_list_has_all_pages(tmp_path, reference):
    keys = [f"p/{i}&<'\">é" for i in range(8)]
    for i, key in enumerate(keys + ["q/1"]):
        reference.store.objects[key] = b"x" * i, None
    assert good(tmp_path, reference.url, "list", "p/", 100).splitlines() == [f"{i} {key}" for i, key in enumerate(keys)]
    assert sum(r.method == "GET" for r in reference.requests) == 3
    assert len(good(tmp_path, reference.url, "list", "p/", 2).splitlines()) == 2  # the caller wants no more


def test_a_list_of_s3rver(tmp_path, s3rver):
    good(tmp_path, s3rver.url, *(w for i in range(5) for w in ("put", f"a b/{i}", "x" * i, "", ",")))
    assert good(tmp_path, s3rver.url, "list", "a b/", 100).splitlines() == [f"{i} a b/{i}" for i in range(5)]


def test_an_upload_in_parts_and_its_resumption(tmp_path, store):
    """The second part is sent by another process, as after a restart."""
    data = make_file(tmp_path / "f", 11 * MIB)
    upload = good(tmp_path, store.url, "begin", "big", SHA).strip()
    parts = [good(tmp_path, store.url, "part", "big", upload, n, tmp_path / "f", at, size).strip()
             for n, at, size in ((1, 0, 6 * MIB), (2, 6 * MIB, 5 * MIB))]
    assert parts[0] == f"1:{hashlib.md5(data[:6 * MIB]).hexdigest()}"
    out = good(tmp_path, store.url, "finish", "big", upload, " ".join(parts), ",", "head", "big", ",", "moved")
    assert out.split()[0] == str(11 * MIB) and SHA in out
    r = client(tmp_path, store.url, "get", "big", tmp_path / "to", 0, 11 * MIB, ",", "moved")
    assert (tmp_path / "to").read_bytes() == data and int(r.out) == 11 * MIB and r.peak_mib < 48


def test_memory_does_not_grow_with_a_part(tmp_path, reference):
    make_file(tmp_path / "f", 64 * MIB)
    upload = good(tmp_path, reference.url, "begin", "big", "").strip()
    r = client(tmp_path, reference.url, "part", "big", upload, 1, tmp_path / "f", 0, 64 * MIB, ",", "moved")
    assert r.code == 0 and r.peak_mib < 48 and int(r.out.split()[-1]) == 64 * MIB


def test_a_get_goes_on_where_it_ended(tmp_path, store):
    data = b"0123456789" * 1000
    good(tmp_path, store.url, "put", "k", data.decode(), "")
    (tmp_path / "to").write_bytes(data[:4000])
    good(tmp_path, store.url, "get", "k", tmp_path / "to", 4000, MIB, ",", "get", "k", tmp_path / "to", len(data), MIB)
    assert (tmp_path / "to").read_bytes() == data
    r = client(tmp_path, store.url, "get", "k", tmp_path / "to", len(data) + 1, MIB)
    assert r.err.startswith("EBADMSG: ") and "has only 10000 bytes" in r.err
    r = client(tmp_path, store.url, "get", "k", tmp_path / "to2", 0, 9999)
    assert r.err.startswith("EBADMSG: ") and "more than 9999 bytes" in r.err


def test_the_parts_of_an_upload_and_its_end(tmp_path, reference):
    make_file(tmp_path / "f", 8000)
    upload = good(tmp_path, reference.url, "begin", "k", "").strip()
    parts = [good(tmp_path, reference.url, "part", "k", upload, n, tmp_path / "f", 1000 * n, 1000).strip() for n in (1, 2, 4, 5, 6, 7)]
    listed = good(tmp_path, reference.url, "parts", "k", upload, 10).splitlines()
    assert [f"{n}:{e}" for n, size, e in map(str.split, listed)] == parts and all(" 1000 " in line for line in listed)
    assert client(tmp_path, reference.url, "parts", "k", upload, 5).err.startswith("EBADMSG: ")
    assert client(tmp_path, reference.url, "finish", "k", upload, "1:abc").err.startswith("EBADMSG: ")
    good(tmp_path, reference.url, "abort", "k", upload)
    r = client(tmp_path, reference.url, "parts", "k", upload, 10)
    assert r.err.startswith("ENOENT: ") and "NoSuchUpload" in r.err


def test_what_s3rver_does_not_have(tmp_path, s3rver):
    upload = good(tmp_path, s3rver.url, "begin", "k", "").strip()
    for words in (("parts", "k", upload, 10), ("abort", "k", upload), ("expire", "p/", 3)):
        assert client(tmp_path, s3rver.url, *words).err.startswith("EOPNOTSUPP: "), words


def rules(text):
    space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
    root = ElementTree.fromstring(text)
    assert root.tag == space + "LifecycleConfiguration"
    return {r.find(space + "ID").text: r for r in root}, space


def test_a_rule_is_added_and_replaced(tmp_path, reference):
    for days in (30, 90):
        good(tmp_path, reference.url, "expire", "p&q/", days)
        found, space = rules(reference.store.rules)
        assert list(found) == ["flightrec"]
        rule = found["flightrec"]
        assert rule.find(f"{space}Expiration/{space}Days").text == str(days)
        assert rule.find(f"{space}Filter/{space}Prefix").text == "p&q/"
        assert rule.find(f"{space}AbortIncompleteMultipartUpload/{space}DaysAfterInitiation").text == "7"


@pytest.mark.parametrize("prefix, path", [("<Filter><Prefix>x</Prefix></Filter>", "Filter/{0}Prefix"), ("<Prefix>x</Prefix>", "Prefix")])
def test_other_rules_stay(tmp_path, reference, prefix, path):
    """All rules have the old or the new form of a prefix."""
    others = [f"<Rule><ID>{i}</ID>{prefix}<Status>Enabled</Status>\n<Transition  a='é'><Days>3</Days></Transition></Rule>" for i in "ab"]
    own = f"<Rule><ID>flightrec</ID>{prefix}<Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>"
    for order in ([own, *others], [others[0], own, others[1]], [*others, own], others):
        reference.store.rules = ("<?xml version='1.0' encoding='UTF-8'?>\n<LifecycleConfiguration xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>"
                                 f"{''.join(order)}\n</LifecycleConfiguration>\n")
        good(tmp_path, reference.url, "expire", "p/", 5)
        assert all(other in reference.store.rules for other in others)
        found, space = rules(reference.store.rules)
        assert sorted(found) == ["a", "b", "flightrec"]
        assert found["flightrec"].find(space + path.format(space)).text == "p/"


# --- signatures ---

def test_signatures_with_a_token_and_a_region(tmp_path):
    """The key, the prefix and the id have all kinds of characters. A signature that botocore does not compute, too, fails the
    test at the end of the server."""
    pytest.importorskip("botocore")
    token, key = "IQo/+=x" * 200, "a=3D/ü~!*'();:@&=+$,?#[]%20 \\^`{|}.json"
    with Server(Reference(), region="eu-central-1", token=token, secret="a/+:b=") as server:
        out = good(tmp_path, server.url, "put", key, "hello", SHA, ",", "small", key, 10, ",", "head", key, ",", "list", key[:20], 5, ",",
                   "get", key, tmp_path / "to", 2, 100, options=("-r", "eu-central-1"), token=token, secret="a/+:b=")
        assert "5 hello" in out and f"5 {key}" in out and (tmp_path / "to").read_bytes() == b"llo"
        assert len(server.requests) == 5


def test_a_body_is_sent_after_the_store_wants_it(tmp_path):
    """A large body waits for 100 Continue. So a refused request costs nothing, and the signature is right with this header."""
    pytest.importorskip("botocore")
    make_file(tmp_path / "f", 4 * MIB)
    with Server(lambda http, r: http.reply(200, ETag='"x"')) as server:
        good(tmp_path, server.url, "part", "k", "u", 1, tmp_path / "f", 0, 4 * MIB)
        assert server.requests[0].headers["expect"] == "100-continue"

    def refuse(http, target):
        http.error(403, "AccessDenied")
        return False

    with Server(None, before_body=refuse) as server:
        r = client(tmp_path, server.url, "part", "k", "u", 1, tmp_path / "f", 0, 4 * MIB)
        assert r.err.startswith("EACCES: ") and "AccessDenied" in r.err


def test_a_connection_that_the_store_has_closed_is_opened_again(tmp_path):
    pytest.importorskip("botocore")
    store = Reference()

    def answer(http, r):
        store(http, r)
        return False

    make_file(tmp_path / "f", 100000)
    with Server(answer) as server:
        good(tmp_path, server.url, "put", "k", "hello", "", ",", "begin", "k", "", ",", "small", "k", 10, ",",
             "part", "k", "0+/=_id~.", 1, tmp_path / "f", 0, 100000)
        assert len(server.requests) == 4


# --- TLS ---

@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    pytest.importorskip("cryptography")
    path = tmp_path_factory.mktemp("tls")
    stores.make_certificates(path)
    return path


def test_tls_with_a_private_ca(tmp_path, certificates):
    pytest.importorskip("botocore")
    with Server(Reference(), tls=stores.tls(certificates, "server")) as server:
        assert "hello" in good(tmp_path, server.url, "put", "k", "hello", "", ",", "small", "k", 9, options=("-c", certificates / "ca.pem"))
        r = client(tmp_path, server.url, "head", "k")
        assert r.err.startswith("EKEYREJECTED: ") and "CA" in r.err


def test_tls_of_s3rver(tmp_path, certificates):
    if not S3rver.PROGRAM.exists():
        pytest.skip("s3rver is missing: ./dev install installs it")
    with S3rver(tmp_path / "s3", "--key", certificates / "server.key", "--cert", certificates / "server.pem") as server:
        assert "hello" in good(tmp_path, server.url, "put", "k", "hello", "", ",", "small", "k", 9, options=("-c", certificates / "ca.pem"))


@pytest.mark.parametrize("stem", ["other", "expired"])
def test_tls_with_a_wrong_certificate(tmp_path, certificates, stem):
    with Server(Reference(), tls=stores.tls(certificates, stem)) as server:
        r = client(tmp_path, server.url, "head", "k", options=("-c", certificates / "ca.pem"))
        assert r.err.startswith("EKEYREJECTED: ") and not server.requests


def test_a_store_that_does_not_speak_tls(tmp_path, certificates):
    with Server(Reference()) as server:
        r = client(tmp_path, server.url.replace("http", "https"), "head", "k", options=("-c", certificates / "ca.pem"))
        assert r.err.startswith("EKEYREJECTED: ")
    r = client(tmp_path, "https://127.0.0.1:1", "head", "k", options=("-c", tmp_path / "no.pem"))
    assert r.err.startswith("ENOENT: cannot read ")


# --- limits, cancellation, files that change ---

def test_addresses(tmp_path):
    assert client(tmp_path, "http://127.0.0.1:1", "head", "k").err.startswith("ECONNREFUSED: ")
    assert client(tmp_path, "http://no.invalid", "head", "k").err.startswith("EHOSTUNREACH: ")
    for url in ("ftp://x", "file:///etc/passwd", "http://u:p@x", "http://x/y", "http://x?y", "x", ""):
        r = client(tmp_path, url, "head", "k")
        assert r.err.startswith("EINVAL: ") and "u:p" not in r.err, url


@pytest.mark.parametrize("limit", (200000, 10 * MIB))
def test_a_limit_of_bytes_a_second(tmp_path, reference, limit):
    """3 s of bytes at the limit take at least 2 s, because the first buffer goes out at once. A higher limit has larger buffers."""
    size = 3 * limit
    make_file(tmp_path / "f", size)
    upload = good(tmp_path, reference.url, "begin", "k", "").strip()
    r = client(tmp_path, reference.url, "part", "k", upload, 1, tmp_path / "f", 0, size, options=("-l", limit))
    assert r.code == 0 and r.seconds > 2


def test_a_canceled_transfer(tmp_path):
    """The store is silent in the answer, and then before it. Without the cancellation, each would take 30 s."""
    def begin(http, r):
        http.send(b"HTTP/1.1 200 x\r\nContent-Length: 1000\r\n\r\nabc")
        http.server.ending.wait(100)

    for answer in (begin, lambda http, r: http.server.ending.wait(100)):
        with Server(answer, checks=False) as server:
            r = client(tmp_path, server.url, "get", "k", tmp_path / "to", 0, MIB, options=("-x", 300))
            assert r.err.startswith("ECANCELED: ") and r.seconds < 25


def test_a_file_that_becomes_shorter(tmp_path):
    """First before the part is read, and then after its hash was computed: the store does not send 100 Continue before the
    file is short."""
    pytest.importorskip("botocore")
    make_file(tmp_path / "f", 3 * MIB)
    with Server(None) as server:
        r = client(tmp_path, server.url, "part", "k", "u", 1, tmp_path / "f", MIB, 3 * MIB)
        assert r.err.startswith("EBADMSG: ") and "shorter" in r.err and not server.requests

    def shorten(http, target):
        os.truncate(tmp_path / "f", MIB)

    with Server(None, before_body=shorten) as server:
        r = client(tmp_path, server.url, "part", "k", "u", 1, tmp_path / "f", 0, 3 * MIB)
        assert r.err.startswith("EBADMSG: ") and "shorter" in r.err and not server.requests


def test_a_file_that_changes(tmp_path):
    def change(http, target):
        make_file(tmp_path / "f", 3 * MIB)

    make_file(tmp_path / "f", 3 * MIB)
    with Server(None, before_body=change) as server:
        r = client(tmp_path, server.url, "part", "k", "u", 1, tmp_path / "f", 0, 3 * MIB)
        assert r.err.startswith("EBADMSG: ") and "changed" in r.err and not server.requests


# --- stores that do harm ---

def silent(http, r):
    http.server.ending.wait(100)
    return False


def drip(data, every_s=0.3, at_once=1):
    """Sends AT_ONCE bytes, and then one byte after the other."""
    def answer(http, r):
        http.send(data[:at_once])
        for byte in data[at_once:]:
            if http.server.ending.wait(every_s):
                break
            http.send(bytes([byte]))
        return False
    return answer


def endless(head, more):
    def answer(http, r):
        http.send(head)
        while not http.server.ending.is_set():
            http.send(more)
        return False
    return answer


def raw(*pieces):
    def answer(http, r):
        for piece in pieces:
            http.send(piece)
        return False
    return answer


def fixed(status, body=b"", **headers):
    return lambda http, r: http.reply(status, body, **headers)


def refused(status, code, message="no", **headers):
    return lambda http, r: http.error(status, code, message, **headers)


OK = b"HTTP/1.1 200 OK\r\n"
LIST = ("list", "p/", 10**9)
SMALL = ("small", "k", 1000)
GET = ("get", "k", "{to}", 0, 100000)
PART = ("part", "k", "u", 1, "{file}", 0, 100000)
PARTS = ("parts", "k", "u", 10000)
BEGIN = ("begin", "k", "")
FINISH = ("finish", "k", "u", "1:abc")


def listing(body, token="", truncated="true"):
    return (f"<ListBucketResult>{body}<IsTruncated>{truncated}</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
            "</ListBucketResult>")


def parts(*entries, more=""):
    return "<ListPartsResult>" + "".join(
        f"<Part><PartNumber>{n}</PartNumber><Size>{size}</Size><ETag>{etag}</ETag></Part>" for n, size, etag in entries) + more + "</ListPartsResult>"


def circle(http, r):
    """A list whose tokens come again after 5 pages."""
    at = int(r.query.get("continuation-token", "0"))
    http.reply(200, listing("<Contents><Key>p/1</Key><Size>1</Size></Contents>", (at + 1) % 5 + 1))


def empty_pages(http, r):
    http.reply(200, listing("", int(r.query.get("continuation-token", "0")) + 1))


def more_parts(http, r):
    http.reply(200, parts(more="<IsTruncated>true</IsTruncated><NextPartNumberMarker>7</NextPartNumberMarker>"))


BOMB = ("<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a0 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10)) + "]><Error><Code>&a9;</Code></Error>")
EXTERNAL = "<!DOCTYPE x [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><ListBucketResult><Contents><Key>&f;</Key></Contents></ListBucketResult>"
DEEP = "<a>" * 100000
GZIP = gzip.compress(b"\0" * (64 * MIB), 9)
LATE = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() - 7200))

# name: what the client asks, what the store does, the error, and a part of its text
HOSTILE = {
    "silence": (SMALL, silent, "ETIMEDOUT", "nothing moved for 2 s"),
    "silence-after-headers": (GET, lambda http, r: (http.send(OK + b"Content-Length: 9\r\n\r\nab"), silent(http, r))[1], "ETIMEDOUT", "nothing moved"),
    "drip-of-headers": (SMALL, drip(OK + b"X: " + b"y" * 1000), "ETIMEDOUT", "nothing moved"),
    "drip-of-body": (SMALL, drip(OK + b"Content-Length: 900\r\n\r\n" + b"x" * 900, 0.05, 45), "ETIMEDOUT", ""),
    "drip-of-object": (GET, drip(OK + b"Content-Length: 90000\r\n\r\n" + b"x" * 90000, 0.05, 45), "ETIMEDOUT", ""),
    "endless-headers": (SMALL, endless(OK, b"X-Y: " + b"z" * 1000 + b"\r\n"), "EBADMSG", "headers"),
    "endless-header": (SMALL, endless(OK + b"X: ", b"z" * 1000), "EBADMSG", "header"),
    "endless-continue": (SMALL, endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "EBADMSG", "headers"),
    "endless-body": (SMALL, endless(OK + b"\r\n", b"x" * 65536), "EBADMSG", "more than 1000 bytes"),
    "endless-chunks": (GET, endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"ffff\r\n" + b"x" * 65535 + b"\r\n"), "EBADMSG", "more than 100000"),
    "endless-error": (SMALL, endless(b"HTTP/1.1 500 x\r\n\r\n", b"x" * 65536), "EBADMSG", "more than 65536 bytes"),
    "endless-list": (LIST, endless(OK + b"\r\n<ListBucketResult>", b"<Contents><Key>p/x</Key><Size>1</Size></Contents>" * 1000), "EBADMSG", "more than"),
    "short-body": (GET, raw(OK + b"Content-Length: 100\r\n\r\nabc"), "EAGAIN", ""),
    "broken-chunks": (GET, raw(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc"), "EAGAIN", "chunked"),
    "close-at-once": (SMALL, raw(), "EAGAIN", ""),
    "close-in-headers": (SMALL, raw(OK + b"Content-Le"), "EAGAIN", "closed in the headers"),
    "no-end": (SMALL, raw(OK + b"\r\nabc"), "EBADMSG", "where it ends"),
    "no-http": (SMALL, raw(b"\x15\x03\x03\0\x02\x02\x28" * 10), "EBADMSG", ""),
    "wrong-status": (SMALL, fixed(600), "EAGAIN", ""),
    "wrong-etag": (PART, fixed(200, ETag='"00000000000000000000000000000000"'), "EBADMSG", "ETag is not the MD5"),
    "no-etag": (PART, fixed(200), "EBADMSG", "does not have the ETag"),
    "long-etag": (PART, fixed(200, ETag="x" * 5000), "EBADMSG", "does not have the ETag"),
    "error-with-200": (FINISH, fixed(200, "<Error><Code>InternalError</Code><Message>We lost it</Message></Error>"), "EAGAIN", "We lost it"),
    "nothing-with-200": (FINISH, fixed(200), "EBADMSG", "broken"),
    "page-with-200": (FINISH, fixed(200, "<html>Welcome to the hotel</html>"), "EBADMSG", "another document"),
    "redirect": (SMALL, fixed(307, Location="http://127.0.0.1:9/k"), "EBADMSG", "redirect is not followed"),
    "other-region": (SMALL, refused(301, "PermanentRedirect", x_amz_bucket_region="eu-west-9"), "EBADMSG", "in the region eu-west-9"),
    "file-redirect": (SMALL, fixed(302, Location="file:///etc/passwd"), "EBADMSG", "redirect is not followed"),
    "other-range": (("get", "k", "{to}", 10, 100), fixed(206, b"x", Content_Range="bytes 5-5/6"), "EBADMSG", "another part"),
    "ignored-range": (("get", "k", "{to}", 10, 100), fixed(200, b"x" * 20), "EBADMSG", "another part"),
    "part-of-range": (("get", "k", "{to}", 10, 100), fixed(206, b"x", Content_Range="bytes 10-10/60"), "EBADMSG", "the end of the object"),
    "broken-xml": (LIST, fixed(200, "<ListBucketResult><Contents></ListBucketResult>"), "EBADMSG", "broken"),
    "binary-xml": (LIST, fixed(200, bytes(range(255, 0, -1))), "EBADMSG", "broken"),
    "utf-16-xml": (LIST, fixed(200, "<ListBucketResult/>".encode("utf-16")), "EBADMSG", "not UTF-8"),
    "bomb-of-entities": (LIST, fixed(200, BOMB), "EBADMSG", "document type"),
    "bomb-in-an-error": (SMALL, fixed(503, BOMB), "EAGAIN", "503"),
    "external-entity": (LIST, fixed(200, EXTERNAL), "EBADMSG", "document type"),
    "deep-xml": (LIST, fixed(200, DEEP), "EBADMSG", "too deep"),
    "long-name": (LIST, fixed(200, f"<{'a' * 100000}/>"), "EBADMSG", "too long"),
    "long-key": (LIST, fixed(200, listing(f"<Contents><Key>p/{'a' * 2000}</Key><Size>1</Size></Contents>")), "EBADMSG", "not possible"),
    "other-keys": (LIST, fixed(200, listing("<Contents><Key>../p/</Key><Size>1</Size></Contents>")), "EBADMSG", "not possible"),
    "no-size": (LIST, fixed(200, listing("<Contents><Key>p/</Key><Size>-1</Size></Contents>")), "EBADMSG", "not possible"),
    "same-token": (LIST, fixed(200, listing("", "same")), "EBADMSG", "does not go on"),
    "no-token": (LIST, fixed(200, listing("")), "EBADMSG", "does not go on"),
    "circle-of-tokens": (LIST, circle, "EBADMSG", "does not end"),
    "empty-pages": (LIST, empty_pages, "EBADMSG", "does not end"),
    "silly-part-number": (PARTS, fixed(200, parts(("99999999999999999999", 1, "x"))), "EBADMSG", "not possible"),
    "part-zero": (PARTS, fixed(200, parts((0, 1, "x"))), "EBADMSG", "not possible"),
    "parts-out-of-order": (PARTS, fixed(200, parts((2, 1, "x"), (1, 1, "x"))), "EBADMSG", "not possible"),
    "silly-part-size": (PARTS, fixed(200, parts((1, "1e9", "x"))), "EBADMSG", "not possible"),
    "silly-part-etag": (PARTS, fixed(200, parts((1, 1, "x y"))), "EBADMSG", "not possible"),
    "parts-without-end": (PARTS, more_parts, "EBADMSG", "does not go on"),
    "silly-upload": (BEGIN, fixed(200, f"<InitiateMultipartUploadResult><UploadId>{'x' * 600}</UploadId></InitiateMultipartUploadResult>"), "EBADMSG", ""),
    "no-upload": (BEGIN, fixed(200, "<InitiateMultipartUploadResult/>"), "EBADMSG", "id of the upload"),
    "full": (PART, fixed(507), "ENOSPC", "507"),
    "quota": (PART, refused(403, "QuotaExceeded"), "ENOSPC", "QuotaExceeded"),
    "quota-of-minio": (PART, refused(400, "XMinioAdminBucketQuotaExceeded"), "ENOSPC", "Make room"),
    "slow-down": (PART, refused(503, "SlowDown"), "EAGAIN", "later"),
    "too-many": (PART, fixed(429), "EAGAIN", "later"),
    "bad-gateway": (PART, fixed(502, "<html>"), "EAGAIN", "later"),
    "forbidden": (("head", "k"), fixed(403), "EACCES", "Check the access key"),
    "wrong-signature": (PART, refused(403, "SignatureDoesNotMatch"), "EACCES", "SignatureDoesNotMatch"),
    "unknown-key": (PART, refused(403, "InvalidAccessKeyId"), "EACCES", "InvalidAccessKeyId"),
    "wrong-clock": (PART, refused(403, "RequestTimeTooSkewed", Date=LATE), "EACCES", "s ahead of that of the store: Correct the clock"),
    "wrong-clock-without-text": (("head", "k"), fixed(403, Date=LATE), "EACCES", "Correct the clock"),
    "ugly-text": (SMALL, refused(403, "AccessDenied", "a&#x9;\u0085" + "b" * 1000), "EACCES", "AccessDenied: a "),
    "gzip-bomb": (SMALL, fixed(200, GZIP, Content_Encoding="gzip"), "EBADMSG", "more than 1000 bytes"),
    "gzip-bomb-in-transfer": (SMALL, raw(OK + b"Transfer-Encoding: gzip\r\n\r\n" + GZIP), "EBADMSG", ""),
    "no-length": (("head", "k"), raw(OK + b"\r\n"), "EBADMSG", "size of the object"),
    "negative-length": (("head", "k"), raw(OK + b"Content-Length: -5\r\n\r\n"), "EBADMSG", ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_store(tmp_path, kind):
    """The client says what is wrong, in bounded time and memory."""
    words, answer, error, text = HOSTILE[kind]
    make_file(tmp_path / "file", 100000)
    words = [str(w).format(to=tmp_path / "to", file=tmp_path / "file") for w in words]
    with Server(answer, checks=False) as server:
        r = client(tmp_path, server.url, *words, options=("-s", 2 if error == "ETIMEDOUT" else 20))  # 20: a busy machine is no fault
    assert r.code == 1 and r.err.startswith(f"{error}: ") and text in r.err, r
    assert "127.0.0.1" in r.err or "list of the objects" in r.err
    assert r.err.count("\n") == 1 and r.err[:-1].isprintable() and len(r.err) < 1100
    assert r.peak_mib < 64 and r.seconds < 60


def test_a_large_answer_may_come_slowly(tmp_path):
    """A store that works for longer than the limit without progress, but says so by spaces, as S3 does."""
    def answer(http, r):
        http.send(OK + b"\r\n<?xml version='1.0'?>")
        for _ in range(8):
            http.server.ending.wait(0.7)
            http.send(b" ")
        http.send(b"<CompleteMultipartUploadResult/>")
        return False

    with Server(answer, checks=False) as server:
        good(tmp_path, server.url, *FINISH, options=("-s", 4))


def test_a_wrong_clock_of_this_machine(tmp_path, s3rver):
    """An hour in both directions, judged by s3rver."""
    for shift, text in ((3600, "ahead of"), (-3600, "behind")):
        env = environment(LD_PRELOAD=program("frtest-wallclock.so"), FRTEST_WALL_SHIFT=str(shift))
        r = client(tmp_path, s3rver.url, "put", "k", "x", "", env=env)
        assert r.err.startswith("EACCES: ") and "RequestTimeTooSkewed" in r.err and text in r.err and "timedatectl" in r.err
