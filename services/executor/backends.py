"""What every way of running workers offers to the agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from services.executor.core.effects import WorkerOutcome, WorkerSpec

OutcomeHandler: TypeAlias = Callable[[WorkerOutcome], None]


class Backend(Protocol):
    """Called from the event loop only; outcomes may be told before a call returns."""

    def prepare(self, spec: WorkerSpec) -> None:
        """Answered by Ready or Refused."""
        ...

    def start(self, allocation_id: str) -> None:
        """Of a ready worker; answered by Ended, some day."""
        ...

    def stop(self, allocation_id: str, grace_s: float) -> None:
        """Answered by Ended; of a worker it never knew, too."""
        ...

    def forget(self, allocation_id: str) -> None: ...

    async def close(self) -> None:
        """Nothing is left running."""
        ...
