"""Refused proposals of schedulers, and those that did not come, are in the log."""

from __future__ import annotations

import logging

import pytest

from services.placement.core.scheduled.allot import PROPOSAL_MS
from services.placement.refused_proposals import log_refused
from tests.services.placement.core.lane import job
from tests.services.placement.core.scheduled.pools import next_round, typed


@pytest.mark.parametrize(("scheduler", "lines"), [("muri", 1), ("gavel", 0)])
def test_a_refused_proposal_is_logged_with_its_pool_and_the_rule(
    caplog: pytest.LogCaptureFixture, scheduler: str, lines: int
) -> None:
    pool = typed(scheduler)
    pool.submit(job("one", 4))
    with caplog.at_level(logging.WARNING):
        log_refused(pool.facts)
    reasons = [vars(record) for record in caplog.records]
    assert len(reasons) == lines
    assert all(own["pool"] == "p" and scheduler in own["reason"] for own in reasons)


def test_a_proposal_that_did_not_come_is_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool = typed()
    pool.run(job("one", 4))
    pool.proposes = False
    next_round(pool)
    before = len(pool.facts)
    pool.feed(after_ms=PROPOSAL_MS)
    with caplog.at_level(logging.WARNING):
        log_refused(pool.facts[before:])
    (record,) = caplog.records
    assert record.getMessage() == "no proposal of a scheduler: the last one stands"
    assert (vars(record)["pool"], vars(record)["reason"]) == ("p", "late")
