"""The plan of a round that carries out the last proposal of the pool's scheduler.

Jobs with an allotment start on the type and with the number of GPUs that it says, on its nodes
where these may have them, else where the pool's own rules place them; `changes.py` has those that
run on others. A waiting job without one waits for the next proposal. Jobs that a scheduler does not
decide about are planned as by greedy.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.placement.core.pool.job import Job
from services.placement.core.pool.schedule import Allotted
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.evict import evict
from services.placement.core.round.fit import nodes_to_avoid
from services.placement.core.round.greedy import RoundPlanner, rank
from services.placement.core.round.packing import policy_of
from services.placement.core.round.plan import Plan
from services.placement.core.round.reasons import PassedOver
from services.placement.core.round.view import Policy, View
from services.placement.core.scheduled.allot import early_ms
from services.placement.core.scheduled.allotments import nodes_of
from services.placement.core.scheduled.changes import change_running, leaving_nodes
from services.placement.core.scheduled.chosen_nodes import (
    Leaving,
    awaited_nodes,
    health_of,
    take_chosen,
)
from services.placement.core.scheduled.claims import allotted_shape, is_scheduled


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
        leaving = leaving_nodes(pool, view, trial)
        plan = ScheduledPlanner(view, policy, trial, waits, schedule.allotted, leaving).run()
        with Trial(view.board) as taken:
            for assignment in plan.assignments:
                taken.take(assignment.slots)
            change_running(pool, view, taken, plan, leaving)
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

    def __init__(
        self,
        view: View,
        policy: Policy,
        trial: Trial,
        waits: Mapping[str, int],
        allotted: Mapping[str, Allotted],
        leaving: Leaving,
    ) -> None:
        super().__init__(view, policy, trial, frozenset(), waits)
        self.allotted = allotted
        self.leaving = leaving
        self.awaited: dict[str, str] = {}
        """Names of the chosen nodes that jobs wait for, by job id."""

    def consider(self, job: Job) -> bool:
        """Place the job or hold it as ever; the placement says whether its nodes are the chosen."""
        before, own = len(self.plan.assignments), self.allotted.get(job.job_id)
        has_fitted = super().consider(job)
        if own is not None and own.nodes and len(self.plan.assignments) > before:
            last = self.plan.assignments[-1]
            is_chosen = nodes_of(last.slots) == tuple(sorted(own.nodes))
            self.plan.assignments[-1] = last._replace(terms={"chosen_nodes": float(is_chosen)})
        return has_fitted

    def find_slots(self, job: Job, shape: Shape) -> tuple[list[Slot], bool]:
        """Return slots on the chosen nodes; else none while others stop there; else any.

        Chosen nodes that are slow are taken where no healthier ones have room.
        """
        own = self.allotted.get(job.job_id)
        if own is None or not own.nodes:
            return super().find_slots(job, shape)
        mark = len(self.trial.log)
        chosen = self.take_chosen(job, shape, own)
        if not chosen and (awaited := awaited_nodes(self.trial, job, own, self.leaving)):
            self.awaited[job.job_id] = ", ".join(awaited)
            return [], False
        health = health_of(self.trial.board, chosen)
        if chosen and health == 1:
            return chosen, False
        self.trial.rollback(mark)
        usual, _ = super().find_slots(job, shape)
        if chosen and (not usual or health_of(self.trial.board, usual) <= health):
            self.trial.rollback(mark)
            self.trial.take(chosen)
            return chosen, False
        return usual, False

    def take_chosen(self, job: Job, shape: Shape, own: Allotted) -> list[Slot]:
        """Take slots on the chosen nodes, none of which failed the job or is kept for the head."""
        closed = frozenset(nodes_to_avoid(self.trial.board, job, shape))
        if self.head and self.head.delayed_by(job, self.view.now, self.view.time_scale):
            closed |= self.head.nodes
        return take_chosen(self.trial, shape, own, closed)

    def passed_over(self) -> PassedOver:
        passed_over = super().passed_over()
        return passed_over._replace(waits_for="allotted_at", chosen_nodes=self.awaited)

    def is_hopeless(self) -> bool:
        return False

    def hold(self, job: Job, shape: Shape) -> bool:
        """Stop no others and reserve nothing for a job that the scheduler decides about."""
        return False if is_scheduled(job) else super().hold(job, shape)
