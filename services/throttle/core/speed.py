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


@dataclass(slots=True)
class EngineSpeed:
    """Output tokens per busy time, and the usual length of an answer."""

    tokens: float = 0.0
    busy_ms: float = 0.0
    measured_at: int = 0
    lengths: DecayingMean = field(default_factory=lambda: DecayingMean(ANSWER_MEMORY))
    """Output tokens of an answer."""

    def begin(self, at: int) -> None:
        """Begin a measurement: until then no request ran."""
        self.measured_at = at

    def add_tokens(self, tokens: int, at: int) -> None:
        passed_ms = max(0, at - self.measured_at)
        decay = 0.5 ** (passed_ms / HALF_LIFE_MS)
        self.tokens = self.tokens * decay + tokens
        self.busy_ms = self.busy_ms * decay + passed_ms
        self.measured_at = max(self.measured_at, at)

    def add_answer(self, tokens: int) -> None:
        self.lengths.add(tokens)

    def expected_tokens(self, max_output_tokens: int) -> float:
        """Return the expected length of an answer with this limit."""
        return self.expected_lengths()(max_output_tokens)

    def expected_lengths(self) -> Callable[[int], float]:
        """Return the expected length by limit, for many answers: the usual one is found once."""
        if not self.lengths.count:
            return lambda limit: max(FIRST_SHARE * limit, 1.0)
        usual = max(self.lengths.mean, 1.0)
        return lambda limit: usual if limit >= usual else max(float(limit), 1.0)

    def tokens_per_s(self) -> float | None:
        """Return the measured speed; None until a second of work was measured."""
        if self.busy_ms < 1000 or self.tokens <= 0:
            return None
        return 1000 * self.tokens / self.busy_ms
