"""Selects the ends that teach history a run time, so that no job looks short at no cost."""

from __future__ import annotations

from typing import TypeAlias

from services.priority.core.history.distributions import CUT_SHORT_S
from services.priority.core.state import PriorityState
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.ranking import QueueEntry

End: TypeAlias = JobSucceeded | JobFailed | JobCancelled


def teaches(state: PriorityState, entry: QueueEntry | None, end: End, ran_s: float) -> bool:
    """Return whether history learns the run time of an ended job, in cluster s.

    Of a job that failed or was cancelled at once, only that it outlived its prediction: its end
    says nothing of how long it would have run, but its run so far does. A later cancel teaches:
    where a tuner or a user ends most jobs, those are the times for which such jobs hold GPUs.
    A job that left for another pool has not ended.
    """
    if isinstance(end, JobCancelled) and end.transferred_to is not None:
        return False
    if entry is None or state.pool is None or not state.pool.guard_predictions:
        return True
    is_cut_short = not isinstance(end, JobSucceeded) and ran_s < CUT_SHORT_S
    return not is_cut_short or ran_s > predicted_s(state, entry)


def predicted_s(state: PriorityState, entry: QueueEntry) -> float:
    """Return the mean run time that was predicted when the job came, or now if that is now."""
    job = state.jobs.get(entry.job_id)
    if job is not None and job.entry is not None:
        return state.table.get(job.row, "mean_s")
    estimate = state.history.estimate(
        entry.tenant, entry.user, entry.name, entry.gpus, entry.command_digest
    )
    return estimate.mean_s
