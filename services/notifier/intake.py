"""Reads accepted records from stored positions, and stores what is to be sent for them."""

from __future__ import annotations

from asyncpg import Connection

from services.notifier import store
from services.notifier.core.changes import (
    SPECIFYING,
    Change,
    Notification,
    changes_of,
    pool_of_lane,
    to_webhook,
    webhooks_for,
)
from services.notifier.core.jobs import WatchedJob, note, row_of, watched
from services.notifier.core.mail import to_mail
from services.notifier.core.order import CausalOrder
from services.notifier.core.pace import is_too_old
from shared.bus.clock import now_ms
from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.registry import AccessView
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.projections.source import cursor_after

POLL_S = 1.0
MAX_RECORDS = 1_000


class Intake:
    """Turns records of `access`, `admission` and `placement` into notifications.

    `view` is the present registry: a state change goes to the webhooks that exist now and were
    there when it happened. Without a stored position it reads from the beginning, and state changes
    of more than a day ago are not sent.
    """

    def __init__(
        self, conn: Connection, view: AccessView, *, base_url: str, sends_mail: bool
    ) -> None:
        self._conn = conn
        self._view = view
        self._base_url = base_url
        self._sends_mail = sends_mail
        self.dropped = 0

    async def open(self, log: Log, partitions: int) -> tuple[LedgerTail, CausalOrder]:
        """Return a reader at the stored positions. Raises TailLost where a ledger ends before."""
        positions = await store.read_positions(self._conn)
        ledgers = {"access": [0], **dict.fromkeys(("admission", "placement"), range(partitions))}
        tail = LedgerTail(log, ledgers, positions)
        await tail.start()
        return tail, CausalOrder({tp: cursor.seq for tp, cursor in positions.items()})

    async def take(self, records: list[Accepted]) -> int:
        """Store what follows from the records; return how many notifications that is."""
        if not records:
            return 0
        positions: dict[TP, Cursor] = {}
        changes: list[Change] = []
        for accepted in records:
            positions[TP(accepted.ledger, accepted.partition)] = cursor_after(accepted)
            pool = pool_of_lane(self._view, accepted.partition)
            changes += changes_of(accepted, pool)
        jobs = await self._jobs(changes)
        notifications = [item for change in changes for item in self._follow(change, jobs)]
        self.dropped += await store.save(self._conn, positions, notifications, jobs)
        return len(notifications)

    async def _jobs(self, changes: list[Change]) -> dict[str, WatchedJob]:
        if not self._sends_mail:
            return {}
        ids = {row_of(change.fields.job_id) for change in changes if change.fields.job_id}
        return await store.read_jobs(self._conn, ids) if ids else {}

    def _follow(self, change: Change, jobs: dict[str, WatchedJob]) -> list[Notification]:
        if change.kind in SPECIFYING:
            if self._sends_mail and (job := watched(change)) is not None:
                jobs.setdefault(job.job_id, job)
            return []
        old = is_too_old(change.at_ms, now_ms())
        hooks = webhooks_for(change, self._view)
        out = [to_webhook(change, hook, self._base_url) for hook in hooks]
        job = jobs.get(row_of(change.fields.job_id))
        if job is not None and change.state_change is not None:
            mailed = note(job, change.state_change)
            if mailed is not None and not change.fields.transferred_to:
                out.append(to_mail(job, change, mailed, self._base_url))
        return [] if old else out
