"""The breaker bounds how many nodes of a pool are out of use."""

from __future__ import annotations

import pytest

from services.failslow.core.mitigation.breaker import Breaker


@pytest.mark.parametrize(("nodes", "most"), [(0, 0), (1, 0), (2, 1), (10, 1), (20, 2), (100, 10)])
def test_a_share_of_the_pool_or_one_node(nodes: int, most: int) -> None:
    assert Breaker(0.1).most(nodes) == most


def test_nodes_that_are_cordoned_count() -> None:
    breaker = Breaker(0.2)
    assert breaker.allowed(["a", "b"], 10, ["c"]) == ("a",)
    assert breaker.allowed(["a"], 10, ["c", "d"]) == ()
    assert breaker.allowed(["c", "a"], 10, ["c"]) == ("a",)


def test_a_share_of_nothing_allows_no_node() -> None:
    assert Breaker(0.0).most(100) == 0
