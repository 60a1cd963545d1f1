"""Numbers of a pool's settings are computed once per settings, and anew for others."""

from __future__ import annotations

from services.placement.core.pool import settings
from services.placement.core.pool.settings import KEPT_MOST, per_settings, times_of
from shared.contracts.pools import PoolConfigured


def pool(**fields: object) -> PoolConfigured:
    return PoolConfigured.model_validate({"pool": "p", "partition": 0} | fields)


def test_times_are_wall_ms_and_shares_whole_numbers() -> None:
    times = times_of(
        pool(
            time_scale=60.0,
            loss_share=0.05,
            loss_window_s=3600.0,
            min_residency_s=90.0,
            start_timeout_s=2.5,
            assumed_restart_s=120.0,
        )
    )
    assert times == settings.PoolTimes(500, 60_000, 1500, 2500, 2000)


def test_each_settings_object_is_computed_once_and_few_are_kept() -> None:
    computed = []

    @per_settings
    def time_scale(of: PoolConfigured) -> float:
        computed.append(of)
        return of.time_scale

    first, equal, other = pool(), pool(), pool(time_scale=2.0)
    assert [time_scale(each) for each in (first, first, equal, other, first)] == [
        *[1.0] * 3,
        2.0,
        1.0,
    ]
    assert len(computed) == 3
    for _ in range(KEPT_MOST):
        time_scale(pool())
    assert time_scale(first) == 1.0
    assert len(computed) == 3 + KEPT_MOST + 1
