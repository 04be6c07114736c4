# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb metrics and the HTTP listener give the numbers of status in the OpenMetrics format."""
import http.client
import json
import socket
import time
from pathlib import Path

import pytest

from harness import ARMED_PROBES, EXIT, NO_LOSS, cpu_seconds, last_cpu, load, must, program, quiet_config, run
from openmetrics import Metrics


def metrics_text(d):
    r = d.ctl("metrics")
    assert r.code == 0 and not r.err, r
    return r.out


def metrics(d):
    return Metrics(metrics_text(d))


def rss_bytes(pid):
    return int(next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1]) * 1024


def test_metrics_agree_with_status(recorder):
    begin = time.monotonic()
    d = recorder(*NO_LOSS, "-e", "raw_syscalls:sys_enter", "--filter", "id == 110", "-e", "cpu-clock", "-F", "99", "-M", "8M")
    load("syscalls", "-n", 10000, "-c", last_cpu())
    d.dump_by_control()
    first = metrics(d)
    took = time.monotonic() - begin
    rss, status = [rss_bytes(d.pid)], d.status()
    load("syscalls", "-n", 10000, "-c", last_cpu())
    d.dump_by_control()
    cpu = [cpu_seconds(d.pid)]
    second = metrics(d)
    cpu.append(cpu_seconds(d.pid))
    rss.append(rss_bytes(d.pid))

    assert second.get("flightrec_build_info", version=status["version"]) == 1
    # The first metrics were read before status, the second after it.
    for event in status["events"]:
        for c in event["cpus"]:
            labels = {"event": event["name"], "cpu": str(c["cpu"])}
            assert first.get("flightrec_samples_total", **labels) <= c["samples"]
            assert c["samples"] <= second.get("flightrec_samples_total", **labels)
    grown = sum(second.all("flightrec_samples_total").values()) - sum(first.all("flightrec_samples_total").values())
    assert grown >= 10000
    assert set(second.all("flightrec_lost_total")) == {(("cause", c),) for c in status["losses"]}
    assert first.get("flightrec_ring_bytes") == status["ring"]["size"]
    assert 0 < first.get("flightrec_ring_used_bytes") <= status["ring"]["size"]
    assert 0 < first.get("flightrec_ring_span_seconds") < took
    assert first.get("flightrec_auxiliary_bytes") > 0
    assert first.get("flightrec_dumps_total", outcome="done") == 1
    assert second.get("flightrec_dumps_total", outcome="done") == 2
    assert second.get("flightrec_trigger_fired_total", trigger="control") == 2
    assert second.get("flightrec_trigger_suppressed_total", trigger="control", reason="cool-down") == 0
    assert second.get("flightrec_trigger_armed", trigger=ARMED_PROBES[0]) == 0
    threads = second.all("flightrec_cpu_seconds_total")
    assert {dict(labels)["thread"] for labels in threads} == {"main", "recorder", "tracker", "dumper"}
    assert 0 < sum(threads.values()) <= second.get("flightrec_process_cpu_seconds_total") + 0.01
    assert cpu[0] - 0.05 <= second.get("flightrec_process_cpu_seconds_total") <= cpu[1] + 0.05
    before, after = (m.get("flightrec_process_cpu_seconds_total") for m in (first, second))
    assert before - 0.05 <= status["self"]["cpu_s"] <= after + 0.05
    resident = [second.get("flightrec_resident_bytes"), status["self"]["rss_bytes"]]
    assert min(rss) / 2 < min(resident) and max(resident) < 2 * max(rss), (resident, rss)
    for key, value in first.samples.items():
        if key[0].endswith("_total"):
            assert second.samples[key] >= value, f"{key} went back"
    assert first.types == second.types and first.samples.keys() == second.samples.keys()


