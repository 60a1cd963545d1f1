"""The time for which a job on GPUs is protected from being stopped, migrated or resized."""

from __future__ import annotations

from typing import NamedTuple

from services.placement.core.pool.job import Job, ProtectionRule, StopWindow
from services.placement.core.round.progress import (
    NEVER,
    least_work_ms,
    next_reported_stop_ms,
    next_stop_ms,
    stop_window_ms,
)
from shared.contracts.checkpoint import wall_ms


class ProgressRules(NamedTuple):
    """The settings of `preemption_protection=progress`, in wall ms."""

    checkpoint_window_ms: int
    start_protection_ms: int
    cheap_restarts: int


class Protection(NamedTuple):
    """The rules that protect the running jobs of a pool from preemption by rank."""

    min_residency_ms: int
    time_scale: float
    progress: ProgressRules | None = None
    """None: residency and debt alone."""


class Stoppable(NamedTuple):
    """The first ms at which rank may stop a job, and the rule that protects it until then."""

    at_ms: int
    """First ms from now on; NEVER."""
    rule: ProtectionRule
    """The last rule that ends; empty: none protects it."""


def stoppable(job: Job, rules: Protection, now: int) -> Stoppable:
    """Return when rank may stop a running job, or migrate it for another."""
    window = window_at(job, rules, now)
    opens_ms = window.opens_ms
    return Stoppable(opens_ms, window.rule) if opens_ms > now else Stoppable(now, "")


def window_at(job: Job, rules: Protection, now: int) -> StopWindow:
    """Return the window in which rank may stop a running job, or the next one after `now`."""
    window = job.stop_window
    key = (
        job.started_at,
        job.starts,
        job.checkpointed_ms,
        job.debt_ms,
        job.resumes,
        job.restart_wall_ms,
        rules,
    )
    if window is None or not window.since_ms <= now <= window.closes_ms or window.key != key:
        next_ms = job.restart_ms(rules.time_scale)
        window = job.stop_window = StopWindow(key, now, *find_window(job, rules, now), next_ms)
    return window


def find_window(job: Job, rules: Protection, now: int) -> tuple[int, int, ProtectionRule]:
    """Return the first ms from `now` on at which rank may stop the job, and the last one; with the
    rule that ends last before it.
    """
    if rules.progress is None:
        until_ms = protected_until_ms(job, rules.min_residency_ms, rules.time_scale)
        return until_ms, NEVER, "residency"
    interval_ms = job.interval_ms(rules.time_scale)
    if interval_ms is None and not job.checkpointed_ms:
        return NEVER, NEVER, "no_checkpoints"
    work_from_ms = job.work_from_ms(rules.time_scale)
    least_ms = least_work_of(job, rules.progress, rules, interval_ms)
    guarantee_ms = guarantee_end_ms(job, rules.time_scale) or 0
    safe_ms = max(work_from_ms + least_ms, guarantee_ms)
    at_ms = next_stop_of(job, rules.progress, rules, now, safe_ms, work_from_ms + least_ms)
    closes_ms = window_end_ms(job, rules.progress, rules, at_ms, work_from_ms)
    if at_ms > max(now, safe_ms):
        return at_ms, closes_ms, "checkpoint"
    return at_ms, closes_ms, "guarantee" if guarantee_ms == safe_ms else "progress"


def window_end_ms(
    job: Job, progress: ProgressRules, rules: Protection, at_ms: int, work_from_ms: int
) -> int:
    """Return the last ms, from `at_ms` on, until which rank may stop the job without a break.

    It may be an earlier one: that of a job that reports its checkpoints is not looked for.
    """
    interval_ms = job.interval_ms(rules.time_scale)
    if interval_ms is None or at_ms >= NEVER:
        return at_ms
    if job.stop_cost_ms(rules.time_scale):
        return NEVER
    if job.checkpointed_ms:
        return at_ms
    phase_ms = (at_ms - work_from_ms) % interval_ms
    return at_ms - phase_ms + stop_window_ms(progress.checkpoint_window_ms, interval_ms)


