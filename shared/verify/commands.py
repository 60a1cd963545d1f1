"""Every accepted command has exactly one answer, from the service that owns its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from shared.contracts.base import UnknownType
from shared.contracts.codec import owner_of
from shared.contracts.topics import INPUTS
from shared.projections.ledger_events import LedgerEvent
from shared.verify.arrays import array_of
from shared.verify.removed import Removed
from shared.verify.row_store import Figures, RowStore
from shared.verify.rules import Bounds, Violation

ANSWERS = ("command.accepted.v1", "command.refused.v1")
CANCEL = "job.cancel.v1"
ANSWER, END, SENT = "answer", "end of a job or array", "sent command"
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


class SentCommands(Mapping[str, SentCommand]):
    """The first of each id; they are kept in a file, as there are millions."""

    def __init__(self) -> None:
        self._rows = RowStore()
        self._count = 0

    def add(self, command: SentCommand) -> None:
        if self._rows.get(SENT, command.command_id) is None:
            self._rows.put(SENT, command.command_id, _figures(command))
            self._count += 1

    def __getitem__(self, command_id: str) -> SentCommand:
        row = self._rows.get(SENT, command_id)
        if row is None:
            raise KeyError(command_id)
        return _sent(command_id, row)

    def __iter__(self) -> Iterator[str]:
        return (command_id for command_id, _ in self._rows.rows(SENT))

    def __len__(self) -> int:
        return self._count


def _figures(command: SentCommand) -> Figures:
    return command.type, command.of, command.position, command.consumed


def _sent(command_id: str, row: tuple[object, ...]) -> SentCommand:
    type_, of, position, consumed = row
    return SentCommand(command_id, str(type_), str(of), str(position), bool(consumed))


@dataclass(slots=True)
class CommandAnswerRule:
    """A cancel may wait for its answer while the job, or a job of the array, has not ended; every
    other consumed command must have one."""

    CARRIED: ClassVar[tuple[str, ...]] = ("waiting", "unsent", "quarantined", "jobs", "live")
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    commands: Mapping[str, SentCommand]
    bounds: Bounds
    placement_seqs: dict[int, int]
    """Lane to the last placement seq that admission has read: it knows no later ends."""
    removed: Removed = field(default_factory=Removed)
    kept: RowStore = field(default_factory=RowStore)
    """Of all answers their ids and ledgers; of each ended job, and of each array of which jobs
    ended, the partition and the last seqs of these ends in admission and placement."""
    name: str = "every command has exactly one answer, from its owner"
    waiting: dict[str, SentCommand] = field(default_factory=dict)
    """Commands that were consumed and have no answer yet."""
    unsent: dict[str, LedgerEvent] = field(default_factory=dict)
    """First answers to commands that were not read yet."""
    repeated: list[str] = field(default_factory=list)
    """Commands that have another answer, and were sent before the mark."""
    quarantined: set[str] = field(default_factory=set)
    """Ids of quarantined inputs: a command has it as its id when it is decided again."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Job of an array that has not ended to its array."""
    live: dict[str, set[str]] = field(default_factory=dict)
    """Array to its jobs that were created and have not ended."""

    def observe(self, event: LedgerEvent) -> None:
        if event.type == "input.quarantined.v1":
            self.quarantined.add(event.id)
        elif event.type in ANSWERS:
            self._observe_answer(event)
        elif event.ledger == "admission" and (array := array_of(event)):
            self._observe_job(event.data["job_id"], array)
        if event.type in ENDS and event.ledger in ("admission", "placement"):
            self._observe_end(event)

    def _observe_answer(self, event: LedgerEvent) -> None:
        command_id = event.data["command_id"]
        before = self.kept.get(ANSWER, command_id) or ()
        self.kept.put(ANSWER, command_id, (*before, event.id))
        if command_id in self.commands or command_id in self.waiting:
            return
        if not before:
            self.unsent[command_id] = event
        elif not self._is_removed(event):
            self.repeated.append(command_id)

    def _observe_job(self, job_id: str, array: str) -> None:
        end = self.kept.get(END, job_id)
        if end is not None:
            self._note_end(array, *end)
        else:
            self.jobs[job_id] = array
            self.live.setdefault(array, set()).add(job_id)

    def _observe_end(self, event: LedgerEvent) -> None:
        job_id, seq = event.data["job_id"], event.seq
        seqs = (seq, 0) if event.ledger == "admission" else (0, seq)
        self._note_end(job_id, event.partition, *seqs)
        array = self.jobs.pop(job_id, "")
        if array:
            self._note_end(array, event.partition, *seqs)
            self.live[array].discard(job_id)
            if not self.live[array]:
                del self.live[array]

    def _note_end(self, of: str, partition: object, *seqs: object) -> None:
        """Note the last seqs in admission and placement of the ends that belong to `of`."""
        _, *before = self.kept.get(END, of) or (0, 0, 0)
        latest = (max(int(str(a)), int(str(b))) for a, b in zip(before, seqs, strict=True))
        self.kept.put(END, of, (partition, *latest))

    def finish(self) -> Iterator[Violation]:
        carried, self.waiting = self.waiting, {}
        for command in (*carried.values(), *self.commands.values()):
            yield from self._check(command)
        for command_id in self.repeated:
            yield self._too_many(command_id)
        for command_id, answer in list(self.unsent.items()):
            is_known = command_id in self.commands or command_id in self.quarantined
            if not is_known and not self.bounds.has(answer):
                continue
            del self.unsent[command_id]
            if not is_known and not self._is_removed(answer):
                yield Violation(self.name, answer.id, f"{command_id} was never sent")

    def _is_removed(self, answer: LedgerEvent) -> bool:
        """Return whether the command may have been removed from its topic since."""
        inputs = INPUTS[answer.ledger]
        return any(self.removed.is_truncated(topic, answer.partition) for topic in inputs)

    def _answers(self, command_id: str) -> list[str]:
        return [str(answer) for answer in self.kept.get(ANSWER, command_id) or ()]

    def _too_many(self, command_id: str) -> Violation:
        answers = self._answers(command_id)
        detail = f"{command_id} has {len(answers)} answers"
        return Violation(self.name, ", ".join(answers), detail)

    def _check(self, command: SentCommand) -> Iterator[Violation]:
        answers = self._answers(command.command_id)
        if not answers and command.consumed:
            self.waiting[command.command_id] = command
            if not self._may_wait(command):
                detail = f"{command.type} {command.command_id}: no answer"
                yield Violation(self.name, command.position, detail)
        if len(answers) > 1:
            yield self._too_many(command.command_id)
        owner = owner_of(command.type)
        if owner is None:
            raise UnknownType(command.type)
        for answer in answers:
            if answer.partition("/")[0] != owner:
                yield Violation(self.name, answer, f"{command.type} must be answered by {owner}")

    def _may_wait(self, command: SentCommand) -> bool:
        """Return whether it is a cancel of what has not ended, as far as admission knows."""
        if command.type != CANCEL:
            return False
        end = self.kept.get(END, command.of)
        if end is None or command.of in self.live:
            return True
        partition, in_admission, in_placement = (int(str(figure)) for figure in end)
        is_heard = in_placement <= self.placement_seqs.get(partition, 0)
        return not (is_heard and self.bounds.reach("admission", partition, in_admission))
