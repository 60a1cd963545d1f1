"""Estimates the starts of waiting jobs a few times a minute, and publishes what is news."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.history.open_estimates import OpenEstimate
from services.priority.core.history.start_calibration import (
    StartInterval,
    shift_interval,
    simulated_intervals,
)
from services.priority.core.queue.queue_view import NO_ROWS, QueueView
from services.priority.core.queue.table import RUNNING, Rows
from services.priority.core.ranking.waiting import backfills_by_history
from services.priority.core.starts.simulated_starts import Load, simulate_starts
from services.priority.core.state import PriorityState
from shared.contracts.checkpoint import wall_ms
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import JobStartEstimated, Ranked
from shared.ledger.decider import Decision

ROUND_MS = 30_000
"""Wall ms between two simulations of a queue."""
SHORT_ROUND_MS = 5_000
"""The same for a short queue, whose simulation takes some hundredths of a second."""
SHORT_QUEUE = 256
"""Waiting jobs of a short queue."""
LEAST_WAIT_MS = 3_000
"""Wall ms that a job has waited before it gets an estimate: most start at once."""
PUBLISHED_MOST = 256
"""Estimates per round; jobs without one come first, tenant by tenant where they are too many."""
AHEAD_SHARE = 1 / 8
"""A job that outlived its estimate is expected for this share of its wait more, at p90: what keeps
it is not in the simulation, and without this bound it would have a new estimate in every round."""


def estimates_due(waiting: int, ranked_at: int, now: int) -> bool:
    """Return whether this ranking is the first of its round; `ranked_at` is the last one's time.

    The clock's round decides and not what was published: a simulation without news is not
    repeated at every ranking.
    """
    round_ms = SHORT_ROUND_MS if waiting <= SHORT_QUEUE else ROUND_MS
    return ranked_at // round_ms != now // round_ms


def estimate_starts(queue: PriorityState, ranked: Sequence[Ranked], now: int) -> Iterator[Decision]:
    """Yield estimates for waiting jobs that have none or a stale one, in this order.

    The jobs that were not ranked follow in the order of their submission, as in placement.
    """
    if not any(has_waited(queue, name, now) for name in queue.waiting):
        return
    names = [one.job_id for one in ranked if one.job_id in queue.waiting]
    if len(names) < len(queue.waiting):
        known = set(names)
        rest = [entry for name, entry in queue.waiting.items() if name not in known]
        rest.sort(key=lambda entry: (entry.submitted_at, entry.job_id))
        names += [entry.job_id for entry in rest]
    rows = np.array([queue.jobs[name].row for name in names], np.intp)
    yield from publish(queue, names, simulate_queue(queue, rows, now), now)


def publish(
    queue: PriorityState, names: list[str], delays_s: Floats, now: int
) -> Iterator[Decision]:
    """Yield the estimates that are news, given simulated delays [n, SCENARIOS] in cluster s."""
    shifts = queue.starts.calibration.shifts(queue.starts.outlived(now, queue.time_scale))
    intervals = simulated_intervals(delays_s)

    def event_of(place: int, simulated: StartInterval, least_s: float = 0.0) -> JobStartEstimated:
        interval = shift_interval(simulated, shifts)
        interval = interval._replace(p90_s=max(interval.p90_s, least_s))
        return start_event(queue, names[place], interval, simulated, now)

    new: list[tuple[int, StartInterval]] = []
    renewed: list[JobStartEstimated] = []
    for place, simulated in enumerate(intervals):
        if simulated is None or not has_waited(queue, names[place], now):
            continue
        estimate = queue.starts.by_job.get(names[place])
        if estimate is None:
            new.append((place, simulated))
        elif len(renewed) < PUBLISHED_MOST:
            event = event_of(place, simulated, least_ahead_s(estimate, now, queue.time_scale))
            if is_news(estimate, event, now):
                renewed.append(event)
    if len(new) > PUBLISHED_MOST:
        turns = take_turns([queue.waiting[names[place]].tenant for place, _ in new])
        new = [new[index] for index in turns[:PUBLISHED_MOST]]
    yield from (Decision(event_of(*one)) for one in new)
    yield from map(Decision, renewed[: PUBLISHED_MOST - len(new)])


def least_ahead_s(estimate: OpenEstimate, now: int, time_scale: float) -> float:
    """Return the least p90 of a new estimate, in cluster s: 0 where the job has not outlived it."""
    return AHEAD_SHARE * estimate.delay_s(now, time_scale) if now > estimate.p90_at else 0.0


def take_turns(tenants: Sequence[str]) -> list[int]:
    """Return the places of all jobs, the first one of each tenant before the second of any."""
    turn: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, tenant in enumerate(tenants):
        turns.append((turn[tenant], place))
        turn[tenant] += 1
    return [place for _, place in sorted(turns)]


def has_waited(queue: PriorityState, job_id: str, now: int) -> bool:
    """Return whether the job has waited long enough to get an estimate."""
    return now - queue.waiting[job_id].submitted_at >= LEAST_WAIT_MS


def simulate_queue(queue: PriorityState, rows: Rows, now: int) -> Floats:
    """Return simulated delays of the waiting jobs in these rows of the table, in cluster s."""
    pool = queue.pool
    assert pool is not None
    clock = queue.clock(now)
    waiting = QueueView(queue.table, clock, queue.capacity_gpus, rows, NO_ROWS)
    holding = QueueView(queue.table, clock, queue.capacity_gpus, NO_ROWS, queue.table.of(RUNNING))
    free_gpus = queue.capacity_gpus - holding.used_gpus
    loads = (load_of(pool, holding), load_of(pool, waiting))
    return simulate_starts(free_gpus, *loads, pool.queue_mode)


def load_of(pool: PoolConfigured, view: QueueView) -> Load:
    estimate_s = None
    if backfills_by_history(pool):
        estimate_s = np.fmin(view.mean_s, view.walltime_s)
    elif pool.queue_mode == "easy":
        estimate_s = np.where(np.isnan(view.walltime_s), np.inf, view.walltime_s)
    return Load(view.gpus, view.distribution, view.attained_s, estimate_s, view.reported_left_s)


def start_event(
    queue: PriorityState, job_id: str, interval: StartInterval, simulated: StartInterval, now: int
) -> JobStartEstimated:
    """Return the estimate as wall times, with the record of the pool's earlier estimates."""
    p10_at, p50_at, p90_at = (now + round(wall_ms(s, queue.time_scale)) for s in interval)
    coverage = queue.starts.coverage
    return JobStartEstimated(
        job_id=job_id,
        tenant=queue.waiting[job_id].tenant,
        pool=queue.name,
        p10_at=p10_at,
        p50_at=p50_at,
        p90_at=p90_at,
        simulated_s=simulated,
        coverage=round(coverage.share, 4) if coverage.samples else None,
        samples=coverage.samples,
    )


def is_news(estimate: OpenEstimate, event: JobStartEstimated, now: int) -> bool:
    """Return whether the job outlived its estimate, or is now expected outside of it."""
    if now > estimate.p90_at:
        return True
    return not estimate.p10_at <= event.p50_at <= estimate.p90_at
