"""Figures of an endpoint with a batch that is full."""

from __future__ import annotations

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.figures import figures
from shared.testing.decider import AT, run
from tests.services.throttle.llm import BATCH, asked, lane


def test_waiting_and_running_requests_and_how_full_the_batch_is() -> None:
    state = lane()
    run(
        Throttle(),
        state,
        [asked("r1", prompt=BATCH - 10, most=10), asked("r2", prompt=10, most=10)],
    )
    found = {
        (name.removeprefix("berth_llm_"), *labels): v
        for name, v, labels in figures(state, AT + 2000)
    }
    assert found["requests", "chat", "running"] == found["requests", "chat", "waiting"] == 1
    assert found["oldest_wait_seconds", "chat"] == 2
    assert found["batch_ratio", "chat"] == (BATCH - 10) / BATCH
    assert found["service_gap_tokens", "chat"] == 0


def test_a_lane_without_an_endpoint_says_nothing() -> None:
    assert list(figures(EndpointState(0), AT)) == []
