"""The notifier's tables in Postgres: positions, watched jobs, what waits, and its results.

One transaction moves the positions and adds what follows from the records between them: a process
that is killed neither loses nor repeats one. An attempt ends with another transaction; killed
before it, the attempt is repeated, with the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from asyncpg import Connection

from services.notifier.core.changes import Notification
from services.notifier.core.jobs import WatchedJob
from services.notifier.core.pace import FIRST_MS, GIVE_UP_MS, LONGEST_MS, MAX_WAITING
from shared.bus.failpoints import FAILPOINTS
from shared.contracts.state_changes import ENDS
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor

LOCK = 0x6E6F7469
"""Advisory lock: one notifier works, others stand by."""
TAKE = f"SELECT pg_try_advisory_lock({LOCK})"
POSITIONS = "SELECT ledger, partition, state FROM notification_cursor"
MOVE = (
    "INSERT INTO notification_cursor (ledger, partition, state) VALUES ($1, $2, $3)"
    " ON CONFLICT (ledger, partition) DO UPDATE SET state = excluded.state"
)
JOBS = "SELECT * FROM notification_job WHERE job_id = ANY($1)"
STORE_JOB = (
    "INSERT INTO notification_job (job_id, tenant, user_id, name, notify, size, succeeded, failed,"
    " cancelled, rejected) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
    " ON CONFLICT (job_id) DO UPDATE SET succeeded = excluded.succeeded, failed = excluded.failed,"
    " cancelled = excluded.cancelled, rejected = excluded.rejected"
)
DROP_JOBS = "DELETE FROM notification_job WHERE job_id = ANY($1)"
TARGET = (
    "INSERT INTO notification_target (tenant, target, created_at) VALUES ($1, $2, $3)"
    " ON CONFLICT (tenant, target) DO UPDATE SET created_at = excluded.created_at, delivered = 0,"
    " given_up = 0, dropped = 0, failing_since = 0, disabled_at = 0, last_at = 0, last_error = '',"
    " tested_at = 0, test_result = ''"
    " WHERE notification_target.created_at <> excluded.created_at"
)
ROOM = (
    "SELECT t.disabled_at > 0 AS is_disabled, (SELECT count(*) FROM notification n"
    " WHERE n.tenant = t.tenant AND n.target = t.target) AS waiting"
    " FROM notification_target t WHERE t.tenant = $1 AND t.target = $2"
)
DROPPED = "UPDATE notification_target SET dropped = dropped + $3 WHERE tenant = $1 AND target = $2"
ADD = (
    "INSERT INTO notification (tenant, target, event_id, at, due_at, body)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
)
PROBE_AT = f"(t.last_at + least(greatest(t.last_at - t.failing_since, {FIRST_MS}), {LONGEST_MS}))"
"""Time of the next attempt at a webhook that fails: after a pause as long as it has failed."""
FAILS = (
    "(t.failing_since > 0 AND NOT starts_with(d.target, 'mail:')"
    " AND NOT starts_with(d.event_id, 'access/'))"
)
"""Whether a notification is for a webhook of which all attempts fail; a test never waits."""
DUE = f"""
SELECT d.tenant, d.target, d.event_id, d.at, d.attempts, d.body, {FAILS}
FROM notification_target t CROSS JOIN LATERAL (
    SELECT * FROM notification n
    WHERE n.tenant = t.tenant AND n.target = t.target AND n.due_at <= $1
        AND n.tenant || '/' || n.target || '/' || n.event_id <> ALL($2)
    ORDER BY n.tenant, n.target, n.due_at, n.event_id LIMIT $3
) d
WHERE t.tenant || '/' || CASE WHEN starts_with(t.target, 'mail:') THEN 'mail:' ELSE t.target END
    <> ALL($4) AND (NOT {FAILS} OR {PROBE_AT} <= $1)
