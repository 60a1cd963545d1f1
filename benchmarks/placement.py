"""Placement rounds: greedy, CP-SAT and RLTune's MILP by HiGHS, objective and CPU time of each.

Contended rounds are taken from replays through the live deciders: whole GPUs (Helios Venus), and
shares, cores and memory (Alibaba GPU 2023); without the shared traces, from the synthetic
workload. The same rounds are judged once more as if their pool had three GPU types with measured
throughputs (Gavel's table). `round` is one round of 1,250 nodes x 8 GPUs with 1,000 waiting jobs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.parts import rltune
from benchmarks.parts.big_round import big_round
from benchmarks.parts.command import serve
from benchmarks.parts.load import percentile
from benchmarks.parts.mixed import mixed, throughputs
from services.executor.core.inventory import InventoryNode
from services.placement.core.pool.state import Pool
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.view import view_of
from services.placement.core.solver.contended import instance_for_round, no_plan
from services.placement.core.solver.instance import Instance, Solution
from services.placement.core.solver.objective import score
from services.placement.core.solver.solve import solve
from shared.contracts.placement import PlanReady
from simulator.engine.options import TIME_SCALE
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import (
    equal_nodes,
    load_of,
    nodes_for_load,
    stretch_arrivals,
    window_of,
)
from simulator.metrics.measures import measure
from simulator.workload.errors import TraceError
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import SYNTHETIC, load

Say = Callable[[str], None]
Json = dict[str, object]

WORK = 0.5
"""Deterministic units per round: what 500 ms of `solver_ms` allow."""
SHARE_CPUS, SHARE_MEM_GIB = 96.0, 768.0
"""Of a node with 8 GPUs in the GPU 2023 trace, about."""


@dataclass(frozen=True, slots=True)
class PlacementBenchOptions:
    instances: int = 200
    jobs: int = 4000
    nodes: int = 17
    load: float = 1.1
    jct_jobs: int = 1500
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """A contended round, and what greedy's plan of it cost."""

    source: str
    instance: Instance
    greedy_ms: float
    export_ms: float


class Enough(Exception):
    """So many rounds were asked for."""


async def run(options: PlacementBenchOptions, say: Say) -> Json:
    """One JSON object; times are CPU ms of one process."""
    if options.quick:
        options = replace(options, instances=60, jobs=1200, jct_jobs=0)
    taken = [
        each
        for source, share in sources()
        for each in rounds_of(source, round(options.instances * share), options, say)
    ]
    say(f"solving {len(taken)} rounds")
    instances = [each.instance for each in taken]
    solved, cpsat_ms = solved_all(instances)
    say("RLTune's MILP by HiGHS")
    milps = rltune.elsewhere(instances)
    say("one round of 1,250 nodes")
    large = big_round(WORK)
    jct = jct_worth(options, say) if options.jct_jobs else None
    return {
        "bench": "placement",
        "instances": len(taken),
        "by_source": {name: sum(t.source == name for t in taken) for name, _ in sources()},
        "greedy_ms_p50": p(0.5, [each.greedy_ms for each in taken]),
        "greedy_ms_p99": p(0.99, [each.greedy_ms for each in taken]),
        "export_ms_p99": p(0.99, [each.export_ms for each in taken]),
        "cpsat_ms_p50": p(0.5, cpsat_ms),
        "cpsat_ms_p99": p(0.99, cpsat_ms),
        **judged(instances, solved),
        **compared(instances, solved, milps),
        "three_gpu_types": types_worth(instances),
        "round": large,
        "jct": jct,
    }


def p(q: float, values: Sequence[float]) -> float:
    return round(percentile(list(values), q), 3) if values else 0.0


# ---- rounds from replays --------------------------------------------------------------------


def sources() -> list[tuple[str, float]]:
    """Workloads and the part of the rounds that each gives."""
    try:
        load("helios_venus", 1)
        load("alibaba_gpu_2023", 1)
    except TraceError:
        return [(SYNTHETIC, 1.0)]
    return [("helios_venus", 0.5), ("alibaba_gpu_2023", 0.5)]


def rounds_of(source: str, most: int, options: PlacementBenchOptions, say: Say) -> list[Taken]:
    """Every fifth contended round in which at least two jobs would fit."""
    found: list[Taken] = []
    seen = 0

    def planner(pool: Pool) -> PlanReady:
        nonlocal seen
        assert pool.open_round is not None
        each = taken_of(source, pool)
        if len(each.instance.requests) > 1:
            seen += 1
            if seen % 5 == 1:
                found.append(each)
        if len(found) == most:
            raise Enough
        return no_plan(pool.open_round.seq, "kept_greedy")

    say(f"replaying {source} for {most} contended rounds")
    with contextlib.suppress(Enough):
        simulate(scenario(source, options.jobs, options, "cpsat"), planner=planner)
    return found


