"""A batching engine that shares its GPU with the retraining of its users' adapters.

Every iteration makes a token for each running request and, if the policy says so, trains on some
tokens of one user's batch; a batch that is complete replaces the user's adapter between iterations.
A request keeps the version of the adapter with which it was started.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from services.throttle.core.retraining import (
    IterationCosts,
    Retraining,
    RetrainingLimits,
    RetrainingNeed,
    ServingLoad,
)
from simulator.llm.batching import BatchingEngine, EngineLimits
from simulator.llm.drift import UserDrift
from simulator.llm.requests import TraceRequest
from simulator.llm.retraining import RetrainingPolicy

BATCH_TOKENS = 512
"""Tokens of the batch of one update."""


@dataclass(slots=True)
class ColocatedOutcome:
    """One request: times in s of the study, and the version of its user's adapter."""

    request: TraceRequest
    version: int = 0
    first_s: float = 0.0
    finished_s: float = 0.0

    @property
    def ttft_s(self) -> float:
        return self.first_s - self.request.arrival_s

    @property
    def tpot_s(self) -> float:
        """Return s per token after the first; 0 of an answer of one token."""
        more = self.request.output_tokens - 1
        return (self.finished_s - self.first_s) / more if more else 0.0

    def misses(self, limits: RetrainingLimits) -> bool:
        return self.ttft_s > limits.ttft_s or self.tpot_s > limits.tpot_s


@dataclass(slots=True)
class AdapterVersions:
    """Versions of the adapters in memory: the latest of each user, and those in use."""

    latest: dict[str, int] = field(default_factory=dict)
    in_use: dict[tuple[str, int], int] = field(default_factory=dict)

    def pin(self, user: str) -> int:
        version = self.latest.get(user, 0)
        self.in_use[user, version] = self.in_use.get((user, version), 0) + 1
        return version

    def release(self, user: str, version: int) -> None:
        self.in_use[user, version] -= 1
        if not self.in_use[user, version]:
            del self.in_use[user, version]

    def replace(self, user: str) -> None:
        self.latest[user] = self.latest.get(user, 0) + 1


