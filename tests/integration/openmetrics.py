# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses OpenMetrics text with the strict parser of Prometheus. The parser raises ValueError for every mistake."""
from prometheus_client.openmetrics.parser import text_string_to_metric_families


class Metrics:
    """.types is {metric family: type}, and .samples is {(name, labels): value}."""

    def __init__(self, text):
        self.types, self.samples = {}, {}
        for family in text_string_to_metric_families(text):
            assert family.documentation, f"{family.name} has no help"
            self.types[family.name] = family.type
            for s in family.samples:
                key = s.name, tuple(sorted(s.labels.items()))
                assert key not in self.samples, f"{key} is there twice"
                self.samples[key] = s.value

    def get(self, name, **labels):
        return self.samples[name, tuple(sorted(labels.items()))]

    def all(self, name):
        return {labels: v for (n, labels), v in self.samples.items() if n == name}
