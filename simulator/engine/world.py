"""A pool in memory: lanes, an executor and a clock that jumps from one due instant to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from services.admission.core.decide import Admission
from services.executor.core.consumed import is_consumed
from services.executor.core.virtual.inventory import InventoryNode
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.request import propose_now
from services.placement.core.solver.contended import solve_now
from services.priority.core.decide import Priority
from services.priority.core.learned.model import LearnedModels
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.access import TenantRegistered
from shared.contracts.base import Command, Event
from shared.contracts.construct import construct
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import ExecutorReported, NodesSilent, ProgressReported, SilentNode
from shared.contracts.solver_plan import PlanReady
from shared.contracts.topics import CUSTODIAN, INPUTS
from shared.ledger.decider import Decider, Fact, Input
from simulator.engine.executor import VirtualExecutor
from simulator.engine.lane import LANE, SimulatedLane
from simulator.engine.ledgers import Ledgers, position
from simulator.engine.reporting import ReportingJobs

_new = tuple.__new__

BEGIN = 1_700_000_000_000
EXECUTOR = "simulator"
MAX_IDLE_WAKES = 10_000
"""Wakes in a row without a decision, after which a decider counts as stuck."""


def deciders(models: LearnedModels | None = None) -> tuple[Decider[Any], ...]:
    """Return the deciders of a pool, in the order in which they decide at one instant."""
    return Admission(), Priority(models), Placement()


Listener = Callable[[Fact], None]
Planner = Callable[[Pool], PlanReady | None]


class Recipients(NamedTuple):
    """Lanes that consume events of one type, and whether the executor acts on them."""

    lanes: list[SimulatedLane]
    executor: bool


class StuckDecider(RuntimeError):
    """Raised if a decider requests wakes and decides nothing, again and again."""


class World:
    """A pool in which everything at one ms is decided before the clock moves.

    `ledgers` keeps all facts and inputs as records of an installation; without it nothing is
    encoded. `listeners` receive each fact of their ledger. `planner` solves contended rounds
    where the pool requests it; `models` are the learned policies that priority loads; `reporting`
    are the jobs that report their iterations.
    """

    def __init__(
        self,
        pool: PoolConfigured,
        tenants: Iterable[str],
        nodes: Mapping[str, InventoryNode],
        *,
        ledgers: bool = False,
        recorded: bool = False,
        slow: Mapping[str, float] | None = None,
        listeners: Mapping[str, Listener] | None = None,
        tick_ms: int = 1,
        planner: Planner = solve_now,
        models: LearnedModels | None = None,
        reporting: ReportingJobs | None = None,
    ) -> None:
        self.now = BEGIN
        self.reporting = reporting
        self._planner = planner
        self.pool = pool
        self.lanes = {
            lane.ledger: lane
            for lane in (SimulatedLane(decider, recorded=recorded) for decider in deciders(models))
        }
        self.executor = VirtualExecutor(nodes, pool, BEGIN, slow or {})
        self.ledgers = Ledgers(MemoryBroker()) if ledgers else None
        self._listeners = {
            ledger: [listener] if (listener := (listeners or {}).get(ledger)) else []
            for ledger in self.lanes
        }
        if reporting:
            self._listeners["placement"].append(reporting.note)
        self.instants = 0
        self._tick_ms = tick_ms
        self._offsets = {"commands": 0, "reports": 0}
        self._idle = 0
        self._readers = {
            topic: [lane for lane in self.lanes.values() if topic in INPUTS[lane.ledger]]
            for topic in (*self.lanes, *self._offsets)
        }
        self._recipients: dict[str, dict[type[Event], Recipients]] = {
            ledger: {} for ledger in self.lanes
        }
        tenants_registered = [
            TenantRegistered(tenant=name, default_pool=pool.pool) for name in tenants
        ]
        self._access([pool, *tenants_registered])

    @property
    def broker(self) -> MemoryBroker:
        """Broker of the ledgers, which must have been requested."""
        assert self.ledgers is not None, "this world keeps no ledgers"
        return self.ledgers.broker

    def _access(self, events: Sequence[Event]) -> None:
        if self.ledgers:
            self.ledgers.access(events, BEGIN)
        for lane in self.lanes.values():
            for index, event in enumerate(events):
                lane.offer(Input("access", f"access/0/1/{index}", event, BEGIN))

    def command(
        self,
        id: str,
        command: Command,
        *,
        tenant: str = "",
        subject: str = "",
        traceparent: str = "",
    ) -> None:
        """Append a command to its topic: every reader passes it, its owner consumes it."""
        place = f"{LANE}/{self._offset('commands')}"
        item = Input("commands", id, command, self.now, traceparent, subject, tenant, place)
        if self.ledgers:
            self.ledgers.message("commands", item)
        self._to("commands", item)

    def fail(self, node_id: str) -> str:
        """Fail a node; return the incarnation for `report_silence`, "" if it was down already."""
        return self.executor.fail(node_id)

    def report_silence(self, node_id: str, incarnation: str, silent_s: float) -> None:
        """Report a node as silent for so long, as the watch of heartbeats does."""
        node = self.lanes["placement"].state.board.nodes.get(node_id)
        silent = SilentNode(
            node_id=node_id,
            incarnation=incarnation,
            silent_ms=round(silent_s * 1000),
            terms_id=node.oldest_terms if node else "",
        )
        item = Input("local", f"silent-{node_id}-{incarnation}", NodesSilent(nodes=(silent,)))
        self.lanes["placement"].offer(item)

    def repair(self, node_id: str) -> None:
        """Let a failed node join again."""
        self.executor.repair(node_id)

    def due(self) -> int | None:
        """Return the next due instant of any part; None: never again."""
        soonest = self.executor.due()
        if self.reporting and (at := self.reporting.due) is not None:
            soonest = at if soonest is None else min(at, soonest)
        for lane in self.lanes.values():
            at = lane.due
            if at is not None and (soonest is None or at < soonest):
                soonest = at
        return soonest

    def run(self, until: int) -> None:
        """Run until this moment; what is due at it is left to the next call."""
        while self.now < until:
            self.settle()
            self.instants += 1
            due = self.due()
            self.now = min(self._next(until if due is None else due), until)

    def _next(self, due: int) -> int:
        """Return the next instant in whole ticks, never the same one again."""
        ticks = -(-(due - self.now) // self._tick_ms)
        self._idle = self._idle + 1 if ticks <= 0 else 0
        if self._idle > MAX_IDLE_WAKES:
            raise StuckDecider(f"a decider is due at {due} and decides nothing at {self.now}")
        return self.now + self._tick_ms * max(1, ticks)

    def settle(self) -> None:
        """Let all parts decide until nothing is left at this instant: facts, then ranking, then
        a round.
        """
        now, executor = self.now, self.executor
        admission, priority, placement = self.lanes.values()
        while True:
            if executor.has_work(now):
                self._step_executor()
            elif self.reporting and (at := self.reporting.due) is not None and at <= now:
                self._step_reporting(self.reporting)
            elif admission.pending or (admission.due is not None and admission.is_due(now)):
                self._step(admission)
            elif placement.pending:
                self._step(placement)
            elif priority.pending or (priority.due is not None and priority.is_due(now)):
                self._step(priority)
            elif placement.due is not None and placement.is_due(now):
                self._step(placement)
            else:
                return

    def _step(self, lane: SimulatedLane) -> None:
        facts = lane.step(self.now)
        if facts:
            self._publish(lane, facts)
        if lane.ledger == "placement" and (lane.state.open_round or lane.state.schedule.open):
            self._plan(lane)

    def _plan(self, lane: SimulatedLane) -> None:
        """Solve an open round, or make an open proposal, at the instant of its request."""
        pool = lane.state
        message = propose_now(pool) if pool.schedule.open else self._planner(pool)
        if message is not None:
            lane.offer(Input("local", f"plan-{message.at_seq}", message))

    def _step_executor(self) -> None:
        for reports in self.executor.step(self.now):
            self._send(construct(ExecutorReported, executor_id=EXECUTOR, reports=reports))

    def _step_reporting(self, reporting: ReportingJobs) -> None:
        if reports := reporting.take_due(self.now, self.executor):
            self._send(construct(ProgressReported, executor_id=EXECUTOR, progress=reports))

    def _send(self, report: ExecutorReported | ProgressReported) -> None:
        """Append a message of the executor to its topic."""
        number = self._offset("reports")
        item = Input("reports", f"report-{number}", report, self.now, place=f"{LANE}/{number}")
        if self.ledgers:
            self.ledgers.message("reports", item)
        self._to("reports", item)

    def _offset(self, topic: str) -> int:
        self._offsets[topic] += 1
        return self._offsets[topic] - 1

    def _to(self, topic: str, item: Input) -> None:
        """Deliver to all readers of the topic; its owner and its custodian consume it."""
        message = item.message
        owners = (CUSTODIAN[topic], message.OWNER if isinstance(message, Command) else "")
        for lane in self._readers[topic]:
            if self.ledgers:
                lane.advance_input(topic, self._offsets[topic])
            if lane.ledger in owners:
                lane.give(topic, item)

    def _publish(self, lane: SimulatedLane, facts: list[Fact]) -> None:
        """Append the facts, and deliver them to lanes, executor and listeners."""
        ledger = lane.ledger
        if self.ledgers:
            self.ledgers.record(ledger, facts, lane.vector)
            for reader in self._readers[ledger]:
                reader.advance_input(ledger, position(ledger, lane.seq))
        recipients = self._recipients[ledger]
        listeners = self._listeners[ledger]
        for fact in facts:
            kind = type(fact.event)
            lanes, executor = recipients.get(kind) or recipients.setdefault(
                kind, self._recipients_of(ledger, kind)
            )
            if lanes:
                item = to_input(fact)
                for recipient in lanes:
                    recipient.give(ledger, item)
            if executor:
                self.executor.give(fact)
            for listener in listeners:
                listener(fact)

    def _recipients_of(self, ledger: str, kind: type[Event]) -> Recipients:
        lanes = [
            lane
            for lane in self._readers[ledger]
            if lane.decider.consumed_events is None or kind.TYPE in lane.decider.consumed_events
        ]
        return Recipients(lanes, ledger == "placement" and is_consumed(kind.TYPE))


def to_input(fact: Fact) -> Input:
    """Return the input that `InputDecoder.decode_ledger` makes of the fact's record."""
    event = fact.event
    place = fact.place
    subject, ledger = event.subject, fact.ledger
    # `Input(...)` in less than half its time.
    values = (ledger, f"{ledger}/{place}", event, fact.at, fact.traceparent, subject, "", place)
    return _new(Input, (*values, "", 0))
