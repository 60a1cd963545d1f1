"""Selects the jobs that take too much of a node's disk. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

REASON = "disk_limit"
"""Reason of a worker's end."""
LEAST_GIB = 1.0
"""Size of the files of a job below which it is none that fills a disk."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The running workers of one attempt of a job on this node, and the size of their files.

    They share folders, so that a part of them is no worker's own.
    """

    allocation_ids: tuple[str, ...]
    size_gib: float


def excessive(
    uses: Iterable[DiskUse], bound_gib: float, disk_problem: str
) -> Iterator[tuple[DiskUse, str]]:
    """Yield what is to end, and why.

    `bound_gib` is that of a worker, 0 for none; `disk_problem` is empty while the disk has space,
    else the job with the largest files ends.
    """
    ordered = sorted(uses, key=lambda use: use.size_gib, reverse=True)
    for number, use in enumerate(ordered):
        files = f"its files take {use.size_gib:.3g} GiB"
        allowed_gib = bound_gib * len(use.allocation_ids)
        if bound_gib and use.size_gib > allowed_gib:
            yield use, f"{files} of the node's disk; {allowed_gib:g} (disk_gib) are allowed"
        elif disk_problem and number == 0 and use.size_gib >= LEAST_GIB:
            yield use, f"{files}, more than any other job's here, and {disk_problem}"
