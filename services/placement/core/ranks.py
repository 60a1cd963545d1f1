"""Priority's advice, noted; a rank may come before its job and waits for it in the note."""

from __future__ import annotations

from collections.abc import Iterator

from services.placement.core.state import Pool
from shared.bus.decider import Decision, Input
from shared.contracts.placement import RanksNoted
from shared.contracts.ranking import QueueRanked


def noted(pool: Pool, message: QueueRanked, item: Input) -> Iterator[Decision]:
    """All but the jobs that hold GPUs; bounded by what one rank may name."""
    useful = tuple(
        entry
        for entry in message.ranked
        if (job := pool.jobs.get(entry.job_id)) is None or job.phase == "waiting"
    )
    if useful:
        yield item.leads_to(
            RanksNoted(
                pool=pool.name,
                base_policy=message.base_policy,
                model_sha256=message.model_sha256,
                ranked_at=item.at,
                ranked=useful,
            )
        )
