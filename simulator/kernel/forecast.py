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
    if forecast.bin != keys.bin_of(attained_s):
        fill_forecast(sim.distributions[known_row(sim, j)], attained_s, forecast)
        if sim.rules.policy == LEARNED:
            take_logarithms(forecast)
    return forecast


@compiled
def known_row(sim: Sim, j: int) -> int:
    """Return the row of the distribution that policies see: without history the prior's."""
    return j if sim.rules.by_history else len(sim.distributions) - 1


@compiled
def fill_forecast(p: Floats, attained_s: float, forecast: ForecastRow) -> None:
    """Compute the forecast of the distribution `p` [BINS], by the live functions themselves."""
    forecast.bin = keys.bin_of(attained_s)
    forecast.left_s = keys.mean_left_s(p, attained_s)
    forecast.gittins_s = keys.gittins_s(p, attained_s)


@compiled
def take_logarithms(forecast: ForecastRow) -> None:
    """Set the logarithms that are a network's features."""
    forecast.ln_gittins = math.log(forecast.gittins_s + 1.0)
    forecast.ln_left = math.log(forecast.left_s + 1.0)
    forecast.ln_attained = math.log(keys.bin_start_s(forecast.bin) + 60.0)
