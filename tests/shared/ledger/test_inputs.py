"""The inputs that a service gets from records of plain topics."""

from __future__ import annotations

import hashlib

import pytest

from shared.contracts.access import RevokeKey
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.contracts.job_commands import CancelJob
from shared.contracts.nodes import CordonNode
from shared.ledger import cloudevents
from shared.ledger.decider import Undecodable
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP

COMMANDS = TP("commands", 2)


def record(message: Command) -> bytes:
    return cloudevents.encode(id="c1", source="/me", type=message.TYPE, data=encode(message))


@pytest.mark.parametrize(
    ("service", "topic", "message"),
    [
        ("admission", "commands", RevokeKey(key_id="k1")),
        ("access", "access.commands", CancelJob(job_id="j1")),
    ],
)
def test_a_command_on_a_topic_that_its_owner_does_not_read_is_rejected(
    service: str, topic: str, message: Command
) -> None:
    value = record(message)
    (rejected,) = InputDecoder(service).decode_plain(TP(topic, 2), 9, value)
    reason = f"{message.TYPE} is for {message.OWNER}, which does not read {topic}"
    digest = hashlib.sha256(value).hexdigest()
    assert rejected.message == Undecodable(topic, 2, 9, reason, digest)


def test_only_the_custodian_gets_undecodable_records() -> None:
    for value in (b"noise", record(RevokeKey(key_id="k1"))):
        assert InputDecoder("placement").decode_plain(COMMANDS, 9, value) == []
        assert len(InputDecoder("admission").decode_plain(COMMANDS, 9, value)) == 1


def test_a_command_of_another_reader_of_the_topic_is_an_input_of_the_custodian_too() -> None:
    value = record(CordonNode(node_id="n1"))
    for service, times in (("failslow", 0), ("placement", 1), ("admission", 1)):
        inputs = InputDecoder(service).decode_plain(COMMANDS, 9, value)
        assert [item.message for item in inputs] == [CordonNode(node_id="n1")] * times
