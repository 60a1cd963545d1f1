"""What placement did, restated as admission's own facts: one note per batch where one is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from services.admission.core.answers import end_told
from services.admission.core.state import Pool
from shared.contracts.bookkeeping import (
    AttemptNoted,
    CapacityNoted,
    JobEnd,
    JobSizeNoted,
    JobsReleased,
    NodeShape,
)
from shared.contracts.construct import construct
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobResized,
    JobSucceeded,
)
from shared.ledger.decider import Decision, Input

EndOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled"]


@dataclass(slots=True)
class Batch:
    """What one batch of placement's facts amounts to."""

    ends: dict[str, JobEnd] = field(default_factory=dict)
    joined: dict[str, NodeShape] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    attempts: list[tuple[Input, JobAttemptFailed]] = field(default_factory=list)
    sizes: list[tuple[Input, JobResized]] = field(default_factory=list)
    last: str = ""


def note(state: Pool, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
    """Attempts and sizes go first: one batch may hold them and the end of the job behind them."""
    batch = gather(state, inputs)
    for item, failed in batch.attempts:
        yield item.leads_to(attempt_noted(state, item, failed, now))
    for item, resized in batch.sizes:
        yield item.leads_to(JobSizeNoted(job_id=resized.job_id, workers=resized.to_workers))
    if batch.joined or batch.left:
        capacity = CapacityNoted(
            pool=state.name, joined=tuple(batch.joined.values()), left=tuple(batch.left)
        )
        yield Decision(capacity, batch.last)
    if batch.ends:
        answers = [a for end in batch.ends.values() for a in cancels_of(state, end)]
        yield Decision(
            construct(JobsReleased, pool=state.name, ends=tuple(batch.ends.values())), batch.last
        )
        yield from answers


def gather(state: Pool, inputs: Sequence[Input]) -> Batch:
    batch = Batch()
    for item in inputs:
        match item.message:
            case JobSucceeded(job_id=job_id):
                add_end(state, batch, item, job_id, "succeeded")
            case JobFailed(job_id=job_id):
                add_end(state, batch, item, job_id, "failed")
            case JobCancelled(job_id=job_id):
                add_end(state, batch, item, job_id, "cancelled")
            case JobAttemptFailed() as failed if failed.job_id in state.admitted:
                batch.attempts.append((item, failed))
            case JobResized() as resized if resized.job_id in state.admitted:
                batch.sizes.append((item, resized))
            case NodeJoined() as joined:
                add_node(state, batch, item, joined)
            case NodeLost(node_id=node_id, reason="left"):
                drop_node(state, batch, item, node_id)
    return batch


def add_end(state: Pool, batch: Batch, item: Input, job_id: str, outcome: EndOutcome) -> None:
    """The first end counts; a job that is not in has had its own."""
    if job_id in state.admitted and job_id not in batch.ends:
        batch.ends[job_id] = construct(JobEnd, job_id=job_id, outcome=outcome)
        batch.last = item.id


def add_node(state: Pool, batch: Batch, item: Input, joined: NodeJoined) -> None:
    shape = NodeShape(
        node_id=joined.node_id,
        gpu_type=joined.gpu_type,
        gpus=joined.gpus,
        cpus=joined.cpus,
        mem_gib=joined.mem_gib,
        labels=joined.labels,
    )
    batch.left.pop(joined.node_id, None)
    if state.nodes.get(joined.node_id) == shape:
        batch.joined.pop(joined.node_id, None)
        return
    batch.joined[joined.node_id] = shape
    batch.last = item.id


def drop_node(state: Pool, batch: Batch, item: Input, node_id: str) -> None:
    """A node that only fell silent may come back: it still counts as one that jobs could use."""
    batch.joined.pop(node_id, None)
    if node_id in state.nodes:
        batch.left[node_id] = None
        batch.last = item.id


def attempt_noted(state: Pool, item: Input, failed: JobAttemptFailed, now: int) -> AttemptNoted:
    """The wait begins when the attempt failed; never later than now, though placement's clock may
    be ahead of ours."""
    scale = state.pool.time_scale if state.pool else 1.0
    backoff_ms = state.admitted[failed.job_id].backoff_s * 1000 / scale
    return AttemptNoted(
        job_id=failed.job_id,
        attempt=failed.attempt,
        node_ids=failed.node_ids,
        not_before=min(item.at, now) + round(backoff_ms),
    )


def cancels_of(state: Pool, end: JobEnd) -> list[Decision]:
    """Those who asked for the end hear of it now; a finish that came first wins."""
    job = state.admitted[end.job_id]
    return [
        Decision(end_told(command_id, end.job_id, end.outcome, job.tenant), command_id, traceparent)
        for command_id, traceparent in job.cancels
    ]
