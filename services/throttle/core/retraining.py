"""Chooses the part of an engine's next iteration that goes to retraining, and its user (MACE).

The engine serves requests and retrains an adapter per user on the same GPU. What serving needs of
an iteration is taken first; of the time that is left until the next token is due, and of the memory
that is left, the user gets a part whose update is worth most per cost. After Li et al., "MACE"
(arXiv 2510.03283); the paper gives no formulas, these are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

INCREASE, DECREASE = 0.05, 0.5
"""Of the share of free time: added where deadlines were met, the factor where they were not."""
LEAST_SHARE = 0.02
CORRECTION_WEIGHT = 0.05
"""Weight of the latest iteration in the mean of how much longer iterations take than modelled."""
CAUTION = 2.0
"""A user is urgent if its bound is due in less than so many times what the updates need."""


@dataclass(frozen=True, slots=True)
class IterationCosts:
    """Seconds of an iteration.

    Serving is Llama-2-7b on an A10G, as in `simulator.llm.batching`. A retrained token costs two
    prompt tokens: forward, and backward through activations, as the base model is frozen; the
    backward pass reads the weights of the model once more.
    """

    step_s: float = 0.0285
    held_token_s: float = 1e-6
    prompt_token_s: float = 3.6e-4
    retraining_s: float = 0.0285
    retrained_token_s: float = 7.2e-4
    correction: float = 1.0
    """Measured time of iterations, of the modelled one."""

    def serving_s(self, running: int, held_tokens: int, prompt_tokens: int) -> float:
        """Return the time of an iteration without retraining; 0 without requests."""
        if not running:
            return 0.0
        seconds = self.step_s + self.held_token_s * held_tokens
        return self.correction * (seconds + self.prompt_token_s * prompt_tokens)

    def retraining_of(self, tokens: int) -> float:
        """Return the time that the tokens add to an iteration."""
        seconds = self.retraining_s + self.retrained_token_s * tokens if tokens else 0.0
        return self.correction * seconds

    def tokens_in(self, seconds: float) -> int:
        """Return how many tokens can be retrained in the time."""
        left = seconds / self.correction - self.retraining_s
        return max(0, int(left / self.retrained_token_s))

    def corrected(self, modelled_s: float, measured_s: float) -> IterationCosts:
        """Return the costs after an iteration that took `measured_s`."""
        ratio = self.correction * measured_s / modelled_s
        correction = self.correction + CORRECTION_WEIGHT * (ratio - self.correction)
        return replace(self, correction=correction)


@dataclass(frozen=True, slots=True)
class RetrainingLimits:
    """Deadlines of requests, and the bound on the age of a user's adapter."""

    ttft_s: float = 2.0
    tpot_s: float = 0.1
    freshness_s: float = 60.0
    """A user's adapter is updated at least this often, if deadlines leave the time."""
    least_gap: float = 0.02
    """Alignment gap below which an update is worth nothing, before its bound is due."""
    reserve: float = 0.25
    """Part of the time of a deadline that is kept free."""
    most_violations: float = 0.01
    """Part of the requests of a window that may miss a deadline."""
    state_tokens: int = 800
    """Memory of a retraining in progress, in tokens of the KV cache."""
    reserve_tokens: int = 200
    """Tokens of KV cache that stay free beside it."""

    @property
    def aim_s(self) -> float:
        """Time per token at which retraining aims: a request that has had it has some to spare."""
        return self.tpot_s * (1 - self.reserve)

    def __post_init__(self) -> None:
        for name in ("ttft_s", "tpot_s", "freshness_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)}; a number above 0 is allowed")
        if not 0 <= self.reserve < 1:
            raise ValueError(f"reserve: {self.reserve}; a number from 0 to below 1 is allowed")


@dataclass(frozen=True, slots=True)
class ServingLoad:
    """The needs of serving in the next iteration."""

    running: int = 0
    held_tokens: int = 0
    prompt_tokens: int = 0
    """Prompt tokens that the iteration reads."""
    waiting: int = 0
    free_tokens: int = 10**9
    """Tokens of the KV cache that no request holds or may still need."""
    due_s: float = math.inf
    """Time until the next token of a running request is due by `aim_s`, the least of all."""
    first_due_s: float = math.inf
    """Time until the first token of a request is due, the least of all that have none."""


