"""Drives a decider in a test as its shell does: given facts, when inputs, then events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, TypeVar

from shared.contracts.base import Event, Model
from shared.ledger.decider import Decider, Decision, Fact, Input, Undecodable

S = TypeVar("S")

AT = 1_700_000_000_000
"""Time of the events of a test's history, ms."""

_ids = count(1)


def given(decider: Decider[S], *events: Event, partition: int = 0, at: int = AT) -> S:
    """Return the state after this history."""
    return fold(decider, decider.initial(partition), events, partition=partition, at=at)


def fold(
    decider: Decider[S], state: S, events: Iterable[Event], *, partition: int = 0, at: int = AT
) -> S:
    """Fold the events into `state`, each in a record of its own; return it."""
    for event in events:
        decider.evolve(state, Fact(event, decider.ledger, partition, next(_ids), 0, at))
    return state


def an_input(message: Model | Undecodable, source: str = "commands", **more: Any) -> Input:
    """Return an input with a fresh id; `more` are further fields of `Input`."""
    given_id = more.pop("id", f"input-{next(_ids)}")
    return Input(source, given_id, message, **more)


def run(decider: Decider[S], state: S, inputs: Sequence[Input], now: int = AT) -> list[Event]:
    """Return the decided events; each decision is folded into `state` before the next one."""
    return [fact.event for fact in run_facts(decider, state, inputs, now)]


def run_facts(
    decider: Decider[S], state: S, inputs: Sequence[Input], now: int = AT, partition: int = 0
) -> list[Fact]:
    """Return the decided facts, as those of one record; as `run` otherwise."""
    seq = next(_ids)
    facts: list[Fact] = []
    for decision in decider.decide(state, inputs, now):
        facts.append(_folded(decider, state, decision, (partition, seq, len(facts)), now))
    return facts


def wake(decider: Decider[S], state: S, now: int) -> list[Event]:
    """Return the events of a wake at `now`; none when `next_wake` is not due."""
    due = decider.next_wake(state)
    return run(decider, state, [], now) if due is not None and due <= now else []


def _folded(
    decider: Decider[S], state: S, decision: Decision, place: tuple[int, int, int], now: int
) -> Fact:
    partition, seq, index = place
    fact = Fact(
        decision.event,
        decider.ledger,
        partition,
        seq,
        index,
        now,
        decision.cause,
        decision.traceparent,
    )
    decider.evolve(state, fact)
    return fact
