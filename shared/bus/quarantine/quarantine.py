"""Inputs on which a decider raises: quarantined one by one, while they are few."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from shared.bus.inputs.gather import Batch
from shared.bus.inputs.inbox import PendingRecord
from shared.bus.logs.log import Log, fetch
from shared.bus.quarantine.parts import Part, Raising, bytes_of
from shared.contracts.base import Command
from shared.contracts.rejected import InputQuarantined, InputRetried, InputRetryRequested
from shared.ledger.answers import refuse_command
from shared.ledger.decider import Decision, Input
from shared.ledger.errors import TailLost
from shared.ledger.inputs import reason_of
from shared.ledger.partition import TP

MAX_REASON_CHARS = 256
FETCH_S = 5.0
REASON = "quarantined"
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


def culprit_of(batch: Batch) -> Input | PendingRecord | None:
    """Return the one part of the batch with inputs; None for a wake."""
    for local in batch.locals:
        return local.input
    return next((record for record in batch.records if record.weight), None)


async def quarantine(
    client: Log, culprit: Input | PendingRecord, error: Exception, ledger: str, event_id: str
) -> list[Decision]:
    """Return the event for the culprit, and the refusal if it is a command of this ledger.

    A request to retry an input of this lane (`event_id` begins with its place) is closed as well.
    """
    if isinstance(culprit, Input):
        event = _event(TP("local", 0), -1, [culprit], error, "")
        return [culprit.decision(event)]
    tp, inputs = _tp(culprit.key), list(culprit.inputs)
    event = _event(tp, culprit.offset, inputs, error, _sha256(await _value(client, culprit)))
    closing = [*_refusals(inputs, ledger, event_id), *_raised_again(inputs, event_id)]
    return [Decision(event, event.message_id), *closing]


class PartQuarantine:
    """Makes the events for the parts of a record on which a decider raises."""

    def __init__(self, client: Log, record: PendingRecord | None, event_id: str) -> None:
        self._client = client
        self._record = record
        self._event_id = event_id
        self._value: bytes | None = None

    async def read(self) -> None:
        """Read the bytes of the record, if there is one."""
        if self._record is not None:
            self._value = await _value(self._client, self._record)

    def decisions(self, raising: Raising) -> list[Decision]:
        """Return the event for each part, and close the requests to retry among them."""
        decisions: list[Decision] = []
        for part, error in raising:
            item = part.alone
            decisions.append(item.decision(self._event(part, item, error)))
            decisions.extend(_raised_again([item], self._event_id))
        return decisions

    def _event(self, part: Part, item: Input, error: Exception) -> InputQuarantined:
        if self._record is None:
            return _event(TP("local", 0), -1, [item], error, "")
        tp, offset = _tp(self._record.key), self._record.offset
        own = None if self._value is None else bytes_of(tp, offset, self._value, part)
        return _event(tp, offset, [item], error, _sha256(own))


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


def _raised_again(inputs: list[Input], event_id: str) -> Iterator[Decision]:
    lane = event_id.rsplit("/", 2)[0] + "/"
    for item in inputs:
        if isinstance(item.message, InputRetryRequested) and item.message.input_id.startswith(lane):
            yield item.decision(InputRetried(input_id=item.message.input_id, outcome="raised"))


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


async def _value(client: Log, record: PendingRecord) -> bytes | None:
    """Return the bytes of the record; None if they are gone."""
    try:
        entries = await fetch(client, _tp(record.key), record.offset, 1, FETCH_S)
    except TailLost:
        return None
    return (entries[0].value or b"") if entries else None


def _sha256(value: bytes | None) -> str:
    """Return the fingerprint of the bytes; empty if they are gone."""
    return "" if value is None else hashlib.sha256(value).hexdigest()
