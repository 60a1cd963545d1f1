from __future__ import annotations

from typing import ClassVar

import pytest

from services.placement.core.pool.evolve import FOLDS, evolve
from services.placement.core.pool.state import Pool
from shared.contracts.base import Event
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Fact
from tests.contracts.event_folds import assert_folds_every_type_of, assert_folds_take_their_types


class UnknownEvent(Event):
    TYPE: ClassVar[str] = "unknown.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"


def fact(event: Event) -> Fact:
    return Fact(event, "placement", 0, 1, 0, 1000, "", "")


def test_every_event_type_of_the_ledger_has_a_fold_and_no_other_has() -> None:
    assert_folds_every_type_of("placement", FOLDS)


def test_each_fold_takes_the_type_that_it_stands_beside() -> None:
    assert_folds_take_their_types(FOLDS)


def test_an_event_type_that_the_ledger_does_not_hold_raises() -> None:
    with pytest.raises(TypeError, match=r"unknown type in the placement ledger: unknown\.v1"):
        evolve(Pool(0), fact(UnknownEvent()))


def test_a_rejected_input_changes_nothing() -> None:
    pool = Pool(0)
    evolve(
        pool,
        fact(InputRejected(topic="reports", partition=0, offset=0, reason="x", sha256="0" * 64)),
    )
    assert pool == Pool(0)
