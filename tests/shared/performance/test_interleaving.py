"""Muri's group iterations (SIGCOMM'22, section 4), by formula and by hand."""

from __future__ import annotations

import itertools
import random

import pytest

from shared.performance.interleaving import (
    ALONE,
    GpuSharing,
    Stage,
    StageProfile,
    efficiency,
    group_iteration_s,
    period_s,
    speed_in_group,
)

FOUR = GpuSharing(4)


def profile(*seconds: float) -> StageProfile:
    return StageProfile(sum(seconds), tuple(Stage(own) for own in seconds))


def merged_profile(loading: float, computing: float, syncing: float) -> StageProfile:
    """Return a profile as the artifact has it: loading takes the slots of two resources."""
    stages = (Stage(loading, 2), Stage(computing), Stage(syncing))
    return StageProfile(loading + computing + syncing, stages)


@pytest.mark.parametrize("seed", range(30))
def test_a_period_is_the_sum_of_the_longest_stages_in_each_slot(seed: int) -> None:
    rng = random.Random(seed)
    group = [profile(*(rng.uniform(0, 5) for _ in range(4))) for _ in range(rng.randint(2, 4))]
    slots = (
        max(own.stages[(slot - number) % 4].seconds for number, own in enumerate(group))
        for slot in range(4)
    )
    assert period_s(group, range(len(group))) == pytest.approx(sum(slots))


@pytest.mark.parametrize("seed", range(30))
def test_the_best_order_is_no_faster_than_any_resource(seed: int) -> None:
    rng = random.Random(seed)
    group = [profile(*(rng.uniform(0, 5) for _ in range(4))) for _ in range(rng.randint(2, 4))]
    together_s = group_iteration_s(group, FOUR)
    assert together_s is not None
    of_resources = (sum(own.stages[number].seconds for own in group) for number in range(4))
    longest = max(max(own.busy_s for own in group), *of_resources)
    in_turn = sum(own.busy_s for own in group)
    assert longest - 1e-9 <= together_s <= in_turn + 1e-9
    assert 0.0 < efficiency(group, together_s) <= 1.0
    assert together_s == group_iteration_s(group[::-1], FOUR)


def test_jobs_of_opposite_stages_are_as_fast_as_alone() -> None:
    one, two = profile(5, 5, 0, 0), profile(0, 0, 5, 5)
    assert group_iteration_s([one, two], FOUR) == 10.0
    assert speed_in_group(one, [two], FOUR) == 1.0
    assert efficiency([one, two], 10.0) == 0.5


def test_a_pair_with_merged_stages_takes_loading_beside_computing_and_syncing() -> None:
    for values in itertools.product((1.0, 4.0, 9.0), repeat=6):
        one, two = merged_profile(*values[:3]), merged_profile(*values[3:])
        a0, a1, a2, b0, b1, b2 = values
        together_s = group_iteration_s([one, two], FOUR)
        assert together_s is not None
        assert together_s <= max(a0, b1 + b2) + max(b0, a1 + a2) + 1e-9


def test_contention_makes_groups_slower_by_their_size() -> None:
    sharing = GpuSharing(4, (1.0, 1.5, 2.0))
    own = profile(1, 1, 1, 1)
    assert [group_iteration_s([own] * count, sharing) for count in (1, 2, 3, 4)] == [4, 6, 8, 8]
    assert ALONE.factor(1) == 1.0


def test_what_is_unknown_is_shared_by_time_slices() -> None:
    own = profile(1, 1, 1, 1)
    three = StageProfile(3.0, (Stage(1.0),) * 3)
    assert speed_in_group(own, [], FOUR) == 1.0
    assert speed_in_group(own, [None], FOUR) == 0.5
    assert speed_in_group(None, [own, own], FOUR) == 1 / 3
    assert speed_in_group(own, [three], FOUR) == 0.5
    assert group_iteration_s([three] * 4, FOUR) is None
