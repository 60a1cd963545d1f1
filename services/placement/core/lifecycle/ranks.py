"""Ranks from priority, noted in the ledger; a rank may come before its job and waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.construct import construct
from shared.contracts.placement import RanksNoted
from shared.contracts.ranking import QueueRanked
from shared.ledger.decider import Decision, Input


def note_ranks(pool: Pool, message: QueueRanked, item: Input) -> Iterator[Decision]:
    """Note the ranks of jobs not on GPUs, and where rank may stop jobs of those on GPUs as well."""
    waiting, known = pool.waiting, pool.jobs
    useful = tuple(
        [e for e in message.ranked if (name := e.job_id) in waiting or name not in known]
    )
    holders = pool.running if pool.is_ranked else {}
    running = tuple([e for e in message.running if e.job_id in holders])
    if useful or running:
        yield item.decision(
            construct(
                RanksNoted,
                pool=pool.name,
                base_policy=message.base_policy,
                model_sha256=message.model_sha256,
                ranked_at=item.at,
                ranked=useful,
                running=running,
            )
        )
