"""Nothing of an earlier attempt is kept of a job."""

from __future__ import annotations

from services.failslow.core.state import GangState
from services.failslow.core.suspicion.attempts import OfAttempts


def of_attempts() -> OfAttempts[list[int]]:
    kept: OfAttempts[list[int]] = OfAttempts(list)
    kept.begin("j1", 1).append(7)
    return kept


def test_a_value_is_that_of_its_attempt() -> None:
    kept = of_attempts()
    assert kept.of("j1", 1) == kept.begin("j1", 1) == [7]
    assert kept.of("j1", 2) is None and kept.of("j2", 1) is None


def test_a_new_attempt_begins_anew() -> None:
    kept = of_attempts()
    assert kept.begin("j1", 2) == []
    assert kept.of("j1", 1) is None


def test_jobs_and_attempts_that_ended_are_forgotten() -> None:
    for gangs in ({}, {"j1": GangState("acme", 2, {})}):
        kept = of_attempts()
        kept.forget_ended(gangs)
        assert kept.of("j1", 1) is None
    kept = of_attempts()
    kept.forget_ended({"j1": GangState("acme", 1, {})})
    assert kept.of("j1", 1) == [7]
