"""Data-parallel groups are known where all processes agree on them, and not otherwise."""

from __future__ import annotations

import pytest

from services.failslow.core.diagnosis.replicas import replicas_of
from shared.contracts.parallelism import Replicas
from shared.contracts.reports import IterationTimes


def row(
    rank: int, own_s: float, layout: dict[str, int], microbatches: int | None = 8
) -> IterationTimes:
    return IterationTimes(
        job_id="j1",
        allocation_id=f"0/9/0/{rank}",
        node_id=f"n{rank}",
        rank=rank,
        iteration_s=(own_s,) * 3,
        own_s=(own_s,) * 3,
        layout=layout,
        microbatches=microbatches,
    )


def test_a_group_is_as_slow_as_its_slowest_stage() -> None:
    rows = [
        row(2 * dp + pp, 1.0 + (dp == pp == 1), {"dp": dp, "pp": pp})
        for dp in (0, 1)
        for pp in (0, 1)
    ]
    assert replicas_of(rows, 3) == Replicas(microbatch_s=(0.125, 0.25), microbatches=(8, 8))


@pytest.mark.parametrize(
    "second",
    [
        row(1, 1.0, {"dp": 1}, None),
        row(1, 1.0, {"dp": 1}, 0),
        row(1, 1.0, {"tp": 1}),
        row(1, 1.0, {"dp": 2}),
        row(1, 1.0, {"dp": 0}, 4),
        row(1, 1.0, {"dp": 0}),
        row(1, 1.0, {"dp": 1}, 2**53 - 1),
    ],
    ids=["no count", "none", "no group", "a gap", "two counts", "one group", "too many"],
)
def test_ranks_that_disagree_make_no_groups(second: IterationTimes) -> None:
    assert replicas_of([row(0, 1.0, {"dp": 0}), second], 3) is None
