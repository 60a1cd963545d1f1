"""Expected remaining time of a job given its attained service; constant within a history bin."""

from __future__ import annotations

import math

from services.priority.core.history import BINS, VALUES
from simulator.kernel import keys
from simulator.kernel.codes import LEARNED
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, ForecastRow, Sim


@compiled
def forecast_of(sim: Sim, j: int, attained_s: float) -> ForecastRow:
    """Return the job's forecast, computed anew when its service enters another bin."""
    forecast, first = sim.forecasts[j], keys.bin_of(attained_s)
    if forecast.bin != first:
        fill_forecast(sim.distributions[j if sim.rules.has_distributions else 0], first, forecast)
        if sim.rules.policy == LEARNED:
            take_logarithms(forecast)
    return forecast


@compiled
def fill_forecast(p: Floats, first: int, forecast: ForecastRow) -> None:
    """Compute `history.mean_left_s` and `gittins_s` of the distribution `p` [BINS] at a bin's
    begin.

    Both add the same numbers in the same order as there; every probability in `p` is above 0.
    """
    begun = keys.level_s(first)
    mass = 0.0
    left = 0.0
    for b in range(first, BINS):
        mass += p[b]
        left += p[b] * (VALUES[b] - begun)
    best = 1e18
    ended = 0.0
    spent = 0.0
    for b in range(first, BINS):
        step = VALUES[b] - begun
        ended += p[b]
        spent += p[b] * step
        best = min(best, (spent + (mass - ended) * step) / ended)
    forecast.bin = first
    forecast.left_s = left / mass
    forecast.gittins_s = best


@compiled
def take_logarithms(forecast: ForecastRow) -> None:
    """Set the logarithms that are a network's features."""
    forecast.ln_gittins = math.log(forecast.gittins_s + 1.0)
    forecast.ln_left = math.log(forecast.left_s + 1.0)
    forecast.ln_attained = math.log(keys.level_s(forecast.bin) + 60.0)
