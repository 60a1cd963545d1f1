"""The request of `berth validate --apply`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cli.commands import validate as validate_command
from shared.contracts.pools import PoolConfigured
from shared.contracts.settings_version import version_of
from simulator.engine.candidate import TrialCandidate
from simulator.recorded.pool import RecordedPool


class RecordingApi:
    """Accepts every request and keeps its body."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, dict[str, Any]]] = []

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append((path, body))
        return {"command_id": "c"}


def test_an_applied_candidate_changes_the_settings_that_it_names_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = PoolConfigured(
        partition=3,
        pool="p",
        time_scale=60.0,
        learned="berth",
        preemption="ranked",
        preempt_margin=0.7,
        rank_ms=77,
        reserve_after_s=9.0,
        solver="greedy",
        spot_gpus=4.0,
    )
    settings: dict[str, object] = {"learned": None, "preemption": "class", "preempt_margin": 0.0}
    candidate = TrialCandidate("fair_share", settings)
    api = RecordingApi()
    monkeypatch.setattr(validate_command, "api", lambda data: api)
    monkeypatch.setattr(validate_command, "await_answer", lambda client, receipt: receipt)
    validate_command._apply(RecordedPool("p", pool=pool), candidate, "it waits less", None)
    ((path, body),) = api.bodies
    assert path == "/v1/pools/p"
    assert body == {
        "pool": "p",
        "if_version": version_of(pool),
        **settings,
        "reason": "it waits less",
    }


def test_hours_since_a_change_of_policy() -> None:
    assert validate_command.hours_since_change(RecordedPool("p"), 7200.0) == math.inf
    changed = RecordedPool("p", policy_changed_at=3_600_000)
    assert validate_command.hours_since_change(changed, 7200.0) == 1.0
    assert validate_command.hours_since_change(changed, 0.0) == 0.0
