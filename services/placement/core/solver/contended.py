"""A contended round with the solver: when it is opened, its instance, and its answer.

`decide` never waits: it opens the round (a fact) and goes on folding. The shell that drives the
decider reads `state.open_round`, has `instance_for_round(state)` solved, and offers the result of
`plan_ready` as a local input. A service does so from another process; a simulation calls
`solve_now` at the same instant.
"""

from __future__ import annotations

from services.placement.core.migration.targets import targets_reserved
from services.placement.core.pool.allocations import allocations_of
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View, view_of
from services.placement.core.solver.bound import most_gain
from services.placement.core.solver.checker import find_violations
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.instance import Fixed, Instance, RoundPlan, Solution, Start
from services.placement.core.solver.objective import at_speed, class_of, speed_of
from services.placement.core.solver.speeds import is_slowed
from shared.contracts.placement import RoundOpened, SolverStatus
from shared.contracts.solver_plan import PlannedStart, PlannedStop, PlannedWait, PlanReady
from shared.ledger.decider import Decision

WORK_PER_MS = 0.001
"""Deterministic units of the solver per ms of `solver_ms`: about as much as it does in that time
on one slow core, so that the wall clock seldom decides."""


def is_contended(pool: Pool, view: View, greedy: Plan) -> bool:
    """Return whether a job is passed over and there is a choice to make.

    Where no job starts or stops by greedy's plan no job fits alone, so there is none. A job that
    starts at less than its best speed is a choice as well. A queue that blocks, or that reserves
    GPUs for its head, is greedy's: its rules are about one job at a time.
    """
    if pool.settings is None or pool.settings.solver != "cpsat" or pool.open_round is not None:
        return False
    if pool.settings.packing != "best_fit":
        return False  # The objective has no term for fragments: its plan would undo the packing.
    if (
        view.queue_mode != "skip"
        or view.overdue.job_id
        or not (greedy.assignments or greedy.evictions)
    ):
        return False
    if any(assignment.job.shape.nodes for assignment in greedy.assignments):
        return False
    in_queue = sum(job.not_before <= view.now for job in view.waiting.values())
    return in_queue > len(greedy.assignments) or any(
        is_slowed(pool.board, started.job, started.slots) for started in greedy.assignments
    )


def open_round(pool: Pool, view: View, greedy: Plan) -> Decision | None:
    """Return the decision that opens the round for the solver; None if greedy's plan will do.

    The targets of migrations must be reserved (`targets_reserved`), as for greedy's plan.
    """
    if pool.settings is None or not is_contended(pool, view, greedy):
        return None
    if most_gain(instance_of(view, greedy)) <= 0:
        return None
    until = view.now + pool.settings.solver_ms
    return Decision(RoundOpened(pool=pool.name, waiting=len(pool.waiting), until=until))


def instance_for_round(pool: Pool) -> Instance:
    """Return the instance of the open round: the pool as it is now, at the round's moment."""
    assert pool.open_round is not None
    with targets_reserved(pool):
        return instance_of(view_of(pool, pool.open_round.at))


def work_limit(pool: Pool) -> float:
    """Return the deterministic units of work that a round of this pool may cost."""
    return WORK_PER_MS * (pool.settings.solver_ms if pool.settings else 0)


def solve_now(pool: Pool, work: float | None = None) -> PlanReady | None:
    """Return the answer to offer at the same instant, for a simulation; None without a round."""
    if pool.open_round is None:
        return None
    # Its libraries take longer to load than all the rest of a service, which has them elsewhere.
    from services.placement.core.solver.solve import solve

    instance = instance_for_round(pool)
    solved = solve(instance, work_limit(pool) if work is None else work)
    return plan_ready(instance, solved, pool.open_round.seq, 0.0)


def no_plan(at_seq: int, status: SolverStatus) -> PlanReady:
    """Return the answer without a plan: greedy plans the round."""
    return PlanReady(at_seq=at_seq, status=status)


def plan_ready(instance: Instance, solved: Solution, at_seq: int, solve_ms: float) -> PlanReady:
    """Return the plan as an input that `decide` checks against the pool as it is then."""
    if find_violations(instance, solved.plan):
        return no_plan(at_seq, "refused")
    status: SolverStatus = solved.status  # type: ignore[assignment]
    terms = {name: float(value) for name, value in solved.terms.items() if value}
    return PlanReady(
        at_seq=at_seq,
        status=status,
        starts=starts_of(instance, solved.plan),
        stops=stops_of(instance, solved.plan),
        moves=migrations_of(instance, solved.plan),
        waits=waits_of(instance, solved),
        weighed=tuple(request.job_id for request in instance.requests if request.victims),
        objective=solved.objective,
        greedy=solved.greedy,
        bound=solved.bound,
        solve_ms=solve_ms,
        terms=terms,
    )


def starts_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStart, ...]:
    where = class_of(instance)
    in_queue = sorted(plan.starts, key=lambda start: instance.requests[start.request].position)
    before = (fixed_start(fixed) for fixed in instance.fixed)
    return (*before, *(start_of(instance, start, where) for start in in_queue))


def fixed_start(fixed: Fixed) -> PlannedStart:
    return PlannedStart(
        job_id=fixed.job_id,
        attempt=fixed.attempt,
        allocations=allocations_of(fixed.slots),
        terms={"position": fixed.position, "nodes": len({slot.node_id for slot in fixed.slots})},
    )


def start_of(instance: Instance, start: Start, where: dict[str, int]) -> PlannedStart:
    request = instance.requests[start.request]
    speed = speed_of(instance, request, start.slots, where)
    classes = [instance.classes[where[slot.node_id]] for slot in start.slots]
    return PlannedStart(
        job_id=request.job_id,
        attempt=request.attempt,
        allocations=allocations_of(start.slots),
        terms={
            "position": request.position,
            "nodes": len({slot.node_id for slot in start.slots}),
            "racks": len({cls.rack for cls in classes}),
            "speed": speed / GPU,
            "value": at_speed(request.value, speed),
        },
    )


def stops_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStop, ...]:
    """Return each victim with the first job in the queue that may stop it."""
    reservations = sorted(
        plan.reservations, key=lambda reservation: instance.requests[reservation.request].position
    )
    stops = []
    for victim in plan.stops:
        job = instance.victims[victim]
        claimants = (instance.requests[c.request] for c in reservations)
        by = next(request.job_id for request in claimants if victim in request.victims)
        stops.append(PlannedStop(job_id=job.job_id, attempt=job.attempt, by_job_id=by))
    return tuple(stops)


def waits_of(instance: Instance, solved: Solution) -> tuple[PlannedWait, ...]:
    """Return the jobs that wait by the solver's plan; greedy's starts all that it can."""
    if solved.status not in ("optimal", "feasible"):
        return ()
    pairs = ((instance.requests[w.request], w.release) for w in solved.plan.waits)
    return tuple(
        PlannedWait(job_id=r.job_id, attempt=r.attempt, until=instance.releases[release].at)
        for r, release in pairs
    )


def migrations_of(instance: Instance, plan: RoundPlan) -> tuple[PlannedStart, ...]:
    jobs = [(instance.victims[migration.victim], migration.slots) for migration in plan.migrations]
    return tuple(
        PlannedStart(job_id=job.job_id, attempt=job.attempt, allocations=allocations_of(slots))
        for job, slots in jobs
    )
