"""Lists of hosts as Slurm writes them: `g[1-3,07],h`."""

from __future__ import annotations

import re
from collections.abc import Iterator

PART = re.compile(r"([^,\[]*)(?:\[([^\]]*)\])?([^,\[]*)(?:,|$)")


def expand_hosts(text: str) -> tuple[str, ...]:
    """Return the names of a list, in its order; numbers are as wide as the first of their range."""
    names: list[str] = []
    for match in PART.finditer(text):
        before, ranges, behind = match.groups()
        if match.group(0):
            numbers = [""] if ranges is None else _numbers(ranges)
            names += [f"{before}{number}{behind}" for number in numbers]
    return tuple(name for name in names if name)


def expand_indices(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as `0-1,4`."""
    return tuple(int(number) for number in _numbers(text) if number.isdecimal())


def _numbers(ranges: str) -> Iterator[str]:
    for item in ranges.split(","):
        first, _, last = item.partition("-")
        if not last:
            yield first
        elif first.isdecimal() and last.isdecimal():
            yield from (f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1))
