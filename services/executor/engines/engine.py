"""The contract of an engine's shell: its calls, which any backend of an engine provides.

What they mean is in `services/executor/core/engines/contract.py`, and what a backend has to pass in
`tests/services/executor/conformance`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from services.executor.core.engines.contract import Action, EngineState
from services.executor.core.engines.gangs import EngineGang
from shared.contracts.failures import Failure
from shared.contracts.nodes import Backend


class EngineAway(Exception):
    """The engine does not answer: nothing is known of it, and nothing may be concluded."""


class OutputUnreadable(Exception):
    """The output of one worker cannot be read now; the text says why."""


class Engine(Protocol):
    """An engine of the site, which holds what runs on its nodes, whatever becomes of Berth."""

    @property
    def backend(self) -> Backend: ...

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep up what it watches until cancelled; an engine that watches nothing returns.

        It may call `changed` where a look at once would show something new.
        """
        ...

    def refusal(self, gang: EngineGang) -> Failure | None:
        """Return why the engine cannot run such a gang; None if it can."""
        ...

    async def observe(self, identities: Collection[str]) -> EngineState:
        """Look at all nodes and jobs, and at the progress of these gangs. Raises EngineAway."""
        ...

    async def act(self, action: Action) -> Failure | None:
        """Carry out an action, which may have been carried out before; return why it is refused.

        Raises EngineAway where it is unknown whether it was carried out.
        """
        ...

    async def read_output(self, identity: str, rank: int, offset: int) -> bytes | None:
        """Return output of a worker from that byte on, some of it; empty if there is none yet.

        None where the rest of a worker that has ended is not there yet, or it is not known yet
        whether there is more. It waits for nothing that may take long. Raises OutputUnreadable,
        after which it is tried again with growing pauses.
        """
        ...
