"""Retraining takes what deadlines and memory leave, and the user whose update is worth most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.throttle.core.retraining import (
    LEAST_SHARE,
    IterationCosts,
    Retraining,
    RetrainingLimits,
    RetrainingNeed,
    ServingLoad,
    after_window,
    free_time_s,
    most_valuable,
    must_evict,
    next_retraining,
    urgent_users,
)

LIMITS, COSTS = RetrainingLimits(), IterationCosts()
BUSY = ServingLoad(running=8, held_tokens=2000, due_s=0.15)


def need(user: str = "u", gap: float = 0.5, stale_s: float = 1.0) -> RetrainingNeed:
    return RetrainingNeed(user, gap, stale_s, 512)


def chosen(load: ServingLoad, *needs: RetrainingNeed, share: float = 1.0) -> Retraining | None:
    return next_retraining(load, needs, LIMITS, COSTS, share, 500.0)


def test_nothing_is_retrained_without_a_need() -> None:
    assert chosen(ServingLoad()) is None
    assert chosen(ServingLoad(), need(gap=0.0)) is None


def test_an_idle_engine_trains_without_delaying_an_arrival_for_long() -> None:
    retraining = chosen(ServingLoad(), need())
    assert retraining is not None
    assert COSTS.retraining_of(retraining.tokens) <= 2 * LIMITS.tpot_s


def test_a_burst_of_prompts_takes_all_of_the_next_iteration() -> None:
    assert chosen(BUSY, need()) is not None
    assert chosen(replace(BUSY, prompt_tokens=2000), need()) is None


def test_an_iteration_ends_before_the_next_token_is_due() -> None:
    retraining = chosen(BUSY, need())
    assert retraining is not None
    seconds = COSTS.serving_s(8, 2000, 0) + COSTS.retraining_of(retraining.tokens)
    assert seconds <= BUSY.due_s
    assert chosen(replace(BUSY, due_s=0.03), need()) is None


def test_a_first_token_that_is_nearly_due_takes_all() -> None:
    assert free_time_s(replace(BUSY, first_due_s=0.5), LIMITS, COSTS) == 0
    assert free_time_s(replace(BUSY, first_due_s=1.9), LIMITS, COSTS) > 0


def test_memory_that_serving_may_need_is_not_taken() -> None:
    enough = LIMITS.state_tokens + LIMITS.reserve_tokens
    assert chosen(replace(BUSY, free_tokens=enough - 1), need()) is None
    assert chosen(replace(BUSY, free_tokens=enough), need()) is not None


def test_retraining_leaves_memory_where_that_starts_a_request() -> None:
    assert must_evict(fits_beside=False, fits_alone=True)
    assert not must_evict(fits_beside=True, fits_alone=True)
    assert not must_evict(fits_beside=False, fits_alone=False)


def test_requests_that_wait_for_a_place_take_all_but_what_is_urgent() -> None:
    load = replace(BUSY, waiting=1)
    assert chosen(load, need()) is None
    assert chosen(load, need(stale_s=LIMITS.freshness_s)) is not None


def test_the_update_worth_most_per_token_is_next() -> None:
    assert most_valuable([need("a", 0.2), need("b", 0.4)], LIMITS) == need("b", 0.4)
    stale = need("a", 0.3, stale_s=60)
    assert most_valuable([stale, need("b", 0.4, 0)], LIMITS) == stale
    cheap = replace(need("a", 0.2), batch_tokens=64)
    assert most_valuable([cheap, need("b", 0.4)], LIMITS) == cheap
    assert most_valuable([replace(need("a", 0.2), weight=3), need("b", 0.4)], LIMITS) is not None


def test_a_batch_in_progress_is_finished_first() -> None:
    retraining = chosen(BUSY, need("a", 0.9), replace(need("b", 0.1), in_progress=True))
    assert retraining is not None and retraining.user == "b"


def test_users_are_urgent_early_enough_for_all_of_them() -> None:
    needs = [need(f"u{n}", 0.0, stale_s=40.0 + n) for n in range(10)]
    assert [n.user for n in urgent_users(needs, LIMITS, 10_000)] == []
    urgent = urgent_users(needs, LIMITS, 500)
    assert urgent[0].user == "u9" and len(urgent) > 5
    assert chosen(BUSY, *needs) is not None


def test_the_share_halves_on_missed_deadlines_and_grows_by_steps() -> None:
    assert after_window(1.0, 100, 2, LIMITS) == 0.5
    assert after_window(0.5, 100, 1, LIMITS) == pytest.approx(0.55)
    assert after_window(1.0, 0, 0, LIMITS) == 1.0
    assert after_window(LEAST_SHARE, 1, 1, LIMITS) == LEAST_SHARE
    half, full = (chosen(BUSY, need(), share=share) for share in (0.7, 1.0))
    assert half and full and half.tokens < full.tokens


def test_the_model_follows_measured_times() -> None:
    costs = COSTS
    for _ in range(100):
        modelled_s = costs.serving_s(8, 2000, 0)
        costs = costs.corrected(modelled_s, 1.3 * COSTS.serving_s(8, 2000, 0))
    assert costs.correction == pytest.approx(1.3, rel=0.02)
    assert costs.tokens_in(0.2) < COSTS.tokens_in(0.2)


def test_limits_that_make_no_sense_are_errors() -> None:
    with pytest.raises(ValueError, match="tpot_s: 0.0; a number above 0"):
        RetrainingLimits(tpot_s=0.0)
    with pytest.raises(ValueError, match="reserve: 1.0; a number from 0 to below 1"):
        RetrainingLimits(reserve=1.0)
