"""Runs a scenario to its end."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.placement.core.solver.contended import solve_now
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Command
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from shared.contracts.terms import IN_EXECUTOR_LEASES
from shared.process.progress import ReportCount
from simulator.engine.models import load_models
from simulator.engine.observer import SimulationObserver
from simulator.engine.reporting import ReportingJobs
from simulator.engine.scenario import FIRST_MS, NodeCordon, Scenario, submission
from simulator.engine.world import BEGIN, Listener, Planner, World
from simulator.metrics.outcome import Ints, ScheduleOutcome

MAX_QUIET_INSTANTS = 200
"""Instants without activity after the last arrival, after which the rest can never start."""
JOINED_MS = FIRST_MS // 2
"""Time by which all nodes have joined, or were lost again."""
PROGRESS_EVERY = 256
"""Arrivals between two calls of `report_count`."""

Action = Callable[[World], None]
"""(ended or rejected jobs, all jobs)"""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Result of a simulation. Clock ms are counted from the world's beginning."""

    scenario: Scenario
    outcome: ScheduleOutcome
    start_ms: Ints
    """First start of each job; -1: never."""
    end_ms: Ints
    rejected: dict[str, int]
    """Jobs that admission rejected, by reason."""
    cpu_s: float
    instants: int
    records: dict[str, int]
    broker: MemoryBroker | None
    """The ledgers, if requested."""


@dataclass(slots=True)
class Agenda:
    """External actions by time and then in the order of entering."""

    entries: list[tuple[int, int, Action]] = field(default_factory=list)
    entered: int = 0

    def add(self, at: int, action: Action) -> None:
        heapq.heappush(self.entries, (at, self.entered, action))
        self.entered += 1

    def pop(self) -> tuple[int, Action]:
        at, _, action = heapq.heappop(self.entries)
        return at, action


def simulate(
    scenario: Scenario,
    *,
    ledgers: bool = False,
    report_count: ReportCount = lambda done, jobs: None,
    planner: Planner = solve_now,
    reporting: ReportingJobs | None = None,
    on_ranking: Listener | None = None,
) -> Simulation:
    """Run until every job has ended, was rejected, or can never start.

    `on_ranking` receives the facts of the priority ledger.
    """
    began_s = time.process_time()
    watch = SimulationObserver(scenario)
    listeners: dict[str, Listener] = {"placement": watch.placement, "admission": watch.admission}
    if on_ranking:
        listeners["priority"] = on_ranking
    world = World(
        scenario.pool,
        sorted({job.tenant for job in scenario.jobs}),
        scenario.nodes,
        ledgers=ledgers,
        slow=scenario.slow,
        listeners=listeners,
        planner=planner,
        models=load_models(scenario.pool),
        reporting=reporting,
    )
    agenda = schedule_actions(scenario)
    _play(world, agenda, watch, report_count)
    outcome = watch.outcome(world.now)
    return Simulation(
        scenario,
        outcome,
        watch.start_ms,
        watch.end_ms,
        dict(watch.rejected),
        time.process_time() - began_s,
        world.instants,
        {name: cell.seq for name, cell in world.lanes.items()},
        world.broker if ledgers else None,
    )


def _play(
    world: World, agenda: Agenda, watch: SimulationObserver, report_count: ReportCount
) -> None:
    jobs = len(watch.start_ms)
    while agenda.entries:
        at, action = agenda.pop()
        world.run(at)
        action(world)
        if agenda.entered % PROGRESS_EVERY == 0 or len(agenda.entries) % PROGRESS_EVERY == 0:
            report_count(watch.over, jobs)
        if watch.over == jobs:
            break
    _finish(world, watch, jobs, report_count)


def _finish(world: World, watch: SimulationObserver, jobs: int, report_count: ReportCount) -> None:
    quiet, moves = 0, watch.moves
    while watch.over < jobs and quiet < MAX_QUIET_INSTANTS:
        world.settle()
        due = world.due()
        if due is None:
            break
        world.run(max(due, world.now + 1))
        idle = watch.moves == moves and world.executor.due() is None
        quiet, moves = quiet + 1 if idle else 0, watch.moves
        if watch.over % PROGRESS_EVERY == 0:
            report_count(watch.over, jobs)
    world.settle()
    report_count(watch.over, jobs)


def schedule_actions(scenario: Scenario) -> Agenda:
    """Return every submit, every failure and repair of a node, and every cordon."""
    agenda = Agenda()
    for index, job in enumerate(scenario.jobs):
        agenda.add(BEGIN + scenario.clock_ms(job.submit_s), _submits(scenario, index))
    for failure in scenario.failures:
        down = BEGIN + max(1, scenario.clock_ms(failure.down_s))
        agenda.add(down, _falls(agenda, failure.node_id, down, scenario.pool.lease_s))
        if math.isinf(failure.up_s):
            continue
        up = max(down + 1, BEGIN + scenario.clock_ms(failure.up_s))
        agenda.add(up, _returns(failure.node_id))
    for number, cordon in enumerate(scenario.cordons):
        at = BEGIN + max(JOINED_MS, scenario.clock_ms(cordon.at_s))
        agenda.add(at, _cordons(f"cordon-{number}", cordon))
    return agenda


def _submits(scenario: Scenario, index: int) -> Action:
    def submit(world: World) -> None:
        command = submission(scenario, index)
        world.command(f"submit-{index}", command, tenant=command.tenant, subject=command.job_id)

    return submit


def _falls(agenda: Agenda, node_id: str, down: int, lease_s: float) -> Action:
    """Return the failure of a node: it is suspected after a lease, and lost after two."""

    def fall(world: World) -> None:
        incarnation = world.fail(node_id)
        if incarnation:
            for silent_s in (lease_s, IN_EXECUTOR_LEASES * lease_s):
                at = down + math.ceil(silent_s * 1000)
                agenda.add(at, _reports_silence(node_id, incarnation, silent_s))

    return fall


def _reports_silence(node_id: str, incarnation: str, silent_s: float) -> Action:
    return lambda world: world.report_silence(node_id, incarnation, silent_s)


def _returns(node_id: str) -> Action:
    return lambda world: world.repair(node_id)


COMMANDS: dict[str, Callable[[str], Command]] = {
    "cordoned": lambda node_id: CordonNode(node_id=node_id),
    "draining": lambda node_id: DrainNode(node_id=node_id),
    "open": lambda node_id: UncordonNode(node_id=node_id),
}


def _cordons(id: str, cordon: NodeCordon) -> Action:
    def change(world: World) -> None:
        world.command(id, COMMANDS[cordon.change](cordon.node_id), subject=cordon.node_id)

    return change
