"""The headers `x-ratelimit-*`: what a tenant may still use at an endpoint."""

from __future__ import annotations

from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.state import EndpointState

UNITS = {"requests": "requests", "tokens": "tokens"}


def rate_headers(state: EndpointState, served: ServedRequest, now: int) -> dict[str, str]:
    """Return limits, what is left of them, and when more is left.

    Of several budgets in one unit the one with the least left counts; without a budget of requests
    it is the room in the tenant's queue.
    """
    limit = state.endpoint.queue_limit if state.endpoint else 0
    waiting = state.waiting_of.get(served.tenant, 0)
    left = {"requests": (float(max(limit - waiting, 0)), float(limit), 0.0)}
    for guard in state.discipline.guards:
        if isinstance(guard, Budget) and guard.prices.unit in UNITS:
            standing = guard.standing(served, now)
            if guard.prices.unit not in left or standing[0] < left[guard.prices.unit][0]:
                left[guard.prices.unit] = standing
    headers: dict[str, str] = {}
    for unit, (remaining, most, reset_s) in left.items():
        headers[f"x-ratelimit-limit-{unit}"] = f"{most:.0f}"
        headers[f"x-ratelimit-remaining-{unit}"] = f"{max(remaining, 0):.0f}"
        headers[f"x-ratelimit-reset-{unit}"] = f"{reset_s:.3f}s"
    return headers
