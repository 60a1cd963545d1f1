"""Every accepted command has exactly one answer, from its owner; what nobody can read is dead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.base import UnknownType
from shared.contracts.codec import owner_of
from shared.projections.ledger_events import LedgerEvent
from shared.verify.arrays import array_of
from shared.verify.rules import Bounds, Violation, where

ANSWERS = ("command.accepted.v1", "command.refused.v1")
CANCEL = "job.cancel.v1"
ENDS = ("job.succeeded.v1", "job.failed.v1", "job.cancelled.v1", "job.rejected.v1")


@dataclass(frozen=True, slots=True)
class Asked:
    """A decodable command as it lies in its topic."""

    command_id: str
    type: str
    of: str
    where: str
    consumed: bool
    """Its owner's ledger says that it read this offset."""


@dataclass(slots=True)
class CommandsAnswered:
    """A cancel of a job that still runs, or of an array with such a job, may wait for its answer;
    nothing else may."""

    asked: dict[str, Asked]
    bounds: Bounds
    read: dict[int, int]
    """Lane to the last placement seq that admission has read: it knows of no later end."""
    name: str = "every command has exactly one answer, from its owner"
    answers: dict[str, list[LedgerEvent]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    members: dict[str, set[str]] = field(default_factory=dict)
    """Array to those of its jobs that were made."""

    def see(self, line: LedgerEvent) -> None:
        if line.type in ANSWERS:
            self.answers.setdefault(line.data["command_id"], []).append(line)
        elif line.type in ENDS and self._is_known(line):
            self.ended.add(line.data["job_id"])
        if line.ledger == "admission" and (stem := array_of(line)):
            self.members.setdefault(stem, set()).add(line.data["job_id"])

    def _is_known(self, line: LedgerEvent) -> bool:
        """To admission, when it answered what it has answered so far."""
        if line.ledger == "admission":
            return self.bounds.has(line)
        return line.seq <= self.read.get(line.partition, 0)

    def finish(self) -> Iterator[Violation]:
        for asked in self.asked.values():
            yield from self._judge(asked, self.answers.get(asked.command_id, []))
        for command_id, answers in self.answers.items():
            if command_id not in self.asked and self.bounds.has(answers[0]):
                yield Violation(self.name, where(answers[0]), f"{command_id} was never asked")

    def _judge(self, asked: Asked, answers: list[LedgerEvent]) -> Iterator[Violation]:
        if not answers and asked.consumed and not self._may_wait(asked):
            yield Violation(self.name, asked.where, f"{asked.type} {asked.command_id}: no answer")
        if len(answers) > 1:
            places = ", ".join(where(a) for a in answers)
            yield Violation(self.name, places, f"{asked.command_id} was answered {len(answers)}x")
        owner = self._owner(asked)
        for answer in answers:
            if answer.ledger != owner:
                yield Violation(self.name, where(answer), f"{asked.type} is answered by {owner}")

    def _may_wait(self, asked: Asked) -> bool:
        jobs = self.members.get(asked.of, {asked.of})
        return asked.type == CANCEL and not jobs <= self.ended

    @staticmethod
    def _owner(asked: Asked) -> str:
        owner = owner_of(asked.type)
        if owner is None:
            raise UnknownType(asked.type)
        return owner


@dataclass(frozen=True, slots=True)
class Poison:
    """A record that is no message, or a submission that the gateway could not read."""

    topic: str
    partition: int
    offset: int
    sha256: str
    consumed: bool

    @property
    def place(self) -> tuple[str, int, int]:
        return self.topic, self.partition, self.offset


@dataclass(slots=True)
class PoisonRejected:
    """`dead` holds each rejected record once or more, and nothing else."""

    poison: dict[tuple[str, int, int], Poison]
    dead: dict[tuple[str, int, int], str]
    """What lies in the topic `dead`: place to sha256 of the bytes there."""
    bounds: Bounds
    name: str = "dead letters equal what was rejected"
    rejected: dict[tuple[str, int, int], list[LedgerEvent]] = field(default_factory=dict)

    def see(self, line: LedgerEvent) -> None:
        if line.type == "input.rejected.v1":
            data = line.data
            place = (data["topic"], data["partition"], data["offset"])
            self.rejected.setdefault(place, []).append(line)

    def finish(self) -> Iterator[Violation]:
        for place, lines in self.rejected.items():
            spot = "{}/{}/{}".format(*place)
            if not self.bounds.has(lines[0]):
                continue
            if len(lines) > 1:
                yield Violation(self.name, spot, f"rejected {len(lines)}x")
            if place not in self.poison:
                yield Violation(self.name, where(lines[0]), f"{spot} is a good record")
            elif lines[0].data["sha256"] != self.poison[place].sha256:
                yield Violation(self.name, where(lines[0]), f"{spot} has another sha256")
            if self.dead.get(place) != lines[0].data["sha256"]:
                yield Violation(self.name, spot, "is not in the topic dead, or its bytes differ")
        for place, poison in self.poison.items():
            if poison.consumed and place not in self.rejected:
                yield Violation(self.name, "{}/{}/{}".format(*place), "was dropped without a word")
        for place in self.dead.keys() - self.rejected.keys():
            yield Violation(self.name, "{}/{}/{}".format(*place), "is in dead but not rejected")
