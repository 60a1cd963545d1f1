"""An OTLP/HTTP request body, validated: protobuf or JSON, plain or gzip."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator

import msgspec
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from shared.telemetry.names import AttributeValue
from shared.telemetry.traced import SpanLink, TracedSpan

MAX_BODY_BYTES = 4 << 20
GZIP_WRAPPED = 31
ID_FIELDS = frozenset({"traceId", "spanId", "parentSpanId"})


def decode_request(
    body: bytes, content_type: str, encoding: str
) -> tuple[bytes, ExportTraceServiceRequest]:
    """Return the protobuf bytes and the request; raises ValueError with the reason."""
    plain = _inflated(body, encoding.strip().lower())
    match content_type.partition(";")[0].strip().lower():
        case "application/x-protobuf":
            request = _from_protobuf(plain)
        case "application/json":
            request = _from_json(plain)
            plain = request.SerializeToString()
        case other:
            raise ValueError(f"content type {other[:64]!r} is not supported; use protobuf or JSON")
    for _, span in spans_in(request):
        _check(span)
    return plain, request


def spans_in(request: ExportTraceServiceRequest) -> Iterator[tuple[ResourceSpans, Span]]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield resource, span


def traced(resource: ResourceSpans, span: Span) -> TracedSpan:
    return TracedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        service=_service(resource),
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes={pair.key: _value(pair.value) for pair in span.attributes},
        links=tuple(SpanLink(link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
    )


def _inflated(body: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        return _gunzipped(body)
    if encoding not in ("", "identity"):
        raise ValueError(
            f"content encoding {encoding[:64]!r} is not supported; use gzip or identity"
        )
    if len(body) > MAX_BODY_BYTES:
        raise ValueError(f"body of {len(body)} bytes; at most {MAX_BODY_BYTES} are accepted")
    return body


def _gunzipped(body: bytes) -> bytes:
    """Inflate up to the limit, however small the compressed body is."""
    inflater = zlib.decompressobj(GZIP_WRAPPED)
    try:
        plain = inflater.decompress(body, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"not gzip: {error}") from None
    if len(plain) > MAX_BODY_BYTES:
        raise ValueError(f"body inflates to more than {MAX_BODY_BYTES} bytes")
    if not inflater.eof or inflater.unused_data:
        raise ValueError("gzip body is truncated or has trailing data")
    return plain


def _from_protobuf(plain: bytes) -> ExportTraceServiceRequest:
    try:
        return ExportTraceServiceRequest.FromString(plain)
    except DecodeError as error:
        raise ValueError(f"not an OTLP trace request: {error}") from None


def _from_json(plain: bytes) -> ExportTraceServiceRequest:
    try:
        # Protobuf's own parser raises SystemError for a lone surrogate; msgspec rejects it.
        tree = _with_binary_ids(msgspec.json.decode(plain))
        if not isinstance(tree, dict):
            raise ValueError("not an object")
        return ParseDict(tree, ExportTraceServiceRequest(), ignore_unknown_fields=True)
    except (
        msgspec.MsgspecError,
        ParseError,
        RecursionError,
        TypeError,
        AttributeError,
        ValueError,
    ) as error:
        raise ValueError(f"not an OTLP trace request: {str(error)[:200]}") from None


def _with_binary_ids(node: object) -> object:
    """Return the tree with ids in base64 as protobuf's JSON has them; OTLP's JSON has hex."""
    match node:
        case dict():
            return {
                key: _id(v) if key in ID_FIELDS else _with_binary_ids(v) for key, v in node.items()
            }
        case list():
            return [_with_binary_ids(item) for item in node]
    return node


def _id(value: object) -> str:
    return base64.b64encode(bytes.fromhex(str(value))).decode()


def _check(span: Span) -> None:
    if len(span.trace_id) != 16 or not any(span.trace_id):
        raise ValueError(f"span {span.name[:64]!r} has a trace id of {len(span.trace_id)} bytes")
    if len(span.span_id) != 8 or not any(span.span_id):
        raise ValueError(f"span {span.name[:64]!r} has a span id of {len(span.span_id)} bytes")


def _service(resource: ResourceSpans) -> str:
    for pair in resource.resource.attributes:
        if pair.key == "service.name":
            return pair.value.string_value
    return ""


def _value(value: AnyValue) -> AttributeValue:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bool_value":
            return value.bool_value
    return str(value).strip()
