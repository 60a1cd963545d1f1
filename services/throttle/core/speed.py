"""The speed of an endpoint's engines, as measured by their output."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.lengths import DecayingMean
from services.throttle.core.disciplines.request import ServedRequest

HALF_LIFE_MS = 5_000
"""Time in which the weight of a measurement of the speed halves."""

ANSWER_MEMORY = 0.99
"""Part of the weight of earlier answers that one more leaves: about a hundred count."""

FIRST_SHARE = 0.5
"""Length of an answer as a part of its limit, before any answer has ended."""

MOST_SPREAD = 4.0
"""The most that one answer adds to the spread: a very long one says little of others."""

PRIOR_ANSWERS = 2.0
"""Answers with about the same limit that weigh as much as the usual length of all."""

CALL_MEMORY = 0.99
"""The same as `ANSWER_MEMORY` for one application of a tenant: about fifty count."""

PRIOR_CALLS = 30.0
"""Answers of one application of a tenant that weigh as much as the usual one."""

MOST_KNOWN = 1_000
"""Usual lengths that are kept until the next answer."""

Call = tuple[str, str]
"""A tenant, and its application."""


@dataclass(slots=True)
class CallLengths:
    """Answers of one application of a tenant; older ones weigh less."""

    tokens: float = 0.0
    """Their output tokens."""
    usual_tokens: float = 0.0
    """Those that were usual for their limits."""

    def add(self, tokens: int, usual: float) -> None:
        self.tokens = CALL_MEMORY * self.tokens + tokens
        self.usual_tokens = CALL_MEMORY * self.usual_tokens + usual

    def factor(self, usual: float) -> float:
        """Return by how much they are longer; `usual` is the length of an answer that is usual."""
        prior = PRIOR_CALLS * usual
        return (self.tokens + prior) / (self.usual_tokens + prior)


@dataclass(slots=True)
class EngineSpeed:
    """Output tokens per busy time, and the usual length of an answer."""

    tokens: float = 0.0
    busy_ms: float = 0.0
    measured_at: int = 0
    lengths: DecayingMean = field(default_factory=lambda: DecayingMean(ANSWER_MEMORY))
    """Output tokens of an answer."""
    parts: dict[int, DecayingMean] = field(default_factory=dict)
    """Length of an answer as a part of its limit, by the size of the limit."""
    at_limit: DecayingMean = field(default_factory=lambda: DecayingMean(ANSWER_MEMORY))
    """Part of the answers that reached their limit."""
    calls: BoundedTable[Call, CallLengths] = field(default_factory=BoundedTable)
    errors: DecayingMean = field(default_factory=lambda: DecayingMean(ANSWER_MEMORY))
    """Squares of what answers were longer or shorter than expected, as a part of that."""
    known: dict[int, float] = field(default_factory=dict, compare=False, repr=False)
    """Usual lengths by limit since the last answer; only a cache of `usual_tokens`."""

    def begin(self, at: int) -> None:
        """Begin a measurement: until then no request ran."""
        self.measured_at = at

    def add_tokens(self, tokens: int, at: int) -> None:
        passed_ms = max(0, at - self.measured_at)
        decay = 0.5 ** (passed_ms / HALF_LIFE_MS)
        self.tokens = self.tokens * decay + tokens
        self.busy_ms = self.busy_ms * decay + passed_ms
        self.measured_at = max(self.measured_at, at)

    def add_answer(self, request: ServedRequest, tokens: int) -> None:
        """Learn from the length of a complete answer."""
        limit = request.max_output_tokens
        if self.lengths.count:
            error = tokens / self.expected_tokens(request) - 1
            self.errors.add(min(error * error, MOST_SPREAD))
            call = request.tenant, request.application
            self.calls.touch(call, CallLengths).add(tokens, self.usual_tokens(limit))
        self.lengths.add(tokens)
        self.at_limit.add(tokens >= limit)
        if limit > 0:
            part = self.parts.setdefault(_size(limit), DecayingMean(ANSWER_MEMORY))
            part.add(min(tokens / limit, 1.0))
        self.known.clear()

    @property
    def spread(self) -> float:
        """Return the variance of answers about their expected length, by its square."""
        return self.errors.mean

    def expected_tokens(self, request: ServedRequest) -> float:
        """Return the expected length of an answer, at least a token.

        It is that of answers with such a limit, times how much longer or shorter those of this
        application of the tenant are.
        """
        limit = request.max_output_tokens
        usual = self.usual_tokens(limit)
        lengths = self.calls.values.get((request.tenant, request.application))
        if lengths is None:
            return usual
        return max(min(usual * lengths.factor(usual), float(limit)), 1.0)

    def usual_tokens(self, limit: int) -> float:
        """Return the usual length of answers with this limit, at least a token."""
        usual = self.known.get(limit)
        if usual is None:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            usual = self.known[limit] = max(self._usual_tokens(limit), 1.0)
        return usual

    def tokens_per_s(self) -> float | None:
        """Return the measured speed; None until a second of work was measured."""
        if self.busy_ms < 1000 or self.tokens <= 0:
            return None
        return 1000 * self.tokens / self.busy_ms

    def _usual_tokens(self, limit: int) -> float:
        """Return the usual length of answers with this limit.

        Some answers end where they are complete, others always at their limit: how many reached it,
        and how near to limits of the same size they came, decides between the two.
        """
        if not self.lengths.count:
            return FIRST_SHARE * limit
        at_limit = self.at_limit.mean
        length = at_limit * limit + (1 - at_limit) * min(self.lengths.mean, float(limit))
        part = self.parts.get(_size(limit))
        if part is not None:
            near = part.total * limit + PRIOR_ANSWERS * length
            length = near / (part.count + PRIOR_ANSWERS)
        return length


def _size(limit: int) -> int:
    """Return the size of a limit: two for each doubling."""
    bits = limit.bit_length()
    return 2 * bits + (limit >> max(bits - 2, 0) & 1)
