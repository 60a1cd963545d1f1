"""Sources of run times, and what they fall back to."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from services.priority.core.policies.runtimes import LEAST_S, RunTimes
from services.priority.core.queue.queue_view import QueueView
from shared.contracts.pools import RuntimeSource
from tests.services.priority.core.queues import view_of


def a_view() -> QueueView:
    """Four jobs: with a true duration, with a limit, with history, and with the prior alone."""
    numbers = {
        "duration_s": [100.0, nan, nan, nan],
        "walltime_s": [200.0, 300.0, nan, nan],
        "mean_s": [1.0, 2.0, 3.0, 4.0],
        "left_kept_s": [10.0, 20.0, 30.0, 40.0],
        "attained_s": [150.0, 50.0, 0.0, 0.0],
        "since_go_s": [0.0] * 4,
        "samples": [0.0, 0.0, 5.0, 0.0],
        "believed_left_s": [nan] * 4,
    }
    arrays = {name: np.array(values) for name, values in numbers.items()}
    return view_of(waiting=4, rows=np.arange(4), distributions=np.zeros((4, 48)), **arrays)


@pytest.mark.parametrize(
    ("source", "run_s", "left_s"),
    [
        ("oracle", [100, 300, 3, 4], [LEAST_S, 250, 30, 40]),
        ("user", [200, 300, 3, 4], [50, 250, 30, 40]),
        ("history", [1, 2, 3, 4], [10, 20, 30, 40]),
    ],
)
def test_a_source_without_a_value_falls_back_to_the_next(
    source: RuntimeSource, run_s: list[float], left_s: list[float]
) -> None:
    times = RunTimes(a_view(), source)
    assert times.run_s().tolist() == run_s
    assert times.left_s().tolist() == left_s


def test_jobs_are_counted_by_the_source_of_their_run_time() -> None:
    times = RunTimes(a_view(), "oracle")
    assert times.terms() == {}, "the policy has not used them"
    times.run_s()
    assert times.terms() == {
        "runtime.oracle": 1.0,
        "runtime.user": 1.0,
        "runtime.history": 1.0,
        "runtime.prior": 1.0,
    }
