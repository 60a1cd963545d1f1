from __future__ import annotations

import pytest

from services.admission.core.answers import answer_cancel
from services.admission.core.ended_jobs import Outcome
from shared.contracts.command_answers import CommandAccepted, CommandRefused


def test_a_cancelled_job_makes_its_cancel_accepted() -> None:
    assert answer_cancel("c1", "j1", "cancelled", "acme") == CommandAccepted(
        command_id="c1", command_type="job.cancel.v1", of="j1", tenant="acme"
    )


@pytest.mark.parametrize("outcome", ["succeeded", "failed", "rejected"])
def test_a_job_that_ended_otherwise_makes_its_cancel_refused(outcome: Outcome) -> None:
    assert answer_cancel("c1", "j1", outcome, "acme") == CommandRefused(
        command_id="c1",
        command_type="job.cancel.v1",
        of="j1",
        tenant="acme",
        reason="already_finished",
        detail=f"job_id: 'j1': already {outcome}",
    )
