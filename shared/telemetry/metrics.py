"""Every metric of a service, on a registry of its own, and the loop-stall probe."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from shared.telemetry.endpoint import Endpoint, Health, serve_registry
from shared.telemetry.names import MetricName

FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LAG_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0)
STALL_EVERY_S = 0.1


class Metrics:
    """One per process; label values come from closed sets (services, topics, wire names)."""

    def __init__(self, service: str, instance: str = "") -> None:
        self.registry = CollectorRegistry()
        self.decisions = self._counter("berth_decisions", "Accepted events", "type")
        self.decision_s = self._histogram(
            "berth_decision_seconds", "From the first input of a batch to its accepted record"
        )
        self.append_s = self._histogram(
            "berth_append_seconds", "From sending a record to reading it back as accepted"
        )
        self.inputs = self._counter("berth_inputs", "Inputs fed to the decider", "source")
        self.queue_depth = self._gauge(
            "berth_queue_depth", "Inputs that wait for their turn", "partition"
        )
        self.ignored_records = self._counter(
            "berth_ignored_records", "Ledger records that the reader rule ignored", "reason"
        )
        self.dead_letters = self._counter(
            "berth_dead_letters", "Inputs that could not be decoded", "topic"
        )
        self.loop_stall_s = self._histogram(
            "berth_event_loop_stall_seconds", "How late the event loop woke a sleeper"
        )
        self.fold_s = self._gauge(
            "berth_fold_seconds", "How long the last fold of the ledger took", "partition"
        )
        self.projection_lag_s = self._histogram(
            "berth_projection_lag_seconds", "From a record's time to its committed rows", "view",
            buckets=LAG_S,
        )  # fmt: skip
        self._exported = self._counter("berth_spans_exported", "Spans that were taken")
        self._dropped = self._counter("berth_spans_dropped", "Spans that were lost", "reason")
        self._gauge("berth_info", "Who this is", "service", "instance").labels(
            service, instance or service
        ).set(1)

    def spans_exported(self, spans: int) -> None:
        self._exported.inc(spans)

    def spans_dropped(self, spans: int, reason: str) -> None:
        self._dropped.labels(reason).inc(spans)

    def serve(self, port: int, health: Health, host: str = "127.0.0.1") -> Endpoint:
        """Answers `/metrics` and `/health` from a thread of its own, also while the loop stalls."""
        return serve_registry(self.registry, host, port, health)

    def _counter(self, name: MetricName, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: MetricName, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(
        self, name: MetricName, text: str, *labels: str, buckets: Sequence[float] = FAST_S
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


async def loop_stall_probe(metrics: Metrics, every_s: float = STALL_EVERY_S) -> None:
    """Runs until it is cancelled."""
    while True:
        due = time.perf_counter() + every_s
        await asyncio.sleep(every_s)
        metrics.loop_stall_s.observe(max(0.0, time.perf_counter() - due))
