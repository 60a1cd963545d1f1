"""Forecasts the ends of running jobs by the iterations that they report.

A report is the word of a tenant's program; its time, and the pace of the iterations, are those of
the node. What a report may change is bounded in `round.easy.expected_end`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from services.placement.core.lifecycle.restarts import restart_by_progress
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.attempts import JobProgressed
from shared.contracts.checkpoint import wall_ms
from shared.contracts.construct import construct
from shared.contracts.reports import WorkerProgressed
from shared.ledger.decider import Decision

REPORT_GAP_MS = 60_000
"""Wall ms between two reports of a start that are recorded."""
NEWS_SHARE = 0.1
"""A report is news if the rest differs by this share of it, or this share of the iterations was
done since the last one."""


def note_all(
    pool: Pool, reports: Iterable[WorkerProgressed], now: int, cause: str
) -> Iterator[Decision]:
    """Record when running jobs end by their own reports, where that is news."""
    for report in reports:
        yield from note_progress(pool, report, now, cause)


def note_progress(pool: Pool, report: WorkerProgressed, now: int, cause: str) -> Iterator[Decision]:
    """Record when a running job ends by its own report, where that is news.

    The worker of rank 0 speaks for its gang. A start that outran what it reported is not believed
    again.
    """
    if pool.settings is None or not pool.settings.use_progress:
        return
    job = pool.jobs.get(report.job_id)
    allocation = job.allocations.get(report.allocation_id) if job else None
    if job is None or allocation is None or allocation.rank != 0 or job.phase != "running":
        return
    if is_outrun(job, now):
        return
    ends_at = reported_end(job, report, now, pool.time_scale)
    if ends_at <= now or not is_news(job, report, ends_at, now):
        return
    event = construct(
        JobProgressed,
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        step=report.step,
        steps_total=report.steps_total,
        ends_at=ends_at,
        restart_ms=restart_by_progress(
            job,
            min(report.ran_ms, job.ran_ms(now)),
            report.step,
            report.iteration_s,
            pool.time_scale,
        ),
    )
    yield Decision(event, cause, job.trace)


def reported_end(job: Job, report: WorkerProgressed, now: int, time_scale: float) -> int:
    """Return the ms when the job ends by the report, at the latest its `walltime_s`."""
    reported_at = job.started_at + min(report.ran_ms, job.ran_ms(now))
    left_ms = (report.steps_total - report.step) * report.iteration_s * 1000
    # Longer than any job: the event holds whole milliseconds of 53 bits.
    ends_at = reported_at + round(min(left_ms, 1e14))
    if job.spec.walltime_s is None:
        return ends_at
    return min(ends_at, job.started_at + wall_ms(job.spec.walltime_s, time_scale))


def is_outrun(job: Job, now: int) -> bool:
    """Return whether the job ran past its own report, for longer than one may be unrecorded, or
    twice as long as the first one of its start said.
    """
    last = job.forecast
    return last is not None and now > min(last.ends_at, last.believed_until) + REPORT_GAP_MS


def is_news(job: Job, report: WorkerProgressed, ends_at: int, now: int) -> bool:
    last = job.forecast
    if last is None:
        return True
    if now - last.at < REPORT_GAP_MS:
        return False
    differs = abs(ends_at - last.ends_at) > NEWS_SHARE * (ends_at - now)
    return differs or abs(report.step - last.step) >= NEWS_SHARE * report.steps_total
