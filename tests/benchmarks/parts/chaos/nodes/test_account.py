"""An attempt that failed is explained by a fault that was meant to end it, or counted."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos.nodes.account import EVERYWHERE, Outage, OutageAccount
from benchmarks.parts.chaos.nodes.node_load import RecordedAttempt

ATTEMPT = RecordedAttempt("j", 1, placed_at=100.0, nodes={"0/1/0/0": "n1"}, ended_at=130.0)


def is_explained(*outages: Outage, targets: tuple[str, ...] = ()) -> bool:
    account = OutageAccount(least_s=10.0, outages=list(outages), targets=set(targets))
    return not account.unexplained([ATTEMPT])


def test_the_kill_of_its_step_explains_an_attempt() -> None:
    assert is_explained(targets=("0/1/0/0",))
    assert not is_explained(targets=("0/2/0/0",))


@pytest.mark.parametrize("node", ["n1", EVERYWHERE])
def test_a_long_outage_of_its_node_explains_it(node: str) -> None:
    assert is_explained(Outage(node, 110.0, 125.0))


def test_short_outages_and_those_of_other_nodes_or_times_do_not() -> None:
    assert not is_explained(Outage("n1", 110.0, 119.0), Outage("n2", 100.0, 130.0))
    assert not is_explained(Outage("n1", 50.0, 99.0))
    assert not is_explained(Outage("n1", 131.0, 150.0))


def test_slow_recoveries_are_counted_by_themselves() -> None:
    for is_long, expected in ((False, [ATTEMPT]), (True, [])):
        account = OutageAccount(10.0, [Outage("n1", 110.0, 125.0, is_long)])
        assert account.stopped_by_slow_recovery([ATTEMPT]) == expected


def test_outages_that_overlap_are_one_long_one() -> None:
    assert is_explained(Outage("n1", 110.0, 117.0), Outage(EVERYWHERE, 116.0, 121.0))
    assert not is_explained(Outage("n1", 110.0, 115.0), Outage(EVERYWHERE, 116.0, 121.0))
