"""What a stranger's bytes meet: each target takes any bytes and lets no surprise escape.

A target fails by an exception: one that its decoder does not declare, or a broken invariant.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import jwt
import msgspec

from services.failslow.app import decode_telemetry
from services.gateway.core.claims import BadClaims, ClaimRules
from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.core.submission import CancelBody, Sender, TenantMismatch, parse_submission
from services.gateway.core.vector import decode_vector, encode_vector
from services.gateway.hub import frame_event
from services.gateway.inbound import PREFIX, SubmissionRecord, route_submission
from services.gateway.key_set import KeySet, KeysUnavailable
from services.gateway.log_lines import JobLog
from services.gateway.problem import problem_response, unauthenticated
from services.gateway.tokens import BadToken, TokenRules, verify_token
from services.placement.heartbeats import decoded as decode_heartbeat
from services.publisher.core.position import decode as decode_place
from services.throttle.openai import (
    CompletionKind,
    CompletionResponse,
    InvalidCompletion,
    parse_request,
)
from shared.bus.log import Entry
from shared.contracts.access import KeyCreated
from shared.contracts.codec import decode_command, encode
from shared.contracts.jobs import RejectSubmission
from shared.contracts.keys import format_key, hash_secret, parse_key
from shared.contracts.registry import AccessView, Bearer
from shared.contracts.reports import ExecutorReported
from shared.contracts.topics import CUSTODIAN, INPUTS
from shared.ledger import cloudevents, record
from shared.ledger.decider import Input, Undecodable
from shared.ledger.errors import ProtocolViolation
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor, Reader
from shared.telemetry import trace_ids
from shared.telemetry.ring import OtlpRing
from tests.services.gateway.identity import AUDIENCE, ISSUER, new_ec, public

Target = Callable[[bytes], None]
READERS = tuple(
    (InputDecoder(service), topic)
    for service, topics in INPUTS.items()
    for topic in topics
    if topic in CUSTODIAN
)
SENDER, POOLS = Sender("ada", "main"), {"main": 1, "side": 2}
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PARTITIONS = 4
HALF_A_CHARACTER = "\ud800"


def record_(data: bytes) -> None:
    """A record of a ledger: what is no envelope is passed over, a broken chain is said."""
    for value in (data, _wrapped(data)):
        found = record.decode(value)
        with suppress(ProtocolViolation):
            reader = Reader("admission", 0)
            accepted = reader.offer(0, value)
            assert (accepted is not None) == (
                found is not None and found.seq == 1 and found.prev == ""
            )
        if found is None:
            continue
        assert record.decode(record.encode(found)) == found
        cursor = Cursor(1, found.seq, found.id, 0, found.at, found.inputs)
        assert Cursor.from_json(cursor.to_json()) == cursor


def _wrapped(data: bytes) -> bytes:
    """The bytes as the events of an envelope that is in order: most random envelopes are not."""
    return b'{"id":"a","seq":1,"prev":"","w":"w","at":1,"in":{},"ev":' + data + b"}"


def cloudevent(data: bytes) -> None:
    """A message of a plain topic: every reader of it has one answer, its custodian a reason."""
    with suppress(cloudevents.Malformed):
        found = cloudevents.decode(data)
        assert isinstance(found.at, int)
        assert found.body.strip()
    for decoder, topic in READERS:
        heard = decoder.decode_plain(TP(topic, 0), 7, data)
        assert len(heard) <= 1
        for item in heard:
            _check_input(item)


def _check_input(item: Input) -> None:
    if isinstance(item.message, Undecodable):
        assert item.message.reason
        item.message.reason.encode()
        return
    again = encode(item.message)  # type: ignore[arg-type]
    assert b"\\u0000" not in again.replace(b"\\\\", b"")


def soft(data: bytes) -> None:
    """Heartbeats, telemetry, log lines, published events: what nobody can read is passed over."""
    decode_heartbeat(data)
    decode_telemetry(data)
    entry = Entry(3, None, data)
    for line in JobLog("j", "ada").lines(entry):
        msgspec.json.encode(line)
    told = frame_event(entry, [1, 2])
    if told is not None:
        head, frame = told
        text = frame.decode()
        assert text.startswith(f"id: 1.2\nevent: {head.type}\ndata: ")
        assert text.count("\n") == 4, "an event that looks like several"
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        decode_place(data)


def submission(data: bytes) -> None:
    """A record of a tenant's own topic: one command, the same each time, that admission reads."""
    arrived = SubmissionRecord(f"{PREFIX}ada", 1, 5, data)
    made = route_submission(arrived, SENDER, POOLS, True)
    assert made == route_submission(arrived, SENDER, POOLS, True)
    assert made.lane in (*POOLS.values(), 0)
    wire = encode(made.command)
    assert decode_command(made.command.TYPE, wire) == made.command
    if isinstance(made.command, RejectSubmission):
        assert made.command.reason
    else:
        assert getattr(made.command, "tenant", "ada") == "ada"


def body(data: bytes) -> None:
    """A body of the API: a command, or a list of faults that can be said."""
    try:
        found = parse_object(data)
    except NotJson as error:
        assert str(error)
        return
    for reading in (parse_submission, lambda body: parse_body(CancelBody, body)):
        try:
            reading(found).model_dump_json()
        except InvalidBody as error:
            assert error.errors
            for fault in error.errors:
                fault.model_dump_json()
        except TenantMismatch as error:
            error.error.model_dump_json()


