"""What a service hears of the records in its plain topics."""

from __future__ import annotations

import hashlib

import pytest

from shared.contracts.access import RevokeKey
from shared.contracts.base import Command
from shared.contracts.codec import encode
from shared.contracts.jobs import CancelJob
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
def test_a_command_whose_owner_does_not_read_the_topic_is_not_lost_in_silence(
    service: str, topic: str, message: Command
) -> None:
    value = record(message)
    (found,) = InputDecoder(service).decode_plain(TP(topic, 2), 9, value)
    reason = f"{message.TYPE} is for {message.OWNER}, which does not read {topic}"
    digest = hashlib.sha256(value).hexdigest()
    assert found.message == Undecodable(topic, 2, 9, reason, digest)


def test_only_the_custodian_speaks_of_what_nobody_can_read() -> None:
    for value in (b"noise", record(RevokeKey(key_id="k1"))):
        assert InputDecoder("placement").decode_plain(COMMANDS, 9, value) == []
        assert len(InputDecoder("admission").decode_plain(COMMANDS, 9, value)) == 1


def test_a_command_of_another_reader_of_the_topic_is_handed_on_by_the_custodian_alone() -> None:
    value = record(CordonNode(node_id="n1"))
    for service, heard in (("failslow", 0), ("placement", 1), ("admission", 1)):
        found = InputDecoder(service).decode_plain(COMMANDS, 9, value)
        assert [item.message for item in found] == [CordonNode(node_id="n1")] * heard
