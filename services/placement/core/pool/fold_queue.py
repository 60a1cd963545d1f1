"""Folds of waiting jobs, ranks and rounds."""

from __future__ import annotations

from services.placement.core.pool.job import Job
from services.placement.core.pool.overdue import note_overdue
from services.placement.core.pool.queue_order import apply_ranks
from services.placement.core.pool.ranks import NamedOrder, Ranks, named_order
from services.placement.core.pool.schedule import Allotted, OpenProposal, Schedule, Shadow
from services.placement.core.pool.shape import shape_of, tier_of
from services.placement.core.pool.state import OpenRound, Pool
from services.placement.core.pool.transferred import take_over
from shared.contracts.admission import ArrayEnded
from shared.contracts.attempts import JobRequeued
from shared.contracts.job_names import program_of
from shared.contracts.placement import (
    ArrayProgramNoted,
    JobEnqueued,
    JobHeld,
    RanksChanged,
    RanksNoted,
    RoundEnded,
    RoundOpened,
)
from shared.contracts.schedules import AllottedGpus, GpusAllotted, ProposalOpened, ShadowProposed
from shared.ledger.decider import Fact

BACKOFF_MS = 500
BACKOFF_MOST_MS = 30_000


def enqueue(pool: Pool, event: JobEnqueued, fact: Fact) -> None:
    """Add a new job to the queue, or an old one that admission let in again."""
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
            program=program_of(event.tenant, event.spec.user, event.spec.name),
            trace=fact.traceparent,
        )
        pool.note_arrival(job.shape)
    job.cause = fact.id
    job.predicted_s = pool.ranks.run_s.get(event.job_id)
    job.resumes, job.debt_ms, job.starts, job.done_s = False, 0, 0, 0.0
    if event.attempt == 1:
        take_over(job)
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at)


def requeue(pool: Pool, event: JobRequeued, fact: Fact) -> None:
    """Put a job whose GPUs are all back into the queue; failed starts back off exponentially."""
    job = pool.jobs[event.job_id]
    not_before = 0
    if event.reason == "start_failed":
        not_before = fact.at + min(BACKOFF_MS << (job.start_failures - 1), BACKOFF_MOST_MS)
    wait_again(pool, job, event.attempt, event.avoid_nodes, fact.at, not_before)


def wait_again(
    pool: Pool, job: Job, attempt: int, avoid: tuple[str, ...], at: int, not_before: int = 0
) -> None:
    """Reset what belongs to the attempt before and enter the queue at `at` ms."""
    job.note_run(at)
    job.attempt, job.avoid, job.since = attempt, avoid, at
    job.stop, job.stop_reason, job.makes_room_for, job.hold_reason = "", "", "", ""
    job.exit_code, job.failed_node, job.clean = None, "", True
    job.placed_at = job.started_at = job.deferred_until_ms = 0
    job.not_before = not_before
    job.gpus = 0.0
    job.ready.clear()
    pool.enter(job, at)


def note_array(pool: Pool, event: ArrayProgramNoted, fact: Fact) -> None:
    pool.arrays[event.job_id] = None


def end_array(pool: Pool, event: ArrayEnded, fact: Fact) -> None:
    pool.arrays.pop(event.job_id, None)


def note_hold(pool: Pool, event: JobHeld, fact: Fact) -> None:
    pool.jobs[event.job_id].hold_reason = event.reason


def note_ranks(pool: Pool, event: RanksNoted, fact: Fact) -> None:
    """Take over a whole order; without changes to follow it has only the ranks of use.

    Ranks age by this ledger's clock alone, from their record on: that of priority may be another.
    """
    order = named_order(event)
    if event.changes_follow:
        pool.named_order = order
        use_order(pool, order, fact.at)
    else:
        pool.named_order = None
        ranks = order.of_use(fact.at, order.waiting, (), order.running)
        use_ranks(pool, ranks, fact.at)


def change_ranks(pool: Pool, event: RanksChanged, fact: Fact) -> None:
    order = pool.named_order
    assert order is not None, "changes without the order that they change"
    order.apply(event)
    use_order(pool, order, fact.at)


def use_order(pool: Pool, order: NamedOrder, at: int) -> None:
    """Take over the ranks that are of use now; if none is, the last ones stay."""
    holders = pool.running if pool.is_ranked else {}
    ranks = order.of_use(at, pool.waiting, pool.jobs, holders)
    if ranks.scores:
        use_ranks(pool, ranks, at)


def use_ranks(pool: Pool, ranks: Ranks, at: int) -> None:
    """Take over the new order; where rank may stop jobs, it may also let one start."""
    apply_ranks(pool, ranks)
    if pool.is_ranked and pool.waiting:
        pool.touch(at)


def note_allotments(pool: Pool, event: GpusAllotted, fact: Fact) -> None:
    """Take over what the pool's scheduler allotted; a refused proposal allots nothing.

    A round that went on without it has taken the changes that a round now has to look at.
    """
    open_ = pool.schedule.open
    if open_ is not None and pool.round_at > open_.at:
        pool.touch(fact.at)
    pool.schedule = Schedule(
        event.scheduler,
        event.number,
        fact.at,
        event.until,
        event.memory,
        event.refused,
        {own.job_id: allotted_of(own) for own in event.allotted},
    )


def allotted_of(own: AllottedGpus) -> Allotted:
    nodes = tuple((node.node_id, node.workers) for node in own.nodes)
    return Allotted(own.gpu_type, own.workers, nodes)


def note_shadow(pool: Pool, event: ShadowProposed, fact: Fact) -> None:
    pool.shadow = Shadow(event.scheduler, event.number, event.until, event.memory)


def open_proposal(pool: Pool, event: ProposalOpened, fact: Fact) -> None:
    pool.schedule.open = OpenProposal(fact.seq, fact.at, event.until)


def open_round(pool: Pool, event: RoundOpened, fact: Fact) -> None:
    pool.open_round = OpenRound(fact.seq, fact.at, event.until)


def end_round(pool: Pool, event: RoundEnded, fact: Fact) -> None:
    """Count the jobs still in the queue as passed over.

    A reservation whose victims are all gone has had its turn and is dropped.
    """
    pool.open_round = None
    pool.round_no += 1
    pool.round_at = fact.at
    pool.again_at = event.again_at
    pool.changed = event.unfinished
    pool.first_change = pool.last_change = fact.at
    pool.unscanned = 0
    if not event.unfinished:
        waiting = pool.waiting
        pool.unreported = {
            job_id: None for job_id in pool.unreported if waiting[job_id].not_before > fact.at
        }
    note_overdue(pool, fact.at)
    for job_id, victims in list(pool.reservations.items()):
        jobs = (pool.jobs.get(victim) for victim in victims)
        if not any(job and job.makes_room_for == job_id for job in jobs):
            del pool.reservations[job_id]
