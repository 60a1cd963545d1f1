"""Selects the ended workers whose files are kept for inspection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DAY_S = 86_400.0
UNREAD_S = 60.0
"""The last lines of a worker that has just ended may not be sent yet."""


@dataclass(frozen=True, slots=True)
class EndedWorker:
    """The files of an ended worker; the size counts its private directory as well."""

    folder: str
    ended_s: float
    size_gib: float


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits; files go, the oldest first, as soon as one of them is passed."""

    count: int
    size_gib: float
    age_days: float
    free_gib: float
    """Free space that the disk shall have."""

    def expired(
        self, workers: Iterable[EndedWorker], free_gib: float, now_s: float
    ) -> list[EndedWorker]:
        """Return what is to be removed, given the free space of the disk.

        What ended in the future by this clock, which was ahead then, is the oldest.
        """
        oldest_first = sorted(workers, key=lambda worker: (worker.ended_s <= now_s, worker.ended_s))
        left, left_gib = len(oldest_first), sum(worker.size_gib for worker in oldest_first)
        removed = []
        for worker in oldest_first:
            age_s = now_s - worker.ended_s
            is_within = left <= self.count and left_gib <= self.size_gib
            is_within = is_within and age_s <= self.age_days * DAY_S and free_gib >= self.free_gib
            if is_within or 0 <= age_s < UNREAD_S:
                break
            removed.append(worker)
            left, left_gib = left - 1, left_gib - worker.size_gib
            free_gib += worker.size_gib
        return removed
