"""The gauges of an endpoint with a full batch."""

from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.figures import figures
from shared.contracts.endpoints import Upstream
from tests.harness.decider import AT, run
from tests.services.throttle.llm import BATCH, endpoint, lane, local_request


def test_the_gauges_count_requests_and_measure_the_batch() -> None:
    state = lane()
    run(
        Throttle(),
        state,
        [local_request("r1", prompt=BATCH - 10, most=10), local_request("r2", prompt=10, most=10)],
    )
    gauges = {
        (name.removeprefix("berth_llm_"), *labels): v
        for name, v, labels in figures(state, AT + 2000)
    }
    assert gauges["requests", "chat", "running"] == gauges["requests", "chat", "waiting"] == 1
    assert gauges["oldest_wait_seconds", "chat"] == 2
    assert gauges["batch_ratio", "chat"] == (BATCH - 10) / BATCH
    assert gauges["service_gap_tokens", "chat"] == 0


def test_the_capacity_is_shown_where_engines_should_be() -> None:
    engine = Upstream(name="a", url="http://127.0.0.1:1")
    shown = {
        name: [f.value for f in figures(state, AT) if f.name == "berth_llm_capacity_requests"]
        for name, state in {
            "away": lane(capacity=0, settings=endpoint(upstreams=(engine,))),
            "there": lane(capacity=7, settings=endpoint(upstreams=(engine,))),
            "none": lane(capacity=0),
            "drained": lane(capacity=0, settings=endpoint(upstreams=(engine,), drained=True)),
            "engines_drained": lane(
                capacity=0,
                settings=endpoint(upstreams=(engine.model_copy(update={"drained": True}),)),
            ),
        }.items()
    }
    assert shown == {"away": [0], "there": [7], "none": [], "drained": [], "engines_drained": []}


def test_a_lane_without_an_endpoint_has_no_gauges() -> None:
    assert list(figures(EndpointState(0), AT)) == []


def test_a_step_of_the_clock_makes_no_request_old() -> None:
    state = lane(capacity=0)
    run(Throttle(), state, [local_request("r1")])
    state.stepped_ms = 3_600_000
    values = {figure.name: figure.value for figure in figures(state, AT + 3_601_000)}
    assert values["berth_llm_oldest_wait_seconds"] == 1
