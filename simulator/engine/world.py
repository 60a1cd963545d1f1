"""A pool in memory: cells, an executor and a clock that jumps from one due instant to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from services.admission.core.decide import Admission
from services.executor.core.inventory import Node
from services.executor.core.react import acts_on
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.placement.core.solver.contended import open_round, solve_now
from services.priority.core.decide import Priority
from services.priority.core.learned import Models
from shared.bus.memory import MemoryBroker
from shared.contracts.access import PoolConfigured, TenantRegistered
from shared.contracts.base import Command, Event
from shared.contracts.placement import PlanReady
from shared.contracts.reports import ExecutorReported, NodesSilent
from shared.contracts.topics import CUSTODIAN, INPUTS
from shared.ledger.decider import Decider, Fact, Input
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from simulator.engine.executor import VirtualExecutor
from simulator.engine.lane import LANE, SimulatedLane
from simulator.engine.ledgers import Ledgers, position

BEGIN = 1_700_000_000_000
EXECUTOR = "simulator"
MAX_IDLE_WAKES = 10_000
"""Wakes in a row that led to nothing: after so many the engine says that a decider is stuck."""


def deciders(models: Models | None = None) -> tuple[Decider[Any], ...]:
    """Those of a pool, in the order in which they speak at one instant."""
    return Admission(), Priority(models), Placement()


Listener = Callable[[Fact], None]
Planner = Callable[[Pool], PlanReady | None]


class Recipients(NamedTuple):
    """Whom events of one type concern."""

    cells: list[SimulatedLane]
    executor: bool


class StuckDecider(RuntimeError):
    """A decider asks to be woken and then has nothing to say, again and again."""


class World:
    """Everything decided at one ms is decided before the clock moves.

    `ledgers` keeps all facts and inputs as records of an installation; without it nothing is
    encoded. `listeners` see each fact of their ledger as it is said. `planner` solves contended
    rounds, where the pool asks for it; `models` are the learned policies that priority knows.
    """

    def __init__(
        self,
        pool: PoolConfigured,
        tenants: Iterable[str],
        nodes: Mapping[str, Node],
        *,
        ledgers: bool = False,
        recorded: bool = False,
        slow: Mapping[str, float] | None = None,
        listeners: Mapping[str, Listener] | None = None,
        tick_ms: int = 1,
        planner: Planner = solve_now,
        models: Models | None = None,
    ) -> None:
        self.now = BEGIN
        self._planner = planner
        self.pool = pool
        self.cells = {
            cell.ledger: cell
            for cell in (SimulatedLane(each, recorded=recorded) for each in deciders(models))
        }
        self.executor = VirtualExecutor(nodes, pool, BEGIN, slow or {})
        self.ledgers = Ledgers(MemoryBroker()) if ledgers else None
        self._listeners = {
            ledger: [given] if (given := (listeners or {}).get(ledger)) else []
            for ledger in self.cells
        }
        self.instants = 0
        self._tick_ms = tick_ms
        self._offsets = {"commands": 0, "reports": 0}
        self._idle = 0
        self._readers = {
            topic: [cell for cell in self.cells.values() if topic in INPUTS[cell.ledger]]
            for topic in (*self.cells, *self._offsets)
        }
        self._hearers: dict[str, dict[type[Event], Recipients]] = {each: {} for each in self.cells}
        tell = [TenantRegistered(tenant=name, default_pool=pool.pool) for name in tenants]
        self._access([pool, *tell])

    @property
    def broker(self) -> MemoryBroker:
        """Of the ledgers, which must have been asked for."""
        assert self.ledgers is not None, "this world keeps no ledgers"
        return self.ledgers.broker

    def _access(self, events: Sequence[Event]) -> None:
        if self.ledgers:
            self.ledgers.access(events, BEGIN)
        for cell in self.cells.values():
            for index, event in enumerate(events):
                cell.offer(Input("access", f"access/0/1/{index}", event, BEGIN))

    # ---- what comes from outside ---------------------------------------------------------

    def command(self, id: str, wish: Command, *, tenant: str = "", subject: str = "") -> None:
        """A command in its topic: every service that reads the topic meets it, its owner obeys."""
        place = f"{LANE}/{self._offset('commands')}"
        item = Input("commands", id, wish, self.now, "", subject, tenant, place)
        if self.ledgers:
            self.ledgers.message("commands", item)
        self._to("commands", item)

    def scribble(self, value: bytes) -> None:
        """Bytes among the commands, as each reader's own decoder meets them."""
        tp = TP("commands", LANE)
        offset = self._offset(tp.topic)
        if self.ledgers:
            self.ledgers.broker.append(tp, value)
        for cell in self.cells.values():
            if tp.topic in INPUTS[cell.ledger]:
                cell.moved(tp.topic, offset + 1)
                for item in InputDecoder(cell.ledger).of_plain(tp, offset, value):
                    cell.give(tp.topic, item)

    def fail(self, node_id: str) -> str:
        """A node dies; the incarnation that `silent` is to name, "" when it was down already."""
        return self.executor.fail(node_id)

    def silent(self, node_id: str, incarnation: str, silent_s: float) -> None:
        """As the ear for heartbeats says it, once it has not heard of a node for its lease."""
        gone = NodesSilent(nodes={node_id: incarnation}, silent_s=silent_s)
        item = Input("local", f"silent-{node_id}-{incarnation}", gone)
        self.cells["placement"].offer(item)

    def repair(self, node_id: str) -> None:
        self.executor.repair(node_id)

    # ---- the clock -----------------------------------------------------------------------

    def due(self) -> int | None:
        """The next instant at which somebody has something to do; None: never again."""
        soonest = self.executor.due()
        for cell in self.cells.values():
            at = cell.due
            if at is not None and (soonest is None or at < soonest):
                soonest = at
        return soonest

    def run(self, until: int) -> None:
        """To this moment; what is due at it, or was said at it, is left to the next call."""
        while self.now < until:
            self.settle()
            self.instants += 1
            due = self.due()
            self.now = min(self._next(until if due is None else due), until)

    def _next(self, due: int) -> int:
        """In whole ticks, and never the same instant again."""
        ticks = -(-(due - self.now) // self._tick_ms)
        self._idle = self._idle + 1 if ticks <= 0 else 0
        if self._idle > MAX_IDLE_WAKES:
            raise StuckDecider(f"somebody is due at {due} and has nothing to say at {self.now}")
        return self.now + self._tick_ms * max(1, ticks)

    def settle(self) -> None:
        """All news of this instant settles, then priority ranks it, and only then is a round due:
        until nobody says more."""
        now, executor = self.now, self.executor
        admission, priority, placement = self.cells.values()
        while True:
            if executor.has_work(now):
                self._step_executor()
            elif admission.has_work(now):
                self._step(admission)
            elif placement.pending:
                self._step(placement)
            elif priority.has_work(now):
                self._step(priority)
            elif placement.has_work(now):
                self._step(placement)
            else:
                return

    def _step(self, cell: SimulatedLane) -> None:
        facts = cell.step(self.now)
        if facts:
            self._said(cell, facts)
        if cell.ledger == "placement" and open_round(cell.state):
            self._plan(cell)

    def _plan(self, cell: SimulatedLane) -> None:
        """The solver answers an open round at the instant at which it was asked."""
        message = self._planner(cell.state)
        if message is not None:
            cell.offer(Input("local", f"plan-{message.at_seq}", message))

    def _step_executor(self) -> None:
        for reports in self.executor.step(self.now):
            number = self._offset("reports")
            said = ExecutorReported.model_construct(executor_id=EXECUTOR, reports=reports)
            place = f"{LANE}/{number}"
            item = Input("reports", f"report-{number}", said, self.now, place=place)
            if self.ledgers:
                self.ledgers.message("reports", item)
            self._to("reports", item)

    # ---- the log -------------------------------------------------------------------------

    def _offset(self, topic: str) -> int:
        self._offsets[topic] += 1
        return self._offsets[topic] - 1

    def _to(self, topic: str, item: Input) -> None:
        """All readers of the topic pass it; its owner meets it, and so does who answers for it."""
        message = item.message
        concerned = (CUSTODIAN[topic], message.OWNER if isinstance(message, Command) else "")
        for cell in self._readers[topic]:
            if self.ledgers:
                cell.moved(topic, self._offsets[topic])
            if cell.ledger in concerned:
                cell.give(topic, item)

    def _said(self, cell: SimulatedLane, facts: list[Fact]) -> None:
        """To the log, to whom it concerns, to the executor and to who only listens."""
        ledger = cell.ledger
        if self.ledgers:
            self.ledgers.record(ledger, facts, cell.vector)
            for each in self._readers[ledger]:
                each.moved(ledger, position(ledger, cell.seq))
        known = self._hearers[ledger]
        listeners = self._listeners[ledger]
        for fact in facts:
            kind = type(fact.event)
            cells, executor = known.get(kind) or known.setdefault(
                kind, self._hearers_of(ledger, kind)
            )
            if cells:
                item = to_input(fact)
                for hearer in cells:
                    hearer.give(ledger, item)
            if executor:
                self.executor.give(fact)
            for tell in listeners:
                tell(fact)

    def _hearers_of(self, ledger: str, kind: type[Event]) -> Recipients:
        cells = [
            cell
            for cell in self._readers[ledger]
            if cell.decider.hears is None or kind.TYPE in cell.decider.hears
        ]
        return Recipients(cells, ledger == "placement" and acts_on(kind.TYPE))


def to_input(fact: Fact) -> Input:
    """As `InputDecoder.of_ledger` makes it of the fact's record."""
    event = fact.event
    place = fact.place
    return Input(
        fact.ledger,
        f"{fact.ledger}/{place}",
        event,
        fact.at,
        fact.traceparent,
        event.subject,
        "",
        place,
    )
