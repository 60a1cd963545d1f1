"""One pool of agents: the fold of its ledger, and the relays to `reports` and `heartbeats`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import NamedTuple

from aiokafka.errors import KafkaError

from services.executor.agents.relay import Relay
from services.executor.core.agents.evolve import end_record, evolve
from services.executor.core.agents.state import AgentPool
from services.executor.envelope import ExecutorMessage, wrap_message
from services.executor.pool_ledger import LEDGER, PoolLedger
from services.executor.settings import ExecutorSettings
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
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
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import Metrics

BEHIND_AFTER_S = 10.0
"""A lane that has not read its ledger to the end for so long gives no orders."""
FRESH_EVERY_S = 2.0
HEARTBEAT_WINDOW_S = 0.1
SOFT_WINDOW_S = 0.1
MAX_HEARTBEATS = 4096
MAX_REPORTS = 4096
MAX_RECORD_BYTES = 640 * 1024
"""Reports of one record as received; restated they grow, and the broker takes a mebibyte."""

READ_ERRORS = (TimeoutError, KafkaError, OutcomeUnknown, OSError)
"""Errors of reading a ledger to its end while the broker is away."""

log = logging.getLogger(__name__)


class NodeHeartbeat(NamedTuple):
    """One heartbeat of a node."""

    node_id: str
    incarnation: str
    sent_boot_ms: int


class AgentLane:
    """Folds the lane's ledger while `run` runs; `wake` gets the nodes with new orders."""

    def __init__(
        self,
        settings: ExecutorSettings,
        pool: PoolConfigured,
        connect: Callable[[], Log],
        metrics: Metrics,
        wake: Callable[[Iterable[str]], None],
    ) -> None:
        self.pool = pool.pool
        self.state = AgentPool(pool.partition)
        self.caught_up = asyncio.Event()
        self._executor_id = settings.executor_id
        self._wake = wake
        self._logs = [connect() for _ in range(3)]
        partition = pool.partition
        snapshots: Snapshots[AgentPool] = Snapshots(
            settings.folder, LEDGER, partition, key_of_state(AgentPool)
        )
        self._ledger = PoolLedger(self._logs[0], partition, snapshots, metrics)
        self._fresh_s = monotonic()
        self._reports: Relay[tuple[Report, ...]] = Relay(
            self._logs[1],
            TP("reports", partition),
            self._encode_reports,
            window_s=settings.report_window_ms / 1000,
            max_count=MAX_REPORTS,
            max_bytes=MAX_RECORD_BYTES,
        )
        self._heartbeats: Relay[NodeHeartbeat] = Relay(
            self._logs[2],
            TP("heartbeats", partition),
            self._encode_heartbeats,
            window_s=HEARTBEAT_WINDOW_S,
            max_count=MAX_HEARTBEATS,
            max_bytes=None,
        )

        self._checkpoints: Relay[tuple[WorkerCheckpointed, ...]] = Relay(
            self._logs[1],
            TP("reports", partition),
            self._encode_checkpoints,
            window_s=SOFT_WINDOW_S,
            max_count=MAX_REPORTS,
            max_bytes=None,
        )

        self._progress: Relay[tuple[WorkerProgressed, ...]] = Relay(
            self._logs[1],
            TP("reports", partition),
            self._encode_progress,
            window_s=SOFT_WINDOW_S,
            max_count=MAX_REPORTS,
            max_bytes=None,
        )

        self._problems: Relay[tuple[ReportedProblem, ...]] = Relay(
            self._logs[1],
            TP("reports", partition),
            self._encode_problems,
            window_s=SOFT_WINDOW_S,
            max_count=MAX_REPORTS,
            max_bytes=None,
        )

    @property
    def partition(self) -> int:
        return self.state.partition

    def ledger_ms(self) -> int:
        """Return the time of the ledger, ms."""
        return self._ledger.now_ms()

    def is_fresh(self) -> bool:
        """Return whether the ledger was read to its end lately."""
        return monotonic() - self._fresh_s <= BEHIND_AFTER_S

    async def report(self, reports: tuple[Report, ...], size_bytes: int) -> None:
        """Return once the broker has the reports; raises as `Relay.put`."""
        await self._reports.put(reports, size_bytes, len(reports))

    def post_checkpoints(self, checkpoints: tuple[WorkerCheckpointed, ...]) -> None:
        """Pass on checkpoints, in a record of their own; they may be lost."""
        self._checkpoints.post(checkpoints, len(checkpoints))

    def post_progress(self, progress: tuple[WorkerProgressed, ...]) -> None:
        """Pass on how far workers are, in a record of its own; it may be lost."""
        self._progress.post(progress, len(progress))

    def post_problems(self, problems: tuple[ReportedProblem, ...]) -> None:
        """Pass on problems of a node, in a record of its own; it may be lost."""
        self._problems.post(problems, len(problems))

    async def send_heartbeat(self, heartbeat: NodeHeartbeat) -> None:
        """Return once the broker has the heartbeat; raises as `Relay.put`."""
        await self._heartbeats.put(heartbeat)

    async def run(self) -> None:
        """Fold to the present end, then read, relay and store snapshots until cancelled."""
        try:
            self.state = self._ledger.restore() or self.state
            await self._ledger.start()
            while not self._ledger.caught_up:
                self._fold(await self._ledger.poll())
            self._fresh_s = monotonic()
            self.caught_up.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read())
                group.create_task(self._keep_fresh())
                group.create_task(self._ledger.keep_snapshots(lambda: self.state))
                group.create_task(self._reports.run())
                group.create_task(self._checkpoints.run())
                group.create_task(self._progress.run())
                group.create_task(self._problems.run())
                group.create_task(self._heartbeats.run())
        finally:
            await self._ledger.stop()
            for client in self._logs[1:]:
                await client.stop()

    async def read_to_end(self) -> None:
        """Return once all is folded that the ledger holds now. Raises as `READ_ERRORS`."""
        async with asyncio.timeout(BEHIND_AFTER_S):
            end = await self._ledger.end()
            while self._ledger.next < end:
                await asyncio.sleep(0.01)

    async def behind(self) -> dict[TP, int]:
        """Return the number of records that are not folded yet."""
        return await self._ledger.behind()

    async def _read(self) -> None:
        while True:
            self._fold(await self._ledger.poll())

    async def _keep_fresh(self) -> None:
        """Read the ledger's end from the broker; the fold is fresh once it has reached it."""
        while True:
            requested_s = monotonic()
            try:
                await self.read_to_end()
                self._fresh_s = requested_s
            except READ_ERRORS as error:
                log.warning("ledger not read to its end", extra={"error": repr(error)})
            await asyncio.sleep(FRESH_EVERY_S)

    def _fold(self, batch: list[Accepted]) -> None:
        nodes = set[str]()
        for accepted in batch:
            nodes |= self._fold_record(accepted)
        if nodes:
            self._wake(nodes)

    def _fold_record(self, accepted: Accepted) -> set[str]:
        record, nodes = accepted.record, set[str]()
        events = record.events()
        for fact in self._ledger.facts(record, events):
            nodes |= evolve(self.state, fact)
        end_record(self.state, record.seq, len(events), record.w)
        return nodes

    def _encode_reports(self, requests: Sequence[tuple[Report, ...]]) -> bytes:
        reports = tuple(report for request in requests for report in request)
        return self._record(ExecutorReported(executor_id=self._executor_id, reports=reports))

    def _encode_checkpoints(self, requests: Sequence[tuple[WorkerCheckpointed, ...]]) -> bytes:
        checkpoints = tuple(checkpoint for request in requests for checkpoint in request)
        return self._record(
            CheckpointsReported(executor_id=self._executor_id, checkpoints=checkpoints)
        )

    def _encode_progress(self, requests: Sequence[tuple[WorkerProgressed, ...]]) -> bytes:
        progress = tuple(one for request in requests for one in request)
        return self._record(ProgressReported(executor_id=self._executor_id, progress=progress))

    def _encode_problems(self, requests: Sequence[tuple[ReportedProblem, ...]]) -> bytes:
        problems = tuple(one for request in requests for one in request)
        return self._record(NodeProblemsReported(executor_id=self._executor_id, problems=problems))

    def _encode_heartbeats(self, heartbeats: Sequence[NodeHeartbeat]) -> bytes:
        nodes = {
            heartbeat.node_id: Alive(
                incarnation=heartbeat.incarnation, sent_boot_ms=heartbeat.sent_boot_ms
            )
            for heartbeat in heartbeats
        }
        return self._record(Heartbeats(executor_id=self._executor_id, nodes=nodes))

    def _record(self, message: ExecutorMessage) -> bytes:
        return wrap_message(self._executor_id, message, pool=self.pool)
