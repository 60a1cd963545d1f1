"""After `kill -9` of the throttle under load, its ledger agrees with what the engine made."""

from __future__ import annotations

import pytest

from benchmarks.parts.proxy.kills import MUST_BE_ZERO, kill_often

KILLS = 3


@pytest.mark.parts
@pytest.mark.process
async def test_nothing_is_served_uncharged_and_no_budget_is_passed() -> None:
    counts = await kill_often(KILLS, is_durable=False, report_line=lambda _: None)
    assert {name: counts[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0)
    assert counts["completed"] > 0
    assert counts["lost_with_process"] > 0
