"""The command that applies a candidate."""

from __future__ import annotations

from shared.contracts.pools import PoolConfigured
from shared.contracts.settings_version import version_of
from simulator.engine.candidate import TrialCandidate, update_command


def test_the_command_sets_the_tried_settings_and_no_others() -> None:
    pool = PoolConfigured(
        partition=3,
        pool="p",
        base_policy="wfp3",
        learned="berth",
        preemption="ranked",
        runtime="user",
        rank_ms=77,
        reserve_after_s=9.0,
    )
    base = TrialCandidate("wfp3", {"learned": None, "preemption": "class", "preempt_margin": 0.0})
    update = update_command(pool, base)
    assert update.if_version == version_of(pool)
    assert set(update.changes()) == set(base.settings)
    assert (update.changes()["learned"], update.changes()["preemption"]) == (None, "class")
