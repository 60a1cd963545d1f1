"""One endpoint, its tenants and their requests, for the tests of the throttle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.access import EndpointConfigured
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.llm import EngineAdvanced, ServeLlmRequest, TokensMade
from shared.ledger.decider import Input
from shared.testing.decider import an_input, given

BATCH = 1000
ENDPOINT = EndpointConfigured(endpoint="chat", partition=0, tokens_per_s=100.0, batch_tokens=BATCH)


def lane(
    *events: Event, tenants: Sequence[str] = ("a", "b"), throttle: Throttle | None = None
) -> EndpointState:
    known = [TenantNoted(tenant=tenant) for tenant in tenants]
    return given(throttle or Throttle(), ENDPOINT, *known, *events)


def serve_command(
    request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10
) -> ServeLlmRequest:
    return ServeLlmRequest(
        request_id=request_id,
        tenant=tenant,
        endpoint="chat",
        prompt_tokens=prompt,
        max_output_tokens=most,
    )


def command(
    request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10, **more: Any
) -> Input:
    """Return the request as the gateway puts it on `llm.requests`."""
    more.setdefault("tenant", tenant)
    return an_input(serve_command(request_id, tenant, prompt, most), "llm.requests", **more)


def local_request(request_id: str, tenant: str = "a", prompt: int = 10, most: int = 10) -> Input:
    """Return the request as the proxy offers it."""
    return an_input(serve_command(request_id, tenant, prompt, most), "local", tenant=tenant)


def made(**tokens: int) -> Input:
    """Return progress of the engine; a negative number marks a complete answer."""
    reports = (
        TokensMade(request_id=name, tokens=abs(many), done=many < 0)
        for name, many in tokens.items()
    )
    return an_input(EngineAdvanced(made=tuple(reports)), "local")
