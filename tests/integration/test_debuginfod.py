# SPDX-License-Identifier: GPL-2.0-or-later
"""flightrec-report gets debug files from servers (debuginfod). A server that hangs or lies costs at most the limit of time, and its
files are not used. Without --debuginfod there is no request."""
import contextlib
import gzip
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

from harness import EXIT, Daemon, end, environment, must, program, quiet_config, run, start, until, until_ran

HOT = "frtest_burn_hot"  # a static function, which only the debug file has
LIMIT_S = 3
SLACK_S = 20  # a busy machine; a request without a limit would take longer
MAX_BYTES = 1 << 20  # of an answer
CHUNK = 64 << 10


class Recorded:
    """A dump of a program without symbols, whose debug file is elsewhere."""

    def __init__(self, directory):
        self.program, self.debug = directory / "burn", directory / "burn.debug"
        must("objcopy", "--only-keep-debug", program("frtest-burn"), self.debug)
        must("objcopy", "--strip-all", program("frtest-burn"), self.program)
        self.build_id = re.search(r"Build ID: (\w+)", must("readelf", "-n", self.program).out)[1]
        (directory / "state").mkdir()
        config = quiet_config(directory / "d.conf", "[Recorder]\nEvents=cpu-clock\nFrequency=499\nCallGraph=fp\n")
        daemon = Daemon(directory / "state", "--config", config)
        try:
            daemon.start()
            load = start(self.program, "-t", "600", stdout=subprocess.DEVNULL)
            until_ran(load, seconds=0.3)
            self.path, self.pid = daemon.dump_by_control(), load.pid
            end(load)
            daemon.stop()
        finally:
            daemon.kill()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return Recorded(tmp_path_factory.mktemp("debuginfod"))


