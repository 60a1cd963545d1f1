"""The deciding stage of a lane: state, inputs and the time become facts, and facts a record.

It has no input or output and reads no clock; only the ids of spans are random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from shared.bus.inputs.gather import Batch
from shared.ledger.decider import Decider, Decision, Fact, UnitStart, WakeStart
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.ledger.record import Position, Record, StoredEvent, pack
from shared.ledger.stored_event import stored_event
from shared.telemetry.trace_ids import for_event

S = TypeVar("S")


MAX_EVENTS = 1_000
MAX_BYTES = 256 * 1024
"""A record with so many events, or bytes of them, ends before the next unit of its decision."""
ENVELOPE_BYTES = 64
"""Of an event in a record, beside its values."""


@dataclass(slots=True)
class Draft:
    """The facts of one round, before they are appended."""

    now: int
    """The time at which they were decided, ms."""
    facts: list[Fact] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    """The traceparent of the cause of each fact."""
    stored: list[StoredEvent] = field(default_factory=list)
    """The facts as they will lie in the record."""
    size: int = 0
    """Bytes of `stored`."""
    touched: bool = False
    """Whether the state may be ahead of the ledger, if the draft is thrown away."""
    used: Batch | None = None
    """The part of the batch that is decided, where the record was full before its end."""
    is_final: bool = False
    """Whether it replaces a draft that failed."""

    @property
    def is_full(self) -> bool:
        return len(self.facts) >= MAX_EVENTS or self.size >= MAX_BYTES


def draft_facts(
    decider: Decider[S],
    state: S,
    batch: Batch,
    draft: Draft,
    tp: TP,
    seq: int,
    closing: Sequence[Decision] = (),
) -> None:
    """Decide the inputs, then the wake if it is due; each fact is folded into `state` at once.

    The facts are those of record `seq` of the ledger partition `tp`. A record that is full ends
    before the next unit of its decision. `closing` are decisions of the lane itself, which follow
    once all inputs are decided.
    """
    inputs = batch.inputs
    decide = partial(_add_all, decider, state, draft, tp, seq, batch)
    if inputs:
        decide(decider.decide(state, inputs, draft.now))
    if draft.used in (None, batch):
        decide(closing)
    if draft.used is None:
        due = decider.next_wake(state)
        if due is not None and due <= draft.now:
            decide(decider.decide(state, [], draft.now))


def _add_all(
    decider: Decider[S],
    state: S,
    draft: Draft,
    tp: TP,
    seq: int,
    batch: Batch,
    decisions: Iterable[Decision],
) -> None:
    """Add the decisions to the draft, until it is full and a unit begins that can wait."""
    facts, parents, stored = draft.facts, draft.parents, draft.stored
    for decision in decisions:
        if draft.is_full and isinstance(decision, UnitStart):
            draft.used = batch if isinstance(decision, WakeStart) else batch.before(decision.cause)
            if draft.used is not None:
                return
        fact = _fact(decision, tp, seq, len(facts), draft.now)
        draft.touched = True
        decider.evolve(state, fact)
        facts.append(fact)
        parents.append(decision.traceparent)
        stored.append(stored_event(fact.event, fact.cause, fact.traceparent))
        draft.size += _size(stored[-1])


def _fact(decision: Decision, tp: TP, seq: int, index: int, now: int) -> Fact:
    parent = decision.traceparent
    return Fact(
        decision.event,
        tp.topic,
        tp.partition,
        seq,
        index,
        now,
        decision.cause,
        for_event(decision.event.TYPE, parent) if parent else "",
    )


def _size(stored: StoredEvent) -> int:
    """Return the bytes that the event adds to a record, nearly."""
    texts = len(stored.type) + len(stored.subject) + len(stored.cause) + len(stored.traceparent)
    return len(stored.data) + texts + ENVELOPE_BYTES


def build_record(
    draft: Draft, cursor: Cursor, inputs: Mapping[str, Position], *, id: str, writer: str
) -> Record:
    """Return the record that follows `cursor` and carries the draft and its input vector."""
    return Record(
        id=id,
        seq=cursor.seq + 1,
        prev=cursor.id,
        w=writer,
        at=draft.now,
        inputs=dict(inputs),
        ev=pack(draft.stored),
    )
