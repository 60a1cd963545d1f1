"""Performs the effects of one pool's core on backends, and sends its reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.executor.backends import Backend
from services.executor.core.effects import (
    Effect,
    ForgetWorker,
    PrepareWorker,
    SendReport,
    StartWorker,
    StopWorker,
    WorkerOutcome,
)
from services.executor.core.membership import configure, leave, register_again, rejoin, take_over
from services.executor.core.outcomes import on_outcome
from services.executor.core.react import react
from services.executor.core.state import ExecutorState
from services.executor.reporter import Reporter
from shared.contracts.access import PoolConfigured
from shared.ledger.decider import Fact


class Agent:
    """One pool of an executor. Until `take_over` it only folds, without effects or reports."""

    def __init__(self, state: ExecutorState, reporter: Reporter) -> None:
        self.state = state
        self._reporter = reporter
        self._backends: Mapping[str, Backend] = {}
        self._acts = False
        self._backend_of: dict[str, Backend] = {}

    def use(self, backends: Mapping[str, Backend]) -> None:
        """Set the backends by name; they pass their outcomes to `on_outcome`."""
        self._backends = backends

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
        self._perform(rejoin(self.state, self.state.lease_s / 4))

    def register_again(self) -> None:
        self._perform(register_again(self.state))

    def leave(self, at_most_s: float) -> None:
        self._perform(leave(self.state, at_most_s))

    def _perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendReport(report=report):
                    self._reporter.add(report)
                case PrepareWorker(spec=spec):
                    backend = self._backends[self.state.nodes[spec.node_id].backend]
                    self._backend_of[spec.allocation_id] = backend
                    backend.prepare(spec)
                case StartWorker(allocation_id=allocation_id):
                    self._backend_of[allocation_id].start(allocation_id)
                case StopWorker(allocation_id=allocation_id, grace_s=grace_s):
                    self._backend_of[allocation_id].stop(allocation_id, grace_s)
                case ForgetWorker(allocation_id=allocation_id):
                    self._forget(allocation_id)

    def _forget(self, allocation_id: str) -> None:
        self._backend_of.pop(allocation_id, None)
        for backend in self._backends.values():
            backend.forget(allocation_id)
