"""Real processes in a folder of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from services.executor.core.orders import Ended, Order, Outcome
from services.executor.process.backend import ProcessBackend
from services.executor.process.journal import Journal
from services.executor.process.launch import Place
from shared.contracts.jobs import JobSpec
from shared.contracts.reports import LogLines
from tests.services.executor.facts import an_order

PATIENCE_S = 20.0


class Bench:
    """A backend, and all that it said."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.place = place
        self.journal = Journal(folder / "journal")
        self.outcomes: list[Outcome] = []
        self.printed: list[LogLines] = []
        self._told = asyncio.Event()
        self.backend = ProcessBackend(
            place, self.journal, self._tell, lambda _, lines: self.printed.append(lines)
        )

    def order(self, script: str, allocation_id: str = "0/1/0/0", **more: object) -> Order:
        """Runs a line of shell."""
        env = more.pop("env", {})
        spec = JobSpec.model_validate(
            {"name": "t", "command": ("/bin/sh", "-c", script), "env": env}
        )
        job = f"job-{allocation_id.replace('/', '.')}"
        return an_order(allocation_id, spec, job=job)._replace(**more)  # type: ignore[arg-type]

    def start(self, script: str, allocation_id: str = "0/1/0/0", **more: object) -> Order:
        order = self.order(script, allocation_id, **more)
        self.backend.prepare(order)
        self.backend.go(order.allocation_id)
        return order

    async def end(self, allocation_id: str = "0/1/0/0") -> Ended:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for outcome in self.outcomes:
                    if isinstance(outcome, Ended) and outcome.allocation_id == allocation_id:
                        return outcome
                self._told.clear()
                await self._told.wait()

    def home(self, order: Order) -> Path:
        return self.place.work / f"{order.job_id}.{order.attempt}.{order.rank}"

    async def line(self, order: Order, wanted: str) -> str:
        """Waits until the worker printed something that begins so."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                text = (self.home(order) / "output.log").read_text(errors="replace")
                for line in text.splitlines():
                    if line.startswith(wanted):
                        return line
                await asyncio.sleep(0.01)

    def output(self, order: Order) -> str:
        return (self.home(order) / "output.log").read_text()

    def _tell(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._told.set()


@pytest.fixture
async def make_bench(tmp_path: Path) -> AsyncIterator[Callable[..., Bench]]:
    """Each call is a new executor; all are closed at the end."""
    benches: list[Bench] = []

    def make(name: str = "a", **place: object) -> Bench:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        values = {"work": folder / "work", **place}
        benches.append(Bench(folder, Place(**values)))  # type: ignore[arg-type]
        return benches[-1]

    yield make
    for bench in benches:
        await bench.backend.close()
        bench.journal.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
