from __future__ import annotations

import ast
import inspect
from typing import ClassVar

import pytest

from services.placement.core.pool import evolve
from services.placement.core.pool.evolve import fold
from services.placement.core.pool.state import Pool
from shared.contracts.base import EVENTS, Event
from shared.contracts.rejected import InputRejected
from shared.ledger.decider import Fact


class UnknownEvent(Event):
    TYPE: ClassVar[str] = "unknown.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    SUBJECT: ClassVar[str] = "pool"


def written() -> set[str]:
    return {kind.__name__ for kind in EVENTS.values() if "placement" in kind.LEDGERS}


def matched() -> set[str]:
    tree = ast.parse(inspect.getsource(evolve))
    patterns = [node for node in ast.walk(tree) if isinstance(node, ast.MatchClass)]
    return {pattern.cls.id for pattern in patterns if isinstance(pattern.cls, ast.Name)}


def fact(event: Event) -> Fact:
    return Fact(event, "placement", 0, 1, 0, 1000, "", "")


def test_every_event_type_of_the_ledger_has_a_case_and_no_other_has() -> None:
    assert matched() == written()


def test_an_event_type_that_the_ledger_does_not_hold_raises() -> None:
    with pytest.raises(TypeError, match="UnknownEvent"):
        fold(Pool(0), fact(UnknownEvent()))


def test_a_rejected_input_changes_nothing() -> None:
    pool = Pool(0)
    fold(pool, fact(InputRejected.model_construct()))
    assert pool == Pool(0)
