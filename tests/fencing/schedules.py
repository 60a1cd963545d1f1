"""Random schedules of the actions of the fencing model, on the real decider of placement.

Messages may be late, lost and repeated; machines die, reboot, are cloned and cut off; operators
change terms and give nodes up. After each action a judge looks at what really lives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from services.placement.core.pool.node import Node
from shared.contracts.attempts import (
    AllocationReleased,
    JobMigrated,
    JobPreempted,
    JobStartFailed,
    JobStopRequested,
)
from shared.contracts.base import Event, Model
from shared.contracts.nodes import DeclareNodeLost
from shared.contracts.placement import JobPlaced
from shared.contracts.reports import (
    Alive,
    ExecutorReported,
    Heartbeats,
    NodeRegistered,
    NodesSilent,
    NodeTermsReported,
    Report,
    WorkerReady,
    WorkerStopped,
)
from tests.fencing.machines import KILL_S, Machine
from tests.fencing.reader import Reader
from tests.services.placement.core.lane import START, Lane, job

NAMES = ("n1", "n2", "n3")
GPUS = 2
JOBS = 2
STOP_AFTER_S = (10.0, 4.0, 20.0)
STOPS = (JobPreempted, JobMigrated, JobStopRequested, JobStartFailed)
FORGOTTEN = 40
"""Messages on their way at most; older ones are lost."""


class Violation(Exception):
    """Two workers hold one GPU, two attempts of a job live, or a released worker does."""


class Start(NamedTuple):
    """An order that may reach the node at any later time, any number of times."""

    node_id: str
    incarnation: str
    allocation_id: str
    job_id: str
    gpus: tuple[int, ...]


class World:
    """Three nodes, a clone of the first, and placement with its reader of heartbeats."""

    def __init__(
        self,
        seed: int,
        faults: Collection[str] = (),
        *,
        reads_to_end: bool = True,
        goes_on: bool = True,
    ) -> None:
        """Faults are the names of actions; without any, the seed chooses some."""
        self.chance = random.Random(seed)
        self.reader_rules = (reads_to_end, goes_on)
        self.now_s = 0.0
        self.clock_jump_ms = 0
        self.lane = Lane()
        self.configure(STOP_AFTER_S[0])
        self.machines = {name: Machine(name, f"machine-{name}") for name in NAMES}
        self.starts: list[Start] = []
        self.stops: dict[str, str] = {}
        """Allocation id -> node of a worker that has to stop."""
        self.reports: list[Report] = []
        self.silences: list[NodesSilent] = []
        self.released: set[str] = set()
        self.log: list[Heartbeats] = []
        self.submitted = 0
        for machine in self.machines.values():
            self.register(machine)
            self.feed_report(self.reports[-1])
        self.reader = self.new_reader()
        self.usual = {act: self.chance.choice((0.1, 0.4, 0.8)) for act in self.usual_actions()}
        chosen = self.chance.sample(self.fault_actions(), self.chance.randint(1, 3))
        named = [act for act in self.fault_actions() if act.__name__ in faults]
        self.faults = named if faults else chosen
        self.fault_share = self.chance.choice((0.05, 0.2, 0.5))

    def usual_actions(self) -> tuple[Callable[[], None], ...]:
        return (
            self.cut_or_heal,
            self.send_heartbeat,
            self.append_heartbeat,
            self.acknowledge,
            self.lose_heartbeat,
            self.hand_deadlines,
            self.register_anew,
            self.deliver_report,
            self.deliver_start,
            self.deliver_stop,
            self.end_worker,
            self.report_ends,
            self.submit,
            self.read,
            self.judge_silence,
        )

    def fault_actions(self) -> list[Callable[[], None]]:
        return [
            self.offer_old_silence,
            self.restart_reader,
            self.lose_tail,
            self.die_or_boot,
            self.boot_clone,
            self.stick,
            self.declare_lost,
            self.change_terms,
            self.jump_clock,
        ]

    def run(self, seconds: int) -> None:
        """Let seconds pass, each with some of the actions in a random order."""
        for _ in range(seconds):
            self.pass_time()
            self.check()
            actions = [act for act, share in self.usual.items() if self.chance.random() < share]
            actions += [act for act in self.faults if self.chance.random() < self.fault_share]
            self.chance.shuffle(actions)
            for act in actions:
                act()
                self.check()

    # What really lives.

    def check(self) -> None:
        lives: dict[str, str] = {}
        for machine in self.machines.values():
            taken: set[int] = set()
            for step in machine.steps.values():
                if taken.intersection(step.gpus):
                    raise Violation(f"two workers hold a GPU of {machine.hardware}")
                taken.update(step.gpus)
                if step.is_stuck:
                    continue
                attempt = step.allocation_id.rpartition("/")[0]
                if lives.setdefault(step.job_id, attempt) != attempt:
                    raise Violation(f"two attempts of {step.job_id} live")
                if step.allocation_id in self.released:
                    raise Violation(f"{step.allocation_id} lives after its release")

    # The ledger.

    def feed(self, source: str, message: Model) -> None:
        self.lane.now = START + round(self.now_s * 1000) + self.clock_jump_ms
        seen = len(self.lane.facts)
        self.lane.feed(self.lane.an(source, message))
        for fact in self.lane.facts[seen:]:
            self.note(fact.event, fact.place)

    def note(self, event: Event, place: str) -> None:
        """Note the orders that follow from an event."""
        if isinstance(event, JobPlaced):
            for allocation in event.allocations:
                node = self.lane.state.board.nodes[allocation.node_id]
                allocation_id = f"{place}/{allocation.rank}"
                self.starts.append(
                    Start(
                        node.node_id, node.incarnation, allocation_id, event.job_id, allocation.gpus
                    )
                )
        elif isinstance(event, STOPS):
            for start in self.starts:
                if start.job_id == event.job_id and start.allocation_id not in self.released:
                    self.stops[start.allocation_id] = start.node_id
        elif isinstance(event, AllocationReleased):
            self.released.add(event.allocation_id)

    def feed_report(self, report: Report) -> None:
        self.feed("reports", ExecutorReported(executor_id="e", reports=(report,)))

    def submit(self) -> None:
        running = len(self.lane.state.jobs)
        if running < JOBS:
            self.submitted += 1
            workers = self.chance.choice((1, 2))
            gpus = GPUS if workers == 2 else self.chance.choice((1, GPUS))
            self.feed("admission", job(f"j{self.submitted}", gpus, workers, grace_s=0))

    def configure(self, stop_after_s: float) -> None:
        self.lane.pool(
            backends=("agent",),
            stop_after_s=stop_after_s,
            kill_s=KILL_S,
            clock_rate_bound=1.0,
            slack_s=0.0,
            suspect_after_s=3.0,
            start_timeout_s=1e6,
            round_ms=1,
        )

    def node_of(self, machine: Machine) -> Node | None:
        node = self.lane.state.board.nodes.get(machine.node_id)
        return node if node is not None and node.incarnation == machine.incarnation else None

    # Time, leases and workers.

    def pass_time(self) -> None:
        self.now_s += 1.0
        for machine in self.machines.values():
            machine.pass_time(self.now_s)

    def jump_clock(self) -> None:
        self.clock_jump_ms += 3_600_000

    def machine(self) -> Machine | None:
        up = [machine for machine in self.machines.values() if machine.is_up]
        return self.chance.choice(up) if up else None

    def send_heartbeat(self) -> None:
        machine = self.machine()
        if machine and not machine.has_lapsed and not machine.is_cut and len(machine.sent) < 3:
            machine.send(self.now_s)

    def cut_or_heal(self) -> None:
        machine = self.machine()
        if machine and self.chance.random() < 0.3:
            machine.is_cut = not machine.is_cut

    def append_heartbeat(self) -> None:
        if machine := self.machine():
            for heartbeat in machine.sent:
                heartbeat.is_appended = True
                alive = Alive(
                    incarnation=heartbeat.incarnation, sent_boot_ms=round(heartbeat.sent_s * 1000)
                )
                self.log.append(Heartbeats(executor_id="e", nodes={machine.node_id: alive}))

    def acknowledge(self) -> None:
        if machine := self.machine():
            appended = [heartbeat for heartbeat in machine.sent if heartbeat.is_appended]
            for heartbeat in appended[: self.chance.randint(1, 2)]:
                machine.acknowledge(heartbeat, self.now_s)

    def lose_heartbeat(self) -> None:
        machine = self.machine()
        if machine and machine.sent:
            machine.sent.pop(self.chance.randrange(len(machine.sent)))

    def hand_deadlines(self) -> None:
        if machine := self.machine():
            machine.hand_deadlines(self.now_s)

    def end_worker(self) -> None:
        machine = self.machine()
        if machine and machine.steps:
            step = self.chance.choice(list(machine.steps.values()))
            if step.is_stopping or step.is_stuck or self.chance.random() < 0.2:
                machine.end(step.allocation_id)

    def stick(self) -> None:
        machine = self.machine()
        for step in machine.steps.values() if machine else ():
            if step.is_stopping or self.now_s >= step.deadline_s:
                step.is_stuck = True

    # Orders and reports: late, lost, repeated.

    def deliver_start(self) -> None:
        for start in self.chance.sample(self.starts, min(4, len(self.starts))):
            for machine in self.machines.values():
                if not machine.is_up or machine.incarnation != start.incarnation:
                    continue
                if machine.start(start.allocation_id, start.job_id, start.gpus, self.now_s):
                    self.post(WorkerReady(allocation_id=start.allocation_id, job_id=start.job_id))

    def deliver_stop(self) -> None:
        incarnations = {start.allocation_id: start.incarnation for start in self.starts}
        for allocation_id in self.stops:
            for machine in self.machines.values():
                if machine.is_up and machine.incarnation == incarnations[allocation_id]:
                    machine.stop(allocation_id)

    def report_ends(self) -> None:
        """Agents report the workers of which nothing lives and none will start."""
        for start in self.starts:
            if start.allocation_id in self.released:
                continue
            machine = self.holder(start)
            if machine is None or not machine.is_up or start.allocation_id not in machine.refused:
                continue
            if start.allocation_id not in machine.steps:
                self.post(
                    WorkerStopped(
                        allocation_id=start.allocation_id, job_id=start.job_id, exit_code=143
                    )
                )

    def holder(self, start: Start) -> Machine | None:
        """Return the machine whose incarnation an order is for."""
        hardware = start.incarnation.rpartition(".")[0]
        return next((m for m in self.machines.values() if m.hardware == hardware), None)

    def post(self, report: Report) -> None:
        if report not in self.reports:
            self.reports.append(report)
            del self.reports[:-FORGOTTEN]

    def deliver_report(self) -> None:
        if self.reports:
            self.feed_report(self.chance.choice(self.reports[-8:] + self.reports[:2]))

    # Registrations and terms.

    def register(self, machine: Machine) -> None:
        """Make a new incarnation under terms that may be a little old, and register it."""
        terms = self.chance.choice(self.lane.state.terms[-2:]).agent
        known = self.lane.state.generations.get(machine.node_id, 0)
        machine.begin(self.now_s, known, terms.terms_id, terms.stop_after_s or 0.0)
        registration = NodeRegistered(
            node_id=machine.node_id,
            incarnation=machine.incarnation,
            generation=machine.generation,
            backend="agent",
            gpu_type="a100",
            gpus=GPUS,
            cpus=64,
            mem_gib=64,
            boot_id=f"{machine.hardware}-{machine.boot}",
            pid_namespace="1",
            hardware=machine.hardware,
            unusable_gpus=machine.unusable_gpus(),
            terms_id=terms.terms_id,
        )
        self.reports.append(registration)

    def register_anew(self) -> None:
        machine = self.machine()
        if machine and machine.has_lapsed and machine.is_clear():
            self.register(machine)

    def change_terms(self) -> None:
        """Change the terms, or let an agent adopt them, or report that it uses no others."""
        self.chance.choice((self.configure_anew, self.adopt_terms, self.report_terms))()

    def configure_anew(self) -> None:
        self.configure(self.chance.choice(STOP_AFTER_S))

    def adopt_terms(self) -> None:
        terms = self.lane.state.terms[-1].agent
        for machine in self.machines.values():
            if machine.is_up and not machine.has_lapsed:
                machine.terms_id, machine.stop_after_s = terms.terms_id, terms.stop_after_s or 0.0

    def report_terms(self) -> None:
        for machine in self.machines.values():
            applied = NodeTermsReported(
                node_id=machine.node_id, incarnation=machine.incarnation, terms_id=machine.terms_id
            )
            if machine.is_up and machine.longest_deadline_s() <= self.now_s + machine.stop_after_s:
                self.post(applied)
                if self.chance.random() < 0.5:
                    self.feed_report(applied)

    # Placement's reader.

    def new_reader(self) -> Reader:
        return Reader(self.lane.state, self.log, self.now_s, *self.reader_rules)

    def read(self) -> None:
        self.reader.read(self.chance.randint(1, 3), self.now_s)
        heard = self.reader.heard_of()
        if heard.nodes:
            self.feed("local", heard)

    def judge_silence(self) -> None:
        silent = self.reader.judge(self.now_s)
        self.silences = [*self.silences[-10:], silent]
        self.feed("local", silent)

    def offer_old_silence(self) -> None:
        """A placement that lost its lane goes on offering what it found."""
        if self.silences:
            self.feed("local", self.chance.choice(self.silences))

    def restart_reader(self) -> None:
        self.reader = self.new_reader()

    def lose_tail(self) -> None:
        """The broker loses what was not read; the reader notices, and takes its counts back."""
        self.reader.lose_unread(self.now_s)
        self.silences.clear()
        suspected = [node for node in self.reader.nodes() if node.silence is not None]
        anew = tuple(self.reader.silent_node(node, self.now_s) for node in suspected)
        self.feed("local", NodesSilent(nodes=anew, offset=self.reader.position))

    # Machines and operators.

    def die_or_boot(self) -> None:
        machine = self.chance.choice(list(self.machines.values()))
        if machine.is_up:
            machine.die()
        else:
            machine.is_up, machine.boot = True, machine.boot + 1
            self.register(machine)

    def boot_clone(self) -> None:
        """The disk of n1 is copied: a machine with its name, generation and state boots."""
        original = self.machines["n1"]
        if "clone" not in self.machines and original.generation:
            clone = replace(original, hardware="machine-clone", steps={}, sent=[])
            clone.refused = set(original.refused)
            clone.is_up = True
            self.machines["clone"] = clone
            self.register(clone)

    def declare_lost(self) -> None:
        self.feed("commands", DeclareNodeLost(node_id=self.chance.choice(NAMES)))
