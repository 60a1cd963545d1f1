"""Days of a pool: the live deciders on a virtual clock, with ledgers of an installation."""

from __future__ import annotations

from typing import Any, NamedTuple

from services.executor.core.virtual.inventory import InventoryNode
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.identity import derive_command_id, derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.contracts.pools import LOG_SCORE_MARGIN, PoolConfigured
from shared.telemetry.trace_ids import new_traceparent
from simulator.engine.scenario import FIRST_MS, POOL, Scenario, simulated_pool, submission
from simulator.engine.sizing import Sizing, equal_nodes, nodes_for_load, stretch_arrivals
from simulator.engine.world import BEGIN, World
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

TRACE = "synthetic:helios"
LOAD = 0.9
DAY_S = 86_400.0
SETTINGS: dict[str, Any] = {
    "base_policy": "gittins",
    "preemption": "ranked",
    "preempt_margin": LOG_SCORE_MARGIN,
    "rank_ms": 1000,
    "round_ms": 100,
    "publish_predictions": True,
}
"""As `berth up` makes its pool, on a clock that is not sped up: it ranks once a second."""


class PlayedPool(NamedTuple):
    """A pool that was played: its topics, and its size."""

    broker: MemoryBroker
    jobs: int
    nodes: int
    load: float


def play_pool(days: float, jobs_per_day: int, **settings: Any) -> PlayedPool:
    """Play so many days; `settings` are of the pool. Raises ValueError for fewer than two jobs."""
    jobs, sizing = busy_days(days, jobs_per_day)
    nodes = equal_nodes(sizing.nodes, sizing.gpus_per_node, pool=POOL)
    pool = simulated_pool(**(SETTINGS | settings))
    world = play_jobs(jobs, nodes, pool, days)
    return PlayedPool(world.broker, len(jobs), sizing.nodes, round(sizing.load, 2))


def busy_days(days: float, jobs_per_day: int) -> tuple[list[WorkloadJob], Sizing]:
    """Return the jobs of these days, and a pool that they fill to `LOAD`."""
    number = round(days * jobs_per_day)
    if number < 2:
        raise ValueError(f"jobs: {days:g} days x {jobs_per_day} a day; 2 or more are needed")
    drawn = load(TRACE, number).jobs
    span_s = drawn[-1].submit_s - drawn[0].submit_s
    jobs = stretch_arrivals(drawn, days * DAY_S / span_s)
    return jobs, nodes_for_load(jobs, LOAD)


def play_jobs(
    jobs: list[WorkloadJob], nodes: dict[str, InventoryNode], pool: PoolConfigured, days: float
) -> World:
    """Submit each job at its time, with ids and traces as the gateway makes them."""
    scenario = Scenario(jobs, nodes, pool, (0.0, days * DAY_S), checkpoint_s=1800.0)
    world = World(pool, sorted({job.tenant for job in jobs}), nodes, ledgers=True)
    for index, job in enumerate(jobs):
        world.run(BEGIN + scenario.clock_ms(job.submit_s))
        send(world, live_submission(scenario, index), index)
    world.run(BEGIN + FIRST_MS + round(days * DAY_S * 1000))
    return world


def live_submission(scenario: Scenario, index: int) -> SubmitJob:
    """Return the command of a job with the id that an installation derives."""
    command = submission(scenario, index)
    key = f"{command.idempotency_key}-{index}"
    job_id = derive_job_id(command.tenant, command.pool, key)
    return command.model_copy(update={"job_id": job_id, "idempotency_key": key})


def send(world: World, command: SubmitJob, number: int) -> None:
    world.command(
        derive_command_id("commands", 0, number),
        command,
        tenant=command.tenant,
        subject=command.job_id,
        traceparent=new_traceparent(),
    )
