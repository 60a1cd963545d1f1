"""Arrays: their jobs are made and, after a cancel, told in turn. Called by `evolve` alone."""

from __future__ import annotations

from services.admission.core.ended import Outcome
from services.admission.core.state import Array, Owed, Pool


def array_of(job_id: str, index: int | None) -> str:
    return "" if index is None else job_id.removesuffix(f".{index}")


def unfold(state: Pool, job_id: str, index: int | None) -> None:
    """The array's next job is there now."""
    array = state.arrays.get(array_of(job_id, index))
    if array is None or array.next_index != index:
        return
    array.next_index += 1
    if array.next_index == array.size:
        state.folded.pop(array.job_id, None)


def ask(state: Pool, array: Array, command_id: str, traceparent: str, reason: str) -> None:
    """Somebody wants it to end; the first one who does ends what is not made yet."""
    array.cancels += ((command_id, traceparent),)
    if len(array.cancels) > 1:
        return
    never_made = array.size - array.next_index
    array.why = reason
    array.size = array.next_index
    array.left -= never_made
    array.cut += never_made
    state.folded.pop(array.job_id, None)
    state.cancelling[array.job_id] = None
    pass_over(state, array)


def tell(state: Pool, job_id: str, index: int | None) -> None:
    """One of its jobs was asked to end."""
    array = state.arrays.get(array_of(job_id, index))
    if array is not None and array.told == index:
        array.told += 1
        pass_over(state, array)


def pass_over(state: Pool, array: Array) -> None:
    """Go on to the next job that lives; each is looked at once in the life of the array."""
    while array.told < array.next_index and not lives(state, f"{array.job_id}.{array.told}"):
        array.told += 1
    if array.told == array.next_index:
        state.cancelling.pop(array.job_id, None)


def lives(state: Pool, job_id: str) -> bool:
    return job_id in state.deferred or job_id in state.admitted


def lose(state: Pool, array: Array, outcome: Outcome) -> None:
    """One of its jobs is over."""
    array.left -= 1
    array.all_succeeded = array.all_succeeded and outcome == "succeeded"
    array.cut += bool(array.cancels) and outcome == "cancelled"
    if array.job_id in state.cancelling:
        pass_over(state, array)


def close(state: Pool, array: Array) -> Outcome:
    """All of its jobs are over: how it ended as a whole, which those who cancelled it are owed."""
    del state.arrays[array.job_id]
    outcome: Outcome = "succeeded" if array.all_succeeded else "failed"
    if array.cut:
        outcome = "cancelled"
    for command_id, traceparent in array.cancels:
        state.owed[command_id] = Owed(traceparent, array.job_id, array.tenant, outcome)
    return outcome
