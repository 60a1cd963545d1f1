"""One decider, fed and believed as its shell would, but with objects instead of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.topics import INPUTS, LEDGERS
from shared.ledger.decider import Decider, Decision, Fact, Input
from shared.ledger.record import Position

LANE = 0


@dataclass(slots=True)
class DecideCall:
    """One call of `decide`: where its record lies, what it was given, what it said."""

    seq: int
    index: int
    now: int
    inputs: list[Input]
    decisions: list[Decision] = field(default_factory=list)

    def facts(self, ledger: str) -> Iterator[Fact]:
        for index, (event, cause, trace) in enumerate(self.decisions, self.index):
            yield Fact(event, ledger, LANE, self.seq, index, self.now, cause, trace)


class SimulatedLane:
    """A decider, its state, and what lies in its inputs. `calls` is kept only when asked for."""

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
        """How far each input was read by the last record or before it."""
        self._topics: dict[str, list[Input]] = {topic: [] for topic in INPUTS[decider.ledger]}
        self._positions: dict[str, Position] = {}
        self._recorded = recorded
        self.pending = False
        """Some input waits."""
        self._woken_at = -1
        self.due: int | None = None
        """When it asks to be woken; only what it says can change that."""

    def give(self, topic: str, item: Input) -> None:
        """An entry of one of its inputs; the order within a topic is that of the calls."""
        self._topics[topic].append(item)
        self.pending = True

    def offer(self, item: Input) -> None:
        """A local input: those come first and have no offset."""
        self._waiting.append(item)
        self.pending = True

    def moved(self, topic: str, position: Position) -> None:
        """That input's log goes on to there: what of it was heard is given before this call."""
        self._positions[f"{topic}-{LANE}"] = position

    def has_work(self, now: int) -> bool:
        """Inputs, or a wake that is due and did not lead to nothing at this very instant."""
        return self.pending or (self.due is not None and self.due <= now and self._woken_at != now)

    def step(self, now: int) -> list[Fact]:
        """The facts of one record, in the order said."""
        inputs = self._taken()
        facts = self._pulled(inputs, now, 0) if inputs else []
        due = self.decider.next_wake(self.state)
        if due is not None and due <= now:
            facts += self._pulled([], now, len(facts))
            due = self.decider.next_wake(self.state)
        self.due = due
        if facts:
            self.seq += 1
        elif not inputs:
            self._woken_at = now
        return facts

    def _taken(self) -> list[Input]:
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

    def _pulled(self, inputs: list[Input], now: int, index: int) -> list[Fact]:
        facts: list[Fact] = []
        state, seq = self.state, self.seq + 1
        evolve = self.decider.evolve
        ledger = self.ledger
        for event, cause, trace in self.decider.decide(state, inputs, now):
            fact = Fact(event, ledger, LANE, seq, index, now, cause, trace)
            evolve(state, fact)
            facts.append(fact)
            index += 1
        if self._recorded:
            self._record(inputs, facts, now, index - len(facts))
        return facts

    def _record(self, inputs: list[Input], facts: list[Fact], now: int, index: int) -> None:
        said = [Decision(fact.event, fact.cause, fact.traceparent) for fact in facts]
        self.calls.append(DecideCall(self.seq + 1, index, now, inputs, said))
