"""Replays a workload into a running stack until every job has ended or time is up."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.demo.llm import LlmDemo
from cli.demo.memory import Peaks
from cli.errors import CliError, Unreachable
from cli.replay.feeder import Feeder, Timed
from cli.replay.progress import ReplayProgress
from cli.replay.screen import Screen, screen, shown
from cli.replay.submission import Submission
from cli.replay.watch import follow, until
from cli.stack.bring_up import own_api
from cli.text.output import report_line
from infra.machine.process import DidNotStart
from infra.supervisor import supervise
from infra.supervisor.running import RunningStack

READY_S = 180.0
RETRY_S = 0.5
TICK_S = 0.25
LOOK_EVERY = 8
"""Ticks between two samples of memory and liveness."""

GUARANTEED_GPUS = 64.0


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """Result of a replay; `missing` lists the jobs that did not end."""

    progress: ReplayProgress
    replayed: list[str]
    local: list[str]
    memory: Peaks
    stack: RunningStack
    missing: list[str]
    llm: LlmDemo | None


@dataclass(slots=True)
class Replaying:
    """A replay into a running stack."""

    stack: RunningStack
    due: Sequence[Timed]
    local: Sequence[Submission]
    nodes: int
    tenants: Sequence[str]
    speed: float
    timeout_s: float
    stays: bool
    advice: Sequence[str]
    llm: LlmDemo | None = None
    progress: ReplayProgress = field(default_factory=ReplayProgress)

    async def run(self) -> ReplayOutcome:
        """Run until all jobs have ended; with `stays` until cancelled."""
        replayed = [item.submission.job_id for item in self.due]
        local = [item.job_id for item in self.local]
        self.progress.expected = {*replayed, *local}
        memory = Peaks(self.stack.data_dir)
        feeder = Feeder(self.stack.connection("operator"), self.stack.partitions)
        watching = asyncio.ensure_future(
            follow(self.progress.see, self.stack.connection("verify"), self.stack.partitions)
        )
        tasks: list[asyncio.Future[None]] = [watching]
        try:
            await self._until_ready(watching)
            tasks += [asyncio.ensure_future(self._feed(feeder)), *self._begin_llm()]
            missing = await self._show(feeder, tasks, memory)
            return ReplayOutcome(
                self.progress, replayed, local, memory, self.stack, missing, self.llm
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin_llm(self) -> list[asyncio.Future[None]]:
        """Let the LLM requests begin with the first job that is placed: they must not delay it."""
        if self.llm is None:
            return []
        return [asyncio.ensure_future(self.llm.run(lambda: self.progress.first_placed_at > 0))]

    async def _until_ready(self, watching: asyncio.Future[None]) -> None:
        """Wait until the nodes have joined and the gateway accepts submissions."""
        port = self.stack.ports["gateway"]["metrics"]

        def is_ready() -> bool:
            joined = len(self.progress.nodes) >= self.nodes
            return watching.done() or (joined and supervise.is_ready(port))

        if not await until(is_ready, READY_S):
            raise CliError(self._not_ready())
        if watching.done():
            watching.result()

    def _not_ready(self) -> str:
        """Return one line on what is not ready."""
        not_ready = [item.name for item in supervise.status(self.stack.data_dir) if not item.ready]
        joined = len(self.progress.nodes)
        return (
            f"not ready after {READY_S:g} s: {joined} of {self.nodes} nodes joined; not ready: "
            f"{', '.join(not_ready) or 'none'}; logs are in {self.stack.data_dir / 'logs'}"
        )

    async def _feed(self, feeder: Feeder) -> None:
        await asyncio.to_thread(self._set_quotas)
        now = [Timed(0.0, item) for item in self.local]
        await feeder.run([*now, *self.due])

    def _set_quotas(self) -> None:
        """Set the quotas, again while the broker is too busy to take a command."""
        api, ends_s = own_api(self.stack), time.monotonic() + READY_S
        unset = list(self.tenants)
        while unset:
            try:
                api.post(f"/v1/tenants/{unset[-1]}/quota", {"guaranteed_gpus": GUARANTEED_GPUS})
                unset.pop()
            except Unreachable:
                if time.monotonic() > ends_s:
                    raise
                time.sleep(RETRY_S)

    async def _show(
        self, feeder: Feeder, tasks: Sequence[asyncio.Future[None]], memory: Peaks
    ) -> list[str]:
        ends_s = asyncio.get_running_loop().time() + self.timeout_s
        with screen(self.progress, self.speed) as view:
            for tick in itertools.count():
                await asyncio.sleep(TICK_S)
                self._update(view, feeder)
                if tick % LOOK_EVERY == 0:
                    memory.sample()
                    _still_runs(self.stack.data_dir)
                for task in tasks:
                    if task.done():
                        task.result()
                if not self.progress.missing() and (self.llm is None or self.llm.is_enough):
                    break
                if asyncio.get_running_loop().time() > ends_s:
                    return self.progress.missing()
        await self._stay()
        return []

    async def _stay(self) -> None:
        if not self.stays:
            return
        for line in self.advice:
            report_line(line)
        while True:
            await asyncio.sleep(1.0)
            _still_runs(self.stack.data_dir)

    def _update(self, view: Screen, feeder: Feeder) -> None:
        view.update(shown(self.progress, feeder.sent, len(self.progress.expected)))


def _still_runs(data_dir: Path) -> None:
    if not supervise.is_running(data_dir):
        raise DidNotStart(supervise.why_stopped(data_dir) or "stack stopped")