@dataclass(slots=True)
class Colocated:
    """One run on a virtual clock, until `span_s` and the end of all requests."""

    policy: RetrainingPolicy
    users: dict[str, UserDrift]
    limits: RetrainingLimits = field(default_factory=RetrainingLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    slowdown: float = 1.0
    """How many times longer iterations take than the policy's model says at first."""
    now_s: float = 0.0
    busy_s: float = 0.0
    evictions: int = 0
    engine: BatchingEngine[str] = field(init=False)
    versions: AdapterVersions = field(default_factory=AdapterVersions)
    waiting: deque[ColocatedOutcome] = field(default_factory=deque)
    running: dict[str, ColocatedOutcome] = field(default_factory=dict)
    reserved_tokens: int = 0
    """Tokens of the running requests at their longest."""
    unread_tokens: int = 0
    in_progress: str = ""
    """User whose batch is being trained, and the tokens that are left of it."""
    left_tokens: int = 0
    costs: IterationCosts = field(default_factory=IterationCosts)

    def __post_init__(self) -> None:
        self.engine = BatchingEngine(self.engine_limits)

    def run(self, requests: Iterable[TraceRequest], span_s: float) -> list[ColocatedOutcome]:
        """Serve all requests; raises ValueError for one that can never fit."""
        outcomes = [ColocatedOutcome(request) for request in requests]
        for outcome in outcomes:
            self._check(outcome.request)
        coming = deque(sorted(outcomes, key=lambda outcome: outcome.request.arrival_s))
        while coming or self.waiting or self.running or self.now_s < span_s:
            while coming and coming[0].request.arrival_s <= self.now_s:
                self.waiting.append(coming.popleft())
            self.admit()
            retraining = self.choose() if self.now_s < span_s else None
            if self.running or retraining:
                self.iterate(retraining)
            else:
                next_s = coming[0].request.arrival_s if coming else span_s
                self.now_s = min(max(next_s, self.now_s), self.now_s + 1.0)
        for drift in self.users.values():
            drift.end(span_s)
        return outcomes

    def _check(self, request: TraceRequest) -> None:
        if not self.engine.can_ever_fit(request.prompt_tokens, request.output_tokens):
            raise ValueError(
                f"{request.request_id}: {request.prompt_tokens} prompt and"
                f" {request.output_tokens} output tokens do not fit a batch of"
                f" {self.engine_limits.kv_tokens}"
            )

    def admit(self) -> None:
        """Start waiting requests while they fit; retraining leaves memory for them."""
        while self.waiting:
            request = self.waiting[0].request
            needed = request.prompt_tokens + request.output_tokens
            if not self.engine.fits(request.prompt_tokens, request.output_tokens):
                if not (
                    self.in_progress and self.policy.may_evict(False, self.fits_alone(request))
                ):
                    return
                self.drop_progress()
                self.evictions += 1
            outcome = self.waiting.popleft()
            outcome.version = self.versions.pin(request.tenant)
            self.engine.start(request.request_id, request.prompt_tokens, request.output_tokens)
            self.running[request.request_id] = outcome
            self.reserved_tokens += needed
            self.unread_tokens += request.prompt_tokens

    def fits_alone(self, request: TraceRequest) -> bool:
        """Return whether the request would fit if nothing were retrained."""
        beside = self.engine.limits
        self.engine.limits = self.engine_limits
        fits = self.engine.fits(request.prompt_tokens, request.output_tokens)
        self.engine.limits = beside
        return fits

    def load(self) -> ServingLoad:
        return ServingLoad(
            len(self.running),
            self.engine.held_tokens,
            self.unread_tokens,
            len(self.waiting),
            self.engine.limits.kv_tokens - self.reserved_tokens,
            min(map(self._due_s, self.running.values()), default=math.inf),
            min(map(self._first_due_s, self._without_token()), default=math.inf),
        )

    def _due_s(self, outcome: ColocatedOutcome) -> float:
        """Return the time until the next token is due, by the mean since the first."""
        if not outcome.first_s:
            return math.inf
        tokens = self.engine.made_tokens(outcome.request.request_id)
        return outcome.first_s + tokens * self.limits.aim_s - self.now_s

    def _first_due_s(self, outcome: ColocatedOutcome) -> float:
        due_s = outcome.request.arrival_s + self.limits.ttft_s - self.now_s
        if outcome.request.request_id in self.running:
            return due_s
        return due_s - self.costs.prompt_token_s * outcome.request.prompt_tokens

    def _without_token(self) -> Iterable[ColocatedOutcome]:
        yield from self.waiting
        yield from (outcome for outcome in self.running.values() if not outcome.first_s)

    def needs(self) -> list[RetrainingNeed]:
        return [
            RetrainingNeed(
                user,
                drift.advance(self.now_s),
                drift.stale_s(self.now_s),
                self.left_tokens if user == self.in_progress else BATCH_TOKENS,
                in_progress=user == self.in_progress,
            )
            for user, drift in self.users.items()
        ]

    def choose(self) -> Retraining | None:
        """Return what the policy retrains next, if memory has room for it."""
        load = self.load()
        retraining = self.policy.next(load, self.needs(), self.now_s)
        if retraining is None or retraining.user == self.in_progress:
            return retraining
        self.drop_progress()
        if load.free_tokens < self.limits.state_tokens:
            return None
        self.in_progress, self.left_tokens = retraining.user, BATCH_TOKENS
        self._limit(self.engine_limits.kv_tokens - self.limits.state_tokens)
        return retraining

    def drop_progress(self) -> None:
        self.in_progress, self.left_tokens = "", 0
        self._limit(self.engine_limits.kv_tokens)

    def _limit(self, kv_tokens: int) -> None:
        self.engine.limits = EngineLimits(kv_tokens, self.engine_limits.batch_requests)

    def iterate(self, retraining: Retraining | None) -> None:
        """Make one token for each running request, and train on the tokens of the policy."""
        tokens = retraining.tokens if retraining else 0
        model = self.costs
        modelled_s = model.serving_s(
            len(self.running), self.engine.held_tokens, self.unread_tokens
        ) + model.retraining_of(tokens)
        step = self.engine.step() if self.running else None
        self.unread_tokens = 0
        seconds = self.slowdown * modelled_s
        self.now_s += seconds
        self.busy_s += seconds
        self.policy.measured(modelled_s, seconds, tokens)
        if step:
            for key in step.first:
                self.running[key].first_s = self.now_s
            self.finish([self.running.pop(key) for key in step.finished])
        if retraining:
            self.train(retraining)

    def finish(self, finished: Sequence[ColocatedOutcome]) -> None:
        for outcome in finished:
            request = outcome.request
            outcome.finished_s = self.now_s
            self.versions.release(request.tenant, outcome.version)
            self.reserved_tokens -= request.prompt_tokens + request.output_tokens
            self.policy.ended(outcome.misses(self.limits), self.now_s)

    def train(self, retraining: Retraining) -> None:
        self.left_tokens -= retraining.tokens
        if self.left_tokens <= 0:
            self.users[retraining.user].update(self.now_s)
            self.versions.replace(retraining.user)
            self.drop_progress()
