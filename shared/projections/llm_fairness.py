"""`llm_fairness`: how evenly each endpoint served the tenants that waited, minute by minute.

The service of a tenant is its prompt tokens plus twice its output tokens, by its weight, as in the
order of requests. The gap of a minute is the largest difference among the tenants that had a
request waiting at each of its moments; a minute with fewer than two of these has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from asyncpg import Connection

from shared.projections.ledger_events import LedgerEvent
from shared.projections.llm_usage import DAY_MS, HOUR_MS, KEPT_HOURS_MS
from shared.projections.table import BigInt, RowTable

MINUTE_MS = 60_000
KEPT_MINUTES_MS = 7 * DAY_MS
"""Older minutes become hours, which are dropped after `KEPT_HOURS_MS`."""
OUTPUT_COST = 2.0
EVENTS = frozenset(
    {
        "llm.queued.v1",
        "llm.started.v1",
        "llm.charged.v1",
        "llm.finished.v1",
        "llm.rejected.v1",
        "tenant.noted.v1",
    }
)


@dataclass(slots=True)
class LlmOpenRow:
    """A request that waits or runs, by lane and request id."""

    open_id: str
    partition: int
    request_id: str
    tenant: str = ""
    prompt_tokens: BigInt = 0
    made_tokens: BigInt = 0
    is_running: bool = False


@dataclass(slots=True)
class LlmBacklogRow:
    """A tenant on one lane: its waiting requests, and its service in the current minute."""

    backlog_id: str
    partition: int
    tenant: str
    endpoint: str = ""
    weight: float = 1.0
    waiting: int = 0
    waiting_since: BigInt = 0
    """Since when it had a waiting request at each moment; 0 if it has none."""
    minute_at: BigInt = 0
    units: float = 0.0


@dataclass(slots=True)
class LlmFairnessRow:
    """The gap of a minute, or of the minutes of an hour that had one."""

    fairness_id: str
    partition: int
    endpoint: str
    began_at: BigInt
    span_ms: int
    minutes: int
    tenants: int
    """Tenants that waited all the time, in the minute that had most of these."""
    largest_gap: float
    mean_gap: float


LLM_OPEN = RowTable("llm_open", LlmOpenRow, "open_id")
LLM_BACKLOG = RowTable("llm_backlog", LlmBacklogRow, "backlog_id")
LLM_FAIRNESS = RowTable("llm_fairness", LlmFairnessRow, "fairness_id")
BACKLOGS = """
SELECT * FROM llm_backlog
WHERE partition = ANY($1) AND (waiting > 0 OR tenant = ANY($2))
"""
ROLL_UP = f"""
WITH old AS (
    DELETE FROM llm_fairness
    WHERE partition = $1 AND span_ms = {MINUTE_MS} AND began_at < $2 RETURNING *
)
INSERT INTO llm_fairness
SELECT partition || '/' || endpoint || '/' || hour_at || '/hour', partition, endpoint, hour_at,
       {HOUR_MS}, count(*), max(tenants), max(largest_gap), avg(mean_gap)
