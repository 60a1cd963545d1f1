"""Faust as the host of the lanes: it spreads them over processes and delivers their inputs.

Nothing depends on its offsets or acknowledgements: the input vector of the ledger decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

import faust
from faust.tables.manager import TableManager
from faust.types import TP as FaustTP

from shared.bus.fatal import die, supervise
from shared.bus.hosting.faust_connection import faust_arguments
from shared.bus.hosting.faust_transport import HostBinding, transport
from shared.bus.hosting.lanes import Lanes
from shared.ledger.partition import TP
from shared.process.settings import Settings

SEEK_BACK_EVERY_S = 2.0
READY = "ready"
READY_EVERY_S = 1.0


class FaustHost:
    """One Faust app with one agent, which only delivers records to the lanes."""

    def __init__(
        self,
        service: str,
        topics: tuple[str, ...],
        lanes: Lanes[Any],
        *,
        settings: Settings,
        partitions: int,
        background: Callable[[Lanes[Any]], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self._lanes = lanes
        lanes.seek = self._seek
        self._background = background
        self._sought_at_s: dict[TP, float] = {}
        self._started = False
        self._ready_file = Path(settings.data) / f"{service}.{READY}"
        self.app = _app(service, settings, partitions)
        fixed = tuple(int(lane) for lane in settings.lanes.split(",") if lane)
        self.app.transport = transport(
            self.app,
            HostBinding(
                self.assign,
                self.deliver,
                lanes.is_open,
                fixed,
                not settings.idempotent,
                settings.window_ms,
            ),
        )
        self._subscribe(topics)

    def run(self) -> None:
        self._ready_file.parent.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        # A Faust worker that reaches no broker at its start ends at once.
        asyncio.run(self._lanes.reach())
        worker = faust.Worker(self.app, loglevel="WARN", override_logging=False, quiet=True)
        # The spinner is for terminals and would write into the log.
        worker.spinner = None
        worker.execute_from_commandline()

    async def assign(self, assigned: Iterable[TP]) -> Mapping[TP, int]:
        """Hold the lanes of these partitions; return the next offset of every input.

        Called whenever Faust is about to seek. Faust cancels it at the next rebalance; a fold that
        has begun is finished first.
        """
        return await asyncio.shield(asyncio.ensure_future(self._assign({tp[1] for tp in assigned})))

    async def _assign(self, lanes: set[int]) -> Mapping[TP, int]:
        try:
            if not self._started:
                self._started = True
                await self._start()
            return await self._lanes.assign(lanes)
        except Exception as error:
            die(error, "assignment of lanes")

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        """Declare an agent, so that Faust subscribes; `deliver` gets the records before it."""
        source = self.app.topic(*topics, value_type=bytes, value_serializer="raw")

        @self.app.agent(source, concurrency=1)  # type: ignore[untyped-decorator]
        async def on_input(stream: Any) -> None:
            async for event in stream.events():
                await self.deliver(event.message)

        self.app.on_partitions_assigned.connect(self._stand_by)
        self.app.on_before_shutdown.connect(self._stop)

    async def _stand_by(self, app: Any, assigned: Any, **_: Any) -> None:
        """Release all lanes when nothing is assigned, since Faust does not seek then."""
        if not assigned:
            await self.assign(())

    async def deliver(self, message: Any) -> None:
        """Deliver one record; an error ends the process, or Faust would acknowledge it."""
        try:
            tp = TP(message.topic, message.partition)
            delivery = await self._lanes.deliver(tp, message.offset, message.value)
            if delivery == "gap":
                await self._seek_back(tp, message.tp)
        except Exception as error:
            die(error, "delivery to a lane")

    async def _seek_back(self, tp: TP, faust_tp: Any) -> None:
        now_s = time.monotonic()
        if now_s - self._sought_at_s.get(tp, 0.0) < SEEK_BACK_EVERY_S:
            return
        self._sought_at_s[tp] = now_s
        offset = await self._lanes.resume_at(tp)
        if offset is not None:
            await self.app.consumer.seek(faust_tp, offset)

    async def _seek(self, tp: TP, offset: int) -> None:
        """Continue behind what a lane has read of the archive."""
        await self.app.consumer.seek(FaustTP(*tp), offset)

    async def _start(self) -> None:
        await self._lanes.start()
        supervise(self._report_ready(), "readiness")
        if self._background is not None:
            supervise(self._background(self._lanes), "background")

    async def _report_ready(self) -> None:
        """Keep the readiness file while the lanes are ready: it goes as soon as one is halted."""
        while True:
            await self._lanes.ready.wait()
            self._ready_file.touch()
            while self._lanes.ready.is_set():
                await asyncio.sleep(READY_EVERY_S)
            self._ready_file.unlink(missing_ok=True)

    async def _stop(self, *_: Any, **__: Any) -> None:
        self._ready_file.unlink(missing_ok=True)
        if self._started:
            await self._lanes.stop()


class NoTables(TableManager):  # type: ignore[misc]
    """Skips the second that Faust waits for declared tables before it subscribes."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


def _app(service: str, settings: Settings, partitions: int) -> Any:
    return faust.App(
        f"berth-{service}",
        **faust_arguments(settings.connection),
        store="memory://",
        datadir=str(settings.data / f"faust-{service}"),
        processing_guarantee="at_least_once",
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=settings.instance or None,
        broker_session_timeout=6,
        broker_heartbeat_interval=1,
        broker_commit_interval=1,
        stream_buffer_maxsize=1024,
        stream_wait_empty=False,
        TableManager=NoTables,
        table_standby_replicas=1,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=partitions,
        web_enabled=False,
        worker_redirect_stdouts=False,
    )
