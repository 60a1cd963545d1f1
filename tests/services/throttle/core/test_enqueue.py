from __future__ import annotations

from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.endpoints import TokenBudget
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected
from shared.ledger.decider import Input
from tests.harness.decider import AT, an_input, run
from tests.services.throttle.llm import command, ended, endpoint, lane, local_request, serve_command


def offer(state: EndpointState, *inputs: Input, now: int = AT) -> list[Any]:
    return run(Throttle(), state, inputs, now)


def rejection(state: EndpointState, request: Input, now: int = AT) -> LlmRequestRejected:
    (event,) = offer(state, request, now=now)
    assert isinstance(event, LlmRequestRejected)
    return event


def queued(state: EndpointState, request: Input, now: int = AT) -> LlmRequestQueued:
    event = offer(state, request, now=now)[0]
    assert isinstance(event, LlmRequestQueued)
    return event


def test_a_refused_command_has_a_refusal_and_an_event() -> None:
    refused, rejected = offer(lane(), command("r1", "nobody-s", id="c1"))
    assert isinstance(refused, CommandRefused)
    assert (refused.reason, rejected.reason) == ("unknown_tenant", "unknown_tenant")
    assert refused.detail == "tenant: 'nobody-s': unknown or retired"


def test_a_repeated_command_is_a_duplicate_and_a_redelivered_one_is_silent() -> None:
    state = lane()
    offer(state, command("r1", id="c1"))
    assert offer(state, command("r1", id="c1")) == []
    (again,) = offer(state, command("r1", id="c2"))
    assert isinstance(again, CommandAccepted)
    assert again.duplicate
    offer(state, ended("r1"))
    assert offer(state, local_request("r1")) == []


@pytest.mark.parametrize(
    ("settings", "request_", "reason"),
    [
        ({"tenants": ("b",)}, {}, "not_allowed"),
        ({"drained": True}, {}, "endpoint_drained"),
        ({}, {"prompt": 995}, "too_large"),
        ({"batch_tokens": None, "discipline": "rpm", "tenant_per_minute": 1}, {}, "request_rate"),
    ],
)
def test_each_refusal_has_its_reason(
    settings: dict[str, Any], request_: dict[str, Any], reason: str
) -> None:
    state = lane(settings=endpoint(**settings))
    if reason == "request_rate":
        offer(state, local_request("first"))
    event = rejection(state, local_request("r1", **request_))
    assert event.reason == reason
    assert event.detail


def test_a_command_without_a_body_or_for_a_model_of_another_endpoint_is_refused() -> None:
    for body, model, reason in ((None, None, "no_body"), ({"model": "b"}, "b", "model_not_found")):
        request = serve_command("r1", body=body, model=model)
        refused, rejected = offer(lane(), an_input(request, "llm.requests", tenant="a"))
        assert isinstance(refused, CommandRefused)
        assert (refused.reason, rejected.reason) == (reason, reason)


def test_a_command_is_queued_with_the_place_of_its_body_and_the_limit_of_its_endpoint() -> None:
    state = lane(settings=endpoint(output_limit=50))
    events = offer(state, command("r1", most=0, place="0/7"))
    (event,) = (event for event in events if isinstance(event, LlmRequestQueued))
    assert (event.place, event.max_output_tokens) == ("0/7", 50)
    assert queued(lane(), local_request("r2")).place == ""


def test_a_tenant_may_not_send_for_another() -> None:
    (refused,) = offer(lane(), an_input(serve_command("r1", "a"), "llm.requests", tenant="b"))
    assert refused.reason == "tenant_mismatch"


def test_an_open_id_of_another_tenant_is_in_use() -> None:
    state = lane()
    offer(state, local_request("r1", "a"))
    (refused,) = offer(state, command("r1", "b"))
    assert refused.reason == "request_id_taken"


def test_a_full_queue_says_when_to_come_back() -> None:
    state = lane(capacity=1, settings=endpoint(queue_limit=2))
    offer(state, *(local_request(f"r{n}", most=100) for n in range(3)))
    event = rejection(state, local_request("r3"))
    assert event.reason == "queue_full"
    assert event.detail == "tenant: 'a': queue limit (2 requests) reached"
    assert event.retry_after_s is not None
    assert event.retry_after_s > 0
    assert queued(state, local_request("b1", "b")).request_id == "b1"


def test_a_retired_tenant_is_refused() -> None:
    state = lane(TenantNoted(tenant="a", active=False))
    assert rejection(state, local_request("r1")).reason == "unknown_tenant"


def test_concurrent_requests_never_pass_a_budget_together() -> None:
    budget = TokenBudget(holder="tenant", unit="tokens", limit=100, memory="window", period_s=60)
    state = lane(settings=endpoint(budgets=(budget,)))
    events = offer(state, *(local_request(f"r{n}", prompt=20, most=20) for n in range(4)))
    rejected = [event.request_id for event in events if isinstance(event, LlmRequestRejected)]
    assert rejected == ["r2", "r3"]
    offer(state, ended("r0", output=5), now=AT + 1000)
    assert queued(state, local_request("r4", prompt=20, most=0 + 15), now=AT + 1000)


def test_a_call_continues_an_interaction_that_was_called_lately() -> None:
    state = lane()
    stages = [
        queued(state, local_request(f"r{n}", interaction="plan-1"), now=AT + 1000 * n).stage
        for n in range(3)
    ]
    assert stages == [0, 1, 2]
    other = queued(state, local_request("b1", "b", interaction="plan-1"))
    assert other.stage == 0
    late = queued(state, local_request("r9", interaction="plan-1"), now=AT + 602_001)
    assert late.stage == 0


def test_fields_of_the_request_are_in_its_event() -> None:
    event = queued(
        lane(settings=endpoint(classes=3)),
        local_request(
            "r1",
            application="search",
            user="eve",
            model="chat-lora",
            priority=2,
            first_token_ms=500,
            prefix=("p1",),
            system_tokens=4,
        ),
    )
    assert (event.application, event.user, event.model) == ("search", "eve", "chat-lora")
    assert (event.priority, event.first_token_by, event.prefix) == (2, AT + 500, ("p1",))
    assert event.system_tokens == 4


def test_only_an_interaction_with_an_issued_id_is_not_throttled() -> None:
    """A bare id groups the calls, which are counted and can be refused as any first call."""
    settings = endpoint(throttles=True, tenant_per_minute=2, application_per_minute=100)
    state = lane(settings=settings, capacity=1)
    for n in range(3):
        queued(state, local_request(f"r{n}", "b" if n else "a", interaction="plan-1"))
    refused = rejection(state, local_request("r3", "b", interaction="plan-1"))
    assert refused.reason == "tenant_rate"
    event = queued(state, local_request("r4", "b", interaction="plan-1", is_issued=True))
    assert (event.stage, event.is_issued) == (2, True)
    unknown = local_request("r5", "b", interaction="never-called", is_issued=True)
    assert rejection(state, unknown).reason == "tenant_rate"


def test_a_refused_request_is_recorded_with_endpoint_user_and_application() -> None:
    request = local_request("r1", "stranger", application="search", user="eve", model="m2")
    event = rejection(lane(), request)
    assert (event.endpoint, event.application) == ("chat", "search")
    assert (event.user, event.model) == ("eve", "m2")
