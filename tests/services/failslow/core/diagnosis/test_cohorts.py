"""Ranks that do the same work, and ranks that communicate, follow from the reported layouts."""

from __future__ import annotations

from services.failslow.core.diagnosis.cohorts import cohorts, groups_of, split
from services.failslow.core.diagnosis.layout import Layout

LAYOUT = Layout(tp=2, dp=3, pp=2)
PLACES = {
    LAYOUT.rank(tensor, data, stage): {"tp": tensor, "dp": data, "pp": stage}
    for tensor in range(2)
    for data in range(3)
    for stage in range(2)
}


def test_replicas_of_a_stage_and_tensor_part_do_the_same_work() -> None:
    assert cohorts(PLACES) == ((0, 2, 4), (1, 3, 5), (6, 8, 10), (7, 9, 11))


def test_without_a_layout_all_do() -> None:
    assert cohorts({0: {}, 1: {}, 2: {}}) == ((0, 1, 2),)
    assert groups_of({0: {}, 1: {}}) == ()


def test_the_groups_are_those_of_the_layout() -> None:
    assert set(groups_of(PLACES)) == set(LAYOUT.groups())


def test_windows_are_split_with_their_ranks() -> None:
    assert split({0: [1.0], 1: [2.0], 9: [3.0]}, {0: {"pp": 0}, 1: {"pp": 1}}) == [
        {0: [1.0]},
        {1: [2.0]},
        {9: [3.0]},
    ]
