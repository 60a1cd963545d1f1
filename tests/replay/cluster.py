"""The deciders of a pool and a virtual executor on the in-memory broker: no processes, no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from services.admission.core.decide import Admission
from services.executor.core.inventory import Node
from services.executor.core.membership import configure, take_over
from services.executor.core.orders import Effect, Ended, Go, Outcome, Prepare, Ready, Say, Stop
from services.executor.core.outcomes import on_outcome
from services.executor.core.react import react
from services.executor.core.state import Lane
from services.executor.core.virtual import VirtualWorkers
from services.placement.app import decode_report
from services.placement.core.decide import Placement
from services.priority.core.decide import Priority
from shared.bus import cloudevents
from shared.bus.decider import Decider, Decision, Fact, Input
from shared.bus.inputs import InputDecoder
from shared.bus.log import TP
from shared.bus.memory import MemoryBroker
from shared.bus.reader import Reader
from shared.bus.record import Position, Record, encode, pack
from shared.contracts.access import PoolConfigured, TenantRegistered
from shared.contracts.base import Event, Model
from shared.contracts.codec import encode as encode_message
from shared.contracts.reports import ExecutorReported, Report
from shared.contracts.topics import INPUTS, LEDGERS
from shared.testing.ledgers import LedgerPen, stored

DECIDERS: tuple[Callable[[], Decider[Any]], ...] = (Admission, Priority, Placement)
BEGIN = 1_700_000_000_000
TICK_MS = 20
"""All that is due within a tick is one batch, as in a service's window."""
LANE = 0


@dataclass(slots=True)
class Call:
    """One call of `decide`: where its record lies, what it was given, what it said."""

    seq: int
    index: int
    now: int
    inputs: list[Input]
    decisions: list[Decision] = field(default_factory=list)

    def facts(self, ledger: str) -> Iterator[Fact]:
        for index, (event, cause, trace) in enumerate(self.decisions, self.index):
            yield Fact(event, ledger, LANE, self.seq, index, self.now, cause, trace)


class Cell:
    """One decider, fed and believed as its shell would."""

    def __init__(self, decider: Decider[Any], broker: MemoryBroker) -> None:
        self.decider = decider
        self.state = decider.initial(LANE)
        self.calls: list[Call] = []
        self.waiting: list[Input] = []
        self._broker = broker
        self._tp = TP(decider.ledger, LANE)
        self._decoder = InputDecoder(decider.ledger, decode_report, decider.hears)
        self._next = dict.fromkeys((TP(name, LANE) for name in INPUTS[decider.ledger]), 0)
        self._readers = {tp: Reader(*tp) for tp in self._next if tp.topic in LEDGERS}
        self._seq, self._id = 0, ""

    def due(self) -> int | None:
        return self.decider.next_wake(self.state)

    def step(self, now: int) -> bool:
        """One record, if there is anything to say; False when there was nothing to do."""
        inputs, self.waiting = [*self.waiting, *self._read()], []
        facts = list(self._pull(inputs, now, 0)) if inputs else []
        due = self.due()
        if due is not None and due <= now:
            facts += self._pull([], now, len(facts))
        if facts:
            self._append(facts, now)
        return bool(facts or inputs)

    def _read(self) -> Iterator[Input]:
        for tp in self._next:
            for entry in self._broker.entries(tp)[self._next[tp] :]:
                self._next[tp] = entry.offset + 1
                if tp not in self._readers:
                    yield from self._decoder.of_plain(tp, entry.offset, entry.value)
                elif accepted := self._readers[tp].offer(entry.offset, entry.value):
                    yield from self._decoder.of_ledger(accepted)

    def _pull(self, inputs: list[Input], now: int, index: int) -> Iterator[Fact]:
        call = Call(self._seq + 1, index, now, inputs)
        self.calls.append(call)
        for decision in self.decider.decide(self.state, inputs, now):
            call.decisions.append(decision)
            at = index + len(call.decisions) - 1
            fact = Fact(decision.event, self._tp.topic, LANE, call.seq, at, now, *decision[1:])
            self.decider.evolve(self.state, fact)
            yield fact

    def _append(self, facts: list[Fact], now: int) -> None:
        vector: dict[str, Position] = {
            tp.key: self._readers[tp].position if tp in self._readers else offset
            for tp, offset in self._next.items()
        }
        previous, self._seq = self._id, self._seq + 1
        self._id = f"{self._tp.key}-{self._seq}"
        record = Record(self._id, self._seq, previous, "cell", now, vector, pack([
            _stored(fact) for fact in facts
        ]))  # fmt: skip
        self._broker.append(self._tp, encode(record))


