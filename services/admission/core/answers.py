"""The answer to a cancel, once its job or array has ended."""

from __future__ import annotations

from services.admission.core.ended_jobs import Outcome
from shared.contracts.job_commands import CancelJob
from shared.ledger.answers import Answer, accepted, refused


def answer_cancel(command_id: str, job_id: str, outcome: Outcome, tenant: str) -> Answer:
    """Accept the cancel, or refuse it if the job or array ended before it could be cancelled.

    A cancel follows a job that was transferred, see `services/gateway/transfers.py`.
    """
    about = (command_id, CancelJob.TYPE, job_id, tenant)
    if outcome in ("cancelled", "transferred"):
        return accepted(*about)
    return refused(*about, "already_finished", f"job_id: {job_id!r}: already {outcome}")
