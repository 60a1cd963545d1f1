"""The order of a queue scan: tier, score, submission, id."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from services.priority.core.queue.sorting import by_submission, first_of, lowest_running
from tests.services.priority.core.queues import columns, ids_at


def test_tier_goes_before_score_and_score_before_submission() -> None:
    view = columns(4, "abcd", tier=[1, 0, 0, 0], submit_s=[0, 3, 2, 1])
    assert ids_at(view, first_of(view, np.array([9.0, 5.0, 5.0, 1.0]), 4)) == "cbda"


def test_jobs_that_are_equal_otherwise_go_by_id() -> None:
    view = columns(4, "dbac", tier=[0, 0, 0, 0], submit_s=[1, 1, 1, 0])
    assert ids_at(view, by_submission(view)) == "cabd"
    assert ids_at(view, first_of(view, np.zeros(4), 2)) == "ca", "the cut does not split a tie"


def test_jobs_that_hold_gpus_are_listed_from_the_lowest_score() -> None:
    view = columns(1, "wxyz", tier=[0] * 4, submit_s=[0] * 4)
    scores = np.array([0.0, 3.0, 1.0, 1.0])
    assert ids_at(view, lowest_running(view, scores, 2)) == "yz"


@pytest.mark.parametrize("tiers", [1, 3])
def test_the_first_of_a_long_queue_are_those_of_the_whole_order(tiers: int) -> None:
    random = Random(tiers)
    count = 80
    view = columns(
        count,
        "".join(chr(0x4E00 + at) for at in random.sample(range(count), count)),
        tier=[random.randrange(tiers) for _ in range(count)],
        submit_s=[random.randrange(3) for _ in range(count)],
    )
    scores = np.array([random.randrange(4) for _ in range(count)], np.float64)
    assert first_of(view, scores, 7) == first_of(view, scores, count)[:7]
