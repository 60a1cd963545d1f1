"""State changes are named by their names or by Slurm's words."""

from __future__ import annotations

from typing import get_args

import pytest

from cli.errors import BadInput
from cli.input.state_changes import NAMES, parse_state_changes
from shared.contracts.state_changes import ENDS, StateChange


def test_the_names_are_those_of_the_contracts() -> None:
    assert get_args(StateChange) == NAMES


def test_words_stand_for_several() -> None:
    assert parse_state_changes("end", "--notify") == [*ENDS]
    assert parse_state_changes("FAIL, started", "--notify") == ["started", "failed", "rejected"]
    assert parse_state_changes("failed,failed,fail", "--notify") == ["failed", "rejected"]


@pytest.mark.parametrize("text", ["", "done", "end,", "end;fail"])
def test_another_word_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(BadInput, match="--notify: .*preempted, rejected are allowed"):
        parse_state_changes(text, "--notify")
