"""The LLM part of the demo: it begins once the first job is placed, and runs beside the jobs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cli.demo.engines import BATCH, ENGINES, MODEL, client_keys, configure_endpoint, start_engines
from cli.demo.llm_clients import ABUSIVE, POLITE, LlmClients
from cli.demo.llm_figures import LlmFigures
from cli.demo.options import ABUSER, TENANTS
from cli.replay.watch import LOOK_S, follow
from cli.stack.access_producer import send_to_access
from infra.supervisor.running import RunningStack

LEAST_ANSWERS = 5
"""Answers of each polite tenant before the demo may end."""

MOST_PASSED = ENGINES * BATCH
"""Starts of the abuser that a request of another tenant may have to let pass."""

SHOWN = 5


class LlmResult(NamedTuple):
    """The summary of the LLM part, and whether all was as it has to be."""

    good: bool
    summary: dict[str, object]


@dataclass(slots=True)
class LlmDemo:
    """Two engines, their endpoint, and five tenants that use it."""

    stack: RunningStack
    ports: Sequence[int]
    figures: LlmFigures = field(default_factory=lambda: LlmFigures(ABUSER))
    clients: LlmClients | None = None

    async def run(self, may_begin: Callable[[], bool]) -> None:
        """Run until cancelled; nothing starts before `may_begin`."""
        while not may_begin():
            await asyncio.sleep(LOOK_S)
        await asyncio.to_thread(start_engines, self.stack.data_dir)
        keys, commands = client_keys((*TENANTS, ABUSER))
        endpoint = configure_endpoint(self.ports)
        await send_to_access(self.stack.connection("operator"), [endpoint, *commands])
        self._store_key(keys[TENANTS[0]])
        habits = dict.fromkeys(TENANTS, POLITE) | {ABUSER: ABUSIVE}
        self.clients = LlmClients(self.stack.llm, str(self.stack.ca or ""), keys, habits)
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self.clients.run())]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def is_enough(self) -> bool:
        """Return whether each polite tenant has its answers, by client and ledger."""
        return self.clients is not None and all(
            min(self.clients.answered[name], self.figures.finished(name)) >= LEAST_ANSWERS
            for name in TENANTS
        )

    def verdict(self) -> LlmResult:
        """Return the figures; good if the polite were answered, and passed by no more than due."""
        failures = self.clients.failures if self.clients is not None else []
        passed_by = max(self.figures.passed_by, default=0)
        refused = [name for name in TENANTS if self.figures.refused(name)]
        good = self.is_enough and not failures and not refused and passed_by <= MOST_PASSED
        return LlmResult(good, {**self.figures.summary(), "failures": failures[:SHOWN]})

    def advice(self) -> list[str]:
        """Return the lines that say how to reach the endpoint."""
        return [f"LLM       {self.stack.llm}/v1   (model: {MODEL}; key: {self._key_file})"]

    async def _follow(self) -> None:
        connection, lanes = self.stack.connection("verify"), self.stack.partitions
        await follow(self.figures.see, connection, lanes, ("throttle",))

    @property
    def _key_file(self) -> Path:
        return self.stack.data_dir / f"{TENANTS[0]}.key"

    def _store_key(self, key: str) -> None:
        descriptor = os.open(self._key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(key + "\n")
