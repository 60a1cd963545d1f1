"""What each of admission's own facts changes."""

from __future__ import annotations

from heapq import heappop, heappush

from services.admission.core import arrays, waits
from services.admission.core.ended import Ended, Outcome
from services.admission.core.need import GPU, gang_milli, need_of, shape_of
from services.admission.core.state import Admitted, Array, Backoff, Job, Pool, Used
from shared.contracts.access import PoolConfigured
from shared.contracts.bookkeeping import (
    AttemptNoted,
    CapacityNoted,
    JobSizeNoted,
    JobsReleased,
    TenantNoted,
)
from shared.contracts.jobs import (
    ArrayAccepted,
    ArrayCancelRequested,
    CancelRequested,
    CommandAccepted,
    CommandRefused,
    JobAdmitted,
    JobDeferred,
    JobReadmitted,
    JobRejected,
    QuotaChanged,
)
from shared.contracts.placement import JobCancelled
from shared.ledger.decider import Fact

SETTLE_MS = 5_000
"""Nodes of a starting or restarting executor join one after another: for so long after the last
change of capacity, in wall ms, a gang that does not fit is told `not yet` instead of `never`."""


def evolve(state: Pool, fact: Fact) -> None:
    match fact.event:
        case CommandAccepted() | CommandRefused() as answer:
            state.answered.apply(answer)
            state.owed.pop(answer.command_id, None)
        case JobAdmitted() as event:
            on_admitted(state, event)
        case JobDeferred() as event:
            on_deferred(state, fact, event)
        case JobRejected() as event:
            on_rejected(state, event)
        case JobCancelled() as event:
            on_cancelled(state, event)
        case JobsReleased() as event:
            on_released(state, event)
        case CancelRequested() as event:
            on_cancel_requested(state, fact, event)
        case _:
            evolve_rare(state, fact)


def evolve_rare(state: Pool, fact: Fact) -> None:
    match fact.event:
        case ArrayAccepted() as event:
            on_array(state, fact, event)
        case ArrayCancelRequested() as event:
            on_array_cancel(state, fact, event)
        case JobSizeNoted() as event:
            on_size(state, event)
        case AttemptNoted() as event:
            on_attempt(state, fact, event)
        case JobReadmitted() as event:
            on_readmitted(state, event)
        case CapacityNoted() as event:
            on_capacity(state, fact, event)
        case QuotaChanged() as event:
            state.quotas[event.tenant] = event
            waits.sort_by_bounds(state, [event.tenant])
        case PoolConfigured() as event:
            state.pool = event
            waits.sort_by_bounds(state, waits.waiting_tenants(state))
        case TenantNoted() as event:
            state.tenants[event.tenant] = event


def on_admitted(state: Pool, event: JobAdmitted) -> None:
    forget_deferred(state, event.job_id)
    spec = event.spec
    milli = gang_milli(spec)
    state.admitted[event.job_id] = Admitted(
        event.tenant,
        milli,
        round(spec.gang.gpus_per_worker * GPU),
        spec.spot,
        event.digest,
        event.array_index,
        spec.retry.backoff_s,
        spec.retry.avoid_failed_node,
    )
    charge(state.used, event.tenant, milli, spec.spot)
    arrays.unfold(state, event.job_id, event.array_index)


def on_deferred(state: Pool, fact: Fact, event: JobDeferred) -> None:
    job = state.deferred.get(event.job_id)
    if job is None:
        job = state.deferred[event.job_id] = first_met(state, fact, event)
        arrays.unfold(state, event.job_id, event.array_index)
    else:
        waits.leave(state, job)
    job.reason = event.reason
    waits.wait(state, job)


def first_met(state: Pool, fact: Fact, event: JobDeferred) -> Job:
    spec = event.spec
    assert spec is not None, "the first deferral of a job carries its spec"
    array = state.arrays.get(arrays.array_of(event.job_id, event.array_index))
    return Job(
        event.job_id,
        event.tenant,
        spec,
        need_of(spec),
        event.digest,
        array.submitted_at if array else fact.at,
        event.array_index,
        fact.cause,
        fact.traceparent,
    )


def on_rejected(state: Pool, event: JobRejected) -> None:
    forget_deferred(state, event.job_id)
    arrays.unfold(state, event.job_id, event.array_index)
    end(state, event.job_id, Ended("rejected", event.tenant, event.digest), event.array_index)


def on_cancelled(state: Pool, event: JobCancelled) -> None:
    job = forget_deferred(state, event.job_id)
    if job is not None:
        end(state, job.job_id, Ended("cancelled", job.tenant, job.digest), job.array_index)


