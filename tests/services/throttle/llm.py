"""One endpoint, its tenants and their requests, for the tests of the throttle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    CapacityObserved,
    EndpointCapacityNoted,
    EngineAdvanced,
    RequestEnd,
    RequestsEnded,
    ServeLlmRequest,
    TokensMade,
)
from shared.ledger.decider import Input
from tests.harness.decider import an_input, given

BATCH = 1000
ENDPOINT = EndpointConfigured(endpoint="chat", partition=0, batch_tokens=BATCH)


def endpoint(**settings: Any) -> EndpointConfigured:
    return ENDPOINT.model_copy(update=settings)


def lane(
    *events: Event,
    tenants: Sequence[str] = ("a", "b"),
    capacity: int = 100,
    settings: EndpointConfigured = ENDPOINT,
) -> EndpointState:
    known = [TenantNoted(tenant=tenant) for tenant in tenants]
    noted = EndpointCapacityNoted(endpoint=settings.endpoint, requests=capacity)
    return given(Throttle(), settings, *known, noted, *events)


def serve_command(
    request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10, **more: Any
) -> ServeLlmRequest:
    return ServeLlmRequest(
        request_id=request_id,
        tenant=tenant,
        endpoint="chat",
        prompt_tokens=prompt,
        max_output_tokens=most,
        **more,
    )


def command(
    request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10, **more: Any
) -> Input:
    """Return the request as the gateway puts it on `llm.requests`."""
    more = {"tenant": tenant, **more}
    request = serve_command(request_id, tenant, prompt, most, body={"messages": []})
    return an_input(request, "llm.requests", **more)


def local_request(
    request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10, **more: Any
) -> Input:
    """Return the request as the proxy offers it."""
    return an_input(serve_command(request_id, tenant, prompt, most, **more), "local", tenant=tenant)


def made(**tokens: int) -> Input:
    """Return a report of output by request."""
    reports = (TokensMade(request_id=name, tokens=many) for name, many in tokens.items())
    return an_input(EngineAdvanced(made=tuple(reports)), "local")


def ended(*request_ids: str, output: int = 5, **fields: Any) -> Input:
    """Return the ends of requests, by default complete with `output` tokens."""
    fields.setdefault("outcome", "completed")
    ends = (RequestEnd(request_id=id_, output_tokens=output, **fields) for id_ in request_ids)
    return an_input(RequestsEnded(ends=tuple(ends)), "local")


def observed(requests: int, *, overloaded: bool = False, **more: Any) -> Input:
    """Return what the engines can take, as the shell reports it."""
    return an_input(CapacityObserved(requests=requests, overloaded=overloaded, **more), "local")
