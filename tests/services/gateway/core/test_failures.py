"""Advice beside a failure in an answer."""

from __future__ import annotations

from services.gateway.core.failures import add_advice


def test_a_known_reason_gets_its_advice() -> None:
    body: dict[str, object] = {"failure": {"reason": "exit_code"}}
    add_advice(body)
    assert body == {"failure": {"reason": "exit_code", "advice": "see `berth logs JOB`"}}


def test_a_row_without_a_failure_stays_as_it_is() -> None:
    body: dict[str, object] = {"failure": None}
    add_advice(body)
    assert body == {"failure": None}
