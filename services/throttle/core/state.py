"""What the throttle knows of one endpoint: who waits, who is served, and what each was charged."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from shared.contracts.access import EndpointConfigured
from shared.ledger.answers import AnsweredCommands
from shared.ledger.recent_ids import RecentIds

INPUT_PRICE = 1.0
OUTPUT_PRICE = 2.0
"""`w_p` and `w_q` of the VTC paper: what a token of a prompt and of an answer costs."""

HALF_LIFE_MS = 10_000
"""In which a measurement of the engine's speed counts half."""

SHARE_MEMORY = 0.9
"""How much of the expected share of `max_output_tokens` stays when one more answer is complete."""


@dataclass(slots=True)
class Request:
    """A request from its acceptance to its end; `made` output tokens are charged."""

    request_id: str
    tenant: str
    prompt_tokens: int
    max_output_tokens: int
    queued_at: int
    traceparent: str = ""
    started_at: int = 0
    made: int = 0

    @property
    def remaining(self) -> int:
        return self.max_output_tokens - self.made

    @property
    def held(self) -> int:
        """Tokens that it occupies in the running batch now."""
        return self.prompt_tokens + self.made

    @property
    def reserved(self) -> int:
        """Tokens that it occupies at most."""
        return self.prompt_tokens + self.max_output_tokens


@dataclass(slots=True)
class Account:
    """A tenant on this endpoint: its virtual token counter and its own line."""

    weight: float = 1.0
    active: bool = False
    counter: float = 0.0
    line: deque[str] = field(default_factory=deque)


@dataclass(slots=True)
class Speed:
    """Output tokens per busy time, both decaying: what the engine really does."""

    tokens: float = 0.0
    busy_ms: float = 0.0
    at: int = 0
    output_share: float = 1.0

    def began(self, at: int) -> None:
        """The batch was empty until now: that time tells nothing of the engine."""
        self.at = at

    def made(self, tokens: int, at: int) -> None:
        passed_ms = max(0, at - self.at)
        kept = 0.5 ** (passed_ms / HALF_LIFE_MS)
        self.tokens = self.tokens * kept + tokens
        self.busy_ms = self.busy_ms * kept + passed_ms
        self.at = max(self.at, at)

    def finished(self, share: float) -> None:
        self.output_share += (1 - SHARE_MEMORY) * (share - self.output_share)

    def tokens_per_s(self, configured: float) -> float:
        """As measured; as configured until a second of work was seen."""
        if self.busy_ms < 1000 or self.tokens <= 0:
            return configured
        return 1000 * self.tokens / self.busy_ms


@dataclass(slots=True)
class Lane:
    """One endpoint's lane; only `evolve` changes it."""

    SCHEMA: ClassVar[str] = "throttle-1"
    partition: int
    endpoint: EndpointConfigured | None = None
    accounts: dict[str, Account] = field(default_factory=dict)
    waiting: dict[str, Request] = field(default_factory=dict)
    running: dict[str, Request] = field(default_factory=dict)
    last_left: str = ""
    """The tenant whose line became empty last."""
    speed: Speed = field(default_factory=Speed)
    known: RecentIds = field(default_factory=RecentIds)
    """Requests that were accepted, also those that are done."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def name(self) -> str:
        return self.endpoint.endpoint if self.endpoint else ""

    @property
    def room_tokens(self) -> int:
        return self.endpoint.batch_tokens if self.endpoint else 0

    def request(self, request_id: str) -> Request | None:
        return self.waiting.get(request_id) or self.running.get(request_id)