def taken_of(source: str, pool: Pool) -> Taken:
    assert pool.open_round is not None
    view = view_of(pool, pool.open_round.at)
    began_s = time.process_time()
    plan(view, GREEDY)
    planned_s = time.process_time()
    instance = instance_for_round(pool)
    ended_s = time.process_time()
    return Taken(source, instance, (planned_s - began_s) * 1000, (ended_s - planned_s) * 1000)


def scenario(source: str, jobs: int, options: PlacementBenchOptions, solver: str) -> Scenario:
    """The first jobs of the workload, on a pool that they overload."""
    rows: Sequence[WorkloadJob] = load(source, jobs).jobs
    with_cores = source == "alibaba_gpu_2023"
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


# ---- what came of them ------------------------------------------------------------------------


def solved_all(instances: Sequence[Instance]) -> tuple[list[Solution], list[float]]:
    solved, took_ms = [], []
    for instance in instances:
        began_s = time.process_time()
        solved.append(solve(instance, WORK))
        took_ms.append((time.process_time() - began_s) * 1000)
    return solved, took_ms


def judged(instances: Sequence[Instance], solved: Sequence[Solution]) -> Json:
    """Against greedy's plan of the same view, by the one objective."""
    pairs = [
        (score(i, s.plan).total, score(i, i.greedy).total)
        for i, s in zip(instances, solved, strict=True)
    ]
    gains = [(ours - theirs) / max(abs(theirs), 1) for ours, theirs in pairs]
    better = [gain for gain in gains if gain > 0]
    more = [
        len(s.plan.starts) - len(i.greedy.starts) for i, s in zip(instances, solved, strict=True)
    ]
    gaps = [(s.bound - s.objective) / max(abs(s.bound), 1) for s in solved]
    return {
        "never_below_greedy": all(ours >= theirs for ours, theirs in pairs),
        "improved_share": round(len(better) / len(pairs), 4),
        "mean_improvement": mean(gains),
        "mean_improvement_where_improved": mean(better),
        "more_jobs_started": sum(more),
        "proven_optimal_share": mean([float(s.bound == s.objective) for s in solved], 4),
        "gap_to_bound": mean(gaps),
    }


def compared(
    instances: Sequence[Instance], solved: Sequence[Solution], milps: Sequence[rltune.Placed]
) -> Json:
    """RLTune's MILP beside ours: in our objective, and in its own (fragments, balance, room)."""
    theirs = [score(i, m.plan) for i, m in zip(instances, milps, strict=True)]
    ours = [score(i, s.plan) for i, s in zip(instances, solved, strict=True)]
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "highs_ms_p50": p(0.5, [each.cpu_ms for each in milps]),
        "highs_ms_p99": p(0.99, [each.cpu_ms for each in milps]),
        "cpsat_better_than_highs_share": mean([float(a.total > b.total) for a, b in pairs], 4),
        "highs_better_than_cpsat_share": mean([float(a.total < b.total) for a, b in pairs], 4),
        "mean_gain_over_highs": mean(
            [(a.total - b.total) / max(abs(b.total), 1) for a, b in pairs]
        ),
        "highs_own_objective": mean([own(b.terms) for _, b in pairs], 3),
        "cpsat_in_highs_objective": mean([own(a.terms) for a, _ in pairs], 3),
    }


def own(terms: dict[str, int]) -> float:
    """RLTune minimises fragments + 0.3 balance - 0.5 room."""
    return -(terms["fragmentation"] + terms["balance"] + terms["room"]) / 100


def types_worth(instances: Sequence[Instance]) -> Json:
    """The same rounds where a third of the nodes each is of the table's GPU types."""
    table = throughputs()
    if table is None:
        return {"table": "absent"}
    changed = [mixed(instance, table) for instance in instances]
    solved, took_ms = solved_all(changed)
    return {**judged(changed, solved), "cpsat_ms_p99": p(0.99, took_ms)}


def jct_worth(options: PlacementBenchOptions, say: Say) -> Json:
    """The same jobs twice through the live deciders."""
    source = sources()[0][0]
    found: Json = {"source": source, "jobs": options.jct_jobs}
    for solver in ("greedy", "cpsat"):
        say(f"{options.jct_jobs} jobs of {source} with {solver}")
        done: Simulation = simulate(scenario(source, options.jct_jobs, options, solver))
        measured = measure(done.outcome)
        found[f"{solver}_mean_jct_s"] = round(measured.all.jct_s.mean, 1)
        found[f"{solver}_mean_wait_s"] = round(measured.all.wait_s.mean, 1)
        found[f"{solver}_cpu_s"] = round(done.cpu_s, 1)
    greedy, cpsat = found["greedy_mean_jct_s"], found["cpsat_mean_jct_s"]
    assert isinstance(greedy, float) and isinstance(cpsat, float)
    return {**found, "jct_gain": round(1 - cpsat / greedy, 5)}


def mean(values: Sequence[float] | Iterator[float], digits: int = 6) -> float:
    found = list(values)
    return round(sum(found) / len(found), digits) if found else 0.0


if __name__ == "__main__":
    serve(run, PlacementBenchOptions, __doc__ or "")
