"""One lane of placement with a clock of its own: tests say what comes in and read what is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

from services.placement.core.decide import Placement
from services.placement.core.pool.job import Job
from services.placement.core.pool.state import Pool
from services.placement.core.scheduled.request import propose_now
from shared.contracts.admission import CancelRequested, JobAdmitted, JobReadmitted
from shared.contracts.base import Event, Model
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.reports import (
    CheckpointsReported,
    ExecutorReported,
    NodeLeaving,
    NodeRegistered,
    NodesHeard,
    NodesSilent,
    Report,
    SilentNode,
    WorkerCheckpointed,
    WorkerExited,
    WorkerReady,
    WorkerRefused,
    WorkerStopped,
)
from shared.ledger.decider import Fact, Input

START = 1_700_000_000_000
ORDER = count(START)
"""Jobs are submitted in the order in which a test makes them."""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class Lane:
    """Feeds the decider as the shell does, and keeps all facts."""

    decider: Placement = field(default_factory=Placement)
    state: Pool = field(default_factory=lambda: Pool(0))
    facts: list[Fact] = field(default_factory=list)
    now: int = START
    seq: int = 0
    ids: count[int] = field(default_factory=lambda: count(1))
    proposes: bool = True
    """Makes the proposals of the pool's scheduler as soon as they are opened."""

    def feed(self, *inputs: Input, after_ms: int = 0) -> list[Event]:
        self.now += after_ms
        self.seq += 1
        decided: list[Event] = []
        for decision in self.decider.decide(self.state, inputs, self.now):
            place = (0, self.seq, len(decided))
            fact = Fact(
                decision.event, "placement", *place, self.now, decision.cause, decision.traceparent
            )
            self.decider.evolve(self.state, fact)
            self.facts.append(fact)
            decided.append(decision.event)
        if self.proposes and (proposal := propose_now(self.state)) is not None:
            decided += self.feed(self.an("local", proposal))
        return decided

    def wake(self) -> list[Event]:
        """Sleep until the decider wants to be called, then call it."""
        due = self.decider.next_wake(self.state)
        assert due is not None
        self.now = max(self.now, due)
        return self.feed()

    def an(self, source: str, message: Model, **more: str) -> Input:
        given = {"id": f"in-{next(self.ids)}", "traceparent": TRACE, **more}
        return Input(source, message=message, at=self.now, **given)  # type: ignore[arg-type]

    def pool(self, **settings: object) -> list[Event]:
        fields = {"partition": 0, "pool": "p", "lease_s": 30.0, "round_ms": 100, **settings}
        return self.feed(self.an("access", PoolConfigured.model_validate(fields)))

    def node(
        self, node_id: str, gpus: int = 8, incarnation: str = "i1", **more: object
    ) -> list[Event]:
        return self.report(registered(node_id, gpus, incarnation, **more))

    def report(self, *reports: Report, after_ms: int = 0) -> list[Event]:
        message = ExecutorReported(executor_id="e1", reports=reports)
        return self.feed(self.an("reports", message), after_ms=after_ms)

    def checkpoint(self, *reports: WorkerCheckpointed, after_ms: int = 0) -> list[Event]:
        message = CheckpointsReported(executor_id="e1", checkpoints=reports)
        return self.feed(self.an("reports", message), after_ms=after_ms)

    def checkpoint_now(self, job_id: str, after_ms: int = 0) -> list[Event]:
        """Let the worker of rank 0 report, with the time since its start."""
        ran_ms = self.now + after_ms - self.job(job_id).started_at
        return self.checkpoint(written(self.ids_of(job_id)[0], job_id, ran_ms), after_ms=after_ms)

    def submit(self, *jobs: JobAdmitted, after_ms: int = 0) -> list[Event]:
        return self.feed(*(self.an("admission", job) for job in jobs), after_ms=after_ms)

    def cancel(self, job_id: str, reason: str = "") -> list[Event]:
        request = CancelRequested(job_id=job_id, tenant="t", command_id="c1", reason=reason)
        return self.feed(self.an("admission", request))

    def readmit(self, job_id: str, attempt: int, *avoid: str) -> list[Event]:
        again = JobReadmitted(job_id=job_id, tenant="t", attempt=attempt, avoid_nodes=avoid)
        return self.feed(self.an("admission", again))

    def rank(self, *job_ids: str) -> list[Event]:
        ranked = tuple(Ranked(job_id=j, score=float(-i)) for i, j in enumerate(job_ids))
        message = QueueRanked(pool="p", base_policy="fair_share", ranked=ranked)
        return self.feed(self.an("priority", message))

    def score(self, running: dict[str, float] | None = None, **waiting: float) -> list[Event]:
        """A rank by scores, of waiting jobs and of running ones."""
        ranked = [Ranked(job_id=j, score=s) for j, s in waiting.items()]
        holders = [Ranked(job_id=j, score=s) for j, s in (running or {}).items()]
        message = QueueRanked(pool="p", base_policy="srsf", ranked=ranked, running=holders)
        return self.feed(self.an("priority", message))

    def silent(self, *nodes: str, silent_ms: int | None = None, offset: int = 9) -> list[Event]:
        """Report nodes as silent; by default for as long as it takes to lose them."""
        silent = tuple(self.silence_of(name, silent_ms) for name in nodes)
        return self.feed(self.an("local", NodesSilent(nodes=silent, offset=offset)))

    def silence_of(self, node_id: str, silent_ms: int | None = None) -> SilentNode:
        node = self.state.board.nodes[node_id]
        return SilentNode(
            node_id=node_id,
            incarnation=node.incarnation,
            silent_ms=int(self.state.lost_after_ms(node)) if silent_ms is None else silent_ms,
            terms_id=node.oldest_terms,
        )

    def heard(self, *nodes: str) -> list[Event]:
        known = {name: self.state.board.nodes[name].incarnation for name in nodes}
        return self.feed(self.an("local", NodesHeard(nodes=known)))

    def command(self, message: Model, id: str = "") -> list[Event]:
        return self.feed(self.an("commands", message, **({"id": id} if id else {})))

    def ready(self, *job_ids: str, after_ms: int = 0) -> list[Event]:
        return self.report(*(r for j in job_ids for r in self.all(j, ready)), after_ms=after_ms)

    def exited(self, *job_ids: str, code: int = 0, after_ms: int = 0) -> list[Event]:
        reports = [exited(i, j, code) for j in job_ids for i in self.ids_of(j)]
        return self.report(*reports, after_ms=after_ms)

    def stopped(self, *job_ids: str, after_ms: int = 0) -> list[Event]:
        return self.report(*(r for j in job_ids for r in self.all(j, stopped)), after_ms=after_ms)

    def run(self, *jobs: JobAdmitted, after_ms: int = 0) -> None:
        """Submit, and start whatever of it was placed."""
        self.submit(*jobs, after_ms=after_ms)
        self.ready(*(job.job_id for job in jobs if self.job(job.job_id).phase == "placed"))

    def job(self, job_id: str) -> Job:
        return self.state.jobs[job_id]

    def ids_of(self, job_id: str) -> list[str]:
        return list(self.job(job_id).allocations)

    def all(self, job_id: str, make: object) -> list[Report]:
        return [make(i, job_id) for i in self.ids_of(job_id)]  # type: ignore[operator]

    def nodes_of(self, job_id: str) -> tuple[str, ...]:
        return self.job(job_id).nodes

    def free(self, node_id: str) -> list[int]:
        return self.state.board.nodes[node_id].free


