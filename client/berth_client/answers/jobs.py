"""Jobs, arrays, and what is recorded of them."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from berth_client.answers.estimates import OtherPool, StartInterval, StopDeferral
from berth_client.answers.failures import JobFailure

Phase = Literal[
    "admitted",
    "deferred",
    "rejected",
    "waiting",
    "placed",
    "running",
    "stopping",
    "backoff",
    "succeeded",
    "failed",
    "cancelled",
]


class JobRow(TypedDict):
    """A job as it is stored."""

    job_id: str
    pool: str | None
    """Null until the pool is in the read models."""
    tenant: str
    name: str
    user_id: str
    """Person or robot that the job belongs to."""
    priority_class: str
    workers: int
    gpus: float
    """GPUs of all workers."""
    array_index: int | None
    """Place in its array; null: it is of none."""
    phase: Phase
    reason: str
    """Why it is in this phase, a code in snake_case."""
    detail: str | dict[str, object]
    """Numbers or text of the reason."""
    attempt: int
    """Number of its present or last start; 0: it never was placed."""
    exit_code: int | None
    submitted_at: int
    waiting_since: int
    placed_at: int
    started_at: int
    ended_at: int
    cancel_requested_at: int
    short_gpus: float
    """GPUs that it lacks to start."""
    preemptions: int
    moves: int
    """Migrations and changes of its size."""
    gpu_ms: int
    """GPU-milliseconds of attempts that ended."""
    ran_ms: int
    """Time that earlier starts ran."""
    nodes: list[str]
    failure: JobFailure | None
    backend: str
    """How its nodes run it: `virtual` ones simulate it."""
    checkpointed_at: int
    checkpoint_step: int
    progressed_at: int
    progress_step: int
    progress_total: int
    expected_end_at: int


class Job(JobRow):
    """A job."""

    as_of: int
    """Time of the answer, or the last moment of a recorded simulation."""


class JobDetail(Job):
    """A job with its specification; one on its way to another pool has `transferred_to`."""

    spec: dict[str, object]
    """Specification, without command and environment."""
    partition: int
    """Lane of its pool."""
    traceparent: str
    submitted_by: str | None
    """`key:ID`, `oidc:SUBJECT` or `kafka:TENANT`; null: not recorded."""
    trace_id: str
    start: StartInterval | None
    """When a waiting job will start."""
    transferred_to: dict[str, object] | None


class ArrayCounts(TypedDict):
    """The jobs of an array, by phase."""

    jobs: int
    pending: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    """Cancelled or rejected."""


class JobSubmission(Job):
    """A submission of one job."""

    array: None


class ArraySubmission(TypedDict):
    """A submission of an array; what its jobs share is that of the first."""

    job_id: str
    """Common stem of the ids of its jobs."""
    pool: str | None
    tenant: str
    name: str
    user_id: str
    priority_class: str
    workers: int
    gpus: float
    submitted_at: int
    as_of: int
    array: ArrayCounts


Submission = JobSubmission | ArraySubmission


class JobEvent(TypedDict):
    """A decision about a job."""

    id: str
    """`ledger/partition/seq/index`."""
    at: int
    type: str
    data: dict[str, object]
    """The event, as `GET /v1/events` has it."""
    cause: str
    """Id of the command or event that it follows from."""
    traceparent: str


class JobHistory(TypedDict):
    """All decisions about a job in order."""

    job_id: str
    items: list[JobEvent]
    archived: str | None
    """Folder of the archive with them, where they have left the read models."""


class WaitReason(TypedDict):
    """Reason for which a job waited, from `at` to `until`."""

    at: int
    until: int | None
    """Null: until now."""
    type: str
    data: dict[str, object]


class QueuePosition(TypedDict):
    """The position of a job in the last order of priority."""

    base_policy: str
    learned: str
    """Learned policy that adds to it; empty: none."""
    runtime: str
    model_sha256: str
    waiting: int
    """Jobs that waited then."""
    ranked_at: int
    terms: dict[str, object]
    position: int | None
    score: float | None
    best_score: float | None
    score_ahead: float | None


class PlacementTerms(TypedDict):
    """The last placement of a job; null: not recorded with it."""

    at: int
    policy: str | None
    score: float | None
    model_sha256: str | None
    solver: str | None
    waited_ms: int | None
    terms: dict[str, float] | None
    nodes: list[str]


class Why(TypedDict):
    """The reasons for which a job waited, and its place in the queue now."""

    job_id: str
    items: list[WaitReason]
    archived: str | None
    as_of: int
    line: QueuePosition | None
    start: StartInterval | None
    other_pools: list[OtherPool]
    """Of a waiting job with several pools, in its order."""
    placing: PlacementTerms | None
    deferral: StopDeferral | None
    backend: str


class SpanLink(TypedDict):
    """A span of another trace that this one follows from."""

    trace_id: str
    span_id: str


class Span(TypedDict):
    """A span; ids are lower-case hex."""

    trace_id: str
    span_id: str
    parent_span_id: str
    """Empty for a root."""
    name: str
    service: str
    start_ns: int
    end_ns: int
    attributes: dict[str, object]
    links: list[SpanLink]
    failed: bool


class JobTrace(TypedDict):
    """The retained spans of a job."""

    job_id: str
    spans: list[Span]


class JobLine(TypedDict):
    """A line of the output of a worker; `line` is its number, from 0."""

    attempt: int
    rank: int
    line: int
    text: str
    missing: NotRequired[int]
    """Lines before this one that are not kept; none if absent."""
    job_id: NotRequired[str]
    """Id of the job in the pool that it was transferred to, in which attempts begin with 1 again;
    absent for lines of its first pool. In a followed stream alone."""


class JobLogs(TypedDict):
    """The output of a job's workers, as long as its pool keeps it."""

    job_id: str
    lines: list[JobLine]


class JobUse(TypedDict):
    """Sums over a group: starts and waits of placements, GPU time and cost of ended attempts."""

    tenant: NotRequired[str]
    user: NotRequired[str]
    pool: NotRequired[str | None]
    day_at: NotRequired[int]
    """Begin of the day in UTC."""
    month: NotRequired[str]
    """Month in UTC, such as `2026-11`."""
    gpu_ms: int
    starts: int
    waited_ms: int
    """Sum of the waits before the starts."""
    succeeded: int
    failed: int
    cancelled: int
    preempted: int
    cost: float
    """By the `gpu_hour_price` that the pool had when an attempt ended."""
