"""Sends the heartbeats of an executor's own nodes, and keeps the deadline of their workers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from services.executor.envelope import wrap_message
from services.executor.virtual.lease import HeartbeatLease
from services.executor.virtual.performer import Performer
from shared.bus.clock import boot_ms
from shared.bus.logs.log import Log
from shared.contracts.reports import Alive, Heartbeats
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

LONGEST_PAUSE_S = 1.0
HEARTBEATS_PER_LEASE = 5
CHECKS_PER_LEASE = 10

log = logging.getLogger(__name__)


class HeartbeatSender:
    """The heartbeats of one pool: one record in flight, and a lease on its acknowledgement."""

    def __init__(
        self,
        log: Log,
        tp: TP,
        executor_id: str,
        performer: Performer,
        has_reported: Callable[[], bool],
    ) -> None:
        self._log = log
        self._tp = tp
        self._executor_id = executor_id
        self._performer = performer
        self._has_reported = has_reported
        self._lease = HeartbeatLease(boot_s())

    def begin(self) -> None:
        """Begin the lease: the nodes are about to register."""
        self._lease.begin(boot_s())

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        while True:
            await self.send()
            await asyncio.sleep(min(LONGEST_PAUSE_S, self._lease_s / HEARTBEATS_PER_LEASE))

    async def send(self) -> None:
        """Send one heartbeat; its acknowledgement extends the lease."""
        sent_ms, epoch = boot_ms(), self._lease.epoch
        alive = {
            node_id: Alive(incarnation=incarnation, sent_boot_ms=sent_ms)
            for node_id, incarnation in self._performer.state.own_incarnations.items()
        }
        if not alive or self._has_passed():
            return
        try:
            await self._log.append(self._tp, self._record(alive))
        except OutcomeUnknown as error:
            log.warning("heartbeat not acknowledged", extra={"reason": str(error)})
            return
        self._lease.extend(epoch, sent_ms / 1000, boot_s(), self._lease_s)

    async def keep_lease(self) -> None:
        """Stop all workers whenever the deadline has passed, until cancelled."""
        while True:
            self.check()
            await asyncio.sleep(self._lease_s / CHECKS_PER_LEASE)

    def check(self) -> None:
        """Stop all workers and register anew if the deadline has passed.

        Without workers it waits until earlier registrations are acknowledged, so that they do not
        pile up while the broker is away.
        """
        state = self._performer.state
        is_due = bool(state.living_workers()) or (
            bool(state.own_incarnations) and self._has_reported()
        )
        if self._has_passed() and is_due:
            log.warning("no heartbeat acknowledged, stopping workers", extra={"lane": self._tp.key})
            self.begin()
            self._performer.rejoin()

    async def stop(self) -> None:
        await self._log.stop()

    @property
    def _lease_s(self) -> float:
        return self._performer.state.lease_s

    def _has_passed(self) -> bool:
        return self._lease.has_passed(boot_s(), self._lease_s)

    def _record(self, alive: dict[str, Alive]) -> bytes:
        message = Heartbeats(executor_id=self._executor_id, nodes=alive)
        return wrap_message(self._executor_id, message)


def boot_s() -> float:
    return boot_ms() / 1000
