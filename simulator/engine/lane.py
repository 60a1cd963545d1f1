"""One decider on one lane, run as its shell would run it, but with objects instead of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.topics import INPUTS, LEDGERS
from shared.ledger.decider import Decider, Decision, Fact, Input
from shared.ledger.record import Position

LANE = 0
_new = tuple.__new__


@dataclass(slots=True)
class DecideCall:
    """One call of `decide`: the position of its record, its inputs and its decisions."""

    seq: int
    index: int
    now: int
    inputs: list[Input]
    decisions: list[Decision] = field(default_factory=list)

    def facts(self, ledger: str) -> Iterator[Fact]:
        for index, (event, cause, trace) in enumerate(self.decisions, self.index):
            yield Fact(event, ledger, LANE, self.seq, index, self.now, cause, trace)


class SimulatedLane:
    """A decider, its state and its pending inputs. `calls` is kept only on request."""

    def __init__(self, decider: Decider[Any], *, recorded: bool = False) -> None:
        self.decider = decider
        self.ledger = decider.ledger
        self.state = decider.initial(LANE)
        self.calls: list[DecideCall] = []
        self._waiting: list[Input] = []
        self.seq = 0
        self.vector: dict[str, Position] = {
            f"{topic}-{LANE}": (0, 0, "") if topic in LEDGERS else 0
            for topic in INPUTS[decider.ledger]
        }
        """Input vector: how far each input was consumed by the last record."""
        self._topics: dict[str, list[Input]] = {topic: [] for topic in INPUTS[decider.ledger]}
        self._positions: dict[str, Position] = {}
        self._recorded = recorded
        self.pending = False
        """Whether any input waits."""
        self._woken_at = -1
        self.due: int | None = None
        """Next wake that the decider requested."""

    def give(self, topic: str, item: Input) -> None:
        """Add an entry of one of its inputs; within a topic entries keep the order of the calls."""
        self._topics[topic].append(item)
        self.pending = True

    def offer(self, item: Input) -> None:
        """Add a local input, which is consumed first and has no offset."""
        self._waiting.append(item)
        self.pending = True

    def advance_input(self, topic: str, position: Position) -> None:
        """Advance the position of an input; the entries before it were given already."""
        self._positions[f"{topic}-{LANE}"] = position

    def has_work(self, now: int) -> bool:
        """Return whether inputs wait, or a wake is due."""
        return self.pending or self.is_due(now)

    def is_due(self, now: int) -> bool:
        """Return whether a wake is due that did not lead to nothing at this instant."""
        return self.due is not None and self.due <= now and self._woken_at != now

    def step(self, now: int) -> list[Fact]:
        """Decide on all pending inputs and return the facts of one record, in order."""
        inputs = self._take_inputs()
        facts = self._decide(inputs, now, 0) if inputs else []
        # Without inputs the state is that of the last step, and so is its wake.
        due = self.decider.next_wake(self.state) if inputs else self.due
        if due is not None and due <= now:
            facts += self._decide([], now, len(facts))
            due = self.decider.next_wake(self.state)
        self.due = due
        if facts:
            self.seq += 1
        elif not inputs:
            self._woken_at = now
        return facts

    def _take_inputs(self) -> list[Input]:
        inputs, self._waiting = self._waiting, []
        if self.pending:
            for entries in self._topics.values():
                if entries:
                    inputs += entries
                    entries.clear()
            self.pending = False
        if self._positions:
            self.vector.update(self._positions)
            self._positions.clear()
        return inputs

    def _decide(self, inputs: list[Input], now: int, index: int) -> list[Fact]:
        facts: list[Fact] = []
        state, seq = self.state, self.seq + 1
        evolve = self.decider.evolve
        ledger = self.ledger
        for event, cause, trace in self.decider.decide(state, inputs, now):
            # `Fact(...)` in less than half its time.
            fact = _new(Fact, (event, ledger, LANE, seq, index, now, cause, trace))
            evolve(state, fact)
            facts.append(fact)
            index += 1
        if self._recorded:
            self._record(inputs, facts, now, index - len(facts))
        return facts

    def _record(self, inputs: list[Input], facts: list[Fact], now: int, index: int) -> None:
        decisions = [Decision(fact.event, fact.cause, fact.traceparent) for fact in facts]
        self.calls.append(DecideCall(self.seq + 1, index, now, inputs, decisions))
