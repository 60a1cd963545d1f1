"""Exchanges GPU types between the jobs of a round, so that each runs where it is fastest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ortools.sat.python import cp_model

from shared.schedulers.hooks import Allotment, Allotments
from shared.schedulers.view import CandidateJob, ClusterView

UNITS = 1_000_000
STAYS = 0.01
"""Part of its best speed that a job gains at least by a change of its type."""
DETERMINISTIC_LIMIT = 0.05


def exchanged(view: ClusterView, allotments: Allotments) -> Allotments:
    """Return allotments of the same jobs and numbers of GPUs, with the largest sum of speeds.

    A speed is relative to the job's best one. A job of unknown rates is as fast everywhere.
    """
    model: Any = cp_model.CpModel()
    picks: dict[tuple[str, Allotment], Any] = {}
    used: dict[str, list[Any]] = {name: [] for name in view.gpus_of_type}
    terms = []
    for job_id, current in allotments.items():
        job, own = view.job_by_id[job_id], []
        held = view.type_of(job.placement)
        for name, speed in relative_speeds(job, current.gpus, view.gpus_of_type).items():
            pick = model.new_bool_var("")
            picks[job_id, Allotment(name, current.gpus)] = pick
            own.append(pick)
            used[name].append(current.gpus * pick)
            terms.append(round(UNITS * (speed + STAYS * (name == held))) * pick)
            model.add_hint(pick, name == current.gpu_type)
        model.add_exactly_one(own)
    for name, gpus in view.gpus_of_type.items():
        model.add(sum(used[name]) <= gpus)
    model.maximize(sum(terms))
    solver: Any = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = DETERMINISTIC_LIMIT
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return allotments
    chosen = {job_id: own for (job_id, own), pick in picks.items() if solver.boolean_value(pick)}
    return {job_id: chosen[job_id] for job_id in allotments}


def relative_speeds(job: CandidateJob, gpus: int, types: Mapping[str, int]) -> dict[str, float]:
    """Return the speed of the job on each type where it runs, 1 on the fastest."""
    table = job.estimates.rates
    rates = {
        name: 1.0 if table is None else table.consolidated_rate(name, gpus) or 0.0
        for name in types
        if job.may_use(name)
    }
    best = max(rates.values(), default=0.0)
    return {name: rate / best for name, rate in rates.items() if rate > 0.0}
