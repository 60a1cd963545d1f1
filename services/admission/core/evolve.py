"""Dispatches each event of the admission ledger to the function that folds it into the state."""

from __future__ import annotations

from services.admission.core import evolve_arrays, evolve_jobs, evolve_pool
from services.admission.core.state import AdmissionState
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
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def evolve(state: AdmissionState, fact: Fact) -> None:  # noqa: C901  # one case per event type
    """Fold one event of admission's own ledger; raises on a type that it does not write."""
    match fact.event:
        case CommandAccepted() | CommandRefused() as answer:
            state.answered.apply(answer)
            state.pending_answers.pop(answer.command_id, None)
        case JobAdmitted() as event:
            evolve_jobs.admit(state, event)
        case JobDeferred() as event:
            evolve_jobs.defer(state, fact, event)
        case JobRejected() as event:
            evolve_jobs.reject(state, event)
        case JobCancelled() as event:
            evolve_jobs.cancel(state, event)
        case JobsReleased() as event:
            evolve_jobs.release(state, event)
        case CancelRequested() as event:
            evolve_jobs.request_cancel(state, fact, event)
        case JobSizeNoted() as event:
            evolve_jobs.resize(state, event)
        case AttemptNoted() as event:
            evolve_jobs.back_off(state, fact, event)
        case JobReadmitted() as event:
            evolve_jobs.readmit(state, event)
        case ArrayAccepted() as event:
            evolve_arrays.accept(state, fact, event)
        case ArrayCancelRequested() as event:
            evolve_arrays.request_cancel(state, fact, event)
        case CapacityNoted() as event:
            evolve_pool.change_nodes(state, fact, event)
        case QuotaChanged() as event:
            evolve_pool.change_quota(state, event)
        case PoolConfigured() as event:
            evolve_pool.configure(state, event)
        case TenantNoted() as event:
            state.tenants[event.tenant] = event
        case InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"event of an unknown type in the admission ledger: {event.TYPE}")
