"""The state changes of jobs that webhooks and mails report, and their events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

StateChange = Literal["started", "succeeded", "failed", "cancelled", "preempted", "rejected"]

STATE_CHANGES: Final[Mapping[str, StateChange]] = {
    "job.started.v1": "started",
    "job.succeeded.v1": "succeeded",
    "job.failed.v1": "failed",
    "job.cancelled.v1": "cancelled",
    "job.preempted.v1": "preempted",
    "job.rejected.v1": "rejected",
}
"""State change by the wire name of its event."""
ENDS: Final[tuple[StateChange, ...]] = ("succeeded", "failed", "cancelled", "rejected")
"""State changes after which a job changes no more."""
