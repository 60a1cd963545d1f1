"""The least error of an estimate of a wait, if only the lengths of answers are unknown."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from itertools import count
from statistics import median

from benchmarks.parts.command import Json
from benchmarks.parts.throttle.waits import (
    LEAST_WAIT_S,
    SLOTS,
    BackloggedTenants,
    answer_tokens,
    quantiles,
)
from shared.contracts.endpoints import EndpointConfigured
from simulator.llm.live_endpoint import LiveEndpoint

FIRST, EVERY, LAST = 100, 60, 700
"""Requests that are looked at, by the number of their arrival."""
DRAWS = 16
"""Futures of one request, with other lengths of all answers that are not complete."""


def wait_ratio_limit(seeds: tuple[int, ...]) -> Json:
    """Return the quantiles of the best estimate to real wait, by the whole state of the model.

    The estimate is the median of the waits in futures that differ in lengths alone. Which of them
    is the real one is not known in advance, so that each is taken for it in turn.
    """
    ratios: list[float] = []
    for seed in seeds:
        for number in range(FIRST, LAST, EVERY):
            waits_s = waits_in_futures(seed, number)
            estimated_s = median(waits_s)
            ratios += [estimated_s / wait_s for wait_s in waits_s if wait_s > LEAST_WAIT_S]
    return {"requests": len(ratios), **quantiles(ratios)}


def waits_in_futures(seed: int, number: int) -> list[float]:
    """Return the waits of the request that arrives as the `number`-th, in several futures."""
    tenants = BackloggedTenants(seed)
    live = LiveEndpoint(EndpointConfigured(endpoint="m", partition=0), SLOTS, tenants.follow)
    live.run(tenants.first(), lambda: len(live.waits) >= number)
    request_id = list(live.waits)[number - 1]
    return [_wait_in_future(live, request_id, f"{seed} {number} {n}") for n in range(DRAWS)]


def _wait_in_future(live: LiveEndpoint, request_id: str, seed: str) -> float:
    future, chance = deepcopy(live), random.Random(seed)
    redraw(future, chance)
    wait = future.waits[request_id]
    future.serve(lambda: wait.waited_s >= 0)
    return wait.waited_s


def redraw(live: LiveEndpoint, chance: random.Random) -> None:
    """Give every answer that is not complete another length, as long as it is already at least."""
    for request_id, request in live.requests.items():
        generated = live.engine.made_tokens(request_id) if request_id in live.engine else 0
        drawn = (answer_tokens(chance) for _ in count())
        tokens = next(length for length in drawn if length > generated)
        live.requests[request_id] = replace(request, output_tokens=tokens)
    live.coming = [
        (at_s, order, replace(request, output_tokens=answer_tokens(chance)))
        for at_s, order, request in live.coming
    ]
    live.engine.set_lengths({key: live.requests[key].output_tokens for key in live.engine})
    tenants = live.follow.__self__  # type: ignore[attr-defined]
    tenants.reseed(chance)
