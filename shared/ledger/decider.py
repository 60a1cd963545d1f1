"""A service as pure types that a core may import and a shell drives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from shared.contracts.base import Command, Event, Local, Model
from shared.contracts.rejected import InputRejected


class Decision(NamedTuple):
    """An event that a decider appends to its ledger, and what it follows from."""

    event: Event
    cause: str = ""
    traceparent: str = ""


class UnitStart(Decision):
    """The first decision of a unit: what was decided before stands without it.

    A record that is full ends before a unit. The input that the unit follows from is then not used
    up: it is decided again, and only what is still to do follows from it.
    """

    __slots__ = ()


class WakeStart(UnitStart):
    """The first decision of a unit that follows from the state alone, behind all inputs.

    Where a record ends before it, `next_wake` is still due.
    """

    __slots__ = ()


def as_unit(
    decisions: Iterator[Decision], start: type[UnitStart] = UnitStart
) -> Iterator[Decision]:
    """Mark the first of the decisions as the start of a unit."""
    for first in decisions:
        # `start(*first)` in less than its time.
        yield tuple.__new__(start, first)
        yield from decisions


class Fact(NamedTuple):
    """An event at its place in a ledger: it has happened."""

    event: Event
    ledger: str
    partition: int
    seq: int
    index: int  # type: ignore[assignment]  # hides a method of tuple
    at: int
    cause: str = ""
    traceparent: str = ""

    @property
    def place(self) -> str:
        """`partition/seq/index`; worker r of a placed job has the allocation `place/r`."""
        return f"{self.partition}/{self.seq}/{self.index}"

    @property
    def id(self) -> str:
        return f"{self.ledger}/{self.place}"


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Bytes of an input topic that are no message; the reader rejects them once, in its ledger."""

    topic: str
    partition: int
    offset: int
    reason: str
    sha256: str

    def rejection(self) -> InputRejected:
        """Return the one event that its reader decides about it."""
        return InputRejected(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            reason=self.reason,
            sha256=self.sha256,
        )


class Input(NamedTuple):
    """One thing that `decide` may react to."""

    source: str
    id: str
    message: Event | Command | Model | Local | Undecodable
    at: int = 0
    traceparent: str = ""
    subject: str = ""
    tenant: str = ""
    place: str = ""
    principal: str = ""
    """Sender of a command as the gateway authenticated it; empty for other inputs."""
    access_next: int = 0
    """How far its sender had read `access`: the inbox holds it back until this lane has too."""

    def decision(self, event: Event) -> Decision:
        """The decision that follows from this input; it inherits the trace."""
        return Decision(event, self.id, self.traceparent)


S = TypeVar("S")


class Decider(Protocol[S]):
    """A service's core.

    `decide` is a generator. The shell folds each yielded decision into `state` through `evolve`
    before it resumes the generator, so the lines after a `yield` see its effect; `decide` itself
    changes nothing. `evolve` never rejects: a fact has happened. Neither reads a clock, a random
    source, a file or the network: `now` is the record's `at`, in milliseconds.

    The answer to one input is bounded, or is made of units (`UnitStart`) that are.
    """

    ledger: str

    @property
    def consumed_events(self) -> frozenset[str] | None:
        """Wire names of the events of other ledgers that it reacts to; None: of all."""
        ...

    def initial(self, partition: int) -> S: ...

    def decide(self, state: S, inputs: Sequence[Input], now: int) -> Iterator[Decision]: ...

    def evolve(self, state: S, fact: Fact) -> None: ...

    def next_wake(self, state: S) -> int | None: ...
