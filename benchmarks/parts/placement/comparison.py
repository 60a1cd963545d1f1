"""Plans of the same contended rounds by greedy, CP-SAT and RLTune's MILP, compared."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import percentile
from benchmarks.parts.placement.mixed_types import mix_types, read_throughputs
from benchmarks.parts.placement.rltune import RltuneResult
from services.placement.core.solver.instance import Instance, Solution
from services.placement.core.solver.objective import score
from services.placement.core.solver.solve import solve

WORK = 0.5
"""Deterministic units per round: what 500 ms of `solver_ms` allow."""


def solve_all(instances: Sequence[Instance]) -> tuple[list[Solution], list[float]]:
    """Return CP-SAT's solutions, and the CPU ms of each."""
    solutions, cpu_ms = [], []
    for instance in instances:
        began_s = time.process_time()
        solutions.append(solve(instance, WORK))
        cpu_ms.append((time.process_time() - began_s) * 1000)
    return solutions, cpu_ms


def compare_with_greedy(instances: Sequence[Instance], solutions: Sequence[Solution]) -> Json:
    """Return the improvement over greedy's plan of the same view, by the one objective."""
    pairs = [
        (score(i, s.plan).total, score(i, i.greedy).total)
        for i, s in zip(instances, solutions, strict=True)
    ]
    gains = [(ours - greedy) / max(abs(greedy), 1) for ours, greedy in pairs]
    better = [gain for gain in gains if gain > 0]
    more = [
        len(s.plan.starts) - len(i.greedy.starts) for i, s in zip(instances, solutions, strict=True)
    ]
    gaps = [(s.bound - s.objective) / max(abs(s.bound), 1) for s in solutions]
    return {
        "never_below_greedy": all(ours >= greedy for ours, greedy in pairs),
        "improved_share": round(len(better) / len(pairs), 4),
        "mean_improvement": mean(gains),
        "mean_improvement_where_improved": mean(better),
        "more_jobs_started": sum(more),
        "proven_optimal_share": mean([float(s.bound == s.objective) for s in solutions], 4),
        "gap_to_bound": mean(gaps),
    }


def compare_with_rltune(
    instances: Sequence[Instance], solutions: Sequence[Solution], results: Sequence[RltuneResult]
) -> Json:
    """Return both in Berth's objective and in RLTune's own (fragments, balance, room)."""
    theirs = [score(i, result.plan) for i, result in zip(instances, results, strict=True)]
    ours = [score(i, solution.plan) for i, solution in zip(instances, solutions, strict=True)]
    pairs = list(zip(ours, theirs, strict=True))
    highs_ms = [result.cpu_ms for result in results]
    return {
        "highs_ms_p50": rounded_percentile(0.5, highs_ms),
        "highs_ms_p99": rounded_percentile(0.99, highs_ms),
        "cpsat_better_than_highs_share": mean([float(a.total > b.total) for a, b in pairs], 4),
        "highs_better_than_cpsat_share": mean([float(a.total < b.total) for a, b in pairs], 4),
        "mean_gain_over_highs": mean(
            [(a.total - b.total) / max(abs(b.total), 1) for a, b in pairs]
        ),
        "highs_own_objective": mean([rltune_objective(b.terms) for _, b in pairs], 3),
        "cpsat_in_highs_objective": mean([rltune_objective(a.terms) for a, _ in pairs], 3),
    }


def rltune_objective(terms: dict[str, int]) -> float:
    """Return what RLTune minimises: fragments + 0.3 balance - 0.5 room."""
    return -(terms["fragmentation"] + terms["balance"] + terms["room"]) / 100


def compare_on_three_types(instances: Sequence[Instance]) -> Json:
    """Return the comparison with greedy where each third of the nodes is of another GPU type."""
    table = read_throughputs()
    if table is None:
        return {"table": "absent"}
    mixed = [mix_types(instance, table) for instance in instances]
    solutions, cpu_ms = solve_all(mixed)
    return {
        **compare_with_greedy(mixed, solutions),
        "cpsat_ms_p99": rounded_percentile(0.99, cpu_ms),
    }


def rounded_percentile(share: float, values: Sequence[float]) -> float:
    return round(percentile(list(values), share), 3) if values else 0.0


def mean(values: Iterable[float], digits: int = 6) -> float:
    """Return the rounded mean; 0 without values."""
    numbers = list(values)
    return round(sum(numbers) / len(numbers), digits) if numbers else 0.0
