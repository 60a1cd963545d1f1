"""Fair shares by weight, and Slurm's factor by use."""

from __future__ import annotations

from services.gateway.core.shares import PoolUse, shares_of

WEIGHTS = {"ada": 3.0, "bob": 1.0}
USE = {"ada": PoolUse(2, 30.0), "bob": PoolUse(0, 10.0)}


def test_a_share_is_by_weight_and_the_factor_is_a_half_where_use_is_as_the_share() -> None:
    shares = shares_of(WEIGHTS, USE, 16, is_complete=True)
    assert shares["ada"] == (0.75, 12.0, 0.75, 0.5)
    assert shares["bob"] == (0.25, 4.0, 0.25, 0.5)


def test_without_any_use_all_have_the_best_factor() -> None:
    shares = shares_of(WEIGHTS, {}, 0, is_complete=True)
    assert [(row.entitled_gpus, row.use_share, row.factor) for row in shares.values()] == [
        (0, 0, 1),
        (0, 0, 1),
    ]


def test_who_sees_its_own_use_alone_gets_no_part_of_all() -> None:
    own = shares_of(WEIGHTS, {"ada": USE["ada"]}, 16, is_complete=False)["ada"]
    assert (own.share, own.use_share, own.factor) == (0.75, None, None)
