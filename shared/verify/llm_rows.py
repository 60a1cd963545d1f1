"""The rows of LLM requests equal a second fold of the throttle's ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isclose
from typing import ClassVar

from asyncpg import Connection

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.projections.llm_usage import HOUR_MS, KEPT_HOURS_MS, KEPT_REQUESTS_MS
from shared.projections.source import LedgerPartition
from shared.verify.row_store import Figures, RowStore, side_by_side
from shared.verify.rules import Violation

DAY_MS = 24 * HOUR_MS
PREFETCH = 5_000
"""Rows that are read from the database at once."""

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
REQUEST_TABLE = "llm_request"
NO_REQUEST: Figures = ("", "", "", 0, 0, 0.0, 0)
QUERIES = {REQUEST_TABLE: REQUESTS, "llm_tenant": TENANTS, "llm_usage": HOURS, "llm_open": OPEN}


async def read_rows(conn: Connection, queries: Mapping[str, str], rows: RowStore) -> None:
    """Add the rows of each query by its table; the caller's transaction makes them consistent."""
    for table, sql in queries.items():
        async for row in conn.cursor(sql, prefetch=PREFETCH):
            rows.put(table, str(row[0]), tuple(row)[1:])


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
    """Requests that ended are kept for 30 days before the last hour of a lane, hours for 90.

    Rows of requests, of which there are millions, are in files on both sides.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ("tenants", "hours", "last_hour", "open")
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    stored: RowStore
    seqs: Mapping[LedgerPartition, int]
    kept: RowStore = field(default_factory=RowStore)
    name: str = "read models of LLM requests equal the fold"
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
        before = self.kept.get(REQUEST_TABLE, key)
        if before is None or self._is_dropped(event.partition, before):
            before = NO_REQUEST
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
        row = state, outcome, reason, prompt, output, cost, ended_at
        self.kept.put(REQUEST_TABLE, key, row, ended_at)

    def _end(self, event: LedgerEvent) -> None:
        state = "finished" if event.type == "llm.finished.v1" else "rejected"
        self._set(event, state, ended_at=event.at)
        tenant, hour_at = event.data["tenant"], event.at - event.at % HOUR_MS
        account = f"{event.partition}/{tenant}"
        self.tenants.setdefault(account, LlmSums()).add(event)
        hour = self.hours.setdefault(f"{event.partition}/{hour_at}/{tenant}", LlmSums(hour_at))
        hour.add(event)
        last_hour = self.last_hour.get(event.partition, 0)
        if last_hour != hour_at:
            self.last_hour[event.partition] = hour_at
            self._drop_hours(event.partition, hour_at)
            if last_hour // DAY_MS != hour_at // DAY_MS:
                before = hour_at - KEPT_REQUESTS_MS
                self.kept.drop(REQUEST_TABLE, f"{event.partition}/", before)

    def _is_dropped(self, partition: int, row: Figures) -> bool:
        """Return whether the projector has dropped the row: it does so when an hour begins."""
        last_hour = self.last_hour.get(partition, 0)
        return 0 < int(str(row[-1])) < last_hour - KEPT_REQUESTS_MS

    def _drop_hours(self, partition: int, hour_at: int) -> None:
        lane = f"{partition}/"
        for key, sums in [*self.hours.items()]:
            if key.startswith(lane) and sums.at < hour_at - KEPT_HOURS_MS:
                del self.hours[key]

    def finish(self) -> Iterator[Violation]:
        folded: dict[str, Iterable[tuple[str, Figures]]] = {
            REQUEST_TABLE: self._kept_requests(),
            "llm_tenant": ((k, sums.figures) for k, sums in sorted(self.tenants.items())),
            "llm_usage": ((k, sums.figures) for k, sums in sorted(self.hours.items())),
            "llm_open": sorted(self.open.items()),
        }
        for table, rows in folded.items():
            for key, expected, stored in side_by_side(iter(rows), self.stored.rows(table)):
                if not equal(expected, stored):
                    detail = f"stored {stored}, the fold gives {expected}"
                    yield Violation(self.name, f"{table} {key}", detail)

    def _kept_requests(self) -> Iterator[tuple[str, Figures]]:
        for key, row in self.kept.rows(REQUEST_TABLE):
            if not self._is_dropped(int(key.partition("/")[0]), row):
                yield key, row


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
