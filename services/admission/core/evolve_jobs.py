"""Folds the events of one job, from its first deferral or admission to its end."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TypeVar

from services.admission.core import arrays, waiting
from services.admission.core.demand import demand_of, gang_milli_of
from services.admission.core.ended_jobs import EndedJob, Outcome
from services.admission.core.state import (
    AdmissionState,
    AdmittedJob,
    Backoff,
    JobArray,
    Owner,
    PendingJob,
)
from shared.contracts.admission import (
    CancelRequested,
    JobAdmitted,
    JobDeferred,
    JobReadmitted,
    JobRejected,
)
from shared.contracts.array_programs import array_id_of
from shared.contracts.attempts import JobCancelled
from shared.contracts.bookkeeping import AttemptNoted, JobSizeNoted, JobsReleased
from shared.contracts.gang_needs import GPU
from shared.ledger.decider import Fact

Key = TypeVar("Key")


def admit(state: AdmissionState, event: JobAdmitted, fact: Fact) -> None:
    spec, owner = event.spec, Owner(event.tenant, event.spec.user)
    if remove_deferred(state, event.job_id) is None:
        arrays.count_single(state, owner, event.job_id, event.array_index, 1)
    gang_milli = gang_milli_of(spec)
    state.admitted[event.job_id] = AdmittedJob(
        owner,
        gang_milli,
        round(spec.gang.gpus_per_worker * GPU),
        spec.spot,
        event.digest,
        event.array_index,
        spec.retry.backoff_s,
        spec.retry.avoid_failed_node,
    )
    charge(state, owner, gang_milli, spec.spot)
    arrays.count_created(state, event.job_id, event.array_index)


def defer(state: AdmissionState, event: JobDeferred, fact: Fact) -> None:
    job = state.deferred.get(event.job_id)
    if job is None:
        job = state.deferred[event.job_id] = create_job(state, event, fact)
        arrays.count_created(state, event.job_id, event.array_index)
        arrays.count_single(state, job.owner, event.job_id, event.array_index, 1)
    else:
        waiting.stop_waiting(state, job)
    job.reason = event.reason
    waiting.start_waiting(state, job)


def create_job(state: AdmissionState, event: JobDeferred, fact: Fact) -> PendingJob:
    spec = event.spec
    assert spec is not None, "the first deferral of a job carries its spec"
    array = state.arrays.get(array_id_of(event.job_id, event.array_index))
    return PendingJob(
        event.job_id,
        event.tenant,
        spec,
        demand_of(spec),
        event.digest,
        array.submitted_at if array else fact.at,
        event.array_index,
        fact.cause,
        fact.traceparent,
    )


def reject(state: AdmissionState, event: JobRejected, fact: Fact) -> None:
    if (job := remove_deferred(state, event.job_id)) is not None:
        arrays.count_single(state, job.owner, event.job_id, event.array_index, -1)
    arrays.count_created(state, event.job_id, event.array_index)
    ended = EndedJob("rejected", event.tenant, event.digest)
    end_job(state, event.job_id, ended, event.array_index)


def cancel(state: AdmissionState, event: JobCancelled, fact: Fact) -> None:
    job = remove_deferred(state, event.job_id)
    if job is not None:
        arrays.count_single(state, job.owner, job.job_id, job.array_index, -1)
        outcome: Outcome = "cancelled" if event.transferred_to is None else "transferred"
        ended = EndedJob(outcome, job.tenant, job.digest)
        end_job(state, job.job_id, ended, job.array_index)


def request_cancel(state: AdmissionState, event: CancelRequested, fact: Fact) -> None:
    state.answered.add(event.command_id)
    job = state.admitted.get(event.job_id)
    if job is None:
        return
    if event.of_array:
        arrays.count_cancel_request(state, event.job_id, job.array_index)
    else:
        job.cancels += ((event.command_id, fact.traceparent),)


def resize(state: AdmissionState, event: JobSizeNoted, fact: Fact) -> None:
    """Charge the tenant for the workers that the job has from now on."""
    job = state.admitted.get(event.job_id)
    if job is not None:
        gang_milli = event.workers * job.worker_milli
        charge(state, job.owner, gang_milli - job.gang_milli, job.spot)
        job.gang_milli = gang_milli


def back_off(state: AdmissionState, event: AttemptNoted, fact: Fact) -> None:
    job = state.admitted.get(event.job_id)
    if job is None:
        return
    if job.avoid_failed_node:
        job.avoid_nodes = tuple(dict.fromkeys((*job.avoid_nodes, *event.node_ids)))
    state.backoffs[event.job_id] = Backoff(event.attempt, fact.cause, fact.traceparent)
    heappush(state.retry_times, (event.not_before, event.job_id))


def readmit(state: AdmissionState, event: JobReadmitted, fact: Fact) -> None:
    state.backoffs.pop(event.job_id, None)
    trim_retry_times(state)


def release(state: AdmissionState, event: JobsReleased, fact: Fact) -> None:
    for end in event.ends:
        release_job(state, end.job_id, end.outcome)
    trim_retry_times(state)


def release_job(state: AdmissionState, job_id: str, outcome: Outcome) -> None:
    job = state.admitted.pop(job_id, None)
    if job is None:
        return
    charge(state, job.owner, -job.gang_milli, job.spot)
    arrays.count_single(state, job.owner, job_id, job.array_index, -1)
    state.backoffs.pop(job_id, None)
    end_job(state, job_id, EndedJob(outcome, job.tenant, job.digest), job.array_index)


def end_job(state: AdmissionState, job_id: str, job: EndedJob, array_index: int | None) -> None:
    """Note that a job has ended, and its array too if it was the last one of it."""
    state.ended.add(job_id, job)
    waiting.wake_dependents(state, job_id, job.outcome == "succeeded")
    array = state.arrays.get(array_id_of(job_id, array_index))
    if array is None:
        return
    arrays.count_end(state, array, job.outcome)
    waiting.wake_held(state, array)
    if array.remaining == 0:
        end_array(state, array)


def end_array(state: AdmissionState, array: JobArray) -> None:
    outcome = arrays.close_array(state, array)
    if array.program_once:
        state.ended_arrays[array.job_id] = array.tenant
    end_job(state, array.job_id, EndedJob(outcome, array.tenant, array.digest), None)


def remove_deferred(state: AdmissionState, job_id: str) -> PendingJob | None:
    job = state.deferred.pop(job_id, None)
    if job is not None:
        waiting.stop_waiting(state, job)
    return job


def charge(state: AdmissionState, owner: Owner, gpu_milli: int, spot: bool) -> None:
    """Add to the use of a tenant and its user, or subtract."""
    use = state.quota_use
    add_use(use.spot if spot else use.regular, owner.tenant, gpu_milli)
    add_use(use.of_users, owner, gpu_milli)
    if spot:
        use.spot_total += gpu_milli
    waiting.note_room(state, owner)


def add_use(use: dict[Key, int], key: Key, gpu_milli: int) -> None:
    """Add to a use; who uses nothing has no entry."""
    total = use.get(key, 0) + gpu_milli
    if total:
        use[key] = total
    else:
        use.pop(key, None)


def trim_retry_times(state: AdmissionState) -> None:
    """Remove entries of jobs that do not back off any more from the top of the heap."""
    while state.retry_times and state.retry_times[0][1] not in state.backoffs:
        heappop(state.retry_times)
