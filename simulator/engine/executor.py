"""The executor's core and its virtual workers, on the world's clock; nodes may fall and return."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from services.executor.core.inventory import Node
from services.executor.core.membership import configure, take_over
from services.executor.core.orders import Effect, Ended, Go, Outcome, Prepare, Ready, Say, Stop
from services.executor.core.outcomes import on_outcome
from services.executor.core.react import react
from services.executor.core.state import Lane
from services.executor.core.virtual import VirtualWorkers
from shared.contracts.access import PoolConfigured
from shared.contracts.reports import Report
from shared.ledger.decider import Fact
from simulator.engine.lane import LANE

HALF_MS = 0.0005
REPORTS = 4096
"""In one message, at most: the contract's bound."""


class VirtualExecutor:
    """One executor for all nodes. `slow` maps a node to how much longer its workers take."""

    def __init__(
        self, nodes: Mapping[str, Node], pool: PoolConfigured, begin: int, slow: Mapping[str, float]
    ) -> None:
        self._begin = begin
        self._lane = Lane(LANE, dict(nodes))
        self._pool = pool
        self._workers = VirtualWorkers(slow)
        self._heard: list[Fact] = []
        self._said: list[Report] = []
        self._perform([*configure(self._lane, pool), *take_over(self._lane, "first", {})], 0.0)

    def give(self, fact: Fact) -> None:
        """A fact of the placement ledger that `acts_on` says something of."""
        self._heard.append(fact)

    def due(self) -> int | None:
        """The ms nearest to the next end, so that an end on a whole ms is told at that ms."""
        due_s = self._workers.next_due_s
        return None if due_s is None else self._begin + math.ceil(due_s * 1000 - 0.5)

    def has_work(self, now: int) -> bool:
        if self._heard or self._said:
            return True
        due_s = self._workers.next_due_s
        return due_s is not None and due_s <= (now - self._begin) / 1000 + HALF_MS

    def step(self, now: int) -> Iterator[tuple[Report, ...]]:
        """What it reports, cut into messages."""
        heard, self._heard = self._heard, []
        now_s = (now - self._begin) / 1000
        for fact in heard:
            effects = react(self._lane, fact)
            if effects:
                self._perform(effects, now_s)
        for ended in self._workers.due(now_s + HALF_MS):
            self._tell(ended, now_s)
        said, self._said = self._said, []
        for at in range(0, len(said), REPORTS):
            yield tuple(said[at : at + REPORTS])

    def fail(self, node_id: str) -> str:
        """The node and all on it die without a word; the incarnation that is gone, "" if none."""
        gone = self._lane.mine.pop(node_id, "")
        self._lane.usurped.add(node_id)
        for worker in self._lane.living():
            if worker.node_id == node_id:
                self._workers.stop(worker.allocation_id, 0.0)
                self._lane.vacate(worker)
        return gone

    def repair(self, node_id: str) -> None:
        """The node joins under a new incarnation, with nothing on it."""
        self._lane.usurped.discard(node_id)
        self._perform(configure(self._lane, self._pool), 0.0)

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
                case _:
                    pass

    def _tell(self, outcome: Outcome | Ended, now_s: float) -> None:
        effects = on_outcome(self._lane, outcome)
        if effects:
            self._perform(effects, now_s)
