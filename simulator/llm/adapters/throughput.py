"""Estimates fast, without simulating requests, if an engine can serve a set of adapters.

At a step of `t` seconds a load keeps `output tokens per s x t` requests running (Little), of
`sum(1 - exp(-rate x output tokens x t))` adapters. The load is served if a step with so many
takes at most `t`, for one of the times that are tried. All that is needed are sums over adapters,
so that a set with one more costs as little as an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.llm.adapters.engines import BLOCK_TOKENS, SLOT_CHOICES, AdapterEngine
from simulator.llm.adapters.loads import AdapterLoad

Floats = NDArray[np.float64]
STEP_TIMES: Floats = np.geomspace(0.016, 0.6, 150)
"""Times of a step that are tried, s: 2.5 % apart, by which a capacity is at most too low."""
DEVIATIONS = 3.0
"""Standard deviations above the mean for which slots and the KV cache have room."""
ERROR_BOUNDS = (-0.1, 0.25)
"""The twin serves between 10 % less and 25 % more than the capacity; the benchmark checks it."""


def _zeros() -> Floats:
    return np.zeros_like(STEP_TIMES)


@dataclass(slots=True)
class LoadSums:
    """Sums over the adapters of an engine, some for each time of a step."""

    rate_per_s: float = 0.0
    output_per_s: float = 0.0
    prompt_per_s: float = 0.0
    held: float = 0.0
    """Tokens that running requests hold, weighted by their share of the batch."""
    running: Floats = field(default_factory=_zeros)
    """Mean number of adapters with a running request."""
    variance: Floats = field(default_factory=_zeros)
    starts: Floats = field(default_factory=_zeros)
    """How often per s an adapter begins to run."""
    max_rank: int = 8
    adapters: int = 0

    def plus(self, load: AdapterLoad) -> LoadSums:
        """Return the sums with one adapter more."""
        idle = np.exp(-load.output_per_s * STEP_TIMES)
        held = load.prompt_tokens + load.output_tokens + BLOCK_TOKENS / 2
        return LoadSums(
            self.rate_per_s + load.rate_per_s,
            self.output_per_s + load.output_per_s,
            self.prompt_per_s + load.rate_per_s * (load.prompt_tokens + 1),
            self.held + load.output_per_s * held,
            self.running + 1 - idle,
            self.variance + idle * (1 - idle),
            self.starts + load.rate_per_s * idle,
            max(self.max_rank, load.rank),
            self.adapters + 1,
        )


def sums_of(loads: Sequence[AdapterLoad], factor: float = 1.0) -> LoadSums:
    """Return the sums of adapters with their rates times a factor."""
    rates = factor * np.array([load.rate_per_s for load in loads])
    prompts, outputs = (
        np.array([getattr(load, name) for load in loads])
        for name in ("prompt_tokens", "output_tokens")
    )
    idle = np.exp(-np.outer(rates * outputs, STEP_TIMES))
    return LoadSums(
        float(rates.sum()),
        float(rates @ outputs),
        float(rates @ (prompts + 1)),
        float((rates * outputs) @ (prompts + outputs + BLOCK_TOKENS / 2)),
        (1 - idle).sum(axis=0),
        (idle * (1 - idle)).sum(axis=0),
        rates @ idle,
        max(load.rank for load in loads),
        len(loads),
    )


def feasible_slots(engine: AdapterEngine, sums: LoadSums) -> list[int]:
    """Return the numbers of slots with which the engine serves the load, fewest first."""
    batch = sums.output_per_s * STEP_TIMES
    read = batch + sums.prompt_per_s * STEP_TIMES
    fits = (read <= engine.step_tokens) & (batch <= engine.batch_requests)
    needed = sums.running + DEVIATIONS * np.sqrt(sums.variance)
    held = sums.held / max(sums.output_per_s, 1e-12) * (batch + DEVIATIONS * np.sqrt(batch))
    slowdown = (engine.adapter_percent * sums.running + engine.lora_percent) / 100
    step_s = (engine.request_ms * batch + engine.step_ms) * slowdown / 1000
    slots = np.array([n for n in SLOT_CHOICES if engine.starts(n, sums.max_rank)])
    caches = np.array([engine.cache_tokens(int(n), sums.max_rank) for n in slots])
    slowest_load_s = max(engine.load_ms[sums.max_rank].values()) / 1000
    others = np.maximum(sums.adapters - sums.running, 1e-9)
    missing = np.clip(1 - (slots[:, None] - sums.running) / others, 0.0, 1.0)
    is_served = (
        fits
        & (np.minimum(needed, sums.adapters) <= slots[:, None])
        & (held <= caches[:, None])
        & (step_s <= STEP_TIMES * (1 - sums.starts * missing * slowest_load_s))
    )
    return [int(n) for n in slots[is_served.any(axis=1)]]


@dataclass(frozen=True, slots=True)
class Capacity:
    """The slots with which an engine can serve most, and by how much more than its load."""

    slots: int
    factor: float
    """The rates may all be this many times what they are."""

    @property
    def load_ratio(self) -> float:
        return 1 / self.factor if self.factor else float("inf")


def capacity_of(
    engine: AdapterEngine, loads: Sequence[AdapterLoad], digits: int = 12, most: float = 1e6
) -> Capacity:
    """Search the largest factor of the rates that is served.

    Of slots that serve as much, those that hold all adapters, else the most: each more saves
    loads of adapters.
    """
    low, high = 0.0, 1.0
    slots = feasible_slots(engine, sums_of(loads, 1e-6))
    if not slots:
        return Capacity(0, 0.0)
    while high < most and (more := feasible_slots(engine, sums_of(loads, high))):
        low, high, slots = high, 2 * high, more
    for _ in range(digits):
        middle = (low + high) / 2
        if more := feasible_slots(engine, sums_of(loads, middle)):
            low, slots = middle, more
        else:
            high = middle
    enough = [n for n in slots if n >= len(loads)]
    return Capacity(enough[0] if enough else slots[-1], low)