FROM (SELECT *, began_at - began_at % {HOUR_MS} AS hour_at FROM old) minutes
GROUP BY partition, endpoint, hour_at
"""  # noqa: S608
DROP_HOURS = "DELETE FROM llm_fairness WHERE partition = $1 AND began_at < $2"


@dataclass(slots=True)
class FairnessFold:
    """Folds the events of lanes, each in order, over the rows that these concern."""

    backlogs: dict[str, LlmBacklogRow] = field(default_factory=dict)
    open: dict[str, LlmOpenRow] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Ids of rows in `open` that have ended."""
    minutes: list[LlmFairnessRow] = field(default_factory=list)
    now: dict[int, int] = field(default_factory=dict)
    """Lane to the current minute."""

    def __post_init__(self) -> None:
        for backlog in self.backlogs.values():
            self.now[backlog.partition] = max(backlog.minute_at, self.now.get(backlog.partition, 0))

    def fold(self, event: LedgerEvent) -> None:
        self._advance(event.partition, event.at - event.at % MINUTE_MS)
        match event.type:
            case "tenant.noted.v1":
                self._backlog(event, event.data["tenant"]).weight = event.data.get("weight", 1.0)
            case "llm.charged.v1":
                for report in event.data["made"]:
                    self._make(event, report["request_id"], report["tokens"])
            case "llm.queued.v1":
                self._queue(event)
            case _:
                self._change(event)

    def _advance(self, partition: int, minute_at: int) -> None:
        """End the current minute, if the next event is in a later one."""
        ended_at = self.now.setdefault(partition, minute_at)
        if minute_at <= ended_at:
            return
        self.now[partition] = minute_at
        backlogs = [backlog for backlog in self.backlogs.values() if backlog.partition == partition]
        gap = gap_of(backlogs, partition, ended_at)
        if gap is not None:
            self.minutes.append(gap)
        for backlog in backlogs:
            # One that does not wait may not be loaded: it begins the minute when it is met.
            if backlog.waiting:
                backlog.minute_at, backlog.units = minute_at, 0.0

    def _queue(self, event: LedgerEvent) -> None:
        data = event.data
        backlog = self._backlog(event, data["tenant"])
        open_id = open_id_of(event, data["request_id"])
        backlog.endpoint, backlog.waiting = data["endpoint"], backlog.waiting + 1
        backlog.waiting_since = backlog.waiting_since or event.at
        self.ended.discard(open_id)
        self.open[open_id] = LlmOpenRow(
            open_id, event.partition, data["request_id"], data["tenant"], data["prompt_tokens"]
        )

    def _change(self, event: LedgerEvent) -> None:
        """Apply the start or the end of an open request; any other was refused on arrival."""
        open_id = open_id_of(event, event.data["request_id"])
        request = self.open.get(open_id)
        if request is None or request.tenant != event.data["tenant"] or open_id in self.ended:
            return
        backlog = self._backlog(event, request.tenant)
        if not request.is_running:
            backlog.waiting = max(backlog.waiting - 1, 0)
            backlog.waiting_since = backlog.waiting_since if backlog.waiting else 0
        if event.type == "llm.started.v1":
            request.is_running = True
            backlog.units += request.prompt_tokens
            return
        if event.type == "llm.finished.v1":
            made_tokens = event.data["output_tokens"] - request.made_tokens
            prompt_tokens = event.data["prompt_tokens"] - request.prompt_tokens
            backlog.units += prompt_tokens + OUTPUT_COST * max(made_tokens, 0)
        self.ended.add(open_id)

    def _make(self, event: LedgerEvent, request_id: str, tokens: int) -> None:
        request = self.open.get(open_id_of(event, request_id))
        if request is not None and request.is_running:
            request.made_tokens += tokens
            self._backlog(event, request.tenant).units += OUTPUT_COST * tokens

    def _backlog(self, event: LedgerEvent, tenant: str) -> LlmBacklogRow:
        key = f"{event.partition}/{tenant}"
        if key not in self.backlogs:
            self.backlogs[key] = LlmBacklogRow(key, event.partition, tenant)
        backlog = self.backlogs[key]
        if backlog.minute_at != self.now[event.partition]:
            backlog.minute_at, backlog.units = self.now[event.partition], 0.0
        return backlog


def gap_of(
    backlogs: Iterable[LlmBacklogRow], partition: int, minute_at: int
) -> LlmFairnessRow | None:
    """Return the gap of a minute that has ended; None where fewer than two tenants waited."""
    backlogged = [
        backlog for backlog in backlogs if backlog.waiting and backlog.waiting_since <= minute_at
    ]
    if len(backlogged) < 2:
        return None
    services = [backlog.units / backlog.weight for backlog in backlogged]
    gap, endpoint = round(max(services) - min(services), 3), backlogged[0].endpoint
    return LlmFairnessRow(
        f"{partition}/{endpoint}/{minute_at}",
        partition,
        endpoint,
        minute_at,
        MINUTE_MS,
        1,
        len(backlogged),
        gap,
        gap,
    )


def open_id_of(event: LedgerEvent, request_id: str) -> str:
    return f"{event.partition}/{request_id}"


def open_ids_of(event: LedgerEvent) -> Iterable[str]:
    if event.type == "llm.charged.v1":
        return [open_id_of(event, report["request_id"]) for report in event.data["made"]]
    return [open_id_of(event, event.data["request_id"])] if "request_id" in event.data else []


async def store_fairness(conn: Connection, events: list[LedgerEvent]) -> None:
    """Fold the events of all lanes into the three tables."""
    work = [event for event in events if event.ledger == "throttle" and event.type in EVENTS]
    if not work:
        return
    opened = await LLM_OPEN.load(conn, {key for event in work for key in open_ids_of(event)})
    tenants = {str(event.data.get("tenant", "")) for event in work}
    tenants |= {request.tenant for request in opened.values()}
    records = await conn.fetch(BACKLOGS, list({event.partition for event in work}), list(tenants))
    backlogs = {
        str(record["backlog_id"]): LlmBacklogRow(**dict(record.items())) for record in records
    }
    fold = FairnessFold(backlogs, opened)
    for event in work:
        fold.fold(event)
    kept = (row for key, row in fold.open.items() if key not in fold.ended)
    await LLM_OPEN.store(conn, kept)
    await conn.execute("DELETE FROM llm_open WHERE open_id = ANY($1)", list(fold.ended))
    await LLM_BACKLOG.store(conn, fold.backlogs.values())
    await LLM_FAIRNESS.store(conn, fold.minutes)


async def roll_up(conn: Connection, begun: dict[int, int]) -> None:
    """Join old minutes to hours, and drop old hours, in the hour that begins in each lane."""
    for partition, hour_at in begun.items():
        await conn.execute(ROLL_UP, partition, hour_at - KEPT_MINUTES_MS)
        await conn.execute(DROP_HOURS, partition, hour_at - KEPT_HOURS_MS)
