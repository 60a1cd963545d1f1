"""CloudEvents 1.0 as structured JSON, one per record, with Berth's extensions."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

LIMIT_BYTES = 1024 * 1024
LONGEST = 1024
"""Characters of an attribute: ids and tenants are repeated in every event that follows."""
ATTRIBUTES = ("id", "source", "type", "subject", "traceparent", "tenant", "pool", "principal")
NUL = b"\\u0000"
"""The one character that Postgres cannot keep, as JSON has to write it."""
CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"


class Malformed(ValueError):
    """The bytes are no CloudEvent; the text is the reason, without a quotation of them."""


class CloudEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The envelope; `data` stays JSON bytes."""

    id: str
    source: str
    type: str
    specversion: str = ""
    subject: str = ""
    time: str = ""
    datacontenttype: str = ""
    traceparent: str = ""
    tenant: str = ""
    pool: str = ""
    principal: str = ""
    accessnext: int = 0
    link: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def body(self) -> bytes:
        return bytes(self.data)

    @property
    def at(self) -> int:
        """`time` in milliseconds, 0 when there is none."""
        if not self.time:
            return 0
        return int(datetime.fromisoformat(self.time).timestamp() * 1000)


_decoder = msgspec.json.Decoder(CloudEvent)
_encoder = msgspec.json.Encoder()


def encode(
    *,
    id: str,
    source: str,
    type: str,
    data: bytes,
    at_ms: int = 0,
    subject: str = "",
    traceparent: str = "",
    tenant: str = "",
    pool: str = "",
    principal: str = "",
    accessnext: int = 0,
    link: str = "",
) -> bytes:
    return _encoder.encode(
        CloudEvent(
            id=id,
            source=source,
            type=type,
            specversion="1.0",
            subject=subject,
            time=_rfc3339(at_ms) if at_ms else "",
            datacontenttype="application/json",
            traceparent=traceparent,
            tenant=tenant,
            pool=pool,
            principal=principal,
            accessnext=accessnext,
            link=link,
            data=msgspec.Raw(data),
        )
    )


def decode(value: bytes | None) -> CloudEvent:
    """Strict: raises Malformed for whatever is not a whole CloudEvent 1.0."""
    if value is None:
        raise Malformed("the record is empty")
    if len(value) > LIMIT_BYTES:
        raise Malformed(f"{len(value)} bytes, at most {LIMIT_BYTES} are read")
    try:
        envelope = _decoder.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(_reason(error)) from None
    if envelope.specversion != "1.0":
        raise Malformed("specversion is not 1.0")
    for name in ("id", "source", "type"):
        if not getattr(envelope, name):
            raise Malformed(f"{name} is empty")
    # No attribute has more characters than the envelope bytes, and a NUL is always an escape.
    if len(value) - len(envelope.data) > LONGEST or NUL in value:
        for name in ATTRIBUTES:
            _check_attribute(name, getattr(envelope, name))
    _check_time(envelope.time)
    return envelope


def decode_input(value: bytes | None) -> CloudEvent:
    """As `decode`, and refuses data that no read model could keep: for inputs of a decider."""
    envelope = decode(value)
    if NUL in envelope.body:
        _check_text(_whole(envelope.data), "data")
    return envelope


def _whole(data: msgspec.Raw) -> object:
    """Decode the data, which the envelope's reader skipped; raises Malformed if it is not JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"data: {_reason(error)}") from None


def _check_attribute(name: str, text: str) -> None:
    if len(text) > LONGEST:
        raise Malformed(f"{name}: {len(text)} characters, at most {LONGEST} are read")
    _check_text(text, name)


def _check_text(value: object, where: str) -> None:
    match value:
        case str() if "\x00" in value:
            raise Malformed(f"{where}: may not hold a NUL character")
        case dict():
            for name, item in value.items():
                _check_text(name, f"{where}: a name")
                _check_text(item, f"{where}.{name}"[:LONGEST])
        case list():
            for index, item in enumerate(value):
                _check_text(item, f"{where}.{index}"[:LONGEST])


def _check_time(time: str) -> None:
    try:
        parsed = datetime.fromisoformat(time) if time else None
    except ValueError:
        raise Malformed("time is not RFC 3339") from None
    if parsed is not None and parsed.tzinfo is None:
        raise Malformed("time has no zone")


def _reason(error: Exception) -> str:
    return str(error)[:200] if isinstance(error, msgspec.ValidationError) else "not JSON"


def _rfc3339(at_ms: int) -> str:
    whole = datetime.fromtimestamp(at_ms / 1000, UTC)
    return whole.isoformat(timespec="milliseconds").replace("+00:00", "Z")
