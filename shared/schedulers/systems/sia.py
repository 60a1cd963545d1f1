"""Sia (Jayaram Subramanya et al., SOSP'23): type and number of GPUs of all jobs by an ILP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ortools.sat.python import cp_model

from shared.performance.restarts import RESTART_S, age_factor
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Hooks,
    Memory,
    Need,
    running_allotments,
)
from shared.schedulers.view import CandidateJob, ClusterView

FAIRNESS = -0.5
"""Exponent of the normalised rate; below 0 the sum is minimised."""
WITHOUT_GPUS = 1.1
"""Cost of a job that gets no GPUs; its least number on its slowest type costs 1. As published: one
job with two GPUs and one that waits can cost less, 0.71 + 1.1, than both with one. From 2 on no job
waits beside another that has more than its least number."""
LEAST_RATE, MOST_COST = 1e-4, 3000.0
UNITS = 1000
"""Costs are whole numbers: two decimals as published, and one for a configuration that stays."""
DETERMINISTIC_LIMIT = 2.0


class Sia(Hooks):
    """Rates are those of measured numbers of GPUs: throughput alone, at one batch size.

    A job without rates is taken to be as fast as it has GPUs, on each type alike.
    """

    name: ClassVar[str] = "sia"
    source: ClassVar[str] = "Jayaram Subramanya et al., SOSP'23, by throughput"
    needs: ClassVar[tuple[Need, ...]] = ("rates",)
    decides: ClassVar[tuple[Decides, ...]] = ("type", "gpus")
    without_gpus: ClassVar[float] = WITHOUT_GPUS

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        """Return the cheapest configurations; the jobs come in order of rank."""
        current = running_allotments(view)
        configurations = configurations_of(view)
        model: Any = cp_model.CpModel()
        picks: dict[tuple[str, Allotment], Any] = {}
        used: dict[str, list[Any]] = {name: [] for name in view.gpus_of_type}
        terms = []
        for job in view.jobs:
            costs = costs_of(view, job, configurations, current.get(job.job_id))
            own = []
            for configuration, cost in costs.items():
                pick = model.new_bool_var("")
                picks[job.job_id, configuration] = pick
                own.append(pick)
                used[configuration.gpu_type].append(configuration.gpus * pick)
                worth = round(UNITS * job.weight * (cost - self.without_gpus))
                stays = configuration == current.get(job.job_id)
                terms.append((worth - stays) * pick)
                model.add_hint(pick, stays)
            model.add_at_most_one(own)
        for name, gpus in view.gpus_of_type.items():
            model.add(sum(used[name]) <= gpus)
        model.minimize(sum(terms))
        chosen = solve(model, picks)
        return {job_id: chosen[job_id] for job_id in ranked if job_id in chosen}


def solve(model: Any, picks: dict[tuple[str, Allotment], Any]) -> Allotments:
    solver: Any = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_LIMIT
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE), "no GPUs for any job is feasible"
    return {job_id: own for (job_id, own), pick in picks.items() if solver.boolean_value(pick)}


def configurations_of(view: ClusterView) -> list[Allotment]:
    """Return powers of two up to a node of each type, and then whole nodes."""
    configurations = []
    for name in view.gpus_of_type:
        sizes = [node.gpus for node in view.nodes if node.gpu_type == name]
        largest = max(sizes)
        gpus = [1 << power for power in range(max(largest, 1).bit_length())]
        gpus = [*(count for count in gpus if count < largest), largest]
        gpus += [largest * nodes for nodes in range(2, sizes.count(largest) + 1)]
        configurations += [Allotment(name, count) for count in gpus if count > 0]
    return configurations


def costs_of(
    view: ClusterView,
    job: CandidateJob,
    configurations: Sequence[Allotment],
    current: Allotment | None,
) -> dict[Allotment, float]:
    """Return the cost of each configuration that the job can use; more rate costs less."""
    table = job.estimates.rates
    rates: dict[Allotment, float] = {}
    for own in configurations:
        if not job.may_use(own.gpu_type) or not job.min_gpus <= own.gpus <= job.max_gpus:
            continue
        rate = float(own.gpus) if table is None else table.consolidated_rate(own.gpu_type, own.gpus)
        if rate:
            rates[own] = rate
    least = min(rates.values(), default=1.0)
    kept = part_kept(view.now_s - job.submit_s, job.restarts)
    costs = {}
    for own, rate in rates.items():
        moves = current is not None and own != current
        normalised = max(rate / least * (kept if moves else 1.0), LEAST_RATE)
        costs[own] = min(round(normalised**FAIRNESS, 2), MOST_COST)
    return costs


def part_kept(age_s: float, restarts: int) -> float:
    """Return the part of its rate that a job keeps if it restarts; a very young one keeps all."""
    if age_s < RESTART_S:
        return 1.0
    return age_factor(age_s, restarts)
