"""Iterations are reported in order, once their end is reached; of too many the oldest are lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from berth_reporter.iteration import Iteration
from berth_reporter.unread import MOST_UNREAD, MarkedIteration, UnreadIterations


class Device:
    """A clock that has reached the moments before `until`."""

    until = 0

    def is_reached(self, moment: int) -> bool:
        return moment < self.until


def ended(step: int) -> MarkedIteration:
    iteration = MarkedIteration(step, None, Iteration(None, None, "train"), begin=step)
    iteration.end = step
    return iteration


def test_an_iteration_waits_for_those_before_it_and_for_the_device() -> None:
    device, reporter, steps = Device(), SimpleNamespace(lost=0), list[int]()
    unread: UnreadIterations[MarkedIteration] = UnreadIterations(
        cast(Any, device), cast(Any, reporter), lambda one: steps.append(one.step)
    )
    for step in range(MOST_UNREAD):
        unread.add(ended(step))
    assert (steps, reporter.lost) == ([], 0)
    device.until = 2
    unread.flush()
    assert steps == [0, 1]
    for step in range(MOST_UNREAD, MOST_UNREAD + 5):
        unread.add(ended(step))
    assert reporter.lost == 3
    device.until = 1000
    unread.flush()
    assert steps == [0, 1, *range(5, MOST_UNREAD + 5)]
