"""Restates events of the placement ledger as admission's own, one per batch where possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from services.admission.core.answers import answer_cancel
from services.admission.core.state import AdmissionState
from shared.contracts.attempts import (
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobResized,
    JobSucceeded,
)
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
from shared.ledger.decider import Decision, Input

EndOutcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "transferred"]


@dataclass(slots=True)
class PlacementChanges:
    """The net effect of one batch of placement's events."""

    ends: dict[str, JobEnd] = field(default_factory=dict)
    joined: dict[str, NodeShape] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    attempts: list[tuple[Input, JobAttemptFailed]] = field(default_factory=list)
    sizes: list[tuple[Input, JobResized]] = field(default_factory=list)
    last_cause: str = ""
    """Id of the last input that changed something."""


def restate_placement(
    state: AdmissionState, inputs: Sequence[Input], now: int
) -> Iterator[Decision]:
    """Attempts and sizes go first: a batch may hold them and the end of their job behind them."""
    changes = collect_changes(state, inputs)
    for item, failed in changes.attempts:
        yield item.decision(note_attempt(state, item, failed, now))
    for item, resized in changes.sizes:
        yield item.decision(JobSizeNoted(job_id=resized.job_id, workers=resized.to_workers))
    if changes.joined or changes.left:
        capacity = CapacityNoted(
            pool=state.pool_name, joined=tuple(changes.joined.values()), left=tuple(changes.left)
        )
        yield Decision(capacity, changes.last_cause)
    if changes.ends:
        ends = tuple(changes.ends.values())
        answers = [answer for end in ends for answer in cancel_answers(state, end)]
        yield Decision(construct(JobsReleased, pool=state.pool_name, ends=ends), changes.last_cause)
        yield from answers


def collect_changes(state: AdmissionState, inputs: Sequence[Input]) -> PlacementChanges:
    changes = PlacementChanges()
    for item in inputs:
        match item.message:
            case JobSucceeded(job_id=job_id):
                add_end(state, changes, item, job_id, "succeeded")
            case JobFailed(job_id=job_id):
                add_end(state, changes, item, job_id, "failed")
            case JobCancelled(job_id=job_id, transferred_to=None):
                add_end(state, changes, item, job_id, "cancelled")
            case JobCancelled(job_id=job_id):
                add_end(state, changes, item, job_id, "transferred")
            case JobAttemptFailed() as failed if failed.job_id in state.admitted:
                changes.attempts.append((item, failed))
            case JobResized() as resized if resized.job_id in state.admitted:
                changes.sizes.append((item, resized))
            case NodeJoined() as joined:
                add_node(state, changes, item, joined)
            case NodeLost(node_id=node_id, reason="left"):
                remove_node(state, changes, item, node_id)
    return changes


def add_end(
    state: AdmissionState, changes: PlacementChanges, item: Input, job_id: str, outcome: EndOutcome
) -> None:
    """Add the end of an admitted job; only the first one counts."""
    if job_id in state.admitted and job_id not in changes.ends:
        changes.ends[job_id] = construct(JobEnd, job_id=job_id, outcome=outcome)
        changes.last_cause = item.id


def add_node(
    state: AdmissionState, changes: PlacementChanges, item: Input, joined: NodeJoined
) -> None:
    node = NodeShape(
        node_id=joined.node_id,
        gpu_type=joined.gpu_type,
        gpus=joined.gpus,
        cpus=joined.cpus,
        mem_gib=joined.mem_gib,
        labels=joined.labels,
    )
    changes.left.pop(joined.node_id, None)
    if state.nodes.get(joined.node_id) == node:
        changes.joined.pop(joined.node_id, None)
        return
    changes.joined[joined.node_id] = node
    changes.last_cause = item.id


def remove_node(
    state: AdmissionState, changes: PlacementChanges, item: Input, node_id: str
) -> None:
    """Remove a node that left; one that is only silent may come back and still counts."""
    changes.joined.pop(node_id, None)
    if node_id in state.nodes:
        changes.left[node_id] = None
        changes.last_cause = item.id


def note_attempt(
    state: AdmissionState, item: Input, failed: JobAttemptFailed, now: int
) -> AttemptNoted:
    """Return the failure with the end of its backoff, which begins when the attempt failed.

    It begins now if that lies ahead, as placement's clock may be.
    """
    time_scale = state.pool.time_scale if state.pool else 1.0
    backoff_ms = state.admitted[failed.job_id].backoff_s * 1000 / time_scale
    return AttemptNoted(
        job_id=failed.job_id,
        attempt=failed.attempt,
        node_ids=failed.node_ids,
        not_before=min(item.at, now) + round(backoff_ms),
    )


def cancel_answers(state: AdmissionState, end: JobEnd) -> list[Decision]:
    """Return the answers to the cancels that wait for the end of this job."""
    job = state.admitted[end.job_id]
    return [
        Decision(
            answer_cancel(command_id, end.job_id, end.outcome, job.tenant), command_id, traceparent
        )
        for command_id, traceparent in job.cancels
    ]
