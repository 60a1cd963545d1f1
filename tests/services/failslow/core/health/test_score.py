"""The health score halves its memory, forgives false alarms, and is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.failslow.core.health.score import (
    HALF_LIFE_S,
    KEPT_FAULTS,
    KEPT_TENANTS,
    LARGEST_FAULT,
    PartHealth,
)


def test_a_part_without_faults_is_healthy() -> None:
    assert PartHealth().score(10) == 1


def test_the_memory_of_a_fault_halves() -> None:
    part = PartHealth()
    part.note_fault("f", 1.0, 0)
    assert part.score(0) == 0.5
    assert part.score(HALF_LIFE_S) == pytest.approx(1 / 1.5)
    assert part.score(-5) == 0.5


def test_a_fault_counts_once() -> None:
    part = PartHealth()
    part.note_fault("f", 1.0, 0)
    part.note_fault("f", 1.0, 5)
    assert (part.faults, part.score(0)) == (1, 0.5)


def test_a_false_alarm_takes_back_exactly_its_fault() -> None:
    part, other = PartHealth(), PartHealth()
    for health in (part, other):
        health.note_fault("a", 0.6, 0)
    part.note_fault("b", 0.4, HALF_LIFE_S)
    part.take_back("b", 2 * HALF_LIFE_S)
    part.take_back("b", 2 * HALF_LIFE_S)
    part.take_back("unknown", 2 * HALF_LIFE_S)
    assert part.score(3 * HALF_LIFE_S) == pytest.approx(other.score(3 * HALF_LIFE_S))
    assert part.false_alarms == 1


FACTS = st.tuples(
    st.sampled_from(("fault", "take_back")),
    st.integers(0, 20),
    st.floats(allow_nan=True),
    st.floats(0, 1e9),
)


@given(st.lists(FACTS, max_size=60))
def test_the_score_is_bounded_and_deterministic(facts: list[tuple[str, int, float, float]]) -> None:
    parts = PartHealth(), PartHealth()
    for part in parts:
        for kind, number, slowdown, now_s in facts:
            match kind:
                case "fault":
                    part.note_fault(f"f{number}", slowdown, now_s)
                case _:
                    part.take_back(f"f{number}", now_s)
            assert 0.01 <= part.score(now_s) <= 1
            assert len(part.added) <= KEPT_FAULTS
    assert parts[0] == parts[1]


def test_a_measurement_without_a_deviation_leaves_a_part_that_can_still_be_taken_back() -> None:
    part = PartHealth()
    part.note_fault("f1", 0.8, 0.0)
    part.note_well(0.0)
    assert part.burden == pytest.approx(0.2) and part.repairs == 1
    part.take_back("f1", 0.0)
    assert part.burden == pytest.approx(0.0)


def test_the_faults_of_one_tenant_add_no_more_than_one_of_the_largest() -> None:
    part = PartHealth()
    for number in range(1000):
        part.note_fault(f"f{number}", 5.0, 0.0, "acme")
    assert part.score(0) == 1 / (1 + LARGEST_FAULT)
    part.note_fault("of another", 1.0, 0.0, "zeta")
    part.note_fault("of an agent", 1.0, 0.0)
    assert part.burden == pytest.approx(LARGEST_FAULT + 2)
    for number in range(1000):
        part.note_fault(f"g{number}", 5.0, HALF_LIFE_S, "acme")
    assert part.burden == pytest.approx(LARGEST_FAULT + 1), "the half that is forgotten"


def test_a_false_alarm_makes_room_for_the_next_fault_of_its_tenant() -> None:
    part = PartHealth()
    part.note_fault("a", LARGEST_FAULT, 0.0, "acme")
    part.note_fault("b", 1.0, 0.0, "acme")
    assert part.added["b"].weight == 0
    part.take_back("a", 0.0)
    assert part.burden == 0 and not part.of_tenants
    part.note_fault("c", 1.0, 0.0, "acme")
    part.note_well(0.0)
    assert part.of_tenants == {"acme": 0.25} and part.burden == 0.25


def test_ever_new_tenants_are_bounded() -> None:
    part = PartHealth()
    for number in range(3 * KEPT_TENANTS):
        part.note_fault(f"f{number}", 1.0, 0.0, f"t{number}")
    assert len(part.of_tenants) == KEPT_TENANTS
