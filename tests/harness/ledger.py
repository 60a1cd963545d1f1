"""A small decider for the tests of the bus; its answers are random, so that a fork shows."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shared.bus.logs.log import Entry
from shared.contracts.base import Event
from shared.contracts.codec import encode
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_commands import CancelJob
from shared.contracts.rejected import InputRejected
from shared.ledger import cloudevents
from shared.ledger.decider import Decision, Fact, Input, Undecodable
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Reader

BURST = "burst "
ALARM = "alarm"
"""A job of this name causes one wake, a millisecond later."""


@dataclass(slots=True)
class Seats:
    """The holder of each seat. Two jobs on one seat, or a job answered twice, is a broken bus."""

    SCHEMA: ClassVar[str] = "seats1"
    taken: dict[int, str] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    wake_at: int | None = None

    def problems(self) -> list[str]:
        return [f"{id} answered {n} times" for id, n in self.answers.items() if n != 1]


class SeatDecider:
    """Each command gets a free seat, drawn at random; it trusts the bus not to repeat inputs."""

    ledger = "admission"
    consumed_events = None

    def initial(self, partition: int) -> Seats:
        return Seats()

    def decide(self, state: Seats, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            match item.message:
                case CancelJob(reason="silent"):
                    continue
                case CancelJob(reason=reason) if reason.startswith(BURST):
                    for n in range(int(reason.removeprefix(BURST))):
                        yield item.decision(_answer(f"{item.id}+{n}", "x" * 256, state))
                case CancelJob(job_id=job_id):
                    yield item.decision(_answer(item.id, job_id, state))
                case Undecodable(topic, partition, offset, reason, sha256):
                    yield item.decision(
                        InputRejected(
                            topic=topic,
                            partition=partition,
                            offset=offset,
                            reason=reason,
                            sha256=sha256,
                        )
                    )
                case Event():
                    yield item.decision(_answer(item.id, item.place, state))
        if state.wake_at is not None and state.wake_at <= now:
            yield Decision(_answer(f"wake {state.wake_at}", "wake", state))

    def evolve(self, state: Seats, fact: Fact) -> None:
        match fact.event:
            case CommandAccepted(command_id=id, command_type=seat, of=of):
                state.answers[id] = state.answers.get(id, 0) + 1
                if int(seat) in state.taken:
                    state.answers[f"seat {seat} given twice"] = 2
                state.taken[int(seat)] = id
                if of == ALARM:
                    state.wake_at = fact.at + 1
                if of == "wake":
                    state.wake_at = None
            case InputRejected(offset=offset, reason=reason):
                state.rejected.append(f"{offset} {reason}")

    def next_wake(self, state: Seats) -> int | None:
        return state.wake_at


def _answer(id: str, of: str, state: Seats) -> CommandAccepted:
    """Draw a seat that is free in this state, and perhaps not in a rival's."""
    seat = len(state.taken) + random.randrange(2)
    while seat in state.taken:
        seat += 1
    return CommandAccepted(command_id=id, command_type=str(seat), of=of)


def command(
    id: str,
    job_id: str = "job",
    reason: str = "",
    traceparent: str = "",
    access_next: int = 0,
    tenant: str = "",
) -> bytes:
    """Return a record of `commands`: a CancelJob as CloudEvent."""
    message = CancelJob(job_id=job_id, reason=reason)
    return cloudevents.encode(
        id=id,
        source="/test",
        type=message.TYPE,
        data=encode(message),
        at_ms=1_700_000_000_000,
        traceparent=traceparent,
        accessnext=access_next,
        tenant=tenant,
    )


def accepted(tp: TP, entries: Iterable[Entry]) -> list[Accepted]:
    """Return the records of a whole partition that the reader rule accepts."""
    reader = Reader(tp.topic, tp.partition)
    records = (reader.offer(entry.offset, entry.value) for entry in entries)
    return [record for record in records if record is not None]


def fold(tp: TP, entries: Iterable[Entry]) -> Seats:
    decider = SeatDecider()
    state = decider.initial(tp.partition)
    for record in accepted(tp, entries):
        for fact in record.facts(own=True):
            decider.evolve(state, fact)
    return state
