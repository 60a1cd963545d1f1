"""Pools have schedulers of order, type, number, share of time and nodes."""

from __future__ import annotations

import pytest

from shared.schedulers.in_pools import not_carried_out
from shared.schedulers.registry import scheduler_of


@pytest.mark.parametrize(
    ("name", "left"), [("gavel", []), ("afs", []), ("dally", []), ("muri", ["neighbours"])]
)
def test_what_a_pool_decides_itself_is_named(name: str, left: list[str]) -> None:
    assert not_carried_out(scheduler_of(name).decides) == left
