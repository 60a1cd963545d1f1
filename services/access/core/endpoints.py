"""The configuration of an endpoint, whose names are its own, and its deletion."""

from __future__ import annotations

from services.access.core.lanes import lowest_free
from services.access.core.outcomes import Denial, Grant, Outcome, deny_lane, deny_version
from shared.contracts.endpoints import (
    ConfigureEndpoint,
    DeleteEndpoint,
    EndpointConfigured,
    EndpointDeleted,
)
from shared.contracts.registry import AccessView


def configure_endpoint(view: AccessView, lanes: int, command: ConfigureEndpoint) -> Outcome:
    existing = view.endpoints.get(command.endpoint)
    taken = (endpoint.partition for endpoint in view.endpoints.values())
    lane = existing.partition if existing else lowest_free(taken, lanes)
    if lane is None:
        return deny_lane("endpoint", command.endpoint, lanes)
    event = EndpointConfigured(partition=lane, **command.model_dump(exclude={"if_version"}))
    if event == existing:
        return Grant(command.endpoint, None)
    denial = deny_endpoint(view, event, existing, command.if_version)
    return denial or Grant(command.endpoint, event)


def deny_endpoint(
    view: AccessView,
    event: EndpointConfigured,
    existing: EndpointConfigured | None,
    if_version: str | None,
) -> Denial | None:
    """Return the denial of settings of an endpoint, or of a change that is based on others."""
    return (
        deny_early(view, event)
        or deny_names(view, event)
        or deny_version("endpoint", event.endpoint, existing, if_version)
    )


def deny_early(view: AccessView, event: EndpointConfigured) -> Denial | None:
    """Return the denial of a setting that the throttle of an earlier release would pass over."""
    if event.retraining is None or view.is_finished:
        return None
    detail = "retraining: is possible after `berth upgrade finish`: earlier releases lack it"
    return Denial(event.endpoint, "upgrade_not_finished", detail)


def deny_names(view: AccessView, event: EndpointConfigured) -> Denial | None:
    """Return the denial of a name that is given twice or taken, or that does not exist."""
    if denial := deny_repeats(event):
        return denial
    for model in event.models:
        owner = view.endpoint_of_model.get(model, event.endpoint)
        if owner != event.endpoint:
            detail = f"model: {model!r}: is a name of endpoint {owner}; use another name"
            return Denial(event.endpoint, "model_taken", detail)
    for name in event.fallbacks:
        if name not in view.endpoints:
            detail = f"fallbacks: {name!r}: no such endpoint; create it first"
            return Denial(event.endpoint, "unknown_endpoint", detail)
    for name in event.tenants:
        if name not in view.tenants:
            detail = f"tenants: {name!r}: no such tenant; register it first"
            return Denial(event.endpoint, "unknown_tenant", detail)
    return None


def deny_repeats(event: EndpointConfigured) -> Denial | None:
    upstreams = [upstream.name for upstream in event.upstreams]
    for field, names in (("upstreams", upstreams), ("aliases, adapters", [*event.models])):
        if twice := next((name for name in names if names.count(name) > 1), None):
            detail = f"{field}: {twice!r}: is given twice; each name once is allowed"
            return Denial(event.endpoint, "name_repeated", detail)
    if event.endpoint in event.fallbacks:
        detail = f"fallbacks: {event.endpoint!r}: is the endpoint itself; name another one"
        return Denial(event.endpoint, "fallback_to_itself", detail)
    return None


def delete_endpoint(view: AccessView, command: DeleteEndpoint) -> Outcome:
    existing = view.endpoints.get(command.endpoint)
    if existing is None:
        detail = f"endpoint: {command.endpoint!r}: no such endpoint"
        return Denial(command.endpoint, "unknown_endpoint", detail)
    user = next((n for n, e in view.endpoints.items() if command.endpoint in e.fallbacks), None)
    if user is not None:
        detail = f"endpoint: {command.endpoint!r}: is a fallback of {user}; change that first"
        return Denial(command.endpoint, "endpoint_in_use", detail)
    event = EndpointDeleted(endpoint=command.endpoint, partition=existing.partition)
    return Grant(command.endpoint, event)
