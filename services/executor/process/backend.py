"""Runs workers as process groups: prepare, start, watch, stop, and sweep what they leave."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from services.executor.backends import OutcomeHandler
from services.executor.core.effects import Prepared, PrepareFailed, WorkerEnded, WorkerSpec
from services.executor.process.environment import LaunchRefused
from services.executor.process.folders import WorkerFolders
from services.executor.process.group import kill_each, left_behind, signal_group
from services.executor.process.group import status as status_of
from services.executor.process.journal import Journal, JournalEntry
from services.executor.process.launch import Launch, LaunchSettings, code_of, prepare, start
from services.executor.process.lines import LineTail
from shared.contracts.reports import LogLines

GONE_EVERY_S = 0.02

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkerProcess:
    """A started worker, until nothing of it is left."""

    launch: Launch
    process: subprocess.Popen[bytes]
    started_s: float
    tail: LineTail
    kill: asyncio.TimerHandle | None = None
    requested: bool = False


class ProcessBackend:
    """Single-threaded. `on_outcome` takes every outcome, `print_lines` the output of workers."""

    def __init__(
        self,
        place: LaunchSettings,
        journal: Journal,
        on_outcome: OutcomeHandler,
        print_lines: Callable[[str, LogLines], None],
    ) -> None:
        self._place = place
        self._journal = journal
        self._on_outcome = on_outcome
        self._print = print_lines
        self._homes = WorkerFolders(place.work)
        self._prepared: dict[str, Launch] = {}
        self._running: dict[str, WorkerProcess] = {}
        self._ended: dict[str, Launch] = {}
        self._sweeps: set[asyncio.Task[None]] = set()

    def prepare(self, spec: WorkerSpec) -> None:
        try:
            launch = prepare(self._place, spec, secrets.token_hex(16), self._free_uid())
        except LaunchRefused as refusal:
            self._on_outcome(PrepareFailed(spec.allocation_id, str(refusal)))
            return
        self._homes.reuse(launch.home)
        self._prepared[spec.allocation_id] = launch
        self._on_outcome(Prepared(spec.allocation_id))

    def start(self, allocation_id: str) -> None:
        launch = self._prepared.pop(allocation_id)
        self._journal.write(JournalEntry(allocation_id, "starting", launch.token))
        try:
            process, output = start(launch)
        except OSError as error:
            log.warning("worker cannot start", extra={"job_id": launch.spec.job_id})
            self._finish(launch, code_of(error), 0, requested=False)
            return
        status = status_of(process.pid)
        ticks = status.started_ticks if status else 0
        self._journal.write(
            JournalEntry(allocation_id, "running", launch.token, process.pid, ticks)
        )
        running = WorkerProcess(launch, process, monotonic(), LineTail(output))
        self._running[allocation_id] = running
        self._watch(running)

    def stop(self, allocation_id: str, grace_s: float) -> None:
        running = self._running.get(allocation_id)
        if running is None:
            self._stop_unstarted(allocation_id)
            return
        running.requested = True
        if grace_s > 0:
            self._signal(running, signal.SIGTERM)
        self._kill_in(running, grace_s)

    def forget(self, allocation_id: str) -> None:
        """Drop the record of a worker's end; its directory is kept for a while."""
        launch = self._ended.pop(allocation_id, None)
        self._journal.forget(allocation_id)
        if launch is not None:
            self._homes.add(launch.home)

    def print_new(self) -> None:
        """Pass on the lines printed since the last call."""
        for running in self._running.values():
            self._hand_out(running, *running.tail.poll())

    async def close(self) -> None:
        """Kill what still runs, and wait until it is gone."""
        for running in self._running.values():
            running.requested = True
            self._kill_in(running, 0.0)
        while self._running:
            await asyncio.sleep(GONE_EVERY_S)

    def _stop_unstarted(self, allocation_id: str) -> None:
        if allocation_id in self._ended:
            return
        launch = self._prepared.pop(allocation_id, None)
        if launch is not None:
            shutil.rmtree(launch.home, ignore_errors=True)
        self._on_outcome(WorkerEnded(allocation_id, None))

    def _kill_in(self, running: WorkerProcess, grace_s: float) -> None:
        """Kill after the grace, or at the end of an earlier grace if that is sooner."""
        loop = asyncio.get_running_loop()
        if running.kill is not None:
            grace_s = min(grace_s, max(0.0, running.kill.when() - loop.time()))
            running.kill.cancel()
        running.kill = loop.call_later(grace_s, self._signal, running, signal.SIGKILL)

    def _signal(self, running: WorkerProcess, number: signal.Signals) -> None:
        """Signal the group; until the leader is reaped, its number is not reused."""
        if running.process.returncode is None:
            signal_group(running.process.pid, number)

    def _watch(self, running: WorkerProcess) -> None:
        descriptor = os.pidfd_open(running.process.pid)
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, self._on_end, descriptor, running)

    def _on_end(self, descriptor: int, running: WorkerProcess) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        ran_ms = round((monotonic() - running.started_s) * 1000)
        sweep = asyncio.ensure_future(self._sweep(running, ran_ms))
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._swept)

    async def _sweep(self, running: WorkerProcess, ran_ms: int) -> None:
        """Kill what the leader left; the GPUs are free only when nothing of the worker lives."""
        launch = running.launch
        while pids := left_behind(launch.token, running.process.pid):
            kill_each(pids)
            await asyncio.sleep(GONE_EVERY_S)
        code = running.process.wait()
        if running.kill is not None:
            running.kill.cancel()
        self._hand_out(running, *running.tail.finish())
        del self._running[launch.spec.allocation_id]
        self._finish(launch, code if code >= 0 else 128 - code, ran_ms, running.requested)

    def _swept(self, sweep: asyncio.Task[None]) -> None:
        self._sweeps.discard(sweep)
        if not sweep.cancelled() and (error := sweep.exception()) is not None:
            sweep.get_loop().call_exception_handler(
                {"message": "a worker's end could not be handled", "exception": error}
            )

    def _finish(self, launch: Launch, exit_code: int, ran_ms: int, requested: bool) -> None:
        """Write the end to disk before it is reported: a restart must be able to repeat it."""
        allocation_id = launch.spec.allocation_id
        state: Literal["stopped", "ended"] = "stopped" if requested else "ended"
        self._journal.write(
            JournalEntry(allocation_id, state, launch.token, exit_code=exit_code, ran_ms=ran_ms)
        )
        launch.close_home()
        self._ended[allocation_id] = launch
        self._on_outcome(WorkerEnded(allocation_id, exit_code, ran_ms))

    def _hand_out(self, running: WorkerProcess, first: int, lines: tuple[str, ...]) -> None:
        spec = running.launch.spec
        if lines:
            self._print(
                spec.allocation_id,
                LogLines(
                    job_id=spec.job_id,
                    tenant=spec.tenant,
                    rank=spec.rank,
                    attempt=spec.attempt,
                    first_line=first,
                    lines=lines,
                ),
            )

    def _free_uid(self) -> int | None:
        if not self._place.own_uids:
            return None
        launches = [*self._prepared.values(), *(r.launch for r in self._running.values())]
        used = {launch.uid for launch in launches}
        first, count = self._place.uid_first, self._place.uid_count
        return next((uid for uid in range(first, first + count) if uid not in used), None)
