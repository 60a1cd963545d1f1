"""One pool of an engine: looks at the engine again and again, and acts by the pool's ledger."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic

from services.executor.agents.lane import AgentLane
from services.executor.agents.lane_relays import NodeHeartbeat
from services.executor.core.engines.contract import (
    Action,
    EngineJob,
    EngineState,
    Forbid,
    Forget,
    Kill,
    NoteLost,
    Signal,
    Start,
    Submit,
)
from services.executor.core.engines.gangs import EngineGang, gangs_of
from services.executor.core.engines.membership import (
    Site,
    problems,
    registrations,
    responding_nodes,
)
from services.executor.core.engines.memory import Memory
from services.executor.core.engines.reconcile import Decided, Look, reconcile
from services.executor.engines.engine import Engine, EngineAway
from services.executor.engines.output import OutputRelay
from services.executor.settings import ExecutorSettings
from services.executor.soft_outbox import SoftOutbox
from shared.bus.logs.log import Log
from shared.contracts.pools import PoolConfigured
from shared.contracts.reports import Report
from shared.ledger.errors import OutcomeUnknown
from shared.telemetry.metrics import Metrics

REPEAT_S = 5.0
"""Time after which a report that the ledger does not show yet is sent again."""
AWAY_AFTER_S = 15.0
"""An engine that has not answered for so long makes the executor unready."""
ACTIONS_S = 0.2
"""Longest wait of a look for its actions, where several gangs are acted on at a time."""

log = logging.getLogger(__name__)


class EnginePool:
    """Serves the nodes of one pool by an engine.

    It stops no worker, however it ends: the engine holds them, and the next look finds them.
    """

    def __init__(
        self,
        settings: ExecutorSettings,
        pool: PoolConfigured,
        engine: Engine,
        connect: Callable[[], Log],
        soft: SoftOutbox,
        metrics: Metrics,
        installation: Callable[[], str],
        at_once: int = 1,
    ) -> None:
        """`at_once` is the number of gangs that are acted on at a time.

        Where it is one, a look waits for all that it has begun. Else the next look may come before,
        and leaves out the gangs that are still acted on: one of many pods holds up no other.
        """
        self._at_once = asyncio.Semaphore(at_once)
        # Of many gangs that are submitted none holds up a start or an end, whose grace goes on.
        self._submits_at_once = self._at_once if at_once == 1 else asyncio.Semaphore(at_once)
        self._actions_s = None if at_once == 1 else ACTIONS_S
        self._acting: dict[str, asyncio.Task[EngineAway | None]] = {}
        """By the identity of a gang, or the ref of a job that has none."""
        self._settings = settings
        self._engine = engine
        self._installation = installation
        self._wake = asyncio.Event()
        self.lane = AgentLane(
            settings, pool, connect, metrics, self._on_orders, backend=engine.backend
        )
        self._output = OutputRelay(engine, soft, pool.partition)
        self._memory = Memory()
        self._sent_s: dict[str, float] = {}
        """When each report was acknowledged, by what it says."""
        self._kept_s = -math.inf
        """When nodes and output were last seen to."""
        self._seen_s = -AWAY_AFTER_S
        self._away = "not looked at yet"

    def problem(self) -> str:
        """Return the reason why it is not ready, "" if it is."""
        if not (self.lane.caught_up.is_set() and self.lane.is_fresh()):
            return f"{self.lane.pool}: the ledger is not read to its end"
        if monotonic() - self._seen_s > AWAY_AFTER_S:
            return f"{self.lane.pool}: {self._engine.backend} is away: {self._away}"
        return ""

    async def run(self) -> None:
        """Serve until cancelled; a failure of any part ends all."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lane.run())
            group.create_task(self._keep_looking())

    def look_soon(self) -> None:
        """Look at once, or right after the look that is under way."""
        self._wake.set()

    def _on_orders(self, nodes: Iterable[str]) -> None:
        self.look_soon()

    async def _keep_looking(self) -> None:
        await self.lane.caught_up.wait()
        try:
            await self._look_for_ever()
        finally:
            for task in self._acting.values():
                task.cancel()
            await asyncio.gather(*self._acting.values(), return_exceptions=True)

    async def _look_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look()
                self._seen_s = monotonic()
            except (EngineAway, OutcomeUnknown) as error:
                self._away = str(error)
                log.warning("look given up", extra={"pool": self.lane.pool, "reason": self._away})
            try:
                async with asyncio.timeout(self._settings.engine_poll_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        """Look once, and carry out what follows. Raises EngineAway and OutcomeUnknown."""
        if not self.lane.is_fresh():
            return
        state, pool = self.lane.state, self.lane.pool
        gangs = gangs_of(state, self._installation(), pool)
        away = self._ended_actions()
        acting = frozenset(self._acting)
        observation = await self._engine.observe(gangs.keys())
        # Looks that orders cause may be many, and each would do this for all nodes and workers.
        is_due = monotonic() - self._kept_s >= self._settings.engine_poll_s
        if is_due:
            self._kept_s = monotonic()
            await self._keep_nodes(observation)
        decided = reconcile(
            Look(
                state=self.lane.state,
                installation=self._installation(),
                pool=pool,
                observation=observation,
                memory=self._memory,
                now_s=monotonic(),
                ledger_ms=self.lane.ledger_ms(),
                pending_s=self._settings.engine_pending_s,
                refusal_of=self._engine.refusal,
                acting=acting,
            )
        )
        away = await self._carry_out(decided, observation.jobs) or away
        if is_due:
            await self._relay_output(gangs)
        if away is not None:
            raise away

    async def _keep_nodes(self, observation: EngineState) -> None:
        """Register nodes, and relay their signs of life and their problems."""
        engine, relays = self._engine, self.lane.relays
        site = Site(
            engine.backend, self._installation(), self.lane.pool, self._settings.executor_id
        )
        await self._report(list(registrations(site, self.lane.state, observation)))
        for node in responding_nodes(self.lane.state, observation):
            relays.heartbeats.post(NodeHeartbeat(node.node_id, node.incarnation, None))
        changed = tuple(problems(site, self.lane.state, observation))
        relays.problems.post(changed, len(changed))

    async def _relay_output(self, gangs: dict[str, EngineGang]) -> None:
        living = frozenset(w.allocation_id for gang in gangs.values() for w in gang.workers)
        for gang in gangs.values():
            for worker in gang.workers:
                if worker.started is not None:
                    await self._output.relay(gang.identity, worker)
        await self._output.end(living)

    async def _carry_out(self, decided: Decided, jobs: Iterable[EngineJob]) -> EngineAway | None:
        """Begin all actions, and report; return the first error of those that have ended.

        An action that fails again and again holds up no other gang. Those of one gang are carried
        out in their order.
        """
        by_gang: dict[str, list[Action]] = {}
        identities = {job.ref: job.identity for job in jobs}
        for action in decided.actions:
            by_gang.setdefault(_identity_of(action, identities), []).append(action)
        for identity, actions in by_gang.items():
            self._acting[identity] = asyncio.create_task(self._act(actions))
        await self._report(decided.reports)
        if self._acting:
            await asyncio.wait(self._acting.values(), timeout=self._actions_s)
        return self._ended_actions()

    def _ended_actions(self) -> EngineAway | None:
        """Forget the gangs whose actions have ended; return the first error of these."""
        ended = [identity for identity, task in self._acting.items() if task.done()]
        faults = [self._acting.pop(identity).result() for identity in ended]
        return next(filter(None, faults), None)

    async def _act(self, actions: Collection[Action]) -> EngineAway | None:
        """Carry out the actions of one gang; return the first error."""
        away = None
        is_submitted = any(isinstance(action, Submit) for action in actions)
        async with self._submits_at_once if is_submitted else self._at_once:
            for action in actions:
                log.info("acting", extra={"pool": self.lane.pool, "action": type(action).__name__})
                try:
                    failure = await self._engine.act(action)
                except EngineAway as error:
                    away = away or error
                    continue
                if failure is not None and isinstance(action, Submit):
                    self._memory.refusals[action.gang.identity] = failure
                # The engine shows these by itself: a look at once would change nothing.
                if not isinstance(action, Forbid | NoteLost | Start):
                    self._wake.set()
        return away

    async def _report(self, reports: list[Report]) -> None:
        """Report what was not reported lately, and wait for the broker."""
        now_s = monotonic()
        self._sent_s = {k: s for k, s in self._sent_s.items() if now_s - s < REPEAT_S}
        new = {report.model_dump_json(): report for report in reports}
        unsent = {key: report for key, report in new.items() if key not in self._sent_s}
        if unsent:
            await self.lane.relays.reports.put(tuple(unsent.values()), count=len(unsent))
            self._sent_s.update(dict.fromkeys(unsent, monotonic()))


def _identity_of(action: Action, identities: Mapping[str, str]) -> str:
    """Return the identity of the gang of an action, the ref of a job that has none."""
    match action:
        case Submit(gang=gang) | Start(gang=gang) | NoteLost(gang=gang):
            return gang.identity
        case Forbid(identity=identity):
            return identity
        case Signal(ref=ref) | Kill(ref=ref) | Forget(ref=ref):
            return identities.get(ref) or ref
