from __future__ import annotations

import pytest

from shared.performance.links import GangSteps, LinkTier
from shared.schedulers.closeness import Closeness, ClosenessRules
from shared.schedulers.hooks import Allotment
from shared.schedulers.view import CandidateJob
from tests.shared.schedulers.racked import INSENSITIVE, SENSITIVE, TO_RACKS, gang, racks_of
from tests.shared.schedulers.views import on, view

NODES = racks_of((4, 4), (4, 4))


def closeness(*jobs: CandidateJob) -> Closeness:
    return Closeness(view(jobs, NODES), ClosenessRules())


@pytest.mark.parametrize(
    ("steps", "gpus", "tier"),
    [
        (TO_RACKS, 2, LinkTier.NODE),
        (SENSITIVE, 2, LinkTier.RACK),
        (INSENSITIVE, 2, LinkTier.SPINE),
        (None, 2, LinkTier.SPINE),
        (SENSITIVE, 1, LinkTier.SPINE),
        (TO_RACKS, 8, LinkTier.RACK),
        (TO_RACKS, 12, LinkTier.SPINE),
    ],
)
def test_a_tier_is_good_that_slows_down_no_more_than_the_best_one(
    steps: GangSteps | None, gpus: int, tier: LinkTier
) -> None:
    assert closeness().good_tier(gang("a", gpus, steps), Allotment("v", gpus)) is tier


def test_the_loss_is_the_slowdown_over_the_spine() -> None:
    assert closeness().loss(gang("a", 2), Allotment("v", 2)) == pytest.approx(11.0, rel=1e-3)
    assert closeness().loss(gang("a", 2, None), Allotment("v", 2)) == 1.0


def test_a_running_job_moves_to_a_closer_tier_that_is_faster() -> None:
    far = gang("a", 2, placement=(("n11", 1), ("n21", 1)))
    assert closeness(far).is_worth_a_move(far, LinkTier.RACK)
    assert not closeness(far).is_worth_a_move(far, LinkTier.SPINE)
    near = gang("b", 2, placement=(("n11", 1), ("n12", 1)))
    assert not closeness(near).is_worth_a_move(near, LinkTier.NODE), "it gains 1 %"


def test_the_smallest_stop_that_gives_a_good_tier_is_of_those_that_lose_less() -> None:
    held = {
        "sensitive": gang("sensitive", 2, placement=on("n11", 2), held_gpu_s=9.0),
        "fresh": gang("fresh", 2, INSENSITIVE, placement=on("n12", 2), held_gpu_s=1.0),
        "old": gang("old", 3, INSENSITIVE, placement=on("n21", 3), held_gpu_s=9.0),
        "large": gang("large", 4, INSENSITIVE, placement=on("n22", 4), held_gpu_s=9.0),
    }
    own = closeness(*held.values())
    free = {"n11": 0, "n12": 0, "n21": 1, "n22": 0}
    new = gang("new", 4, TO_RACKS, held_gpu_s=5.0)
    victims = own.victims(new, Allotment("v", 4), free, list(held.values()))
    assert [job.job_id for job in victims] == ["old"]
    assert own.victims(gang("b", 4, INSENSITIVE), Allotment("v", 4), free, victims) == []
