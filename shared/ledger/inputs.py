"""Records of input topics become what `decide` may react to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

from pydantic import ValidationError

from shared.contracts.base import Model, UnknownType
from shared.contracts.codec import decode_command, owner_of
from shared.contracts.topics import CUSTODIAN, INPUTS
from shared.contracts.upcast import UpcastError
from shared.ledger import cloudevents
from shared.ledger.decider import Input, Undecodable
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted

Decode: TypeAlias = Callable[[str, str, bytes], Model]
"""(topic, type, data) -> the model of a plain topic's record; raises as `decode_event` does.
By default every plain record is a command."""

COMMAND_TOPICS = frozenset({"commands", "access.commands"})


def commands_only(topic: str, type_: str, data: bytes) -> Model:
    return decode_command(type_, data)


class InputDecoder:
    """Decodes the records of a service's inputs."""

    def __init__(
        self, service: str, decode: Decode = commands_only, consumed: frozenset[str] | None = None
    ) -> None:
        self._consumed = consumed
        self._service = service
        self._decode = decode
        self.unknown = 0
        """Events of other ledgers, of a type that this version has no class for."""

    def decode_ledger(self, accepted: Accepted) -> list[Input]:
        facts = accepted.facts(consumed=self._consumed)
        self.unknown += accepted.unknown
        return [
            Input(
                source=fact.ledger,
                id=f"{fact.ledger}/{place}",
                message=fact.event,
                at=fact.at,
                traceparent=fact.traceparent,
                subject=fact.event.subject,
                place=place,
            )
            for fact in facts
            for place in (fact.place,)
        ]

    def decode_plain(self, tp: TP, offset: int, value: bytes | None) -> list[Input]:
        """Return the inputs of a plain record: none for a command of another service.

        Bytes that are no message are an input of the topic's custodian alone.
        """
        try:
            envelope = cloudevents.decode_input(value)
            if self._is_for_others(tp.topic, envelope.type):
                return []
            message = self._message(tp.topic, envelope)
        except (cloudevents.Malformed, UnknownType, ValidationError, UpcastError) as error:
            return self._undecodable(tp, offset, value or b"", reason_of(error))
        return [
            Input(
                source=tp.topic,
                id=envelope.id,
                message=message,
                at=envelope.at,
                traceparent=envelope.traceparent,
                subject=envelope.subject,
                tenant=envelope.tenant,
                place=f"{tp.partition}/{offset}",
                principal=envelope.principal,
                access_next=envelope.accessnext,
            )
        ]

    def _is_for_others(self, topic: str, type_: str) -> bool:
        if topic not in COMMAND_TOPICS:
            return False
        owner = owner_of(type_)
        if owner is None or CUSTODIAN.get(topic) == self._service:
            refuse_misplaced(topic, type_, owner)
            return False
        return owner != self._service

    def _message(self, topic: str, envelope: cloudevents.CloudEvent) -> Model:
        if topic in COMMAND_TOPICS:
            return decode_command(envelope.type, envelope.body)
        return self._decode(topic, envelope.type, envelope.body)

    def _undecodable(self, tp: TP, offset: int, value: bytes, reason: str) -> list[Input]:
        if CUSTODIAN.get(tp.topic) != self._service:
            return []
        digest = hashlib.sha256(value).hexdigest()
        undecodable = Undecodable(tp.topic, tp.partition, offset, reason, digest)
        return [Input(tp.topic, f"{tp.topic}/{tp.partition}/{offset}", undecodable)]


def refuse_misplaced(topic: str, type_: str, owner: str | None) -> None:
    """Raise Malformed for a command on a topic that its owner does not read: it would be lost."""
    if owner is not None and topic not in INPUTS[owner]:
        raise cloudevents.Malformed(f"{type_} is for {owner}, which does not read {topic}")


def reason_of(error: Exception) -> str:
    """Return the field and the error, never the value, which may be a secret."""
    match error:
        case ValidationError():
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return f"{where}: {first['msg']}"[:256]
        case UnknownType():
            return f"unknown type {error}"[:256]
        case _:
            return str(error)[:256]