ORDER BY row_number() OVER (PARTITION BY d.tenant, d.target ORDER BY d.due_at, d.event_id), d.due_at
"""  # noqa: S608
"""Reads by the index a few rows of each target that has room, however many are due."""
WAITING = (
    "SELECT starts_with(target, 'mail:') AS is_mail, count(*) AS waiting, min(at) AS oldest_at"
    " FROM notification GROUP BY 1"
)
REMOVE = "DELETE FROM notification WHERE tenant = $1 AND target = $2 AND event_id = $3"
REMOVE_ALL = "DELETE FROM notification WHERE tenant = $1 AND target = $2"
POSTPONE = (
    "UPDATE notification SET attempts = attempts + $4, due_at = $5"
    " WHERE tenant = $1 AND target = $2 AND event_id = $3"
)
SUCCEEDED = (
    "UPDATE notification_target SET delivered = delivered + 1, failing_since = 0, last_at = $3,"
    " last_error = '' WHERE tenant = $1 AND target = $2"
)
FAILED = (
    "UPDATE notification_target SET given_up = given_up + $5, last_at = $3, last_error = $4,"
    " failing_since = CASE failing_since WHEN 0 THEN $3 ELSE failing_since END"
    " WHERE tenant = $1 AND target = $2 RETURNING failing_since"
)
GIVE_UP = f"""
DELETE FROM notification d USING notification_target t
WHERE d.tenant = $1 AND d.target = $2 AND t.tenant = d.tenant AND t.target = d.target
    AND {FAILS} AND d.at <= {PROBE_AT} - {GIVE_UP_MS}
