"""Ranks from priority, noted in the ledger; a rank may come before its job and waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.construct import construct
from shared.contracts.placement import RanksNoted
from shared.contracts.ranking import QueueRanked
from shared.ledger.decider import Decision, Input


def note_ranks(pool: Pool, message: QueueRanked, item: Input) -> Iterator[Decision]:
    """Note the ranks of jobs that hold no GPUs; of the others too, where rank may stop jobs."""
    waiting, jobs = pool.waiting, pool.jobs
    useful = tuple(
        [
            ranked_job
            for ranked_job in message.ranked
            if (job_id := ranked_job.job_id) in waiting or job_id not in jobs
        ]
    )
    holders = pool.running if pool.is_ranked else {}
    running = tuple([ranked_job for ranked_job in message.running if ranked_job.job_id in holders])
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
