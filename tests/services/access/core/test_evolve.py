from __future__ import annotations

import pytest

from services.access.core.evolve import evolve
from services.access.core.state import AccessState
from shared.contracts.access import TenantRegistered
from shared.contracts.base import Event
from shared.contracts.jobs import CommandRefused
from shared.ledger.decider import Fact
from shared.testing.decider import AT
from tests.contracts.fixture_events import event_of_no, events_of_ledger

EVENTS = events_of_ledger("access")


def fold(state: AccessState, event: Event) -> None:
    evolve(state, Fact(event, "access", 0, 1, 0, AT))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.TYPE)
def test_every_event_type_of_the_ledger_has_a_case(event: Event) -> None:
    fold(AccessState(), event)


def test_an_event_of_another_ledger_raises() -> None:
    with pytest.raises(TypeError, match="unknown type"):
        fold(AccessState(), event_of_no("access"))


def test_events_of_the_registry_are_folded_into_the_view() -> None:
    state = AccessState()
    tenant = TenantRegistered(tenant="acme", default_pool="main")
    fold(state, tenant)
    assert state.view.tenants == {"acme": tenant}


def test_an_answered_command_is_remembered() -> None:
    state = AccessState()
    fold(state, CommandRefused(command_id="c1", command_type="key.revoke.v1", reason="unknown_key"))
    assert "c1" in state.answered
