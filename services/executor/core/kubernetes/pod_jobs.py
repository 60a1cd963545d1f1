"""Jobs whose workers are pods that users created: where each stands, by the ledgers of its lane.

Placement's own fold of an executor knows which of them have not ended. This one keeps the words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandRefused
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import JobEnqueued, JobHeld
from shared.contracts.wait_reasons import because, held_words
from shared.ledger.decider import Fact

ENDS_KEPT = 1024
"""Jobs that ended or were refused, the latest: pods of them may wait on for their user."""
FINAL = frozenset({"already_rejected", "idempotency_conflict"})
LEDGERS = ("admission", "placement")
K = TypeVar("K")
V = TypeVar("V")


class PodJob(NamedTuple):
    """A job of pods, and why it waits or how it ended."""

    tenant: str
    pods: tuple[str, ...]
    words: str


class SubmissionRefusal(NamedTuple):
    """Words about a submission that left no job, and whether a repetition has the same answer."""

    words: str
    is_final: bool


@dataclass(slots=True)
class PodJobs:
    """The fold of one ledger of a lane; only `fold` changes it."""

    waiting: dict[str, PodJob] = field(default_factory=dict)
    """By job: those that this ledger holds back."""
    ended: dict[str, PodJob] = field(default_factory=dict)
    refused: dict[str, SubmissionRefusal] = field(default_factory=dict)
    """Submissions that left no job, of pods or not, by the id of the job."""


def fold(state: PodJobs, fact: Fact) -> None:
    """Fold an event of one of `CONSUMED`."""
    _FOLDS[type(fact.event)](state, fact.event)


def _on_deferred(state: PodJobs, e: JobDeferred) -> None:
    _wait(state, e.job_id, e.tenant, e.spec, held_words(e.model_dump()))


def _on_admitted(state: PodJobs, e: JobAdmitted) -> None:
    state.waiting.pop(e.job_id, None)


def _on_enqueued(state: PodJobs, e: JobEnqueued) -> None:
    _wait(state, e.job_id, e.tenant, e.spec, "it is in the queue")


def _on_held(state: PodJobs, e: JobHeld) -> None:
    _wait(state, e.job_id, e.tenant, None, held_words(e.model_dump()))


def _on_end(state: PodJobs, e: JobSucceeded | JobFailed | JobCancelled) -> None:
    job = state.waiting.pop(e.job_id, None)
    if job is not None:
        words = {JobSucceeded: "it succeeded", JobCancelled: "it was cancelled"}.get(type(e), "")
        _keep(state.ended, e.job_id, job._replace(words=words or f"it failed: {_failure(e)}"))


def _failure(e: JobSucceeded | JobFailed | JobCancelled) -> str:
    failure = e.failure if isinstance(e, JobFailed) else None
    return because(failure.model_dump() if failure is not None else e.model_dump())


def _on_rejected(state: PodJobs, e: JobRejected) -> None:
    words = f"it was rejected: {because(e.model_dump())}"
    _keep(state.refused, e.job_id, SubmissionRefusal(words, is_final=True))


def _on_refused(state: PodJobs, e: CommandRefused) -> None:
    known = state.refused.get(e.of)
    if e.command_type == SubmitJob.TYPE and not (known is not None and known.is_final):
        words = f"it was refused: {because(e.model_dump())}"
        _keep(state.refused, e.of, SubmissionRefusal(words, is_final=e.reason in FINAL))


def _wait(state: PodJobs, job_id: str, tenant: str, spec: JobSpec | None, words: str) -> None:
    """Note why a job of pods waits; that of others is not kept."""
    known = state.waiting.get(job_id)
    if spec is not None and spec.pods:
        known = PodJob(tenant, spec.pods, words)
    if known is not None:
        state.waiting[job_id] = known._replace(words=words)


def _keep(latest: dict[K, V], key: K, value: V) -> None:
    latest[key] = value
    if len(latest) > ENDS_KEPT:
        del latest[next(iter(latest))]


_FOLDS: Mapping[type[Event], Callable[[PodJobs, Any], None]] = cast(
    "Mapping[type[Event], Callable[[PodJobs, Any], None]]",
    {
        JobDeferred: _on_deferred,
        JobAdmitted: _on_admitted,
        JobEnqueued: _on_enqueued,
        JobHeld: _on_held,
        JobSucceeded: _on_end,
        JobFailed: _on_end,
        JobCancelled: _on_end,
        JobRejected: _on_rejected,
        CommandRefused: _on_refused,
    },
)
CONSUMED = frozenset(kind.TYPE for kind in _FOLDS)
"""Wire types that the fold takes."""
