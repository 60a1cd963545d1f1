"""Placement's decider: each input leads to facts, and a round is run at the end of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.placement.core import run_round
from services.placement.core.answer import apply_answer
from services.placement.core.gpu_rules import follow_dismissal
from services.placement.core.lifecycle import (
    arrays,
    gangs,
    health,
    injections,
    jobs,
    leases,
    ranks,
    transfers,
)
from services.placement.core.lifecycle.reports import on_report
from services.placement.core.migration.leave import end_wait_for_room, leave_slow_nodes
from services.placement.core.node_commands import decide_command
from services.placement.core.node_problems import note_problems
from services.placement.core.pool.evolve import evolve
from services.placement.core.pool.state import Pool
from services.placement.core.round.timing import due_at
from services.placement.core.scheduled.allot import apply_proposal
from services.placement.core.scheduled.shadow import note_shadow
from shared.contracts.admission import (
    ArrayAccepted,
    ArrayEnded,
    CancelRequested,
    JobAdmitted,
    JobReadmitted,
)
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.injections import EndInjection, InjectFault
from shared.contracts.mitigation import MitigationApplied, MitigationCleared, NodeHealthScored
from shared.contracts.node_problems import NodeProblemsReported
from shared.contracts.nodes import CordonNode, DeclareNodeLost, DrainNode, UncordonNode
from shared.contracts.placement import JobHeld, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.proposals import ProposalReady, ShadowReady
from shared.contracts.ranking import QueueRanked
from shared.contracts.reports import NodesHeard, NodesSilent
from shared.contracts.reranking import QueueReranked
from shared.contracts.solver_plan import PlanReady
from shared.contracts.topics import CONSUMED_EVENTS
from shared.contracts.transfers import JobTransferRequested
from shared.ledger.clock_steps import note_steps
from shared.ledger.decider import Decision, Fact, Input, Undecodable, WakeStart, as_unit

WHOLE_DECISIONS = (JobPlaced, JobHeld)
"""A full record may end before any of these events of a round."""


class Placement:
    """The decider of one pool's GPUs; see `Decider`."""

    ledger = "placement"
    consumed_events = CONSUMED_EVENTS["placement"]

    def initial(self, partition: int) -> Pool:
        return Pool(partition)

    def decide(self, state: Pool, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        yield from note_steps(inputs, state.settings, self.ledger, now)
        for item in inputs:
            yield from as_unit(react(state, item, now))
        if state.lost:
            yield from leases.release_lost(state, now)
        if state.held_back:
            yield from leases.join_held_back(state, now)
        if state.board.fading:
            yield from as_unit(health.forget_faults(state, now), WakeStart)
        if state.injections:
            yield from as_unit(injections.end_due(state, now), WakeStart)
        if state.starting:
            yield from start_timeouts(state, now)
        due = due_at(state)
        if due is None or due > now:
            return
        for decision in run_round.run(state, now):
            whole = type(decision.event) in WHOLE_DECISIONS
            yield WakeStart(*decision) if whole else decision

    def evolve(self, state: Pool, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: Pool) -> int | None:
        due = due_at(state)
        waits = state.starting or state.board.fading or state.injections
        if not (waits or state.lost or state.held_back):
            return due
        others = [due, start_end(state)]
        if state.injections:
            others.append(injections.due_at(state))
        if (state.lost or state.held_back) and leases.is_due(state):
            others.append(0)
        if state.board.fading:
            others.append(health.due_at(state))
        return min((at for at in others if at is not None), default=None)


def react(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    """Decide on one input, by its source; other messages of a source are for other services."""
    match item.source:
        case "reports":
            if isinstance(item.message, NodeProblemsReported):
                return note_problems(pool, item.message.problems, now, item.id)
            return on_report(pool, item, now)
        case "admission":
            return on_admission(pool, item, now)
        case "access":
            return on_access(pool, item)
        case "failslow":
            return on_failslow(pool, item, now)
        case _:
            return on_other(pool, item, now)


def on_admission(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    match item.message:
        case JobAdmitted() as message:
            yield from jobs.enqueue(pool, message, item)
        case ArrayAccepted(program_once=True) as message:
            yield from arrays.note_program(pool, message, item)
        case ArrayEnded() as message:
            yield from arrays.end_array(pool, message, item)
        case JobReadmitted() as message:
            yield from jobs.enqueue_again(pool, message, item)
        case CancelRequested() as message:
            yield from jobs.cancel(pool, message, item, now)
        case JobTransferRequested() as message:
            yield from transfers.transfer(pool, message, item)


def on_access(pool: Pool, item: Input) -> Iterator[Decision]:
    match item.message:
        case PoolConfigured(partition=pool.partition) as message if message != pool.settings:
            yield item.decision(message)


def on_failslow(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    match item.message:
        case FaultSuspected() | FaultCleared() | FaultDismissed() as message:
            yield from health.note_fault(pool, message, item, now)
            if isinstance(message, FaultDismissed):
                yield from follow_dismissal(pool, message, item)
        case NodeHealthScored() as scored:
            yield from health.note_score(pool, scored, item, now)
        case MitigationApplied() as applied:
            yield from leave_slow_nodes(pool, applied, item, now)
        case MitigationCleared() as cleared:
            yield from end_wait_for_room(pool, cleared, item)


def on_other(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    match item.message:
        case QueueRanked() as message:
            yield from ranks.note_ranks(pool, message, item)
        case QueueReranked() as message:
            yield from ranks.note_changes(pool, message, item)
        case (
            CordonNode()
            | DrainNode()
            | UncordonNode()
            | DeclareNodeLost()
            | InjectFault()
            | EndInjection()
        ) as message:
            yield from decide_command(pool, message, item, now)
        case NodesSilent() as message:
            yield from leases.note_silence(pool, message, now, item.id)
        case NodesHeard() as message:
            yield from leases.note_heard(pool, message, item.id)
        case PlanReady() as message:
            yield from apply_answer(pool, message, now)
        case ProposalReady() as message:
            yield from apply_proposal(pool, message, now)
        case ShadowReady() as message:
            yield from note_shadow(pool, message)
        case Undecodable() as message:
            yield item.decision(message.rejection())


def start_timeouts(pool: Pool, now: int) -> Iterator[Decision]:
    """Stop jobs that were not ready in time; the nodes of the missing workers are avoided."""
    late_jobs = []
    for job_id, placed_at in pool.starting.items():
        if now < placed_at + pool.start_timeout_ms:
            break
        late_jobs.append(pool.jobs[job_id])
    for job in late_jobs:
        missing = [
            allocation.slot.node_id
            for allocation in job.allocations.values()
            if allocation.rank not in job.ready
        ]
        nodes_to_avoid = tuple(dict.fromkeys(missing))
        yield from as_unit(gangs.fail_start(job, nodes_to_avoid, "start_timeout", ""), WakeStart)


def start_end(pool: Pool) -> int | None:
    for placed_at in pool.starting.values():
        return placed_at + pool.start_timeout_ms
    return None
