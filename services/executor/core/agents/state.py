"""Nodes of a pool that have an agent, and the workers on them that are not released yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from shared.contracts.agents import Launch, Position, Terms
from shared.contracts.jobs import JobSpec
from shared.contracts.terms import PoolTerms

RELEASED_KEPT = 256
"""Releases per node that are remembered for `forget` and for the last output; an agent that missed
more forgets later."""
ORDERS_PER_EVENT = 4096
"""Places reserved for each event, so that orders of one gang on one node differ in theirs."""


class Place(NamedTuple):
    """A place among the orders of a lane: total, and the same for every executor that folds it."""

    seq: int = 0
    step: int = 0

    @classmethod
    def of_event(cls, seq: int, event_index: int, ordinal: int = 0) -> Place:
        """Return the place of an order of an event; `ordinal` tells apart orders of one event."""
        return cls(seq, event_index * ORDERS_PER_EVENT + ordinal)

    @classmethod
    def of(cls, position: Position) -> Place:
        return cls(position.seq, position.index)

    @property
    def position(self) -> Position:
        return Position(seq=self.seq, index=self.step)


@dataclass(slots=True)
class AgentJob:
    """A job that has not ended, as of its last JobEnqueued."""

    tenant: str
    spec: JobSpec
    array_index: int | None


@dataclass(slots=True)
class AgentWorker:
    """One allocation on a node with an agent, until the ledger releases it."""

    allocation_id: str
    node_id: str
    incarnation: str
    """Uuid of the incarnation that the worker was placed on."""
    launch: Launch
    placed: Place
    started: Place | None = None
    stopped: Place | None = None
    master_port: int | None = None

    @property
    def source(self) -> OutputSource:
        launch = self.launch
        return OutputSource(launch.job_id, launch.tenant, launch.attempt, launch.rank)


class OutputSource(NamedTuple):
    """The worker that output and telemetry come from, as readers of them know it."""

    job_id: str
    tenant: str
    attempt: int
    rank: int


class Released(NamedTuple):
    """An allocation that the ledger released; its last output may still come."""

    at: Place
    allocation_id: str
    incarnation: str
    source: OutputSource


@dataclass(slots=True)
class AgentNode:
    """A node with an agent, as of its last NodeJoined."""

    node_id: str
    incarnation: str
    generation: int
    joined: Place
    address: str
    terms_id: str = ""
    """Terms under which it registered; empty: those of the pool at its NodeJoined."""
    lost: Place | None = None
    fenced: bool = False
    """Its loss is one after which nothing of this incarnation may go on."""
    workers: dict[str, AgentWorker] = field(default_factory=dict)
    released: deque[Released] = field(default_factory=lambda: deque(maxlen=RELEASED_KEPT))


@dataclass(slots=True)
class AgentPool:
    """The fold of one lane; only `evolve` changes it."""

    SCHEMA: ClassVar[str] = "agents-3"

    partition: int
    through: Place = Place()
    """The last place of the last record that is folded."""
    terms: PoolTerms | None = None
    terms_at: Place = Place()
    jobs: dict[str, AgentJob] = field(default_factory=dict)
    nodes: dict[str, AgentNode] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """Address of each node of the pool, also of nodes without an agent."""
    workers: dict[str, AgentWorker] = field(default_factory=dict)
    of_job: dict[str, list[str]] = field(default_factory=dict)

    def workers_of(self, job_id: str, attempt: int) -> list[AgentWorker]:
        workers = (self.workers[name] for name in self.of_job.get(job_id, ()))
        return [worker for worker in workers if worker.launch.attempt == attempt]

    def source_of(self, node_id: str, allocation_id: str) -> OutputSource | None:
        """Return the source of a worker of the node, also of one that was released lately."""
        node = self.nodes.get(node_id)
        if node is None:
            return None
        if (worker := node.workers.get(allocation_id)) is not None:
            return worker.source
        return next((r.source for r in node.released if r.allocation_id == allocation_id), None)

    def agent_terms(self) -> Terms | None:
        """Return the present terms of nodes with an agent; None before the pool is configured."""
        return self.terms.agent if self.terms else None

    def terms_due_at(self, node: AgentNode) -> Place | None:
        """Return the place of the order to use the present terms; None: the node uses them.

        The terms may have changed between the registration of a node and its NodeJoined: then the
        order follows right after the latter.
        """
        terms = self.agent_terms()
        if terms is None:
            return None
        if self.terms_at > node.joined:
            return self.terms_at
        is_present = node.terms_id in ("", terms.terms_id)
        return None if is_present else Place(node.joined.seq, node.joined.step + 1)
