"""The other pools of a job that waits: those that it may go to, and which starts it first."""

from __future__ import annotations

import asyncio
from typing import cast

from berth_client.answers import OtherPool, StartInterval
from services.gateway.core import named_pools
from services.gateway.core.strict import Body
from services.gateway.reads.queries import NEW_JOB_ESTIMATE
from services.gateway.reads.queue_starts import interval_of
from services.gateway.reads.transfer_queries import WAITING_THERE
from services.gateway.wiring import Gateway
from shared.contracts.job_spec import JobSpec
from shared.contracts.registry import Bearer

WAITS = ("waiting", "deferred")
COUNTS = Bearer("other-pools", "operator", None)
"""The bearer of the count of waiting jobs, which is of all tenants, as a queue position is."""


async def other_pools(gateway: Gateway, bearer: Bearer, row: Body) -> list[OtherPool]:
    """Return the other pools of a waiting job in its order; none for another job."""
    if row["phase"] not in WAITS or not (spec := cast("Body", row["spec"])).get("pools"):
        return []
    tenant, pool, pools = str(row["tenant"]), str(row["pool"]), gateway.access.view.pools
    rules = named_pools.other_pools(JobSpec.model_validate(spec), tenant, pool, pools)
    counts = await gateway.database.rows(COUNTS, WAITING_THERE, list(rules))
    waiting = {str(count["pool"]): cast("int", count["waiting"]) for count in counts}

    async def start_in(name: str) -> StartInterval | None:
        if rules[name] is not None:
            return None
        lane, gpus = pools[name].partition, row["gpus"]
        last = await gateway.database.row(bearer, NEW_JOB_ESTIMATE, tenant, lane, gpus)
        if last is None or not isinstance(data := last["data"], dict):
            return None
        return {**interval_of(data, last["at"], "queue"), "pool": name}

    starts = await asyncio.gather(*map(start_in, rules))
    return [
        OtherPool(pool=name, rule=rule, waiting=waiting.get(name, 0), start=start)
        for (name, rule), start in zip(rules.items(), starts, strict=True)
    ]


def first_start(
    own: StartInterval | None, others: list[OtherPool], now_ms: int
) -> StartInterval | None:
    """Return the estimate of the pool that starts the job first, as likely as not.

    An interval of another pool that has passed is none: its last waiting job is late.
    """
    starts = [other["start"] for other in others]
    valid = [start for start in starts if start is not None and start["p90_at"] > now_ms]
    return min([own, *valid] if own else valid, key=lambda start: start["p50_at"], default=None)
