"""Ended jobs, and what is old besides, leave the read models a calendar month at a time.

What leaves is put into files first, as by `shared.projections.retention`. The jobs of an array
leave together, in the month in which its last one ended, so that its counts are right until then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from asyncpg import Connection

from shared.bus.archive.store import ObjectStore
from shared.job_logs.chunk import JobKey
from shared.projections.project import SHARE
from shared.projections.retention import (
    DAY_MS,
    ENDED,
    JOBS,
    NAME,
    Mark,
    export,
    month_begin,
    month_end,
    newest_ms,
    read_mark,
    store_mark,
)

JOB_TABLES = ("job_admission", "job_placement", "allocation", NAME)
"""Their rows leave with their job."""
DRIVING = JOB_TABLES[0]
"""The table whose mark says how far all have left."""
DATED: dict[str, tuple[str, str]] = {
    "command": (
        "command_id",
        "NOT EXISTS (SELECT FROM job_admission a WHERE a.job_id IN (t.of, t.of || '.0'))",
    ),
    "dead_letter": ("dead_id", "t.topic <> '' AND t.state NOT IN ('open', 'retrying')"),
    "audit": ("entry_id", "true"),
}
"""Tables whose rows leave by their own time: the key, and which of the old rows do."""
TABLES = (*JOB_TABLES, *DATED)
KEPT = {
    "cursor": "one row per ledger and partition",
    "retention": "one row per table",
    "schema_version": "one row",
    "node": "one row per node",
    "queue_rank": "one row per lane",
    "tenant": "one row per tenant",
    "pool": "one row per pool",
    "endpoint": "one row per endpoint",
    "tenant_usage": "one row per tenant and lane",
    "quota": "one row per tenant and lane",
    "lane_price": "one row per lane",
    "mitigation": "one row per lane",
    "fault": "one row per suspicion, of which the costs of mitigation are summed",
    "job_usage": "one row per user, lane and day, of which bills are made",
    "llm_request": "the projector drops rows 30 days after their hour",
    "llm_usage": "the projector drops rows 90 days after their hour",
    "llm_fairness": "minutes become hours after 7 days, which are dropped after 90",
    "llm_tenant": "one row per tenant and lane",
    "llm_endpoint": "one row per endpoint",
    "llm_open": "one row per request that waits or runs",
    "llm_backlog": "one row per tenant and lane",
    "notification": "the notifier drops rows that are delivered, or 24 hours old",
    "notification_job": "the notifier drops the rows of jobs that have ended",
    "notification_target": "one row per webhook, and per user with mails",
    "notification_cursor": "one row per ledger and partition",
}
"""All other tables, each with the rule by which it does not grow without end."""
RemoveOutput = Callable[[JobKey], Awaitable[None]]
ROWS = 20_000
"""Of a batch of a table whose rows leave by their own time."""
ROOT = "split_part(job_id, '.', 1)"
"""The part of an id that all jobs of an array share."""
DUE = f"""
SELECT root, is_array FROM (
  SELECT {ROOT} AS root, bool_or(strpos(job_id, '.') > 0) AS is_array FROM {ENDED}
  WHERE ended_at >= $1 AND ended_at < $2 GROUP BY 1
) due WHERE NOT is_array OR NOT EXISTS (
  SELECT FROM job s WHERE s.job_id COLLATE "C" > root || '.' AND s.job_id COLLATE "C" < root || '/'
  AND (s.ended_at = 0 OR s.ended_at >= $2)
) ORDER BY root LIMIT $3
"""  # noqa: S608
OF_ARRAY = """
SELECT job_id FROM job_admission
WHERE job_id COLLATE "C" > $1 || '.' AND job_id COLLATE "C" < $1 || '/'
"""
OUTPUT_OF = "SELECT partition, tenant, job_id FROM job_admission WHERE job_id = ANY($1)"
FIRST = f"""
SELECT least((SELECT min(ended_at) FROM {ENDED}),
             {", ".join(f"(SELECT min(at) FROM {table})" for table in DATED)})