class Server(http.server.ThreadingHTTPServer):
    """Answers each request by the function ANSWER(handler). Notes the paths of the requests."""

    daemon_threads = True

    def __init__(self, answer):
        server = self
        self.paths, self.over = [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                server.paths.append(self.path)
                with contextlib.suppress(OSError):  # the client has ended
                    answer(self)
                self.close_connection = True

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def close(self):
        self.over.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


@pytest.fixture
def serve():
    """serve(answer) starts a Server."""
    with contextlib.ExitStack() as stack:
        def begin(answer):
            server = Server(answer)
            stack.callback(server.close)
            return server
        yield begin


def send(handler, data, code=200, **headers):
    handler.send_response(code)
    for name, value in {"Content_Type": "application/octet-stream", "Content_Length": len(data), **headers}.items():
        if value is not None:
            handler.send_header(name.replace("_", "-"), str(value))
    handler.end_headers()
    handler.wfile.write(data)


def not_found(handler):
    send(handler, b"", 404)


def right(recorded):
    def answer(handler):
        if handler.path == f"/buildid/{recorded.build_id}/debuginfo":
            send(handler, recorded.debug.read_bytes())
        else:
            not_found(handler)
    return answer


def report(recorded, directory, urls, *options, verb=("export", "--format=folded"), prefix=()):
    """Returns the result of flightrec-report, and how long it took."""
    env = environment(HOME=str(directory), DEBUGINFOD_CACHE_PATH=str(directory / "cache"), DEBUGINFOD_MAXSIZE=str(MAX_BYTES))
    if urls is not None:
        env["DEBUGINFOD_URLS"] = urls
    begin = time.monotonic()
    r = run(*prefix, program("flightrec-report"), *verb, "-q", f"--pid={recorded.pid}", *options, recorded.path, env=env)
    assert r.code == 0, r
    return r, time.monotonic() - begin


def test_names_come_from_a_server(recorded, serve, tmp_path):
    r, _ = report(recorded, tmp_path, None)
    assert HOT not in r.out and "[burn]" in r.out
    server = serve(right(recorded))
    r, _ = report(recorded, tmp_path, server.url, "--debuginfod")
    assert f"frtest_burn_middle;{HOT}" in r.out and not r.err, r
    n = len(server.paths)
    # The file is in the cache now.
    server.close()
    r, _ = report(recorded, tmp_path, server.url, "--debuginfod")
    assert HOT in r.out and n > 0


def test_a_bundle_has_the_files_of_the_server(recorded, serve, tmp_path):
    path = tmp_path / "x.tar.zst"
    report(recorded, tmp_path, serve(right(recorded)).url, "--debuginfod", "-o", path, verb=("bundle",))
    assert f"debug/.build-id/{recorded.build_id[:2]}/{recorded.build_id[2:]}/debug" in must("tar", "--zstd", "-tf", path).out
    assert HOT in must(program("flightrec-report"), "export", f"--pid={recorded.pid}", path).out


def test_there_is_no_request_without_the_option(recorded, serve, tmp_path):
    server = serve(right(recorded))
    for verb in (("explain",), ("report",), ("report", "--html"), ("export",)):
        r, _ = report(recorded, tmp_path, server.url, verb=verb)
        assert not r.err
    r, _ = report(recorded, tmp_path, server.url, "-o", tmp_path / "x.tar.zst", verb=("bundle",))
    assert not server.paths


def test_the_option_needs_a_server(recorded, tmp_path):
    for urls in (None, ""):
        r, _ = report(recorded, tmp_path, urls, "--debuginfod")
        assert "$DEBUGINFOD_URLS is not set" in r.err and HOT not in r.out


def test_the_recorder_makes_no_request(recorded, recorder, serve, tmp_path):
    server = serve(right(recorded))
    config = quiet_config(tmp_path / "c.conf", "[Recorder]\nEvents=cpu-clock\nCallGraph=fp\n[Dump]\nCacheObjects=512M\n")
    d = recorder("--config", config, env={"DEBUGINFOD_URLS": server.url, "HOME": str(tmp_path)})
    load = start(recorded.program, "-t", "600", stdout=subprocess.DEVNULL)
    until_ran(load, seconds=0.2)
    d.dump_by_control()
    until("copies", lambda: list((d.directory / "debug").glob("**/burn/*/elf")))
    end(load)
    d.stop()
    assert not server.paths
    assert "debuginfod" not in must("ldd", program("flightrecd")).out


# --- servers that hang ---------------------------------------------------------------------------------------

def silent(handler):
    handler.server.over.wait(600)


def trickle(handler):
    send(handler, b"\x7fELF", Content_Length=500000)
    while not handler.server.over.wait(0.05):
        handler.wfile.write(b"\0")


def trickle_head(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not handler.server.over.wait(0.05):
        handler.wfile.write(b"X-Nothing: 1\r\n")


def check_slow(r, took_s):
    assert HOT not in r.out and "[burn]" in r.out
    assert f"no more requests, because the answers took {LIMIT_S}.0s" in r.err and "--debuginfod-time" in r.err, r.err
    assert LIMIT_S * 0.4 < took_s < LIMIT_S + SLACK_S, took_s


@pytest.mark.parametrize("answer", [silent, trickle, trickle_head])
def test_a_server_that_hangs_costs_the_limit(recorded, serve, tmp_path, answer):
    server = serve(answer)
    check_slow(*report(recorded, tmp_path, server.url, "--debuginfod", f"--debuginfod-time={LIMIT_S}s"))
    assert server.paths and not list((tmp_path / "cache").glob("**/debuginfo*"))
    # The next server is asked: nothing notes that there is no such file.
    r, _ = report(recorded, tmp_path, serve(right(recorded)).url, "--debuginfod")
    assert HOT in r.out


def test_a_server_that_takes_no_connection_costs_the_limit(recorded, tmp_path):
    with socket.socket() as s, contextlib.ExitStack() as waiting:
        s.bind(("127.0.0.1", 0))
        s.listen(0)
        for _ in range(4):  # the queue of connections is full
            c = waiting.enter_context(socket.socket())
            c.setblocking(False)
            c.connect_ex(s.getsockname())
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        check_slow(*report(recorded, tmp_path, url, "--debuginfod", f"--debuginfod-time={LIMIT_S}s"))


def test_a_name_server_that_is_silent_costs_the_limit(recorded, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.bind(("127.77.0.1", 53))
        except OSError as e:
            pytest.skip(f"no name server can be simulated here: {e}")
        (tmp_path / "resolv.conf").write_text("nameserver 127.77.0.1\noptions timeout:30 attempts:3\n")
        (tmp_path / "nsswitch.conf").write_text("hosts: files dns\n")
        script = "".join(f"mount --bind {tmp_path}/{name} /etc/{name} && " for name in ("resolv.conf", "nsswitch.conf"))
        if run("unshare", "--mount", "sh", "-c", f"{script} true").code != 0:
            pytest.skip("the files of the resolver cannot be replaced here")
        check_slow(*report(recorded, tmp_path, "http://debuginfod.example:8002", "--debuginfod", f"--debuginfod-time={LIMIT_S}s",
                           prefix=("unshare", "--mount", "sh", "-c", f'{script} exec "$@"', "sh")))
        s.setblocking(False)
        assert s.recv(4096)


# --- servers that lie ----------------------------------------------------------------------------------------

def another(handler):
    with open(program("frtest-syscalls"), "rb") as f:
        send(handler, f.read())


def garbage(handler):
    send(handler, b"\x7fELF" + os.urandom(5000))


def empty(handler):
    send(handler, b"")


def page(handler):
    send(handler, b"<html>Please log in\x1b[31m</html>", Content_Type="text/html")


def announced(handler):
    send(handler, b"\x7fELF", Content_Length=10 << 30)
    while True:
        handler.wfile.write(bytes(CHUNK))


def endless(handler):
    send(handler, b"\x7fELF", Content_Length=None)
    while True:
        handler.wfile.write(bytes(CHUNK))


def bomb(handler):
    send(handler, gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")


def cut(handler):
    send(handler, b"\x7fELF" + bytes(2000), Content_Length=50000)


def circle(handler):
    send(handler, b"", 302, Location=handler.path)


def elsewhere(handler):
    send(handler, b"", 302, Location="file:///etc/passwd")


def failing(handler):
    send(handler, b"", 500)


def no_http(handler):
    handler.wfile.write(os.urandom(3000))


OTHER, SIZE, ERROR = "sent another file than it was asked for", "sends more than", "cannot get a file"
# libdebuginfod does not tell these from an answer that there is no such file.
NOTHING = ""


@pytest.mark.parametrize("answer, said", [(another, OTHER), (garbage, OTHER), (page, OTHER), (announced, SIZE), (endless, SIZE),
                                          (bomb, SIZE), (circle, ERROR), (empty, NOTHING), (cut, NOTHING), (elsewhere, NOTHING),
                                          (failing, NOTHING), (no_http, NOTHING)])
def test_a_server_that_lies_is_not_believed(recorded, serve, tmp_path, answer, said):
    server = serve(answer)
    r, took_s = report(recorded, tmp_path, server.url, "--debuginfod")
    assert HOT not in r.out and "[burn]" in r.out and took_s < 30, (took_s, r)
    assert server.paths and said in r.err and (not said or server.url in r.err), r.err
    assert all(c.isprintable() or c == "\n" for c in r.err)
    left = [p.stat().st_size for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.name.startswith("debuginfo")]
    assert sum(left) <= MAX_BYTES, left


def test_a_lie_is_forgotten(recorded, serve, tmp_path):
    """A file that was refused is not in the cache, so the next answer counts."""
    report(recorded, tmp_path, serve(another).url, "--debuginfod")
    r, _ = report(recorded, tmp_path, serve(right(recorded)).url, "--debuginfod")
    assert HOT in r.out


def test_the_time_is_checked(recorded):
    for text in ("0", "soon", "-1s"):
        r = run(program("flightrec-report"), "report", f"--debuginfod-time={text}", recorded.path)
        assert r.code == EXIT["usage"] and "--debuginfod-time" in r.err


def test_another_file_at_the_recorded_path_gives_no_names(recorded, tmp_path):
    """The file was replaced since. Its functions at the same addresses are others."""
    kept = recorded.program.with_name("kept")
    recorded.program.rename(kept)
    try:
        shutil.copy2(program("frtest-syscalls"), recorded.program)
        r, _ = report(recorded, tmp_path, None)
        assert "[burn]" in r.out and "frtest_" not in r.out, r
    finally:
        kept.rename(recorded.program)


# --- debug files on this machine -----------------------------------------------------------------------------

def linked(recorded, directory):
    """Returns a copy of the recorded program with a debug link to a file in its folder .debug."""
    path = directory / "burn"
    shutil.copy2(recorded.debug, directory / "burn.debug")
    must("objcopy", f"--add-gnu-debuglink={directory / 'burn.debug'}", recorded.program, path)
    (directory / "burn.debug").unlink()
    (directory / ".debug").mkdir()
    return path


def cached(recorded, path, folder):
    """Puts the program into a folder for --symbols."""
    entry = folder / ".build-id" / recorded.build_id[:2] / recorded.build_id[2:]
    entry.mkdir(parents=True)
    shutil.copy2(path, entry / "elf")
    return entry


@pytest.mark.parametrize("kind", ["file", "pipe", "other", "huge"])
def test_a_debug_link(recorded, tmp_path, kind):
    """The link names a file beside the program. A program can also have a link to a pipe, for which nobody must wait."""
    entry = cached(recorded, linked(recorded, tmp_path), tmp_path / "symbols")
    place = entry / ".debug" / "burn.debug"
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "huge":
        with open(place, "wb") as f:
            f.truncate(1 << 40)
    else:
        shutil.copy2(recorded.debug if kind == "file" else program("frtest-syscalls"), place)
    r, took_s = report(recorded, tmp_path, None, f"--symbols={tmp_path / 'symbols'}")
    assert (HOT in r.out) == (kind == "file") and "[burn]" not in r.out or kind != "file", r
    assert took_s < 30


def test_a_link_to_a_shared_file_that_is_a_pipe(recorded, tmp_path):
    pipe, link, path = tmp_path / "pipe", tmp_path / "link", tmp_path / "burn"
    os.mkfifo(pipe)
    link.write_bytes(bytes(pipe) + b"\0" + bytes(range(20)))
    must("objcopy", "--add-section", f".gnu_debugaltlink={link}", program("frtest-burn"), path)
    cached(recorded, path, tmp_path / "symbols")
    r, took_s = report(recorded, tmp_path, None, f"--symbols={tmp_path / 'symbols'}")
    assert HOT in r.out and took_s < 30
