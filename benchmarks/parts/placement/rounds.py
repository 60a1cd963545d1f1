"""Contended rounds, taken from replays of workloads through the live deciders."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.parts.placement.options import PlacementBenchOptions
from services.executor.core.virtual.inventory import InventoryNode
from services.placement.core.pool.state import Pool
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import instance_for_round, no_plan
from services.placement.core.solver.instance import Instance
from shared.contracts.solver_plan import PlanReady
from shared.process.progress import ReportLine
from simulator.engine.options import TIME_SCALE
from simulator.engine.run import simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import (
    equal_nodes,
    load_of,
    nodes_for_load,
    stretch_arrivals,
    window_of,
)
from simulator.workload.errors import TraceError
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import SYNTHETIC, load

SHARES_TRACE = "alibaba_gpu_2023"
"""The workload with shares of GPUs, cores and memory."""
SHARE_CPUS, SHARE_MEM_GIB = 96.0, 768.0
"""About those of a node with 8 GPUs in that trace."""
TAKE_EVERY = 5


@dataclass(frozen=True, slots=True)
class ContendedRound:
    """A contended round, and the CPU time of greedy's plan and of the export."""

    source: str
    instance: Instance
    greedy_ms: float
    export_ms: float


class EnoughRounds(Exception):
    """Ends a replay with as many rounds as it is to have."""


def sources() -> list[tuple[str, float]]:
    """Return the workloads, and the share of the rounds that comes from each."""
    try:
        load("helios_venus", 1)
        load(SHARES_TRACE, 1)
    except TraceError:
        return [(SYNTHETIC, 1.0)]
    return [("helios_venus", 0.5), (SHARES_TRACE, 0.5)]


def take_rounds(
    source: str, limit: int, options: PlacementBenchOptions, report_line: ReportLine
) -> list[ContendedRound]:
    """Return every fifth contended round in which at least two jobs would fit, up to `limit`."""
    rounds: list[ContendedRound] = []
    seen = 0

    def planner(pool: Pool) -> PlanReady:
        nonlocal seen
        assert pool.open_round is not None
        contended = take_round(source, pool)
        if len(contended.instance.requests) > 1:
            seen += 1
            if seen % TAKE_EVERY == 1:
                rounds.append(contended)
        if len(rounds) == limit:
            raise EnoughRounds
        return no_plan(pool.open_round.seq, "kept_greedy")

    report_line(f"replaying {source} for {limit} contended rounds")
    with contextlib.suppress(EnoughRounds):
        simulate(scenario(source, options.jobs, options, "cpsat"), planner=planner)
    return rounds


def take_round(source: str, pool: Pool) -> ContendedRound:
    """Plan the open round with greedy and export it, measuring both."""
    assert pool.open_round is not None
    view = view_of(pool, pool.open_round.at)
    began_s = time.process_time()
    plan(view, GREEDY)
    planned_s = time.process_time()
    instance = instance_for_round(pool)
    ended_s = time.process_time()
    return ContendedRound(
        source, instance, (planned_s - began_s) * 1000, (ended_s - planned_s) * 1000
    )


def scenario(source: str, jobs: int, options: PlacementBenchOptions, solver: str) -> Scenario:
    """Return the first jobs of the workload, on a pool that they overload."""
    rows: Sequence[WorkloadJob] = load(source, jobs).jobs
    with_cores = source == SHARES_TRACE
    if with_cores:
        rows = [row for row in rows if row.gpus > 0]
        nodes = share_nodes(nodes_for_load(rows, options.load).nodes)
    else:
        factor = load_of(rows, options.nodes, 8, window_of(rows)) / options.load
        rows = stretch_arrivals(rows, factor)
        nodes = equal_nodes(options.nodes, 8, pool=POOL, racks=4)
    return Scenario(
        jobs=rows,
        nodes=nodes,
        pool=simulated_pool(time_scale=TIME_SCALE, base_policy="fcfs", solver=solver),
        window_s=window_of(rows),
        restart_s=60.0,
        checkpoint_s=300.0,
        gpus_only=not with_cores,
    )


def share_nodes(count: int) -> dict[str, InventoryNode]:
    nodes = equal_nodes(count, 8, pool=POOL, racks=4)
    return {
        name: replace(node, cpus=SHARE_CPUS, mem_gib=SHARE_MEM_GIB) for name, node in nodes.items()
    }
