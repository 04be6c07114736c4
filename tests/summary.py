#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up what several runners reported, and says it in one line: N passed, N failed, N skipped.

Takes JUnit files (ctest, pytest) and files of lines "passed NAME" / "failed NAME" / "skipped NAME". A file that
is empty or broken is a runner that did not come to its end: one failure. With --stages FILE, lines of
"SECONDS NAME", it also prints the time of each stage, and the slowest tests.
"""
import sys
import xml.etree.ElementTree as ET

SLOWEST = 20


def from_junit(path):
    passed, failed, skipped = [], [], []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')} {case.get('name')}"
        if case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped.append(name)
        elif case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        else:
            passed.append(name)
    return passed, failed, skipped


def from_lines(path):
    result = {"passed": [], "failed": [], "skipped": []}
    with open(path, encoding="utf-8") as f:
        for line in f:
            word, name = line.split(maxsplit=1)
            result[word].append(name.strip())
    if not any(result.values()):
        raise ValueError("empty")
    return result["passed"], result["failed"], result["skipped"]


def times(path):
    """(seconds, name) of each test of a JUnit file."""
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))
    except ET.ParseError:
        return []
    runner = path.rsplit("/", 1)[-1].removesuffix(".xml")
    return [(float(case.get("time") or 0), f"{runner}: {case.get('name')}") for case in cases]


def show_times(stages, paths):
    slow = sorted((t for path in paths if path.endswith(".xml") for t in times(path)), reverse=True)[:SLOWEST]
    for seconds, name in slow:
        print(f"{seconds:7.1f} s  {name}")
    with open(stages, encoding="utf-8") as f:
        print("stages: " + ", ".join("{1} {0} s".format(*line.split()) for line in f))


def main(paths):
    passed = failed = skipped = 0
    if paths[0] == "--stages":
        show_times(paths[1], paths[2:])
        paths = paths[2:]
    for path in paths:
        try:
            p, f, s = from_junit(path) if path.endswith(".xml") else from_lines(path)
        except (OSError, ValueError, KeyError, ET.ParseError) as e:
            print(f"{path}: the runner did not come to its end ({e})")
            p, f, s = [], [path], []
        for name in f:
            print(f"failed: {name}")
        passed, failed, skipped = passed + len(p), failed + len(f), skipped + len(s)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
