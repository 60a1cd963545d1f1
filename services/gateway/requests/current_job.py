"""Finds a job by any of its ids: one that was transferred has another in each of its pools."""

from __future__ import annotations

from typing import TypedDict, cast

from services.gateway.core.strict import Body
from services.gateway.reads import job_queries
from services.gateway.reads.transfer_queries import STAYS
from services.gateway.wiring import Gateway
from shared.contracts.registry import Bearer

IN_NO_QUEUE = "admitted"
"""The phase that is shown of a job on its way: it has left one pool and is not in the next yet."""


class Stay(TypedDict):
    """The time of a job in one of its pools, from `submitted_at` to `ended_at` ms, 0: until now."""

    job_id: str
    pool: str | None
    partition: int
    submitted_at: int
    ended_at: int
    transferred_to: Body | None


async def stays(gateway: Gateway, bearer: Bearer, job_id: str) -> list[Stay]:
    """Return the stays of a job from the one with that id on; none for an unknown id."""
    rows = await gateway.database.rows(bearer, STAYS, bearer.tenant, job_id)
    return cast("list[Stay]", rows)


async def all_stays(gateway: Gateway, bearer: Bearer, row: Body) -> list[Stay]:
    """Return the stays of a job in all of its pools; its row has any of its ids."""
    spec = row.get("spec")
    before = spec.get("transferred") if isinstance(spec, dict) else None
    if not before and not row.get("transferred_to"):
        return []
    first = str(before["first_job_id"]) if before else str(row["job_id"])
    return await stays(gateway, bearer, first)


async def current_row(gateway: Gateway, bearer: Bearer, job_id: str) -> Body | None:
    """Return the row of a job in the pool where it is now; None for an unknown id."""
    row = await gateway.database.row(bearer, job_queries.JOB, bearer.tenant, job_id)
    if row is None or not row["transferred_to"]:
        return row
    last = (await stays(gateway, bearer, job_id))[-1]
    row = await gateway.database.row(bearer, job_queries.JOB, bearer.tenant, last["job_id"])
    if row is not None and row["transferred_to"]:
        return {**row, "phase": IN_NO_QUEUE, "reason": "", "ended_at": 0}
    return row


async def current_id(gateway: Gateway, bearer: Bearer, job_id: str) -> str:
    """Return the id of a job in the pool where it is now; an unknown id as it is."""
    return next((stay["job_id"] for stay in reversed(await stays(gateway, bearer, job_id))), job_id)
