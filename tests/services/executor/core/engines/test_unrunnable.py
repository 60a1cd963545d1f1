"""A gang that no engine runs is refused before it is submitted, and says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.unrunnable import unrunnable
from tests.services.executor.core.engines.looks import gang_of, placed_history


def gang(**launch: Any) -> EngineGang:
    made = gang_of(placed_history())
    changed = made.launch.model_copy(update=launch)
    return replace(made, workers=(replace(made.workers[0], launch=changed), *made.workers[1:]))


def test_a_plain_gang_runs() -> None:
    assert unrunnable(gang()) is None


@pytest.mark.parametrize(
    ("launch", "reason", "words"),
    [
        ({"command": ()}, "no_command", "command"),
        ({"gpu_milli": 500}, "engine_unsupported", "gpu_milli: 500"),
        ({"bundle": "sha256:1"}, "engine_unsupported", "bundle"),
        ({"env": {"T": "secret://t"}}, "engine_unsupported", "env.T"),
        ({"world_size": 4}, "engine_unsupported", "3 of 4 workers"),
    ],
)
def test_the_value_and_the_rule_are_named(launch: dict[str, Any], reason: str, words: str) -> None:
    failure = unrunnable(gang(**launch))
    assert failure is not None and failure.reason == reason and words in failure.detail
    assert failure.permanent is ("world_size" not in launch)


def test_pods_that_exist_have_their_own_command() -> None:
    made = gang(command=())
    for worker in made.workers:
        worker.pod = "00000000-0000-0000-0000-000000000001"
    assert unrunnable(made) is None
