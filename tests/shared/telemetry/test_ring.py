"""The gateway's ring: what came in is found again, what is malformed is refused, all is bounded."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from shared.telemetry.otlp_decode import MAX_BODY_BYTES
from shared.telemetry.ring import OVERHEAD_BYTES, OtlpRing
from shared.telemetry.traced import SpanLink, spans_from_json

PROTOBUF, JSON = "application/x-protobuf", "application/json"
TRACE = bytes(range(1, 17))


def text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def span(job_id: str = "j1", number: int = 1, trace_id: bytes = TRACE) -> Span:
    return Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=b"\x09" * 8,
        name="place",
        start_time_unix_nano=1000 - number,
        end_time_unix_nano=2000,
        attributes=[text("job.id", job_id), KeyValue(key="n", value=AnyValue(int_value=3))],
        links=[Span.Link(trace_id=b"\x07" * 16, span_id=b"\x08" * 8)],
    )


def body(*spans: Span) -> bytes:
    resource = Resource(attributes=[text("service.name", "placement")])
    scoped = ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=spans)])
    return ExportTraceServiceRequest(resource_spans=[scoped]).SerializeToString()


OTLP_JSON = {
    "resourceSpans": [
        {
            "resource": {
                "attributes": [{"key": "service.name", "value": {"stringValue": "placement"}}]
            },
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": TRACE.hex(),
                            "spanId": "0000000000000001",
                            "parentSpanId": "0909090909090909",
                            "name": "place",
                            "kind": 5,
                            "startTimeUnixNano": "999",
                            "endTimeUnixNano": "2000",
                            "attributes": [
                                {"key": "job.id", "value": {"stringValue": "j1"}},
                                {"key": "n", "value": {"intValue": "3"}},
                            ],
                            "links": [{"traceId": "07" * 16, "spanId": "08" * 8}],
                            "ofTomorrow": True,
                        }
                    ]
                }
            ],
        }
    ]
}


def test_a_span_is_found_by_trace_and_by_job() -> None:
    ring = OtlpRing(100)
    assert ring.ingest(body(span(), span("j2", 2, b"\x05" * 16)), PROTOBUF) == 2
    [span_read] = ring.trace(TRACE.hex())
    assert [span_read] == ring.by_job("j1")
    assert (span_read.service, span_read.name, span_read.parent_span_id) == (
        "placement",
        "place",
        "09" * 8,
    )
    assert span_read.attributes == {"job.id": "j1", "n": 3}
    assert span_read.links == (SpanLink("07" * 16, "08" * 8),)


def test_protobuf_json_and_gzip_say_the_same() -> None:
    plain, other = OtlpRing(100), OtlpRing(100)
    plain.ingest(body(span()), PROTOBUF + "; charset=utf-8", "identity")
    packed = gzip.compress(json.dumps(OTLP_JSON).encode())
    assert other.ingest(packed, JSON, "gzip") == 1
    assert plain.trace(TRACE.hex()) == other.trace(TRACE.hex()) != []


def test_spans_come_oldest_first_and_once_though_sent_twice() -> None:
    ring = OtlpRing(100)
    ring.ingest(body(span(number=1), span(number=2)), PROTOBUF)
    ring.ingest(body(span(number=1)), PROTOBUF)
    assert [span_read.span_id[-1] for span_read in ring.by_job("j1")] == ["2", "1"]


def test_a_job_id_is_matched_whole() -> None:
    ring = OtlpRing(100)
    ring.ingest(body(span("job-11")), PROTOBUF)
    assert ring.by_job("job-1") == ring.by_job("") == []


@pytest.mark.parametrize("trace_id", ["", "zz", "00", "é" * 32, TRACE.hex() + "00"])
def test_what_is_no_trace_id_finds_nothing(trace_id: str) -> None:
    ring = OtlpRing(100)
    ring.ingest(body(span()), PROTOBUF)
    assert ring.trace(trace_id) == []


def zipped(data: bytes) -> bytes:
    """Without the time of day, which would give every run tests of other names."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("bad", "content_type", "encoding", "reason"),
    [
        (b"\xff\xff\xff", PROTOBUF, "", "not an OTLP trace request"),
        (body(span())[:-3], PROTOBUF, "", "not an OTLP trace request"),
        (body(span(trace_id=b"short")), PROTOBUF, "", "trace id of 5 bytes"),
        (body(span(trace_id=bytes(16))), PROTOBUF, "", "trace id of 16 bytes"),
        (body(span(number=0)), PROTOBUF, "", "span id of 8 bytes"),
        (b"{", JSON, "", "not an OTLP trace request"),
        (b"[]", JSON, "", "not an object"),
        (b"\xff\xfe", JSON, "", "not an OTLP trace request"),
        (b"[" * 200_000, JSON, "", "not an OTLP trace request"),
        (b'{"resourceSpans": 7}', JSON, "", "not an OTLP trace request"),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"xyz"}]}]}]}', JSON, "", "not an"),
        (body(span()), PROTOBUF, "gzip", "not gzip"),
        (zipped(body(span()))[:-6], PROTOBUF, "gzip", "truncated"),
        (zipped(b"") + b"more", PROTOBUF, "gzip", "trailing data"),
        (zipped(bytes(MAX_BODY_BYTES + 1)), PROTOBUF, "gzip", "inflates to more than"),
        (bytes(MAX_BODY_BYTES + 1), PROTOBUF, "", "at most"),
        (b"", PROTOBUF, "br", "use gzip or identity"),
        (b"", "text/html", "", "use protobuf or JSON"),
    ],
)
def test_malformed_bodies_are_refused_with_a_reason_and_nothing_is_kept(
    bad: bytes, content_type: str, encoding: str, reason: str
) -> None:
    ring = OtlpRing(100)
    with pytest.raises(ValueError, match=reason):
        ring.ingest(bad, content_type, encoding)
    assert (ring.spans, ring.bytes) == (0, 0)


