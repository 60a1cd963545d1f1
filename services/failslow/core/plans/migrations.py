"""Decisions about migrations by a plan: when the job has left, what it cost, what it saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from services.failslow.core.gangs import ENDS
from services.failslow.core.mitigation.migration import FollowedMigration
from services.failslow.core.mitigation.mitigation_state import OpenPlan
from services.failslow.core.state import FailSlowState
from shared.contracts.attempts import JobCancelled, JobFailed, JobMigrated, JobStarted, JobSucceeded
from shared.contracts.mitigation import LevelName
from shared.contracts.mitigation_account import (
    MitigationAccounted,
    MitigationCarriedOut,
    MitigationMeasured,
)
from shared.ledger.decider import Decision, Input

LEVELS: Mapping[str, LevelName] = {"slow_node": "migrate", "restart": "restart"}
"""Reason of a migration -> the level of the plan that led to it."""
OVER = (JobSucceeded, JobFailed, JobCancelled)


def follow_migrations(state: FailSlowState, item: Input, now: int) -> Iterator[Decision]:
    """Follow one input of the placement ledger; most are of jobs that no plan has moved."""
    match item.message:
        case JobStarted() as started:
            migration = state.mitigation.migrations.get(started.job_id)
            if (
                migration is not None
                and migration.started_s is None
                and started.attempt > migration.attempt
            ):
                yield item.decision(measured(state, migration, started, now))
        case message if isinstance(message, ENDS):
            migration = state.mitigation.migrations.get(message.job_id)
            if migration is not None and (
                migration.started_s is not None or isinstance(message, OVER)
            ):
                yield item.decision(accounted(state, message.job_id, migration, now))
            if (
                isinstance(message, JobMigrated)
                and (open_plan := plan_of(state, message)) is not None
            ):
                yield item.decision(carried_out(state, open_plan, message, now))


def plan_of(state: FailSlowState, migrated: JobMigrated) -> OpenPlan | None:
    """Return the plan that led to a migration, if one did."""
    level = LEVELS.get(migrated.reason)
    plans = (plan for plan in state.mitigation.plans.values() if plan.job_id == migrated.job_id)
    return next((plan for plan in plans if plan.is_applied and plan.plan.level == level), None)


def carried_out(
    state: FailSlowState, open_plan: OpenPlan, migrated: JobMigrated, now: int
) -> MitigationCarriedOut:
    now_s, episode = state.cluster_s(now), state.mitigation.episodes.get(open_plan.job_id)
    faults = episode.faults.values() if episode else ()
    return MitigationCarriedOut(
        plan_id=open_plan.plan_id,
        fault_id=open_plan.plan.fault_ids[0],
        job_id=open_plan.job_id,
        tenant=open_plan.tenant,
        attempt=migrated.attempt,
        slowdown=max((fault.slowdown for fault in faults), default=0.0),
        elapsed_s=max(0.0, now_s - episode.began_s) if episode else 0.0,
        lost_work_s=migrated.lost_work_s,
    )


def measured(
    state: FailSlowState, migration: FollowedMigration, started: JobStarted, now: int
) -> MitigationMeasured:
    return MitigationMeasured(
        plan_id=migration.plan_id,
        fault_id=migration.fault_id,
        job_id=started.job_id,
        tenant=migration.tenant,
        attempt=started.attempt,
        cost_s=migration.cost_at(state.cluster_s(now)),
        gpus=started.gpus,
    )


def accounted(
    state: FailSlowState, job_id: str, migration: FollowedMigration, now: int
) -> MitigationAccounted:
    now_s, survival = state.cluster_s(now), state.mitigation.durations.survival()
    return MitigationAccounted(
        plan_id=migration.plan_id,
        fault_id=migration.fault_id,
        job_id=job_id,
        tenant=migration.tenant,
        ran_s=migration.ran_s(now_s),
        gpus=migration.gpus,
        cost_s=migration.cost_at(now_s) if migration.started_s is None else migration.cost_s,
        avoided_s=migration.avoided_s(now_s, survival),
        observed_faults=survival.count,
    )
