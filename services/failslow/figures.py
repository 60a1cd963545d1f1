"""What fail-slow's state says of a pool in numbers, for dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.state import FailSlowState
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure


def figures(watch: FailSlowState, _now: Millis) -> Iterator[Figure]:
    """Of one lane; nothing of a lane without a pool."""
    if watch.pool is None:
        return
    yield Figure("berth_gangs_watched", len(watch.gangs), (watch.name,))
    yield Figure("berth_faults_open", len(watch.faults) - len(watch.closed), (watch.name,))
