"""`llm_request` and `llm_tenant`: LLM requests, and the tokens charged to each tenant."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent, NotFolded, Payload
from shared.projections.table import BigInt, RowTable

UNKNOWN_WAIT_S = -1.0
"""Stands for a wait that could not be estimated."""


@dataclass(slots=True)
class LlmRequestRow:
    """One request; the key names the tenant, since two tenants may use the same request id."""

    request_key: str
    partition: int
    request_id: str
    tenant: str = ""
    endpoint: str = ""
    application: str = ""
    user_id: str = ""
    model: str = ""
    """Adapter or alias that was requested; empty for the endpoint's own name."""
    interaction: str = ""
    stage: int = 0
    state: str = ""
    outcome: str = ""
    """How a request that was started ended."""
    reason: str = ""
    detail: str = ""
    retry_after_s: float | None = None
    upstream: str = ""
    prompt_tokens: BigInt = 0
    max_output_tokens: BigInt = 0
    output_tokens: BigInt = 0
    cached_tokens: BigInt = 0
    cost: float = 0.0
    ahead: int = 0
    wait_s: float = 0.0
    """The wait that was estimated when it was queued; `UNKNOWN_WAIT_S` if none was."""
    waited_ms: BigInt = 0
    served_ms: BigInt = 0
    queued_at: BigInt = 0
    started_at: BigInt = 0
    ended_at: BigInt = 0


@dataclass(slots=True)
class LlmTenantRow:
    """Requests and charged tokens of a tenant on one lane, summed in the order of its ledger."""

    account: str
    partition: int
    tenant: str
    requests: BigInt = 0
    rejected: BigInt = 0
    prompt_tokens: BigInt = 0
    output_tokens: BigInt = 0
    cached_tokens: BigInt = 0
    wasted_tokens: BigInt = 0
    """Output of requests that were cancelled, failed or lost."""
    cost: float = 0.0


LLM_REQUEST = RowTable("llm_request", LlmRequestRow, "request_key")
LLM_TENANT = RowTable("llm_tenant", LlmTenantRow, "account")


def fold_request(row: LlmRequestRow, event: LedgerEvent) -> None:
    data = event.data
    row.tenant = data.get("tenant", row.tenant)
    match event.type:
        case "llm.queued.v1":
            queue(row, data, event.at)
        case "llm.started.v1":
            row.state, row.started_at = "running", event.at
            row.waited_ms = data.get("waited_ms", 0)
        case "llm.finished.v1":
            finish(row, data, event.at)
        case "llm.rejected.v1":
            row.state, row.reason, row.ended_at = "rejected", data["reason"], event.at
            row.detail, row.retry_after_s = data.get("detail", ""), data.get("retry_after_s")
            row.queued_at = row.queued_at or event.at
            row.endpoint = row.endpoint or data.get("endpoint", "")
            row.application = row.application or data.get("application", "")
            row.user_id = row.user_id or data.get("user", "")
            row.model = row.model or data.get("model", "")
        case _:
            raise NotFolded(event.type)


def queue(row: LlmRequestRow, data: Payload, at: int) -> None:
    row.state, row.queued_at, row.ended_at = "queued", at, 0
    row.reason, row.detail, row.retry_after_s = "", "", None
    row.endpoint, row.application = data["endpoint"], data.get("application", "")
    row.user_id, row.model = data.get("user", ""), data.get("model", "")
    row.interaction, row.stage = data.get("interaction", ""), data.get("stage", 0)
    row.prompt_tokens = data["prompt_tokens"]
    row.max_output_tokens = data.get("max_output_tokens", 0)
    row.ahead, row.wait_s = data.get("ahead", 0), data.get("wait_s", UNKNOWN_WAIT_S)


def finish(row: LlmRequestRow, data: Payload, at: int) -> None:
    row.state, row.ended_at = "finished", at
    row.outcome, row.reason = outcome_of(data), data.get("reason", "")
    row.prompt_tokens, row.output_tokens = data["prompt_tokens"], data["output_tokens"]
    row.cached_tokens, row.cost = data.get("cached_tokens", 0), data.get("cost", 0.0)
    row.served_ms, row.upstream = data.get("served_ms", 0), data.get("upstream", "")


def fold_account(row: LlmTenantRow, event: LedgerEvent) -> None:
    match event.type:
        case "llm.finished.v1":
            charge(row, event.data)
        case "llm.rejected.v1":
            row.rejected += 1
        case _:
            raise NotFolded(event.type)


def charge(row: LlmTenantRow, data: Payload) -> None:
    row.requests += 1
    row.prompt_tokens += data["prompt_tokens"]
    row.output_tokens += data["output_tokens"]
    row.cached_tokens += data.get("cached_tokens", 0)
    row.cost += data.get("cost", 0.0)
    if outcome_of(data) != "completed":
        row.wasted_tokens += data["output_tokens"]


def outcome_of(data: Payload) -> str:
    """Return how a request ended; events without it are of requests that were completed."""
    return str(data.get("outcome", "completed"))
