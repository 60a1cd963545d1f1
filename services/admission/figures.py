"""What admission's state says of a pool in numbers, for dashboards and alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from services.admission.core.state import Pool
from shared.contracts.base import Millis
from shared.contracts.jobs import DeferReason
from shared.telemetry.figures import Figure


def figures(pool: Pool, _now: Millis) -> Iterator[Figure]:
    """Of one lane; nothing of a lane without a pool."""
    if pool.pool is None:
        return
    yield Figure("berth_admitted_jobs", len(pool.admitted), (pool.name,))
    reasons = Counter(job.reason for job in pool.deferred.values())
    for reason in get_args(DeferReason):
        yield Figure("berth_deferred_jobs", reasons[reason], (pool.name, reason))
