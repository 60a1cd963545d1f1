"""The packing of a pool decides how its rounds place gangs, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.packing import policy_of
from tests.services.placement.core.lane import lane


def test_a_pool_packs_by_best_fit_unless_it_says_otherwise() -> None:
    assert policy_of(lane("a", gpus=2).state) is GREEDY
    assert policy_of(lane("a", gpus=2, packing="best_fit").state) is GREEDY


def test_packing_by_fragments_changes_the_placing_alone() -> None:
    policy = policy_of(lane("a", gpus=2, packing="fragments").state)
    assert policy.name == "fragments"
    assert replace(policy, name=GREEDY.name, place=GREEDY.place) == GREEDY
