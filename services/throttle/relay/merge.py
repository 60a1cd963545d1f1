"""Merges the parts of an answer that arrive in chunks, unknown fields too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Fields = dict[str, Any]
KEPT = frozenset({"id", "type", "role"})
"""Texts that are no parts of a longer one: the first counts, as some engines repeat them."""


class Pieces(list[str]):
    """A text in parts: joining them once costs less than growing a string."""


class Numbered(dict[int, Fields]):
    """Items of a list that have an `index`, such as parallel calls of tools."""


def merge(into: Fields, part: Mapping[str, Any], *, joins_texts: bool) -> None:
    """Add a part to what arrived before.

    Lists grow, items with an `index` are merged, other values are replaced. Texts are joined, or
    replaced where they are not texts of the answer, such as the reason of its end.
    """
    for key, value in part.items():
        before = into.get(key)
        match value:
            case None:
                into.setdefault(key, None)
            case str() if joins_texts and key not in KEPT:
                into[key] = _join(key, before, value)
            case str():
                into[key] = before if key in KEPT and before else value
            case dict():
                into[key] = before if isinstance(before, dict) else {}
                merge(into[key], value, joins_texts=joins_texts)
            case list():
                into[key] = _extend(before, value, joins_texts)
            case _:
                into[key] = value


def _join(key: str, before: Any, value: str) -> Pieces:
    if not isinstance(before, Pieces):
        return Pieces([value])
    # The name of a function arrives in parts from some engines, whole and repeated from others.
    if key != "name" or "".join(before) != value:
        before.append(value)
    return before


def _extend(before: Any, items: list[Any], joins_texts: bool) -> list[Any] | Numbered:
    if not items or not all(isinstance(item, dict) and _number(item) is not None for item in items):
        if isinstance(before, list) and not isinstance(before, Pieces):
            before += items
            return before
        return before if isinstance(before, Numbered) else list(items)
    numbered = before if isinstance(before, Numbered) else Numbered()
    for item in items:
        merge(numbered.setdefault(item["index"], {}), item, joins_texts=joins_texts)
    return numbered


def _number(item: Fields) -> int | None:
    index = item.get("index")
    return index if type(index) is int else None


def plain(value: Any) -> Any:
    """Return the merged value as JSON has it."""
    match value:
        case Pieces():
            return "".join(value)
        case Numbered():
            return [plain(value[number]) for number in sorted(value)]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value
