"""Single running jobs are scored as the arrays score all of them, to the last bit."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.queue.table import RUNNING
from services.priority.core.ranking.few_running import KEYS
from services.priority.core.ranking.stable_order import score_few, score_running
from tests.harness.decider import AT
from tests.services.priority.core.queues import entry, happen, queue


def test_the_policies_that_weigh_the_rest_have_a_key_of_one_job() -> None:
    assert set(KEYS) == {name for name, policy in POLICIES.items() if policy.running == "by_bin"}


@pytest.mark.parametrize("price", [0.0, 1.0])
@pytest.mark.parametrize("policy", KEYS)
def test_one_job_is_scored_as_by_arrays(policy: str, price: float) -> None:
    chance = Random(policy)
    names = [f"j{n:02d}" for n in range(20)]
    state = queue(
        *(entry(name, gpus=float(1 + n % 4), restart_s=45.0) for n, name in enumerate(names)),
        base_policy=policy,
        runtime="history",
        preemption="ranked",
        preemption_protection="progress",
        preempt_price=price,
        time_scale=60.0,
    )
    assert state.pool is not None
    now, scored = AT, 0
    for _ in range(300):
        happen(chance, state, names, now)
        now += chance.choice([0, 1, 25, 700, 20_000])
        rows = state.table.unordered(RUNNING)
        by_arrays = list(score_running(state, state.pool, now, rows)) if len(rows) else []
        assert list(score_few(state, state.pool, now, rows.tolist())) == by_arrays
        scored += len(rows)
    assert scored > 300


def test_a_job_that_outlived_all_samples_is_scored_at_any_moment() -> None:
    chance = Random(1)
    state = queue(entry("a"), base_policy="gittins", preemption="ranked")
    assert state.pool is not None
    now = AT
    while not len(rows := state.table.unordered(RUNNING)) or not state.table.get(rows[0], "go_ms"):
        happen(chance, state, ["a"], now)
        now += 1
    state.table.put_distribution(int(rows[0]), np.eye(48)[3])
    later = now + 3_600_000
    (place,) = score_few(state, state.pool, later, rows.tolist())
    assert place.until == later
    assert [place] == list(score_running(state, state.pool, later, rows))