def _stored(fact: Fact) -> Any:
    plain = stored(fact.event, fact.traceparent)
    return type(plain)(plain.type, plain.subject, plain.data, fact.cause, fact.traceparent)


class VirtualExecutor:
    """The executor's core and its virtual workers, on the cluster's clock."""

    def __init__(self, broker: MemoryBroker, nodes: dict[str, Node], pool: PoolConfigured) -> None:
        self._broker = broker
        self._lane = Lane(LANE, nodes)
        self._workers = VirtualWorkers({})
        self._reader = Reader("placement", LANE)
        self._said: list[Report] = []
        self._perform([*configure(self._lane, pool), *take_over(self._lane, "first", {})], 0.0)

    def due(self) -> int | None:
        due_s = self._workers.next_due_s
        return None if due_s is None else round(due_s * 1000)

    def step(self, now: int) -> bool:
        for entry in self._broker.entries(TP("placement", LANE))[self._reader.cursor.next :]:
            accepted = self._reader.offer(entry.offset, entry.value)
            for fact in accepted.facts() if accepted else ():
                self._perform(react(self._lane, fact), now / 1000)
        for ended in self._workers.due(now / 1000):
            self._tell(ended, now / 1000)
        return self._report(now)

    def _perform(self, effects: Iterable[Effect], now_s: float) -> None:
        for effect in effects:
            match effect:
                case Prepare(order=order):
                    self._workers.prepare(order)
                    self._tell(Ready(order.allocation_id), now_s)
                case Go(allocation_id=id):
                    self._workers.go(id, now_s, self._lane.time_scale)
                case Stop(allocation_id=id):
                    self._tell(self._workers.stop(id, now_s), now_s)
                case Say(report=report):
                    self._said.append(report)

    def _tell(self, outcome: Outcome | Ended, now_s: float) -> None:
        self._perform(on_outcome(self._lane, outcome), now_s)

    def _report(self, now: int) -> bool:
        said, self._said = self._said, []
        if said:
            message = ExecutorReported(executor_id="e1", reports=tuple(said))
            number = len(self._broker.entries(TP("reports", LANE)))
            put(self._broker, "reports", f"report-{number}", message, now)
        return bool(said)


def put(broker: MemoryBroker, topic: str, id: str, message: Model, at: int) -> None:
    """A CloudEvent, as its producer writes it."""
    type_ = str(getattr(message, "TYPE"))  # noqa: B009
    value = cloudevents.encode(
        id=id, source="/test", type=type_, data=encode_message(message), at_ms=at
    )
    broker.append(TP(topic, LANE), value)


class Cluster:
    """Runs tick by tick; at one tick everybody goes on until nobody has anything to say."""

    def __init__(
        self, pool: PoolConfigured, tenants: Iterable[str], nodes: dict[str, Node]
    ) -> None:
        self.broker = MemoryBroker()
        self.now = BEGIN
        self.cells = {cell.decider.ledger: cell for cell in (
            Cell(decider(), self.broker) for decider in DECIDERS
        )}  # fmt: skip
        self.executor = VirtualExecutor(self.broker, nodes, pool)
        self._access(pool, *(TenantRegistered(tenant=t, default_pool=pool.pool) for t in tenants))

    def _access(self, *events: Event) -> None:
        LedgerPen(self.broker, "access").write(events, at=BEGIN)
        for cell in self.cells.values():
            for index, event in enumerate(events):
                cell.waiting.append(Input("access", f"access/0/1/{index}", event, BEGIN))

    def run(self, until: int) -> None:
        """To this moment, in ticks; ticks at which nothing is due are passed over."""
        while True:
            self._tick()
            due = [at for each in self._parts if (at := each.due())]
            soonest = min(due, default=until)
            self.now += TICK_MS * max(1, -(-(soonest - self.now) // TICK_MS))
            if self.now >= until:
                self.now = until
                return

    def _tick(self) -> None:
        while any([each.step(self.now) for each in self._parts]):
            pass

    @property
    def _parts(self) -> list[Cell | VirtualExecutor]:
        return [*self.cells.values(), self.executor]
