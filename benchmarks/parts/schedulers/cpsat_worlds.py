"""Worlds of the study of CP-SAT: jobs and nodes that differ by type, links or parts of GPUs.

Each replay draws its jobs from a trace with a seed, and runs them through the live deciders. Times
between arrivals are scaled to the load.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.job_spec import JobSpec, Spread
from shared.performance.links import GangSteps, Link, LinkTier, TieredLinks
from shared.performance.rates import RateTable
from simulator.engine.options import TIME_SCALE
from simulator.engine.scenario import POOL, Scenario, Walltime, simulated_pool, spec_of
from simulator.engine.sizing import equal_nodes, load_of, stretch_arrivals, window_of
from simulator.rounds.artifacts import trace_file
from simulator.rounds.gavel_jobs import GANG_SIZES, REFERENCE, TRACE, TYPES, models, read_rates
from simulator.rounds.linked_jobs import BYTES, COMPUTE_S, OVERLAP, PARAMETERS
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

SHORTEST_S, LONGEST_S = 60.0, 24 * 3600.0
GPUS_OF_NODE = 8
NODES_OF_TYPE = 3
RACKS, NODES_OF_RACK = 4, 4
GB = 1e9
NODE, RACK, SPINE_LATENCY_S = Link(1e-6, 300 * GB), Link(5e-6, 25 * GB), 1e-5
SHARE_NODES, SHARE_CPUS, SHARE_MEM_GIB = 8, 96.0, 768.0
"""Cores and memory are about those of a node with 8 GPUs in the trace of shares."""
EQUAL_NODES = 9


@dataclass(frozen=True, slots=True)
class CpsatWorld:
    """Jobs with what they declare, and the nodes."""

    jobs: Sequence[WorkloadJob]
    nodes: Mapping[str, InventoryNode]
    declared: Sequence[Mapping[str, object]] = ()
    """By job: fields of its specification; empty: none declares anything."""
    gpus_only: bool = True

    def scenario(self, solver: str, walltime: Walltime) -> Scenario:
        """Return the replay in first-come order; `oracle`: jobs declare their run time at speed
        1.
        """
        pool = simulated_pool(time_scale=TIME_SCALE, base_policy="fcfs", solver=solver)
        plain = Scenario(
            jobs=self.jobs,
            nodes=self.nodes,
            pool=pool,
            window_s=window_of(self.jobs),
            walltime=walltime,
            gpus_only=self.gpus_only,
        )
        return replace(plain, specs=self.specs(plain)) if self.declared else plain

    def specs(self, plain: Scenario) -> list[JobSpec]:
        return [
            spec_of(plain, index).model_copy(update=dict(fields))
            for index, fields in enumerate(self.declared)
        ]


def typed_world(seed: int, jobs: int, load_of_blind: float) -> CpsatWorld:
    """Return jobs of Gavel's models on nodes of three types.

    The load is that of a cluster which is blind for types, as in the section on types.
    """
    rng = random.Random(seed)
    path = trace_file(TRACE)
    assert path is not None, "the study is skipped without its traces"
    rates, choices = read_rates(path), models()
    rows: list[WorkloadJob] = []
    declared: list[Mapping[str, object]] = []
    blind_gpu_s = 0.0
    for row in sampled(rng, load("philly").jobs, jobs):
        gang = max(size for size in GANG_SIZES if size <= max(row.gpus, 1))
        model = rng.choice([own for own in choices if gang == 1 or own.distributed])
        speeds = speeds_of(rates[model.name, gang], gang)
        rows.append(shaped(row, 1, float(gang)))
        allowed = () if len(speeds) == len(TYPES) else tuple(sorted(speeds))
        declared.append({"gpu_speeds": speeds, "gpu_types": allowed})
        blind_gpu_s += gang * rows[-1].duration_s * len(TYPES) / sum(speeds.values())
    nodes = {
        name: node
        for gpu_type in TYPES
        for name, node in named_nodes(gpu_type, NODES_OF_TYPE, gpu_type).items()
    }
    capacity = len(nodes) * GPUS_OF_NODE
    span_s = max(rows[-1].submit_s - rows[0].submit_s, 1.0)
    factor = blind_gpu_s / (load_of_blind * capacity * span_s)
    return CpsatWorld(stretch_arrivals(rows, factor), nodes, declared)


def speeds_of(table: RateTable, gang: int) -> dict[str, float]:
    """Return the speed on each type relative to the reference, without those that lack memory."""
    reference = table.consolidated_rate(REFERENCE, gang)
    assert reference, f"{REFERENCE} runs each model"
    rates = {name: table.consolidated_rate(name, gang) or 0.0 for name in TYPES}
    return {name: rate / reference for name, rate in rates.items() if rate}


def linked_world(seed: int, jobs: int, at_load: float, uplink_gb_per_s: float) -> CpsatWorld:
    """Return trainings of several GPUs in racks; a worker has one GPU, gangs share no links."""
    rng = random.Random(seed)
    spine = Link(SPINE_LATENCY_S, min(RACK.bytes_per_s, uplink_gb_per_s * GB))
    links = TieredLinks(NODE, RACK, spine)
    largest = RACKS * NODES_OF_RACK * GPUS_OF_NODE // 2
    rows: list[WorkloadJob] = []
    declared: list[Mapping[str, object]] = []
    gangs = [row for row in load("philly").jobs if row.gpus > 1]
    for row in sampled(rng, gangs, jobs):
        low, high = COMPUTE_S
        compute_s = low * (high / low) ** rng.random()
        size_bytes = PARAMETERS[rng.choice(sorted(PARAMETERS))] * BYTES
        gpus = min(int(row.gpus), largest)
        rows.append(shaped(row, gpus, 1.0))
        steps = GangSteps(compute_s, size_bytes, links, OVERLAP)
        declared.append({"spread_speeds": spread_speeds_of(steps, gpus)})
    nodes = equal_nodes(RACKS * NODES_OF_RACK, GPUS_OF_NODE, pool=POOL, racks=RACKS)
    return CpsatWorld(loaded(rows, len(nodes), at_load), nodes, declared)


def spread_speeds_of(steps: GangSteps, gpus: int) -> dict[Spread, float]:
    """Return the speeds over a rack and over the spine, relative to one node."""
    on_node = steps.step_s(gpus, LinkTier.NODE)
    in_rack, over = steps.step_s(gpus, LinkTier.RACK), steps.step_s(gpus, LinkTier.SPINE)
    assert on_node and in_rack and over, "all links are known"
    return {"rack": min(1.0, on_node / in_rack), "spine": min(1.0, on_node / over)}


def shared_world(seed: int, jobs: int, at_load: float) -> CpsatWorld:
    """Return jobs with parts of GPUs, cores and memory."""
    rows = [row for row in load("alibaba_gpu_2023").jobs if row.gpus > 0]
    drawn = [bounded(row) for row in sampled(random.Random(seed), rows, jobs)]
    nodes = {
        name: replace(node, cpus=SHARE_CPUS, mem_gib=SHARE_MEM_GIB)
        for name, node in equal_nodes(SHARE_NODES, GPUS_OF_NODE, pool=POOL, racks=RACKS).items()
    }
    return CpsatWorld(loaded(drawn, len(nodes), at_load), nodes, gpus_only=False)


def equal_world(seed: int, jobs: int, at_load: float) -> CpsatWorld:
    """Return jobs that declare nothing, with whole GPUs, on equal nodes of one rack."""
    rows = [row for row in load("philly").jobs if row.gpus >= 1]
    drawn = [bounded(row) for row in sampled(random.Random(seed), rows, jobs)]
    nodes = equal_nodes(EQUAL_NODES, GPUS_OF_NODE, pool=POOL)
    return CpsatWorld(loaded(drawn, len(nodes), at_load), nodes)


def sampled(rng: random.Random, rows: Sequence[WorkloadJob], jobs: int) -> list[WorkloadJob]:
    """Return so many rows of the trace in order of time."""
    drawn = rng.sample(list(rows), min(jobs, len(rows)))
    return sorted(drawn, key=lambda row: (row.submit_s, row.job_key))


def shaped(row: WorkloadJob, workers: int, gpus_per_worker: float) -> WorkloadJob:
    return replace(bounded(row), workers=workers, gpus_per_worker=gpus_per_worker)


def bounded(row: WorkloadJob) -> WorkloadJob:
    return replace(row, duration_s=min(max(row.duration_s, SHORTEST_S), LONGEST_S))


def loaded(rows: Sequence[WorkloadJob], nodes: int, at_load: float) -> list[WorkloadJob]:
    """Return the rows with arrivals so far apart that their GPU time is `at_load` of the pool."""
    window_s = window_of(rows, 1.0)
    return stretch_arrivals(rows, load_of(rows, nodes, GPUS_OF_NODE, window_s) / at_load)


def named_nodes(prefix: str, count: int, gpu_type: str) -> dict[str, InventoryNode]:
    nodes = equal_nodes(count, GPUS_OF_NODE, pool=POOL, gpu_type=gpu_type).values()
    return {
        name: replace(node, node_id=name) for node in nodes for name in [f"{prefix}-{node.node_id}"]
    }


WORLDS: Mapping[str, Callable[[int, int], CpsatWorld]] = {
    "types, load 0.7": lambda seed, jobs: typed_world(seed, jobs, 0.7),
    "types, load 0.9": lambda seed, jobs: typed_world(seed, jobs, 0.9),
    "links, uplinks 1.5 GB/s": lambda seed, jobs: linked_world(seed, jobs, 0.7, 1.5),
    "links, uplinks 6 GB/s": lambda seed, jobs: linked_world(seed, jobs, 0.7, 6.0),
    "parts of GPUs": lambda seed, jobs: shared_world(seed, jobs, 1.0),
    "equal nodes": lambda seed, jobs: equal_world(seed, jobs, 0.9),
}
