# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores for the tests of src/store: a server that checks the signature of each request by botocore, and lets a function
answer it with any bytes; and a store of this kind that has what s3rver lacks."""
import contextlib
import datetime
import hashlib
import html
import ipaddress
import re
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections import namedtuple
from urllib.parse import parse_qsl, quote, unquote

import harness

ACCESS, SECRET = "S3RVER", "S3RVER"  # those that s3rver knows
BUCKET = "dumps"
Request = namedtuple("Request", "method path query headers body")


def read_headers(f):
    """Returns a list of pairs (name, value), or None at the end of the connection."""
    headers = []
    while line := f.readline(65536):
        if not line.strip():
            return headers
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.strip().lower(), value.strip()))
    return None


def check_signature(method, target, headers, body, region="us-east-1", secret=SECRET, token=None):
    """Computes the signature by botocore from the decoded request, and compares it."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    names = [name for name, _ in headers]
    assert len(names) == len(set(names)), f"a header is sent twice: {names}"
    headers = dict(headers)
    scheme, _, rest = headers["authorization"].partition(" ")
    fields = dict(f.strip().split("=", 1) for f in rest.split(","))
    signed = fields["SignedHeaders"].split(";")
    stamp = headers["x-amz-date"]
    assert scheme == "AWS4-HMAC-SHA256" and fields["Credential"] == f"{ACCESS}/{stamp[:8]}/{region}/s3/aws4_request"
    assert {"host", *(n for n in headers if n.startswith("x-amz-"))} <= set(signed) <= set(headers), signed
    assert headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()
    assert headers.get("x-amz-security-token") == token
    path, _, query = target.partition("?")
    aws = AWSRequest(method=method, url=f"http://{headers['host']}{quote(unquote(path), safe='/~')}", data=body,
                     headers={n: headers[n] for n in signed}, params=dict(parse_qsl(query, keep_blank_values=True)))
    aws.context["timestamp"] = stamp
    auth = S3SigV4Auth(Credentials(ACCESS, secret, token), "s3", region)
    canonical = auth.canonical_request(aws)
    assert auth.signature(auth.string_to_sign(aws, canonical), aws) == fields["Signature"], f"{target}\n{canonical}"


class Handler(socketserver.StreamRequestHandler):
    timeout = 120

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def reply(self, status, body=b"", **headers):
        """Sends a whole answer. The underscores of names become "-"."""
        body = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}"]
        if headers.get("Content_Length"):
            del lines[1]
        lines += [f"{n.replace('_', '-')}: {v}" for n, v in headers.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if self.method == "HEAD" else body))

    def error(self, status, code, message="no", **headers):
        self.reply(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>", **headers)

    def handle(self):
        with contextlib.suppress(OSError, ValueError):
            while self.serve_one():
                pass

    def serve_one(self):
        line = self.rfile.readline(65536).split()
        if len(line) != 3:
            return False
        self.method, target = line[0].decode(), line[1].decode()
        headers = read_headers(self.rfile)
        if headers is None:
            return False
        lookup = dict(headers)
        if self.server.before_body and self.server.before_body(self, target) is False:
            return False
        if lookup.get("expect") == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.rfile.read(int(lookup.get("content-length", 0)))
        if len(body) < int(lookup.get("content-length", 0)):
            return False  # the client has given up
        if self.server.checks:
            try:
                check_signature(self.method, target, headers, body, **self.server.signature)
            except Exception as e:  # the client gets an error, and the test gets the reason
                self.server.failures.append(repr(e))
                self.error(403, "SignatureDoesNotMatch", html.escape(repr(e))[:100])
                return True
        path, _, query = target.partition("?")
        request = Request(self.method, unquote(path), dict(parse_qsl(query, keep_blank_values=True)), lookup, body)
        self.server.requests.append(request)
        return self.server.answer(self, request) is not False


class Server(socketserver.ThreadingTCPServer):
    """Calls answer(handler, request) for each request. If it returns False, the connection is closed."""
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, answer, tls=None, before_body=None, checks=True, **signature):
        self.answer, self.tls, self.before_body, self.checks, self.signature = answer, tls, before_body, checks, signature
        self.requests, self.failures = [], []
        self.ending = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def finish_request(self, request, client_address):
        if self.tls:
            request.settimeout(60)
            with contextlib.suppress(OSError):
                request = self.tls.wrap_socket(request, server_side=True)
                super().finish_request(request, client_address)
                request.close()
            return
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.ending.set()
        self.shutdown()
        self.server_close()
        if kind is None:
            assert not self.failures, self.failures


