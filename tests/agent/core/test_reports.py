"""Reports that follow from a worker's state."""

from __future__ import annotations

from typing import Any

import pytest

from berth_agent.core.reports import (
    WorkerView,
    current_stage,
    next_report,
    read_failure,
    shorten_report,
)
from berth_agent.messages import (
    ExitedReport,
    Failure,
    ReadyReport,
    RefusedReport,
    StoppedReport,
    StuckReport,
)

W = "0/1/0/0"
FENCED = {"reason": "fenced", "detail": "d", "output": [], "permanent": False}
FULL = {**FENCED, "reason": "disk_limit"}
MISSING = {"reason": "command_missing", "detail": "d", "output": ["x"], "permanent": True}


def view(*reported: Any, **state: Any) -> WorkerView:
    return WorkerView(W, state, 4567, frozenset(reported))


@pytest.mark.parametrize("phase", ["", "preparing", "starting", "running", "stopping"])
def test_nothing_is_reported_between_ready_and_the_end(phase: str) -> None:
    assert next_report(view("ready", phase=phase)) is None
    assert current_stage(view(phase=phase)) is None


def test_each_report_is_made_once() -> None:
    due = next_report(view(phase="prepared"))
    assert due == ("ready", ReadyReport(allocation_id=W, master_port=4567))
    assert next_report(view("ready", phase="prepared")) is None
    assert next_report(view("end", phase="dead", started=True)) is None


@pytest.mark.parametrize(
    ("reported", "state", "expected"),
    [
        ((), {"failure": MISSING}, RefusedReport),
        (("ready",), {"failure": FENCED}, ExitedReport),
        ((), {"stopped": True}, StoppedReport),
        (("ready",), {"started": True, "exit_code": 3, "stopped": True}, StoppedReport),
        (("ready",), {"started": True, "exit_code": 3}, ExitedReport),
        (
            ("ready",),
            {"started": True, "exit_code": 137, "stopped": True, "failure": FENCED},
            ExitedReport,
        ),
        (
            ("ready",),
            {"started": True, "exit_code": 143, "stopped": True, "failure": FULL},
            ExitedReport,
        ),
        ((), {}, RefusedReport),
    ],
)
def test_the_end_of_a_worker(reported: Any, state: dict[str, Any], expected: type[object]) -> None:
    due = next_report(view(*reported, phase="dead", **state))
    assert due is not None and due[0] == "end" and isinstance(due[1], expected)


def test_a_stuck_worker_is_named_and_its_end_still_follows() -> None:
    due = next_report(view("ready", phase="stuck", init_pid=77))
    assert due is not None and isinstance(due[1], StuckReport) and "77" in due[1].detail
    assert next_report(view("ready", "stuck", phase="dead", started=True)) is not None


def test_a_failure_is_cut_to_what_a_message_holds() -> None:
    document = {**MISSING, "detail": "d" * 5000, "output": ["l" * 900] * 50}
    failure = read_failure(document)
    assert failure is not None
    assert len(failure.detail) == 1024 and len(failure.output) == 20
    assert Failure.from_json(failure.to_json()) == failure
    assert read_failure(None) is None


def test_a_report_is_shortened_by_its_output_and_then_by_its_detail() -> None:
    failure = Failure(reason="exit_code", detail="d", output=("x",), permanent=True)
    without_output = Failure(reason="exit_code", detail="d", permanent=True)
    least = Failure(reason="exit_code", permanent=True)
    for kind in (
        lambda failure: RefusedReport(allocation_id=W, failure=failure),
        lambda failure: ExitedReport(allocation_id=W, exit_code=1, failure=failure),
    ):
        assert shorten_report(kind(failure)) == kind(without_output)
        assert shorten_report(kind(without_output)) == kind(least)
        assert shorten_report(kind(least)) is None
    assert shorten_report(StuckReport(allocation_id=W, detail="d")) == StuckReport(allocation_id=W)
    assert shorten_report(StoppedReport(allocation_id=W)) is None