@dataclass(frozen=True, slots=True)
class RetrainingNeed:
    """One user's adapter. The gap is 0 for an aligned one, 1 for the worst."""

    user: str
    gap: float
    stale_s: float
    """Time since its last update."""
    batch_tokens: int
    """Tokens that its next update still needs."""
    weight: float = 1.0
    in_progress: bool = False
    """Whether its gradients are in memory; they are lost if another user is chosen."""


@dataclass(frozen=True, slots=True)
class Retraining:
    """Tokens of one user's batch that the next iteration trains on."""

    user: str
    tokens: int


def must_evict(fits_beside: bool, fits_alone: bool) -> bool:
    """Return whether the state of a retraining in progress leaves memory for a request.

    It does where the request fits the KV cache without it alone; requests are never evicted.
    """
    return fits_alone and not fits_beside


def next_retraining(
    load: ServingLoad,
    needs: Sequence[RetrainingNeed],
    limits: RetrainingLimits,
    costs: IterationCosts,
    share: float,
    retrained_per_s: float,
) -> Retraining | None:
    """Return what the next iteration retrains; None if nothing.

    `share` is the part of the free time that retraining may take (`after_window`), of which an
    urgent user takes all; the others get none while requests wait for a place in the batch.
    `retrained_per_s` are the tokens per s that were retrained of late.
    """
    waiting = [need for need in needs if need.batch_tokens > 0]
    in_progress = next((need for need in waiting if need.in_progress), None)
    has_room = in_progress or load.free_tokens >= limits.state_tokens + limits.reserve_tokens
    if not waiting or not has_room:
        return None
    urgent = urgent_users(waiting, limits, retrained_per_s)
    need = in_progress or (urgent[0] if urgent else most_valuable(waiting, limits))
    if need is None:
        return None
    if urgent:
        share = 1.0
    elif load.waiting:
        return None
    tokens = costs.tokens_in(share * free_time_s(load, limits, costs))
    return Retraining(need.user, min(tokens, need.batch_tokens)) if tokens else None


def free_time_s(load: ServingLoad, limits: RetrainingLimits, costs: IterationCosts) -> float:
    """Return the time of the next iteration that no deadline needs.

    Without requests it is what a request that arrives may wait for.
    """
    first_due_s = load.first_due_s - limits.reserve * limits.ttft_s
    due_s = min(load.due_s, first_due_s, 2 * limits.aim_s)
    serving_s = costs.serving_s(load.running, load.held_tokens, load.prompt_tokens)
    return max(0.0, due_s - serving_s)


def urgent_users(
    needs: Sequence[RetrainingNeed], limits: RetrainingLimits, retrained_per_s: float
) -> list[RetrainingNeed]:
    """Return the users, those due first, that miss their bound unless they are next."""
    work, last = 0, 0
    by_due = sorted(needs, key=lambda need: (-need.stale_s, need.user))
    for place, need in enumerate(by_due, 1):
        work += need.batch_tokens
        needed_s = CAUTION * work / max(retrained_per_s, 1e-9)
        if limits.freshness_s - need.stale_s <= needed_s and need.stale_s > limits.freshness_s / 4:
            last = place
    return by_due[:last]


def most_valuable(
    needs: Sequence[RetrainingNeed], limits: RetrainingLimits
) -> RetrainingNeed | None:
    """Return the user whose update is worth most per token; None if all gaps are small."""
    worth = [need for need in needs if need.gap >= limits.least_gap]
    return max(worth, key=lambda need: (_density(need, limits), need.user), default=None)


def _density(need: RetrainingNeed, limits: RetrainingLimits) -> float:
    freshness = 1 + need.stale_s / limits.freshness_s
    return need.weight * need.gap * freshness / need.batch_tokens


def after_window(share: float, requests: int, missed: int, limits: RetrainingLimits) -> float:
    """Return the share after a window in which so many requests missed a deadline."""
    if requests and missed > limits.most_violations * requests:
        return max(LEAST_SHARE, share * DECREASE)
    return min(1.0, share + INCREASE)
