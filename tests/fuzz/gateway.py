"""Rows of two tenants for the fuzzed gateway; every text of bob contains the canary."""

from __future__ import annotations

from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandRefused
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.contracts.rejected import InputRejected
from tests.fuzz.canary import CANARY
from tests.services.gateway.stack import Stack

TEXT = {"ada": "of ada", "bob": CANARY.decode()}


async def fill(stack: Stack) -> None:
    """Finish the upgrade, before which a change of a pool waits for access, and fill in rows."""
    await stack.append(
        "access",
        0,
        PoolConfigured(pool="main", partition=1, release=RELEASE),
        PoolConfigured(pool="side", partition=2, release=RELEASE),
    )
    await stack.project(
        "access",
        0,
        1,
        PoolConfigured(pool="main", partition=1),
        TenantRegistered(tenant="ada", default_pool="main"),
    )
    for seq, tenant in enumerate(TEXT, 10):
        await stack.project("admission", 1, seq, *admitted(tenant))
        await stack.project("placement", 1, seq, *placed(tenant))


def admitted(tenant: str) -> tuple[Event, ...]:
    text = TEXT[tenant]
    spec = JobSpec(name=text)
    return (
        JobAdmitted(job_id=f"{tenant}s", tenant=tenant, submitted_at=1, spec=spec),
        CommandRefused(
            command_id=f"c-{tenant}s",
            command_type="job.submit.v1",
            tenant=tenant,
            of=f"{tenant}s",
            reason="invalid_spec",
            detail=text,
        ),
        InputRejected(
            topic=f"submissions.{tenant}",
            partition=0,
            offset=3,
            reason=text,
            sha256="0" * 64,
            tenant=tenant,
        ),
    )


def placed(tenant: str) -> tuple[Event, ...]:
    job, text = f"{tenant}s", TEXT[tenant]
    spec = JobSpec(name=text)
    lease = Allocation(rank=0, node_id=f"{text.replace(' ', '-')}.n", gpus=(1,))
    return (
        JobEnqueued(job_id=job, tenant=tenant, submitted_at=1, spec=spec),
        JobHeld(job_id=job, tenant=tenant, reason="no_capacity", short_gpus=1),
        JobPlaced(
            job_id=job, tenant=tenant, attempt=1, waited_ms=5, policy="fcfs", allocations=(lease,)
        ),
    )
