"""Local inputs: messages of the shell to its own decider, each with a future for its facts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import inf

from shared.bus.ids import new_id
from shared.contracts.base import Command, Event, Local, Model
from shared.contracts.rejected import InputQuarantined
from shared.ledger.decider import Fact, Input
from shared.ledger.errors import Busy, LaneRevoked, Quarantined

MAX_LOCALS = 10_000


@dataclass(slots=True, eq=False)
class LocalInput:
    """A local input and the future that gets its facts."""

    input: Input
    facts: asyncio.Future[list[Fact]]
    offered_s: float = inf
    begun: list[Fact] = field(default_factory=list)
    """Facts of an answer that goes on in the next record."""

    def answer(self, facts: list[Fact]) -> None:
        """Resolve the future; the sender of a command that was quarantined gets Quarantined."""
        is_quarantined = any(isinstance(fact.event, InputQuarantined) for fact in facts)
        if is_quarantined and isinstance(self.input.message, Command):
            self.facts.set_exception(Quarantined(f"{self.input.message.TYPE} {self.input.id}"))
        else:
            self.facts.set_result(facts)


class LocalInputs:
    """The undecided local inputs of a lane, in order; bounded."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._waiting: deque[LocalInput] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest_s(self) -> float:
        """Return when the oldest was offered; infinite without any."""
        return self._waiting[0].offered_s if self._waiting else inf

    def add(
        self, message: Input | Event | Command | Model, offered_s: float = inf
    ) -> asyncio.Future[list[Fact]]:
        """Queue a message; raises Busy when too many are queued."""
        if len(self._waiting) >= MAX_LOCALS:
            raise Busy(f"{self._lane}: {MAX_LOCALS} local inputs pending")
        item = message if isinstance(message, Input) else Input("local", new_id(), message)
        local = LocalInput(item, asyncio.get_running_loop().create_future(), offered_s)
        self._waiting.append(local)
        return local.facts

    def add_first(self, message: Local) -> None:
        """Queue a message of the lane itself, which is decided before all others."""
        facts: asyncio.Future[list[Fact]] = asyncio.get_running_loop().create_future()
        self._waiting.appendleft(LocalInput(Input("local", new_id(), message), facts))

    def oldest(self, limit: int) -> list[LocalInput]:
        """Return the oldest inputs, without removing them."""
        return list(islice(self._waiting, limit))

    def resolve(self, decided: Iterable[LocalInput], facts: list[Fact]) -> None:
        """Remove decided inputs and resolve each with the facts that it caused."""
        by_cause: dict[str, list[Fact]] = {}
        for fact in facts:
            by_cause.setdefault(fact.cause, []).append(fact)
        for local in decided:
            self._waiting.remove(local)
            if not local.facts.done():
                local.answer([*local.begun, *by_cause.get(local.input.id, ())])

    def note_begun(self, facts: list[Fact]) -> None:
        """Keep the facts of undecided inputs: the rest of their answer is in the next record."""
        if self._waiting:
            causes = {local.input.id: local for local in self._waiting}
            for fact in facts:
                if fact.cause in causes:
                    causes[fact.cause].begun.append(fact)

    def resolve_causes(self, facts: list[Fact]) -> None:
        """Resolve the inputs that caused any of these facts."""
        causes = {fact.cause for fact in facts}
        self.resolve([local for local in self._waiting if local.input.id in causes], facts)

    def abandon(self) -> None:
        """Fail the undecided inputs: the lane is revoked."""
        for local in self._waiting:
            if not local.facts.done():
                local.facts.set_exception(LaneRevoked(f"{self._lane} was revoked"))
        self._waiting.clear()
