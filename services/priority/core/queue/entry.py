"""The entry of an admitted job in the queue: what policies and history use of it."""

from __future__ import annotations

from shared.contracts.admission import JobAdmitted
from shared.contracts.construct import construct
from shared.contracts.job_names import command_digest
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import COMMANDS_FROM, QueueEntry


def entry_of(pool: PoolConfigured | None, message: JobAdmitted, traceparent: str) -> QueueEntry:
    """Return the entry of a job; its command counts once earlier releases are out of use."""
    spec = message.spec
    simulated = spec.simulated
    learns_commands = pool is not None and pool.release >= COMMANDS_FROM
    return construct(
        QueueEntry,
        job_id=message.job_id,
        tenant=message.tenant,
        user=spec.user,
        name=spec.name,
        command_digest=command_digest(spec.command, spec.image) if learns_commands else "",
        priority_class=spec.priority_class,
        submitted_at=message.submitted_at,
        gpus=spec.gang.gpus,
        workers=spec.gang.workers,
        walltime_s=spec.walltime_s,
        spot=spec.spot,
        preemptible=spec.preemptible,
        checkpoint_interval_s=spec.checkpoint_interval_s,
        checkpoint_cost_s=spec.checkpoint_cost_s,
        grace_s=spec.grace_s,
        restart_s=simulated.restart_s if simulated else 0.0,
        duration_s=simulated.duration_s if simulated else None,
        traceparent=traceparent,
    )
