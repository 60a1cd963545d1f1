"""Messages of the pipes to a scheduler's process: msgpack of a view, and JSON of a proposal."""

from __future__ import annotations

import msgspec

from services.placement.core.scheduled.request import ProposalRequest
from shared.contracts.proposals import ProposalReady

MEMORY_GIB = 4
"""Memory that a scheduler's process may allocate, its libraries included."""


def pack_request(request: ProposalRequest) -> bytes:
    return msgspec.msgpack.encode(request)


def request_of(body: bytes) -> ProposalRequest:
    return msgspec.msgpack.decode(body, type=ProposalRequest)


def pack_answer(answer: ProposalReady) -> bytes:
    return answer.model_dump_json().encode()


def answer_of(body: bytes) -> ProposalReady:
    """Return the answer. Raises ValueError if it is none."""
    return ProposalReady.model_validate_json(body)
