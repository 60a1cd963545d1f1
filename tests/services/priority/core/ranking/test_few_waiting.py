"""Single waiting jobs are placed as the arrays place all of them, to the last bit."""

from __future__ import annotations

from random import Random

import pytest

from services.priority.core.policies.base_policies import POLICIES
from services.priority.core.ranking.few_waiting import KEYS, TIMELESS
from services.priority.core.ranking.stable_order import few_positions, positions_of
from tests.harness.decider import AT
from tests.services.priority.core.queues import entry, happen, queue


def test_each_policy_with_a_key_of_one_job_has_stable_keys() -> None:
    assert all(POLICIES[name].stable for name in KEYS)
    assert set(KEYS) > TIMELESS


@pytest.mark.parametrize("mode", ["skip", "easy"])
@pytest.mark.parametrize("runtime", ["history", "user", "oracle"])
@pytest.mark.parametrize("policy", KEYS)
def test_one_job_is_placed_as_by_arrays(policy: str, runtime: str, mode: str) -> None:
    chance = Random(policy + runtime)
    names = [f"j{n:02d}" for n in range(20)]
    state = queue(
        *(
            entry(
                name,
                at=AT + 7 * n,
                gpus=float(1 + n % 4),
                walltime_s=[None, 90.0, 4000.0][n % 3],
                duration_s=[None, 80.5][n % 2],
                checkpoint_interval_s=30.0,
                spot=n % 5 == 0,
            )
            for n, name in enumerate(names)
        ),
        base_policy=policy,
        runtime=runtime,
        queue_mode=mode,
        preemption="ranked",
        time_scale=60.0,
    )
    assert state.pool is not None
    now, placed = AT, 0
    for _ in range(100):
        happen(chance, state, names, now)
        now += chance.choice([0, 1, 25, 700, 20_000])
        waiting = list(state.waiting)
        if waiting:
            by_arrays = positions_of(state, state.pool, now, waiting)
            uses_runtime = state.order_cache.uses_runtime
            assert few_positions(state, state.pool, now, waiting) == by_arrays
            assert state.order_cache.uses_runtime == uses_runtime
        placed += len(waiting)
    assert placed > 100
