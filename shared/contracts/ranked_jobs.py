"""Changes between two orders of ranked jobs: what a reader of `QueueReranked` needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from shared.contracts.ranking import Ranked

T = TypeVar("T")


class JobRank(NamedTuple):
    """The values of one job in an order, as `Ranked` has them."""

    score: float
    gittins_s: float | None
    run_s: float | None


def ranks_of(ranked: Iterable[Ranked]) -> dict[str, JobRank]:
    """Return the values by job id, in the same order."""
    return {job.job_id: JobRank(job.score, job.gittins_s, job.run_s) for job in ranked}


def apply_changes(
    ranks: dict[str, JobRank], changed: Iterable[Ranked], left: Iterable[str]
) -> None:
    """Drop the jobs that left, then set the changed ones; their places do not count here."""
    for job_id in left:
        del ranks[job_id]
    ranks.update(ranks_of(changed))


def insert_at(stay: list[T], changed: Sequence[T], places: Collection[int]) -> None:
    """Insert the changed ones at their places in the new order, which ascend."""
    for place, one in zip(places, changed, strict=True):
        stay.insert(place, one)
