"""Builds the instance of a round from a view: requests, free capacity and victims."""

from __future__ import annotations

from dataclasses import replace

from services.placement.core.pool.trial import Trial
from services.placement.core.round.greedy import plan as greedy_plan
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View
from services.placement.core.solver.gang_requests import RequestBuilder
from services.placement.core.solver.greedy_plan import plan_of_window
from services.placement.core.solver.instance import Fixed, GangRequest, Instance, RoundPlan
from services.placement.core.solver.look_ahead import with_releases
from services.placement.core.solver.node_classes import group_nodes, next_worker
from services.placement.core.solver.offered_victims import offer_victims
from services.placement.core.solver.window import Window


def instance_of(view: View, greedy: Plan | None = None) -> Instance:
    """Return the instance of a view; `greedy`: greedy's plan of it, if it is known already."""
    with Trial(view.board) as trial:
        greedy_plan_of_view = greedy or greedy_plan(view)
        window = Window(
            view,
            trial,
            {assignment.job.job_id: assignment for assignment in greedy_plan_of_view.assignments},
        )
        window.look()
        return export(view, trial, window, greedy_plan_of_view)


def export(view: View, trial: Trial, window: Window, greedy: Plan) -> Instance:
    """Return the instance of a window, whose fixed jobs hold their slots on the trial."""
    victims = offer_victims(window, greedy)
    nodes = group_nodes(view.board, window, victims.shares)
    numbers = victims.numbers()
    builder = RequestBuilder(view, window, numbers, nodes)
    requests = tuple(builder.request(candidate) for candidate in window.candidates)
    plan = plan_of_window(trial, window, greedy, numbers)
    instance = Instance(
        tuple(nodes.classes),
        requests if window.fixed else require_first(requests, plan),
        tuple(builder.victim(job) for job in victims.jobs.values()),
        next_worker(window),
        nodes.full,
        plan,
        tuple(
            Fixed(job.job_id, job.attempt, position, tuple(assignment.slots))
            for position, job, assignment in window.fixed
        ),
    )
    return with_releases(view, instance)


def require_first(requests: tuple[GangRequest, ...], plan: RoundPlan) -> tuple[GangRequest, ...]:
    """Require the start of the first job if it fits: the head of the queue is not passed over."""
    if not requests or requests[0].victims or all(start.request for start in plan.starts):
        return requests
    return (replace(requests[0], must_start=True), *requests[1:])
