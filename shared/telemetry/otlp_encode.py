"""Finished spans as OTLP bytes, written field by field at a quarter of the SDK encoder's CPU.

Decision 0018 has the measurement. The field numbers are those of
`opentelemetry/proto/trace/v1/trace.proto`, which are frozen; the tests decode every shape of span
with the official messages.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, StatusCode

from shared.telemetry.names import AttributeKey

FEW_VALUED: frozenset[AttributeKey] = frozenset(
    {
        "decision.learned",
        "decision.model_sha256",
        "decision.policy",
        "decision.reason",
        "decision.solver",
        "event.type",
        "messaging.destination.name",
        "messaging.destination.partition.id",
        "messaging.operation.name",
        "messaging.operation.type",
        "messaging.system",
        "tenant.id",
    }
)
"""Attributes with few distinct values, which are encoded once."""

REMOTE_PARENT = 0x300
"""Flags: the parent's location is known (0x100) and remote (0x200)."""

_double = struct.Struct("<d").pack
_fixed32 = struct.Struct("<I").pack
_times = struct.Struct("<BQBQ").pack


class Encoder:
    """Encodes a batch as one export request with this process's resource."""

    def __init__(self, resource: dict[str, str]) -> None:
        attributes = (_field(0x0A, _pair(key, value)) for key, value in resource.items())
        self._resource = _field(0x0A, b"".join(attributes))
        self._scope = _field(0x0A, _field(0x0A, b"berth"))

    def encode(self, spans: Sequence[ReadableSpan]) -> bytes:
        scoped = self._scope + b"".join([_field(0x12, _span(span)) for span in spans])
        return _field(0x0A, self._resource + _field(0x12, scoped))


def _span(span: ReadableSpan) -> bytes:
    context = span.get_span_context()
    if context is None:
        raise ValueError("span without a context")
    parts = [
        _ids(context),
        _field(0x2A, span.name.encode()),
        bytes((0x30, span.kind.value + 1)),
        _times(0x39, span.start_time or 0, 0x41, span.end_time or 0),
        b"\x85\x01" + _fixed32(context.trace_flags | REMOTE_PARENT),
    ]
    if span.parent is not None:
        parts.append(b"\x22\x08" + span.parent.span_id.to_bytes(8, "big"))
    for key, value in (span.attributes or {}).items():
        parts.append(_constant(key, value) if key in FEW_VALUED else _attribute(key, value))
    for link in span.links:
        flags = b"\x35" + _fixed32(link.context.trace_flags | REMOTE_PARENT)
        parts.append(_field(0x6A, _ids(link.context) + flags))
    if span.status.status_code is StatusCode.ERROR:
        parts.append(_field(0x7A, b"\x18\x02"))
    return b"".join(parts)


def _ids(context: SpanContext) -> bytes:
    trace_id, span_id = context.trace_id.to_bytes(16, "big"), context.span_id.to_bytes(8, "big")
    return b"\x0a\x10" + trace_id + b"\x12\x08" + span_id


def _attribute(key: str, value: object) -> bytes:
    """Encode one attribute; short ones need no nesting, as every length is one byte."""
    name = _key(key)
    if type(value) is str:
        text = value.encode(errors="replace")
        size = len(text)
        if size + len(name) < 0x7C:
            lengths = bytes((0x12, size + 2, 0x0A, size))
            return bytes((0x4A, size + len(name) + 4)) + name + lengths + text
    elif type(value) is float and len(name) < 0x70:
        return bytes((0x4A, len(name) + 11)) + name + b"\x12\x09\x21" + _double(value)
    return _field(0x4A, name + _field(0x12, _value(value)))


_constant = lru_cache(maxsize=4096)(_attribute)


def _pair(key: str, value: object) -> bytes:
    return _key(key) + _field(0x12, _value(value))


@cache
def _key(key: str) -> bytes:
    return _field(0x0A, key.encode())


def _value(value: object) -> bytes:
    match value:
        case str():
            return _field(0x0A, value.encode(errors="replace"))
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int():
            return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        case float():
            return b"\x21" + _double(value)
    raise TypeError(f"unsupported attribute type: {type(value).__name__}")


def _field(tag: int, payload: bytes) -> bytes:
    """Encode a length-delimited field; `tag` is field number and wire type in one byte."""
    size = len(payload)
    if size < 0x80:
        return bytes((tag, size)) + payload
    return bytes((tag,)) + _varint(size) + payload


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
