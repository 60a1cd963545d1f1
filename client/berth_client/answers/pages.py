"""Lists."""

from __future__ import annotations

from typing import Generic, NotRequired, TypeVar

from typing_extensions import TypedDict

Row = TypeVar("Row")


class Page(TypedDict, Generic[Row]):
    """A page of a list."""

    items: list[Row]
    next: str | None
    """`after` of the following page; null: this is the last one."""
    left_before: NotRequired[int]
    """On the last page, where older rows have left the database for the archive: until when."""
