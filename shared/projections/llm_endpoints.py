"""`llm_endpoint`: how the engines of an endpoint do, and since when its budgets count."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from shared.contracts.endpoints import TokenBudget
from shared.projections.ledger_events import LedgerEvent, NotFolded
from shared.projections.table import BigInt, RowTable

Engine = dict[str, Any]


@dataclass(slots=True)
class LlmEndpointRow:
    """An endpoint as its lane has it."""

    endpoint_id: str
    partition: int
    endpoint: str
    engines: str = "[]"
    """JSON: each engine as it was noted last, with the time since when it gets requests or not."""
    noted_at: BigInt = 0
    """When its engines were noted last; 0: never."""
    budgets_since: str = "{}"
    """JSON: the account of each budget, and when it began to count."""


LLM_ENDPOINT = RowTable("llm_endpoint", LlmEndpointRow, "endpoint_id")


def fold_llm_endpoint(row: LlmEndpointRow, event: LedgerEvent) -> None:
    match event.type:
        case "endpoint.configured.v2":
            row.budgets_since = json.dumps(begun_budgets(row, event))
            row.engines = json.dumps(configured_engines(row, event))
        case "endpoint.deleted.v1":
            row.engines, row.noted_at, row.budgets_since = "[]", 0, "{}"
        case "llm.capacity-noted.v1":
            if event.data.get("engines"):
                row.engines, row.noted_at = json.dumps(noted_engines(row, event)), event.at
        case _:
            raise NotFolded(event.type)


def begun_budgets(row: LlmEndpointRow, event: LedgerEvent) -> dict[str, int]:
    """Return when each budget began to count: a new one counts from now, whatever was used."""
    before = json.loads(row.budgets_since)
    budgets = (TokenBudget.model_validate(budget) for budget in event.data.get("budgets", ()))
    return {budget.account: before.get(budget.account, event.at) for budget in budgets}


def configured_engines(row: LlmEndpointRow, event: LedgerEvent) -> list[Engine]:
    """Return what is known of the engines that the endpoint still has."""
    names = {upstream["name"] for upstream in event.data.get("upstreams", ())}
    return [engine for engine in json.loads(row.engines) if engine["name"] in names]


def noted_engines(row: LlmEndpointRow, event: LedgerEvent) -> list[Engine]:
    before = {engine["name"]: engine for engine in json.loads(row.engines)}
    return [
        {**engine, "since": _since(engine, before.get(engine["name"]), event.at)}
        for engine in cast("list[Engine]", event.data["engines"])
    ]


def _since(engine: Engine, before: Engine | None, at: int) -> int:
    if before is None or before["available"] != engine["available"]:
        return at
    return cast("int", before["since"])