JSON_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["resourceSpans", "scopeSpans", "spans", "traceId", "links", "attributes"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200) | JSON_TREES.map(lambda tree: json.dumps(tree).encode()))
def test_any_bytes_are_taken_or_refused_by_value_error(anything: bytes) -> None:
    for content_type in (PROTOBUF, JSON):
        try:
            OtlpRing(10).ingest(anything, content_type)
        except ValueError as refused:
            assert str(refused)


def test_the_oldest_go_when_there_are_too_many_spans() -> None:
    ring = OtlpRing(10)
    for number in range(1, 31):
        ring.ingest(body(span(f"j{number}", number)), PROTOBUF)
    assert ring.spans == 10
    assert ring.by_job("j20") == []
    assert len(ring.by_job("j21")) == 1


def test_the_oldest_go_when_there_are_too_many_bytes() -> None:
    cost = len(body(span())) + OVERHEAD_BYTES
    ring = OtlpRing(1000, max_bytes=cost * 5 + 1)
    for number in range(1, 31):
        ring.ingest(body(span("j1", number)), PROTOBUF)
    assert (ring.spans, ring.bytes) == (5, cost * 5)


def test_a_body_that_is_larger_than_the_ring_is_refused() -> None:
    with pytest.raises(ValueError, match="exceed the capacity"):
        OtlpRing(1).ingest(body(span(number=1), span(number=2)), PROTOBUF)


def test_an_empty_request_is_fine_and_costs_nothing() -> None:
    ring = OtlpRing(10)
    assert ring.ingest(b"", PROTOBUF) == ring.ingest(b"{}", JSON) == 0
    assert ring.bytes == 0


def test_spans_travel_as_json_and_come_back() -> None:
    ring = OtlpRing(10)
    ring.ingest(body(span()), PROTOBUF)
    span_read = ring.by_job("j1")
    assert spans_from_json(json.loads(json.dumps(ring.to_json(span_read)))) == span_read
    with pytest.raises(ValueError, match="not a list of spans"):
        spans_from_json([{"trace_id": 7}])
