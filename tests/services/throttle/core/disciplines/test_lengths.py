from __future__ import annotations

import pytest

from services.throttle.core.disciplines.lengths import (
    PRIOR_ANSWERS,
    Forecast,
    MovingMean,
    NoForecast,
    ShrunkMean,
)
from services.throttle.core.disciplines.request import ServedRequest
from tests.services.throttle.core.disciplines.serving import a_request


def learn(forecast: Forecast, *lengths: int, tenant: str = "a") -> None:
    for length in lengths:
        forecast.learn(answer(tenant, length))


def answer(tenant: str, length: int) -> ServedRequest:
    request = a_request(tenant=tenant)
    request.made_tokens = length
    return request


def test_without_a_forecast_nothing_is_expected() -> None:
    forecast = NoForecast()
    learn(forecast, 100)
    assert forecast.of(a_request()) == 0


def test_the_moving_mean_is_that_of_the_artifact() -> None:
    """`p <- (4 p + len) / 5`, beginning with the first length."""
    forecast = MovingMean()
    assert forecast.of(a_request()) == 0
    learn(forecast, 100)
    assert forecast.of(a_request()) == 100
    learn(forecast, 50)
    assert forecast.of(a_request()) == 90
    assert forecast.of(a_request(tenant="b")) == 0


def test_an_unknown_tenant_is_expected_to_be_as_all_are() -> None:
    forecast = ShrunkMean()
    assert forecast.of(a_request()) == 0
    learn(forecast, 100, 100)
    assert forecast.of(a_request(tenant="b")) == pytest.approx(100)


def test_a_long_answer_moves_the_forecast_of_its_tenant_by_a_part_only() -> None:
    forecast = ShrunkMean()
    learn(forecast, *[100] * 50, tenant="b")
    learn(forecast, 1000)
    assert 100 < forecast.of(a_request()) < 350
    learn(forecast, *[1000] * 50)
    of_all = forecast.of_all.mean
    expected = (1000 * 5 + PRIOR_ANSWERS * of_all) / (5 + PRIOR_ANSWERS)
    assert forecast.of(a_request()) == pytest.approx(expected, rel=0.01)


def test_applications_of_a_tenant_have_forecasts_of_their_own() -> None:
    forecast = ShrunkMean()
    learn(forecast, *[100] * 20)
    other = answer("a", 10)
    other.application = "short"
    for _ in range(20):
        forecast.learn(other)
    assert forecast.of(other) < forecast.of(a_request())
