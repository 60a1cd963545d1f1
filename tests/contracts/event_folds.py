"""Checks of the table of folds that every service has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from shared.contracts.base import EVENTS, Event
from shared.ledger.folds import EventFold


def assert_folds_every_type_of(ledger: str, folds: Mapping[type[Event], EventFold[Any]]) -> None:
    """Fail unless the table has the types that the contracts give to the ledger, and no other."""
    written = {kind for kind in EVENTS.values() if ledger in kind.LEDGERS}
    differing = sorted(kind.TYPE for kind in written ^ folds.keys())
    assert not differing, f"folds and contracts of {ledger} differ: {differing}"


def assert_folds_take_their_types(folds: Mapping[type[Event], EventFold[Any]]) -> None:
    """Fail if a function stands beside a type that it does not take: mypy cannot see that."""
    for kind, fold in folds.items():
        annotated = get_type_hints(fold)["event"]
        taken = get_args(annotated) or (annotated,)
        assert issubclass(kind, taken), f"{kind.__name__}: {fold.__name__} takes {annotated}"
