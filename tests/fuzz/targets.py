"""Targets of the fuzzers: each takes any bytes.

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
from services.gateway.core.field_errors import InvalidBody, NotJson
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.core.submission import CancelBody, Sender, TenantMismatch, parse_submission
from services.gateway.core.vector import decode_vector, encode_vector
from services.gateway.kafka.inbound import PREFIX, SubmissionRecord, route_submission
from services.gateway.responses.problem import problem_response, unauthenticated
from services.gateway.streams.hub import frame_event
from services.gateway.streams.job_log import JobLog
from services.placement.heartbeat_log import decoded_heartbeats, decoded_marker
from services.publisher.core.position import decode as decode_place
from services.throttle.relay.prefixes import prefix_hashes
from services.throttle.relay.prompt_size import prompt_size
from services.throttle.relay.prompt_text import prompt_text
from services.throttle.relay.request import ROUTES, InvalidRequest, RequestBody
from services.throttle.relay.sse import EventTooLarge
from services.throttle.relay.stream_filter import StreamFilter
from services.throttle.relay.usage import TokenCount
from services.throttle.upstreams.body import ENCODER
from shared.bus.logs.log import Entry
from shared.contracts.access import KeyCreated
from shared.contracts.codec import decode_command, encode
from shared.contracts.job_commands import RejectSubmission
from shared.contracts.keys import format_key, hash_secret, parse_key
from shared.contracts.registry import AccessView, Bearer
from shared.contracts.reports import ExecutorReported
from shared.contracts.topics import CUSTODIAN, INPUTS
from shared.job_logs.chunk import chunk_of, pack, parse_name, unpack
from shared.job_logs.record import printed_of
from shared.ledger import cloudevents, record
from shared.ledger.decider import Input, Undecodable
from shared.ledger.errors import ProtocolViolation
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor, Reader
from shared.oidc.claims import BadClaims, ClaimRules
from shared.oidc.key_set import KeySet, KeysUnavailable
from shared.oidc.tokens import BadToken, TokenRules, verify_token
from shared.telemetry import trace_ids
from shared.telemetry.ring import OtlpRing
from tests.shared.oidc.identity import AUDIENCE, ISSUER, new_ec, public

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


def record_(data: bytes) -> None:
    """A record of a ledger: other bytes than an envelope are skipped, a broken chain raises."""
    for value in (data, _wrapped(data)):
        envelope = record.decode(value)
        with suppress(ProtocolViolation):
            reader = Reader("admission", 0)
            accepted = reader.offer(0, value)
            assert (accepted is not None) == (
                envelope is not None and envelope.seq == 1 and envelope.prev == ""
            )
        if envelope is None:
            continue
        assert record.decode(record.encode(envelope)) == envelope
        cursor = Cursor(1, envelope.seq, envelope.id, 0, envelope.at, envelope.inputs)
        assert Cursor.from_json(cursor.to_json()) == cursor


def _wrapped(data: bytes) -> bytes:
    """The bytes as the events of an envelope that is in order: most random envelopes are not."""
    return b'{"id":"a","seq":1,"prev":"","w":"w","at":1,"in":{},"ev":' + data + b"}"


def cloudevent(data: bytes) -> None:
    """A message of a plain topic: at most one input per reader, with a reason if undecodable."""
    with suppress(cloudevents.Malformed):
        event = cloudevents.decode(data)
        assert isinstance(event.at, int)
        assert event.body.strip()
    for decoder, topic in READERS:
        inputs = decoder.decode_plain(TP(topic, 0), 7, data)
        assert len(inputs) <= 1
        for item in inputs:
            _check_input(item)


def _check_input(item: Input) -> None:
    if isinstance(item.message, Undecodable):
        assert item.message.reason
        item.message.reason.encode()
        return
    again = encode(item.message)
    assert b"\\u0000" not in again.replace(b"\\\\", b"")


def soft(data: bytes) -> None:
    """Heartbeats, telemetry, log lines, published events: unreadable bytes are skipped."""
    decoded_heartbeats(data)
    decoded_marker(data)
    decode_telemetry(data)
    entry = Entry(3, None, data)
    printed = printed_of(entry)
    run = printed.run_from(0, 0) if printed is not None else None
    if printed is not None and run is not None:
        assert printed.key(1).prefix.count("/") == 2 and "/../" not in f"/{printed.key(1).prefix}/"
        chunk = chunk_of(printed.worker, [run], printed.is_last)
        assert parse_name(chunk.name) == chunk and unpack(pack([run])) == [run]
        for line in JobLog().lines(printed.worker, run):
            msgspec.json.encode(line)
    framed = frame_event(entry, [1, 2])
    if framed is not None:
        head, frame = framed
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
    """A body of the API: a command, or faults that can be sent as JSON."""
    try:
        fields = parse_object(data)
    except NotJson as error:
        assert str(error)
        return
    for reading in (parse_submission, lambda body: parse_body(CancelBody, body)):
        try:
            reading(fields).model_dump_json()
        except InvalidBody as error:
            assert error.errors
            for fault in error.errors:
                fault.model_dump_json()
        except TenantMismatch as error:
            error.error.model_dump_json()


def traceparent(data: bytes) -> None:
    text = data.decode("latin-1")
    ids = trace_ids.parse(text)
    if ids is not None:
        assert trace_ids.parse(str(ids)) == ids
        assert trace_ids.child_of(text)[3:35] == ids.trace_id
    assert trace_ids.parse(trace_ids.child_of(text)) is not None
    assert trace_ids.parse(data.decode("utf-8", "surrogateescape")) is None or data.isascii()


VIEW = AccessView()
VIEW.apply(KeyCreated(key_id="k.1", sha256=hash_secret("secret"), role="viewer", tenant="ada"))


def api_key(data: bytes) -> None:
    """A key in a header: only the right one is accepted, and nothing raises."""
    for text in (data.decode("latin-1"), data.decode("utf-8", "surrogateescape")):
        key = parse_key(text)
        if key is not None:
            assert format_key(*key) == text
            assert key.secret not in repr(key) or key.secret in f"Key({key.key_id!r})"
        assert (VIEW.authenticate(text) is not None) == (text == "k.1.secret")


class Issuer:
    """An issuer with one key in a file of the gateway, and an event loop for the async calls."""

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
        """Return the bearer; None for a token that is refused with a problem."""
        try:
            return self.loop.run_until_complete(verify_token(token, self.rules, self.keys))
        except (BadToken, BadClaims, KeysUnavailable) as error:
            problem_response(unauthenticated(f"token: {error}", of_token=True))
            return None


@cache
def issuer() -> Issuer:
    return Issuer()


def token(data: bytes) -> None:
    """The bytes as a bearer token, as the header of one and as claims of genuine ones: only the
    claims of a genuine token are accepted."""
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
    """Spans of a client: accepted or refused; accepted ones can be encoded as JSON."""
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
    for route in ROUTES:
        try:
            body = RequestBody.decode(route, data)
        except InvalidRequest as error:
            str(error).encode()
            continue
        assert 0 <= body.output_limit(4096) <= 10_000_000 * 128 * 4096
        size = prompt_size(body.fields)
        assert 0 <= size.system_bytes <= size.text_bytes <= len(data)
        prompt_text(body.fields).encode(errors="surrogatepass")
        prefix_hashes(body.fields, b"key")
        # Bytes that are no UTF-8 are the engine's to refuse.
        json.loads(ENCODER.encode(body.with_stream()).decode(errors="replace"))


def llm_stream(data: bytes) -> None:
    """The stream of an engine: passed on byte for byte, and counted."""
    for route in ROUTES:
        events = StreamFilter(TokenCount(route), shows_usage=True)
        try:
            passed = events.feed(data[: len(data) // 2]) + events.feed(data[len(data) // 2 :])
            passed += events.end()
        except EventTooLarge:
            continue
        assert passed == data
        assert events.count.output_tokens >= 0


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
    "llm-stream": llm_stream,
    "token": token,
    "last-event-id": last_event_id,
    "otlp": otlp,
    "llm-body": llm_body,
    "report": report,
}
