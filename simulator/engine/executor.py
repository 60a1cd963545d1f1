"""The executor's core and its virtual workers, on the world's clock; nodes may fail and return."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from services.executor.core.virtual.effects import (
    Effect,
    Prepared,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerEnded,
    WorkerOutcome,
)
from services.executor.core.virtual.inventory import InventoryNode
from services.executor.core.virtual.membership import configure, take_over
from services.executor.core.virtual.outcomes import on_outcome
from services.executor.core.virtual.react import react
from services.executor.core.virtual.state import ExecutorState
from services.executor.core.virtual.workers import VirtualWorkers
from shared.contracts.nodes import NodeLost
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import Report
from shared.ledger.decider import Fact
from simulator.engine.lane import LANE

HALF_MS = 0.0005
REPORTS = 4096
"""Reports in one message, at most: the contract's bound."""


class VirtualExecutor:
    """One executor for all nodes. `slow` maps a node to the factor by which its workers are
    slower.
    """

    def __init__(
        self,
        nodes: Mapping[str, InventoryNode],
        pool: PoolConfigured,
        begin: int,
        slow: Mapping[str, float],
    ) -> None:
        self._begin = begin
        self._lane = ExecutorState(LANE, dict(nodes))
        self._pool = pool
        self._workers = VirtualWorkers(slow)
        self._facts: list[Fact] = []
        self._reports: list[Report] = []
        self._down: set[str] = set()
        """Nodes that failed and were not repaired."""
        self._perform([*configure(self._lane, pool), *take_over(self._lane, "first")], 0.0)

    def give(self, fact: Fact) -> None:
        """Add a fact of the placement ledger that `is_consumed` selects."""
        self._facts.append(fact)

    def due(self) -> int | None:
        """Return the ms nearest to the next end, so that an end on a whole ms is reported at
        that ms.
        """
        due_s = self._workers.next_due_s
        return None if due_s is None else self._begin + math.ceil(due_s * 1000 - 0.5)

    def rest_ms(self, allocation_id: str, now: int) -> float | None:
        """Return how long a worker still runs, wall ms; None: it does not run."""
        due_s = self._workers.due_s(allocation_id)
        return None if due_s is None else max(0.0, due_s * 1000 - (now - self._begin))

    def has_work(self, now: int) -> bool:
        """Return whether facts, reports or ends are pending."""
        if self._facts or self._reports:
            return True
        due_s = self._workers.next_due_s
        return due_s is not None and due_s <= (now - self._begin) / 1000 + HALF_MS

    def step(self, now: int) -> Iterator[tuple[Report, ...]]:
        """Apply pending facts and ends; yield the reports, cut into messages."""
        facts, self._facts = self._facts, []
        now_s = (now - self._begin) / 1000
        for fact in facts:
            if isinstance(fact.event, NodeLost) and fact.event.node_id in self._down:
                self._lose(fact)
            elif effects := react(self._lane, fact):
                self._perform(effects, now_s)
        for ended in self._workers.take_due(now_s + HALF_MS):
            self._record_outcome(ended, now_s)
        reports, self._reports = self._reports, []
        for at in range(0, len(reports), REPORTS):
            yield tuple(reports[at : at + REPORTS])

    def fail(self, node_id: str) -> str:
        """Stop the node and its workers without a report; return the lost incarnation, "" if
        none.
        """
        gone = self._lane.own_incarnations.pop(node_id, "")
        self._down.add(node_id)
        self._lane.usurped.add(node_id)
        for worker in self._lane.living_workers():
            if worker.node_id == node_id:
                self._workers.stop(worker.allocation_id, 0.0)
                self._lane.vacate(worker)
        return gone

    def repair(self, node_id: str) -> None:
        """Let the node join under a new incarnation, without workers."""
        self._down.discard(node_id)
        self._lane.usurped.discard(node_id)
        self._perform(configure(self._lane, self._pool), 0.0)

    def _lose(self, fact: Fact) -> None:
        """Note the loss of a node that is down: an executor that lives would take it back."""
        node_id = fact.event.node_id  # type: ignore[attr-defined]
        self._lane.usurped.discard(node_id)
        react(self._lane, fact)
        self._lane.usurped.add(node_id)

    def _perform(self, effects: Iterable[Effect], now_s: float) -> None:
        for effect in effects:
            match effect:
                case PrepareWorker(spec=spec):
                    self._workers.prepare(spec)
                    self._record_outcome(Prepared(spec.allocation_id), now_s)
                case StartWorker(allocation_id=id):
                    self._workers.start(id, now_s, self._lane.time_scale)
                case StopWorker(allocation_id=id):
                    self._record_outcome(self._workers.stop(id, now_s), now_s)
                case SendReport(report=report):
                    self._reports.append(report)

    def _record_outcome(self, outcome: WorkerOutcome | WorkerEnded, now_s: float) -> None:
        effects = on_outcome(self._lane, outcome)
        if effects:
            self._perform(effects, now_s)
