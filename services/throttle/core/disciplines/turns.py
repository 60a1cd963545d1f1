"""Counts the requests of many queues that go before a counter, without naming them one by one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import msgspec


class QueueTurns(msgspec.Struct):
    """The turns of a queue: one when its counter is at `first`, and one each `step` beyond.

    A queue goes before a request that came later with the same counter. Behind the first turn the
    counter is on average in the middle of a step.
    """

    tenant: str
    first: float
    step: float
    count: int
    tokens: float
    """Expected output of each of its requests."""

    @property
    def last(self) -> float:
        """Return the place at which its last turn is counted."""
        return self.first + (self.count - 0.5) * self.step

    def before(self, counter: float) -> float:
        """Return how many of its requests go before a counter."""
        if counter < self.first:
            return 0.0
        return min(max((counter - self.first) / self.step + 0.5, 1.0), self.count)


class Turns(NamedTuple):
    """A number of requests, and the output that is expected of them."""

    requests: float
    tokens: float


@dataclass(frozen=True, slots=True)
class TurnProfile:
    """Turns before a counter, as a sum of lines: found in O(log n) for n queues.

    Counters are above a level that rises with the service, so that a profile stays useful while
    requests are served.
    """

    queues: dict[str, QueueTurns]
    counters: list[float]
    """Where a queue begins or ends, in order; the other lists belong to these."""
    counts: list[float]
    count_slopes: list[float]
    tokens: list[float]
    token_slopes: list[float]

    @classmethod
    def of(cls, queues: Iterable[QueueTurns]) -> TurnProfile:
        known = {queue.tenant: queue for queue in queues}
        bends = sorted(bend for queue in known.values() for bend in _bends(queue))
        columns = list(zip(*bends, strict=True)) or [()] * 5
        sums = (list(accumulate(column)) for column in columns[1:])
        return cls(known, list(columns[0]), *sums)

    def before(self, counter: float, without: str) -> Turns:
        """Return the turns before a counter, except those of one tenant."""
        at = bisect_right(self.counters, counter) - 1
        if at < 0:
            return Turns(0.0, 0.0)
        count = self.counts[at] + self.count_slopes[at] * counter
        tokens = self.tokens[at] + self.token_slopes[at] * counter
        own = self.queues.get(without)
        if own is not None:
            own_count = own.before(counter)
            count -= own_count
            tokens -= own_count * own.tokens
        return Turns(max(count, 0.0), max(tokens, 0.0))


Bend = tuple[float, float, float, float, float]
"""A counter, and the changes there: count, its slope, tokens, their slope."""


def _bends(queue: QueueTurns) -> tuple[Bend, ...]:
    tokens = queue.tokens
    begin = queue.first, 1.0, 0.0, tokens, 0.0
    if queue.count == 1:
        return (begin,)
    slope = 1 / queue.step
    middle = queue.first + queue.step / 2
    rise, rest = -middle * slope, queue.last * slope
    return (
        begin,
        (middle, rise, slope, rise * tokens, slope * tokens),
        (queue.last, rest, -slope, rest * tokens, -slope * tokens),
    )
