"""The deciding stage of a lane: state, inputs and the time become facts, and facts a record.

It has no input or output and reads no clock; only the ids of spans are random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from shared.contracts.codec import encode_event
from shared.ledger.decider import Decider, Decision, Fact, Input
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.ledger.record import Position, Record, StoredEvent, pack
from shared.telemetry.trace_ids import for_event

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Draft:
    """The facts of one round, before they are appended."""

    now: int
    """The time at which they were decided, ms."""
    facts: list[Fact]
    parents: list[str]
    """The traceparent of the cause of each fact."""


def draft_facts(
    decider: Decider[S], state: S, inputs: Sequence[Input], now: int, tp: TP, seq: int
) -> Draft:
    """Decide the inputs, then the wake if it is due; each fact is folded into `state` at once.

    The facts are those of record `seq` of the ledger partition `tp`.
    """
    draft = Draft(now, [], [])
    if inputs:
        _decide(decider, state, inputs, draft, tp, seq)
    due = decider.next_wake(state)
    if due is not None and due <= now:
        _decide(decider, state, [], draft, tp, seq)
    return draft


def _decide(
    decider: Decider[S], state: S, inputs: Sequence[Input], draft: Draft, tp: TP, seq: int
) -> None:
    facts, parents = draft.facts, draft.parents
    for decision in decider.decide(state, inputs, draft.now):
        fact = _fact(decision, tp, seq, len(facts), draft.now)
        decider.evolve(state, fact)
        facts.append(fact)
        parents.append(decision.traceparent)


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


def build_record(
    draft: Draft, cursor: Cursor, inputs: Mapping[str, Position], *, id: str, writer: str
) -> Record:
    """Return the record that follows `cursor` and carries the draft and its input vector."""
    stored = [
        StoredEvent(
            fact.event.TYPE,
            fact.event.subject,
            msgspec.Raw(encode_event(fact.event)),
            fact.cause,
            fact.traceparent,
        )
        for fact in draft.facts
    ]
    return Record(
        id=id,
        seq=cursor.seq + 1,
        prev=cursor.id,
        w=writer,
        at=draft.now,
        inputs=dict(inputs),
        ev=pack(stored),
    )
