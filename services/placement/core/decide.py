"""Placement's decider: each input leads to facts, and a round is run at the end of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.placement.core import rounds
from services.placement.core.answer import apply_answer
from services.placement.core.lifecycle import (
    arrays,
    checkpoints,
    forecasts,
    gangs,
    health,
    injections,
    jobs,
    leases,
    node_problems,
    nodes,
    ranks,
)
from services.placement.core.migration.leave import leave_slow_nodes
from services.placement.core.node_commands import decide_command
from services.placement.core.pool.evolve import evolve
from services.placement.core.pool.state import Pool
from services.placement.core.round.timing import due_at
from shared.contracts.admission import (
    ArrayAccepted,
    ArrayEnded,
    CancelRequested,
    JobAdmitted,
    JobReadmitted,
)
from shared.contracts.construct import construct
from shared.contracts.failures import LOST_BY_NODE, Failure
from shared.contracts.faults import FaultCleared, FaultDismissed, FaultSuspected
from shared.contracts.injections import EndInjection, InjectFault
from shared.contracts.mitigation import MitigationApplied, NodeHealthScored
from shared.contracts.node_problems import NodeProblemsReported
from shared.contracts.nodes import CordonNode, DeclareNodeLost, DrainNode, UncordonNode
from shared.contracts.placement import JobHeld, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked
from shared.contracts.reports import (
    CheckpointsReported,
    ExecutorReported,
    NodeLeaving,
    NodeRegistered,
    NodesHeard,
    NodesSilent,
    NodeTermsReported,
    ProgressReported,
    Report,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
    WorkerStuck,
)
from shared.contracts.reranking import QueueReranked
from shared.contracts.solver_plan import PlanReady
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.clock_steps import note_steps
from shared.ledger.decider import Decision, Fact, Input, Undecodable, WakeStart, as_unit

WHOLE_DECISIONS = (JobPlaced, JobHeld)
"""Events of a round of which a record that is full may end before any."""


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
        for decision in rounds.run(state, now):
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


def on_access(pool: Pool, item: Input) -> Iterator[Decision]:
    match item.message:
        case PoolConfigured(partition=pool.partition) as message if message != pool.settings:
            yield item.decision(message)


def on_failslow(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    match item.message:
        case FaultSuspected() | FaultCleared() | FaultDismissed() as message:
            yield from health.note_fault(pool, message, item, now)
        case NodeHealthScored() as scored:
            yield from health.note_score(pool, scored, item, now)
        case MitigationApplied() as applied:
            yield from leave_slow_nodes(pool, applied, item, now)


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
        case Undecodable() as message:
            yield item.decision(message.rejection())


def on_report(pool: Pool, item: Input, now: int) -> Iterator[Decision]:
    """Handle reports in their order, except that ready workers of one gang are counted together."""
    match item.message:
        case ExecutorReported(executor_id=executor_id, reports=reports):
            ready: dict[str, dict[int, int | None]] = {}
            for report in reports:
                if isinstance(report, WorkerReady):
                    note_ready(pool, report, ready)
                else:
                    yield from as_unit(on_worker_report(pool, report, executor_id, now, item.id))
            for job_id, ports in ready.items():
                if job_id in pool.jobs:
                    yield from as_unit(gangs.count_ready_workers(pool.jobs[job_id], ports, item.id))
        case CheckpointsReported(checkpoints=reported):
            yield from checkpoints.note_all(pool, reported, now, item.id)
        case ProgressReported(progress=progress):
            yield from forecasts.note_all(pool, progress, now, item.id)
        case NodeProblemsReported(problems=problems):
            yield from node_problems.note_problems(pool, problems, item.id)
        case Undecodable() as message:
            yield item.decision(message.rejection())


def note_ready(pool: Pool, report: WorkerReady, ready: dict[str, dict[int, int | None]]) -> None:
    """Note the port of a ready worker, by job id and rank."""
    job = pool.jobs.get(report.job_id)
    allocation = job.allocations.get(report.allocation_id) if job else None
    if allocation is not None:
        ready.setdefault(report.job_id, {}).setdefault(allocation.rank, report.master_port)


def on_worker_report(
    pool: Pool, report: Report, executor_id: str, now: int, cause: str
) -> Iterator[Decision]:
    match report:
        case WorkerExited(exit_code=code):
            lost = report.reason in LOST_BY_NODE
            yield from on_worker_gone(
                pool, report, "stopped" if lost else "exited", code, now, cause
            )
        case WorkerStopped(exit_code=code):
            yield from on_worker_gone(pool, report, "stopped", code, now, cause)
        case WorkerRefused():
            yield from on_worker_gone(pool, report, "refused", None, now, cause)
        case NodeRegistered():
            yield from nodes.register(pool, report, executor_id, now, cause)
        case NodeLeaving(node_id=node_id, incarnation=incarnation):
            yield from nodes.leave(pool, node_id, incarnation, now, cause)
        case NodeTermsReported():
            yield from leases.apply_terms(pool, report, cause)
        case WorkerStuck():
            yield from leases.note_stuck(pool, report, cause)


def on_worker_gone(
    pool: Pool,
    report: WorkerExited | WorkerStopped | WorkerRefused,
    reason: gangs.Release,
    code: int | None,
    now: int,
    cause: str,
) -> Iterator[Decision]:
    """Release a worker that is gone.

    A report of an allocation that the job does not hold is late, a repeat, or of a job long ended.
    None can be early: allocation ids are made by facts of this ledger, which is folded first.
    """
    job = pool.jobs.get(report.job_id)
    if job is not None and report.allocation_id in job.allocations:
        failure = failure_of(report)
        node_id = job.allocations[report.allocation_id].slot.node_id
        yield from gangs.release_worker(
            pool, job, report.allocation_id, reason, code, now, cause, failure
        )
        if isinstance(report, WorkerRefused) and failure is not None:
            yield from nodes.cordon_refusing(pool, node_id, failure, cause)


def failure_of(report: WorkerExited | WorkerStopped | WorkerRefused) -> Failure | None:
    """Return the failure that a report names; older executors put the detail into the reason."""
    if isinstance(report, WorkerStopped) or not report.reason:
        return None
    reason, _, detail = report.reason.partition(": ")
    return construct(
        Failure,
        reason=reason[:64],
        detail=report.detail or detail,
        output=report.output,
        permanent=report.permanent,
    )


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
