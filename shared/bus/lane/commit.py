"""The last stage of a lane: append a record, and take its outcome from the log alone."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Generic, TypeVar

from shared.bus.clock import LedgerClock
from shared.bus.failpoints import Failpoints
from shared.bus.folds.fold import Fold, Replica
from shared.bus.inputs.inbox import Inbox
from shared.bus.logs.log import Log
from shared.ledger.errors import NotAccepted, OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.ledger.record import Record

S = TypeVar("S")

LOSSES_BEFORE_BACKING_OFF = 3
BACK_OFF_S = 1.0
IN_FLIGHT_S = 0.01

log = logging.getLogger(__name__)


async def send(client: Log, tp: TP, value: bytes, failpoints: Failpoints) -> int | None:
    """Append the bytes and return their offset; None when the outcome is unknown."""
    failpoints.hit("before_send")
    sending = asyncio.ensure_future(client.append(tp, value))
    if failpoints.due("in_flight"):
        await asyncio.sleep(IN_FLIGHT_S)
        failpoints.die()
    try:
        offset = await sending
    except OutcomeUnknown as error:
        log.warning("append of unknown outcome", extra={"lane": tp.key, "why": str(error)})
        return None
    failpoints.hit("after_ack")
    return offset


class Committer(Generic[S]):
    """Keeps the replica and the inbox of a lane equal to its ledger.

    `on_own` is called with each record of this lane that turns out to be accepted although its
    append seemed lost.
    """

    def __init__(
        self,
        replica: Replica[S],
        fold: Fold[S],
        inbox: Inbox,
        clock: LedgerClock,
        on_own: Callable[[Accepted], None],
    ) -> None:
        self.replica = replica
        self.writer = secrets.token_hex(6)
        self.losses = 0
        """Lost appends since the last one that won."""
        self.lost_appends = 0
        self._fold = fold
        self._inbox = inbox
        self._clock = clock
        self._on_own = on_own

    def accept(self, offset: int, record: Record) -> None:
        """Take our record, acknowledged where it was due; NotAccepted if the rule refuses it."""
        reader = self.replica.reader
        if reader.offer_record(offset, record) is None:
            lane = TP(reader.ledger, reader.partition).key
            raise NotAccepted(f"{lane}: our record at {offset} is against our own rule")
        self.losses = 0
        self.replica.records += 1
        self._clock.note_read()

    async def learn(self, record: Record) -> None:
        """Fold after a rival, a duplicate or a lost answer: only the log shows which counts."""
        self.lost_appends += 1
        if await self.refold(record.id):
            self.losses = 0
            return
        self.losses += 1
        if self.losses >= LOSSES_BEFORE_BACKING_OFF:
            await asyncio.sleep(BACK_OFF_S)

    async def refold(self, record_id: str = "") -> bool:
        """Fold the log anew; return whether it has accepted this record since the last fold."""
        won = False

        def see(accepted: Accepted) -> None:
            nonlocal won
            won = won or accepted.record.id == record_id
            if accepted.record.w == self.writer:
                self._on_own(accepted)

        self.replica = await self._fold.run(self.replica.cursor, see)
        self._clock.note_read()
        self._inbox.settle(self.replica.cursor.inputs)
        return won
