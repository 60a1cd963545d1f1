"""Pollux (Qiao et al., OSDI'21): GPUs of all jobs together, for the power mean of goodputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

import numpy as np

from shared.performance.goodput import GoodputModel
from shared.performance.restarts import age_factor
from shared.schedulers.evolution import Floats, SharingProblem, States, evolve_states
from shared.schedulers.hooks import Allotment, Allotments, Decides, Hooks, Memory, Need, Placements
from shared.schedulers.view import CandidateJob, ClusterView, TypedNode

GENERATIONS, STALL = 100, 25
"""Generations of a search, and those without a fitter state after which it ends."""


class Pollux(Hooks):
    """A genetic search over placements; the job picks its batch size by its goodput.

    A job without a goodput model is taken to be as fast as it has GPUs. Nodes are of one type, the
    first one.
    """

    name: ClassVar[str] = "pollux"
    source: ClassVar[str] = "Qiao et al., OSDI'21"
    needs: ClassVar[tuple[Need, ...]] = ("goodput",)
    decides: ClassVar[tuple[Decides, ...]] = ("gpus", "nodes")

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        """Return the sizes of the best state, which `place` takes from memory."""
        jobs = sorted(view.jobs, key=lambda job: (job.held_gpu_s, job.submit_s, job.job_id))
        if not jobs:
            memory.pop("states", None)
            return {}
        gpu_type = view.nodes[0].gpu_type
        nodes = [node for node in view.nodes if node.gpu_type == gpu_type]
        problem = problem_of(view, jobs, nodes)
        rng = np.random.default_rng((view.seed, view.round_number))
        states, _ = evolve_states(
            problem, adapted(memory, jobs, nodes, problem.base), GENERATIONS, STALL, rng
        )
        memory["jobs"] = [job.job_id for job in jobs]
        memory["nodes"] = [node.node_id for node in nodes]
        memory["states"] = states.tolist()
        sizes = zip(jobs, states[0].sum(axis=1).tolist(), strict=True)
        return {job.job_id: Allotment(gpu_type, gpus) for job, gpus in sizes if gpus}

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        if not allotments:
            return {}
        rows = dict(zip(memory["jobs"], memory["states"][0], strict=True))
        return {
            name: tuple(
                (node, gpus) for node, gpus in zip(memory["nodes"], rows[name], strict=True) if gpus
            )
            for name in allotments
        }


def problem_of(
    view: ClusterView, jobs: Sequence[CandidateJob], nodes: Sequence[TypedNode]
) -> SharingProblem:
    total = sum(node.gpus for node in nodes)
    fair = -(-total // len(jobs))
    widest = max(min(job.max_gpus, total) for job in jobs)
    speedups = np.zeros((len(jobs), len(nodes) + 1, widest + 1))
    for number, job in enumerate(jobs):
        most = min(job.max_gpus, total)
        model = job.estimates.goodput
        own = speedups[number, :, : most + 1]
        own[:] = (
            linear(len(nodes), most, fair)
            if model is None
            else table(model, len(nodes), most, fair, max(node.gpus for node in nodes))
        )
    # A speedup of 1 is a node's part of the cluster, as in the publication.
    speedups *= len(nodes) / total
    factors = [age_factor(view.now_s - job.submit_s, job.restarts) for job in jobs]
    base = np.zeros((len(jobs), len(nodes)), np.int16)
    column = {node.node_id: number for number, node in enumerate(nodes)}
    for number, job in enumerate(jobs):
        for node_id, gpus in job.placement:
            base[number, column[node_id]] = gpus
    return SharingProblem(
        speedups=speedups,
        restart_factor=np.array(factors),
        most_gpus=np.array([job.max_gpus for job in jobs]),
        least_gpus=np.array([job.min_gpus for job in jobs]),
        node_gpus=np.array([node.gpus for node in nodes], np.int16),
        base=base,
    )


def adapted(
    memory: Memory, jobs: Sequence[CandidateJob], nodes: Sequence[TypedNode], base: States
) -> States:
    """Return the last population for today's jobs and nodes; what is new there holds nothing."""
    if "states" not in memory:
        return base[None]
    earlier = np.array(memory["states"], np.int16)
    row = {name: number for number, name in enumerate(memory["jobs"])}
    column = {name: number for number, name in enumerate(memory["nodes"])}
    pairs = [(new, row[job.job_id]) for new, job in enumerate(jobs) if job.job_id in row]
    places = [
        (new, column[node.node_id]) for new, node in enumerate(nodes) if node.node_id in column
    ]
    states = np.zeros((len(earlier), len(jobs), len(nodes)), np.int16)
    if pairs and places:
        to, of = np.array(pairs).T
        onto, out_of = np.array(places).T
        states[:, to[:, None], onto] = earlier[:, of[:, None], out_of]
    return states


def linear(nodes: int, most: int, fair: int) -> Floats:
    """Return speedups [nodes, GPUs] of a job that is as fast as it has GPUs."""
    return np.broadcast_to(np.arange(most + 1) / fair, (nodes + 1, most + 1))


@lru_cache(maxsize=2048)
def table(model: GoodputModel, nodes: int, most: int, fair: int, node_gpus: int) -> Floats:
    """Return goodput [nodes, GPUs] over that of a fair number of GPUs on one node."""
    shapes = [
        (count, gpus)
        for gpus in range(1, most + 1)
        for count in range(-(-gpus // node_gpus), min(gpus, nodes) + 1)
    ]
    counts, gpus = np.array([(1, fair), *shapes]).T
    goodput = model.best(counts, gpus).goodput
    speedups = np.zeros((nodes + 1, most + 1))
    speedups[counts[1:], gpus[1:]] = goodput[1:] / max(float(goodput[0]), 1e-12)
    return speedups
