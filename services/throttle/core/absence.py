"""The time that an endpoint has been without an engine that can serve."""

from __future__ import annotations

from services.throttle.core.state import EndpointState

AWAY_RETRY_S = 5.0


def away_until(state: EndpointState) -> int | None:
    """Return when clients wait no longer for the engines; None while one can serve."""
    if state.endpoint is None or not state.away:
        return None
    return state.away_since + round(1000 * state.endpoint.away_timeout_s)


def is_away_too_long(state: EndpointState, now: int) -> bool:
    until = away_until(state)
    return until is not None and until <= now


def describe_away(state: EndpointState, now: int) -> str:
    """Return since when no engine can serve, and why."""
    limit_s = state.endpoint.away_timeout_s if state.endpoint else 0.0
    away_s = max(0, now - state.away_since) / 1000
    return (
        f"endpoint: {state.endpoint_name!r}: no engine can serve for {away_s:.0f} s, and requests "
        f"wait {limit_s:g} s for one (away_timeout_s): {state.away}"
    )
