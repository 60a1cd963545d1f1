"""Estimates how long a request will wait, from what the engines made lately."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.state import EndpointState

FIRST_TOKENS_PER_S = 30.0
"""Speed of one request before any was measured."""


class WaitEstimate(NamedTuple):
    """Requests served before this one, and the estimated wall seconds until its start."""

    ahead: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that an answer takes: tokens of a request per second, the same for each."""

    tokens_per_s: float

    def duration_s(self, tokens: float) -> float:
        return tokens / self.tokens_per_s


def estimate_wait(state: EndpointState, request: ServedRequest) -> WaitEstimate:
    """Return how long a request that arrives now will wait, if no other arrives.

    Each place of the engines serves one request after the other, in the order of the discipline,
    at the pace that was measured. Learning from the error of earlier estimates was tried: it made
    them worse, as an error is known only a wait later.
    """
    expected = state.speed.expected_lengths()
    ahead = state.discipline.ahead_of(
        request, lambda r: LINEAR.of(r.prompt_tokens, expected(r.max_output_tokens))
    )
    places = usable_places(state)
    if ahead.count < places - len(state.running):
        return WaitEstimate(ahead.count, 0.0)
    pace = measured_pace(state)
    wait_s = seconds_until_start(state, ahead.requests, places, pace)
    beyond = ahead.count - len(ahead.requests)
    usual = state.speed.expected_tokens(request.max_output_tokens)
    wait_s += beyond * pace.duration_s(usual) / places
    return WaitEstimate(ahead.count, wait_s)


def usable_places(state: EndpointState) -> int:
    """Return how many requests run at once: fewer than the capacity where tokens limit them."""
    has_limit = state.endpoint is not None and state.endpoint.batch_tokens is not None
    if has_limit and state.waiting and state.running:
        return len(state.running)
    return max(state.capacity, 1)


def measured_pace(state: EndpointState) -> Pace:
    """Return the pace of one request, from the speed of all that run."""
    tokens_per_s = state.speed.tokens_per_s()
    if tokens_per_s is None:
        return Pace(FIRST_TOKENS_PER_S)
    return Pace(max(tokens_per_s / max(len(state.running), 1), 1e-3))


def seconds_until_start(
    state: EndpointState, ahead: Sequence[ServedRequest], places: int, pace: Pace
) -> float:
    """Return when a place is free behind the requests ahead, each taking the place free first."""
    expected = state.speed.expected_lengths()
    ends_s = [
        pace.duration_s(remaining_tokens(expected(served.max_output_tokens), served))
        for served in (request.served for request in state.running.values())
    ]
    ends_s += [0.0] * (places - len(ends_s))
    heapq.heapify(ends_s)
    for served in ahead:
        duration_s = pace.duration_s(expected(served.max_output_tokens))
        heapq.heapreplace(ends_s, ends_s[0] + duration_s)
    return ends_s[0]


def remaining_tokens(expected_tokens: float, served: ServedRequest) -> float:
    """Return what a running answer is expected to make still; a long one, a part of the rest."""
    rest = expected_tokens - served.made_tokens
    return rest if rest > 0 else min(expected_tokens, served.remaining_tokens) / 2
