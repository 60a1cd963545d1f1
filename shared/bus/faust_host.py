"""Faust as the host of the lanes: it spreads them over processes and delivers their inputs.

Nothing depends on its offsets or acknowledgements: the input vector of the ledger decides.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

import faust
from faust.tables.manager import TableManager

from shared.bus.fatal import die, supervise
from shared.bus.faust_connection import faust_arguments
from shared.bus.faust_transport import Desk, transport
from shared.bus.lanes import Lanes
from shared.ledger.partition import TP
from shared.settings import Settings

SEEK_BACK_EVERY_S = 2.0
READY = "ready"

log = logging.getLogger(__name__)


class FaustHost:
    """One Faust app with one agent, which only hands records over."""

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
        self._background = background
        self._sought: dict[TP, float] = {}
        self._started = False
        self._ready_file = Path(settings.data) / f"{service}.{READY}"
        self.app = _app(service, settings, partitions)
        fixed = tuple(int(lane) for lane in settings.lanes.split(",") if lane)
        self.app.transport = transport(
            self.app,
            Desk(
                self.own,
                self.take,
                lanes.is_open,
                fixed,
                not settings.idempotent,
                settings.window_ms,
            ),
        )
        self._listen(topics)

    def run(self) -> None:
        self._ready_file.parent.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        # A Faust worker that meets no broker at its start ends at once.
        asyncio.run(self._lanes.reach())
        worker = faust.Worker(self.app, loglevel="WARN", override_logging=False, quiet=True)
        # It writes to the log for terminals, between our lines, and once for each of them.
        worker.spinner = None
        worker.execute_from_commandline()

    async def own(self, assigned: Iterable[TP]) -> Mapping[TP, int]:
        """Called whenever Faust is about to seek: who is ours, and where do they go on?

        Faust cancels it when the next rebalance comes; a fold that has begun is finished first.
        """
        return await asyncio.shield(asyncio.ensure_future(self._own({tp[1] for tp in assigned})))

    async def _own(self, lanes: set[int]) -> Mapping[TP, int]:
        try:
            if not self._started:
                self._started = True
                await self._start()
            return await self._lanes.assign(lanes)
        except Exception as error:
            die(error, "taking over lanes")

    def _listen(self, topics: tuple[str, ...]) -> None:
        """Faust subscribes for the agent; the records come to `take` before they would reach it."""
        source = self.app.topic(*topics, value_type=bytes, value_serializer="raw")

        @self.app.agent(source, concurrency=1)  # type: ignore[untyped-decorator]
        async def on_input(stream: Any) -> None:
            async for event in stream.events():
                await self.take(event.message)

        self.app.on_partitions_assigned.connect(self._stand_by)
        self.app.on_before_shutdown.connect(self._stop)

    async def _stand_by(self, app: Any, assigned: Any, **_: Any) -> None:
        """Faust does not seek where it was given nothing: what we held is another's from now on."""
        if not assigned:
            await self.own(())

    async def take(self, message: Any) -> None:
        """Nothing may escape: Faust would acknowledge the record all the same."""
        try:
            tp = TP(message.topic, message.partition)
            delivery = await self._lanes.deliver(tp, message.offset, message.value)
            if delivery == "gap":
                await self._seek_back(tp, message.tp)
        except Exception as error:
            die(error, "feeding a lane")

    async def _seek_back(self, tp: TP, faust_tp: Any) -> None:
        now = time.monotonic()
        if now - self._sought.get(tp, 0.0) < SEEK_BACK_EVERY_S:
            return
        self._sought[tp] = now
        want = self._lanes.next_offsets().get(tp)
        if want is not None:
            await self.app.consumer.seek(faust_tp, want)

    async def _start(self) -> None:
        await self._lanes.start()
        supervise(self._tell_ready(), "readiness")
        if self._background is not None:
            supervise(self._background(self._lanes), "background")

    async def _tell_ready(self) -> None:
        await self._lanes.ready.wait()
        self._ready_file.touch()

    async def _stop(self, *_: Any, **__: Any) -> None:
        self._ready_file.unlink(missing_ok=True)
        if self._started:
            await self._lanes.stop()


class NoTables(TableManager):  # type: ignore[misc]
    """Faust waits a second for tables to be declared, before it subscribes; we have none."""

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
