"""One LLM request as a queueing discipline sees it."""

from __future__ import annotations

import msgspec


class ServedRequest(msgspec.Struct, eq=False):
    """A request from its arrival to its end; counts are in tokens, times in ms.

    `max_output_tokens` is the limit that the engine keeps. No order takes it for the length of
    the answer; budgets reserve it. A struct, as each request is made twice: by a decision, and when
    its event is folded.
    """

    request_id: str
    tenant: str
    prompt_tokens: int
    max_output_tokens: int
    queued_at: int = 0
    application: str = "default"
    user: str = ""
    model: str = ""
    priority: int = 0
    """Its class: the number of classes that go before it."""
    first_token_by: int | None = None
    """When its first token is due, wall ms; None for a request without that objective."""
    prefix: tuple[str, ...] = ()
    """Hashes of the blocks of its prompt, each of all tokens up to its end; may be shorter."""
    interaction: str = ""
    """The interaction that it belongs to; empty for a call that stands alone."""
    stage: int = 0
    """How many calls of its interaction came before it."""
    is_issued: bool = False
    """Whether the service issued the id of its interaction; another id groups calls only."""
    system_tokens: int = 0
    """The part of `prompt_tokens` that the application adds to every call."""
    started_at: int = 0
    made_tokens: int = 0
    forecast_tokens: float = 0.0
    """Output that its tenant was charged for at the start."""
    charged_tokens: float = 0.0
    """Output tokens that its tenant has been charged for, made or forecast."""
    unit_cost: float = 1.0
    """The cost of a usual call of its application (FairServe); its charges are divided by it."""

    @property
    def is_in_progress(self) -> bool:
        """Return whether it continues an interaction that the service knows it has begun."""
        return self.is_issued and self.stage > 0

    @property
    def remaining_tokens(self) -> int:
        return max(self.max_output_tokens - self.made_tokens, 0)

    @property
    def held_tokens(self) -> int:
        """Tokens that it occupies in the running batch now."""
        return self.prompt_tokens + self.made_tokens
