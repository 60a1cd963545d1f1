"""Policies of an engine that also retrains: none, in periods, always by halves, and MACE."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.throttle.core.retraining import (
    IterationCosts,
    Retraining,
    RetrainingLimits,
    RetrainingNeed,
    ServingLoad,
    after_window,
    must_evict,
    next_retraining,
)

WINDOW_S = 5.0
BURST_TOKENS = 256
"""Tokens per iteration of a retraining in a period: about 0.2 s."""


class RetrainingPolicy(Protocol):
    """Decides before each iteration; the shell reports what became of it."""

    def next(
        self, load: ServingLoad, needs: Sequence[RetrainingNeed], now_s: float
    ) -> Retraining | None:
        """Return what the next iteration retrains."""
        ...

    def may_evict(self, fits_beside: bool, fits_alone: bool) -> bool:
        """Return whether a retraining in progress leaves memory for a request."""
        ...

    def measured(self, modelled_s: float, measured_s: float, tokens: int) -> None:
        """Take note of an iteration, whose time was modelled without correction."""
        ...

    def ended(self, is_missed: bool, now_s: float) -> None:
        """Take note of a request, which met its deadlines or not."""
        ...


@dataclass(slots=True)
class ServeOnly:
    """Retrains nothing."""

    def next(
        self, load: ServingLoad, needs: Sequence[RetrainingNeed], now_s: float
    ) -> Retraining | None:
        return None

    def may_evict(self, fits_beside: bool, fits_alone: bool) -> bool:
        return False

    def measured(self, modelled_s: float, measured_s: float, tokens: int) -> None: ...

    def ended(self, is_missed: bool, now_s: float) -> None: ...


@dataclass(slots=True)
class Periodic(ServeOnly):
    """Updates all users every `period_s`, in bursts that no deadline holds up."""

    period_s: float = 60.0
    rounds: int = 0
    left: deque[str] = field(default_factory=deque)

    def next(
        self, load: ServingLoad, needs: Sequence[RetrainingNeed], now_s: float
    ) -> Retraining | None:
        if not self.left and now_s >= (self.rounds + 1) * self.period_s:
            self.rounds = int(now_s / self.period_s)
            self.left.extend(sorted(need.user for need in needs))
        by_user = {need.user: need for need in needs}
        if not self.left:
            return None
        need = by_user[self.left[0]]
        if need.batch_tokens <= BURST_TOKENS:
            self.left.popleft()
        return Retraining(need.user, min(BURST_TOKENS, need.batch_tokens))


@dataclass(slots=True)
class Continuous(ServeOnly):
    """Gives retraining as much time as serving, user after user."""

    costs: IterationCosts = field(default_factory=IterationCosts)

    def next(
        self, load: ServingLoad, needs: Sequence[RetrainingNeed], now_s: float
    ) -> Retraining | None:
        need = max(
            needs, key=lambda need: (need.in_progress, need.stale_s, need.user), default=None
        )
        if need is None:
            return None
        serving_s = self.costs.serving_s(load.running, load.held_tokens, load.prompt_tokens)
        tokens = self.costs.tokens_in(serving_s) if load.running else BURST_TOKENS
        return Retraining(need.user, min(max(1, tokens), need.batch_tokens))


@dataclass(slots=True)
class Mace:
    """The policy of `services.throttle.core.retraining`, with its state."""

    limits: RetrainingLimits = field(default_factory=RetrainingLimits)
    costs: IterationCosts = field(default_factory=IterationCosts)
    share: float = 1.0
    retrained_per_s: float = 500.0
    window_s: float = 0.0
    requests: int = 0
    missed: int = 0

    def next(
        self, load: ServingLoad, needs: Sequence[RetrainingNeed], now_s: float
    ) -> Retraining | None:
        if now_s - self.window_s >= WINDOW_S:
            self.share = after_window(self.share, self.requests, self.missed, self.limits)
            self.window_s, self.requests, self.missed = now_s, 0, 0
        return next_retraining(
            load, needs, self.limits, self.costs, self.share, self.retrained_per_s
        )

    def may_evict(self, fits_beside: bool, fits_alone: bool) -> bool:
        return must_evict(fits_beside, fits_alone)

    def measured(self, modelled_s: float, measured_s: float, tokens: int) -> None:
        """Follow the tokens per s of some 10 s, of all time."""
        self.costs = self.costs.corrected(modelled_s * self.costs.correction, measured_s)
        weight = min(1.0, measured_s / 10)
        self.retrained_per_s += weight * (tokens / measured_s - self.retrained_per_s)

    def ended(self, is_missed: bool, now_s: float) -> None:
        self.requests += 1
        self.missed += is_missed


PolicyMaker = Callable[[RetrainingLimits, float], RetrainingPolicy]
POLICIES: dict[str, PolicyMaker] = {
    "serve_only": lambda limits, period_s: ServeOnly(),
    "periodic": lambda limits, period_s: Periodic(period_s=period_s),
    "continuous": lambda limits, period_s: Continuous(),
    "mace": lambda limits, period_s: Mace(limits),
}
"""Policies by name, from limits and a period in s."""
