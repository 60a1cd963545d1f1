"""Jobs whose user gets mails: one mail per state change, and one for a whole array at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from services.notifier.core.changes import Change
from shared.contracts.state_changes import ENDS, StateChange

UNKNOWN_USERS: Final = ("", "unknown")
WORST: Final[Sequence[StateChange]] = ("failed", "rejected", "cancelled", "succeeded")
"""Ends in the order in which they name the end of an array."""


class NotifySpec(msgspec.Struct):
    """The fields of a specification that mails need."""

    name: str = ""
    user: str = ""
    notify: tuple[StateChange, ...] = ()


class Specified(msgspec.Struct):
    """An event with a specification."""

    job_id: str
    tenant: str
    spec: NotifySpec | None = None
    array_size: int = 1


@dataclass(slots=True)
class WatchedJob:
    """A job, or an array, whose user gets mails; `ended` counts its jobs by their end."""

    job_id: str
    tenant: str
    user: str
    name: str
    notify: tuple[str, ...]
    size: int = 1
    ended: dict[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return sum(self.ended.values()) >= self.size


_specified = msgspec.json.Decoder(Specified)


def row_of(job_id: str) -> str:
    """Return the id under which a job is watched: of an array's job `ID.INDEX` that of the array.

    The gateway makes ids without a dot.
    """
    return job_id.partition(".")[0]


def watched(change: Change) -> WatchedJob | None:
    """Return the job to watch from an event with its specification; None if it names no mail.

    Jobs of an array are watched as the array, whose event comes before theirs.
    """
    event = _specified.decode(change.data)
    spec = event.spec
    if spec is None or not spec.notify or spec.user in UNKNOWN_USERS or "." in event.job_id:
        return None
    return WatchedJob(
        event.job_id, event.tenant, spec.user, spec.name, spec.notify, event.array_size
    )


def note(job: WatchedJob, change: StateChange) -> StateChange | None:
    """Count the state change; return what is mailed about it, if anything."""
    if change in ENDS:
        job.ended[change] = job.ended.get(change, 0) + 1
    if job.size == 1:
        return change if change in job.notify else None
    if change not in ENDS or not job.is_over:
        return None
    worst = next(end for end in WORST if job.ended.get(end))
    return worst if worst in job.notify else None
