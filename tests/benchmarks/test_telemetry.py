"""The benchmark of telemetry sends the same spans by both exporters."""

from __future__ import annotations

from typing import Any, cast

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from benchmarks.telemetry import NAMES, TelemetryBenchOptions, make_span, parse_by_sdk, run
from shared.telemetry.otlp_encode import Encoder
from shared.telemetry.trace_ids import parse

pytestmark = pytest.mark.process


async def test_every_comparison_has_a_ratio_within_its_range() -> None:
    result = await run(TelemetryBenchOptions(spans=20, rounds=3), lambda line: None)
    comparisons = cast("dict[str, dict[str, Any]]", result["comparisons"])
    assert list(comparisons) == ["encode", "export", "parse_traceparent"]
    for figures in comparisons.values():
        low, high = figures["ratio_range"]
        assert 0 < low <= figures["ratio"] <= high


def test_both_encoders_write_the_same_span() -> None:
    own = ExportTraceServiceRequest.FromString(Encoder(NAMES).encode([make_span(3)]))
    assert _comparable(own) == _comparable(encode_spans([make_span(3)]))


def _comparable(request: ExportTraceServiceRequest) -> Span:
    """Return the one span without what the SDK leaves out (the sampled flag) or adds (a status)."""
    [span] = request.resource_spans[0].scope_spans[0].spans
    assert not span.status.code
    span.ClearField("status")
    span.flags &= ~1
    for link in span.links:
        link.flags &= ~1
    return span


def test_both_parsers_read_the_same_ids() -> None:
    text = f"00-{7:032x}-{9:016x}-01"
    own, sdk = parse(text), parse_by_sdk(text)
    assert own is not None
    assert (int(own.trace_id, 16), int(own.span_id, 16)) == (sdk.trace_id, sdk.span_id)
