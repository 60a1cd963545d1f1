"""Jobs run on a whole stack, and `berth what-if` replays them as its operator would."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.agents.jobs import berth
from tests.e2e.stand import POOL, Stand, a_stand

pytestmark = [pytest.mark.parts, pytest.mark.stack]

SCALE = 120.0
"""Cluster seconds per second: 20 minutes of work take 10 s."""
FILLS = {"workers": 4, "gpus_per_worker": 8}
"""The gang that takes the whole pool."""


@pytest.fixture(scope="module")
def stand() -> Iterator[Stand]:
    with a_stand("failslow", "throttle") as stand:
        berth(
            stand,
            "pools",
            "set",
            POOL,
            f"time_scale={SCALE}",
            "base_policy=fcfs",
            'shadows=["smallest_first"]',
            "scheduler_shadow=fcfs",
        )
        yield stand


def test_a_replay_has_the_recorded_order_and_other_policies_another(stand: Stand) -> None:
    """Three jobs of the whole pool, the last one short, and one that is cancelled as it waits.

    The stand has run a job before.
    """
    jobs = [
        stand.submit(caller="ada", gang=FILLS, simulated={"duration_s": run_s})["job_id"]
        for run_s in (1200, 1200, 120)
    ]
    stand.until(jobs[0], "running")
    gone = stand.submit(caller="bob", gang=FILLS, simulated={"duration_s": 60})["job_id"]
    berth(stand, "cancel", gone)
    for job in jobs:
        assert stand.ended(job)["phase"] == "succeeded"
    words = ("what-if", "--pool", POOL, "--from", "1h", "--json")
    shown = json.loads(berth(stand, *words, "--policy", "smallest_first", "--policy", "sjf"))
    assert shown["jobs"]["counted"] == 1 + len(jobs)
    assert shown["jobs"]["left_out"] == {"ended before it ran": 1}
    rows = {row["name"]: row for row in shown["rows"]}
    assert list(rows) == ["recorded", "present settings", "smallest_first", "sjf"]
    assert rows["recorded"]["mean_wait_s"] > 500
    first_wait = shown["fidelity"]["first_wait"]
    assert first_wait["replayed_mean_s"] == pytest.approx(first_wait["recorded_mean_s"], rel=0.5)
    assert {one["tenant"] for one in rows["sjf"]["tenants"]} == {"ada"}
    by_shadow = json.loads(berth(stand, *words))
    ranked, proposed = by_shadow["shadows"]
    assert (ranked["policy"], proposed["policy"]) == ("smallest_first", "rounds:fcfs")
    assert proposed["orders"] > 0 and proposed["refused"] == 0
    names = [row["name"] for row in by_shadow["rows"]]
    assert names == ["recorded", "present settings", "smallest_first", "fcfs, in rounds"]


def test_the_ledgers_are_sound(stand: Stand) -> None:
    assert stand.verify().violations == []
