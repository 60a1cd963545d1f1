"""Answers to requests of the topic, as records of the tenant's topic of answers."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import Raw

from services.throttle.relay.errors import ErrorAnswer, refuse
from shared.contracts.llm import LlmAnswer, StoredAnswer
from shared.ledger.cloudevents import encode

SOURCE = "/berth/throttle"
MOST_BYTES = 512 * 1024
"""Size of an answer that a record may hold; a larger one goes by reference."""


@dataclass(frozen=True, slots=True)
class Sender:
    """The request that an answer is for."""

    request_id: str
    tenant: str
    endpoint: str = ""
    traceparent: str = ""
    interaction: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `body` is the JSON that an OpenAI client would get."""

    to: Sender
    status: int
    body: bytes
    reason: str = ""
    reference: StoredAnswer | None = None


def error_answer(to: Sender, error: ErrorAnswer) -> Answer:
    """Return the answer to a request that has no other."""
    return Answer(to, error.status, error.body, error.code or "")


def refusal(to: Sender, reason: str, detail: str, retry_after_s: float | None = None) -> Answer:
    """Return the answer to a request that is not served."""
    return error_answer(to, refuse(reason, detail, retry_after_s=retry_after_s))


def engine_answer(to: Sender, status: int, body: bytes) -> Answer:
    """Return the answer of an engine; one that is no JSON object is an error of the engine."""
    try:
        msgspec.json.decode(body, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return refusal(to, "upstream_failed", f"engine: status {status} without a JSON object")
    return Answer(to, status, body, "" if status < 400 else f"status_{status}")


def answer_record(answer: Answer, at_ms: int) -> bytes:
    """Return the CloudEvent; all answers to one request have one id."""
    to = answer.to
    data = {
        "request_id": to.request_id,
        "tenant": to.tenant,
        "endpoint": to.endpoint,
        "status": answer.status,
        "reason": answer.reason,
        "interaction": to.interaction,
    }
    if answer.reference is None:
        data["body"] = Raw(answer.body)
    else:
        data["reference"] = answer.reference.model_dump()
    return encode(
        id=f"llm.answer/{to.tenant}/{to.request_id}",
        source=SOURCE,
        type=LlmAnswer.TYPE,
        data=msgspec.json.encode(data),
        at_ms=at_ms,
        subject=to.request_id,
        traceparent=to.traceparent,
        tenant=to.tenant,
    )
