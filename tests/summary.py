#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up what several runners reported, and says it in one line: N passed, N failed, N skipped.

Takes JUnit files (ctest, pytest) and files of lines "passed NAME" / "failed NAME" / "skipped NAME". A file that
is empty or broken is a runner that did not come to its end: one failure.
"""
import sys
import xml.etree.ElementTree as ET


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


def main(paths):
    passed = failed = skipped = 0
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
