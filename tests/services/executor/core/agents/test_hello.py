"""The answer to a hello."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.agents.hello import action_for, last_generation
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


def test_a_lost_incarnation_is_fenced_and_a_newer_one_registers() -> None:
    history = running()
    history.add(NodeLost(node_id="n1", incarnation=UUID, reason="silent"))
    assert action_for(history.state, hello()) == "fence"
    newer = hello(incarnation={"generation": 2, "uuid": OTHER_UUID})
    assert action_for(history.state, newer) == "register"


def test_the_last_generation_is_that_of_the_ledger() -> None:
    assert last_generation(running().state, "n1") == 1
    assert last_generation(running().state, "ghost") == 0
