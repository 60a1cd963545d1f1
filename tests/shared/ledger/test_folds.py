from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.decider import Fact
from shared.ledger.folds import EventFold, folding, ignore, unknown_event

EVENT = TenantNoted(tenant="ada")
FACT = Fact(EVENT, "admission", 0, 1, 0, 0)


def note(state: list[str], event: TenantNoted, fact: Fact) -> None:
    state.append(f"{event.tenant} of {fact.ledger}")


def test_an_event_is_folded_by_the_function_of_its_type() -> None:
    state: list[str] = []
    folding("admission", {TenantNoted: note})(state, FACT)
    assert state == ["ada of admission"]


def test_an_event_of_a_type_that_the_table_lacks_raises() -> None:
    folds: dict[type[Event], EventFold[list[str]]] = {}
    with pytest.raises(TypeError, match=r"in the admission ledger: tenant\.noted\.v1"):
        folding("admission", folds)([], FACT)


def test_an_ignored_event_leaves_the_state_as_it_is() -> None:
    state = {"tenants": ["ada"]}
    ignore(state, EVENT, FACT)
    assert state == {"tenants": ["ada"]}


def test_the_error_names_the_ledger_and_the_type() -> None:
    assert str(unknown_event("failslow", EVENT)) == (
        "event of an unknown type in the failslow ledger: tenant.noted.v1"
    )
