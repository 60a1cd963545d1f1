"""Use of tenants, Slurm's factor, and the order of `fair_share`."""

from __future__ import annotations

import pytest

from services.priority.core.policies.fair_share import (
    UNKNOWN_RUN_S,
    expected_use,
    factors,
    order_places,
    shares,
    used_gpu_s,
)
from services.priority.core.state import PriorityState
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.ranking import UsageDelta
from tests.harness.decider import AT, fold
from tests.services.priority.core.lane import PRIORITY
from tests.services.priority.core.queues import change, entry, holding, ids_at, queue


def two_tenants() -> PriorityState:
    return queue(entry("r"), entry("b", "blue"), half_life_s=100)


def test_use_is_the_decayed_past_and_what_runs_now() -> None:
    state = queue(entry("r"), running=(holding("r", gpus=4),), half_life_s=100)
    change(state, usage=(UsageDelta(tenant="red", gpu_s=80.0),))
    assert used_gpu_s(state, AT) == {"red": 80.0}
    assert used_gpu_s(state, AT + 100_000) == {"red": 40.0 + 400.0}


def test_a_share_is_use_over_weight() -> None:
    state = change(two_tenants(), usage=(UsageDelta(tenant="red", gpu_s=80.0),))
    fold(PRIORITY, state, [TenantNoted(tenant="red", weight=4)])
    assert shares(state, AT) == {"red": 20.0}


def test_the_factor_halves_for_each_fair_share_used() -> None:
    state = two_tenants()
    assert factors(state, state.view(AT), AT).tolist() == [1.0, 1.0], "without use all are equal"
    change(state, usage=(UsageDelta(tenant="red", gpu_s=75.0),))
    change(state, usage=(UsageDelta(tenant="blue", gpu_s=25.0),))
    expected = [0.5 ** (0.75 / 0.5), 0.5 ** (0.25 / 0.5)]
    assert factors(state, state.view(AT), AT).tolist() == pytest.approx(expected)


def test_a_job_in_the_order_counts_with_its_expected_use() -> None:
    state = queue(
        entry("r", walltime_s=1000),
        entry("s", at=AT + 1),
        *(entry(job, "blue", at=AT + 2 + n, walltime_s=10) for n, job in enumerate("bcd")),
    )
    view = state.view(AT + 10)
    assert ids_at(view, order_places(state, view, AT + 10, 5)) == "rbcds"
    assert ids_at(view, order_places(state, view, AT + 10, 2)) == "rb"


def test_expected_use_is_in_wall_gpu_seconds() -> None:
    state = queue(entry("limit", gpus=4, walltime_s=100), entry("none", gpus=0), time_scale=10)
    view = state.view(AT)
    assert expected_use(view, 0, state.time_scale) == 40.0
    assert expected_use(view, 1, state.time_scale) == 0.01 * UNKNOWN_RUN_S / 10
