"""Estimates how long a request will wait, from what the engines made lately."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from services.throttle.core.disciplines.competition import Ahead
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.state import EndpointState

MOST_PLACES = 16
"""Running requests that are regarded one by one; of more, these stand for all."""

FIRST_TOKENS_PER_S = 30.0
"""Speed of one request before any was measured."""


class WaitEstimate(NamedTuple):
    """Requests served before this one, and the estimated wall seconds until its start."""

    ahead: int
    wait_s: float | None
    """None while no engine takes requests: when one will is not known."""


@dataclass(frozen=True, slots=True)
class TokenPace:
    """Seconds that an answer takes: tokens of a request per second, the same for each."""

    tokens_per_s: float

    def duration_s(self, tokens: float) -> float:
        return tokens / self.tokens_per_s


def estimate_wait(state: EndpointState, request: ServedRequest) -> WaitEstimate:
    """Return how long a request that arrives now will wait; unknown without engines."""
    estimate = estimate_at_engines(state, request)
    return estimate if state.capacity else estimate._replace(wait_s=None)


def estimate_at_engines(state: EndpointState, request: ServedRequest) -> WaitEstimate:
    """Return how long a request that arrives now will wait, if tenants send on as they did.

    Each place of the engines serves one request after the other, in the order of the discipline,
    at the pace that was measured. Learning from the error of earlier estimates was tried: it made
    them worse, as an error is known only a wait later.
    """
    places = usable_places(state)
    if not state.waiting and len(state.running) < places:
        return WaitEstimate(0, 0.0)
    ahead = state.discipline.ahead_of(request, state.speed.expected_tokens)
    position = ahead.count - ahead.coming
    if position < places - len(state.running):
        return WaitEstimate(position, 0.0)
    usual = state.speed.expected_tokens(request)
    tokens = tokens_until_start(state, ahead, places, usual)
    return WaitEstimate(position, measured_pace(state).duration_s(tokens))


def usable_places(state: EndpointState) -> int:
    """Return how many requests run at once: fewer than the capacity where tokens limit them."""
    has_limit = state.endpoint is not None and state.endpoint.batch_tokens is not None
    if has_limit and state.waiting and state.running:
        return len(state.running)
    return max(state.capacity, 1)


def measured_pace(state: EndpointState) -> TokenPace:
    """Return the pace of one request, from the speed of all that run."""
    tokens_per_s = state.speed.tokens_per_s()
    if tokens_per_s is None:
        return TokenPace(FIRST_TOKENS_PER_S)
    return TokenPace(max(tokens_per_s / max(len(state.running), 1), 1e-3))


def tokens_until_start(state: EndpointState, ahead: Ahead, places: int, usual: float) -> float:
    """Return what one place makes until one is free behind the requests ahead.

    Each takes the place that is free first. Those that are not named have equal answers, so that
    the places take turns. The less is known of lengths, the earlier one of several places is free:
    at that moment the others have more to do than half of an answer.
    """
    expected = state.speed.expected_tokens
    first = ends_of_running(state, places)
    if not ahead.count:
        return first[0]
    ends = first.copy()  # Sorted, so a heap.
    for served in ahead.requests:
        heapq.heapreplace(ends, ends[0] + expected(served))
    length = usual if ahead.tokens is None else ahead.tokens / ahead.count
    tokens = ends[0]
    unnamed = ahead.count - len(ahead.requests)
    if unnamed:
        turns, place = divmod(unnamed, places)
        ends.sort()
        tokens = turns * length + ends[place * len(ends) // places]
    earlier = (places - 1) / places * state.speed.spread / 2 * length
    return max(tokens - earlier, first[0])


def ends_of_running(state: EndpointState, places: int) -> list[float]:
    """Return, in order, what each place makes until it is free; of many places, a part."""
    key = state.progress, places
    if state.ends is None or state.ends[0] != key:
        state.ends = key, sorted(_ends(state, places))
    return state.ends[1]


def _ends(state: EndpointState, places: int) -> list[float]:
    expected = state.speed.expected_tokens
    part = len(state.running) // MOST_PLACES + 1
    running = islice(state.running.values(), 0, None, part)
    ends = [remaining_tokens(expected(r.served), r.served) for r in running]
    return ends + [0.0] * (max(places - len(state.running), 0) // part)


def remaining_tokens(expected_tokens: float, served: ServedRequest) -> float:
    """Return what a running answer is expected to make still; a long one, a part of the rest."""
    rest = expected_tokens - served.made_tokens
    return rest if rest > 0 else min(expected_tokens, served.remaining_tokens) / 2
