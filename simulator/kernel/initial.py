"""The state in which a run begins."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.priority.core.history.distributions import BINS, fill_prior
from simulator.kernel import state
from simulator.kernel.codes import (
    COLUMNS,
    CONTEXT_FEATURES,
    CONTEXT_MS,
    DEFRAGMENTATIONS_PER_ROUND,
    DRAW,
    EVICTIONS_PER_ROUND,
    HOUR_MS,
    INPUTS,
    LEARNED,
    MAX_MIGRATIONS,
    NEVER,
    PER_HIDDEN,
)
from simulator.kernel.job_costs import JobCosts
from simulator.kernel.state import Bools, Floats, Ints, Sim
from simulator.kernel.work import Work

BLOCK = 2048
"""Rows of jobs that are filled at a time: they stay in the processor's cache."""


def initial_state(
    work: Work,
    sizes: Ints,
    rules: Any,
    counts: Floats,
    theta: Floats,
    large: float,
    costs: JobCosts | None = None,
    fixed: Bools | None = None,
    draws: Floats | None = None,
) -> Sim:
    """Return the state before the first job; all jobs of `work` must fit into the empty nodes.

    `large` is the share of large gangs that rule 12 assumes before any job arrived; without `costs`
    no job may stop another; `fixed` [n] are jobs that rank never stops; `draws` are those of
    `exploration`.
    """
    n, m, gpus = len(work), len(sizes), int(sizes.sum())
    most = min(n, gpus)
    hours = -(-(int(rules["to_ms"]) - int(rules["from_ms"])) // HOUR_MS)
    levels = np.bincount(sizes).astype(np.int64)
    lowest_tenant = int(work.tenant.min(initial=0))
    tenants = int(work.tenant.max(initial=0)) - lowest_tenant + 1
    return Sim(
        rules=rules,
        pool=initial_pool(work, int(rules["from_ms"]), large),
        scan=state.table(state.ScanState, 1)[0],
        jobs=initial_jobs(work, costs, fixed),
        kinds=work.shape.copy(),
        queue=np.zeros(n, np.int64),
        round_queue=np.zeros(n, np.int64),
        started_positions=np.zeros(most, np.int64),
        running=state.table(state.RunningRow, most),
        ends=state.table(state.EndRow, most),
        shapes=state.table(state.ShapeRow, len(work.costlier)),
        costlier=work.costlier,
        sizes=sizes.astype(np.int64),
        free=sizes.astype(np.int64),
        bits=(1 << sizes.astype(np.int64)) - 1,
        levels=levels,
        off_free=np.zeros(m, np.int64),
        off_levels=np.zeros_like(levels),
        allocations=unused_allocations(gpus),
        placed=state.table(state.AllocationRow, m),
        reserved=state.table(
            state.AllocationRow,
            (1 + EVICTIONS_PER_ROUND + DEFRAGMENTATIONS_PER_ROUND) * m
            + DEFRAGMENTATIONS_PER_ROUND * MAX_MIGRATIONS,
        ),
        victims=state.table(state.VictimRow, most),
        protected=state.table(state.ProtectedRow, most),
        chosen=np.zeros(most, np.int64),
        leaving=np.zeros(most, np.int64),
        evicted=np.zeros(most, np.int64),
        targets=state.table(state.AllocationRow, DEFRAGMENTATIONS_PER_ROUND * MAX_MIGRATIONS),
        node_rows=state.table(state.NodeRow, m),
        neighbours=np.zeros(most, np.int64),
        sorting=state.table(state.SortRow, n),
        tenants=work.tenant - lowest_tenant,
        present=np.zeros(tenants, np.int64),
        taken=np.zeros(tenants),
        left=np.zeros(tenants, np.int64),
        entitled=np.zeros(n, np.int64),
        ahead=np.zeros(n, np.int64),
        held=np.zeros(hours),
        lost=np.zeros(hours),
        longest_ms=np.zeros(len(counts), np.int64),
        longest_round=np.zeros(len(counts), np.int64),
        groups=work.groups,
        counts=counts,
        distributions=initial_distributions(n, bool(rules["has_distributions"])),
        forecasts=state.table(state.ForecastRow, n if forecasts_of(rules) else 0),
        theta=theta,
        hidden=np.zeros(1 + (len(theta) - INPUTS) // PER_HIDDEN),
        context=np.zeros(CONTEXT_FEATURES),
        decisions=initial_decisions(draws),
    )


def initial_decisions(draws: Floats | None) -> Floats:
    """Return rows of `exploration`, of which only the draws are known."""
    decisions = np.zeros((0 if draws is None else len(draws), COLUMNS))
    if draws is not None:
        decisions[:, DRAW] = draws
    return decisions


def initial_pool(work: Work, from_ms: int, large: float) -> Any:
    """Return the pool before anything has happened."""
    pool = state.table(state.PoolState, 1)[0]
    pool["clock_ms"] = work.submit_ms[0] if len(work) else 0
    for name in ("first_change_ms", "round_at_ms", "again_at_ms"):
        pool[name] = NEVER
    pool["hour_ends_ms"] = from_ms
    pool["context_at_ms"] = -CONTEXT_MS
    pool["overdue"] = pool["lapsed_from_ms"] = -1
    pool["large"] = large
    return pool


def initial_jobs(work: Work, costs: JobCosts | None, fixed: Bools | None = None) -> Any:
    """Return the rows [n] of jobs of which none has started; without `costs` none may stop."""
    seniority = np.empty(len(work), np.int64)
    seniority[np.lexsort((work.tie, work.submit_ms))] = np.arange(len(work))
    columns = {
        "kind": work.shape,
        "seniority": seniority,
        "tie": work.tie,
        "workers": work.workers,
        "gpus": work.gpus,
        "gang": work.gang,
        "submit_ms": work.submit_ms,
        "duration_ms": work.duration_ms,
        "walltime_ms": work.walltime_ms,
        "run_s": work.walltime_ms / 1000.0,
        "failed": work.failed,
    }
    if costs is not None:
        columns |= costs._asdict()
    if fixed is not None:
        columns["fixed"] = fixed
    jobs = state.table(state.JobRow, len(work))
    for low in range(0, len(work), BLOCK):
        block = np.asarray(jobs)[low : low + BLOCK]
        for name, column in columns.items():
            block[name] = column[low : low + BLOCK]
        for name in ("first_start_ms", "ends_ms", "first_allocation"):
            block[name] = -1
    return jobs


def initial_distributions(n: int, has_distributions: bool) -> Floats:
    """Return run-time distributions [n + 1, BINS], filled on arrival, the prior last; without
    history the prior alone.
    """
    distributions = np.empty((n + 1 if has_distributions else 1, BINS))
    fill_prior(distributions[-1])
    return distributions


def forecasts_of(rules: Any) -> bool:
    """Return whether a policy of such a run needs forecasts."""
    return bool(rules["by_history"]) or int(rules["policy"]) == LEARNED


def unused_allocations(gpus: int) -> Any:
    """Return rows [gpus] chained as unused; an allocation in use has at least one GPU."""
    allocations = state.table(state.AllocationRow, gpus)
    allocations["next"] = np.arange(1, gpus + 1)
    allocations["next"][-1:] = -1
    return allocations
