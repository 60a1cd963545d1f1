"""Every record of a requests topic becomes one command of its tenant, the same one each time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.gateway.core.llm_submission import MOST_BODY_BYTES
from services.gateway.core.submission import Sender
from services.gateway.kafka.inbound import RoutedCommand, SubmissionRecord
from services.gateway.kafka.inbound_requests import route_request
from shared.contracts.access import TenantRegistered
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.identity import derive_command_id
from shared.contracts.job_commands import RejectSubmission
from shared.contracts.llm import ServeLlmRequest
from shared.contracts.pools import PoolConfigured
from shared.contracts.registry import AccessView
from shared.ledger import cloudevents

ADA = Sender("ada", "main")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
REQUEST = {"request_id": "r1", "endpoint": "chat", "body": {"messages": []}}


def view() -> AccessView:
    access = AccessView()
    access.apply(PoolConfigured(pool="main", partition=1))
    access.apply(EndpointConfigured(endpoint="org/Chat", partition=3, aliases=("chat",)))
    access.apply(TenantRegistered(tenant="ada", default_pool="main"))
    return access


def record(data: Any, type_: str = "llm.serve.v1", tenant: str = "") -> bytes:
    return cloudevents.encode(
        id="mine",
        source="/me",
        type=type_,
        data=json.dumps(data).encode(),
        tenant=tenant,
        traceparent=TRACE,
    )


def routed(value: bytes | None, sender: Sender = ADA) -> RoutedCommand:
    return route_request(SubmissionRecord("requests.ada", 0, 7, value), sender, view())


def test_a_request_goes_to_the_lane_of_its_endpoint_as_its_tenant() -> None:
    made = routed(record(REQUEST))
    assert made.id == derive_command_id("requests.ada", 0, 7)
    assert (made.topic, made.lane, made.subject) == ("llm.requests", 3, "r1")
    assert made.traceparent == TRACE
    assert made.command == ServeLlmRequest(
        request_id="r1",
        tenant="ada",
        endpoint="org/Chat",
        model="chat",
        body={"model": "chat", "messages": []},
    )


def test_one_to_no_endpoint_goes_to_a_lane_that_refuses_it() -> None:
    made = routed(record({**REQUEST, "endpoint": "gone"}))
    assert (made.topic, made.lane) == ("llm.requests", 0)
    assert isinstance(made.command, ServeLlmRequest)
    assert made.command.endpoint == "gone"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no data"),
        (b"\xff", "not JSON"),
        (record({**REQUEST, "tenant": "bob"}), "tenant = 'bob': must be the sender's own"),
        (record(REQUEST, tenant="bob"), "tenant = 'bob': must be the sender's own"),
        (record(REQUEST, "job.submit.v1"), "type: unknown; it must be llm.serve.v1"),
        (record({**REQUEST, "colour": 1}), "colour"),
        (record({"endpoint": "chat"}), "request_id"),
        (record({**REQUEST, "body": {"model": "other"}}), "body.model = 'other'"),
        (record({**REQUEST, "body": {"text": "x" * MOST_BODY_BYTES}}), "bytes; at most"),
        (record([1]), "JSON object"),
    ],
)
def test_one_that_is_not_valid_is_rejected_with_its_reason(
    value: bytes | None, reason: str
) -> None:
    made = routed(value)
    assert isinstance(made.command, RejectSubmission)
    assert reason in made.command.reason or value is None
    assert (made.topic, made.lane, made.command.tenant) == ("commands", 1, "ada")
    assert (made.command.topic, made.command.offset) == ("requests.ada", 7)


def test_one_of_a_tenant_that_is_not_registered_is_rejected() -> None:
    made = routed(record(REQUEST), Sender("eve", ""))
    assert isinstance(made.command, RejectSubmission)
    assert made.command.reason == "tenant: not registered or retired"
