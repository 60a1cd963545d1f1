"""Rounds follow from their seed, and combine faults of different things."""

from __future__ import annotations

import pytest

from benchmarks.parts.chaos.nodes import rounds
from benchmarks.parts.chaos.nodes.injected import NODE_FAULTS, SERVICE_FAULTS
from benchmarks.parts.chaos.nodes.rounds import CONTROL, LASTING, Patience, plan_rounds
from benchmarks.parts.chaos.nodes.site import harmless_s, quick_terms
from benchmarks.parts.chaos.options import ChaosOptions

TERMS = quick_terms(ChaosOptions().stop_after_s)


def test_a_seed_makes_the_same_rounds() -> None:
    assert plan_rounds(3, 50, 4, TERMS) == plan_rounds(3, 50, 4, TERMS)
    assert plan_rounds(3, 50, 4, TERMS) != plan_rounds(4, 50, 4, TERMS)


def test_every_fault_is_in_many_rounds() -> None:
    planned = plan_rounds(1, 400, 4, TERMS)
    assert {kind for one in planned for kind in one.kinds} == {*NODE_FAULTS, *SERVICE_FAULTS}
    assert {one.lane for one in planned} == {CONTROL, 0, 1, 2, 3}


def test_long_rounds_outlast_the_lease_and_short_ones_are_harmless() -> None:
    for one in plan_rounds(1, 400, 4, TERMS):
        if one.is_long:
            assert one.hold_s > TERMS["stop_after_s"] + TERMS["kill_s"] and set(one.kinds) & {
                *LASTING
            }
        else:
            assert one.hold_s < harmless_s(TERMS)


def test_two_faults_of_a_round_never_act_on_one_thing() -> None:
    for one in plan_rounds(1, 400, 4, TERMS):
        assert sum("agent_" in kind for kind in one.kinds) <= 1
        assert len({kind.split()[0] for kind in one.kinds}) == len(one.kinds)


def test_a_broker_that_forgets_is_not_killed() -> None:
    planned = plan_rounds(1, 400, 4, TERMS, is_durable=False)
    assert "broker killed" not in {kind for one in planned for kind in one.kinds}


async def test_the_time_to_recover_begins_anew_while_services_are_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "RECOVERED_S", 0.05)
    patience, looks = Patience(service_changes=1), 0

    def is_over() -> bool:
        nonlocal looks
        looks += 1
        if looks == 10:
            patience.service_changes += 1
        return False

    assert not await patience.is_over(CONTROL, lambda: False)
    assert not await patience.is_over(0, is_over) and looks >= 10
    assert await patience.is_over(0, lambda: True)
