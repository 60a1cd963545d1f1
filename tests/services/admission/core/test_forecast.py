from __future__ import annotations

from services.admission.core.forecast import forecast_spot_gpus
from shared.testing.decider import given
from tests.services.admission.core.cases import ADMISSION, POOL


def test_the_static_forecast_is_the_bound_of_the_pool() -> None:
    pool = POOL.model_copy(update={"spot_gpus": 6.0})
    assert forecast_spot_gpus(given(ADMISSION, pool)) == 6.0


def test_a_pool_without_a_bound_and_a_lane_without_a_pool_have_none() -> None:
    assert forecast_spot_gpus(given(ADMISSION, POOL)) is None
    assert forecast_spot_gpus(given(ADMISSION)) is None
