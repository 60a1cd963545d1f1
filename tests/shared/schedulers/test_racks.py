from __future__ import annotations

import pytest

from shared.performance.links import LinkTier
from shared.schedulers.racks import Racks
from shared.schedulers.view import Placement
from tests.shared.schedulers.racked import racks_of

RACKS = Racks.of(racks_of((4, 4), (4, 4)), "v")


@pytest.mark.parametrize(
    ("gpus", "tier"), [(4, LinkTier.NODE), (5, LinkTier.RACK), (9, LinkTier.SPINE)]
)
def test_the_best_tier_is_that_of_an_empty_cluster(gpus: int, tier: LinkTier) -> None:
    assert RACKS.best_tier(gpus) is tier


@pytest.mark.parametrize(
    ("free", "gpus", "tier", "placement"),
    [
        ((4, 2, 3, 4), 2, LinkTier.NODE, (("n12", 2),)),
        ((3, 2, 3, 3), 4, LinkTier.RACK, (("n11", 3), ("n12", 1))),
        ((1, 1, 2, 2), 5, LinkTier.SPINE, (("n21", 2), ("n22", 2), ("n11", 1))),
    ],
)
def test_the_closest_gpus_are_in_the_fullest_place_that_has_them(
    free: tuple[int, ...], gpus: int, tier: LinkTier, placement: Placement
) -> None:
    by_node = dict(zip(("n11", "n12", "n21", "n22"), free, strict=True))
    assert RACKS.closest(by_node, gpus) == (tier, placement)


def test_more_than_is_free_is_nowhere() -> None:
    assert RACKS.closest(dict.fromkeys(RACKS.free(), 1), 5) is None


def test_a_gang_of_a_tier_is_held_by_one_of_its_domains() -> None:
    assert [len(RACKS.domains(tier)) for tier in LinkTier] == [4, 2, 1]
    assert Racks.of(racks_of((4,)), "p").free() == {}
