"""Jobs that move on purpose: they stop, and go on from their checkpoint on GPUs kept for them.

The path is that of a preemption: the gang stops with its grace, its allocations are released, it
waits again (`JobRequeued`). From the decision to the first round after that its target is kept
from everybody else; there it is placed before the line is looked at, for it had its turn. When
its target is not free then (a node was lost or cordoned) it stands in line like any other job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from services.placement.core.lifecycle import gangs
from services.placement.core.pool.allocations import allocations_of, gpus_in, slot_of, slots_by_rank
from services.placement.core.pool.board import Board, Draft
from services.placement.core.pool.evolve import folds, stop
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.state import Job, Pool
from services.placement.core.round.fit import place, reserve_slots
from services.placement.core.round.reserve import reserve_freed
from services.placement.core.round.victims import LOST_WORK_CAP_S, protected_ms
from services.placement.core.round.view import Migration, Plan, View, view_of
from shared.contracts.checkpoint import wall_ms
from shared.contracts.placement import JobMigrated, JobPlaced
from shared.ledger.decider import Decision, Fact

POLICY = "kept"
"""Neither the line nor a planner placed it: it goes on where it was to go on."""
NEVER = 1 << 62
MIGRATIONS_PER_ROUND = 32
"""That a plan may propose; each stops a job that could have gone on."""


# ---- what is kept ---------------------------------------------------------------------------


@contextmanager
def reserved(pool: Pool) -> Iterator[None]:
    """While it is open the board shows as taken what is kept for those that are under way."""
    draft = Draft(pool.board)
    for job_id, target in pool.migrations.items():
        job = pool.jobs[job_id]
        if job.phase != "waiting" or lands(pool, job, target):
            reserve_slots(draft, [slot for slot in target if in_use(pool.board, slot)])
    try:
        yield
    finally:
        draft.rollback()


def landings(pool: Pool, now: int) -> Iterator[Decision]:
    """Those that wait again are placed where they were to go on, if all of it is free."""
    for job_id, target in list(pool.migrations.items()):
        job = pool.jobs[job_id]
        if job.phase == "waiting" and lands(pool, job, target):
            yield placed(pool, job, target, now)


def lands(pool: Pool, job: Job, target: Iterable[Slot]) -> bool:
    """No round has passed over it since it waits again, and all of its target is free."""
    return job.round_no == pool.round_no and are_free(pool.board, target)


def are_free(board: Board, slots: Iterable[Slot]) -> bool:
    draft = Draft(board)
    try:
        return take_all(draft, slots)
    finally:
        draft.rollback()


def take_all(draft: Draft, slots: Iterable[Slot]) -> bool:
    """All of them, or none where one is not free."""
    mark = len(draft.log)
    for slot in slots:
        if not is_free(draft.board, slot):
            draft.rollback(mark)
            return False
        draft.take((slot,))
    return True


def in_use(board: Board, slot: Slot) -> bool:
    """Something may start on its node."""
    node = board.nodes.get(slot.node_id)
    return node is not None and node.indexed


def is_free(board: Board, slot: Slot) -> bool:
    if not in_use(board, slot):
        return False
    node = board.nodes[slot.node_id]
    return (
        node.cpu_free >= slot.cpu_milli
        and node.mem_free >= slot.mem_mib
        and all(gpu < len(node.free) and node.free[gpu] >= slot.milli for gpu in slot.gpus)
    )


# ---- drain ----------------------------------------------------------------------------------


def drained(pool: Pool, node_id: str, now: int, cause: str) -> Iterator[Decision]:
    """Who holds a node that is drained goes on elsewhere if there is room now, else in line."""
    holders = [pool.jobs[job_id] for job_id in pool.board.nodes[node_id].jobs]
    targets = room_elsewhere(pool, holders, now)
    for job in holders:
        if job.job_id in targets:
            yield moved(pool, Migration(job, targets[job.job_id], "drain"), now, cause)
        elif job.phase in ("placed", "running"):
            yield gangs.preempted(job, "node_drained", "", 0.0, cause)


def room_elsewhere(pool: Pool, holders: list[Job], now: int) -> dict[str, list[Slot]]:
    """Job id to its target, of the running ones for which there is one; the highest class first.

    What is kept for others is not used: of earlier moves, and of jobs that made others stop.
    """
    running = [job for job in holders if job.phase == "running"]
    view = view_of(pool, now)
    found: dict[str, list[Slot]] = {}
    with reserved(pool):
        draft = Draft(pool.board)
        try:
            for job_id in pool.reservations:
                if job := pool.waiting.get(job_id):
                    reserve_freed(view, draft, job, job.shape)
            for job in sorted(running, key=lambda job: (job.tier, job.placed_at, job.job_id)):
                if target := relocated(draft, job):
                    found[job.job_id] = target
        finally:
            draft.rollback()
    return found


def relocated(draft: Draft, job: Job) -> list[Slot]:
    """Workers on nodes in use return to where they were, the others find new slots, or none do.

    The new slots are taken on the draft.
    """
    slots = slots_by_rank(job)
    away = sum(not in_use(draft.board, slot) for slot in slots)
    new = iter(place(draft, sized(job.shape, away), job.avoid))
    target = [slot if in_use(draft.board, slot) else next(new, None) for slot in slots]
    return [slot for slot in target if slot] if None not in target else []


def sized(shape: Shape, workers: int) -> Shape:
    """The same workers, exactly so many."""
    return shape._replace(min_workers=workers, max_workers=workers)


# ---- what a planner proposes ----------------------------------------------------------------


def allowed(pool: Pool, view: View, plan: Plan) -> list[Migration]:
    """Of the proposed moves those that keep the rules; the engine never trusts a planner.

    A job that runs, may be stopped and had its guarantee and its residency; to slots of its own
    shape that are its own or free after what the plan starts; nobody twice; a few per round.
    """
    if not plan.migrations:
        return []
    busy = {eviction.job.job_id for eviction in plan.evictions} | set(pool.migrations)
    found: list[Migration] = []
    draft = Draft(view.board)
    try:
        for assignment in plan.places:
            draft.take(assignment.slots)
        for migration in plan.migrations:
            if len(found) == MIGRATIONS_PER_ROUND:
                break
            job = migration.job
            if job.job_id in busy or movable_from_ms(pool, job) > view.now:
                continue
            if suits(draft.board, migration) and stands(draft, migration):
                busy.add(job.job_id)
                found.append(migration)
    finally:
        draft.rollback()
    return found


def movable_from_ms(pool: Pool, job: Job) -> int:
    """ms from which a running job may be stopped for a move: guarantee and residency are over."""
    if job.phase != "running" or not (job.spec.preemptible or job.spec.spot):
        return NEVER
    settings = pool.settings
    residency_ms = wall_ms(settings.min_residency_s if settings else 0.0, pool.time_scale)
    guaranteed_ms = wall_ms(job.spec.guaranteed_s, pool.time_scale)
    return job.started_at + max(protected_ms(job, residency_ms), guaranteed_ms)


def suits(board: Board, migration: Migration) -> bool:
    """As many workers as it has, each of the job's shape, on nodes where it may run."""
    shape, slots = migration.job.shape, migration.slots
    return len(slots) == len(migration.job.allocations) and all(
        fits(board, shape, s) for s in slots
    )


