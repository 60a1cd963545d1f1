"""Estimated waits of backlogged tenants, against those that follow."""

from __future__ import annotations

import random
from dataclasses import replace

from benchmarks.parts.command import Json
from shared.contracts.endpoints import EndpointConfigured
from simulator.llm.live_endpoint import LiveEndpoint
from simulator.llm.requests import TraceRequest

SLOTS = 4
TENANTS = 2
OPEN_REQUESTS = 8
"""Requests that each tenant has open at any time, so that both always wait."""
REQUESTS = 400
THINK_S, LEAST_THINK_S = 0.5, 0.05
LEAST_WAIT_S = 0.5
"""Shorter waits have no ratio worth a number."""


class BackloggedTenants:
    """Tenants that send a request whenever one has ended.

    Prompts have 20 to 400 tokens, answers are log-normal with 67 tokens in the median.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._sent = 0

    def first(self) -> list[TraceRequest]:
        tenants = [f"tenant-{number}" for number in range(TENANTS)]
        return [self._request(tenant, 0.0) for tenant in tenants for _ in range(OPEN_REQUESTS)]

    def follow(self, tenant: str, at_s: float) -> TraceRequest | None:
        return self._request(tenant, at_s) if self._sent < REQUESTS * TENANTS else None

    def reseed(self, chance: random.Random) -> None:
        """Draw what follows by another chance."""
        self._chance = chance

    def _request(self, tenant: str, at_s: float) -> TraceRequest:
        self._sent += 1
        return TraceRequest(
            f"r{self._sent}",
            tenant,
            at_s + self._chance.uniform(0, THINK_S),
            self._chance.randint(20, 400),
            answer_tokens(self._chance),
        )


class TwoApplications(BackloggedTenants):
    """Of each tenant one application has answers three times as long, another a third of them."""

    FACTORS = {"chat": 3.0, "labels": 1 / 3}

    def _request(self, tenant: str, at_s: float) -> TraceRequest:
        request = super()._request(tenant, at_s)
        application = self._chance.choice(sorted(self.FACTORS))
        tokens = max(1, int(self.FACTORS[application] * request.output_tokens))
        return replace(request, application=application, output_tokens=tokens)


class UnequalTenants(BackloggedTenants):
    """One tenant with many open requests and one with few; limits are the lengths of answers.

    The load of `berth bench engine`, whose model of random weights always reaches its limit.
    """

    OPEN = {"many": 24, "few": 8}

    def first(self) -> list[TraceRequest]:
        return [self._request(name, 0.0) for name, count in self.OPEN.items() for _ in range(count)]

    def _request(self, tenant: str, at_s: float) -> TraceRequest:
        self._sent += 1
        at_s += self._chance.uniform(0, LEAST_THINK_S)
        prompt_tokens, answer = self._chance.randint(10, 120), self._chance.lognormvariate(5.0, 0.6)
        return TraceRequest(
            f"r{self._sent}", tenant, at_s, prompt_tokens, min(max(int(answer), 20), 600)
        )


def answer_tokens(chance: random.Random) -> int:
    """Draw the length of an answer."""
    return max(1, int(chance.lognormvariate(4.2, 0.7)))


def wait_ratio(seeds: tuple[int, ...], load: type[BackloggedTenants] = BackloggedTenants) -> Json:
    """Return the quantiles of estimated to real wait over all seeds, of the live decider."""
    ratios: list[float] = []
    for seed in seeds:
        settings = EndpointConfigured(endpoint="m", partition=0)
        tenants = load(seed)
        waits = LiveEndpoint(settings, SLOTS, tenants.follow).run(tenants.first())
        ratios += [
            wait.estimated_s / wait.waited_s for wait in waits if wait.waited_s > LEAST_WAIT_S
        ]
    return {"requests": len(ratios), **quantiles(ratios)}


def wait_ratio_of_known_lengths(seeds: tuple[int, ...]) -> Json:
    """Return the same for `UnequalTenants`, whose limits are the lengths of their answers."""
    ratios: list[float] = []
    for seed in seeds:
        settings = EndpointConfigured(
            endpoint="m", partition=0, queue_limit=1000, queue_timeout_s=86_400
        )
        tenants = UnequalTenants(seed)
        live = LiveEndpoint(settings, SLOTS, tenants.follow, limits_are_lengths=True)
        ratios += [
            wait.estimated_s / wait.waited_s
            for wait in live.run(tenants.first())
            if wait.waited_s > LEAST_WAIT_S
        ]
    return {"requests": len(ratios), **quantiles(ratios)}


def quantiles(ratios: list[float]) -> Json:
    """Return p10, p50 and p90."""
    ratios = sorted(ratios)
    return {f"p{part}": round(ratios[len(ratios) * part // 100], 3) for part in (10, 50, 90)}
