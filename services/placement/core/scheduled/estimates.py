"""Estimates of a job in a pool: its speeds, and the work that is left of it.

Speeds are those that the job declares: by GPU type (`gpu_speeds`), by number (`elastic`), and over
several nodes (`spread_speeds`).
"""

from __future__ import annotations

import math

from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from shared.contracts.checkpoint import speed, spread_of, type_speed
from shared.contracts.job_spec import Spread
from shared.performance.links import GangSteps, Link, TieredLinks
from shared.performance.rates import RateTable
from shared.schedulers.view import Estimates

LEAST_WORK_S = 1.0
"""Work that is left of a job which runs longer than it was expected to."""


def estimates_of(pool: Pool, job: Job, types: tuple[str, ...], now: int) -> Estimates:
    """Return the speeds that the job declares, and the rest of its expected run time."""
    rates, left_s = rates_of(job, types), work_left_s(pool, job, now)
    return Estimates("history", left_s, rates, steps=steps_of(job))


def rates_of(job: Job, types: tuple[str, ...]) -> RateTable | None:
    """Return the work per second by type and number of GPUs; None if the job declares nothing.

    A second of work is a second with the gang as requested at speed 1. An elastic gang works in
    proportion to its workers, so that its least and its most say all between. Over several nodes
    the rate is that within a rack, which the table has alone; unknown without `spread_speeds`.
    """
    spec, shape = job.spec, job.shape
    if not (spec.gpu_speeds or spec.elastic or spec.spread_speeds):
        return None
    consolidated = {
        (name, workers * shape.gpus): type_speed(spec, name) * speed(spec, workers)
        for name in types
        for workers in {shape.min_workers, spec.gang.workers, shape.max_workers}
    }
    if not spec.spread_speeds:
        return RateTable(consolidated)
    linked = link_speed(job, "rack")
    return RateTable(consolidated, {key: rate * linked for key, rate in consolidated.items()})


def steps_of(job: Job) -> GangSteps | None:
    """Return steps of 1 s on one node that are as much longer over links as the job declares.

    None if it declares nothing. They hold for the gang as requested, of another size about.
    """
    gpus = job.spec.gang.workers * job.shape.gpus
    if not job.spec.spread_speeds or gpus <= 1:
        return None
    return GangSteps(
        1.0, 0.0, TieredLinks(Link(0.0, math.inf), link(job, "rack"), link(job, "spine"))
    )


def link(job: Job, spread: Spread) -> Link:
    """Return a link over which the turns of a ring take what a step becomes longer, s."""
    turns = 2 * (job.spec.gang.workers * job.shape.gpus - 1)
    return Link((1 / link_speed(job, spread) - 1) / turns, math.inf)


def link_speed(job: Job, spread: Spread) -> float:
    """Return the speed over the links relative to one node; the spine is no faster than a rack."""
    rack = speed(job.spec, job.spec.gang.workers, (), "rack")
    return (
        rack if spread == "rack" else min(rack, speed(job.spec, job.spec.gang.workers, (), "spine"))
    )


def work_left_s(pool: Pool, job: Job, now: int) -> float | None:
    """Return the seconds of work that are left; None if the run time is not known.

    No start outlasts the walltime of its job, at which it is ended.
    """
    estimate_ms = job.estimate_ms(pool.time_scale)
    if estimate_ms is None:
        return None
    worked_ms = max(0, job.ran_ms(now) - job.paid_ms(pool.time_scale))
    racks = {name: pool.board.rack(name) for name in job.nodes if name in pool.board.nodes}
    types = {pool.board.nodes[name].kind.gpu_type for name in racks}
    links = spread_of(racks, racks)
    pace = speed(job.spec, len(job.allocations), types, links) if job.allocations else 1.0
    done_s = job.done_s + worked_ms / 1000 * pool.time_scale * pace
    left_s = estimate_ms / 1000 * pool.time_scale - done_s
    if job.started_at and job.spec.walltime_s is not None:
        rest_s = job.spec.walltime_s - job.ran_ms(now) / 1000 * pool.time_scale
        left_s = min(left_s, rest_s * pace)
    return max(LEAST_WORK_S, left_s)
