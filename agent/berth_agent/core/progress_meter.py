"""The progress of a training, and the time of its iterations by the node's clock."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_MS = 5000
"""A pace is given once its iterations have been seen for so long."""


@dataclass(frozen=True, slots=True)
class MeasuredProgress:
    """The progress of a worker, and when the node heard of it."""

    step: int
    """Iterations that are done."""
    steps_total: int
    iteration_s: float
    """Mean wall s of an iteration, with the evaluations and checkpoints between them."""
    at_boot_ms: int


class ProgressMeter:
    """Measures one worker from its first report on; what came before the agent does not count."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._last = (0, 0, 0)

    def note(self, step: int, steps_total: int, at_boot_ms: int) -> None:
        """Note iterations done; another total, or fewer of them, begin the measurement anew."""
        last_step, last_total, _ = self._last
        if self._first is None or step < last_step or steps_total != last_total:
            self._first = (step, at_boot_ms)
        self._last = (step, steps_total, at_boot_ms)

    def measured(self) -> MeasuredProgress | None:
        """Return the progress; None until the pace is known, and beyond the total."""
        if self._first is None:
            return None
        (first_step, first_ms), (step, steps_total, at_ms) = self._first, self._last
        ran_ms, done = at_ms - first_ms, step - first_step
        if ran_ms < LEAST_MS or not done or step > steps_total:
            return None
        return MeasuredProgress(step, steps_total, ran_ms / done / 1000, at_ms)
