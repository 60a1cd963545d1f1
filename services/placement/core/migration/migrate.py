"""A running job stops on purpose and goes on from its checkpoint on other GPUs."""

from __future__ import annotations

from services.placement.core.lifecycle import ends
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Migration
from shared.contracts.attempts import JobMigrated
from shared.ledger.decider import Decision


def migrate_job(pool: Pool, migration: Migration, now: int, cause: str) -> Decision:
    """Return the decision that stops the job and names its target."""
    job = migration.job
    event = JobMigrated(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        reason=migration.reason,
        by_job_id=migration.by.job_id if migration.by else "",
        from_nodes=job.nodes,
        to_nodes=tuple(dict.fromkeys(slot.node_id for slot in migration.slots)),
        target=allocations_of(migration.slots),
        lost_work_s=job.lost_work_s(now, pool.time_scale),
    )
    return ends.job_decision(job, cause, event)