def next_stop_of(
    job: Job, progress: ProgressRules, rules: Protection, now: int, safe_ms: int, least_end_ms: int
) -> int:
    """Return the first ms from `now` on, and not before `safe_ms`, that lies in a window.

    A reported checkpoint of a later start has one only if its least work, which ends at
    `least_end_ms`, is in it.
    """
    scale = rules.time_scale
    interval_ms, work_from_ms = job.interval_ms(scale), job.work_from_ms(scale)
    if interval_ms is not None and job.stop_cost_ms(scale):
        return max(now, safe_ms)
    window_ms = stop_window_ms(progress.checkpoint_window_ms, interval_ms or 0)
    if job.checkpointed_ms:
        kept_from_ms = least_end_ms if job.starts > 1 else work_from_ms
        reported_ms = work_from_ms + job.checkpointed_ms
        return next_reported_stop_ms(
            now, safe_ms, kept_from_ms, reported_ms, interval_ms, window_ms
        )
    assert interval_ms is not None, "a job without checkpoints has no window"
    return next_stop_ms(now, safe_ms, work_from_ms, interval_ms, window_ms)


def least_work_of(
    job: Job, progress: ProgressRules, rules: Protection, interval_ms: int | None
) -> int:
    """Return the work that this start of the job does before rank may stop it, wall ms.

    It is in whole intervals unless the job reports its checkpoints.
    """
    return least_work_ms(
        job.starts,
        rules.min_residency_ms,
        job.debt_ms,
        progress.start_protection_ms,
        progress.cheap_restarts,
        1 if interval_ms is None or job.checkpointed_ms else interval_ms,
        0 if interval_ms is None else job.stop_cost_ms(rules.time_scale),
    )


def protected_ms(job: Job, min_residency_ms: int) -> int:
    """Return the wall ms from the job's start before which it is not stopped under `residency`.

    The rule: a job may be stopped by rank at `now` only if

        now - started_at >= max(min_residency_ms, debt_ms)

    where `debt_ms` is the cost of its last preemption: the work that it lost (since its last
    checkpoint, `shared.contracts.checkpoint`) plus the restart that this start
    paid (`Job.restart_ms`). It is 0 for a job that was never
    preempted while it ran, and of a job whose program failed and which began anew. The time in
    which a start pays its restart counts: a start may keep nothing, which `progress` prevents.
    All in whole ms of the pool's clock.
    """
    return max(min_residency_ms, job.debt_ms)


def guarantee_end_ms(job: Job, time_scale: float) -> int | None:
    """Return the ms when the guarantee ends, 0 without one; None while it has not begun."""
    if not job.spec.guaranteed_s:
        return 0
    if not job.started_at:
        return None
    return job.started_at + wall_ms(job.spec.guaranteed_s, time_scale)


def protected_until_ms(job: Job, min_residency_ms: int, time_scale: float) -> int:
    """Return the ms when both the residency and the guarantee of a running job are over."""
    residency_end = job.started_at + protected_ms(job, min_residency_ms)
    return max(residency_end, guarantee_end_ms(job, time_scale) or 0)


def movable_from_ms(job: Job, min_residency_ms: int, time_scale: float) -> int:
    """Return the ms from which a job may be migrated or resized, as far as its residency goes.

    It is NEVER for one that does not run or may not be stopped.
    """
    if job.phase != "running" or not (job.spec.preemptible or job.spec.spot):
        return NEVER
    return protected_until_ms(job, min_residency_ms, time_scale)


def stop_price_s(job: Job, window: StopWindow, now: int, time_scale: float) -> float:
    """Return the cluster seconds that a stop of the job costs at the ms when it may be stopped.

    That is the work that it loses and the restart; just after a checkpoint it loses none.
    """
    lost_ms = job.lost_ms(now, time_scale) if window.opens_ms <= now else 0
    return (lost_ms + window.restart_ms) / 1000.0 * time_scale
