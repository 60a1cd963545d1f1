"""LLM endpoints, requests, use and budgets."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class Engine(TypedDict):
    """An engine of an endpoint; tenants do not see its load."""

    name: str
    """Name of the upstream."""
    available: bool
    """It gets requests."""
    reason: str
    """Why it gets none."""
    since: int
    in_flight: NotRequired[int]
    waiting: NotRequired[int | None]
    """Requests in its own queue; null: not reported."""
    kv_ratio: NotRequired[float | None]
    """Part of its KV cache in use; null: not reported."""


class Endpoint(TypedDict):
    """An LLM endpoint."""

    endpoint: str
    partition: int
    settings: dict[str, object]
    """As the body of `POST /v1/endpoints`; tenants see neither `tenants` nor addresses."""
    engines: list[Engine]
    noted_at: int
    """When its engines were noted; 0: never."""
    budgets_since: dict[str, int]
    """When each budget began to count."""
    version: str
    open: bool
    """The tenant may use it."""


class LlmRequest(TypedDict):
    """An LLM request: counts and ids, never its prompt or answer."""

    request_id: str
    tenant: str
    endpoint: str
    model: str
    application: str
    user: str
    interaction: str
    stage: int
    state: str
    """`queued`, `running`, `finished` or `rejected`."""
    outcome: str
    """How a request that was started ended."""
    reason: str
    detail: str
    retry_after_s: float | None
    upstream: str
    prompt_tokens: int
    max_output_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float
    ahead: int
    wait_s: float | None
    """Wait that was estimated when it was queued; null: none was."""
    waited_ms: int
    served_ms: int
    queued_at: int
    started_at: int
    ended_at: int


class LlmUse(TypedDict):
    """Sums over a group of requests, which the fields of `by` name."""

    tenant: NotRequired[str]
    user: NotRequired[str]
    application: NotRequired[str]
    model: NotRequired[str]
    endpoint: NotRequired[str]
    day_at: NotRequired[int]
    hour_at: NotRequired[int]
    requests: int
    rejected: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    wasted_tokens: int
    """Output of requests that were cancelled, failed or lost."""
    cost: float
    estimated_ms: int
    waited_ms: int
    longest_wait_ms: int
    served_ms: int


class LlmRejections(TypedDict):
    """Rejected requests of a tenant at an endpoint, of one reason."""

    tenant: str
    endpoint: str
    reason: str
    rejected: int
    latest_hour_at: int


class FairnessGap(TypedDict):
    """The gap of service among tenants that waited through a minute."""

    endpoint: str
    began_at: int
    span_ms: int
    minutes: int
    tenants: int
    largest_gap: float
    mean_gap: float


class BudgetUse(TypedDict):
    """One holder of a budget, and what is left of it."""

    endpoint: str
    kind: str
    """Kind of the holder: tenant, user, application or model."""
    unit: str
    """`requests`, `tokens` or `money`."""
    limit: float
    memory: str
    """`window`, `half_life` or `forever`."""
    period_s: float
    tenant: str | None
    """Null: nothing is used yet."""
    holder: str | None
    used: float
    held: float
    """By open requests."""
    left: float
    since: int
    """When the budget began to count."""
