"""Telemetry of every service with deciders: spans and metrics of each accepted record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact
from shared.process.settings import Settings
from shared.telemetry.endpoint import Health, Pages
from shared.telemetry.metrics import CaughtUp, Metrics
from shared.telemetry.setup import Telemetry

Observer = Callable[[list[Fact], list[str], int], None]


def observer(telemetry: Telemetry) -> Observer:
    """Return the callback for `run_service(on_accepted=...)`."""
    metrics, spans = telemetry.metrics, telemetry.spans

    def accepted(facts: list[Fact], parents: list[str], started_ns: int) -> None:
        ended_ns = time.time_ns()
        metrics.decision_s.observe((ended_ns - started_ns) / 1e9)
        for type_, count in Counter(fact.event.TYPE for fact in facts).items():
            metrics.decisions.labels(type_).inc(count)
        for fact in facts:
            if isinstance(fact.event, InputRejected):
                metrics.dead_letters.labels(fact.event.topic).inc()
            elif isinstance(fact.event, InputQuarantined):
                metrics.quarantined.labels(fact.event.topic).inc()
        spans.record_decisions(facts, parents, started_ns, ended_ns)

    return accepted


def serve_metrics(telemetry: Telemetry, settings: Settings, service: str) -> None:
    """Serve `/metrics` and `/health`; healthy while the host's readiness file exists."""
    serve_endpoint(telemetry.metrics, settings, (settings.data / f"{service}.ready").exists)


def serve_endpoint(
    metrics: Metrics,
    settings: Settings,
    health: Health,
    caught_up: CaughtUp | None = None,
    pages: Pages | None = None,
) -> None:
    """Serve the endpoint if a port is set; services that only read have a `caught_up`."""
    metrics.watch_disk(settings.data)
    if caught_up is not None:
        metrics.watch_behind(caught_up.behind_s)
    if settings.metrics_port:
        metrics.serve(settings.metrics_port, health, settings.metrics_host, pages)
