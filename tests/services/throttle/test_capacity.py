"""The engines of a lane are reported: at once what decides, their loads now and then."""

from __future__ import annotations

import asyncio
from pathlib import Path

from services.throttle.capacity import HEALTH_S, LOAD_S, CapacityReports
from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.upstreams.pool import UpstreamPool
from shared.contracts.endpoints import EndpointDeleted, Upstream
from shared.contracts.llm import CapacityObserved, EndpointCapacityNoted, LlmRequestRejected
from tests.harness.decider import an_input, run
from tests.patience import until
from tests.services.throttle.llm import ended, lane, local_request
from tests.services.throttle.proxy.test_serve import post, serving
from tests.services.throttle.shell import ThrottleStack, chat
from tests.services.throttle.upstreams.engines import pool_of

NOWHERE = "http://127.0.0.1:1"


def note(state: EndpointState, observed: CapacityObserved | None) -> None:
    assert observed is not None
    run(Throttle(), state, [an_input(observed, "local")])


def reports_of(state: EndpointState, pool: UpstreamPool) -> CapacityReports:
    return CapacityReports(lambda: state, pool)


async def test_standings_are_reported_first_and_loads_after_a_while() -> None:
    async with pool_of(NOWHERE) as pool:
        state = lane(capacity=0)
        reports = reports_of(state, pool)
        first = reports.observe(0.0)
        note(state, first)
        assert first is not None
        assert [(e.name, e.available, e.in_flight) for e in first.engines] == [("u0", True, 0)]
        assert reports.observe(LOAD_S) is None
        (engine,) = pool._members.all
        pool._members.begin(engine)
        assert reports.observe(LOAD_S - 1) is None
        later = reports.observe(LOAD_S)
        assert later is not None
        assert [e.in_flight for e in later.engines] == [1]


async def test_a_lane_without_engines_reports_only_that_they_are_gone() -> None:
    """An endpoint of an earlier release has no engine, and that release cannot read the report."""
    async with pool_of() as pool:
        assert reports_of(lane(capacity=0), pool).observe(0.0) is None
        assert reports_of(EndpointState(0), pool).observe(0.0) is None
        gone = reports_of(lane(capacity=4), pool).observe(0.0)
        assert gone is not None and gone.requests == 0


async def test_the_engines_of_a_deleted_endpoint_are_left_once_nothing_runs() -> None:
    async with pool_of(NOWHERE) as pool:
        state = lane(capacity=1)
        reports = reports_of(state, pool)
        run(Throttle(), state, [local_request("r1")])
        reports.release_idle()
        run(Throttle(), state, [an_input(EndpointDeleted(endpoint="chat", partition=0), "access")])
        reports.release_idle()
        assert len(pool.states()) == 1
        run(Throttle(), state, [ended("r1")])
        reports.release_idle()
        assert pool.states() == ()
        assert reports.observe(LOAD_S) is None


async def test_an_engine_that_goes_away_is_reported_after_a_second_at_most() -> None:
    async with pool_of(NOWHERE) as pool:
        state = lane(capacity=0)
        reports = reports_of(state, pool)
        note(state, reports.observe(0.0))
        (engine,) = pool._members.all
        engine.health_reason = "health: connection failed"
        early = reports.observe(HEALTH_S / 2)
        assert early is not None
        assert (early.requests, early.away) == (0, "u0: health: connection failed")
        assert early.engines == ()
        note(state, early)
        due = reports.observe(HEALTH_S)
        assert due is not None
        assert [(e.available, e.reason) for e in due.engines] == [
            (False, "health: connection failed")
        ]


async def test_an_engine_that_asked_for_a_pause_is_not_away() -> None:
    async with pool_of(NOWHERE, NOWHERE) as pool:
        resting, failed = pool._members.all
        failed.health_reason = "health: status 500"
        resting.breaker.rest(pool._clock(), 30.0)
        assert (pool.capacity, pool.away) == (0, "")
        resting.drained = True
        assert pool.away == "u0: drained; u1: health: status 500"


async def test_a_client_without_engines_gets_503_with_the_reason(tmp_path: Path) -> None:
    stack = ThrottleStack(tmp_path, away_timeout_s=0.2)
    away = (Upstream(name="e0", url=NOWHERE),)
    stack.endpoint = stack.endpoint.model_copy(update={"upstreams": away})
    stack.access(stack.endpoint)
    async with stack.running() as client:
        await until(lambda: stack.lane.state.away != "")
        await asyncio.sleep(0.25)
        status, body, headers = await post(client, chat())
    assert (status, body["error"]["code"]) == (503, "upstream_unavailable")
    assert "e0: health: connection failed" in body["error"]["message"]
    assert (headers["retry-after"], headers["x-should-retry"]) == ("5", "true")
    assert stack.only(LlmRequestRejected).reason == "upstream_unavailable"


async def test_the_ledger_has_the_standings_of_the_engines(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, _):
        await until(lambda: any(noted.engines for noted in noted_by(stack)))
    (engine,) = next(noted.engines for noted in noted_by(stack) if noted.engines)
    assert (engine.name, engine.available, engine.in_flight) == ("e0", True, 0)


def noted_by(stack: ThrottleStack) -> list[EndpointCapacityNoted]:
    return [event for event in stack.events() if isinstance(event, EndpointCapacityNoted)]
