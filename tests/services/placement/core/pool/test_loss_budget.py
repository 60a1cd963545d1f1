"""The account of what stops cost a pool, in whole numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.pool.loss_budget import (
    SHARES,
    LossAccount,
    LossBudget,
    budget_of,
    earned_after_ms,
    fill_of,
    is_paused,
    share_of,
)

SHARE = share_of(0.015)
USES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=8)


def test_a_share_is_whole_and_one_bounds_nothing() -> None:
    assert (SHARE, share_of(1.0)) == (150, SHARES)
    assert not is_paused(10**30, share_of(1.0), budget_of(share_of(1.0), 8000, 1000))
    assert is_paused(0, 0, 0), "a pool that may lose nothing stops nobody"
    assert fill_of(10**30, share_of(1.0), 0) == 1.0


def test_a_stop_is_earned_back_by_the_gpus_in_use() -> None:
    budget = budget_of(SHARE, 8000, 86_400_000)
    account = LossAccount()
    account.use(0, 8000, SHARE)
    # 8 GPUs lose 1.5 % of a day and 100 s more.
    account.charge(0, 8000, 1_296_000 + 100_000, SHARE)
    assert is_paused(account.spent, SHARE, budget) and fill_of(account.spent, SHARE, budget) == 0
    opens = earned_after_ms(account.spent, SHARE, budget, account.used_milli)
    assert opens == 6_666_667
    assert is_paused(account.spent_at(opens - 1, SHARE), SHARE, budget)
    assert not is_paused(account.spent_at(opens, SHARE), SHARE, budget)
    assert earned_after_ms(account.spent, SHARE, budget, 0) is None


def test_the_budget_at_a_moment_says_when_it_opens_again() -> None:
    budget = budget_of(SHARE, 8000, 86_400_000)
    spent = LossBudget(5_000, budget + SHARE * 8000 * 100, SHARE, budget, 8000)
    assert (spent.is_paused, spent.fill, spent.opens_at_ms) == (True, 0.0, 5_101)
    idle, half = spent._replace(used_milli=0), spent._replace(spent=budget // 2)
    assert idle.opens_at_ms is None and (half.is_paused, half.fill) == (False, 0.5)


@given(USES, st.integers(1, 10**6))
def test_the_account_does_not_depend_on_when_it_is_looked_at(
    uses: list[tuple[int, int]], step: int
) -> None:
    plain, looked = LossAccount(), LossAccount()
    now = 0
    for elapsed, milli in uses:
        for at in range(now, now + elapsed, max(step, elapsed // 5 + 1)):
            looked.settle(at, SHARE)
        now += elapsed
        for account in (plain, looked):
            account.use(now, milli, SHARE)
            account.charge(now, milli, elapsed, SHARE)
    assert (plain.spent, plain.used_milli) == (looked.spent, looked.used_milli)