"""  # noqa: S608


def delete_jobs(table: str) -> str:
    return f"DELETE FROM {table} WHERE job_id = ANY($1) RETURNING *"  # noqa: S608


def delete_dated(table: str) -> str:
    key, condition = DATED[table]
    return (
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} t "  # noqa: S608
        f"WHERE t.at < $1 AND {condition} ORDER BY t.at LIMIT $2) RETURNING *"
    )


@dataclass(frozen=True, slots=True)
class RecordRetention:
    """Rows of ended jobs, and old ones besides, are kept for `days`, then until a month ends."""

    exports: ObjectStore
    days: float
    remove_output: RemoveOutput | None = None
    """Removes what is stored of the output of a job that leaves."""

    async def step(self, conn: Connection, now_ms: int) -> bool:
        """Let one batch leave, or note that a month has; return whether more may be due.

        Raises ArchiveUnreachable, or what `remove_output` raises: then nothing has left.
        """
        async with conn.transaction():
            await conn.execute(SHARE)
            mark = await read_mark(conn, DRIVING)
            end = mark.leaving_at
            if end <= mark.before_at:
                end = await self._next_month(conn, mark.before_at, now_ms)
            if not end:
                return False
            jobs = await _jobs_due(conn, mark.before_at, end)
            await self._remove_output(conn, jobs)
            left = dict.fromkeys(TABLES, 0)
            for table, query, *args in _deletions(jobs, end):
                left[table] = await export(conn, self.exports, table, end, query, *args)
            before_at = mark.before_at if any(left.values()) else end
            for table, rows in left.items():
                await _add(conn, table, before_at, end, rows)
        return True

    async def _remove_output(self, conn: Connection, jobs: list[str]) -> None:
        """Remove output before its jobs leave: afterwards nothing would name it."""
        if self.remove_output is None or not jobs:
            return
        for row in await conn.fetch(OUTPUT_OF, jobs):
            await self.remove_output(JobKey(*row))

    async def _next_month(self, conn: Connection, begin: int, now_ms: int) -> int:
        """Return the end of the next month that is due, ms; 0 if there is none."""
        limit = month_begin(await newest_ms(conn, now_ms) - round(self.days * DAY_MS))
        first = begin or await conn.fetchval(FIRST)
        return month_end(first) if first is not None and first < limit else 0


async def _jobs_due(conn: Connection, begin: int, end: int) -> list[str]:
    """Return jobs that leave together: about `JOBS`, and all of the array of the last one."""
    jobs: list[str] = []
    for due in await conn.fetch(DUE, begin, end, JOBS):
        if due["is_array"]:
            jobs.extend(row["job_id"] for row in await conn.fetch(OF_ARRAY, due["root"]))
        else:
            jobs.append(due["root"])
        if len(jobs) >= JOBS:
            break
    return jobs


def _deletions(jobs: list[str], end: int) -> Iterator[tuple[str, str, *tuple[object, ...]]]:
    """Yield table, query and arguments; rows by time leave after the jobs that hold them."""
    if jobs:
        yield from ((table, delete_jobs(table), jobs) for table in JOB_TABLES)
        return
    yield from ((table, delete_dated(table), end, ROWS) for table in DATED)


async def _add(conn: Connection, table: str, before_at: int, end: int, rows: int) -> None:
    """Note in the table's mark that rows have left; histories may be further than their jobs."""
    mark = await read_mark(conn, table)
    files = mark.files + (rows > 0)
    times = max(mark.before_at, before_at), max(mark.leaving_at, end)
    await store_mark(conn, Mark(*times, files, mark.row_count + rows), table)


async def read_marks(conn: Connection) -> dict[str, Mark]:
    """Return the mark of each table of which rows may have left."""
    return {table: await read_mark(conn, table) for table in TABLES}


async def leave_out(conn: Connection, live: str, rebuilt: str) -> dict[str, int]:
    """Remove from rebuilt read models the rows that have left the live ones.

    Return their number by table. A row that is missing otherwise is not removed, and shows as a
    difference. `live` and `rebuilt` are schemas.
    """
    await conn.execute(
        f'INSERT INTO "{rebuilt}".retention SELECT * FROM "{live}".retention '  # noqa: S608
        "ON CONFLICT (name) DO NOTHING"
    )
    ended = ENDED.replace("FROM job_", f'FROM "{rebuilt}".job_')
    keys = {
        NAME: ("ledger", "partition", "seq", "idx"),
        "allocation": ("allocation_id",),
        "job_placement": ("job_id",),
        **{table: (key,) for table, (key, _) in DATED.items()},
        "job_admission": ("job_id",),
    }
    marks = await read_marks(conn)
    await conn.execute(f"CREATE TEMP TABLE ended_jobs AS SELECT * FROM {ended}")  # noqa: S608
    left: dict[str, int] = {}
    for table, columns in keys.items():
        old = "r.at < $1"
        if table in JOB_TABLES:
            old = "EXISTS (SELECT FROM ended_jobs e WHERE e.job_id = r.job_id AND e.ended_at < $1)"
        same = " AND ".join(f"l.{column} = r.{column}" for column in columns)
        status: str = await conn.execute(
            f'DELETE FROM "{rebuilt}".{table} r WHERE {old} '  # noqa: S608
            f'AND NOT EXISTS (SELECT FROM "{live}".{table} l WHERE {same})',
            marks[table].leaving_at,
        )
        left[table] = int(status.rpartition(" ")[2])
    await conn.execute("DROP TABLE ended_jobs")
    return left
