"""Inputs on which a decider raises: set aside one by one, while they are few."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections import deque
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from shared.bus.gather import Batch
from shared.bus.inbox import PendingRecord
from shared.bus.log import Log, fetch
from shared.contracts.base import Command
from shared.contracts.rejected import InputQuarantined
from shared.ledger.answers import refuse_command
from shared.ledger.decider import Decision, Input
from shared.ledger.errors import LaneHalted, TailLost
from shared.ledger.inputs import reason_of
from shared.ledger.partition import TP

MOST_IN_A_ROW = 5
MOST_OF_LATEST = 20
LATEST = 1_000
"""Inputs, the latest of which count. Beyond these limits the build is broken, not an input."""
MAX_REASON_CHARS = 256
FETCH_S = 5.0
REASON = "quarantined"
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Flood:
    """Halts a lane that would set aside its whole input."""

    def __init__(self, lane: str) -> None:
        self._lane = lane
        self._in_a_row = 0
        self._latest: deque[bool] = deque(maxlen=LATEST)
        """Whether each of the latest inputs was set aside."""

    def note_decided(self, inputs: int) -> None:
        """Count inputs that were decided."""
        if inputs:
            self._in_a_row = 0
            self._latest.extend([False] * min(inputs, LATEST))

    def note_quarantined(self) -> None:
        self._in_a_row += 1
        self._latest.append(True)

    def check(self) -> None:
        """Raise LaneHalted if one more would be too many."""
        if self._in_a_row >= MOST_IN_A_ROW:
            raise LaneHalted(
                f"{self._lane}: {MOST_IN_A_ROW + 1} inputs in a row: at most {MOST_IN_A_ROW} are "
                "set aside"
            )
        if sum(self._latest) >= MOST_OF_LATEST:
            raise LaneHalted(
                f"{self._lane}: {MOST_OF_LATEST + 1} of the latest {LATEST} inputs: at most "
                f"{MOST_OF_LATEST} are set aside"
            )


def culprit_of(batch: Batch) -> Input | PendingRecord | None:
    """Return the one part of the batch with inputs; None for a wake."""
    for local in batch.locals:
        return local.input
    return next((record for record in batch.records if record.weight), None)


async def quarantine(
    client: Log, culprit: Input | PendingRecord, error: Exception, ledger: str, event_id: str
) -> list[Decision]:
    """Return the event for the culprit, and the refusal if it is a command of this ledger."""
    if isinstance(culprit, Input):
        event = _event(TP("local", 0), -1, [culprit], error, "")
        return [culprit.decision(event)]
    tp, inputs = _tp(culprit.key), list(culprit.inputs)
    sha256 = await _sha256(client, tp, culprit.offset)
    event = _event(tp, culprit.offset, inputs, error, sha256)
    return [Decision(event, event.message_id), *_refusals(inputs, ledger, event_id)]


def _event(
    tp: TP, offset: int, inputs: list[Input], error: Exception, sha256: str
) -> InputQuarantined:
    first = inputs[0] if inputs else None
    return InputQuarantined(
        topic=tp.topic,
        partition=tp.partition,
        offset=offset,
        message_id=first.id if first else "",
        message_type=str(getattr(first.message, "TYPE", "")) if first else "",
        reason=describe(error, inputs),
        place=place_of(error),
        sha256=sha256,
        tenant=first.tenant if first else "",
    )


def _refusals(inputs: list[Input], ledger: str, event_id: str) -> Iterator[Decision]:
    for item in inputs:
        if isinstance(item.message, Command) and ledger == item.message.OWNER:
            detail = (
                f"command: {item.id}: led to an internal error; an operator has it as {event_id}"
            )
            yield refuse_command(item, event_id, REASON, detail)


def describe(error: Exception, inputs: list[Input]) -> str:
    """Return the class and the text of the error, without the private values of the inputs."""
    if isinstance(error, ValidationError):
        text = reason_of(error)
    else:
        text = CONTROL.sub(" ", str(error))
        for private in sorted(_private_values(inputs), key=len, reverse=True):
            text = text.replace(private, "***")
    return f"{type(error).__name__}: {text}"[:MAX_REASON_CHARS]


def _private_values(inputs: list[Input]) -> set[str]:
    """Return the environment, arguments and hashes that the messages carry."""
    values: set[str] = set()
    for item in inputs:
        spec: Any = getattr(item.message, "spec", None)
        values.update(getattr(spec, "env", {}).values(), getattr(spec, "command", ()))
        values.add(str(getattr(item.message, "sha256", "")))
    return {value for value in values if len(value) > 2}


def place_of(error: Exception) -> str:
    """Return the file, line and function that raised the error."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    frame = frames[-1]
    path = "/".join(frame.filename.split("/")[-4:])
    return f"{path}:{frame.lineno} {frame.name}"


def _tp(key: str) -> TP:
    topic, _, partition = key.rpartition("-")
    return TP(topic, int(partition))


async def _sha256(client: Log, tp: TP, offset: int) -> str:
    """Return the fingerprint of the bytes at this offset; empty if they are gone."""
    try:
        entries = await fetch(client, tp, offset, 1, FETCH_S)
    except TailLost:
        return ""
    return hashlib.sha256(entries[0].value or b"").hexdigest() if entries else ""
