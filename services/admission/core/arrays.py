"""The progress of an array: its jobs are created in turn, and after a cancel cancelled in turn.

Called by `evolve` alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from services.admission.core.ended_jobs import Outcome
from services.admission.core.state import AdmissionState, JobArray, Owner, PendingAnswer
from shared.contracts.array_programs import array_id_of

K = TypeVar("K", bound=Hashable)


def count_single(
    state: AdmissionState, owner: Owner, job_id: str, index: int | None, jobs: int
) -> None:
    """Add to the open jobs of an owner for a job of no array; arrays count theirs.

    A repeated job of an array keeps its index alone.
    """
    if index is None or not job_id.endswith(f".{index}"):
        count_open(state, owner, jobs)


def count_open(state: AdmissionState, owner: Owner, jobs: int) -> None:
    """Add to the open jobs of a tenant and its user, or subtract."""
    add_to(state.open_jobs, owner.tenant, jobs)
    add_to(state.open_jobs_of_users, owner, jobs)


def add_to(counts: dict[K, int], key: K, jobs: int) -> None:
    """Add to a count; one of 0 has no entry."""
    total = counts.get(key, 0) + jobs
    if total:
        counts[key] = total
    else:
        counts.pop(key, None)


def count_created(state: AdmissionState, job_id: str, index: int | None) -> None:
    """Go on to the array's next job if this is the one that was due."""
    array = state.arrays.get(array_id_of(job_id, index))
    if array is None or array.next_index != index:
        return
    array.next_index += 1
    if array.next_index == array.size:
        state.expanding.pop(array.job_id, None)


def start_cancel(
    state: AdmissionState, array: JobArray, command_id: str, traceparent: str, reason: str
) -> None:
    """Note a cancel; the first one removes the jobs that are not created yet."""
    array.cancels += ((command_id, traceparent),)
    if len(array.cancels) > 1:
        return
    never_created = array.size - array.next_index
    array.cancel_reason = reason
    array.size = array.next_index
    array.remaining -= never_created
    count_open(state, array.owner, -never_created)
    array.cancelled_jobs += never_created
    state.expanding.pop(array.job_id, None)
    state.cancelling[array.job_id] = None
    skip_ended(state, array)


def count_cancel_request(state: AdmissionState, job_id: str, index: int | None) -> None:
    """Go on to the array's next job after the cancel of this one was requested."""
    array = state.arrays.get(array_id_of(job_id, index))
    if array is not None and array.cancel_index == index:
        array.cancel_index += 1
        skip_ended(state, array)


def skip_ended(state: AdmissionState, array: JobArray) -> None:
    """Move `cancel_index` to the next job that has not ended; it never goes back."""
    while array.cancel_index < array.next_index and not is_live(
        state, f"{array.job_id}.{array.cancel_index}"
    ):
        array.cancel_index += 1
    if array.cancel_index == array.next_index:
        state.cancelling.pop(array.job_id, None)


def is_live(state: AdmissionState, job_id: str) -> bool:
    return job_id in state.deferred or job_id in state.admitted


def count_end(state: AdmissionState, array: JobArray, outcome: Outcome) -> None:
    array.remaining -= 1
    count_open(state, array.owner, -1)
    array.all_succeeded = array.all_succeeded and outcome == "succeeded"
    array.cancelled_jobs += bool(array.cancels) and outcome == "cancelled"
    if array.job_id in state.cancelling:
        skip_ended(state, array)


def close_array(state: AdmissionState, array: JobArray) -> Outcome:
    """Remove an array without live jobs, make its cancels due an answer, return its outcome."""
    del state.arrays[array.job_id]
    outcome: Outcome = "succeeded" if array.all_succeeded else "failed"
    if array.cancelled_jobs:
        outcome = "cancelled"
    for command_id, traceparent in array.cancels:
        answer = PendingAnswer(traceparent, array.job_id, array.tenant, outcome)
        state.pending_answers[command_id] = answer
    return outcome
