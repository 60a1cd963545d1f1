"""A page names where the next one begins, and only such a name is read."""

from __future__ import annotations

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.reads.paging import TimeCursor, page_from, page_of, page_of_entries

ROWS = [{"at": 5, "id": "a:b"}, {"at": 7, "id": "c"}]


def test_a_full_page_has_the_token_of_its_last_row() -> None:
    assert page_of(ROWS, 2, "at", "id") == {"items": ROWS, "next": "7:c"}
    assert page_of(ROWS[:1], 1, "id") == {"items": ROWS[:1], "next": "a:b"}


def test_a_page_with_room_is_the_last() -> None:
    assert page_of(ROWS, 3, "at", "id")["next"] is None
    assert page_of([], 1, "at") == {"items": [], "next": None}


def test_a_token_is_read_as_it_was_written() -> None:
    token = page_of(ROWS[:1], 1, "at", "id")["next"]
    assert isinstance(token, str)
    assert TimeCursor.read(token) == TimeCursor(5, "a:b")
    assert TimeCursor.read(None) == TimeCursor(None, None)


@pytest.mark.parametrize("token", ["", "5", "5:", ":a", "x:a", "-5:a", f"{10**18}:a"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidBody, match="must be `next` of the previous page"):
        TimeCursor.read(token)


def test_a_page_by_offset_has_a_next_one_if_a_row_more_was_read() -> None:
    assert page_from(ROWS, "4", 1) == {"items": ROWS[:1], "next": "5"}
    assert page_from(ROWS, None, 2) == {"items": ROWS, "next": None}


def test_entries_in_memory_are_paged_by_name() -> None:
    entries = {"b": 2, "a": 1, "c": 3}

    def page(after: str | None) -> dict[str, object]:
        return page_of_entries(entries, lambda n: {"id": "abc"[n - 1]}, after, 2, "id")

    assert page(None) == {"items": [{"id": "a"}, {"id": "b"}], "next": "b"}
    assert page("b") == {"items": [{"id": "c"}], "next": None}
