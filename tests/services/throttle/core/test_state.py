from __future__ import annotations

import pickle

import pytest

from services.throttle.core.state import HALF_LIFE_MS, EndpointState, EngineSpeed, LlmRequest
from tests.services.throttle.llm import BATCH, lane


def test_a_request_holds_its_prompt_and_the_tokens_made() -> None:
    request = LlmRequest("r1", "a", prompt_tokens=10, max_output_tokens=50, queued_at=0)
    request.made_tokens = 20
    assert (request.held_tokens, request.remaining_tokens, request.peak_tokens) == (30, 30, 60)


def test_the_speed_is_the_configured_one_until_a_second_was_measured() -> None:
    speed = EngineSpeed()
    speed.start(0)
    speed.add_tokens(40, 999)
    assert speed.tokens_per_s(100.0) == 100.0
    speed.add_tokens(0, 2000)
    assert speed.tokens_per_s(100.0) == pytest.approx(20, rel=0.05)


def test_a_measurement_weighs_half_after_the_half_life() -> None:
    speed = EngineSpeed(tokens=100.0, busy_ms=1000.0)
    speed.add_tokens(0, HALF_LIFE_MS)
    assert (speed.tokens, speed.busy_ms) == (50.0, 500.0 + HALF_LIFE_MS)


def test_a_clock_that_goes_back_adds_no_busy_time() -> None:
    speed = EngineSpeed(measured_at=1000)
    speed.add_tokens(10, 500)
    assert (speed.tokens, speed.busy_ms, speed.measured_at) == (10.0, 0.0, 1000)


def test_the_expected_share_moves_slowly_to_that_of_the_answers() -> None:
    speed = EngineSpeed()
    speed.add_answer(0.5)
    assert speed.output_share == pytest.approx(0.95)


def test_a_lane_without_an_endpoint_has_no_name_and_no_room() -> None:
    assert (EndpointState(0).endpoint_name, EndpointState(0).batch_tokens) == ("", 0)
    assert (lane().endpoint_name, lane().batch_tokens) == ("chat", BATCH)


def test_a_snapshot_equals_the_state() -> None:
    assert pickle.loads(pickle.dumps(lane())) == lane()