def registered(
    node_id: str, gpus: int = 8, incarnation: str = "i1", **more: object
) -> NodeRegistered:
    """Incarnation `i2` has generation 2, after a reboot of the same machine."""
    fields = {
        "node_id": node_id,
        "incarnation": incarnation,
        "generation": int(incarnation.lstrip("i")),
        "boot_id": f"boot-{incarnation}",
        "pid_namespace": "4026531836",
        "hardware": f"machine-of-{node_id}",
        "backend": "virtual",
        "gpu_type": "a100",
        "gpus": gpus,
        "cpus": 256.0,
        "mem_gib": 2048.0,
        **more,
    }
    return NodeRegistered.model_validate(fields)


def ready(allocation_id: str, job_id: str) -> WorkerReady:
    return WorkerReady(allocation_id=allocation_id, job_id=job_id)


def exited(allocation_id: str, job_id: str, code: int = 0) -> WorkerExited:
    return WorkerExited(allocation_id=allocation_id, job_id=job_id, exit_code=code)


def written(allocation_id: str, job_id: str, ran_ms: int, step: int = 0) -> WorkerCheckpointed:
    return WorkerCheckpointed(allocation_id=allocation_id, job_id=job_id, ran_ms=ran_ms, step=step)


def stopped(allocation_id: str, job_id: str) -> WorkerStopped:
    return WorkerStopped(allocation_id=allocation_id, job_id=job_id)


def refused(allocation_id: str, job_id: str, reason: str = "gpu_busy") -> WorkerRefused:
    return WorkerRefused(allocation_id=allocation_id, job_id=job_id, reason=reason)


def left(node_id: str, incarnation: str = "i1") -> NodeLeaving:
    return NodeLeaving(node_id=node_id, incarnation=incarnation)


def job(job_id: str, gpus: float = 1, workers: int = 1, at: int = 0, **more: object) -> JobAdmitted:
    """`more` are fields of the spec, and `cpus`, `mem_gib` of the gang."""
    gang = Gang.model_validate(
        {
            "workers": workers,
            "gpus_per_worker": gpus,
            "cpus_per_worker": more.pop("cpus", 1),
            "mem_gib_per_worker": more.pop("mem_gib", 1),
        }
    )
    spec = JobSpec.model_validate({"name": job_id, "gang": gang, **more})
    return JobAdmitted(job_id=job_id, tenant="t", submitted_at=at or next(ORDER), spec=spec)


def kinds(events: Sequence[Event]) -> list[str]:
    """Names of the events, for tests about their order."""
    return [type(event).__name__ for event in events]


def only(kind: type[E], events: Sequence[Event]) -> list[E]:
    return [event for event in events if type(event) is kind]


def lane(*nodes: str, gpus: int = 8, **settings: object) -> Lane:
    """A pool with these nodes."""
    made = Lane()
    made.pool(**settings)
    for name in nodes:
        made.node(name, gpus)
    return made
