#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the sum of the results of several test runners in one line: N passed, N failed, N skipped.

Usage: summary.py DIRECTORY SKIPS. DIRECTORY has JUnit files (*.xml, of ctest and pytest), lint.txt with lines "passed NAME" or
"failed NAME", and stages.txt with lines "SECONDS STAGE". An empty or broken file means that its runner did not end, and counts
as one failure. SKIPS lists the tests that may be skipped. As root, any other skipped test fails the suite.
"""
import os
import re
import sys
import xml.etree.ElementTree as ET
from collections import namedtuple
from pathlib import Path

SLOWEST = 20
REASON = re.compile(r"\[  ERROR|error:|[Ss]anitizer:|runtime error|Segmentation|Assertion|^E  ")
REASON_LINES = 12
Case = namedtuple("Case", "name outcome seconds reason", defaults=("",))


def from_junit(path):
    for case in ET.parse(path).getroot().iter("testcase"):
        module = (case.get("classname") or "").rpartition(".")[2]  # for pytest: tests.integration.test_x
        name = f"{module}::{case.get('name')}" if module.startswith("test_") else case.get("name")
        outcome = "passed"
        if case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            outcome = "skipped"
        elif case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        output = "\n".join(text for e in case for text in (e.get("message"), e.text) if text) if outcome == "failed" else ""
        yield Case(f"{path.stem}: {name}", outcome, float(case.get("time") or 0), output)


def from_lines(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    for outcome, name in (line.split(maxsplit=1) for line in lines):
        yield Case(f"{path.stem}: {name}", outcome, 0)
    if not lines:
        raise ValueError("empty")


def read(path):
    try:
        return list(from_junit(path) if path.suffix == ".xml" else from_lines(path))
    except (OSError, ValueError, ET.ParseError) as e:
        return [Case(f"{path.stem}: its runner did not end ({e})", "failed", 0)]


def reason(output):
    """Returns the lines of the output of a failed test that say why, or its last lines."""
    lines = [line for line in output.splitlines() if line.strip()]
    return ([line for line in lines if REASON.search(line)] or lines[-REASON_LINES:])[:REASON_LINES]


def read_known_skips(path):
    """Returns the names of the tests that may be skipped. A line has a name, without parameters, and the reason."""
    lines = (line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {line[0] for line in lines if line}


def main(directory, skips):
    cases = [c for path in sorted(directory.glob("*.xml")) + [directory / "lint.txt"] for c in read(path)]
    known = read_known_skips(skips)
    for case in sorted(cases, key=lambda c: -c.seconds)[:SLOWEST]:
        print(f"{case.seconds:7.1f} s  {case.name}")
    stages = (line.split() for line in (directory / "stages.txt").read_text(encoding="utf-8").splitlines())
    print("stages: " + ", ".join(f"{stage} {seconds} s" for seconds, stage in stages))
    for case in cases:
        if case.outcome == "failed":
            print(f"failed: {case.name}")
            for line in reason(case.reason):
                print(f"    {line}")
    unknown = [c for c in cases if c.outcome == "skipped" and c.name.split(": ", 1)[1].partition("[")[0] not in known]
    for case in unknown:
        print(f"skipped, and not listed in {skips}: {case.name}")
    count = {outcome: sum(c.outcome == outcome for c in cases) for outcome in ("passed", "failed", "skipped")}
    print(", ".join(f"{n} {outcome}" for outcome, n in count.items()))
    return 1 if count["failed"] or not count["passed"] or unknown and os.geteuid() == 0 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
