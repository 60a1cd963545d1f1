"""Nodes, the queue, allocations and faults."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class Injection(TypedDict):
    """The fault that an administrator injected."""

    fault: str
    factor: float
    until: int
    reason: str


class NodeProblem(TypedDict):
    """A problem that an executor or the agent of a node reports."""

    problem: str
    """`cloned_identity`, `disk_full`, `gpu_fault`, `gpu_slow`, `inventory_differs`,
    `engine_drained` or `foreign_work`."""
    detail: str
    gpus: NotRequired[list[int]]
    """Those that had it as it began, where they are known."""
    since_at: int


class NodeSuspicion(TypedDict):
    """A reason for which a node, or one GPU of it, is taken to be slow."""

    fault_id: str
    """A fault, `history/NODE` or `history/NODE/GPU`; empty for a tenant."""
    gpu: int | None
    """Null: the node as a whole."""
    slowdown: float
    since_at: int
    until: int | None
    """Null: while it is suspected."""


class Node(TypedDict):
    """A node with its GPUs."""

    node_id: str
    pool: str | None
    backend: str
    """How it runs jobs: `agent`, or simulated."""
    gpu_type: str
    gpus: int
    cpus: float
    mem_gib: float
    rack: str
    labels: dict[str, str]
    alive: bool
    cordoned: bool
    draining: bool
    health: float
    """Speed beside its peers: 1 is healthy."""
    reason: str
    """Why it is cordoned or lost."""
    executor_id: str
    joined_at: int
    lost_at: int
    state: str
    """`joined`, `suspected`, `declared` or `lost`."""
    silent_ms: int
    """Present silence of a suspected node."""
    suspected_at: int
    lost_after_ms: int | None
    """Silence at which it is lost; null: never."""
    generation: int
    unusable_gpus: list[int]
    """GPUs that get no job."""
    fencing: str
    limits: str
    """`v1` or `v2` of control groups, `none`; empty: not known."""
    injection: Injection | None
    problems: list[NodeProblem]
    suspicions: list[NodeSuspicion]
    """Reasons for its health."""
    used_milli: list[int]
    """Thousandths in use of each GPU."""
    as_of: int
    identity: str | None
    """`pending`, `approved`, `expired` or `revoked`; null: it never joined with a token."""


class NodeToken(TypedDict):
    """A join token, without its secret."""

    token_id: str
    pool: str
    state: str
    """`valid`, `expired`, `used_up` or `revoked`."""
    approve: bool
    """Its nodes need no approval."""
    replace: bool
    """A machine may replace its own valid identity."""
    uses: int
    max_uses: int | None
    expires_at: int


class EnrolledNode(TypedDict):
    """The identity of a node that joined with a token."""

    node_id: str
    pool: str
    state: str
    """`pending`, `approved`, `expired` or `revoked`."""
    expires_at: int
    token_id: str
    hardware: str


class QueuedJob(TypedDict):
    """A waiting job."""

    pool: str | None
    position: int | None
    """Null: not ranked yet."""
    job_id: str
    tenant: str
    name: str
    priority_class: str
    gpus: float
    attempt: int
    waiting_since: int
    held_reason: str
    short_gpus: float
    score: float | None
    base_policy: str | None
    ranked_at: int | None


class Allocation(TypedDict):
    """The GPUs of a worker."""

    allocation_id: str
    pool: str | None
    job_id: str
    tenant: str
    attempt: int
    rank: int
    node_id: str
    gpus: list[int]
    gpu_milli: int
    """Thousandths of each of its GPUs."""
    cpus: float
    mem_gib: float
    placed_at: int
    released_at: int
    reason: str
    exit_code: int | None


class Fault(TypedDict):
    """A worker that was slower than its peers."""

    fault_id: str
    pool: str | None
    job_id: str
    tenant: str
    node_id: str
    allocation_id: str
    slowdown: float
    """Multiple of the time of its peers."""
    score: float
    cause: str
    part: str
    lost_gpu_s: float
    cost_gpu_s: float
    avoided_gpu_s: float
    state: str
    """`suspected`, `cleared`, `dismissed` or `false_alarm`."""
    reason: str
    suspected_at: int
    closed_at: int
    health: float | None
    """Health of the node; null: it is forgotten."""


class Mitigation(TypedDict):
    """The mitigation of slow workers in a pool, and their cost; null: nothing happened yet."""

    pool: str
    mitigation: str | None
    """Setting of the pool: `off`, `approve` or `automatic`."""
    is_open: bool | None
    """The breaker is open: nothing is applied."""
    plan_id: str | None
    nodes: int | None
    out_of_use: int | None
    most: int | None
    worker_strictness: float | None
    job_strictness: float | None
    faults: int
    open: int
    false_alarms: int
    lost_gpu_s: float
    cost_gpu_s: float
    avoided_gpu_s: float
