from __future__ import annotations

import pytest

from services.access.core.evolve import FOLDS, evolve
from services.access.core.state import AccessState
from shared.contracts.access import TenantRegistered
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandRefused
from shared.ledger.decider import Fact
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types
from tests.contracts.fixture_events import event_of_no, events_of_ledger
from tests.harness.decider import AT

EVENTS = events_of_ledger("access")


def fold(state: AccessState, event: Event) -> None:
    evolve(state, Fact(event, "access", 0, 1, 0, AT))


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("access", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.TYPE)
def test_a_recorded_event_of_every_type_is_folded(event: Event) -> None:
    fold(AccessState(), event)


def test_an_event_of_another_ledger_raises() -> None:
    with pytest.raises(TypeError, match="unknown type"):
        fold(AccessState(), event_of_no("access"))


def test_events_of_the_registry_are_folded_into_the_view() -> None:
    state = AccessState()
    tenant = TenantRegistered(tenant="acme", default_pool="main", number=0)
    fold(state, tenant)
    assert state.view.tenants == {"acme": tenant}


def test_an_answered_command_is_remembered() -> None:
    state = AccessState()
    fold(state, CommandRefused(command_id="c1", command_type="key.revoke.v1", reason="unknown_key"))
    assert "c1" in state.answered
