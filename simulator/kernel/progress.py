"""Rules by which a job that rank stops makes progress: the live functions, compiled."""

from __future__ import annotations

from services.placement.core.pool import loss_budget
from services.placement.core.round import progress
from simulator.kernel.codes import NEVER
from simulator.kernel.compiled import compiled
from simulator.kernel.keys import compile_twin
from simulator.kernel.state import JobRow, PackedRules, PoolState, RunningRow

least_work_ms = compile_twin(progress.least_work_ms)
next_stop_ms = compile_twin(progress.next_stop_ms)
price_of = compile_twin(progress.price_of)
scaled_price = compile_twin(progress.scaled_price)
earn = compile_twin(loss_budget.earn)
cost_of = compile_twin(loss_budget.cost_of)
MILLI = loss_budget.MILLI

is_spent = compile_twin(loss_budget.is_paused)
fill_of = compile_twin(loss_budget.fill_of)


@compiled
def milli(gpus: float) -> int:
    """Return whole GPUs in thousandths."""
    return int(gpus) * MILLI


@compiled
def protected_ms(rules: PackedRules, job: JobRow) -> int:
    """Return the ms from the job's start before which rank does not stop it."""
    if not rules.progress:
        return max(rules.min_residency_ms, job.debt_ms)
    if job.checkpoint_ms == 0:
        return NEVER
    return job.paid_ms + least_work_ms(
        job.starts,
        rules.min_residency_ms,
        job.debt_ms,
        rules.start_protection_ms,
        rules.cheap_restarts,
        job.checkpoint_ms,
        rules.stop_cost_ms,
    )


@compiled
def stoppable_ms(rules: PackedRules, job: JobRow, slot: RunningRow, safe_ms: int, now: int) -> int:
    """Return the first ms from `now` on at which the job may be stopped; from NEVER on: never."""
    if not rules.progress or safe_ms >= NEVER:
        return max(safe_ms, now)
    return next_stop_ms(
        now, safe_ms, slot.started_ms + job.paid_ms, job.checkpoint_ms, job.window_ms
    )


@compiled
def worked_ms(job: JobRow, now: int) -> int:
    """Return the work of a running job since its start, without the restart that it paid."""
    return max(0, now - job.started_ms - job.paid_ms)


@compiled
def attained_ms(job: JobRow, now: int) -> int:
    """Return the work of a running job in its last checkpoint and since its start."""
    return job.checkpointed_ms + worked_ms(job, now)


@compiled
def checkpointed_work_ms(rules: PackedRules, job: JobRow, worked: int) -> int:
    """Return how much of the work a stop keeps; 0 without checkpoints."""
    if job.checkpoint_ms == 0:
        return 0
    kept = worked // job.checkpoint_ms * job.checkpoint_ms
    return max(kept, worked - rules.stop_cost_ms) if rules.stop_cost_ms > 0 else kept


@compiled
def lost_ms(rules: PackedRules, job: JobRow, now: int) -> int:
    """Return the work that a stop at this moment loses."""
    worked = worked_ms(job, now)
    return worked - checkpointed_work_ms(rules, job, worked)


@compiled
def is_paused(rules: PackedRules, pool: PoolState) -> bool:
    """Return whether the loss budget is spent."""
    return rules.progress and is_spent(pool.loss_spent, rules.loss_share, rules.loss_budget)


@compiled
def price_now(rules: PackedRules, pool: PoolState) -> float:
    """Return the price of a stop at this moment; 0: stops have none."""
    if not rules.progress or not rules.by_history or rules.preempt_price <= 0.0:
        return 0.0
    return scaled_price(
        rules.preempt_price, fill_of(pool.loss_spent, rules.loss_share, rules.loss_budget)
    )
