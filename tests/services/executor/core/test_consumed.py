"""An executor decodes those events alone that change the state of its workers."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType

import pytest

from services.executor.core.agents import evolve
from services.executor.core.consumed import is_consumed
from services.executor.core.virtual import react
from shared.contracts import codec
from shared.contracts.base import EVENTS
from shared.contracts.topics import CONSUMED_EVENTS


@pytest.mark.parametrize("wire_type", ["job.placed.v1", "job.placed.v2", "node.lost.v1"])
def test_an_event_that_an_executor_folds_is_consumed_in_any_version(wire_type: str) -> None:
    assert is_consumed(wire_type)


@pytest.mark.parametrize("wire_type", ["job.held.v1", "workers.ready.v1", "job.placed"])
def test_another_event_need_not_be_decoded(wire_type: str) -> None:
    assert not is_consumed(wire_type)


@pytest.mark.parametrize("fold", [evolve, react], ids=["agents", "virtual nodes"])
def test_both_folds_know_the_consumed_events_and_no_others(fold: ModuleType) -> None:
    assert codec.MODULES
    nodes = ast.walk(ast.parse(inspect.getsource(fold)))
    cases = {ast.unparse(node.cls) for node in nodes if isinstance(node, ast.MatchClass)}
    assert cases == {EVENTS[type_].__name__ for type_ in CONSUMED_EVENTS["executor"]}
