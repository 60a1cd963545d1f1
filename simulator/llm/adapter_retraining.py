"""Adapters that an emulated engine retrains beside serving, within the share that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from services.throttle.core.retraining import (
    IterationCosts,
    RetrainingLimits,
    RetrainingNeed,
    ServingLoad,
    must_evict,
    next_retraining,
)

IterationNeeds: TypeAlias = ServingLoad
"""The needs of serving in the next iteration."""

BATCH_TOKENS = 512
"""Tokens of the batch of one update."""
GROWTH_PER_S = 0.0025
"""By how much the gap of an adapter grows: the drift of its user is made up."""
KEPT = 0.6
"""Part of a gap that an update leaves."""
RATE_S = 10.0
"""Time over which the tokens per s that were retrained are averaged."""


@dataclass(slots=True)
class RetrainedAdapter:
    """One adapter; times are s of the engine's model."""

    updated_s: float
    gap: float = 0.0
    version: int = 0

    def gap_at(self, now_s: float) -> float:
        return min(1.0, self.gap + GROWTH_PER_S * (now_s - self.updated_s))

    def update(self, now_s: float) -> None:
        self.gap = KEPT * self.gap_at(now_s)
        self.updated_s = now_s
        self.version += 1


@dataclass(slots=True)
class AdapterRetraining:
    """The retraining of one engine, by iterations; nothing before it has a share."""

    names: Sequence[str]
    share: float = 0.0
    limits: RetrainingLimits = field(default_factory=RetrainingLimits)
    costs: IterationCosts = field(default_factory=IterationCosts)
    adapters: dict[str, RetrainedAdapter] = field(default_factory=dict)
    in_progress: str = ""
    left_tokens: int = 0
    retrained_tokens: int = 0
    evictions: int = 0
    _per_s: float = 500.0

    def set_share(
        self, share: float, ttft_s: float, tpot_s: float, freshness_s: float, now_s: float
    ) -> None:
        """Take the share of the free time and the deadlines; the ages count from the first."""
        for name in self.names:
            self.adapters.setdefault(name, RetrainedAdapter(now_s))
        self.share, self.limits = share, RetrainingLimits(ttft_s, tpot_s, freshness_s)
        if not share:
            self.drop()

    def next_tokens(self, load: IterationNeeds, now_s: float) -> int:
        """Return the tokens that the next iteration trains on."""
        if not self.share:
            return 0
        chosen = next_retraining(
            load, self._needs(now_s), self.limits, self.costs, self.share, self._per_s
        )
        if chosen is None:
            return 0
        if chosen.user != self.in_progress:
            self.in_progress, self.left_tokens = chosen.user, BATCH_TOKENS
        return chosen.tokens

    def trained(self, tokens: int, seconds: float, now_s: float) -> None:
        """Take note of an iteration; a batch that is complete replaces its adapter."""
        weight = min(1.0, seconds / RATE_S)
        self._per_s += weight * (tokens / seconds - self._per_s)
        self.retrained_tokens += tokens
        self.left_tokens -= tokens
        if self.in_progress and self.left_tokens <= 0:
            self.adapters[self.in_progress].update(now_s)
            self.drop()

    def drop(self) -> None:
        """Forget the batch in progress."""
        self.in_progress, self.left_tokens = "", 0

    def make_room(self, fits_alone: bool) -> None:
        """Give the memory of the batch in progress to a request that fits only without it."""
        if must_evict(False, fits_alone):
            self.drop()
            self.evictions += 1

    def document(self, now_s: float, speed: float = 1.0) -> dict[str, object]:
        """Return what `GET /retraining` answers; ages are in wall s."""
        return {
            "share": self.share,
            "retrained_tokens": self.retrained_tokens,
            "evictions": self.evictions,
            "adapters": {
                name: {
                    "age_s": round((now_s - adapter.updated_s) / speed, 3),
                    "gap": round(adapter.gap_at(now_s), 6),
                    "version": adapter.version,
                }
                for name, adapter in self.adapters.items()
            },
        }

    def _needs(self, now_s: float) -> Sequence[RetrainingNeed]:
        return [
            RetrainingNeed(
                name,
                adapter.gap_at(now_s),
                now_s - adapter.updated_s,
                self.left_tokens if name == self.in_progress else BATCH_TOKENS,
                in_progress=name == self.in_progress,
            )
            for name, adapter in self.adapters.items()
        ]
