"""Refused attempts are noted, and what access does not know is denied."""

from __future__ import annotations

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from shared.contracts.access import Attempt, AttemptsRefused, NoteAttempts
from shared.contracts.job_commands import CancelJob
from shared.contracts.registry import AccessView


def test_refused_attempts_are_noted() -> None:
    attempts = (Attempt(principal="key:k1", status=403, requests=2),)
    command = NoteAttempts(gateway="g1", attempts=attempts)
    event = AttemptsRefused(gateway="g1", attempts=attempts)
    assert decide_configuration(AccessView(), 4, command) == Grant("g1", event)


def test_a_command_that_access_does_not_support_is_denied() -> None:
    outcome = decide_configuration(AccessView(), 4, CancelJob(job_id="j1"))
    assert outcome == Denial("", "unknown_command", "command: job.cancel.v1: not supported")
