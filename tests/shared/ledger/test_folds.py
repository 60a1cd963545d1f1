from __future__ import annotations

from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.decider import Fact
from shared.ledger.folds import ignore, unknown_event

EVENT = TenantNoted(tenant="ada")


def test_an_ignored_event_leaves_the_state_as_it_is() -> None:
    state = {"tenants": ["ada"]}
    ignore(state, EVENT, Fact(EVENT, "admission", 0, 1, 0, 0))
    assert state == {"tenants": ["ada"]}


def test_the_error_names_the_ledger_and_the_type() -> None:
    assert str(unknown_event("failslow", EVENT)) == (
        "event of an unknown type in the failslow ledger: tenant.noted.v1"
    )