class Reference:
    """An answer of Server: a small store with pages of PAGE entries."""
    PAGE = 3

    def __init__(self):
        self.objects, self.uploads, self.rules = {}, {}, None

    def __call__(self, http, r):
        bucket, _, key = r.path[1:].partition("/")
        if bucket != BUCKET:
            http.error(404, "NoSuchBucket")
        elif key and ("uploadId" in r.query or "uploads" in r.query):
            self.upload(http, r, key)
        elif key:
            self.object(http, r, key)
        elif "lifecycle" in r.query:
            self.lifecycle(http, r)
        else:
            self.list(http, r)

    def object(self, http, r, key):
        if r.method == "PUT":
            self.objects[key] = r.body, r.headers.get("x-amz-meta-sha256")
            http.reply(200, ETag=f'"{hashlib.md5(r.body).hexdigest()}"')
        elif r.method == "DELETE":
            self.objects.pop(key, None)
            http.reply(204)
        elif key not in self.objects:
            http.error(404, "NoSuchKey")
        else:
            data, sha256 = self.objects[key]
            headers = {"ETag": f'"{hashlib.md5(data).hexdigest()}"', **({"x_amz_meta_sha256": sha256} if sha256 else {})}
            first = int(r.headers.get("range", "bytes=0-")[6:-1])
            if first >= len(data) > 0:
                http.error(416, "InvalidRange", Content_Range=f"bytes */{len(data)}")
            elif first:
                http.reply(206, data[first:], Content_Range=f"bytes {first}-{len(data) - 1}/{len(data)}", **headers)
            else:
                http.reply(200, data, **headers)

    def list(self, http, r):
        assert r.query["list-type"] == "2"
        keys = sorted(k for k in self.objects if k.startswith(r.query["prefix"]) and k > r.query.get("continuation-token", "")[7:])
        page, more = keys[:self.PAGE], len(keys) > self.PAGE
        http.reply(200, "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>" + "".join(
            f"<Contents><Key>{html.escape(k)}</Key><Size>{len(self.objects[k][0])}</Size><Owner><ID>x</ID></Owner></Contents>" for k in page) +
            f"<IsTruncated>{str(more).lower()}</IsTruncated>" +
            (f"<NextContinuationToken>to+k/&amp;={html.escape(page[-1])}</NextContinuationToken>" if more else "") + "</ListBucketResult>")

    def upload(self, http, r, key):
        if "uploads" in r.query:
            upload = f"{len(self.uploads)}+/= id~."
            upload = upload.replace(" ", "_")
            self.uploads[upload] = key, r.headers.get("x-amz-meta-sha256"), {}
            http.reply(200, f"<InitiateMultipartUploadResult><Bucket>x</Bucket><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")
            return
        known = self.uploads.get(r.query["uploadId"])
        if not known or known[0] != key:
            http.error(404, "NoSuchUpload")
        elif r.method == "PUT":
            known[2][int(r.query["partNumber"])] = r.body
            http.reply(200, ETag=f'"{hashlib.md5(r.body).hexdigest()}"')
        elif r.method == "GET":
            self.parts(http, r, known[2])
        elif r.method == "DELETE":
            del self.uploads[r.query["uploadId"]]
            http.reply(204)
        else:
            self.complete(http, r, key, known)

    def parts(self, http, r, parts):
        numbers = sorted(n for n in parts if n > int(r.query.get("part-number-marker", 0)))
        page, more = numbers[:self.PAGE], len(numbers) > self.PAGE
        http.reply(200, "<ListPartsResult>" + "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{hashlib.md5(parts[n]).hexdigest()}&quot;</ETag><Size>{len(parts[n])}</Size></Part>"
            for n in page) + f"<IsTruncated>{str(more).lower()}</IsTruncated>" +
            (f"<NextPartNumberMarker>{page[-1]}</NextPartNumberMarker>" if more else "") + "</ListPartsResult>")

    def complete(self, http, r, key, known):
        listed = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag>", r.body.decode())
        if any(hashlib.md5(known[2].get(int(n), b"?")).hexdigest() != html.unescape(e).strip('"') for n, e in listed):
            http.error(400, "InvalidPart")
            return
        self.objects[key] = b"".join(known[2][int(n)] for n, _ in listed), known[1]
        del self.uploads[r.query["uploadId"]]
        http.reply(200, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def lifecycle(self, http, r):
        if r.method == "PUT":
            import base64
            assert r.headers["content-md5"] == base64.b64encode(hashlib.md5(r.body).digest()).decode()
            self.rules = r.body.decode()
            http.reply(200)
        elif self.rules is None:
            http.error(404, "NoSuchLifecycleConfiguration")
        else:
            http.reply(200, self.rules)


class S3rver:
    """The real store of the tests, in DIRECTORY."""
    PROGRAM = harness.ROOT / "build/readers/node_modules/s3rver/bin/s3rver.js"

    def __init__(self, directory, *args):
        directory.mkdir(exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        self.url = f"{'https' if args else 'http'}://127.0.0.1:{port}"
        self.process = harness.start("node", self.PROGRAM, "-d", directory, "-a", "127.0.0.1", "-p", port, "--no-vhost-buckets",
                                     "--configure-bucket", BUCKET, *args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.until("s3rver listens", lambda: self.listens(port))

    def listens(self, port):
        assert self.process.poll() is None, "s3rver ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.process)


def make_certificates(path):
    """Makes a CA, and a key and a certificate of it for 127.0.0.1 (server) and for another name (other)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    def name(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def certificate(subject, key, issuer_key, extension, days=30):
        now = datetime.datetime.utcnow()
        return (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name("test ca")).public_key(key.public_key())
                .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=60))
                .not_valid_after(now + datetime.timedelta(days=days)).add_extension(extension, critical=False).sign(issuer_key, hashes.SHA256()))

    def save(stem, key, cert):
        (path / f"{stem}.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        (path / f"{stem}.key").write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))

    ca = ec.generate_private_key(ec.SECP256R1())
    save("ca", ca, certificate("test ca", ca, ca, x509.BasicConstraints(ca=True, path_length=None)))
    for stem, alternative, days in (("server", x509.IPAddress(ipaddress.ip_address("127.0.0.1")), 30),
                                    ("other", x509.DNSName("other.example"), 30),
                                    ("expired", x509.IPAddress(ipaddress.ip_address("127.0.0.1")), -1)):
        key = ec.generate_private_key(ec.SECP256R1())
        save(stem, key, certificate(stem, key, ca, x509.SubjectAlternativeName([alternative]), days))


def tls(path, stem):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path / f"{stem}.pem", path / f"{stem}.key")
    return context


Result = namedtuple("Result", "code out err peak_mib seconds")


def client(path, url, *words, bucket=BUCKET, options=(), limit_s=100, token=None, secret=SECRET, env=None):
    """Runs frtest-store. Several verbs are separated by ",". Returns also its peak of memory and how long it took."""
    keys = path / "keys"
    keys.write_text(f"[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {secret}\n" +
                    (f"aws_session_token = {token}\n" if token else ""))
    started = time.monotonic()
    with open(path / "out", "wb+") as out, open(path / "err", "wb+") as err:
        p = harness.start(harness.program("frtest-store"), "-e", url, "-b", bucket, "-k", keys, "-m", path / "status", *options, *words,
                          stdout=out, stderr=err, env=env or harness.environment())
        killer = threading.Timer(limit_s, p.kill)
        killer.start()
        p.wait()
        killer.cancel()
        out.seek(0)
        err.seek(0)
        peak = re.search(r"VmHWM:\s*(\d+) kB", (path / "status").read_text()) if (path / "status").exists() else None
        return Result(p.returncode, out.read().decode(), err.read().decode(), int(peak[1]) / 1024 if peak else None, time.monotonic() - started)


def good(*args, **kwargs):
    r = client(*args, **kwargs)
    assert r.code == 0 and not r.err, r
    return r.out
