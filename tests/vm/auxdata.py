# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the AUX data of perf.data files, and checks the records of the synthetic PMU in it (kmod/flightrec_pmu.c)."""
import collections
import struct

FEATURE_AUXTRACE = 18
RECORD = struct.Struct("<QQQII")  # check, time, sequence number, CPU, thread
U64 = (1 << 64) - 1
Piece = collections.namedtuple("Piece", "idx cpu offset data")


def pieces(path):
    """Returns the pieces of AUX data in the file, in the order of the section AUXTRACE."""
    data = path.read_bytes()
    assert data[:8] == b"PERFILE2", path
    data_offset, data_size = struct.unpack_from("<QQ", data, 40)
    features = int.from_bytes(data[72:104], "little")
    if not features >> FEATURE_AUXTRACE & 1:
        return []
    nth = bin(features & (1 << FEATURE_AUXTRACE) - 1).count("1")
    at, _ = struct.unpack_from("<QQ", data, data_offset + data_size + 16 * nth)
    count, = struct.unpack_from("<Q", data, at)
    found = []
    for i in range(count):
        record, _ = struct.unpack_from("<QQ", data, at + 8 + 16 * i)
        kind, _, header_size, size, offset, _, idx, _, cpu = struct.unpack_from("<IHHQQQIII", data, record)
        assert kind == 71 and header_size == 48, path
        found.append(Piece(idx, cpu, offset, data[record + 48:record + 48 + size]))
    return found


def check_word(time, seq, cpu, tid):
    x = time ^ (seq * 0x9e3779b97f4a7c15 & U64) ^ (cpu << 32 | tid)
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9 & U64


class Checker:
    """Takes the snapshots of a recording, in their order, and counts what is wrong in them:
    torn: records that the PMU has not written like this; foreign: of another CPU or thread; twice: records that an earlier
    snapshot has; stale: other records that are not newer than an earlier snapshot of the area; missing: records
    inside of a snapshot; and between two snapshots, if AREA, the size of an area, is given, and the second one is not a full area."""

    def __init__(self, tid=None, area=0):
        self.tid = tid
        self.area = area
        self.next_seq = {}
        self.seen = collections.defaultdict(bytearray)
        self.newest = collections.defaultdict(int)
        self.counts = dict.fromkeys(("records", "torn", "foreign", "twice", "stale", "missing"), 0)

    def add(self, snapshot):
        """Returns the records of the snapshot: for each of its pieces, a list of (time, thread)."""
        return [self.add_piece(piece) for piece in snapshot]

    def add_piece(self, piece):
        self.count_missing(piece)
        last_seq = U64
        found, counts, since = [], self.counts, self.newest[piece.cpu]
        for check, time, seq, cpu, tid in RECORD.iter_unpack(piece.data[:len(piece.data) // RECORD.size * RECORD.size]):
            counts["records"] += 1
            if check != check_word(time, seq, cpu, tid):
                counts["torn"] += 1
                continue
            seen = self.seen[cpu]
            if seq >= len(seen):
                seen.extend(bytes(seq + 4096 - len(seen)))
            counts["foreign"] += cpu != piece.cpu or self.tid not in (None, tid)
            counts["twice"] += seen[seq]
            counts["stale"] += not seen[seq] and time <= since
            seen[seq] = 1
            self.newest[piece.cpu] = max(self.newest[piece.cpu], time)
            counts["missing"] += max(0, seq - last_seq - 1)
            last_seq = seq
            self.next_seq[cpu] = seq + 1
            found.append((time, tid))
        return found

    def count_missing(self, piece):
        if len(piece.data) >= RECORD.size and piece.cpu in self.next_seq and len(piece.data) < self.area:
            _, _, seq, _, _ = RECORD.unpack_from(piece.data)
            self.counts["missing"] += max(0, seq - self.next_seq[piece.cpu])
