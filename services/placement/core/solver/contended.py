"""A contended round with the solver: when it is opened, what is asked, what is answered.

`decide` never waits: it opens the round (a fact) and goes on folding; whoever drives the decider
sees `wanted(state)`, lets `ask(state)` be solved, and offers `answer(...)` as a local input.
A service does so from another process; a simulation calls `answered_now` at the same instant.
"""

from __future__ import annotations

from services.placement.core.moves import migrate
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Open, Pool
from services.placement.core.round.view import Plan, View, view_of
from services.placement.core.solver.checker import faults
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Fixed, Instance, RoundPlan, SolvedPlan, Start
from services.placement.core.solver.objective import at_speed, class_of, speed_of
from shared.contracts.placement import (
    PlannedStart,
    PlannedStop,
    PlanReady,
    RoundOpened,
    SolverStatus,
)
from shared.ledger.decider import Decision

WORK_PER_MS = 0.001
"""Deterministic units of the solver per ms of `solver_ms`: about as much as it does in that time
on one slow core, so that the wall clock seldom decides."""


def asks(pool: Pool, view: View, greedy: Plan) -> bool:
    """Somebody is passed over, and there is a choice to make.

    Where nobody starts or stops by greedy's plan no job fits alone, so there is none. A queue that
    blocks, or that keeps GPUs for its head, is greedy's: its rules are about one job at a time.
    """
    if pool.settings is None or pool.settings.solver != "cpsat" or pool.open is not None:
        return False
    if view.mode != "skip" or view.oldest or not (greedy.places or greedy.evictions):
        return False
    in_line = sum(job.not_before <= view.now for job in view.waiting.values())
    return in_line > len(greedy.places)


def opened(pool: Pool, now: int) -> Decision:
    assert pool.settings is not None
    until = now + pool.settings.solver_ms
    return Decision(RoundOpened(pool=pool.name, waiting=len(pool.waiting), until=until))


def wanted(pool: Pool) -> Open | None:
    """The round that waits for an answer."""
    return pool.open


def ask(pool: Pool) -> Instance:
    """What to solve for the open round: of the pool as it is now, at the round's moment."""
    assert pool.open is not None
    with migrate.kept(pool):
        return instance_of(view_of(pool, pool.open.at))


def work_limit(pool: Pool) -> float:
    """Deterministic units of work that a round of this pool may cost."""
    return WORK_PER_MS * (pool.settings.solver_ms if pool.settings else 0)


def answered_now(pool: Pool, work: float | None = None) -> PlanReady | None:
    """For a simulation: the input to offer at the same instant; None where no round is open."""
    if pool.open is None:
        return None
    # Its libraries take longer to load than all the rest of a service, which has them elsewhere.
    from services.placement.core.solver.solve import solve

    instance = ask(pool)
    solved = solve(instance, work_limit(pool) if work is None else work)
    return answer(instance, solved, pool.open.seq, 0.0)


def without_plan(at_seq: int, status: SolverStatus) -> PlanReady:
    """The solver has nothing to say: greedy plans the round."""
    return PlanReady(at_seq=at_seq, status=status)


def answer(instance: Instance, solved: SolvedPlan, at_seq: int, solve_ms: float) -> PlanReady:
    """The plan in words that `decide` can check against the pool as it will be then."""
    if faults(instance, solved.plan):
        return without_plan(at_seq, "refused")
    status: SolverStatus = solved.status  # type: ignore[assignment]
    terms = {name: float(value) for name, value in solved.terms.items() if value}
    return PlanReady(
        at_seq=at_seq,
        status=status,
        starts=starts_of(instance, solved.plan),
        stops=stops_of(instance, solved.plan),
        moves=moves_of(instance, solved.plan),
        weighed=tuple(wish.job_id for wish in instance.wishes if wish.victims),
        objective=solved.objective,
        greedy=solved.greedy,
        bound=solved.bound,
        solve_ms=solve_ms,
        terms=terms,
    )


def starts_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStart, ...]:
    where = class_of(instance)
    in_line = sorted(plan.starts, key=lambda start: instance.wishes[start.wish].position)
    before = (fixed_start(fixed) for fixed in instance.fixed)
    return (*before, *(start_of(instance, start, where) for start in in_line))


def fixed_start(fixed: Fixed) -> PlannedStart:
    return PlannedStart(
        job_id=fixed.job_id,
        attempt=fixed.attempt,
        allocations=allocations_of(fixed.slots),
        terms={"position": fixed.position, "nodes": len({slot.node_id for slot in fixed.slots})},
    )


def start_of(instance: Instance, start: Start, where: dict[str, int]) -> PlannedStart:
    wish = instance.wishes[start.wish]
    speed = speed_of(wish, start.slots, where)
    classes = [instance.classes[where[slot.node_id]] for slot in start.slots]
    return PlannedStart(
        job_id=wish.job_id,
        attempt=wish.attempt,
        allocations=allocations_of(start.slots),
        terms={
            "position": wish.position,
            "nodes": len({slot.node_id for slot in start.slots}),
            "racks": len({cls.rack for cls in classes}),
            "speed": speed / GPU,
            "value": at_speed(wish.value, speed),
        },
    )


def stops_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStop, ...]:
    """Each victim for the first in line of those who may ask for it."""
    claims = sorted(plan.claims, key=lambda claim: instance.wishes[claim.wish].position)
    found = []
    for victim in plan.stops:
        job = instance.victims[victim]
        askers = (instance.wishes[c.wish] for c in claims)
        by = next(wish.job_id for wish in askers if victim in wish.victims)
        found.append(PlannedStop(job_id=job.job_id, attempt=job.attempt, by_job_id=by))
    return tuple(found)


def moves_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStart, ...]:
    jobs = [(instance.victims[move.victim], move.slots) for move in plan.moves]
    return tuple(
        PlannedStart(job_id=job.job_id, attempt=job.attempt, allocations=allocations_of(slots))
        for job, slots in jobs
    )
