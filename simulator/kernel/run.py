"""One simulation by the compiled kernel: a workload, nodes and rules in, outcomes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from services.placement.core.pool import loss_budget, overdue
from services.priority.core.history.distributions import BINS
from shared.contracts.pools import (
    EasyRuntime,
    Packing,
    PreemptionProtection,
    QueueMode,
    default_of,
    reserve_wait_s,
)
from simulator.kernel import codes, state
from simulator.kernel.codes import NEVER
from simulator.kernel.initial import initial_state
from simulator.kernel.job_costs import job_costs
from simulator.kernel.loop import run
from simulator.kernel.state import Bools, Floats, Ints, Sim
from simulator.kernel.weights import untrained
from simulator.kernel.work import Work
from simulator.metrics.outcome import ScheduleOutcome
from simulator.workload.fixed import draw_fixed

POLICIES = {
    "fcfs": codes.FCFS,
    "smallest_first": codes.SMALLEST,
    "sjf": codes.SJF,
    "saf": codes.SAF,
    "qssf": codes.SAF,
    "f1": codes.F1,
    "wfp3": codes.WFP3,
    "unicep": codes.UNICEP,
    "multifactor": codes.MULTIFACTOR,
    "las": codes.LAS,
    "srtf": codes.SRTF,
    "srsf": codes.SRSF,
    "gittins": codes.GITTINS,
    "learned": codes.LEARNED,
}
QUEUE_MODES = {"strict": codes.STRICT, "skip": codes.SKIP, "easy": codes.EASY}
RATIOS = frozenset({"gittins", "srsf"})
"""Policies whose keys are logarithms: under them tenants are entitled to GPUs."""
USES_HISTORY = frozenset({"qssf", "gittins"})

ENGINE_ALONE = ("scheduler", "packing")
"""Settings of pools that only the engine, which runs the deciders, carries out."""
MAX_NODE_GPUS = 62
"""GPUs of a node, at most: each is a bit of one integer."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the simulated pool under the names of `PoolConfigured`. Times in s."""

    policy: str = "fcfs"
    queue_mode: QueueMode = default_of("queue_mode")
    runtime: Literal["oracle", "history", "none"] = default_of("runtime")
    """`none` is for learned policies: they see shapes and served time alone."""
    easy_runtime: EasyRuntime = default_of("easy_runtime")
    """`user`: the true run time, which a trace's user is taken to know (an oracle)."""
    guard_predictions: bool = default_of("guard_predictions")
    reserve_after_s: float | None = default_of("reserve_after_s")
    preemption: bool = False
    min_residency_s: float = default_of("min_residency_s")
    preempt_margin: float = default_of("preempt_margin")
    large_gang_share: float = default_of("large_gang_share")
    """Gangs above this share of the pool are large; where many are, rank stops none of them."""
    large_at_start: float = 1.0
    """Share of large gangs assumed before the first arrival: 1 protects them from the start."""
    defragment_after_s: float | None = default_of("defragment_after_s")
    """Time until a running job may migrate so that a larger one fits; None: no migrations."""
    refresh_s: float = 300.0
    restart_s: float = 60.0
    restart_growth: float = 0.0
    """Power of a gang's GPUs with which its restart takes longer; see `restarts_s`."""
    checkpoint_s: float = 60.0
    checkpoint_spread: float = 0.0
    """Spread of the intervals that jobs draw; see `checkpoint_intervals_s`."""
    checkpoint_cost_s: float = 0.0
    """Above 0 a stop writes a checkpoint and loses no more than this."""
    fixed_share: float = 0.0
    """Share of the jobs that rank never stops; see `draw_fixed`."""
    preemption_protection: PreemptionProtection = default_of("preemption_protection")
    checkpoint_window_s: float = default_of("checkpoint_window_s")
    start_protection_s: float = default_of("start_protection_s")
    cheap_restarts: int = default_of("cheap_restarts")
    preempt_price: float = default_of("preempt_price")
    loss_share: float = default_of("loss_share")
    loss_window_s: float = default_of("loss_window_s")
    tenant_floor: float = default_of("tenant_floor")
    theta: Floats = field(default_factory=lambda: untrained(0, 0))
    base: str = "fcfs"
    """Policy that a learned one re-ranks: one whose key does not change with service."""
    band: float = 0.0
    """Score within which a learned policy leaves the order to its base."""
    scheduler: str | None = default_of("scheduler")
    packing: Packing = default_of("packing")

    def __post_init__(self) -> None:
        """Raise ValueError for settings of which the kernel knows the default alone."""
        for name in ENGINE_ALONE:
            if (value := getattr(self, name)) != default_of(name):
                rule = "the compiled kernel has no such rounds, use simulator.engine"
                raise ValueError(f"{name}: {value!r}: {rule}")


