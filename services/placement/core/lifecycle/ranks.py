"""Ranks from priority, noted in the ledger; a rank may come before its job and waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.pool.state import Pool
from shared.contracts.construct import construct
from shared.contracts.placement import RanksChanged, RanksNoted
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reranking import QueueReranked
from shared.ledger.decider import Decision, Input


def note_ranks(pool: Pool, message: QueueRanked, item: Input) -> Iterator[Decision]:
    """Note the ranks of use now, or the whole order where changes to it follow."""
    if message.changes_follow:
        yield item.decision(noted(pool, message, message.ranked, message.running, item.at))
        return
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
        yield item.decision(noted(pool, message, useful, running, item.at))


def noted(
    pool: Pool,
    message: QueueRanked,
    ranked: tuple[Ranked, ...],
    running: tuple[Ranked, ...],
    ranked_at: int,
) -> RanksNoted:
    return construct(
        RanksNoted,
        pool=pool.name,
        base_policy=message.base_policy,
        model_sha256=message.model_sha256,
        ranked_at=ranked_at,
        ranked=ranked,
        running=running,
        changes_follow=message.changes_follow,
    )


def note_changes(pool: Pool, message: QueueReranked, item: Input) -> Iterator[Decision]:
    """Note what changed in the order.

    Changes to another order than the last one are of no use: one that came between was quarantined,
    and the ranks that are known age until the next whole order.
    """
    order = pool.named_order
    if order is None or message.number != order.number + 1:
        return
    yield item.decision(
        construct(
            RanksChanged,
            pool=pool.name,
            number=message.number,
            ranked_at=item.at,
            ranked=message.ranked,
            left_ranked=message.left_ranked,
            running=message.running,
            left_running=message.left_running,
        )
    )
