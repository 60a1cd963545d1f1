"""The commands that fail-slow may send: jobs that measure the nodes of a slow job, and their end.

The sender is the one that the record names: a topic knows who may write to it, and not who wrote.
"""

from __future__ import annotations

from typing import NamedTuple

from services.admission.core.state import AdmissionState
from shared.contracts.base import Command
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.validation import FAILSLOW, MEASURING_S
from shared.ledger.decider import Input

PLAN = "/validate/"
"""Part of the id of each plan to measure nodes."""
PROGRAM = ("python3", "-c")


class CommandRefusal(NamedTuple):
    """The arguments of a refusal, behind its input."""

    of: str
    reason: str
    detail: str


def check_failslow(state: AdmissionState, item: Input, command: Command) -> CommandRefusal | None:
    """Return why a command of fail-slow is refused; None for those of others."""
    if item.principal != FAILSLOW:
        return None
    match command:
        case SubmitJob() if state.pool is not None:
            wrong = _wrong_submission(command, MEASURING_S * state.pool.time_scale)
            own_id = _job_id_of(state, command.tenant, command.idempotency_key)
        case CancelJob() if command.tenant is not None:
            wrong, own_id = "", _job_id_of(state, command.tenant, command.reason)
        case _:
            return CommandRefusal(
                "", "forbidden", f"{command.TYPE}: is none of those of {FAILSLOW}"
            )
    if not wrong and command.job_id != own_id:
        wrong = f"job_id: {command.job_id!r}: must be that of a plan to measure nodes"
    return CommandRefusal(command.job_id, "forbidden", wrong) if wrong else None


def _wrong_submission(command: SubmitJob, longest_s: float) -> str:
    spec = command.spec
    if not spec.validates or spec.measures is None:
        return "measures: absent: a job that measures the nodes of another one is required"
    if spec.walltime_s is None or spec.walltime_s > longest_s:
        return f"walltime_s: {spec.walltime_s}: must be at most {longest_s:g}"
    if spec.command[:2] != PROGRAM or spec.image or spec.bundle or spec.env or spec.workdir:
        return (
            f"command: {spec.command[:2]!r}: must be that of a measurement, and nothing beside it"
        )
    return "array_size: must be 1" if command.array_size > 1 or spec.depends_on else ""


def _job_id_of(state: AdmissionState, tenant: str, plan_id: str) -> str:
    if PLAN not in plan_id or state.pool is None:
        return ""
    return derive_job_id(tenant, state.pool.pool, plan_id)
