"""Adapters and their load, and requests that are drawn from it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class AdapterLoad:
    """One LoRA adapter; tokens are means per request."""

    adapter: str
    rank: int
    rate_per_s: float
    prompt_tokens: float
    output_tokens: float
    cv: float = 1.0
    """Coefficient of variation of the times between requests: 1 is a Poisson process."""

    @property
    def output_per_s(self) -> float:
        return self.rate_per_s * self.output_tokens

    def scaled(self, factor: float) -> AdapterLoad:
        return replace(self, rate_per_s=self.rate_per_s * factor)


@dataclass(slots=True)
class AdapterRequest:
    """A request of the adapter with this place in the loads of an engine."""

    number: int
    place: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    made_tokens: int = 0
    start_step: int = 0
    start_s: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens


def draw_requests(loads: Sequence[AdapterLoad], span_s: float, seed: int) -> list[AdapterRequest]:
    """Draw the requests of a span by arrival: gamma arrivals, exponential lengths.

    An adapter's requests depend on its name and load alone, not on the engine that it is on.
    """
    drawn = sorted(
        (at_s, place, prompt, output)
        for place, load in enumerate(loads)
        for at_s, prompt, output in _requests_of(load, span_s, seed)
    )
    return [AdapterRequest(number, row[1], row[0], *row[2:]) for number, row in enumerate(drawn)]


def _requests_of(load: AdapterLoad, span_s: float, seed: int) -> list[tuple[float, int, int]]:
    draw = random.Random(f"{seed} {load.adapter}")
    shape = load.cv**-2
    scale = 1 / (load.rate_per_s * shape)
    # The time to the first arrival is a part of an interval that has begun before.
    at_s = draw.random() * draw.gammavariate(shape + 1, scale)
    requests: list[tuple[float, int, int]] = []
    while at_s < span_s:
        prompt, output = (_length(draw, n) for n in (load.prompt_tokens, load.output_tokens))
        requests.append((at_s, prompt, output))
        at_s += draw.gammavariate(shape, scale)
    return requests


def _length(draw: random.Random, mean: float) -> int:
    return max(1, math.ceil(draw.expovariate(1 / mean)))
