"""A broken build halts its lane; a tenant that knows a defect stops no other."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from shared.bus.quarantine.quarantine_limits import (
    LATEST,
    MOST_IN_A_ROW,
    MOST_OF_LATEST,
    MOST_OF_TENANT,
    QuarantineLimits,
    tenant_of,
)
from shared.contracts.attempts import JobStarted
from shared.contracts.job_commands import CancelJob
from shared.ledger.decider import Input
from shared.ledger.errors import LaneHalted
from tests.harness.ledger import command
from tests.shared.bus.quarantine.test_quarantine import RAISE, Case

MANY = 200
"""Defective inputs of one tenant, far beyond both limits."""


def of(*tenants: str) -> list[Input]:
    """A record with inputs of these tenants."""
    return [Input("commands", "c", CancelJob(job_id="j"), tenant=tenant) for tenant in tenants]


def quarantine(limits: QuarantineLimits, *tenants: str) -> None:
    limits.check(of(*tenants))
    limits.note_quarantined(of(*tenants))


def parked(limits: QuarantineLimits, tenants: list[str], *, apart: bool = False) -> int:
    """Return the number quarantined before the lane halts; `apart`: a good input between."""
    for count, tenant in enumerate(tenants):
        try:
            quarantine(limits, tenant)
        except LaneHalted:
            return count
        if apart:
            limits.note_decided(of(tenant))
    return len(tenants)


def served(*tenants: str) -> QuarantineLimits:
    limits = QuarantineLimits("lane")
    limits.note_decided(of(*tenants))
    return limits


def test_a_flood_is_many_of_the_latest_inputs_too() -> None:
    limits = QuarantineLimits("lane")
    assert parked(limits, [""] * MANY, apart=True) == MOST_OF_LATEST
    with pytest.raises(LaneHalted, match=f"of the latest {LATEST} inputs"):
        limits.check(of(""))
    limits.note_decided(of("") * LATEST)
    limits.check(of(""))


@pytest.mark.parametrize("apart", [False, True])
def test_one_tenant_never_halts_a_lane_that_serves_another(apart: bool) -> None:
    assert parked(served("ada"), ["eve"] * MANY, apart=apart) == MANY


@pytest.mark.parametrize("before", [(), ("eve",), ("",)])
def test_a_build_that_served_no_other_tenant_halts(before: tuple[str, ...]) -> None:
    """It may be broken: what one tenant sends is all that it was given, or could decide."""
    assert parked(served(*before), ["eve"] * MANY) == MOST_OF_LATEST


@pytest.mark.parametrize("tenants", [2, 3, 6, 50])
def test_a_build_that_breaks_for_several_tenants_halts_although_it_served_them(
    tenants: int,
) -> None:
    names = [f"t{number}" for number in range(tenants)]
    count = parked(served(*names), list(islice(cycle(names), MANY)))
    assert count <= MOST_IN_A_ROW


def test_a_tenant_with_a_quarantined_input_is_no_proof_of_a_working_build() -> None:
    limits = served("ada")
    quarantine(limits, "ada")
    limits.note_decided(of(""))
    assert parked(limits, ["eve"] * MANY) < MOST_OF_LATEST


def test_a_victim_that_meets_the_defect_by_chance_does_not_halt_the_lane() -> None:
    limits = served("ada", "bob")
    assert parked(limits, ["eve"] * MANY) == MANY
    quarantine(limits, "bob")
    limits.note_decided(of("ada"))
    assert parked(limits, ["eve"] * MANY) == MANY


def test_repeats_that_do_not_count_push_nothing_out_of_the_window() -> None:
    limits = served("ada", "bob")
    others = MOST_OF_LATEST - MOST_OF_TENANT
    for _ in range(others):
        quarantine(limits, "")
        limits.note_decided(of("ada"))
    assert parked(limits, ["eve"] * LATEST) == LATEST
    limits.note_decided(of("ada"))
    with pytest.raises(LaneHalted, match="of the latest"):
        limits.check(of(""))


def test_a_record_of_several_tenants_counts_for_the_one_that_was_quarantined_most() -> None:
    limits = served("ada", "bob")
    quarantine(limits, "eve")
    for victim in islice(cycle(("ada", "bob")), MANY):
        quarantine(limits, victim, "eve")
        limits.note_decided(of("ada", "bob"))


def test_whoever_adds_the_inputs_of_others_to_each_of_their_own_is_counted() -> None:
    victims = [f"a{n}" for n in range(MANY)]
    limits = served(*victims)
    for victim in victims:
        quarantine(limits, victim, "eve")


def test_events_of_other_services_are_inputs_of_the_tenants_that_they_name() -> None:
    event = JobStarted(job_id="j", tenant="eve", attempt=1)
    assert tenant_of(Input("placement", "p", event)) == "eve"
    assert tenant_of(of("eve")[0]) == "eve" and tenant_of(of("")[0]) == ""


async def test_the_inputs_of_others_are_decided_behind_an_attack() -> None:
    case = Case()
    await case.lane.start()
    await case.send(command("before", tenant="ada"))
    await case.decide()
    attack = [command(f"bad{n}", reason=RAISE, tenant="eve") for n in range(MANY)]
    await case.send(*attack, command("behind", tenant="bob"))
    await case.decide()
    assert sorted(case.lane.state.answers) == ["before", "behind"]
    assert len(case.quarantined()) == MANY
    assert {event.tenant for event in case.quarantined()} == {"eve"}


async def test_a_broken_build_parks_few_inputs_of_many_tenants() -> None:
    case = Case()
    await case.lane.start()
    values = [command(f"c{n}", reason=RAISE, tenant=f"t{n % 7}") for n in range(MANY)]
    await case.send(*values)
    with pytest.raises(LaneHalted):
        await case.decide()
    assert len(case.quarantined()) == MOST_IN_A_ROW
