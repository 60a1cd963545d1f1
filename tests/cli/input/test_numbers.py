"""Lists of numbers on the command line."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.numbers import parse_floats, parse_integers


def test_numbers_have_commas_between() -> None:
    assert parse_floats("--forward", "10,12.5") == [10, 12.5]
    assert parse_integers("--memory", "8") == [8]


@pytest.mark.parametrize("text", ["", "x", "1,,2", "1;2"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=f"--forward: '{text}' is not a number"):
        parse_floats("--forward", text)


def test_memory_is_a_whole_number() -> None:
    with pytest.raises(BadInput, match=r"--memory: '1.5' is not a whole number"):
        parse_integers("--memory", "1.5")
