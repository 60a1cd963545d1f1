"""The last ranking as the ledger has it: the next one is recorded as its changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shared.contracts.construct import construct
from shared.contracts.ranked_jobs import JobRank, apply_changes, insert_at, ranks_of
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked

RESTATED_EVERY = 300
"""Rankings from one that is recorded in full to the next."""


class RankedBy(NamedTuple):
    """Everything of a ranking that its changes do not name."""

    pool: str
    base_policy: str
    runtime: str
    learned: str
    model_sha256: str


@dataclass(slots=True)
class LastOrder:
    """The policy, jobs and terms of the last ranking."""

    policy: RankedBy
    waiting: dict[str, JobRank]
    """Best first."""
    running: dict[str, JobRank]
    """In any order."""
    terms: dict[str, float]
    number: int = 0
    """Rankings since the one that was recorded in full."""

    def apply(self, event: QueueReranked) -> None:
        """Take over the changes of the next ranking."""
        self.number = event.number
        dropped = {*event.left_ranked, *(job.job_id for job in event.ranked)}
        stay = [item for item in self.waiting.items() if item[0] not in dropped]
        insert_at(stay, list(ranks_of(event.ranked).items()), event.places)
        self.waiting = dict(stay)
        apply_changes(self.running, event.running, event.left_running)
        for name in event.left_terms:
            del self.terms[name]
        self.terms |= event.terms


def order_of(event: QueueRanked) -> LastOrder:
    waiting, running = ranks_of(event.ranked), ranks_of(event.running)
    return LastOrder(policy_of(event), waiting, running, dict(event.terms))


def policy_of(event: QueueRanked) -> RankedBy:
    return RankedBy(event.pool, event.base_policy, event.runtime, event.learned, event.model_sha256)


def changes_since(last: LastOrder, event: QueueRanked) -> QueueReranked | None:
    """Return what this ranking changes; None where it has to be recorded in full.

    That is by number, under another policy, and where jobs changed places at unchanged scores.
    """
    if last.number + 1 >= RESTATED_EVERY or last.policy != policy_of(event):
        return None
    places = changed_places(last.waiting, event.ranked)
    ranked = [event.ranked[place] for place in places]
    names = [job.job_id for job in event.ranked]
    left = left_of(last.waiting, names)
    if not same_order(last.waiting, names, {*left, *(job.job_id for job in ranked)}):
        return None
    running = [event.running[place] for place in changed_places(last.running, event.running)]
    return construct(
        QueueReranked,
        pool=event.pool,
        number=last.number + 1,
        ranked=tuple(ranked),
        places=tuple(places),
        left_ranked=left,
        running=tuple(running),
        left_running=left_of(last.running, [job.job_id for job in event.running]),
        waiting=event.waiting,
        terms={name: value for name, value in event.terms.items() if last.terms.get(name) != value},
        left_terms=left_of(last.terms, event.terms),
        context=event.context,
    )


def changed_places(last: dict[str, JobRank], ranked: Sequence[Ranked]) -> list[int]:
    """Return the places of jobs that are new or have other values, ascending."""
    return [
        place
        for place, job in enumerate(ranked)
        if last.get(job.job_id) != (job.score, job.gittins_s, job.run_s)
    ]


def left_of(last: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the last ranking that this one lacks."""
    now = set(names)
    return tuple([name for name in last if name not in now])


def same_order(last: Iterable[str], names: Iterable[str], changed: set[str]) -> bool:
    """Return whether the unchanged jobs are in the order in which they were."""
    stayed = [name for name in last if name not in changed]
    return stayed == [name for name in names if name not in changed]
