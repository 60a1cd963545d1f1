"""The GPUs of the pool that spot jobs may use: the seam for a forecast of idle capacity."""

from __future__ import annotations

from collections.abc import Callable

from services.admission.core.state import AdmissionState

Forecast = Callable[[AdmissionState], float | None]
"""Reads the state alone; a learned forecast enters the state by an event. None: no bound."""


def static_forecast(state: AdmissionState) -> float | None:
    """Return the bound of the pool's settings, in GPUs."""
    return state.pool.spot_gpus if state.pool else None


forecast_spot_gpus: Forecast = static_forecast