@dataclass(frozen=True, slots=True)
class KernelRun:
    """Result of one run."""

    outcome: ScheduleOutcome
    rounds: int
    preemptions: int
    """Stops by rank and by migration."""
    migrations: int
    decisions: Floats
    """[scores, COLUMNS] of `exploration`, in the order of time."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """Noise on the scores of a network: `deviation` times the next of `draws`.

    No score after the last draw is changed, or recorded.
    """

    deviation: float
    draws: Floats


def simulate(
    work: Work,
    sizes: Ints,
    rules: Rules,
    window_ms: tuple[int, int] | None = None,
    counts: Floats | None = None,
    explored: Exploration | None = None,
) -> KernelRun:
    """Simulate to the end of the last job.

    `sizes` [nodes] are GPUs; `counts` is the history before the first job, by `warm.learn_counts`.
    With `explored` a network's scores are changed, and `decisions` has what it saw.
    """
    if len(sizes) == 0 or int(sizes.max()) > MAX_NODE_GPUS:
        raise ValueError(
            f"sizes: nodes of {sizes.max(initial=0)} GPUs, must be 1 to {MAX_NODE_GPUS}"
        )
    window = window_ms or (int(work.submit_ms[0]), int(work.submit_ms[-1]) + 1)
    fits = fits_empty_pool(work, sizes)
    chosen = work if fits.all() else work.part(fits)
    known = np.zeros((work.group_count, BINS)) if counts is None else counts.copy()
    own = pack_rules(rules, window, int(work.submit_ms[0]), int(sizes.sum()))
    fixed = draw_fixed(len(work), rules.fixed_share)[fits]
    draws = explored.draws if explored else None
    own["deviation"] = explored.deviation if explored else 0.0
    costs = job_costs(work, rules).part(fits) if rules.preemption else None
    sim = initial_state(
        chosen, sizes, own, known, rules.theta, rules.large_at_start, costs, fixed, draws
    )
    run(sim)
    pool = np.asarray(sim.pool)
    return KernelRun(
        collect_outcome(work, sizes, fits, window, sim),
        int(pool["rounds"]),
        int(pool["preemptions"]),
        int(pool["migrations"]),
        np.asarray(sim.decisions)[: int(pool["scored"])],
    )


def fits_empty_pool(work: Work, sizes: Ints) -> Bools:
    """Return [n], whether each job fits into the empty nodes."""
    most = int(sizes.max())
    workers = np.array([0, *(int((sizes // gpus).sum()) for gpus in range(1, most + 1)), 0])
    return workers[np.minimum(work.gpus, most + 1)] >= work.workers


def pack_rules(rules: Rules, window_ms: tuple[int, int], epoch_ms: int, gpus: int) -> Any:
    """Return the rules as the record that compiled functions read."""
    record = state.table(state.PackedRules, 1)[0]
    own = {
        "policy": POLICIES[rules.policy],
        "base": POLICIES[rules.base],
        "band": rules.band,
        "queue_mode": QUEUE_MODES[rules.queue_mode],
        "by_history": rules.policy in USES_HISTORY or rules.runtime == "history",
        "preempts_by_rank": rules.preemption,
        "preempt_margin": rules.preempt_margin,
        "min_residency_ms": ms(rules.min_residency_s),
        "large_gang_share": rules.large_gang_share,
        "refresh_ms": ms(rules.refresh_s),
        "from_ms": window_ms[0],
        "to_ms": window_ms[1],
        "epoch_ms": epoch_ms,
        "capacity": gpus,
    }
    own["easy_by_history"] = rules.queue_mode == "easy" and rules.easy_runtime == "history"
    own["guards"] = rules.guard_predictions
    own["guards_estimates"] = rules.guard_predictions and own["easy_by_history"]
    own["has_distributions"] = own["by_history"] or own["easy_by_history"]
    own |= pack_progress(rules, gpus)
    wait_s = reserve_wait_s(
        rules.reserve_after_s, rules.guard_predictions, rules.queue_mode, rules.easy_runtime
    )
    own["reserve_after_ms"] = NEVER if wait_s is None else ms(wait_s)
    own["least_hold_ms"] = ms(overdue.LEAST_HOLD_S)
    after_s = rules.defragment_after_s
    own["defragment_after_ms"] = ms(after_s) if rules.preemption and after_s is not None else NEVER
    for name, value in own.items():
        record[name] = value
    return record


def pack_progress(rules: Rules, gpus: int) -> dict[str, Any]:
    """Return the rules by which a job that rank stops makes progress; see RULES.md, 14-16."""
    share = loss_budget.share_of(rules.loss_share)
    capacity_milli = gpus * loss_budget.MILLI
    return {
        "tenant_floor": rules.tenant_floor if rules.policy in RATIOS else 0.0,
        "progress": rules.preemption_protection == "progress",
        "stop_cost_ms": ms(rules.checkpoint_cost_s),
        "start_protection_ms": ms(rules.start_protection_s),
        "cheap_restarts": rules.cheap_restarts,
        "preempt_price": rules.preempt_price,
        "loss_share": share,
        "loss_budget": loss_budget.budget_of(share, capacity_milli, ms(rules.loss_window_s)),
    }


def collect_outcome(
    work: Work, sizes: Ints, fits: Bools, window_ms: tuple[int, int], sim: Sim
) -> ScheduleOutcome:
    """Return the outcome of all jobs; those that do not fit have no times."""
    jobs = np.asarray(sim.jobs)

    def all_of(name: str, never: int) -> Ints:
        if len(jobs) == len(work):
            return jobs[name].copy()
        values = np.full(len(work), never, np.int64)
        values[fits] = jobs[name]
        return values

    ends_ms = all_of("ends_ms", -1)
    return ScheduleOutcome(
        submit_s=work.submit_ms / 1000.0,
        start_s=seconds_or_nan(all_of("first_start_ms", -1)),
        end_s=seconds_or_nan(ends_ms),
        duration_s=work.duration_ms / 1000.0,
        gpus=work.gang.astype(np.float64),
        tenant=work.tenant,
        starts=all_of("starts", 0),
        held_s=all_of("held_ms", 0) / 1000.0,
        lost_s=all_of("lost_ms", 0) / 1000.0,
        fits=fits,
        capacity_gpus=float(sizes.sum()),
        window_s=(window_ms[0] / 1000.0, window_ms[1] / 1000.0),
        held_by_hour=np.asarray(sim.held) / 1000.0,
        lost_by_hour=np.asarray(sim.lost) / 1000.0,
        horizon_s=float(ends_ms.max()) / 1000.0,
    )


def ms(seconds: float) -> int:
    """Return seconds as whole milliseconds."""
    return round(seconds * 1000)


def seconds_or_nan(at_ms: Ints) -> Floats:
    """Return seconds, NaN for what never happened."""
    return np.where(at_ms >= 0, at_ms / 1000.0, np.nan)


__all__ = ["QUEUE_MODES", "POLICIES", "Exploration", "KernelRun", "Rules", "simulate"]
