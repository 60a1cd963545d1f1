"""The plan of a round that carries out the last proposal of the pool's scheduler.

Jobs with an allotment start on the type and with the number of GPUs that it says, where the pool's
own rules place them; those that run on others stop or are resized. A waiting job without one waits
for the next proposal. Jobs that a scheduler does not decide about are planned as by greedy.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.pool.allocations import slots_by_rank
from services.placement.core.pool.job import Job
from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.resize.shrink import keep_order
from services.placement.core.round.evict import evict
from services.placement.core.round.fit import probe
from services.placement.core.round.greedy import RoundPlanner, rank
from services.placement.core.round.packing import policy_of
from services.placement.core.round.plan import Plan, Resize
from services.placement.core.round.protection import movable_from_ms
from services.placement.core.round.reasons import PassedOver
from services.placement.core.round.view import Policy, View
from services.placement.core.scheduled.allot import early_ms
from services.placement.core.scheduled.claims import allotted_shape, holds_in_view, is_scheduled


def plan_scheduled(pool: Pool, view: View) -> Plan:
    """Return the plan of the view by the allotments in force."""
    schedule = pool.schedule
    waits = {
        job_id: schedule.next_at
        for job_id, job in view.waiting.items()
        if job_id not in schedule.allotted and is_scheduled(job)
    }

    def allot(view: View, job: Job) -> Shape:
        own = schedule.allotted.get(job.job_id)
        return job.shape if own is None else allotted_shape(job, own)

    policy = Policy(schedule.scheduler, rank, allot, policy_of(pool).place, evict)
    with Trial(view.board) as trial:
        plan = ScheduledPlanner(view, policy, trial, frozenset(), waits).run()
        with Trial(view.board) as taken:
            for assignment in plan.assignments:
                taken.take(assignment.slots)
            change_running(pool, view, taken, plan)
    plan.repeat_at(schedule.next_at)
    if (
        schedule.open is None
        and len(view.waiting) > len(plan.assignments)
        and early_ms(pool) > view.now
    ):
        plan.repeat_at(early_ms(pool))
    return plan


class ScheduledPlanner(RoundPlanner):
    """Starts what is allotted: jobs of one shape may have allotments of several types."""

    def passed_over(self) -> PassedOver:
        return super().passed_over()._replace(waits_for="allotted_at")

    def is_hopeless(self) -> bool:
        return False

    def hold(self, job: Job, shape: Shape) -> bool:
        """Stop no others and reserve nothing for a job that the scheduler decides about."""
        return False if is_scheduled(job) else super().hold(job, shape)


def change_running(pool: Pool, view: View, trial: Trial, plan: Plan) -> None:
    """Add stops and resizes of the jobs whose GPUs differ from their allotment."""
    allotted: Mapping[str, Allotted] = pool.schedule.allotted
    for job in view.running.values():
        if not holds_in_view(pool, job) or not may_move(pool, view, job):
            continue
        own, slots = allotted.get(job.job_id), slots_by_rank(job)
        types = {pool.board.nodes[slot.node_id].kind.gpu_type for slot in slots}
        if own is None or types != {own.gpu_type}:
            plan.stops.append(job)
        elif own.workers < len(slots):
            kept = set(keep_order(slots)[: own.workers])
            plan.resizes.append(Resize(job, [slot for slot in slots if slot in kept]))
        elif own.workers > len(slots):
            extra = extra_slots(trial, job, own, own.workers - len(slots))
            if extra:
                trial.take(extra)
                plan.resizes.append(Resize(job, slots + extra))


def may_move(pool: Pool, view: View, job: Job) -> bool:
    """Return whether the job runs, may be stopped, and had its guarantee and its residency."""
    return movable_from_ms(job, pool.min_residency_ms, pool.time_scale) <= view.now


def extra_slots(trial: Trial, job: Job, own: Allotted, missing: int) -> list[Slot]:
    """Return free slots for all workers that the job lacks, or none."""
    shape = allotted_shape(job, Allotted(own.gpu_type, missing))
    return probe(trial, shape, job.avoid)
