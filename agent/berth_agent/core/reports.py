"""Derives reports from the state of a worker, each once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from berth_agent.core import disk_use
from berth_agent.messages import (
    ExitedReport,
    Failure,
    NodeReport,
    ReadyReport,
    RefusedReport,
    StoppedReport,
    StuckReport,
)

Stage = Literal["ready", "stuck", "end"]
CANNOT_RUN = 126
ENDED_HERE = ("fenced", disk_use.REASON)
"""Reasons of stops that the node ordered by itself."""
DETAIL_CHARS, LINE_CHARS, LINES = 1024, 512, 20


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as its folder shows it; `state` is the file of its step."""

    allocation_id: str
    state: dict[str, Any]
    master_port: int | None = None
    reported: frozenset[Stage] = field(default_factory=frozenset)

    @property
    def phase(self) -> str:
        return str(self.state.get("phase", ""))


def next_report(view: WorkerView) -> tuple[Stage, NodeReport] | None:
    """Return the report that is due, None if all were made."""
    stage = current_stage(view)
    if stage is None or stage in view.reported:
        return None
    match stage:
        case "ready":
            return stage, ReadyReport(
                allocation_id=view.allocation_id, master_port=view.master_port
            )
        case "stuck":
            detail = f"process {view.state.get('init_pid')} was killed and does not end"
            return stage, StuckReport(allocation_id=view.allocation_id, detail=detail)
        case "end":
            return stage, end_report(view)


def end_report(view: WorkerView) -> NodeReport:
    """Return the report of a dead worker."""
    state, allocation_id = view.state, view.allocation_id
    failure = read_failure(state.get("failure"))
    exit_code = state.get("exit_code")
    ended_here = failure is not None and failure.reason in ENDED_HERE
    if state.get("stopped") and not ended_here:
        return StoppedReport(allocation_id=allocation_id, exit_code=exit_code)
    if state.get("started") or "ready" in view.reported:
        return ExitedReport(
            allocation_id=allocation_id,
            exit_code=CANNOT_RUN if exit_code is None else exit_code,
            ran_ms=int(state.get("ran_ms", 0)),
            failure=failure,
        )
    unknown = Failure(reason="step_failed", detail="the step ended before the worker started")
    return RefusedReport(allocation_id=allocation_id, failure=failure or unknown)


def read_failure(document: object) -> Failure | None:
    """Return a failure that a step noted, cut to what a message may hold."""
    if not isinstance(document, dict):
        return None
    return Failure(
        reason=str(document["reason"])[:64],
        detail=str(document["detail"])[:DETAIL_CHARS],
        output=tuple(str(line)[:LINE_CHARS] for line in document["output"][-LINES:]),
        permanent=bool(document["permanent"]),
    )


def current_stage(view: WorkerView) -> Stage | None:
    """Return the stage of the present phase, None while there is nothing to report."""
    match view.phase:
        case "prepared":
            return "ready"
        case "stuck":
            return "stuck"
        case "dead":
            return "end"
        case _:
            return None


def shorten_report(report: NodeReport) -> NodeReport | None:
    """Return the report without the output of its failure, or without its detail if it has none.

    None: nothing is left that it can do without.
    """
    match report:
        case StuckReport(detail=str(detail)) if detail:
            return replace(report, detail="")
        case RefusedReport(failure=Failure() as failure) if shorter := _shorten(failure):
            return replace(report, failure=shorter)
        case ExitedReport(failure=Failure() as failure) if shorter := _shorten(failure):
            return replace(report, failure=shorter)
        case _:
            return None


def _shorten(failure: Failure) -> Failure | None:
    if failure.output:
        return replace(failure, output=())
    return replace(failure, detail="") if failure.detail else None
