from __future__ import annotations

import pytest

from services.throttle.core.enqueue import Rejection, check_ownership, check_request
from services.throttle.core.state import LlmRequest
from shared.contracts.llm import ServeLlmRequest
from shared.testing.decider import an_input
from tests.services.throttle.llm import BATCH, lane

COMMAND = ServeLlmRequest(
    request_id="r1", tenant="a", endpoint="chat", prompt_tokens=10, max_output_tokens=10
)


def test_a_request_within_all_limits_passes() -> None:
    assert check_request(lane(), COMMAND, queue_limit=1) is None


@pytest.mark.parametrize(
    ("fields", "rejection"),
    [
        (
            {"endpoint": "other"},
            Rejection("unknown_endpoint", "endpoint: 'other': not on this lane"),
        ),
        ({"tenant": "ghost"}, Rejection("unknown_tenant", "tenant: 'ghost': unknown or retired")),
        (
            {"prompt_tokens": BATCH},
            Rejection("too_large", f"tokens: {BATCH + 10}: the batch holds {BATCH}"),
        ),
    ],
)
def test_a_request_beyond_a_limit_is_rejected(
    fields: dict[str, object], rejection: Rejection
) -> None:
    command = COMMAND.model_copy(update=fields)
    assert check_request(lane(), command, queue_limit=1) == rejection


def test_a_full_queue_rejects_with_the_wait_of_its_first_request() -> None:
    state = lane()
    state.running["r0"] = LlmRequest("r0", "a", BATCH - 100, 100, 0)
    state.waiting["r2"] = LlmRequest("r2", "a", 10, 100, 0)
    state.accounts["a"].queue.append("r2")
    rejection = check_request(state, COMMAND, queue_limit=1)
    detail = "tenant: 'a': queue limit (1 requests) reached"
    assert rejection == Rejection("queue_full", detail, 1.0)


def test_a_command_of_another_sender_is_refused() -> None:
    refusal = check_ownership(lane(), an_input(COMMAND, tenant="b"), COMMAND)
    assert refusal is not None
    assert refusal.reason == "tenant_mismatch"


def test_an_id_in_use_by_another_tenant_is_refused() -> None:
    state = lane()
    state.running["r1"] = LlmRequest("r1", "b", 10, 10, 0)
    refusal = check_ownership(state, an_input(COMMAND, tenant="a"), COMMAND)
    assert refusal is not None
    assert refusal.reason == "request_id_taken"
    state.running["r1"].tenant = "a"
    assert check_ownership(state, an_input(COMMAND, tenant="a"), COMMAND) is None
