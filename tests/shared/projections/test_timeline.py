"""The history of a job has every public event about it, without private data."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shared.contracts.admission import CancelRequested, JobAdmitted
from shared.contracts.attempts import JobStarted
from shared.contracts.job_spec import JobSpec
from shared.projections.timeline import JOB_TYPES, JobEventRow, job_event_row, public_data
from tests.shared.ledger_events import AT, ledger_event


def test_public_events_of_jobs_are_in_the_history() -> None:
    assert {"job.admitted.v1", "job.held.v1", "fault.suspected.v1"} <= JOB_TYPES


@pytest.mark.process
def test_a_process_that_imports_nothing_else_has_the_same_history() -> None:
    program = "from shared.projections.timeline import JOB_TYPES; print(*sorted(JOB_TYPES))"
    output = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert output.split() == sorted(JOB_TYPES)


def test_internal_events_and_events_without_a_job_are_not() -> None:
    assert not {"workers.ready.v1", "node.joined.v1", "pool.configured.v1"} & JOB_TYPES


def test_a_row_has_the_position_and_the_json_of_its_event() -> None:
    started = JobStarted(job_id="j", tenant="red", attempt=1)
    event = ledger_event("placement", started, seq=4, index=2, partition=1, traceparent="00-aa")
    row = job_event_row(event)
    assert row == JobEventRow(
        "placement", 1, 4, 2, AT, "job.started.v1", "j", "red", event.raw.decode(), "", "00-aa"
    )


def test_specification_and_principal_are_dropped() -> None:
    admitted = JobAdmitted(
        job_id="j", tenant="red", submitted_at=1, spec=JobSpec(name="x", command=("secret",))
    )
    cancel = CancelRequested(job_id="j", command_id="c", principal="key:ops", reason="typo")
    for message in (admitted, cancel):
        data = json.loads(public_data(ledger_event("admission", message)))
        assert data["job_id"] == "j"
        assert not {"spec", "principal"} & data.keys()
