"""The answer to a hello."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.executor.core.agents import evolve
from services.executor.core.agents.hello import (
    MAX_GENERATION_STEP,
    action_for,
    generation_fault,
    last_generation,
)
from services.executor.core.agents.state import UNKNOWN_WRITER
from shared.contracts.nodes import NodeLost
from tests.services.executor.core.agents.history import OTHER_UUID, UUID, hello, running


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ({}, "continue"),
        ({"lapsed": True}, "fence"),
        ({"applied": {"seq": 99, "index": 0}}, "behind"),
        ({"node_id": "new"}, "register"),
        ({"incarnation": {"generation": 2, "uuid": OTHER_UUID}}, "register"),
        ({"incarnation": {"generation": 1, "uuid": OTHER_UUID}}, "fence"),
    ],
)
def test_an_agent_goes_on_only_as_the_joined_incarnation(
    fields: dict[str, Any], action: str
) -> None:
    assert action_for(running().state, hello(**fields)) == action


def test_an_agent_that_is_ahead_of_the_whole_ledger_has_another_history() -> None:
    ahead = hello(applied={"seq": 99, "index": 0})
    assert action_for(running().state, ahead, is_complete=True) == "fence"


@pytest.mark.parametrize(
    ("writer", "action"), [("w1", "continue"), ("w0", "fence"), ("", "continue")]
)
def test_orders_of_a_record_that_another_process_wrote_are_of_another_history(
    writer: str, action: str
) -> None:
    """The ledger was restored, and has grown since beyond what the agent carried out."""
    applied = {"seq": 6, "index": 0}
    assert action_for(running().state, hello(applied=applied, writer=writer)) == action


@given(
    taken_over=st.lists(st.booleans(), min_size=1, max_size=40),
    kept=st.integers(1, 5),
    applied=st.integers(1, 50),
    named=st.integers(0, 12),
)
def test_an_executor_that_forgets_writers_goes_on_with_no_node_that_a_full_list_fences(
    taken_over: list[bool], kept: int, applied: int, named: int
) -> None:
    """It may fence more, which is safe in any state; of the latest writers it fences no more."""
    full, bounded = running(), running()
    with patch.object(evolve, "WRITERS_KEPT", kept):
        for is_new in taken_over:
            bounded.writer = f"w{int(bounded.writer[1:]) + is_new}"
            bounded.add()
    for is_new in taken_over:
        full.writer = f"w{int(full.writer[1:]) + is_new}"
        full.add()
    writers = full.state.writers
    assert bounded.state.writers == writers[-kept:]
    message = hello(applied={"seq": applied, "index": 0}, writer=f"w{named}")
    expected = action_for(full.state, message)
    action = action_for(bounded.state, message)
    assert action in (expected, "fence")
    if applied >= writers[-kept:][0][0]:
        assert action == expected


def test_an_agent_with_orders_of_a_forgotten_writer_is_fenced() -> None:
    """The page of its orders ended before the first writer that the executor knows."""
    history = running()
    with patch.object(evolve, "WRITERS_KEPT", 1):
        history.writer = "w2"
        history.add()
    page_end = history.state.through.seq - 1
    writer = history.state.writer_of(page_end)
    assert writer == UNKNOWN_WRITER
    named = hello(applied={"seq": page_end, "index": 0}, writer=writer)
    assert action_for(history.state, named) == "fence"
    assert history.state.writer_of(0) == ""
    assert history.state.writer_of(page_end + 1) == "w2"


def test_a_lost_incarnation_is_fenced_and_a_newer_one_registers() -> None:
    history = running()
    history.add(NodeLost(node_id="n1", incarnation=UUID, reason="silent"))
    assert action_for(history.state, hello()) == "fence"
    newer = hello(incarnation={"generation": 2, "uuid": OTHER_UUID})
    assert action_for(history.state, newer) == "register"


def test_the_last_generation_is_that_of_the_ledger() -> None:
    assert last_generation(running().state, "n1") == 1
    assert last_generation(running().state, "ghost") == 0


@pytest.mark.parametrize(("node_id", "last"), [("n1", 1), ("ghost", 0)])
def test_a_generation_is_known_up_to_a_step_above_the_last(node_id: str, last: int) -> None:
    """A restored ledger may know none of a node that has had many."""

    def fault(generation: int) -> str:
        incarnation = {"generation": generation, "uuid": OTHER_UUID}
        return generation_fault(running().state, hello(node_id=node_id, incarnation=incarnation))

    assert fault(1) == fault(last + MAX_GENERATION_STEP) == ""
    assert fault(last + MAX_GENERATION_STEP + 1).startswith(
        f"incarnation.generation: {last + MAX_GENERATION_STEP + 1}; "
        f"at most {last + MAX_GENERATION_STEP} is allowed"
    )
    assert "delete incarnation.json" in fault(2**53 - 1)
