from __future__ import annotations

import random
from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.estimate import FIRST_TOKENS_PER_S, WaitEstimate, estimate_wait
from services.throttle.core.state import EndpointState
from shared.contracts.endpoints import EndpointConfigured
from simulator.llm.live_endpoint import LiveEndpoint
from simulator.llm.requests import TraceRequest
from tests.harness.decider import AT, run
from tests.services.throttle.llm import endpoint, lane, local_request, made


def wait(state: EndpointState, tenant: str = "a") -> WaitEstimate:
    return estimate_wait(state, ServedRequest("new", tenant, 10, 100, AT))


def filled(capacity: int = 1, waiting: int = 0, **settings: Any) -> EndpointState:
    state = lane(capacity=capacity, settings=endpoint(batch_tokens=None, **settings))
    requests = [local_request(f"r{n}", most=100) for n in range(capacity + waiting)]
    run(Throttle(), state, requests)
    return state


def test_a_free_place_means_no_wait() -> None:
    assert wait(lane(capacity=1)) == WaitEstimate(0, 0.0)


def test_without_engines_the_wait_is_unknown_and_the_place_is_not() -> None:
    state = lane(capacity=0)
    assert wait(state) == WaitEstimate(0, None)
    run(Throttle(), state, [local_request(f"r{n}") for n in range(3)])
    assert wait(state) == WaitEstimate(3, None)


def test_before_anything_was_measured_half_of_each_limit_is_expected() -> None:
    assert wait(filled()) == WaitEstimate(0, 50 / FIRST_TOKENS_PER_S)
    assert wait(filled(waiting=2)).wait_s == pytest.approx(3 * 50 / FIRST_TOKENS_PER_S)


def test_the_measured_speed_is_shared_by_those_that_run() -> None:
    state = filled(capacity=2)
    for second in range(1, 11):
        run(Throttle(), state, [made(r0=4, r1=4)], AT + 1000 * second)
    assert wait(state).wait_s == pytest.approx(10 / 4, rel=0.02)


def test_only_requests_that_go_first_count() -> None:
    state = filled(waiting=4)
    assert wait(state, "b").ahead < wait(state, "a").ahead == 4


def test_where_tokens_limit_the_batch_the_running_requests_are_its_places() -> None:
    state = lane(capacity=100)
    run(Throttle(), state, [local_request(f"r{n}", prompt=390, most=100) for n in range(3)])
    assert len(state.running) == 2
    assert (wait(state).wait_s or 0.0) > 0


@pytest.mark.parametrize("discipline", ["fcfs", "berth"])
def test_estimated_waits_are_near_the_real_ones_under_a_steady_overload(discipline: Any) -> None:
    """Two tenants keep an engine of four places busy; the median ratio is near one."""
    chance = random.Random(1)
    requests = [
        TraceRequest(
            f"{tenant}-{number}",
            tenant,
            chance.uniform(0, 200),
            chance.randint(20, 400),
            max(1, int(chance.lognormvariate(4.2, 0.7))),
        )
        for tenant in ("a", "b")
        for number in range(150)
    ]
    settings = EndpointConfigured(
        endpoint="m", partition=0, discipline=discipline, queue_limit=1000, queue_timeout_s=86_400
    )
    waits = LiveEndpoint(settings, slots=4).run(requests)
    assert len(waits) == len(requests)
    ratios = sorted(wait.estimated_s / wait.waited_s for wait in waits if wait.waited_s > 1)
    assert len(ratios) > 200
    assert 0.8 < ratios[len(ratios) // 2] < 1.25
    assert ratios[len(ratios) // 10] > 0.5
    assert ratios[9 * len(ratios) // 10] < 2
