"""Selects the jobs that take too much of a node's disk. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

REASON = "disk_limit"
"""Reason of a worker's end."""
LEAST_GIB = 1.0
"""Size of the files of a job below which it is none that fills a disk."""
LEAST_HELD = 0.1
"""Part of the files of a job above which those without a name are named."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The running workers of one attempt of a job on this node, and the size of their files.

    They share folders, so that a part of them is no worker's own.
    """

    allocation_ids: tuple[str, ...]
    size_gib: float
    """As measured last."""
    held_gib: float = 0.0
    """The part of it in files that have no name any more, and are kept by a process."""
    written_gib: float | None = None
    """Size of all that its processes wrote, where its files are too many to be measured in time."""

    @property
    def most_gib(self) -> float:
        """The most that its files may take by now."""
        return max(self.size_gib, self.written_gib or 0.0)


def excessive(
    uses: Iterable[DiskUse], bound_gib: float, disk_problem: str
) -> Iterator[tuple[DiskUse, str]]:
    """Yield what is to end, and why.

    `bound_gib` is that of a worker, 0 for none; `disk_problem` is empty while the disk has space,
    else the job with the largest files ends.
    """
    ordered = sorted(uses, key=lambda use: use.most_gib, reverse=True)
    for number, use in enumerate(ordered):
        allowed_gib = bound_gib * len(use.allocation_ids)
        if bound_gib and use.size_gib > allowed_gib:
            files = f"its files take {use.size_gib:.3g} GiB"
            yield (
                use,
                f"{files} of the node's disk{_held(use)}; {allowed_gib:g} (disk_gib) are allowed",
            )
        elif disk_problem and number == 0 and use.most_gib >= LEAST_GIB:
            yield use, f"{_size(use)}, more than any other job's here, and {disk_problem}"


def _size(use: DiskUse) -> str:
    if use.written_gib is not None and use.written_gib > use.size_gib:
        return (
            f"it has written {use.written_gib:.3g} GiB, to more files than can be measured in time"
        )
    return f"its files take {use.size_gib:.3g} GiB{_held(use)}"


def _held(use: DiskUse) -> str:
    if use.held_gib <= LEAST_HELD * use.size_gib:
        return ""
    return f" ({use.held_gib:.3g} of it in files that it has deleted and keeps open)"
