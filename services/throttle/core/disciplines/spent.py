"""Explains why a budget has no room for a request."""

from __future__ import annotations

from dataclasses import dataclass

from services.throttle.core.disciplines.meters import HalfLife, Memory, SlidingWindow
from services.throttle.core.disciplines.seam import DAY_MS, Throttled

ABOVE_BUDGET = "above_budget"
"""A request that is larger than the whole budget."""

HELD_RETRY_MS = 1_000
"""When to retry where running requests hold the budget: they end at times that are not known."""

NO_END = HalfLife()


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A budget of one holder, and a request that it has no room for; amounts are in `unit`."""

    kind: str
    name: str
    unit: str
    limit: float
    memory: Memory
    used: float
    held: float
    price: float
    free_after_ms: int | None
    """When so much of what was used is forgotten; None if open requests hold too much for that."""

    @property
    def refusal(self) -> Throttled:
        if self.price > self.limit:
            end = "it is larger than the whole budget: a smaller limit of its output may fit"
            return Throttled(ABOVE_BUDGET, None, f"{self._figures}; {end}")
        reason = f"{self.kind}_{self.unit}"
        if self.memory == NO_END and self.used + self.price > self.limit:
            return Throttled(reason, None, f"{self._figures}; it does not refill")
        if self.memory == NO_END or self.free_after_ms is None:
            end = "some may be free when open requests end"
            return Throttled(reason, HELD_RETRY_MS, f"{self._figures}; {end}")
        is_far = self.free_after_ms >= DAY_MS
        time = "a day or later" if is_far else f"{number(self.free_after_ms / 1000)} s"
        end = f"enough is free again in {time}"
        return Throttled(reason, self.free_after_ms, f"{self._figures}; {end}")

    @property
    def _holder(self) -> str:
        return f"{self.kind} {self.name!r}" if self.name else f"requests that name no {self.kind}"

    @property
    def _figures(self) -> str:
        return (
            f"budget of {self._holder}: {number(self.limit)} {self.unit} "
            f"{describe_memory(self.memory)}, {number(self.used)} used, {number(self.held)} held "
            f"by open requests, {number(self.price)} needed"
        )


def describe_memory(memory: Memory) -> str:
    match memory:
        case SlidingWindow(ms=ms):
            return f"within {number(ms / 1000)} s"
        case HalfLife(ms=ms) if memory != NO_END:
            return f"with a half-life of {number(ms / 1000)} s"
        case _:
            return "in all"


def number(value: float) -> str:
    """Return a number without an exponent and without trailing zeros."""
    text = f"{value:.4f}"
    return text.rstrip("0").rstrip(".")
