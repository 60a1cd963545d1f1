"""Every accepted command has exactly one answer, from the service that owns its type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.base import UnknownType
from shared.contracts.codec import owner_of
from shared.contracts.topics import INPUTS
from shared.projections.ledger_events import LedgerEvent
from shared.verify.arrays import array_of
from shared.verify.removed import Removed
from shared.verify.rules import Bounds, Violation

ANSWERS = ("command.accepted.v1", "command.refused.v1")
CANCEL = "job.cancel.v1"
ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1", "job.rejected.v1")


@dataclass(frozen=True, slots=True)
class SentCommand:
    """A decodable command in an input topic."""

    command_id: str
    type: str
    of: str
    """The job or array that it names; empty: none."""
    position: str
    consumed: bool
    """The ledger of its owner has read this offset."""


@dataclass(slots=True)
class CommandAnswerRule:
    """A cancel may wait for its answer while the job, or a job of the array, has not ended; every
    other consumed command must have one."""

    commands: dict[str, SentCommand]
    bounds: Bounds
    placement_seqs: dict[int, int]
    """Lane to the last placement seq that admission has read: it knows no later ends."""
    removed: Removed = field(default_factory=Removed)
    name: str = "every command has exactly one answer, from its owner"
    answers: dict[str, list[LedgerEvent]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    quarantined: set[str] = field(default_factory=set)
    """Ids of quarantined inputs: a command has it as its id when it is decided again."""
    array_jobs: dict[str, set[str]] = field(default_factory=dict)
    """Array to its jobs that were created."""

    def observe(self, event: LedgerEvent) -> None:
        if event.type == "input.quarantined.v1":
            self.quarantined.add(event.id)
        elif event.type in ANSWERS:
            self.answers.setdefault(event.data["command_id"], []).append(event)
        elif event.type in ENDS and self._is_known_to_admission(event):
            self.ended.add(event.data["job_id"])
        if event.ledger == "admission" and (array := array_of(event)):
            self.array_jobs.setdefault(array, set()).add(event.data["job_id"])

    def _is_known_to_admission(self, event: LedgerEvent) -> bool:
        """Return whether admission had read the event when the second pass began."""
        if event.ledger == "admission":
            return self.bounds.has(event)
        return event.seq <= self.placement_seqs.get(event.partition, 0)

    def finish(self) -> Iterator[Violation]:
        for command in self.commands.values():
            yield from self._check(command, self.answers.get(command.command_id, []))
        for command_id, answers in self.answers.items():
            is_known = command_id in self.commands or command_id in self.quarantined
            if not is_known and self.bounds.has(answers[0]) and not self._is_removed(answers[0]):
                yield Violation(self.name, answers[0].id, f"{command_id} was never sent")

    def _is_removed(self, answer: LedgerEvent) -> bool:
        """Return whether the command may have been removed from its topic since."""
        inputs = INPUTS[answer.ledger]
        return any(self.removed.is_truncated(topic, answer.partition) for topic in inputs)

    def _check(self, command: SentCommand, answers: list[LedgerEvent]) -> Iterator[Violation]:
        if not answers and command.consumed and not self._may_wait(command):
            detail = f"{command.type} {command.command_id}: no answer"
            yield Violation(self.name, command.position, detail)
        if len(answers) > 1:
            positions = ", ".join(answer.id for answer in answers)
            detail = f"{command.command_id} has {len(answers)} answers"
            yield Violation(self.name, positions, detail)
        owner = owner_of(command.type)
        if owner is None:
            raise UnknownType(command.type)
        for answer in answers:
            if answer.ledger != owner:
                yield Violation(self.name, answer.id, f"{command.type} must be answered by {owner}")

    def _may_wait(self, command: SentCommand) -> bool:
        jobs = self.array_jobs.get(command.of, {command.of})
        return command.type == CANCEL and not jobs <= self.ended