"""  # noqa: S608
"""Deletes what would be too old at the next attempt at a webhook that fails."""
GIVEN_UP = (
    "UPDATE notification_target SET given_up = given_up + $3 WHERE tenant = $1 AND target = $2"
)
DISABLE = (
    "UPDATE notification_target SET disabled_at = $3, given_up = given_up + $4"
    " WHERE tenant = $1 AND target = $2"
)
TESTED = (
    "UPDATE notification_target SET tested_at = $3, test_result = $4,"
    " disabled_at = CASE WHEN $5 THEN 0 ELSE disabled_at END,"
    " failing_since = CASE WHEN $5 THEN 0 ELSE failing_since END"
    " WHERE tenant = $1 AND target = $2"
)
TEST_LEDGER = "access/"
"""Begins the id of the event of a test."""


class Due(NamedTuple):
    """A notification to send now."""

    tenant: str
    target: str
    event_id: str
    at_ms: int
    attempts: int
    body: str
    probes: bool = False
    """All attempts of its webhook have failed since a while: one is made at a time."""

    @property
    def key(self) -> str:
        return f"{self.tenant}/{self.target}/{self.event_id}"

    @property
    def is_test(self) -> bool:
        return self.event_id.startswith(TEST_LEDGER)


async def read_positions(conn: Connection) -> dict[TP, Cursor]:
    rows = await conn.fetch(POSITIONS)
    return {TP(r["ledger"], r["partition"]): Cursor.from_json(r["state"]) for r in rows}


async def read_jobs(conn: Connection, ids: Iterable[str]) -> dict[str, WatchedJob]:
    """Return the watched jobs among these, by id."""
    rows = await conn.fetch(JOBS, list(ids))
    return {
        r["job_id"]: WatchedJob(
            r["job_id"],
            r["tenant"],
            r["user_id"],
            r["name"],
            tuple(r["notify"].split(",")),
            r["size"],
            {end: r[end] for end in ENDS if r[end]},
        )
        for r in rows
    }


async def save(
    conn: Connection,
    positions: Mapping[TP, Cursor],
    notifications: Sequence[Notification],
    jobs: Mapping[str, WatchedJob],
) -> int:
    """Store what follows from records, with the positions after them; return what was dropped."""
    async with conn.transaction():
        moved = [(*tp, cursor.to_json().decode()) for tp, cursor in positions.items()]
        await conn.executemany(MOVE, moved)
        if rows := [_job_row(job) for job in jobs.values() if not job.is_over]:
            await conn.executemany(STORE_JOB, rows)
        if over := [job.job_id for job in jobs.values() if job.is_over]:
            await conn.execute(DROP_JOBS, over)
        dropped = 0
        targets: dict[tuple[str, str, int], list[Notification]] = {}
        for item in notifications:
            targets.setdefault((item.tenant, item.target, item.created_at), []).append(item)
        for target, items in targets.items():
            dropped += await _add(conn, target, items)
        FAILPOINTS.hit("before_commit")
    FAILPOINTS.hit("after_commit")
    return dropped


async def read_due(
    conn: Connection, now_ms: int, in_flight: Iterable[str], full: Iterable[str], most: int
) -> list[Due]:
    """Return what is due, at most so many of each target, those of each target in turn.

    `full` are webhooks, `TENANT/NAME`, and mails of tenants, `TENANT/mail:`, that are left out.
    """
    rows = await conn.fetch(DUE, now_ms, list(in_flight), most, list(full))
    return [Due(*row) for row in rows]


async def remove(conn: Connection, item: Due) -> None:
    """Forget a notification whose receiver is gone."""
    await conn.execute(REMOVE, *item[:3])


async def postpone(conn: Connection, item: Due, due_at_ms: int) -> None:
    """Try later; no attempt was made."""
    await conn.execute(POSTPONE, *item[:3], 0, due_at_ms)


async def note_success(conn: Connection, item: Due, now_ms: int) -> None:
    async with conn.transaction():
        await conn.execute(REMOVE, *item[:3])
        await conn.execute(SUCCEEDED, item.tenant, item.target, now_ms)


class FailedTarget(NamedTuple):
    """Since when (ms) every attempt of a target has failed, and how many others were given up."""

    since_ms: int
    given_up: int = 0


async def note_failure(
    conn: Connection, item: Due, now_ms: int, error: str, retry_at_ms: int | None
) -> FailedTarget:
    """Note a failed attempt, with the time of the next one, None for none."""
    async with conn.transaction():
        if retry_at_ms is None:
            await conn.execute(REMOVE, *item[:3])
        else:
            await conn.execute(POSTPONE, *item[:3], 1, retry_at_ms)
        given_up = int(retry_at_ms is None)
        since = await conn.fetchval(FAILED, item.tenant, item.target, now_ms, error, given_up)
        status = await conn.execute(GIVE_UP, item.tenant, item.target)
        if others := int(status.rpartition(" ")[2]):
            await conn.execute(GIVEN_UP, item.tenant, item.target, others)
    return FailedTarget(since or now_ms, others)


async def disable(conn: Connection, item: Due, now_ms: int) -> None:
    """Send nothing to the webhook any more, what waits for it included."""
    async with conn.transaction():
        status = await conn.execute(REMOVE_ALL, item.tenant, item.target)
        given_up = int(status.rpartition(" ")[2])
        await conn.execute(DISABLE, item.tenant, item.target, now_ms, given_up)


async def note_test(conn: Connection, item: Due, result: str, is_good: bool) -> None:
    """Note the result of a test; a good one enables the webhook again."""
    async with conn.transaction():
        await conn.execute(REMOVE, *item[:3])
        await conn.execute(TESTED, item.tenant, item.target, item.at_ms, result, is_good)


async def _add(
    conn: Connection, target: tuple[str, str, int], items: Sequence[Notification]
) -> int:
    """Add what the target has room for; return how many were dropped."""
    tenant, name, _ = target
    await conn.execute(TARGET, *target)
    room = await conn.fetchrow(ROOM, tenant, name)
    free = max(0, MAX_WAITING - room["waiting"])
    kept = [
        item for item in items if not room["is_disabled"] or item.event_id.startswith(TEST_LEDGER)
    ]
    rows = [
        (i.tenant, i.target, i.event_id, i.at_ms, _first_due_ms(i), i.body) for i in kept[:free]
    ]
    await conn.executemany(ADD, rows)
    if dropped := len(items) - len(rows):
        await conn.execute(DROPPED, tenant, name, dropped)
    return dropped


def _first_due_ms(item: Notification) -> int:
    """Return when it is sent first: a test before all that waits."""
    return 0 if item.event_id.startswith(TEST_LEDGER) else item.at_ms


def _job_row(job: WatchedJob) -> tuple[object, ...]:
    ended = (job.ended.get(end, 0) for end in ("succeeded", "failed", "cancelled", "rejected"))
    return job.job_id, job.tenant, job.user, job.name, ",".join(job.notify), job.size, *ended
