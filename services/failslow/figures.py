"""Metrics of fail-slow's state, for dashboards and alerts."""

from __future__ import annotations

from collections.abc import Iterator

from services.failslow.core.state import FailSlowState
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure


def figures(state: FailSlowState, _now: Millis) -> Iterator[Figure]:
    """Yield the figures of one lane; none of a lane without a pool."""
    if state.pool is None:
        return
    yield Figure("berth_gangs_watched", len(state.gangs), (state.name,))
    yield Figure("berth_faults_open", len(state.faults) - len(state.closed), (state.name,))
