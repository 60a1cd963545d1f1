"""A chunk is described by its name, and damage of its body is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.job_logs.chunk import BadChunk, JobKey, Run, Worker, chunk_of, pack, parse_name, unpack

NUMBERS = st.integers(0, 10**9)


@given(NUMBERS, NUMBERS, NUMBERS, st.lists(st.text(), min_size=1, max_size=4), st.booleans())
def test_a_name_says_what_the_chunk_has(
    attempt: int, rank: int, first: int, lines: list[str], is_last: bool
) -> None:
    runs = [Run(5, first, lines), Run(7, first + 10, lines)]
    chunk = chunk_of(Worker(attempt, rank), runs, is_last)
    assert parse_name(f"{JobKey(3, 'ada', 'j.1').prefix}/{chunk.name}") == chunk
    assert (chunk.next, chunk.begin_ms, chunk.end_ms) == (first + 10 + len(lines), 5, 7)


@pytest.mark.parametrize("name", ["", "a/b", "1.2/3-4-5", "1.2/3-4-5-x", "1/3-4-5-6"])
def test_other_names_are_no_chunks(name: str) -> None:
    assert parse_name(name) is None


@given(st.lists(st.lists(st.text(), max_size=5), max_size=5))
def test_any_text_survives(texts: list[list[str]]) -> None:
    runs = [Run(number, 10 * number, lines) for number, lines in enumerate(texts)]
    assert unpack(pack(runs)) == runs


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    body = bytearray(pack([Run(1, 0, ["a", "b"])]))
    body[place] ^= 1
    with pytest.raises(BadChunk):
        unpack(bytes(body))
    with pytest.raises(BadChunk):
        unpack(b"")