def traceparent(data: bytes) -> None:
    text = data.decode("latin-1")
    found = trace_ids.parse(text)
    if found is not None:
        assert trace_ids.parse(str(found)) == found
        assert trace_ids.child_of(text)[3:35] == found.trace_id
    assert trace_ids.parse(trace_ids.child_of(text)) is not None
    assert trace_ids.parse(data.decode("utf-8", "surrogateescape")) is None or data.isascii()


VIEW = AccessView()
VIEW.apply(KeyCreated(key_id="k.1", sha256=hash_secret("secret"), role="viewer", tenant="ada"))


def api_key(data: bytes) -> None:
    """A key as it comes in a header: the right one opens, no other does, nothing raises."""
    for text in (data.decode("latin-1"), data.decode("utf-8", "surrogateescape")):
        found = parse_key(text)
        if found is not None:
            assert format_key(*found) == text
            assert found.secret not in repr(found) or found.secret in f"Key({found.key_id!r})"
        assert (VIEW.authenticate(text) is not None) == (text == "k.1.secret")


class Issuer:
    """One key, known to the gateway by a file, and a loop for what is asynchronous."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.private = new_ec()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"keys": [public(self.private, "e1")]}, file)
            file.flush()
            self.keys = KeySet(file.name)
            self.loop.run_until_complete(self.keys.key("e1"))
        claims = ClaimRules("tenant", "realm.role", {"sub": "submitter", "op": "operator"})
        self.rules = TokenRules(ISSUER, AUDIENCE, 30.0, claims)

    def signed(self, payload: bytes) -> str:
        return jwt.api_jws.encode(payload, self.private, "ES256", {"kid": "e1", "typ": "JWT"})

    def judge(self, token: str) -> Bearer | None:
        """None for a token that opens nothing, for a reason that can be said."""
        try:
            return self.loop.run_until_complete(verify_token(token, self.rules, self.keys))
        except (BadToken, BadClaims, KeysUnavailable) as error:
            problem_response(unauthenticated(f"token: {error}", of_token=True))
            return None


@cache
def issuer() -> Issuer:
    return Issuer()


def token(data: bytes) -> None:
    """A bearer token as it comes, one with these bytes as its header, and genuine ones with them
    as claims: nobody enters but by the claims of a genuine one."""
    as_header = base64.urlsafe_b64encode(data).rstrip(b"=").decode() + ".e30.AAAA"
    for text in (data.decode("latin-1"), as_header):
        assert issuer().judge(text) is None
    for payload in (data, _with_claims(data)):
        bearer = issuer().judge(issuer().signed(payload))
        if bearer is not None:
            assert bearer.role in ("submitter", "operator")
            assert (bearer.tenant is None) == (bearer.role == "operator")


def _with_claims(data: bytes) -> bytes:
    """The bytes as a claim beside those that are in order."""
    plain = {"iss": ISSUER, "aud": AUDIENCE, "sub": "grace", "exp": 32503680000, "tenant": "ada"}
    return json.dumps(plain).encode()[:-1] + b', "realm": ' + data + b"}"


def last_event_id(data: bytes) -> None:
    text = data.decode("latin-1")
    place = decode_vector(text, PARTITIONS)
    if place is not None:
        assert len(place) == PARTITIONS
        assert decode_vector(encode_vector(place), PARTITIONS) == place


def otlp(data: bytes) -> None:
    """Spans of a stranger: taken or refused, and whatever is taken can be shown."""
    kinds = (("application/x-protobuf", ""), ("application/json", ""), ("application/json", "gzip"))
    for media, encoding in kinds:
        ring = OtlpRing(1000)
        try:
            taken = ring.ingest(data, media, encoding)
        except ValueError as error:
            assert str(error)
            continue
        assert taken == ring.spans
        for needle in (data[:16].hex(), "0af7651916cd43dd8448eb211c80319c"):
            msgspec.json.encode(ring.to_json(ring.trace(needle)))
        msgspec.json.encode(ring.to_json(ring.by_job("j")))


def llm_body(data: bytes) -> None:
    """The body of an OpenAI client: a request with bounded counts, or a reason."""
    kinds: tuple[CompletionKind, ...] = ("chat", "text")
    for kind in kinds:
        try:
            request = parse_request(kind, data)
        except InvalidCompletion as error:
            str(error).encode()
            continue
        assert request.prompt_tokens >= 1
        assert 1 <= request.output_tokens <= 10_000_000
        json.dumps(CompletionResponse(kind, request, "id", 1).complete(3)).encode()


def report(data: bytes) -> None:
    """An executor's report in a fair envelope."""
    envelope = (
        b'{"specversion":"1.0","id":"r","source":"/x","type":"'
        + ExecutorReported.TYPE.encode()
        + b'","data":'
        + data
        + b"}"
    )
    cloudevent(envelope)


TARGETS: dict[str, Target] = {
    "record": record_,
    "cloudevent": cloudevent,
    "soft": soft,
    "submission": submission,
    "body": body,
    "traceparent": traceparent,
    "api-key": api_key,
    "token": token,
    "last-event-id": last_event_id,
    "otlp": otlp,
    "llm-body": llm_body,
    "report": report,
}
