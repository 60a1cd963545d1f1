"""Histories of jobs leave the read models a calendar month at a time, after their export.

`job_event` has most bytes of what a pool adds. Its rows of the jobs that ended in one month (UTC)
leave once the whole month is older than they are kept. A batch of jobs is one transaction: what it
deletes is exactly what it has put into a file. A crash in between leaves a file whose rows come
again in the next one; rows are recognized by their primary key.
"""

from __future__ import annotations

import asyncio
import gzip
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from asyncpg import Connection

from shared.bus.archive.store import ObjectStore
from shared.projections import cursor
from shared.projections.project import SHARE

NAME = "job_event"
JOBS = 2_000
"""Jobs of one batch: about 15,000 rows."""
DAY_MS = 86_400_000
LEDGERS = ("admission", "placement")
"""Ledgers of jobs. Their time does not follow a step of their host's clock (decision 0052)."""
GZIP_LEVEL = 6

ENDED = """
(SELECT job_id, ended_at FROM job_placement WHERE ended_at > 0
UNION ALL
SELECT a.job_id, a.decided_at FROM job_admission a
WHERE a.state IN ('rejected', 'cancelled')
AND NOT EXISTS (SELECT FROM job_placement p WHERE p.job_id = a.job_id)) ended
"""
"""Jobs that have ended, also those that were never placed, with the time of it."""
MARK = "SELECT before_at, leaving_at, files, row_count FROM retention WHERE name = $1"
FIRST = f"SELECT min(ended_at) FROM {ENDED} WHERE ended_at >= $1 AND ended_at < $2"  # noqa: S608
LEAVING = f"""
SELECT job_id FROM {ENDED} WHERE ended_at >= $1 AND ended_at < $2
AND EXISTS (SELECT FROM job_event e WHERE e.job_id = ended.job_id) ORDER BY job_id LIMIT $3
"""  # noqa: S608
DELETE = "DELETE FROM job_event WHERE job_id = ANY($1) RETURNING *"
STORE = """
INSERT INTO retention (name, before_at, leaving_at, files, row_count) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE SET before_at = excluded.before_at,
leaving_at = excluded.leaving_at, files = excluded.files, row_count = excluded.row_count
"""


class Mark(NamedTuple):
    """The time up to which the histories of jobs have left; times are in ms."""

    before_at: int = 0
    """All histories of jobs that ended before have left."""
    leaving_at: int = 0
    """Those of jobs that ended before have left or are leaving: the end of a month."""
    files: int = 0
    row_count: int = 0
    """Rows that have left, ever."""


async def read_mark(conn: Connection, table: str = NAME) -> Mark:
    row = await conn.fetchrow(MARK, table)
    return Mark() if row is None else Mark(*row)


async def store_mark(conn: Connection, mark: Mark, table: str = NAME) -> None:
    await conn.execute(STORE, table, *mark)


async def newest_ms(conn: Connection, now_ms: int) -> int:
    """Return the time of the ledgers of jobs or of the host, whichever is earlier."""
    cursors = (await cursor.read(conn)).items()
    newest = max((c.at for (ledger, _), c in cursors if ledger in LEDGERS), default=0)
    return min(newest, now_ms)


async def export(
    conn: Connection, exports: ObjectStore, table: str, end: int, query: str, *args: object
) -> int:
    """Write the rows that a query deletes into a file of the month that ends then.

    Return their number; without rows there is no file.
    """
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=GZIP_LEVEL, mtime=0) as out:

        async def write(data: bytes) -> None:
            await asyncio.to_thread(out.write, data)

        status = await conn.copy_from_query(query, *args, output=write, format="csv", header=True)
    rows = int(status.rpartition(" ")[2])
    if rows:
        body = packed.getvalue()
        await asyncio.to_thread(exports.put_new, file_name(table, end, body), body)
    return rows


@dataclass(frozen=True, slots=True)
class Retention:
    """Histories of ended jobs are kept for `days`, and then until the end of their month."""

    exports: ObjectStore
    days: float

    async def step(self, conn: Connection, now_ms: int) -> bool:
        """Let one batch of jobs, or an empty month, leave; return whether more may be due.

        Neither a clock of a ledger that is ahead nor `now_ms`, that of this host, removes anything:
        the earlier one counts. Raises ArchiveUnreachable: then nothing has left.
        """
        async with conn.transaction():
            await conn.execute(SHARE)
            mark = await read_mark(conn)
            end = mark.leaving_at
            if end <= mark.before_at:
                end = await self._next_month(conn, mark.before_at, now_ms)
            if not end:
                return False
            jobs = await conn.fetch(LEAVING, mark.before_at, end, JOBS)
            if jobs:
                ids = [job["job_id"] for job in jobs]
                rows = await export(conn, self.exports, NAME, end, DELETE, ids)
                mark = mark._replace(files=mark.files + 1, row_count=mark.row_count + rows)
            before_at = mark.before_at if jobs else end
            await store_mark(conn, mark._replace(before_at=before_at, leaving_at=end))
        return True

    async def _next_month(self, conn: Connection, begin: int, now_ms: int) -> int:
        """Return the end of the next month of which jobs are due, ms; 0 if there is none."""
        limit = month_begin(await newest_ms(conn, now_ms) - round(self.days * DAY_MS))
        first = await conn.fetchval(FIRST, begin, limit)
        return 0 if first is None else month_end(first)


def file_name(table: str, end: int, body: bytes) -> str:
    """Return the name of a file of the month that ends then; it names its content."""
    return f"{folder_of(end - 1, table)}{sha256(body).hexdigest()[:16]}.csv.gz"


def folder_of(ended_at: int, table: str = NAME) -> str:
    """Return the folder of the archive with the rows of the jobs that ended in that month."""
    return f"read-models/{table}/{_utc(ended_at).strftime('%Y-%m')}/"


def month_begin(at_ms: int) -> int:
    """Return the first ms of the month of that time, in UTC."""
    return _ms(_utc(max(at_ms, 0)).replace(day=1, hour=0, minute=0, second=0, microsecond=0))


def month_end(at_ms: int) -> int:
    """Return the first ms of the month after that of that time."""
    begin = _utc(month_begin(at_ms))
    return _ms((begin + timedelta(days=32)).replace(day=1))


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
