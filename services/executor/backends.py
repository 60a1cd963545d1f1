"""Interface of a backend: one way of running workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from services.executor.core.effects import WorkerOutcome, WorkerSpec

OutcomeHandler: TypeAlias = Callable[[WorkerOutcome], None]


class Backend(Protocol):
    """Called from the event loop only; outcomes may arrive before a call returns."""

    def prepare(self, spec: WorkerSpec) -> None:
        """Prepare a worker; the outcome is Prepared."""
        ...

    def start(self, allocation_id: str) -> None:
        """Start a prepared worker; the outcome is WorkerEnded, at its end."""
        ...

    def stop(self, allocation_id: str, grace_s: float) -> None:
        """Stop a worker, also an unknown one; the outcome is WorkerEnded."""
        ...

    def forget(self, allocation_id: str) -> None:
        """Drop the record of a worker's end."""
        ...

    async def close(self) -> None:
        """End all workers."""
        ...