def test_names_are_escaped_and_unique(recorder):
    """Two events with the same name become one series. Characters of an event's name that would end the value of a label are
    escaped."""
    d = recorder("-e", 'cpu-clock/name=a\\b/', "-e", "cpu-clock/name=twice/", "-e", "task-clock/name=twice/", "-M", "4M")
    load("burn", "-t", "0.3")
    m = metrics(d)
    text = metrics_text(d)
    events = {dict(labels)["event"] for labels in m.all("flightrec_samples_total")}
    assert events == {"a\\b", "twice"}, events
    assert 'event="a\\\\b"' in text


def test_json_and_pipes(recorder):
    d = recorder("-e", "cpu-clock", "-M", "4M")
    r = d.ctl("metrics", "--json=short")
    piped = must("sh", "-c", f"{program('flightrecctl')} --socket {d.socket} metrics | head -n 1")
    d.stop()
    assert Metrics(json.loads(r.out)["text"]).get("flightrec_ring_bytes") == 4 << 20
    assert piped.out.startswith("# TYPE flightrec_build info") and not piped.err


def listening(recorder, tmp_path, address, more=""):
    path = quiet_config(tmp_path / "listen.conf", f"[Recorder]\nMetricsListen={address}\n{more}")
    return recorder("--config", path, "-e", "cpu-clock", "-M", "4M")


def free_port(host="127.0.0.1"):
    with socket.socket() as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def ask(port, method="GET", path="/metrics", body=None, host="127.0.0.1"):
    c = http.client.HTTPConnection(host, port, timeout=60)
    try:
        c.request(method, path, body)
        r = c.getresponse()
        return r.status, r.getheader("content-type"), r.read().decode()
    finally:
        c.close()


@pytest.mark.waits
def test_listener(recorder, tmp_path):
    port = free_port()
    d = listening(recorder, tmp_path, f"127.0.0.1:{port}")
    status, kind, text = ask(port)
    assert status == 200 and kind.startswith("application/openmetrics-text; version=1.0.0")
    assert Metrics(text).get("flightrec_ring_bytes") == 4 << 20
    assert ask(port, "HEAD")[::2] == (200, "")
    assert ask(port, path="/")[0] == 404 and ask(port, path="/metrics/x")[0] == 404
    assert ask(port, "POST", body="x" * 1000)[0] == 405 and ask(port, "DELETE")[0] == 405
    # A connection can send many requests. At most eight connections can be open without a request, and only for a short time.
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(50):
        c.request("GET", "/metrics")
        assert c.getresponse().read().endswith(b"# EOF\n")
    c.close()
    silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(8)]
    assert silent[0].recv(1) == b"", "the end of a silent connection"
    for s in silent:
        s.close()
    assert ask(port)[0] == 200
    for garbage in (b"\0" * 100, b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
            try:
                s.sendall(garbage)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
            except TimeoutError:
                raise
            except OSError:  # the recorder closes the connection before it has read all of the request
                pass
    # After these connections, the recorder does not use CPU time in a loop.
    before, begin = cpu_seconds(d.pid), time.monotonic()
    time.sleep(1)
    assert cpu_seconds(d.pid) - before < 0.3 * (time.monotonic() - begin)
    assert ask(port)[0] == 200


def test_a_port_in_use_is_reported_and_the_recorder_records(recorder, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        d = listening(recorder, tmp_path, f"127.0.0.1:{taken.getsockname()[1]}")
        notices = d.status()["notices"]
        d.stop()
    assert any("MetricsListen=" in n for n in notices), notices
    assert "cannot listen on" in d.log()


def test_a_public_address_needs_metrics_public(recorder, tmp_path):
    path = tmp_path / "public.conf"
    path.write_text("[Recorder]\nMetricsListen=0.0.0.0:9752\n")
    r = run(program("flightrecd"), "--config", path, "-e", "cpu-clock", "-o", tmp_path)
    assert r.code == EXIT["usage"] and "reached from other machines" in r.err and "MetricsPublic=yes" in r.err, r
    port = free_port("0.0.0.0")
    listening(recorder, tmp_path, f"0.0.0.0:{port}", "MetricsPublic=yes\n")
    assert ask(port)[0] == 200
