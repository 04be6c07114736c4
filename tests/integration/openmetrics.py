# SPDX-License-Identifier: GPL-2.0-or-later
"""OpenMetrics 1.0 text, read as strictly as its grammar says."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)")
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
PAIR = re.compile(rf'({LABEL})="((?:[^\\"\n]|\\[\\"n])*)"(,|$)')
SUFFIX = {"counter": "_total", "gauge": "", "info": "_info"}
UNESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def labels_of(text):
    labels, at = [], 0
    while text and at < len(text):
        m = PAIR.match(text, at)
        assert m, f"no labels: {text!r} from {at}"
        assert not (m[3] == "," and m.end() == len(text)), f"a comma at the end: {text!r}"
        labels.append((m[1], re.sub(r'\\[\\"n]', lambda e: UNESCAPE[e[0]], m[2])))
        at = m.end()
    assert len({name for name, _ in labels}) == len(labels), f"a label twice: {text!r}"
    return tuple(sorted(labels))


class Metrics:
    """types, units and help by family; samples by (name, labels)."""

    def __init__(self, text):
        self.types, self.units, self.help, self.samples = {}, {}, {}, {}
        assert text.endswith("# EOF\n") and "\r" not in text, text[-100:]
        lines = text[:-len("# EOF\n")].split("\n")
        assert lines.pop() == "", "the last line does not end"
        self.family, self.has_samples = None, False
        for line in lines:
            self.take_meta(line) if line.startswith("#") else self.take_sample(line)

    def take_meta(self, line):
        m = META.fullmatch(line)
        assert m, f"no metadata: {line!r}"
        what, family, text = m.groups()
        table = {"TYPE": self.types, "UNIT": self.units, "HELP": self.help}[what]
        assert family not in table, f"{what} of {family} stands twice"
        if family != self.family:
            assert family not in {**self.types, **self.units, **self.help}, f"{family} stands in two places"
            self.family, self.has_samples = family, False
        assert not self.has_samples, f"{what} of {family} comes after its samples"
        if what == "TYPE":
            assert text in SUFFIX, line
        if what == "UNIT":
            assert family.endswith("_" + text), f"{family} does not end with its unit {text}"
        if what == "HELP":
            assert text and not re.search(r"(?<!\\)(\\\\)*\\(?![\\\"n])", text), line
        table[family] = text

    def take_sample(self, line):
        m = SAMPLE.fullmatch(line)
        assert m, f"no sample: {line!r}"
        name, labels, value = m.groups()
        assert self.family in self.types, f"a sample before its type: {line!r}"
        assert name == self.family + SUFFIX[self.types[self.family]], f"{line!r} is not of {self.family}"
        key = (name, labels_of(labels))
        assert key not in self.samples, f"twice: {line!r}"
        self.samples[key] = float(value)
        assert self.types[self.family] == "gauge" or float(value) >= 0, line
        self.has_samples = True

    def get(self, name, **labels):
        return self.samples[name, tuple(sorted(labels.items()))]

    def all(self, name):
        return {labels: v for (n, labels), v in self.samples.items() if n == name}
