"""Lists and ranges of numbers on the command line: 10, or 10,12,10, or 1-100%10."""

from __future__ import annotations

import re
from typing import NamedTuple

from cli.errors import BadInput

ARRAY = re.compile(r"(?:(?P<first>\d{1,9})-)?(?P<last>\d{1,9})(?:%(?P<at_once>\d{1,9}))?", re.ASCII)


class ArrayRange(NamedTuple):
    """The jobs of an array; `at_once` is None where all of them may run together."""

    size: int
    first: int = 0
    at_once: int | None = None


def parse_floats(flag: str, text: str) -> list[float]:
    """Return the numbers of a flag. Raises BadInput."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise BadInput(f"{flag}: {text!r}; numbers, separated by commas, are allowed") from None


def parse_integers(flag: str, text: str) -> list[int]:
    """Return the whole numbers of a flag. Raises BadInput."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        rule = "whole numbers, separated by commas, are allowed"
        raise BadInput(f"{flag}: {text!r}; {rule}") from None


def parse_array(text: str) -> ArrayRange:
    """Return the jobs of `--array 100`, `1-100` or `1-100%10`. Raises BadInput."""
    match = ARRAY.fullmatch(text)
    rule = "a number of jobs, such as 100, or a range of indexes, such as 1-100%10, is allowed"
    if match is None:
        raise BadInput(f"--array: {text!r}; {rule}")
    first, at_once = match["first"], match["at_once"]
    last = int(match["last"])
    size = last if first is None else last - int(first) + 1
    if size < 1 or at_once == "0":
        raise BadInput(f"--array: {text!r}; {rule}")
    return ArrayRange(size, int(first or 0), int(at_once) if at_once else None)
