"""The rows of LLM requests equal a second fold of the throttle's ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose

from asyncpg import Connection

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.projections.llm_usage import HOUR_MS, KEPT_HOURS_MS, KEPT_REQUESTS_MS
from shared.projections.source import LedgerPartition
from shared.verify.rules import Violation

Figures = tuple[object, ...]
"""The columns of a row except for its key."""

REQUESTS = """
SELECT request_key AS key, state, outcome, reason, prompt_tokens, output_tokens, cost, ended_at
FROM llm_request
"""
TENANTS = """
SELECT account AS key, requests, rejected, prompt_tokens, output_tokens, wasted_tokens, cost
FROM llm_tenant
"""
HOURS = """
SELECT partition || '/' || hour_at || '/' || tenant AS key, sum(requests)::bigint,
       sum(rejected)::bigint, sum(prompt_tokens)::bigint, sum(output_tokens)::bigint,
       sum(wasted_tokens)::bigint, sum(cost)
FROM llm_usage GROUP BY partition, hour_at, tenant
"""
OPEN = "SELECT open_id AS key, tenant, is_running, made_tokens FROM llm_open"
QUERIES = {"llm_request": REQUESTS, "llm_tenant": TENANTS, "llm_usage": HOURS, "llm_open": OPEN}


async def read_llm_rows(conn: Connection) -> dict[str, dict[str, Figures]]:
    """Return the rows by table and key; the caller's transaction makes them consistent."""
    return {
        table: {str(row["key"]): tuple(row)[1:] for row in await conn.fetch(sql)}
        for table, sql in QUERIES.items()
    }


@dataclass(slots=True)
class LlmSums:
    """Requests and tokens of a tenant, in all or in an hour."""

    at: int = 0
    requests: int = 0
    rejected: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    wasted_tokens: int = 0
    cost: float = 0.0

    def add(self, event: LedgerEvent) -> None:
        data = event.data
        if event.type == "llm.rejected.v1":
            self.rejected += 1
            return
        self.requests += 1
        self.prompt_tokens += data["prompt_tokens"]
        self.output_tokens += data["output_tokens"]
        if data.get("outcome", "completed") != "completed":
            self.wasted_tokens += data["output_tokens"]
        self.cost += data.get("cost", 0.0)

    @property
    def figures(self) -> Figures:
        tokens = self.prompt_tokens, self.output_tokens, self.wasted_tokens
        return self.requests, self.rejected, *tokens, self.cost


@dataclass(slots=True)
class LlmRowsRule:
    """Requests that ended are kept for 30 days before the last hour of a lane, hours for 90."""

    stored: Mapping[str, Mapping[str, Figures]]
    seqs: Mapping[LedgerPartition, int]
    name: str = "read models of LLM requests equal the fold"
    requests: dict[str, Figures] = field(default_factory=dict)
    tenants: dict[str, LlmSums] = field(default_factory=dict)
    hours: dict[str, LlmSums] = field(default_factory=dict)
    last_hour: dict[int, int] = field(default_factory=dict)
    open: dict[str, tuple[str, bool, int]] = field(default_factory=dict)
    """Tenant, whether it runs and what it made, of each request that waits or runs."""

    def observe(self, event: LedgerEvent) -> None:
        last_seq = self.seqs.get((event.ledger, event.partition), 0)
        if event.ledger != "throttle" or event.seq > last_seq:
            return
        self._fold_open(event)
        match event.type:
            case "llm.queued.v1":
                self._set(event, "queued", ended_at=0)
            case "llm.started.v1":
                self._set(event, "running", ended_at=0)
            case "llm.finished.v1" | "llm.rejected.v1":
                self._end(event)

    def _fold_open(self, event: LedgerEvent) -> None:
        for report in event.data.get("made", ()):
            key = f"{event.partition}/{report['request_id']}"
            if key in self.open and self.open[key][1]:
                tenant, is_running, made_tokens = self.open[key]
                self.open[key] = tenant, is_running, made_tokens + report["tokens"]
        if not event.type.startswith("llm.") or "request_id" not in event.data:
            return
        key, tenant = f"{event.partition}/{event.data['request_id']}", event.data["tenant"]
        if event.type == "llm.queued.v1":
            self.open[key] = tenant, False, 0
        elif key in self.open and self.open[key][0] == tenant:
            made_tokens = self.open.pop(key)[2]
            if event.type == "llm.started.v1":
                self.open[key] = tenant, True, made_tokens

    def _set(self, event: LedgerEvent, state: str, ended_at: int) -> None:
        data, key = event.data, _key(event)
        before = self.requests.get(key, ("", "", "", 0, 0, 0.0, 0))
        outcome, reason, prompt, output, cost = before[1:6]
        match event.type:
            case "llm.queued.v1":
                reason, prompt = "", data["prompt_tokens"]
            case "llm.finished.v1":
                outcome, reason = data.get("outcome", "completed"), data.get("reason", "")
                prompt, output = data["prompt_tokens"], data["output_tokens"]
                cost = data.get("cost", 0.0)
            case "llm.rejected.v1":
                reason = data["reason"]
        self.requests[key] = (state, outcome, reason, prompt, output, cost, ended_at)

    def _end(self, event: LedgerEvent) -> None:
        state = "finished" if event.type == "llm.finished.v1" else "rejected"
        self._set(event, state, ended_at=event.at)
        tenant, hour_at = event.data["tenant"], event.at - event.at % HOUR_MS
        account = f"{event.partition}/{tenant}"
        self.tenants.setdefault(account, LlmSums()).add(event)
        hour = self.hours.setdefault(f"{event.partition}/{hour_at}/{tenant}", LlmSums(hour_at))
        hour.add(event)
        if self.last_hour.get(event.partition) != hour_at:
            self.last_hour[event.partition] = hour_at
            self._drop(event.partition, hour_at)

    def _drop(self, partition: int, hour_at: int) -> None:
        """Drop what the projector drops when an hour begins in a partition."""
        lane = f"{partition}/"
        for key, row in [*self.requests.items()]:
            if key.startswith(lane) and 0 < int(str(row[-1])) < hour_at - KEPT_REQUESTS_MS:
                del self.requests[key]
        for key, sums in [*self.hours.items()]:
            if key.startswith(lane) and sums.at < hour_at - KEPT_HOURS_MS:
                del self.hours[key]

    def finish(self) -> Iterator[Violation]:
        folded: dict[str, Mapping[str, Figures]] = {
            "llm_request": self.requests,
            "llm_tenant": {k: sums.figures for k, sums in self.tenants.items()},
            "llm_usage": {k: sums.figures for k, sums in self.hours.items()},
            "llm_open": self.open,
        }
        for table, rows in folded.items():
            yield from self._compare(table, rows, self.stored[table])

    def _compare(
        self, table: str, expected: Mapping[str, Figures], stored: Mapping[str, Figures]
    ) -> Iterator[Violation]:
        for key in sorted(expected.keys() | stored.keys()):
            if not equal(expected.get(key), stored.get(key)):
                detail = f"stored {stored.get(key)}, the fold gives {expected.get(key)}"
                yield Violation(self.name, f"{table} {key}", detail)


def equal(expected: Figures | None, stored: Figures | None) -> bool:
    """Return whether the figures are equal; sums of money may differ in their last digits."""
    if expected is None or stored is None or len(expected) != len(stored):
        return False
    return all(
        isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in zip(expected, stored, strict=True)
    )


def _key(event: LedgerEvent) -> str:
    data: Payload = event.data
    return f"{event.partition}/{data['tenant']}/{data['request_id']}"
