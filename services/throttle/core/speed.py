"""The speed of an endpoint's engines, as measured by their output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from services.throttle.core.disciplines.lengths import DecayingMean

HALF_LIFE_MS = 10_000
"""Time in which the weight of a measurement of the speed halves."""

ANSWER_MEMORY = 0.99
"""Part of the weight of earlier answers that one more leaves: about a hundred count."""

FIRST_SHARE = 0.5
"""Length of an answer as a part of its limit, before any answer has ended."""

MOST_SPREAD = 4.0
"""The most that one answer adds to the spread: a very long one says little of others."""

PRIOR_ANSWERS = 2.0
"""Answers with about the same limit that weigh as much as the usual length of all."""


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
    errors: DecayingMean = field(default_factory=lambda: DecayingMean(ANSWER_MEMORY))
    """Squares of what answers were longer or shorter than expected, as a part of that."""

    def begin(self, at: int) -> None:
        """Begin a measurement: until then no request ran."""
        self.measured_at = at

    def add_tokens(self, tokens: int, at: int) -> None:
        passed_ms = max(0, at - self.measured_at)
        decay = 0.5 ** (passed_ms / HALF_LIFE_MS)
        self.tokens = self.tokens * decay + tokens
        self.busy_ms = self.busy_ms * decay + passed_ms
        self.measured_at = max(self.measured_at, at)

    def add_answer(self, tokens: int, limit: int) -> None:
        if self.lengths.count:
            error = tokens / self.expected_tokens(limit) - 1
            self.errors.add(min(error * error, MOST_SPREAD))
        self.lengths.add(tokens)
        if limit > 0:
            part = self.parts.setdefault(_size(limit), DecayingMean(ANSWER_MEMORY))
            part.add(min(tokens / limit, 1.0))

    @property
    def spread(self) -> float:
        """Return the variance of answers about their expected length, by its square."""
        return self.errors.mean

    def expected_tokens(self, max_output_tokens: int) -> float:
        """Return the expected length of an answer with this limit."""
        return self.expected_lengths()(max_output_tokens)

    def expected_lengths(self) -> Callable[[int], float]:
        """Return the expected length by limit, for many answers: the usual one is found once.

        Some answers end where they are complete, others always at their limit: how near to limits
        of the same size answers came decides between the two.
        """
        if not self.lengths.count:
            return lambda limit: max(FIRST_SHARE * limit, 1.0)
        usual, parts = max(self.lengths.mean, 1.0), self.parts

        def expected(limit: int) -> float:
            length = usual if limit >= usual else float(limit)
            part = parts.get(_size(limit))
            if part is not None:
                near = part.total * limit + PRIOR_ANSWERS * length
                length = near / (part.count + PRIOR_ANSWERS)
            return max(length, 1.0)

        return expected

    def tokens_per_s(self) -> float | None:
        """Return the measured speed; None until a second of work was measured."""
        if self.busy_ms < 1000 or self.tokens <= 0:
            return None
        return 1000 * self.tokens / self.busy_ms


def _size(limit: int) -> int:
    """Return the size of a limit: two for each doubling."""
    bits = limit.bit_length()
    return 2 * bits + (limit >> max(bits - 2, 0) & 1)
