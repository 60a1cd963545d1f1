"""Folds each event of the admission ledger into the state."""

from __future__ import annotations

from services.admission.core import evolve_arrays, evolve_jobs, evolve_pool
from services.admission.core.state import AdmissionState
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Event
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
from shared.contracts.rejected import InputQuarantined, InputRejected, InputRetried
from shared.ledger.decider import Fact
from shared.ledger.folds import EventFold, ignore, unknown_event


def remember_answer(
    state: AdmissionState, event: CommandAccepted | CommandRefused, fact: Fact
) -> None:
    state.answered.add(event.command_id)
    state.pending_answers.pop(event.command_id, None)


FOLDS: dict[type[Event], EventFold[AdmissionState]] = {
    CommandAccepted: remember_answer,
    CommandRefused: remember_answer,
    JobAdmitted: evolve_jobs.admit,
    JobDeferred: evolve_jobs.defer,
    JobRejected: evolve_jobs.reject,
    JobCancelled: evolve_jobs.cancel,
    JobsReleased: evolve_jobs.release,
    CancelRequested: evolve_jobs.request_cancel,
    JobSizeNoted: evolve_jobs.resize,
    AttemptNoted: evolve_jobs.back_off,
    JobReadmitted: evolve_jobs.readmit,
    ArrayAccepted: evolve_arrays.accept,
    ArrayCancelRequested: evolve_arrays.request_cancel,
    CapacityNoted: evolve_pool.change_nodes,
    QuotaChanged: evolve_pool.change_quota,
    PoolConfigured: evolve_pool.configure,
    TenantNoted: evolve_pool.note_tenant,
    InputRejected: ignore,
    InputQuarantined: ignore,
    InputRetried: ignore,
}
"""Every event type of the admission ledger, and its fold."""


def evolve(state: AdmissionState, fact: Fact) -> None:
    """Fold one event; raises TypeError on a type that admission does not write."""
    event = fact.event
    fold = FOLDS.get(type(event))
    if fold is None:
        raise unknown_event("admission", event)
    fold(state, event, fact)
