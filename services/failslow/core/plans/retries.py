"""Applied migrations for which there was no room are applied again, a bounded number of times.

A migration that was carried out ends the attempt of its job, and with it the plan. So a plan that
is applied and still there had no room. It is tried again once GPUs or a node become free, and at
growing intervals, as room may also come from jobs that shrink or from nodes that heal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.plans.planning import applied
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import (
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobResized,
    JobSucceeded,
)
from shared.contracts.mitigation import MitigationApplied
from shared.contracts.nodes import NodeJoined, NodeUncordoned
from shared.ledger.decider import Decision, Input

MOST_TRIES = 8
"""The first one included."""
LEAST_PAUSE_S = 10.0
"""Cluster seconds between two tries, whatever becomes free."""
FIRST_PAUSE_S = 30.0
"""Cluster seconds until the second try without news of room; doubled with each try."""
ROOM = (
    JobSucceeded,
    JobFailed,
    JobCancelled,
    JobPreempted,
    JobMigrated,
    JobResized,
    NodeJoined,
    NodeUncordoned,
)
"""After any of these there may be room."""


def retry_plans(state: FailSlowState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
    """Apply the plans again that are due, oldest first."""
    waiting = waiting_plans(state)
    if not waiting:
        return
    is_room = any(isinstance(item.message, ROOM) for item in inputs)
    now_s = state.cluster_s(now)
    for open_plan in waiting:
        if now_s >= open_plan.tried_s + (LEAST_PAUSE_S if is_room else pause_s(open_plan)):
            gang = state.gangs.get(open_plan.job_id)
            yield Decision(again(open_plan), "", gang.traceparent if gang else "")


def next_try_s(state: FailSlowState) -> float | None:
    """Return the cluster time of the next try without news of room; None without any."""
    return min(
        (open_plan.tried_s + pause_s(open_plan) for open_plan in waiting_plans(state)), default=None
    )


def waiting_plans(state: FailSlowState) -> list[OpenPlan]:
    """Return applied migrations of running jobs that have not left, and may be tried again."""
    if state.pool is None or state.pool.mitigation == "off":
        return []
    return [plan for plan in state.mitigation.plans.values() if _is_waiting(state, plan)]


def pause_s(open_plan: OpenPlan) -> float:
    return float(FIRST_PAUSE_S * 2.0 ** (open_plan.tries - 1))


def again(open_plan: OpenPlan) -> MitigationApplied:
    """Return that the plan is applied, as it was the first time."""
    reason = f"try {open_plan.tries + 1}"
    return applied(open_plan, reason=reason, by=open_plan.by, cordons=open_plan.cordons)


def _is_waiting(state: FailSlowState, open_plan: OpenPlan) -> bool:
    gang = state.gangs.get(open_plan.job_id)
    is_open = (
        open_plan.is_applied
        and open_plan.plan.level == "migrate"
        and open_plan.plan.actor == "berth"
    )
    return (
        is_open
        and open_plan.tries < MOST_TRIES
        and gang is not None
        and gang.attempt == open_plan.attempt
    )
