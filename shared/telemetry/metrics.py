"""Every metric of a service, on a registry of its own, and the loop-stall probe."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from shared.telemetry.endpoint import Health, MetricsEndpoint, Pages, serve_registry
from shared.telemetry.figures import ComputedFigures, Figure, LastFigures
from shared.telemetry.metric_names import METRICS, MetricName

FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LAG_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)
STALL_EVERY_S = 0.1

# The creation time of each counter is not used and would double the size of a scrape.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Certificate(Protocol):
    """The certificate of a server."""

    def expires_in_s(self) -> float:
        """Return the seconds until it ends."""


class Metrics:
    """One per process; label values come from closed sets (services, topics, tenants, types)."""

    def __init__(self, service: str, instance: str = "") -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._last = LastFigures()
        self.registry.register(self._last)
        self.decisions = self._counter("berth_decisions")
        self.decision_s = self._histogram("berth_decision_seconds")
        self.inputs = self._counter("berth_inputs")
        self.ignored_records = self._counter("berth_ignored_records")
        self.lost_appends = self._counter("berth_lost_appends")
        self.clock_steps = self._counter("berth_clock_steps")
        self.dead_letters = self._counter("berth_dead_letters")
        self.quarantined = self._counter("berth_inputs_quarantined")
        self.loop_stall_s = self._histogram("berth_event_loop_stall_seconds")
        self.projection_lag_s = self._histogram("berth_projection_lag_seconds", LAG_S)
        self.rounds = self._counter("berth_rounds")
        self.rate_limited = self._counter("berth_requests_limited")
        self.submissions_held_s = self._counter("berth_submissions_held_seconds")
        self.llm_rejections = self._counter("berth_llm_rejections")
        self.agent_refusals = self._counter("berth_agent_refusals")
        self.dropped_records = self._counter("berth_dropped_records")
        self.notifications = self._counter("berth_notifications")
        self.solve_s = self._histogram("berth_solve_seconds")
        self.proposals = self._counter("berth_proposals")
        self.propose_s = self._histogram("berth_propose_seconds")
        self._exported = self._counter("berth_spans_exported")
        self._dropped = self._counter("berth_spans_dropped")
        self._unsampled = self._counter("berth_spans_unsampled")
        self._gauge("berth_info").labels(service, instance or service).set(1)

    def spans_exported(self, spans: int) -> None:
        self._exported.inc(spans)

    def spans_dropped(self, spans: int, reason: str) -> None:
        self._dropped.labels(reason).inc(spans)

    def spans_unsampled(self, spans: int) -> None:
        self._unsampled.inc(spans)

    def show(self, figures: Sequence[Figure]) -> None:
        """Replace the figures that scrapes return."""
        self._last.figures = tuple(figures)

    def watch(self, compute: Callable[[], Iterable[Figure]]) -> None:
        """Report figures that are computed at each scrape, in another thread."""
        self.registry.register(ComputedFigures(compute))

    def watch_disk(self, folder: Path) -> None:
        """Report the disk of the folder, read at each scrape."""
        free = self._gauge("berth_disk_free_bytes")
        free.set_function(lambda: shutil.disk_usage(existing_folder(folder)).free)
        size = self._gauge("berth_disk_size_bytes")
        size.set_function(lambda: shutil.disk_usage(existing_folder(folder)).total)

    def watch_certificate(self, certificate: Certificate | None) -> None:
        """Report when the certificate of a server ends, read at each scrape; None for none."""
        if certificate is not None:
            gauge = self._gauge("berth_certificate_expires_seconds")
            gauge.set_function(certificate.expires_in_s)

    def watch_behind(self, seconds: Callable[[], float]) -> None:
        """Report the seconds since a reader was last at the end of the ledgers."""
        self._gauge("berth_behind_seconds").set_function(seconds)

    def watch_archive(
        self,
        behind_s: Callable[[], float],
        unreachable_s: Callable[[], float],
        free_ratio: Callable[[], float] | None,
    ) -> None:
        """Report the seconds since all was archived that was due, and since none could be, and the
        free share of its disk; None in S3.
        """
        self._gauge("berth_archive_behind_seconds").set_function(behind_s)
        self._gauge("berth_archive_unreachable_seconds").set_function(unreachable_s)
        if free_ratio is not None:
            self._gauge("berth_archive_free_ratio").set_function(free_ratio)

    def watch_job_logs(self, behind_s: Callable[[], float]) -> None:
        """Report the seconds since all output of jobs was stored that was due."""
        self._gauge("berth_job_logs_behind_seconds").set_function(behind_s)

    def watch_retention(self, topic: str, seconds: Callable[[], float]) -> None:
        """Report by how much the oldest record of a topic is older than it should be."""
        self._gauge("berth_retention_behind_seconds").labels(topic).set_function(seconds)

    def serve(
        self, port: int, health: Health, host: str = "127.0.0.1", pages: Pages | None = None
    ) -> MetricsEndpoint:
        """Serve `/metrics` and `/health` from a thread, also while the event loop stalls."""
        return serve_registry(self.registry, host, port, health, pages or {})

    def _counter(self, name: MetricName) -> Counter:
        spec = METRICS[name]
        return Counter(name, spec.text, spec.labels, registry=self.registry)

    def _gauge(self, name: MetricName) -> Gauge:
        spec = METRICS[name]
        return Gauge(name, spec.text, spec.labels, registry=self.registry)

    def _histogram(self, name: MetricName, buckets: Sequence[float] = FAST_S) -> Histogram:
        spec = METRICS[name]
        return Histogram(name, spec.text, spec.labels, buckets=buckets, registry=self.registry)


def existing_folder(folder: Path) -> Path:
    """Return the folder or its nearest existing parent, so that a scrape does not fail."""
    return next(path for path in (folder, *folder.resolve().parents) if path.exists())


class CaughtUp:
    """The time at which a reader last reached the end of its input."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at_s = clock()

    def note(self) -> None:
        self._at_s = self._clock()

    def behind_s(self) -> float:
        return self._clock() - self._at_s


async def probe_loop_stall(metrics: Metrics, every_s: float = STALL_EVERY_S) -> None:
    """Measure until cancelled."""
    while True:
        due = time.perf_counter() + every_s
        await asyncio.sleep(every_s)
        metrics.loop_stall_s.observe(max(0.0, time.perf_counter() - due))
