"""Estimates the start of a job submitted now: that of its tenant's last waiting job of its size.

A submission is answered when the broker has its command. Meanwhile the read model is queried, at
most once a second for jobs that are alike, and nothing waits long for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import NamedTuple, cast

from berth_client.answers import StartInterval
from services.gateway.core.strict import Body
from services.gateway.reads.database import Database
from services.gateway.reads.queries import NEW_JOB_ESTIMATE
from services.gateway.responses.problem import ApiError
from shared.contracts.registry import Bearer

WAIT_S = 0.05
"""Longest that a submission waits for the answer, from when its command is written."""
KEPT_S = 1.0
AWAY_S = 5.0
"""While the read models do not answer they are not queried, and nothing waits for them."""
MOST_KINDS = 10_000


class Kind(NamedTuple):
    """Jobs that are submitted alike: they get the same estimate."""

    tenant: str
    lane: int
    gpus: float


def interval_of(data: Body, at: object, of: str) -> StartInterval:
    """Return the interval in the data of a `JobStartEstimated` that was published at `at`."""
    return StartInterval(
        at=cast("int", at),
        of=of,
        p10_at=cast("int", data["p10_at"]),
        p50_at=cast("int", data["p50_at"]),
        p90_at=cast("int", data["p90_at"]),
        coverage=cast("float | None", data.get("coverage")),
        samples=cast("int", data.get("samples") or 0),
    )


class QueueStarts:
    """The estimates of the last second, and those that are being read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reads: OrderedDict[Kind, tuple[float, asyncio.Task[StartInterval | None]]] = (
            OrderedDict()
        )
        self._away_until = 0.0

    def read(self, bearer: Bearer, kind: Kind) -> asyncio.Task[StartInterval | None] | None:
        """Return the read that answers a submission of this kind; None while the read models are
        away.
        """
        now = time.monotonic()
        if now < self._away_until:
            return None
        began_s, task = self._reads.get(kind, (0.0, None))
        if task is None or now - began_s > KEPT_S:
            task = asyncio.create_task(self._query(bearer, kind))
            self._reads[kind] = now, task
            self._reads.move_to_end(kind)
            if len(self._reads) > MOST_KINDS:
                self._reads.popitem(last=False)
        return task

    async def answer(self, task: asyncio.Task[StartInterval | None] | None) -> StartInterval | None:
        """Return the estimate if it is known soon; None without one."""
        if task is None:
            return None
        done, _ = await asyncio.wait({task}, timeout=WAIT_S)
        return task.result() if done else None

    async def _query(self, bearer: Bearer, kind: Kind) -> StartInterval | None:
        try:
            row = await self._database.row(bearer, NEW_JOB_ESTIMATE, *kind)
        except ApiError:
            self._away_until = time.monotonic() + AWAY_S
            return None
        if row is None or not isinstance(data := row["data"], dict):
            return None
        return interval_of(data, row["at"], "queue")
