"""Pages by key: a page begins after the last row of the one before, however the list grows.

Lists of sums are short and have pages by offset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple, TypeVar

from fastapi import Query

from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.reads.database import Row

E = TypeVar("E")

Limit = Annotated[int, Query(ge=1, le=1000, description="rows per page")]
PageToken = Annotated[
    str | None,
    Query(pattern=r"^[A-Za-z0-9._:/-]{1,200}$", description="`next` of the previous page"),
]
TimeToken = Annotated[
    str | None,
    Query(
        pattern=r"^[0-9]{1,18}:[A-Za-z0-9._:/-]{1,140}$", description="`next` of the previous page"
    ),
]
"""Token of a list that is ordered by time."""
OffsetToken = Annotated[
    str | None, Query(pattern=r"^[0-9]{1,9}$", description="`next` of the previous page")
]
"""Token of a list of sums, which have no place of their own in its order."""
NamePart = Annotated[str, Query(max_length=256, pattern=r"^[^\x00]*$")] | None


class TimeCursor(NamedTuple):
    """A position in a list that is ordered by time, then by key."""

    at: int | None
    key: str | None

    @classmethod
    def read(cls, token: str | None) -> TimeCursor:
        if token is None:
            return cls(None, None)
        at, _, key = token.partition(":")
        if not (at.isdigit() and len(at) < 19 and key):
            raise InvalidBody(
                [
                    FieldError(
                        field="after", value=token[:64], rule="must be `next` of the previous page"
                    )
                ]
            )
        return cls(int(at), key)


def page_of(rows: Sequence[Row], limit: int, *keys: str) -> dict[str, object]:
    """Return the page; a full one has as `next` the token made of its last row."""
    if len(rows) < limit:
        return {"items": rows, "next": None}
    return {"items": rows, "next": ":".join(str(rows[-1][key]) for key in keys)}


def page_from(rows: Sequence[Row], after: str | None, limit: int) -> dict[str, object]:
    """Return the page of a list by offset; `rows` has one more than the limit if more follow."""
    end = int(after or 0) + limit
    return {"items": rows[:limit], "next": str(end) if len(rows) > limit else None}


def page_of_entries(
    entries: Mapping[str, E], show: Callable[[E], Row], after: str | None, limit: int, key: str
) -> dict[str, object]:
    """Return the page of entries that are kept in memory, ordered by name, as their rows."""
    later = sorted(name for name in entries if after is None or name > after)
    return page_of([show(entries[name]) for name in later[:limit]], limit, key)
