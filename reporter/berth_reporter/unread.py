"""Iterations that have ended for the program, and whose times a GPU has yet to reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from berth_reporter.clocks import Clock
from berth_reporter.iteration import Iteration
from berth_reporter.reporter import Reporter

MOST_UNREAD = 16
"""Iterations that a GPU has not finished; of more, the oldest are counted as lost."""

Moment = Any


class MarkedIteration:
    """An iteration with the moments of its clock; it may still run on the GPU once it has ended."""

    __slots__ = ("begin", "end", "measured", "step", "steps_total")

    def __init__(
        self, step: int, steps_total: int | None, measured: Iteration, begin: Moment
    ) -> None:
        self.step = step
        self.steps_total = steps_total
        self.measured = measured
        self.begin = begin
        self.end: Moment = None


T = TypeVar("T", bound=MarkedIteration)


class UnreadIterations(Generic[T]):
    """Calls `report` with each iteration, oldest first, once the clock has reached its end."""

    def __init__(self, clock: Clock, reporter: Reporter, report: Callable[[T], None]) -> None:
        self._clock = clock
        self._reporter = reporter
        self._report = report
        self._waiting: deque[T] = deque()

    def add(self, ended: T) -> None:
        self._waiting.append(ended)
        self.flush()

    def flush(self) -> None:
        """Report what the device has reached, and drop the oldest of what are too many."""
        while self._waiting and self._clock.is_reached(self._waiting[0].end):
            self._report(self._waiting.popleft())
        while len(self._waiting) > MOST_UNREAD:
            self._waiting.popleft()
            self._reporter.lost += 1
