"""Real processes in a folder of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from services.executor.core.effects import WorkerEnded, WorkerOutcome, WorkerSpec
from services.executor.process.backend import ProcessBackend
from services.executor.process.journal import Journal
from services.executor.process.launch import LaunchSettings
from shared.contracts.jobs import JobSpec
from shared.contracts.reports import LogLines
from tests.services.executor.facts import worker_spec

PATIENCE_S = 90.0


class Bench:
    """A backend with its journal, outcomes and output."""

    def __init__(self, folder: Path, place: LaunchSettings) -> None:
        self.place = place
        self.journal = Journal(folder / "journal")
        self.outcomes: list[WorkerOutcome] = []
        self.printed: list[LogLines] = []
        self._reported = asyncio.Event()
        self.backend = ProcessBackend(
            place, self.journal, self._report, lambda _, lines: self.printed.append(lines)
        )

    def worker_of(self, script: str, allocation_id: str = "0/1/0/0", **more: object) -> WorkerSpec:
        """Return a worker that runs a line of shell."""
        env = more.pop("env", {})
        spec = JobSpec.model_validate(
            {"name": "t", "command": ("/bin/sh", "-c", script), "env": env}
        )
        job = f"job-{allocation_id.replace('/', '.')}"
        return worker_spec(allocation_id, spec, job=job)._replace(**more)  # type: ignore[arg-type]

    def start(self, script: str, allocation_id: str = "0/1/0/0", **more: object) -> WorkerSpec:
        worker = self.worker_of(script, allocation_id, **more)
        self.backend.prepare(worker)
        self.backend.start(worker.allocation_id)
        return worker

    async def end(self, allocation_id: str = "0/1/0/0") -> WorkerEnded:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for outcome in self.outcomes:
                    if isinstance(outcome, WorkerEnded) and outcome.allocation_id == allocation_id:
                        return outcome
                self._reported.clear()
                await self._reported.wait()

    def home(self, worker: WorkerSpec) -> Path:
        return self.place.work / f"{worker.job_id}.{worker.attempt}.{worker.rank}"

    async def line(self, worker: WorkerSpec, prefix: str) -> str:
        """Wait for a line of the worker's output with that prefix, and return it."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                text = (self.home(worker) / "output.log").read_text(errors="replace")
                for line in text.splitlines():
                    if line.startswith(prefix):
                        return line
                await asyncio.sleep(0.01)

    def output(self, worker: WorkerSpec) -> str:
        return (self.home(worker) / "output.log").read_text()

    def _report(self, outcome: WorkerOutcome) -> None:
        self.outcomes.append(outcome)
        self._reported.set()


@pytest.fixture
async def make_bench(tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    """Return a function that makes a new executor's backend; all are closed at the end."""
    benches: list[Bench] = []

    def make(name: str = "a", **place: object) -> Bench:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        values = {"work": folder / "work", **place}
        benches.append(Bench(folder, LaunchSettings(**values)))  # type: ignore[arg-type]
        return benches[-1]

    yield make
    for bench in benches:
        await bench.backend.close()
        bench.journal.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
