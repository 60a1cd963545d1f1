"""The state of one endpoint: waiting and running requests, and the charges on each tenant."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from shared.contracts.access import EndpointConfigured
from shared.contracts.bookkeeping import TenantNoted
from shared.ledger.answers import AnsweredCommands
from shared.ledger.recent_ids import RecentIds

INPUT_PRICE = 1.0
OUTPUT_PRICE = 2.0
"""`w_p` and `w_q` of the VTC paper: the price of a token of a prompt and of an answer."""

HALF_LIFE_MS = 10_000
"""Time in which the weight of a measurement of the engine's speed halves."""

SHARE_MEMORY = 0.9
"""Part of the expected share of `max_output_tokens` that one more complete answer leaves."""


@dataclass(slots=True)
class LlmRequest:
    """A request from its acceptance to its end; `made_tokens` output tokens are charged."""

    request_id: str
    tenant: str
    prompt_tokens: int
    max_output_tokens: int
    queued_at: int
    traceparent: str = ""
    started_at: int = 0
    made_tokens: int = 0

    @property
    def remaining_tokens(self) -> int:
        return self.max_output_tokens - self.made_tokens

    @property
    def held_tokens(self) -> int:
        """Tokens that it occupies in the running batch now."""
        return self.prompt_tokens + self.made_tokens

    @property
    def peak_tokens(self) -> int:
        """Tokens that it occupies at most."""
        return self.prompt_tokens + self.max_output_tokens


@dataclass(slots=True)
class TenantAccount:
    """A tenant on this endpoint: its virtual token counter and the ids in its queue."""

    weight: float = 1.0
    active: bool = False
    counter: float = 0.0
    queue: deque[str] = field(default_factory=deque)


@dataclass(slots=True)
class EngineSpeed:
    """The measured speed of the engine: output tokens per busy time, both decaying."""

    tokens: float = 0.0
    busy_ms: float = 0.0
    measured_at: int = 0
    output_share: float = 1.0
    """Expected length of an answer as a part of its `max_output_tokens`."""

    def start(self, at: int) -> None:
        """Begin a measurement at `at`: until then the batch was empty."""
        self.measured_at = at

    def add_tokens(self, tokens: int, at: int) -> None:
        passed_ms = max(0, at - self.measured_at)
        decay = 0.5 ** (passed_ms / HALF_LIFE_MS)
        self.tokens = self.tokens * decay + tokens
        self.busy_ms = self.busy_ms * decay + passed_ms
        self.measured_at = max(self.measured_at, at)

    def add_answer(self, share: float) -> None:
        self.output_share += (1 - SHARE_MEMORY) * (share - self.output_share)

    def tokens_per_s(self, configured: float) -> float:
        """Return the measured speed; the configured one until a second of work was measured."""
        if self.busy_ms < 1000 or self.tokens <= 0:
            return configured
        return 1000 * self.tokens / self.busy_ms


@dataclass(slots=True)
class EndpointState:
    """The state of one lane, which belongs to one endpoint; only `evolve` changes it."""

    SCHEMA: ClassVar[str] = "throttle-2"
    partition: int
    endpoint: EndpointConfigured | None = None
    accounts: dict[str, TenantAccount] = field(default_factory=dict)
    waiting: dict[str, LlmRequest] = field(default_factory=dict)
    running: dict[str, LlmRequest] = field(default_factory=dict)
    last_emptied: str = ""
    """The tenant whose queue became empty last."""
    speed: EngineSpeed = field(default_factory=EngineSpeed)
    accepted_ids: RecentIds = field(default_factory=RecentIds)
    """Requests that were accepted, also those that are complete."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def endpoint_name(self) -> str:
        return self.endpoint.endpoint if self.endpoint else ""

    @property
    def batch_tokens(self) -> int:
        return self.endpoint.batch_tokens if self.endpoint else 0

    def noted_tenant(self, tenant: str) -> TenantNoted | None:
        """Return the tenant as the ledger has it; None if it does not know it."""
        account = self.accounts.get(tenant)
        if account is None:
            return None
        return TenantNoted(tenant=tenant, active=account.active, weight=account.weight)

    def find_request(self, request_id: str) -> LlmRequest | None:
        return self.waiting.get(request_id) or self.running.get(request_id)
