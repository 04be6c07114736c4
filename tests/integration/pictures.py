# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the pictures of the page for the documentation, from the incident of the tutorial:

    sudo python3 tests/integration/pictures.py [FOLDER]

FOLDER is docs/images by default. The incident is recorded anew each time, so the times in the pictures differ, but their sizes
do not. Only the service is recorded, and it has a high priority, so other programs of this machine are not in the pictures."""
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import browser
from harness import ROOT, Daemon, must, program, until

WIDTH = 1100
BEFORE_S = 11  # the time before the service starts, with which explain compares
SLOW = 3  # times that the service is slow, every 3.3 s
MAX_BYTES = 150_000


def record(directory):
    """Records the slow service with the default configuration. Returns the path of a dump from just after it was slow."""
    must("gcc", "-O2", "-pthread", ROOT / "docs/examples/slow-service.c", "-o", directory / "slow-service")
    (directory / "state").mkdir()
    service = f"for i in $(seq {BEFORE_S}); do sleep 1; done; exec nice -n -19 ./slow-service > said"
    d = Daemon(directory / "state", command=("sh", "-c", f"cd {directory}; {service}")).start()
    said = directory / "said"
    try:
        # The service has four threads that wait.
        until("slow requests", lambda: said.exists() and len(said.read_text().splitlines()) >= 4 * SLOW)
        return d.dump_by_control()
    finally:
        d.stop()  # ends the service, too


# --- small files: the browser writes 24 bits for each pixel, but a page has few colours ---

def read_png(data):
    """Returns the width, and the lines of pixels, each with 3 bytes for a pixel."""
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    assert (depth, colours) in ((8, 2), (8, 6)), "the browser has written another kind of PNG"
    size = 3 if colours == 2 else 4
    raw, step = zlib.decompress(packed), width * size
    above, lines = bytes(step), []
    for y in range(height):
        begin = y * (step + 1)
        above = undo_filter(raw[begin], bytearray(raw[begin + 1:begin + 1 + step]), above, size)
        lines.append(b"".join(above[x:x + 3] for x in range(0, step, size)))
    return width, lines


def undo_filter(kind, line, above, size):
    """Computes the bytes of a line, which are stored as differences. Section 9 of the PNG specification has the kinds."""
    for x, value in enumerate(line):
        left, up, corner = (line[x - size], above[x], above[x - size]) if x >= size else (0, above[x], 0)
        if kind == 4:
            base = left + up - corner
            guess = min((left, up, corner), key=lambda c: abs(base - c))
        else:
            guess = (0, left, up, (left + up) // 2)[kind]
        line[x] = (value + guess) & 255
    return line


def make_small(path):
    """Writes the picture again with a palette of its 256 most frequent colours. Other pixels get the nearest of these."""
    width, lines = read_png(path.read_bytes())
    count = Counter(line[x:x + 3] for line in lines for x in range(0, len(line), 3))
    palette = [colour for colour, _ in count.most_common(256)]
    number = {c: min(range(len(palette)), key=lambda i, c=c: sum((a - b)**2 for a, b in zip(palette[i], c))) for c in count}
    pixels = b"".join(b"\0" + bytes(number[line[x:x + 3]] for x in range(0, len(line), 3)) for line in lines)
    head = struct.pack(">IIBBBBB", width, len(lines), 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts))


# --- the pictures ---

def shoot(b, path, height):
    b.resize(WIDTH, height)
    b.shoot(path)
    make_small(path)
    size = path.stat().st_size
    print(f"{path}: {size} bytes")
    assert size <= MAX_BYTES, f"{path} is larger than {MAX_BYTES} bytes"


def make_pictures(page, folder):
    b = browser.Browser()
    try:
        b.open(page)
        shoot(b, folder / "page-overview.png", 1060)
        # The last time that the requests waited for the lock.
        b.run("""const waits = lanes.flatMap((l) => l.waits).filter((w) => data.kinds[w.kind] === "lock" && w.to - w.from > 2e8);
            const to = Math.max(...waits.map((w) => w.to)), bucket = (ns) => Math.round(ns / data.bucket_ns);
            setWindow(bucket(to - 5e8), bucket(to + 2e8));
            chooseView("waker");""")
        b.resize(WIDTH, 1060)
        b.run("byId('h-time').scrollIntoView()")
        shoot(b, folder / "page-window.png", 1060)
    finally:
        b.close()


def main(folder):
    reason = browser.missing()
    if reason:
        sys.exit(reason)
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="flightrec-pictures.") as directory:
        dump = record(Path(directory))
        page = Path(directory) / "page.html"
        must(program("flightrec-report"), "report", "--html", "-q", "-o", page, dump, timeout=300)
        make_pictures(page, folder)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images")
    except subprocess.SubprocessError as e:
        sys.exit(str(e))
