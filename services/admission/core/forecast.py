"""How many GPUs of the pool spot jobs may have: the seam for a forecast of what others leave."""

from __future__ import annotations

from collections.abc import Callable

from services.admission.core.state import Pool

Forecast = Callable[[Pool], float | None]
"""Reads the state alone; a learned forecast comes into it through an event. None: no bound."""


def static(state: Pool) -> float | None:
    """What the pool's settings say."""
    return state.pool.spot_gpus if state.pool else None


spot_gpus: Forecast = static
