"""`llm_request` and `llm_tenant`: LLM requests, and the tokens charged to each tenant."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import BigInt, RowTable


@dataclass(slots=True)
class LlmRequestRow:
    """One request; the key names the tenant, since two tenants may use the same request id."""

    request_key: str
    partition: int
    request_id: str
    tenant: str = ""
    endpoint: str = ""
    application: str = ""
    state: str = ""
    reason: str = ""
    prompt_tokens: BigInt = 0
    output_tokens: BigInt = 0
    wait_s: float = 0.0
    waited_ms: BigInt = 0
    served_ms: BigInt = 0
    queued_at: BigInt = 0
    started_at: BigInt = 0
    ended_at: BigInt = 0


@dataclass(slots=True)
class LlmTenantRow:
    """Requests and charged tokens of a tenant on one lane; whole numbers, so sums are exact."""

    account: str
    partition: int
    tenant: str
    requests: BigInt = 0
    rejected: BigInt = 0
    prompt_tokens: BigInt = 0
    output_tokens: BigInt = 0


LLM_REQUEST = RowTable("llm_request", LlmRequestRow, "request_key")
LLM_TENANT = RowTable("llm_tenant", LlmTenantRow, "account")


def fold_request(row: LlmRequestRow, event: LedgerEvent) -> None:
    data = event.data
    row.tenant = data.get("tenant", row.tenant)
    match event.type:
        case "llm.queued.v1":
            row.endpoint, row.application = data["endpoint"], data.get("application", "")
            row.prompt_tokens, row.wait_s = data["prompt_tokens"], data.get("wait_s", 0.0)
            row.state, row.queued_at = "queued", event.at
        case "llm.started.v1":
            row.state, row.started_at = "running", event.at
            row.waited_ms = data.get("waited_ms", 0)
        case "llm.finished.v1":
            row.state, row.ended_at = "finished", event.at
            row.prompt_tokens, row.output_tokens = data["prompt_tokens"], data["output_tokens"]
            row.served_ms = data.get("served_ms", 0)
        case "llm.rejected.v1":
            row.state, row.reason, row.ended_at = "rejected", data["reason"], event.at
        case _:
            raise NotFolded(event.type)


def fold_account(row: LlmTenantRow, event: LedgerEvent) -> None:
    match event.type:
        case "llm.finished.v1":
            row.requests += 1
            row.prompt_tokens += event.data["prompt_tokens"]
            row.output_tokens += event.data["output_tokens"]
        case "llm.rejected.v1":
            row.rejected += 1
        case _:
            raise NotFolded(event.type)
