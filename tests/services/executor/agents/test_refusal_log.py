"""Refusals are counted all, and logged once for each node and reason."""

from __future__ import annotations

import logging

import pytest

from services.executor.agents.refusal import Refused, unavailable
from services.executor.agents.refusal_log import AGAIN_S, RefusalLog
from shared.telemetry.metrics import Metrics

CHANGED = Refused(403, "machine_changed", "hardware: differs")
UNKNOWN = Refused(401, "unknown_credential", "credential: unknown")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(str(vars(r)["node"]), str(vars(r)["reason"])) for r in caplog.records]


def test_the_first_refusal_of_a_node_and_reason_is_logged_once_an_hour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    at_s, metrics = [0.0], Metrics("executor")
    refusals = RefusalLog(metrics, lambda: at_s[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            refusals.note("n1.secret", "10.0.0.9", CHANGED)
        refusals.note("n1.secret", "10.0.0.9", UNKNOWN)
        refusals.note("no credential", "10.0.0.9", UNKNOWN)
        refusals.note("n1.secret", "10.0.0.9", unavailable("behind", "executor: behind"))
        assert lines(caplog) == [
            ("n1", "machine_changed"),
            ("n1", "unknown_credential"),
            ("10.0.0.9", "unknown_credential"),
        ]
        at_s[0] += AGAIN_S
        refusals.note("n1.secret", "10.0.0.9", CHANGED)
    assert len(caplog.records) == 4
    assert "secret" not in caplog.text
    count = {
        reason: metrics.registry.get_sample_value("berth_agent_refusals_total", {"reason": reason})
        for reason in ("machine_changed", "unknown_credential", "behind")
    }
    assert count == {"machine_changed": 4, "unknown_credential": 2, "behind": 1}
