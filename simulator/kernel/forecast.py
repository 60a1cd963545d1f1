"""Expected remaining time of a job given its attained service; constant within a history bin."""

from __future__ import annotations

import math

from simulator.kernel import keys
from simulator.kernel.codes import LEARNED
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, ForecastRow, Sim


@compiled
def forecast_of(sim: Sim, j: int, attained_s: float) -> ForecastRow:
    """Return the job's forecast, computed anew when its service enters another bin."""
    forecast = sim.forecasts[j]
    if forecast.bin_number != 1 + keys.bin_of(attained_s):
        fill_forecast(sim.distributions[known_row(sim, j)], attained_s, forecast)
        if sim.rules.policy == LEARNED:
            take_logarithms(forecast)
    return forecast


@compiled
def left_s(sim: Sim, j: int, attained_s: float) -> float:
    """Return the job's expected rest alone, which costs less than the whole forecast."""
    forecast, number = sim.forecasts[j], 1 + keys.bin_of(attained_s)
    if forecast.left_number != number:
        forecast.left_number = number
        p = sim.distributions[known_row(sim, j)]
        forecast.left_s = keys.mean_left_s(p, attained_s)
    rest_s: float = forecast.left_s
    return rest_s


@compiled
def known_row(sim: Sim, j: int) -> int:
    """Return the row of the distribution that policies see: without history the prior's."""
    return j if sim.rules.by_history else len(sim.distributions) - 1


@compiled
def fill_forecast(p: Floats, attained_s: float, forecast: ForecastRow) -> None:
    """Compute the forecast of the distribution `p` [BINS], by the live functions themselves."""
    number = 1 + keys.bin_of(attained_s)
    left, gittins = keys.mean_left_and_gittins_s(p, attained_s)
    forecast.bin_number = number
    forecast.left_number = number
    forecast.left_s = left
    forecast.gittins_s = gittins


@compiled
def take_logarithms(forecast: ForecastRow) -> None:
    """Set the logarithms that are a network's features."""
    forecast.ln_gittins = math.log(forecast.gittins_s + 1.0)
    forecast.ln_left = math.log(forecast.left_s + 1.0)
    forecast.ln_attained = math.log(keys.bin_start_s(forecast.bin_number - 1) + 60.0)
