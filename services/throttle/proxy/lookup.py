"""Looks up the lane of this process that serves a request: of its endpoint, or of a fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from services.throttle.core.state import EndpointState
from services.throttle.dispatch import Dispatcher
from services.throttle.relay.errors import ErrorAnswer, refuse
from shared.bus.hosting.access import CATCH_UP_S
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.registry import AccessView, Bearer

POLL_S = 0.02

Dispatchers = Callable[[], Mapping[int, Dispatcher]]


async def choose_dispatcher(
    dispatchers: Dispatchers, view: AccessView, bearer: Bearer, endpoint: EndpointConfigured
) -> Dispatcher:
    """Return the dispatcher of the endpoint, or of its first fallback whose engines answer.

    Without either the request waits for the engines of its own endpoint. Raises ErrorAnswer if
    another process holds that lane, or if the endpoint has no engines.
    """
    own = dispatchers().get(endpoint.partition)
    tenant = bearer.tenant
    if own is not None and tenant is not None and not _serves(own.state, endpoint, tenant):
        await _until_served(own, endpoint, tenant)
    for candidate in (endpoint, *_fallbacks(view, bearer, endpoint)):
        dispatcher = dispatchers().get(candidate.partition)
        if (
            dispatcher is not None
            and _holds(dispatcher, candidate)
            and dispatcher.upstreams.takes_requests
        ):
            return dispatcher
    if own is None or not _holds(own, endpoint):
        raise unavailable()
    if not endpoint.upstreams:
        text = f"model: endpoint {endpoint.endpoint} has no upstream"
        raise refuse("endpoint_unavailable", text, retry_after_s=30.0)
    return own


def unavailable() -> ErrorAnswer:
    """Return the error of an endpoint whose lane another process holds, or will hold soon."""
    text = "model: its endpoint is not served by this process; retry"
    return refuse("endpoint_unavailable", text, retry_after_s=1.0)


def _fallbacks(
    view: AccessView, bearer: Bearer, endpoint: EndpointConfigured
) -> Iterator[EndpointConfigured]:
    for name in endpoint.fallbacks:
        fallback = view.endpoints.get(name)
        if fallback is not None and bearer.may_call(name, fallback):
            yield fallback


async def _until_served(dispatcher: Dispatcher, endpoint: EndpointConfigured, tenant: str) -> None:
    """Wait until the lane, which reads `access` at its own pace, knows endpoint and tenant."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CATCH_UP_S):
            while not _serves(dispatcher.state, endpoint, tenant):
                await asyncio.sleep(POLL_S)


def _holds(dispatcher: Dispatcher, endpoint: EndpointConfigured) -> bool:
    """Return whether the lane is ready, and that of this endpoint: one that was deleted leaves its
    lane to another, which the bearer may have no right to call."""
    return dispatcher.ready and dispatcher.state.endpoint_name == endpoint.endpoint


def _serves(state: EndpointState, endpoint: EndpointConfigured, tenant: str) -> bool:
    noted = state.tenants.get(tenant)
    return state.endpoint_name == endpoint.endpoint and noted is not None and noted.active
