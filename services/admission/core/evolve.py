"""Folds each event of the admission ledger into the state."""

from __future__ import annotations

from services.admission.core import evolve_arrays, evolve_jobs, evolve_pool
from services.admission.core.state import AdmissionState
from shared.contracts.admission import (
    ArrayAccepted,
    ArrayCancelRequested,
    ArrayEnded,
    CancelRequested,
    JobAdmitted,
    JobDeferred,
    JobReadmitted,
    JobRejected,
    QuotaChanged,
)
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.bookkeeping import (
    AttemptNoted,
    CapacityNoted,
    JobSizeNoted,
    JobsReleased,
    TenantNoted,
    UserNoted,
)
from shared.contracts.clocks import ClockStepped
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.contracts.transfers import JobTransferRequested
from shared.ledger.decider import Fact
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding, ignore, note_clock_step


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
    JobTransferRequested: ignore,
    JobSizeNoted: evolve_jobs.resize,
    AttemptNoted: evolve_jobs.back_off,
    JobReadmitted: evolve_jobs.readmit,
    ArrayAccepted: evolve_arrays.accept,
    ArrayCancelRequested: evolve_arrays.request_cancel,
    ArrayEnded: evolve_arrays.note_end,
    CapacityNoted: evolve_pool.change_nodes,
    QuotaChanged: evolve_pool.change_quota,
    PoolConfigured: evolve_pool.configure,
    PoolDeleted: evolve_pool.delete,
    TenantNoted: evolve_pool.note_tenant,
    UserNoted: evolve_pool.note_user,
    ClockStepped: note_clock_step,
    **INPUT_FOLDS,
}
"""Every event type of the admission ledger, and its fold."""

evolve = folding("admission", FOLDS)
