"""Each node has its own share."""

from __future__ import annotations

import pytest

from services.executor.sessions.limits import BYTES, LINES, REPORTS, NodeLimits
from services.executor.sessions.refusal import Refused
from shared.rate import NS


def test_a_large_message_is_taken_once_there_is_room_and_the_wait_follows() -> None:
    limits = NodeLimits()
    limits.take_lines("n1", LINES.burst + 1000, 0)
    with pytest.raises(Refused, match="lines: 2000 a second, 20000 at once, per node"):
        limits.take_lines("n1", 1, 0)
    limits.take_lines("n2", 1, 0)
    limits.take_lines("n1", 1, NS)


def test_bytes_of_bodies_that_were_read_count() -> None:
    limits = NodeLimits()
    limits.check_bytes("n1", 0)
    limits.spend_bytes("n1", BYTES.burst + 1, 0)
    limits.take_request("n1", 0)
    with pytest.raises(Refused) as refused:
        limits.check_bytes("n1", 0)
    assert refused.value.status == 429 and refused.value.retry_after_s == 1


def test_reports_have_a_bucket_of_their_own() -> None:
    limits = NodeLimits()
    limits.take_reports("n1", REPORTS.burst, 0)
    limits.take_request("n1", 0)
    with pytest.raises(Refused, match="reports"):
        limits.take_reports("n1", 1, 0)
