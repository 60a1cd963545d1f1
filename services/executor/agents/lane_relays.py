"""The relays of one pool: what agents send goes on to `reports` and `heartbeats` in few records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from services.executor.agents.relay import Relay
from services.executor.envelope import ExecutorMessage, wrap_message
from services.executor.settings import ExecutorSettings
from shared.bus.logs.log import Log
from shared.contracts.node_problems import NodeProblemsReported, ReportedProblem
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import (
    Alive,
    CheckpointsReported,
    ExecutorReported,
    Heartbeats,
    ProgressReported,
    Report,
    WorkerCheckpointed,
    WorkerProgressed,
)
from shared.ledger.partition import TP

T = TypeVar("T")

HEARTBEAT_WINDOW_S = 0.1
SOFT_WINDOW_S = 0.1
MAX_HEARTBEATS = 4096
MAX_REPORTS = 4096
MAX_RECORD_BYTES = 640 * 1024
"""Reports of one record as received; restated they grow, and the broker takes a mebibyte."""


class NodeHeartbeat(NamedTuple):
    """One heartbeat of a node."""

    node_id: str
    incarnation: str
    sent_boot_ms: int | None
    """None: of an engine's node, whose executor may move to another machine; each one counts."""


class LaneRelays:
    """Reports and heartbeats wait for the broker; what else agents send may be lost."""

    def __init__(
        self, settings: ExecutorSettings, pool: PoolConfigured, reports: Log, heartbeats: Log
    ) -> None:
        self._logs = reports, heartbeats
        self._to_reports = TP("reports", pool.partition)
        name = settings.executor_id

        def encoder(
            message: Callable[[Sequence[T]], ExecutorMessage],
        ) -> Callable[[Sequence[T]], bytes]:
            return lambda items: wrap_message(name, message(items), pool=pool.pool)

        self.reports: Relay[tuple[Report, ...]] = Relay(
            reports,
            self._to_reports,
            encoder(lambda sent: ExecutorReported(executor_id=name, reports=joined(sent))),
            window_s=settings.report_window_ms / 1000,
            max_count=MAX_REPORTS,
            max_bytes=MAX_RECORD_BYTES,
        )
        self.heartbeats: Relay[NodeHeartbeat] = Relay(
            heartbeats,
            TP("heartbeats", pool.partition),
            encoder(lambda sent: Heartbeats(executor_id=name, nodes=nodes_of(sent))),
            window_s=HEARTBEAT_WINDOW_S,
            max_count=MAX_HEARTBEATS,
            max_bytes=None,
        )
        self.checkpoints: Relay[tuple[WorkerCheckpointed, ...]] = self._soft(
            encoder(lambda sent: CheckpointsReported(executor_id=name, checkpoints=joined(sent)))
        )
        self.progress: Relay[tuple[WorkerProgressed, ...]] = self._soft(
            encoder(lambda sent: ProgressReported(executor_id=name, progress=joined(sent)))
        )
        self.problems: Relay[tuple[ReportedProblem, ...]] = self._soft(
            encoder(lambda sent: NodeProblemsReported(executor_id=name, problems=joined(sent)))
        )

    def _soft(self, encode: Callable[[Sequence[T]], bytes]) -> Relay[T]:
        return Relay(
            self._logs[0],
            self._to_reports,
            encode,
            window_s=SOFT_WINDOW_S,
            max_count=MAX_REPORTS,
            max_bytes=None,
        )

    def start(self, group: asyncio.TaskGroup) -> None:
        """Append until the group ends."""
        group.create_task(self.reports.run())
        group.create_task(self.checkpoints.run())
        group.create_task(self.progress.run())
        group.create_task(self.problems.run())
        group.create_task(self.heartbeats.run())

    async def stop(self) -> None:
        for log in self._logs:
            await log.stop()


def joined(sent: Sequence[tuple[T, ...]]) -> tuple[T, ...]:
    """Return what several requests hold, in their order."""
    return tuple(chain.from_iterable(sent))


def nodes_of(heartbeats: Sequence[NodeHeartbeat]) -> dict[str, Alive]:
    """Return the newest heartbeat of each node."""
    return {
        heartbeat.node_id: Alive(
            incarnation=heartbeat.incarnation, sent_boot_ms=heartbeat.sent_boot_ms
        )
        for heartbeat in heartbeats
    }
