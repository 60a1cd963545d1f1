"""Messages are decoded by wire name."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.attempts import AllocationReleased
from shared.contracts.base import UnknownType
from shared.contracts.codec import decode_command, decode_event, encode, encode_event, owner_of
from shared.contracts.job_commands import CancelJob
from shared.contracts.nodes import NodeCordoned


def test_an_event_is_decoded_to_what_was_encoded() -> None:
    event = NodeCordoned(node_id="n1", draining=True, reason="hot")
    assert decode_event("node.cordoned.v1", encode_event(event)) == event


def test_a_command_is_decoded_to_what_was_encoded() -> None:
    command = CancelJob(job_id="j", tenant="red")
    assert decode_command("job.cancel.v1", encode(command)) == command


def test_absent_values_are_not_encoded() -> None:
    event = AllocationReleased(
        job_id="j", attempt=1, allocation_id="0/1/0/0", node_id="n1", reason="refused"
    )
    assert b"exit_code" not in encode_event(event)


def test_an_unknown_wire_name_is_an_error() -> None:
    with pytest.raises(UnknownType, match=r"job\.cancel\.v1"):
        decode_event("job.cancel.v1", b"{}")
    with pytest.raises(UnknownType, match=r"node\.cordoned\.v1"):
        decode_command("node.cordoned.v1", b"{}")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"node_id": "Not A Name"}'])
def test_invalid_data_is_an_error(data: bytes) -> None:
    with pytest.raises(ValidationError):
        decode_event("node.cordoned.v1", data)


def test_a_command_has_one_owner() -> None:
    assert owner_of("job.cancel.v1") == "admission"
    assert owner_of("node.cordoned.v1") is None
