"""Performs the effects of one pool's core on its workers, and sends its reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.executor.core.virtual.effects import (
    Effect,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerOutcome,
)
from services.executor.core.virtual.membership import (
    configure,
    leave,
    register_again,
    rejoin,
    take_over,
)
from services.executor.core.virtual.outcomes import on_outcome
from services.executor.core.virtual.react import react
from services.executor.core.virtual.state import ExecutorState
from services.executor.virtual.backend import VirtualBackend
from services.executor.virtual.reporter import Reporter
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Fact


class Performer:
    """One pool of an executor. Until `take_over` it only folds, without effects or reports."""

    def __init__(self, state: ExecutorState, reporter: Reporter, slow: Mapping[str, float]) -> None:
        self.state = state
        self._reporter = reporter
        self._acts = False
        self.backend = VirtualBackend(self.on_outcome, lambda: self.state.time_scale, slow)

    def on_facts(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            effects = react(self.state, fact)
            if self._acts and effects:
                self._perform(effects)

    def on_outcome(self, outcome: WorkerOutcome) -> None:
        self._perform(on_outcome(self.state, outcome))

    def on_pool(self, pool: PoolConfigured) -> None:
        self._perform(configure(self.state, pool))

    def take_over(self, incarnation: str) -> None:
        self._acts = True
        self._perform(take_over(self.state, incarnation))

    def rejoin(self) -> None:
        self._perform(rejoin(self.state))

    def register_again(self) -> None:
        self._perform(register_again(self.state))

    def leave(self) -> None:
        self._perform(leave(self.state))

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendReport(report=report):
                    self._reporter.add(report)
                case PrepareWorker(spec=spec):
                    self.backend.prepare(spec)
                case StartWorker(allocation_id=allocation_id):
                    self.backend.start(allocation_id)
                case StopWorker(allocation_id=allocation_id):
                    self.backend.stop(allocation_id)
