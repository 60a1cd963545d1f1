"""`llm_request` and `llm_tenant`: who was served, and how many tokens it was charged."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class LlmRequest:
    """Request ids are their senders': two tenants may use the same."""

    request_key: str
    partition: int
    request_id: str
    tenant: str = ""
    endpoint: str = ""
    application: str = ""
    state: str = ""
    reason: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    wait_s: float = 0.0
    waited_ms: int = 0
    served_ms: int = 0
    queued_at: int = 0
    started_at: int = 0
    ended_at: int = 0


@dataclass(slots=True)
class LlmTenant:
    """Charged tokens are whole numbers: adding them is exact in any grouping."""

    account: str
    partition: int
    tenant: str
    requests: int = 0
    rejected: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


LLM_REQUEST = RowTable(
    "llm_request",
    LlmRequest,
    "request_key",
    {
        "request_key": "text",
        "partition": "int",
        "request_id": "text",
        "tenant": "text",
        "endpoint": "text",
        "application": "text",
        "state": "text",
        "reason": "text",
        "prompt_tokens": "bigint",
        "output_tokens": "bigint",
        "wait_s": "float8",
        "waited_ms": "bigint",
        "served_ms": "bigint",
        "queued_at": "bigint",
        "started_at": "bigint",
        "ended_at": "bigint",
    },
)
LLM_TENANT = RowTable(
    "llm_tenant",
    LlmTenant,
    "account",
    {
        "account": "text",
        "partition": "int",
        "tenant": "text",
        "requests": "bigint",
        "rejected": "bigint",
        "prompt_tokens": "bigint",
        "output_tokens": "bigint",
    },
)


def fold_request(row: LlmRequest, line: LedgerEvent) -> None:
    data = line.data
    row.tenant = data.get("tenant", row.tenant)
    match line.type:
        case "llm.queued.v1":
            row.endpoint, row.application = data["endpoint"], data.get("application", "")
            row.prompt_tokens, row.wait_s = data["prompt_tokens"], data.get("wait_s", 0.0)
            row.state, row.queued_at = "queued", line.at
        case "llm.started.v1":
            row.state, row.started_at = "running", line.at
            row.waited_ms = data.get("waited_ms", 0)
        case "llm.finished.v1":
            row.state, row.ended_at = "finished", line.at
            row.prompt_tokens, row.output_tokens = data["prompt_tokens"], data["output_tokens"]
            row.served_ms = data.get("served_ms", 0)
        case "llm.rejected.v1":
            row.state, row.reason, row.ended_at = "rejected", data["reason"], line.at


def fold_account(row: LlmTenant, line: LedgerEvent) -> None:
    if line.type == "llm.rejected.v1":
        row.rejected += 1
        return
    row.requests += 1
    row.prompt_tokens += line.data["prompt_tokens"]
    row.output_tokens += line.data["output_tokens"]
