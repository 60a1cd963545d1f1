"""Backend `virtual`: workers take time on the pool's time scale, by one timer for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from services.executor.core.virtual.effects import Prepared, WorkerEnded, WorkerOutcome, WorkerSpec
from services.executor.core.virtual.injected import NodeSlowdown
from services.executor.core.virtual.workers import VirtualWorkers
from shared.contracts.reports import IterationTimes

GRAIN_S = 0.002
"""Ends that lie closer together are handled together."""


class VirtualBackend:
    """Called from the event loop only; outcomes may arrive before a call returns.

    `scale` returns the pool's cluster seconds per wall second, at each start of a worker.
    """

    def __init__(
        self,
        on_outcome: Callable[[WorkerOutcome], None],
        scale: Callable[[], float],
        slow: Mapping[str, float],
    ) -> None:
        self._on_outcome = on_outcome
        self._scale = scale
        self._workers = VirtualWorkers(slow, ends_at_walltime=True)
        self._timer: asyncio.TimerHandle | None = None

    def prepare(self, spec: WorkerSpec) -> None:
        self._workers.prepare(spec)
        self._on_outcome(Prepared(spec.allocation_id))

    def start(self, allocation_id: str) -> None:
        self._workers.start(allocation_id, _now_s(), self._scale())
        self._set_timer()

    def stop(self, allocation_id: str) -> None:
        self._on_outcome(self._workers.stop(allocation_id, _now_s()))

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def inject(self, slowdowns: Mapping[str, NodeSlowdown]) -> None:
        """Slow the workers on these nodes down, and end earlier injections on all others."""
        self._workers.inject(slowdowns, _now_s())
        self._set_timer()

    def iterations(self) -> list[IterationTimes]:
        return self._workers.iterations(_now_s())

    def _set_timer(self) -> None:
        due_s = self._workers.next_due_s
        if due_s is None:
            return
        if self._timer is not None:
            if self._timer.when() <= due_s + GRAIN_S:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(due_s, loop.time() + GRAIN_S), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        ended: list[WorkerEnded] = self._workers.take_due(_now_s())
        for end in ended:
            self._on_outcome(end)
        self._set_timer()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
