"""Nodes of a pool that have an agent, and the workers on them that are not released yet."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field, fields
from typing import NamedTuple, cast

import msgspec

from shared.contracts.agents import Launch, Position, Terms
from shared.contracts.injections import FaultInjected
from shared.contracts.job_spec import JobSpec
from shared.contracts.node_problems import NodeProblem
from shared.contracts.nodes import Backend
from shared.contracts.placement import ArrayProgramNoted
from shared.contracts.terms import PoolTerms

RELEASED_KEPT = 256
"""Releases per node that are remembered for `forget` and for the last output; an agent that missed
more forgets later."""
LOST_KEPT = 64
"""Lost nodes of which releases are remembered, the latest; of others only the generation is, until
they are forgotten."""
WRITERS_KEPT = 4096
"""Processes that wrote the ledger, so many starts and takeovers of placement."""
UNKNOWN_WRITER = "?"
"""In place of a writer that is forgotten. Without a name an agent would count as one of an older
version, which need not have one."""
GONE_KEPT = 2048
"""Lost nodes without workers that are known each, the latest; fewer than placement keeps, so that
`generation_floor` is never below its floor."""
ORDERS_PER_EVENT = 4096
"""Positions reserved for each event, so that orders of one gang on one node differ in theirs."""


class OrderPosition(NamedTuple):
    """A position among the orders of a lane: total, the same for every executor that folds it."""

    seq: int = 0
    step: int = 0

    @classmethod
    def of_event(cls, seq: int, event_index: int, ordinal: int = 0) -> OrderPosition:
        """Return the position of an order; `ordinal` separates the orders of one event."""
        return cls(seq, event_index * ORDERS_PER_EVENT + ordinal)

    @classmethod
    def of(cls, position: Position) -> OrderPosition:
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
    placed: OrderPosition
    started: OrderPosition | None = None
    started_ms: int = 0
    """Time of its start, by the ledger."""
    stopped: OrderPosition | None = None
    master_port: int | None = None
    series: str = ""
    pod: str = ""
    """UID of the pod of its tenant that is this worker; empty: its executor makes one."""

    @property
    def source(self) -> OutputSource:
        launch = self.launch
        return OutputSource(launch.job_id, launch.tenant, launch.attempt, launch.rank, self.series)


class OutputSource(NamedTuple):
    """The worker that output and telemetry come from, as readers of them know it."""

    job_id: str
    tenant: str
    attempt: int
    rank: int
    series: str = ""
    """Name of jobs that do the same work."""


class NodeInjection(NamedTuple):
    """The fault that is injected on a node; None: the one before is over."""

    at: OrderPosition
    injected: FaultInjected | None


class Released(NamedTuple):
    """An allocation that the ledger released; its last output may still come."""

    at: OrderPosition
    allocation_id: str
    incarnation: str
    source: OutputSource


class Capacity(NamedTuple):
    """The capacity that a node registered; an engine's node joins anew where it has changed."""

    gpu_type: str = ""
    gpus: int = 0
    cpus: float = 0.0
    mem_gib: float = 0.0
    unusable_gpus: tuple[int, ...] = ()


@dataclass(slots=True)
class AgentNode:
    """A node with an agent, as of its last NodeJoined."""

    node_id: str
    incarnation: str
    generation: int
    joined: OrderPosition
    address: str
    terms_id: str = ""
    """Terms under which it registered; empty: those of the pool at its NodeJoined."""
    lost: OrderPosition | None = None
    fenced: bool = False
    """Its loss is one after which nothing of this incarnation may go on."""
    injection: NodeInjection | None = None
    gpu_type: str = ""
    capacity: Capacity = Capacity()
    problems: frozenset[NodeProblem] = frozenset()
    """As placement noted them."""
    workers: dict[str, AgentWorker] = field(default_factory=dict)
    released: deque[Released] = field(default_factory=lambda: deque(maxlen=RELEASED_KEPT))
    """The latest, by their positions."""

    def __getstate__(self) -> dict[str, object]:
        """Return the fields for a snapshot, the releases as one text: they are most of it, and as
        objects they would hold the executor for seconds."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "released": msgspec.msgpack.encode(tuple(self.released))}

    def __setstate__(self, values: dict[str, object]) -> None:
        packed = cast("bytes", values["released"])
        releases = msgspec.msgpack.decode(packed, type=list[Released])
        for name, value in {**values, "released": deque(releases, maxlen=RELEASED_KEPT)}.items():
            setattr(self, name, value)


@dataclass(slots=True)
class AgentPool:
    """The fold of one lane; only `evolve` changes it."""

    partition: int
    backend: Backend = "agent"
    """Its nodes are those of this backend: of agents, or of an engine."""
    through: OrderPosition = OrderPosition()
    """The last position of the last record that is folded."""
    writers: list[tuple[int, str]] = field(default_factory=list)
    """The latest processes that wrote the ledger, with the sequence number of their first record.

    A node names the writer of the last record that it knows; of a record before the first of these
    the writer is `UNKNOWN_WRITER`, and the node is fenced, which is always safe."""
    terms: PoolTerms | None = None
    terms_at: OrderPosition = OrderPosition()
    time_scale: float = 1.0
    """Cluster seconds per wall second, of the pool."""
    release: int = 0
    """Of the pool: what earlier ones cannot read is not sent before it is finished."""
    jobs: dict[str, AgentJob] = field(default_factory=dict)
    programs: dict[str, ArrayProgramNoted] = field(default_factory=dict)
    """By array that has not ended and has its program recorded once."""
    nodes: dict[str, AgentNode] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """Address of each node of the pool, also of nodes without an agent."""
    workers: dict[str, AgentWorker] = field(default_factory=dict)
    of_job: dict[str, list[str]] = field(default_factory=dict)
    lost: dict[str, None] = field(default_factory=dict)
    """Lost nodes whose releases and address are remembered, in the order of their losses."""

    gone: dict[str, None] = field(default_factory=dict)
    """Lost nodes without workers, in the order in which that came to be."""
    generation_floor: int = 0
    """Highest generation of the nodes that are forgotten: names that are not known begin above."""

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

    def may_lie_ahead(self, allocation_id: str) -> bool:
        """Return whether a worker may stand in the part of the ledger that is not folded yet."""
        partition, _, rest = allocation_id.partition("/")
        seq = rest.partition("/")[0]
        return partition == str(self.partition) and seq.isdecimal() and int(seq) > self.through.seq

    def writer_of(self, seq: int) -> str:
        """Return the process that wrote a record, `UNKNOWN_WRITER` if it is forgotten.

        Empty for 0, the place before the first record.
        """
        index = bisect_right(self.writers, seq, key=lambda entry: entry[0])
        if index:
            return self.writers[index - 1][1]
        return UNKNOWN_WRITER if seq else ""

    def agent_terms(self) -> Terms | None:
        """Return the present terms of nodes with an agent; None before the pool is configured."""
        return self.terms.agent if self.terms else None

    def terms_due_at(self, node: AgentNode) -> OrderPosition | None:
        """Return the position of the order to use the present terms; None: the node uses them.

        The terms may have changed between the registration of a node and its NodeJoined: then the
        order follows right after the latter.
        """
        terms = self.agent_terms()
        if terms is None:
            return None
        if self.terms_at > node.joined:
            return self.terms_at
        is_present = node.terms_id in ("", terms.terms_id)
        return None if is_present else OrderPosition(node.joined.seq, node.joined.step + 1)
