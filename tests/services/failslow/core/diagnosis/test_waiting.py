"""Longer iterations of a whole job are those of its communication, of its work, or unknown."""

from __future__ import annotations

import pytest

from services.failslow.core.diagnosis.verdict import Diagnosis
from services.failslow.core.diagnosis.waiting import (
    NEITHER,
    NOT_REPORTED,
    RankSample,
    RankTimes,
    cause_of_job,
)

SINCE = 50


def rank(
    own_s: float = 0, wait_s: float = 0, comm: float = 0.1, delay_s: float = 0, **layout: int
) -> RankTimes:
    """Return reports of a rank of which own work and waiting grow by so many s at step 50."""
    times = RankTimes(layout=layout)
    for step in range(0, 100, 5):
        after = step >= SINCE
        times.samples.append(
            RankSample(
                step,
                1 + own_s * after,
                0.5 + wait_s * after,
                {"comm.tp": comm if after else 0.1},
                delay_s * after,
            )
        )
    return times


def cause(*ranks: RankTimes, grown_s: float = 0.4) -> Diagnosis:
    return cause_of_job(dict(enumerate(ranks)), SINCE, grown_s)


def test_where_all_wait_longer_the_communication_is_slow() -> None:
    diagnosis = cause(*[rank(wait_s=0.4) for _ in range(4)])
    assert diagnosis.cause == "communication"
    assert diagnosis.confidence == pytest.approx(1)
    assert diagnosis.evidence == ("each of 4 ranks waits longer, by 100% of the growth or more",)


def test_where_one_does_not_wait_it_is_the_one_that_works_longer() -> None:
    diagnosis = cause(*[rank(wait_s=0.4) for _ in range(3)], rank(own_s=0.4))
    assert diagnosis.cause == "compute"
    assert diagnosis.evidence == ("own work of rank 3 alone grew, by 100% of the growth",)


def test_where_all_work_longer_they_compute_more_slowly() -> None:
    diagnosis = cause(*[rank(own_s=0.4) for _ in range(4)])
    assert diagnosis.cause == "compute"
    assert diagnosis.confidence == pytest.approx(0.5)


def test_where_all_wait_for_processors_the_hosts_are_busy() -> None:
    diagnosis = cause(*[rank(own_s=0.4, delay_s=0.3) for _ in range(4)])
    assert diagnosis.cause == "compute"
    assert diagnosis.evidence[1:] == (
        "waiting for processors grew by 75% of the growth: the hosts are busy",
    )


@pytest.mark.parametrize("ranks", [[rank(0.1, 0.1)] * 4, [rank()] * 4, [rank(wait_s=0.4)]])
def test_what_explains_too_little_is_unknown(ranks: list[RankTimes]) -> None:
    assert cause(*ranks) == Diagnosis("unknown", (), 0.0, (NEITHER,))


def test_without_reports_on_both_sides_nothing_is_known() -> None:
    unknown = Diagnosis("unknown", (), 0.0, (NOT_REPORTED,))
    assert cause() == cause(RankTimes()) == cause_of_job({0: rank(wait_s=1)}, 0, 1) == unknown
    assert cause(rank(wait_s=1), grown_s=0) == unknown


def test_the_group_that_communicates_more_slowly_than_its_peers_is_named() -> None:
    pairs = [
        rank(wait_s=0.4, comm=0.5 if data == 1 else 0.1, tp=tensor, dp=data, pp=0)
        for data in range(3)
        for tensor in range(2)
    ]
    assert cause(*pairs).evidence[1:] == (
        "tp group of ranks 2, 3: 0.5 s, 1.2 times the median of its peers or more",
    )