def fits(board: Board, shape: Shape, slot: Slot) -> bool:
    candidate = (shape.gpus, shape.milli, shape.cpu_milli, shape.mem_mib)
    given = (len(set(slot.gpus)), slot.milli, slot.cpu_milli, slot.mem_mib)
    return (
        candidate == given
        and in_use(board, slot)
        and board.nodes[slot.node_id].kind.workers(shape) > 0
    )


def stands(draft: Draft, migration: Migration) -> bool:
    """The target is free, or the job's own: nobody else waits for what the job gives up."""
    mark = len(draft.log)
    own = slots_by_rank(migration.job)
    draft.give(own)
    if not take_all(draft, migration.slots):
        draft.rollback(mark)
        return False
    rest = [slot for slot in own if slot not in migration.slots]
    reserve_slots(draft, rest)
    return True


# ---- said and folded ------------------------------------------------------------------------


def placed(pool: Pool, job: Job, target: tuple[Slot, ...], now: int) -> Decision:
    nodes = {slot.node_id for slot in target}
    event = JobPlaced(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        allocations=allocations_of(target),
        waited_ms=max(0, now - job.since),
        policy=POLICY,
        score=pool.ranks.scores.get(job.job_id),
        terms={
            "nodes": len(nodes),
            "gpus": gpus_in(target),
            "health": min(pool.board.health(name) for name in nodes),
        },
    )
    return gangs.said(job, job.cause, event)


def moved(pool: Pool, migration: Migration, now: int, cause: str) -> Decision:
    job = migration.job
    event = JobMigrated(
        job_id=job.job_id,
        tenant=job.tenant,
        attempt=job.attempt,
        reason=migration.reason,
        by_job_id=migration.by.job_id if migration.by else "",
        from_nodes=job.nodes,
        to_nodes=tuple(dict.fromkeys(slot.node_id for slot in migration.slots)),
        target=allocations_of(migration.slots),
        lost_work_s=lost_work_s(pool, job, now),
    )
    return gangs.said(job, cause, event)


def lost_work_s(pool: Pool, job: Job, now: int) -> float:
    """Cluster seconds since its last checkpoint."""
    return min(job.lost_ms(now, pool.time_scale) / 1000 * pool.time_scale, LOST_WORK_CAP_S)


@folds(JobMigrated)
def on_migrated(event: JobMigrated, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    set_off(pool, job, "migrated", map(slot_of, event.target), fact.at)
    job.by = event.by_job_id
    if event.by_job_id:
        pool.reservations.setdefault(event.by_job_id, {})[event.job_id] = None


def set_off(pool: Pool, job: Job, why: str, target: Iterable[Slot], at: int) -> None:
    """It stops, and its target is kept until it is placed again."""
    stop(pool, job)
    job.set_back(at, pool.time_scale)
    job.stop, job.why = "preempted", why
    pool.migrations[job.job_id] = tuple(target)
