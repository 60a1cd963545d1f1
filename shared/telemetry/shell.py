"""Telemetry of every service with deciders: spans and metrics of each accepted record."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact
from shared.process.heap import settle_heap
from shared.process.settings import Settings
from shared.telemetry.endpoint import Health, Pages
from shared.telemetry.metrics import CaughtUp, Metrics
from shared.telemetry.setup import Telemetry, start_telemetry
from shared.telemetry.upkeep import run_upkeep

Observer = Callable[[list[Fact], list[str], int], None]


class ReadingService(Protocol):
    """A service without deciders: it reads ledgers and acts on what they say."""

    ready: bool
    caught_up: CaughtUp

    async def run(self) -> None:
        """Work until cancelled."""
        ...


async def run_reader(
    name: str, settings: Settings, build: Callable[[Metrics], ReadingService]
) -> None:
    """Run a reader with its endpoint until SIGTERM or SIGINT; raises what ends it otherwise."""
    telemetry = start_telemetry(name, settings)
    reader = build(telemetry.metrics)
    serve_endpoint(telemetry.metrics, settings, lambda: reader.ready, reader.caught_up)
    settle_heap()
    task = asyncio.ensure_future(reader.run())
    background = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await asyncio.wait([task])
    background.cancel()
    telemetry.spans.shutdown()
    if not task.cancelled():
        task.result()


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
