"""Gauges computed from a service's state: a scrape returns the latest list and nothing older."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shared.telemetry.metric_names import METRICS, MetricName


class Figure(NamedTuple):
    """One gauge; `labels` are the values of `METRICS[name].labels`, in that order."""

    name: MetricName
    value: float
    labels: tuple[str, ...] = ()


class LastFigures(Collector):
    """Collects the latest figures; those of a removed tenant or pool disappear."""

    def __init__(self) -> None:
        self.figures: tuple[Figure, ...] = ()

    def describe(self) -> Iterable[Metric]:
        """Describe nothing in advance: the figures depend on the service."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _families(self.figures)


class ComputedFigures(Collector):
    """Collects figures that a function computes at each scrape, in the thread of the scrape."""

    def __init__(self, compute: Callable[[], Iterable[Figure]]) -> None:
        self._compute = compute

    def describe(self) -> Iterable[Metric]:
        """Describe nothing in advance, and compute nothing before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _families(self._compute())


def _families(figures: Iterable[Figure]) -> Iterable[Metric]:
    families: dict[MetricName, GaugeMetricFamily] = {}
    for name, value, labels in figures:
        if name not in families:
            spec = METRICS[name]
            families[name] = GaugeMetricFamily(name, spec.text, labels=spec.labels)
        families[name].add_metric(labels, value)
    return families.values()
