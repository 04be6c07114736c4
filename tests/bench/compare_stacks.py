#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the user stacks of two files, or of two events of one file.

For each of the two: the share of broken stacks, and the median depth. With --pair, the two must be events of the same
occurrences, such as page-faults with period=1: pairs the stacks and compares them frame by frame.

    compare_stacks.py REFERENCE CANDIDATE
    compare_stacks.py --pair --reference-event page-faults/call-graph=dwarf --candidate-event page-faults/call-graph=unwind FILE
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
import callchains  # noqa: E402


def stacks(path, event, args):
    """PATH is a file of perf, or the text that perf script has printed with the options of callchains.read()."""
    with open(path, "rb") as f:
        binary = f.read(8) == b"PERFILE2"
    if binary:
        return callchains.read(path, pids=args.pid, comms=args.comm, event=event)
    with open(path, errors="surrogateescape") as f:
        return [s for s in callchains.parse(f) if (event is None or s.event.startswith(event)) and
                (not args.pid or s.pid in args.pid) and (not args.comm or s.comm in args.comm)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("reference")
    p.add_argument("candidate", nargs="?", help="default: the same file")
    p.add_argument("--reference-event", help="how the name of the event begins")
    p.add_argument("--candidate-event")
    p.add_argument("--pid", type=int, action="append")
    p.add_argument("--comm", action="append")
    p.add_argument("--pair", action="store_true")
    args = p.parse_args()
    reference = stacks(args.reference, args.reference_event, args)
    candidate = stacks(args.candidate or args.reference, args.candidate_event, args)
    print("reference:", callchains.text(callchains.summary(reference)))
    print("candidate:", callchains.text(callchains.summary(candidate)))
    if args.pair:
        print("pairs:", callchains.text(callchains.compare(callchains.pair(reference, candidate))))


if __name__ == "__main__":
    main()