def on_released(state: Pool, event: JobsReleased) -> None:
    for ended in event.ends:
        release(state, ended.job_id, ended.outcome)
    trim_alarms(state)


def release(state: Pool, job_id: str, outcome: Outcome) -> None:
    job = state.admitted.pop(job_id, None)
    if job is None:
        return
    charge(state.used, job.tenant, -job.gang_milli, job.spot)
    state.backoffs.pop(job_id, None)
    end(state, job_id, Ended(outcome, job.tenant, job.digest), job.array_index)


def end(state: Pool, job_id: str, ended: Ended, array_index: int | None) -> None:
    """The job is over for good; so may be the array that it was part of."""
    state.ended.add(job_id, ended)
    waits.wake_dependents(state, job_id, ended.outcome == "succeeded")
    array = state.arrays.get(arrays.array_of(job_id, array_index))
    if array is None:
        return
    arrays.lose(state, array, ended.outcome)
    if array.left == 0:
        end_array(state, array)


def end_array(state: Pool, array: Array) -> None:
    outcome = arrays.close(state, array)
    end(state, array.job_id, Ended(outcome, array.tenant, array.digest), None)


def forget_deferred(state: Pool, job_id: str) -> Job | None:
    job = state.deferred.pop(job_id, None)
    if job is not None:
        waits.leave(state, job)
    return job


def charge(used: Used, tenant: str, milli: int, spot: bool) -> None:
    counts = used.spot if spot else used.regular
    left = counts.get(tenant, 0) + milli
    if left:
        counts[tenant] = left
    else:
        counts.pop(tenant, None)
    if spot:
        used.spot_total += milli


def on_array(state: Pool, fact: Fact, event: ArrayAccepted) -> None:
    state.arrays[event.job_id] = Array(
        event.job_id,
        event.tenant,
        event.spec,
        event.array_size,
        event.digest,
        fact.at,
        fact.cause,
        fact.traceparent,
        left=event.array_size,
    )
    state.folded[event.job_id] = None


def on_array_cancel(state: Pool, fact: Fact, event: ArrayCancelRequested) -> None:
    state.answered.add(event.command_id)
    array = state.arrays[event.job_id]
    arrays.ask(state, array, event.command_id, fact.traceparent, event.reason)
    if array.left == 0:
        end_array(state, array)


def on_size(state: Pool, event: JobSizeNoted) -> None:
    """What it holds from now on is what its tenant is charged."""
    job = state.admitted.get(event.job_id)
    if job is not None:
        milli = event.workers * job.worker_milli
        charge(state.used, job.tenant, milli - job.gang_milli, job.spot)
        job.gang_milli = milli


def on_cancel_requested(state: Pool, fact: Fact, event: CancelRequested) -> None:
    state.answered.add(event.command_id)
    job = state.admitted.get(event.job_id)
    if job is None:
        return
    if event.of_array:
        arrays.tell(state, event.job_id, job.array_index)
    else:
        job.cancels += ((event.command_id, fact.traceparent),)


def on_attempt(state: Pool, fact: Fact, event: AttemptNoted) -> None:
    job = state.admitted.get(event.job_id)
    if job is None:
        return
    if job.avoid_failed_node:
        job.avoid_nodes = tuple(dict.fromkeys((*job.avoid_nodes, *event.node_ids)))
    state.backoffs[event.job_id] = Backoff(event.attempt, fact.cause, fact.traceparent)
    heappush(state.alarms, (event.not_before, event.job_id))


def on_readmitted(state: Pool, event: JobReadmitted) -> None:
    state.backoffs.pop(event.job_id, None)
    trim_alarms(state)


def trim_alarms(state: Pool) -> None:
    while state.alarms and state.alarms[0][1] not in state.backoffs:
        heappop(state.alarms)


def on_capacity(state: Pool, fact: Fact, event: CapacityNoted) -> None:
    for node_id in event.left:
        drop_node(state, node_id)
    for node in event.joined:
        drop_node(state, node.node_id)
        state.nodes[node.node_id] = node
        shape = shape_of(node)
        state.shapes[shape] = state.shapes.get(shape, 0) + 1
    state.settled_at = fact.at + SETTLE_MS
    waits.sort_by_nodes(state)


def drop_node(state: Pool, node_id: str) -> None:
    node = state.nodes.pop(node_id, None)
    if node is None:
        return
    shape = shape_of(node)
    state.shapes[shape] -= 1
    if not state.shapes[shape]:
        del state.shapes[shape]
