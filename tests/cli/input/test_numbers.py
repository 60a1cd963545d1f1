"""Lists of numbers on the command line."""

from __future__ import annotations

import pytest

from cli.errors import BadInput
from cli.input.numbers import parse_array, parse_floats, parse_integers


def test_numbers_have_commas_between() -> None:
    assert parse_floats("--forward", "10,12.5") == [10, 12.5]
    assert parse_integers("--memory", "8") == [8]


@pytest.mark.parametrize("text", ["", "x", "1,,2", "1;2"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match=f"--forward: '{text}'; numbers"):
        parse_floats("--forward", text)


def test_memory_is_a_whole_number() -> None:
    with pytest.raises(BadInput, match=r"--memory: '1.5'; whole numbers"):
        parse_integers("--memory", "1.5")


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("100", (100, 0, None)),
        ("0-99", (100, 0, None)),
        ("1-100%10", (100, 1, 10)),
        ("8%2", (8, 0, 2)),
        ("5-5", (1, 5, None)),
    ],
)
def test_an_array_is_a_number_or_a_range(text: str, jobs: tuple[int, int, int | None]) -> None:
    assert parse_array(text) == jobs


@pytest.mark.parametrize("text", ["", "0", "5-4", "1-", "-3", "1-3%0", "1,3", "1-9:2", "x"])
def test_no_other_words_are_an_array(text: str) -> None:
    with pytest.raises(BadInput, match="a range of indexes, such as 1-100%10, is allowed"):
        parse_array(text)
