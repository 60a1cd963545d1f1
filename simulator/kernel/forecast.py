"""What history lets expect of a job that has attained some service: the same within a bin."""

from __future__ import annotations

import math

from services.priority.core.history import BINS, VALUES
from simulator.kernel import keys
from simulator.kernel.codes import LEARNED
from simulator.kernel.compiled import compiled
from simulator.kernel.state import Floats, Outlook, Sim


@compiled
def of(sim: Sim, j: int, attained_s: float) -> Outlook:
    """Looked at anew in each bin alone."""
    found, first = sim.outlooks[j], keys.bin_of(attained_s)
    if found.bin != first:
        look_ahead(sim.chances[j if sim.rules.knows else 0], first, found)
        if sim.rules.policy == LEARNED:
            take_logarithms(found)
    return found


@compiled
def look_ahead(p: Floats, first: int, found: Outlook) -> None:
    """`history.mean_left_s` and `gittins_s` for the distribution `p` [BINS] at the begin of a bin.

    They add the same numbers in the same order; every chance in `p` is above 0.
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
    found.bin = first
    found.left_s = left / mass
    found.gittins_s = best


@compiled
def take_logarithms(found: Outlook) -> None:
    """As a network sees it."""
    found.ln_gittins = math.log(found.gittins_s + 1.0)
    found.ln_left = math.log(found.left_s + 1.0)
    found.ln_attained = math.log(keys.level_s(found.bin) + 60.0)
