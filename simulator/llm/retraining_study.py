"""Costs of retraining for the requests of an engine, and its gains for the adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.throttle.core.retraining import RetrainingLimits
from simulator.llm.batching import EngineLimits
from simulator.llm.colocated import Colocated
from simulator.llm.drift import draw_drift
from simulator.llm.measures import percentile
from simulator.llm.requests import TraceRequest
from simulator.llm.retraining import POLICIES


@dataclass(frozen=True, slots=True)
class RetrainingMeasures:
    """Times in s; the gap is 0 for aligned adapters."""

    ttft_p50_s: float
    ttft_p99_s: float
    tpot_p99_s: float
    attainment: float
    """Requests that met both deadlines, of all."""
    mean_gap: float
    worst_stale_s: float
    """The longest time that a user's adapter was not updated."""
    updates: int
    evictions: int
    busy_ratio: float
    """Time in which the GPU served or trained, of all."""


@dataclass(frozen=True, slots=True)
class RetrainingStudy:
    """The same requests and drift for each policy; every tenant has an adapter."""

    requests: Sequence[TraceRequest]
    limits: RetrainingLimits = RetrainingLimits()
    engine_limits: EngineLimits = EngineLimits()
    growth_per_s: float = 0.005
    """How fast gaps grow while topics drift, on average."""
    seed: int = 0

    @property
    def span_s(self) -> float:
        return max(request.arrival_s for request in self.requests)

    def run(self, policy: str, period_s: float = 60.0) -> RetrainingMeasures:
        """Serve the requests under a policy of `POLICIES`."""
        users = {
            user: draw_drift(user, self.span_s, self.growth_per_s, self.seed)
            for user in sorted({request.tenant for request in self.requests})
        }
        chosen = POLICIES[policy](self.limits, period_s)
        engine = Colocated(chosen, users, self.limits, self.engine_limits)
        outcomes = engine.run(self.requests, self.span_s)
        missed = sum(outcome.misses(self.limits) for outcome in outcomes)
        area = sum(drift.area for drift in users.values())
        ttfts = [outcome.ttft_s for outcome in outcomes]
        return RetrainingMeasures(
            ttft_p50_s=percentile(ttfts, 50),
            ttft_p99_s=percentile(ttfts, 99),
            tpot_p99_s=round(percentile([1000 * o.tpot_s for o in outcomes], 99) / 1000, 4),
            attainment=round(1 - missed / len(outcomes), 4),
            mean_gap=round(area / len(users) / self.span_s, 4),
            worst_stale_s=round(max(drift.worst_stale_s for drift in users.values()), 1),
            updates=sum(drift.updates for drift in users.values()),
            evictions=engine.evictions,
            busy_ratio=round(engine.busy_s / engine.now_s, 4),
        )
