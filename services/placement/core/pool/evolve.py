"""What each fact of placement's ledger does to the pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from services.placement.core.pool.allocations import slot_of
from services.placement.core.pool.board import Kind, Node
from services.placement.core.pool.shape import GPU, MIB, shape_of, tier_of
from services.placement.core.pool.state import Job, OpenRound, Pool, Ranks, WorkerAllocation
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Event
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned
from shared.contracts.placement import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobEnqueued,
    JobFailed,
    JobHeld,
    JobPlaced,
    JobPreempted,
    JobRequeued,
    JobStarted,
    JobStartFailed,
    JobStopRequested,
    JobSucceeded,
    RanksNoted,
    RoundEnded,
    RoundOpened,
    WorkersReady,
)
from shared.ledger.decider import Fact

BACKOFF_MS = 500
BACKOFF_MOST_MS = 30_000


E = TypeVar("E", bound=Event)
Fold = Callable[[E, Pool, Fact], None]
FOLDS: dict[type[Event], Fold[Event]] = {}


def fold(pool: Pool, fact: Fact) -> None:
    """A fact without an entry (InputRejected) has no effect on the state."""
    known = FOLDS.get(type(fact.event))
    if known is not None:
        known(fact.event, pool, fact)


def folds(kind: type[E]) -> Callable[[Fold[E]], Fold[E]]:
    """Enter a function as what facts of that kind do."""

    def enter(function: Fold[E]) -> Fold[E]:
        FOLDS[kind] = cast("Fold[Event]", function)
        return function

    return enter


@folds(PoolConfigured)
def on_pool(event: PoolConfigured, pool: Pool, fact: Fact) -> None:
    pool.settings = event
    pool.touch(fact.at)
    pool.mark_unreported()
    pool.rebuild_queue()
    for node in pool.board.nodes.values():
        use(pool, node)


# ---- jobs in line -------------------------------------------------------------------------


@folds(JobEnqueued)
def on_enqueued(event: JobEnqueued, pool: Pool, fact: Fact) -> None:
    job = pool.jobs.get(event.job_id)
    if job is None:
        job = pool.jobs[event.job_id] = Job(
            job_id=event.job_id,
            tenant=event.tenant,
            submitted_at=event.submitted_at,
            array_index=event.array_index,
            spec=event.spec,
            shape=shape_of(event.spec),
            tier=tier_of(event.spec),
            attempt=event.attempt,
            since=fact.at,
            trace=fact.traceparent,
        )
        pool.note_arrival(job.shape)
    job.cause = fact.id
    job.resumes, job.debt_ms = False, 0
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at)


@folds(JobRequeued)
def on_requeued(event: JobRequeued, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    not_before = 0
    if event.reason == "start_failed":
        not_before = fact.at + min(BACKOFF_MS << (job.start_failures - 1), BACKOFF_MOST_MS)
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at, not_before)


def wait_again(
    pool: Pool, job: Job, attempt: int, avoid: tuple[str, ...], at: int, not_before: int = 0
) -> None:
    job.attempt, job.avoid, job.since = attempt, avoid, at
    job.stop, job.why, job.by, job.hold_reason = "", "", "", ""
    job.exit_code, job.failed_node, job.clean = None, "", True
    job.placed_at = job.started_at = 0
    job.not_before = not_before
    job.gpus = 0.0
    job.ready.clear()
    pool.enter(job, at)


@folds(RanksNoted)
def on_ranks(event: RanksNoted, pool: Pool, fact: Fact) -> None:
    """Where rank may stop jobs, another order may let one start."""
    scores = {entry.job_id: entry.score for entry in (*event.running, *event.ranked)}
    pool.rank(Ranks(event.ranked_at, event.base_policy, event.model_sha256, scores))
    if pool.is_ranked and pool.waiting:
        pool.touch(fact.at)


@folds(JobHeld)
def on_held(event: JobHeld, pool: Pool, fact: Fact) -> None:
    pool.jobs[event.job_id].hold_reason = event.reason


@folds(RoundOpened)
def on_opened(event: RoundOpened, pool: Pool, fact: Fact) -> None:
    pool.open_round = OpenRound(fact.seq, fact.at, event.until)


@folds(RoundEnded)
def on_round(event: RoundEnded, pool: Pool, fact: Fact) -> None:
    """Who is still in line was passed over; a claim whose victims are gone has had its turn."""
    pool.open_round = None
    pool.round_no += 1
    pool.round_at = fact.at
    pool.again_at = event.again_at
    pool.changed = event.unfinished
    pool.first_change = pool.last_change = fact.at
    pool.unscanned = 0
    if not event.unfinished:
        waits = pool.waiting
        pool.unreported = {
            name: None for name in pool.unreported if waits[name].not_before > fact.at
        }
    for job_id, victims in list(pool.reservations.items()):
        jobs = (pool.jobs.get(victim) for victim in victims)
        if not any(job and job.by == job_id for job in jobs):
            del pool.reservations[job_id]


# ---- jobs on GPUs -------------------------------------------------------------------------


@folds(JobPlaced)
def on_placed(event: JobPlaced, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    pool.leave(job)
    job.phase, job.placed_at = "placed", fact.at
    pool.hold(job)
    pool.starting[job.job_id] = fact.at
    for allocation in event.allocations:
        slot = slot_of(allocation)
        pool.board.shift(slot, -1)
        held = pool.board.nodes[slot.node_id].jobs
        held[job.job_id] = held.get(job.job_id, 0) + 1
        job.allocations[f"{fact.place}/{allocation.rank}"] = WorkerAllocation(allocation.rank, slot)
        job.gpus += len(slot.gpus) * slot.milli / GPU


@folds(WorkersReady)
def on_ready(event: WorkersReady, pool: Pool, fact: Fact) -> None:
    pool.jobs[event.job_id].ready.update(event.ranks)


@folds(JobStarted)
def on_started(event: JobStarted, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    job.phase, job.started_at = "running", fact.at
    if job.spec.elastic is not None:
        pool.elastic[job.job_id] = None
    job.start_failures = 0
    pool.starting.pop(event.job_id, None)
    if pool.waiting and (job.spec.guaranteed_s or pool.is_ranked):
        pool.touch(fact.at)


@folds(JobStartFailed)
def on_start_failed(event: JobStartFailed, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    stop(pool, job)
    job.stop, job.why = "start_failed", event.reason
    job.start_failures += 1
    job.avoid = tuple(dict.fromkeys(job.avoid + event.node_ids))


@folds(JobPreempted)
def on_preempted(event: JobPreempted, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    stop(pool, job)
    job.set_back(fact.at, pool.time_scale)
    job.stop, job.why, job.by = "preempted", event.reason, event.by_job_id
    if event.by_job_id:
        pool.reservations.setdefault(event.by_job_id, {})[event.job_id] = None


@folds(JobStopRequested)
def on_stop_requested(event: JobStopRequested, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    stop(pool, job)
    if event.reason == "cancelled" or not job.stop:
        job.stop, job.why = event.reason, event.detail


def stop(pool: Pool, job: Job) -> None:
    job.phase = "stopping"
    pool.starting.pop(job.job_id, None)


@folds(AllocationReleased)
def on_released(event: AllocationReleased, pool: Pool, fact: Fact) -> None:
    job = pool.jobs[event.job_id]
    allocation = job.allocations.pop(event.allocation_id)
    node = pool.board.nodes[allocation.slot.node_id]
    pool.board.shift(allocation.slot, 1)
    node.jobs[job.job_id] -= 1
    if not node.jobs[job.job_id]:
        del node.jobs[job.job_id]
    forget_if_gone(pool, node)
    pool.touch(fact.at)
    job.clean = job.clean and event.reason == "exited" and event.exit_code == 0
    failed = event.reason == "exited" and event.exit_code != 0
    if failed and job.phase == "running" and job.exit_code is None:
        job.exit_code, job.failed_node = event.exit_code, event.node_id


@folds(JobAttemptFailed)
def on_attempt_failed(event: JobAttemptFailed, pool: Pool, fact: Fact) -> None:
    """Parked until admission lets it in again."""
    job = pool.jobs[event.job_id]
    pool.let_go(job)
    # What this attempt took is told: a cancel while it is parked takes no more.
    job.phase, job.gpus, job.started_at = "parked", 0.0, 0
    job.failures += 1


@folds(JobSucceeded)
def on_succeeded(event: JobSucceeded, pool: Pool, fact: Fact) -> None:
    end(pool, event.job_id, fact.at)


@folds(JobFailed)
def on_failed(event: JobFailed, pool: Pool, fact: Fact) -> None:
    end(pool, event.job_id, fact.at)


@folds(JobCancelled)
def on_cancelled(event: JobCancelled, pool: Pool, fact: Fact) -> None:
    end(pool, event.job_id, fact.at)


def end(pool: Pool, job_id: str, at: int) -> None:
    """Nothing stays behind: what is said of it later is late, and ignored."""
    job = pool.jobs.pop(job_id)
    pool.let_go(job)
    if job_id in pool.waiting:
        pool.touch(at)
    pool.leave(job)
    pool.elastic.pop(job_id, None)
    pool.ranks.scores.pop(job_id, None)


# ---- nodes --------------------------------------------------------------------------------


@folds(NodeJoined)
def on_joined(event: NodeJoined, pool: Pool, fact: Fact) -> None:
    labels = tuple(sorted(event.labels.items()))
    cpu, mem = round(event.cpus * 1000), round(event.mem_gib * MIB)
    node = pool.board.nodes[event.node_id] = Node(
        node_id=event.node_id,
        incarnation=event.incarnation,
        backend=event.backend,
        kind=Kind(event.gpu_type, event.gpus, cpu, mem, labels),
        labels=dict(event.labels),
        free=[GPU] * event.gpus,
        whole=event.gpus,
        cpu_free=cpu,
        mem_free=mem,
        rack=event.labels.get("rack", event.rack),
    )
    use(pool, node)
    pool.touch(fact.at)
    pool.mark_unreported()


@folds(NodeLost)
def on_lost(event: NodeLost, pool: Pool, fact: Fact) -> None:
    node = pool.board.nodes[event.node_id]
    node.lost_at = fact.at
    use(pool, node)
    pool.lost[event.node_id] = fact.at
    pool.touch(fact.at)
    pool.mark_unreported()
    forget_if_gone(pool, node)


def forget_if_gone(pool: Pool, node: Node) -> None:
    if node.lost_at is not None and not node.jobs:
        del pool.board.nodes[node.node_id]
        del pool.lost[node.node_id]


@folds(NodeCordoned)
def on_cordoned(event: NodeCordoned, pool: Pool, fact: Fact) -> None:
    pool.cordons[event.node_id] = event.draining
    reuse(pool, event.node_id, fact.at)


@folds(NodeUncordoned)
def on_uncordoned(event: NodeUncordoned, pool: Pool, fact: Fact) -> None:
    pool.cordons.pop(event.node_id, None)
    reuse(pool, event.node_id, fact.at)


def reuse(pool: Pool, node_id: str, at: int) -> None:
    node = pool.board.nodes.get(node_id)
    pool.touch(at)
    pool.mark_unreported()
    if node is not None:
        use(pool, node)


def use(pool: Pool, node: Node) -> None:
    """On the board's indexes are the nodes where something may start."""
    allowed = pool.settings is None or node.backend in pool.settings.backends
    if allowed and node.lost_at is None and node.node_id not in pool.cordons:
        pool.board.index(node)
    else:
        pool.board.unindex(node)


# ---- commands -----------------------------------------------------------------------------


@folds(CommandAccepted)
def on_accepted(event: CommandAccepted, pool: Pool, fact: Fact) -> None:
    pool.answered.apply(event)


@folds(CommandRefused)
def on_refused(event: CommandRefused, pool: Pool, fact: Fact) -> None:
    pool.answered.apply(event)
