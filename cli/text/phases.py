"""The phase of a job behind each of its events, and where one went that left its pool."""

from __future__ import annotations

from collections.abc import Mapping

Data = Mapping[str, object]

PHASES = {
    "job.admitted.v1": "admitted",
    "job.deferred.v1": "deferred",
    "job.readmitted.v1": "admitted",
    "job.rejected.v1": "rejected",
    "job.enqueued.v1": "waiting",
    "job.held.v1": "waiting",
    "job.placed.v1": "starting",
    "job.started.v1": "running",
    "job.start-failed.v1": "stopping",
    "job.preempted.v1": "stopping",
    "job.migrated.v1": "migrating",
    "job.resized.v1": "resizing",
    "job.requeued.v1": "waiting",
    "job.attempt-failed.v1": "backoff",
    "job.cancelled.v1": "cancelled",
    "job.succeeded.v1": "succeeded",
    "job.failed.v1": "failed",
}


def phase(type_: str, data: Data | None = None) -> str:
    name = PHASES.get(type_, type_.split(".")[1])
    return "transferred" if data and data.get("transferred_to") else name


def transfer_words(target: Mapping[str, object]) -> str:
    """Return where a job went, and whether it resumes there."""
    resumes = ", where it resumes from its checkpoint" if target.get("resumes") else ""
    return f"to pool {target['pool']}, which could start it at once{resumes}"
