"""Folds the events of an array as a whole."""

from __future__ import annotations

from services.admission.core import arrays
from services.admission.core.evolve_jobs import end_array
from services.admission.core.state import AdmissionState, JobArray, Owner
from shared.contracts.admission import ArrayAccepted, ArrayCancelRequested, ArrayEnded
from shared.contracts.array_programs import without_program
from shared.ledger.decider import Fact


def accept(state: AdmissionState, event: ArrayAccepted, fact: Fact) -> None:
    state.arrays[event.job_id] = JobArray(
        event.job_id,
        event.tenant,
        without_program(event.spec) if event.program_once else event.spec,
        event.array_size,
        event.digest,
        fact.at,
        fact.cause,
        fact.traceparent,
        remaining=event.array_size,
        program_once=event.program_once,
    )
    state.expanding[event.job_id] = None
    arrays.count_open(state, Owner(event.tenant, event.spec.user), event.array_size)


def request_cancel(state: AdmissionState, event: ArrayCancelRequested, fact: Fact) -> None:
    state.answered.add(event.command_id)
    array = state.arrays[event.job_id]
    arrays.start_cancel(state, array, event.command_id, fact.traceparent, event.reason)
    if array.remaining == 0:
        end_array(state, array)


def note_end(state: AdmissionState, event: ArrayEnded, fact: Fact) -> None:
    state.ended_arrays.pop(event.job_id, None)
