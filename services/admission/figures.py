"""Gauges of a pool's admission, for dashboards and alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from services.admission.core.state import AdmissionState
from shared.contracts.admission import DeferReason
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure


def figures(state: AdmissionState, _now: Millis) -> Iterator[Figure]:
    """Yield the gauges of one lane; a lane without a pool has none."""
    if state.pool is None:
        return
    yield Figure("berth_admitted_jobs", len(state.admitted), (state.pool_name,))
    jobs_by_reason = Counter(job.reason for job in state.deferred.values())
    for reason in get_args(DeferReason):
        yield Figure("berth_deferred_jobs", jobs_by_reason[reason], (state.pool_name, reason))
