from __future__ import annotations

import pytest

from services.placement.core.lifecycle.reports import failure_of
from shared.contracts.reports import WorkerExited, WorkerStopped


def exited(reason: str, detail: str = "") -> WorkerExited:
    return WorkerExited(
        job_id="j", attempt=1, allocation_id="0/1/0/0", exit_code=1, reason=reason, detail=detail
    )


@pytest.mark.parametrize(
    "report", [exited("setup_failed: no such file"), exited("setup_failed", "no such file")]
)
def test_older_executors_put_the_detail_of_a_failure_into_its_reason(report: WorkerExited) -> None:
    failure = failure_of(report)
    assert failure is not None
    assert (failure.reason, failure.detail) == ("setup_failed", "no such file")


def test_a_stopped_worker_and_an_exit_without_a_reason_are_no_failure() -> None:
    assert failure_of(exited("")) is None
    stopped = WorkerStopped(job_id="j", attempt=1, allocation_id="0/1/0/0", exit_code=143)
    assert failure_of(stopped) is None
