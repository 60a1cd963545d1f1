"""Refused proposals of schedulers are in the log."""

from __future__ import annotations

import logging

import pytest

from services.placement.refused_proposals import log_refused
from tests.services.placement.core.lane import job
from tests.services.placement.core.scheduled.pools import typed


@pytest.mark.parametrize(("scheduler", "lines"), [("dally", 1), ("gavel", 0)])
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
