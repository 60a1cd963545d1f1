"""Probes learn which paths an engine has, and forgive a busy one a missing answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest

from services.throttle.upstreams import probes
from services.throttle.upstreams.metrics_text import UNKNOWN, EngineFigures
from services.throttle.upstreams.probes import METRICS_RETRY, UpstreamProbe
from services.throttle.upstreams.upstream import PooledUpstream
from shared.contracts.endpoints import Upstream
from tests.services.throttle.upstreams.engines import RawEngine, Serve, answer, raw_engine

METRICS = b"vllm:num_requests_running 3\nvllm:num_requests_waiting 2\n"
MISSING = answer(b"", "404 Not Found")


class Engine:
    """An engine with an answer per path, and the paths that it was sent."""

    def __init__(self, **answers: bytes) -> None:
        self.answers = answers
        self.paths: list[str] = []

    def make(self, engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await engine.read_request(reader)
                path = engine.heads[-1].split()[1]
                self.paths.append(path)
                writer.write(self.answers.get(path.rpartition("/")[2], MISSING))
                await writer.drain()

        return serve


@asynccontextmanager
async def probe_of(
    serve: Callable[[RawEngine], Serve],
) -> AsyncIterator[tuple[PooledUpstream, Callable[[], AsyncIterator[None]]]]:
    async with raw_engine(serve) as raw, aiohttp.ClientSession() as session:
        upstream = PooledUpstream(Upstream(name="u", url=raw.url, max_requests=8))
        probe = UpstreamProbe(upstream)

        async def run() -> AsyncIterator[None]:
            while True:
                await probe.run(session)
                yield

        yield upstream, run


async def test_health_and_load_are_read() -> None:
    engine = Engine(health=answer(b""), metrics=answer(METRICS))
    async with probe_of(engine.make) as (upstream, run):
        upstream.in_flight = 1
        await anext(run())
    assert (upstream.health_reason, upstream.figures) == ("", EngineFigures(3, 2, None))
    # Five requests are there, of which one is ours.
    assert (upstream.foreign, upstream.is_overloaded(0)) == (4, True)
    assert engine.paths == ["/health", "/metrics"]


async def test_a_service_without_health_and_metrics_is_probed_by_its_models() -> None:
    engine = Engine(models=answer(b"{}"))
    async with probe_of(engine.make) as (upstream, run):
        steps = run()
        for _ in range(METRICS_RETRY + 2):
            await anext(steps)
    assert (upstream.health_reason, upstream.figures) == ("", UNKNOWN)
    assert engine.paths.count("/metrics") == 2
    assert engine.paths.count("/health") == 1
    assert engine.paths.count("/v1/models") == METRICS_RETRY + 2


@pytest.mark.parametrize("status", ["503 Loading", "500 Dead", "401 Key", "302 Moved"])
async def test_a_status_that_is_not_well_takes_it_out_until_it_is(status: str) -> None:
    engine = Engine(health=answer(b"", status))
    async with probe_of(engine.make) as (upstream, run):
        await anext(run())
        assert upstream.reason(0) == f"health: status {status[:3]}"
        assert (upstream.room(0), upstream.capacity(0)) == (0, 0)
        engine.answers["health"] = answer(b"")
        await anext(run())
        assert (upstream.reason(0), upstream.room(0)) == ("", 8)


async def test_a_busy_engine_may_miss_probes_but_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "PROBE_TIMEOUT_S", 0.05)

    def silent(engine: RawEngine) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        return serve

    async with probe_of(silent) as (upstream, run):
        steps, reasons = run(), []
        for _ in range(3):
            await anext(steps)
            reasons.append(upstream.reason(0))
    assert reasons == ["", "", "health: no answer in time"]


async def test_figures_that_cannot_be_read_any_more_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = Engine(health=answer(b""), metrics=answer(METRICS))
    async with probe_of(engine.make) as (upstream, run):
        for metrics in (answer(b"", "500 Error"), answer(METRICS + b"#" * 2000), answer(b"\xff{")):
            engine.answers["metrics"] = answer(METRICS)
            await anext(run())
            assert upstream.figures.running == 3
            monkeypatch.setattr(probes, "MAX_METRICS_BYTES", 1000)
            engine.answers["metrics"] = metrics
            await anext(run())
            assert (upstream.figures, upstream.foreign) == (UNKNOWN, 0)
