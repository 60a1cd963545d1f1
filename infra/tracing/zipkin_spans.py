"""OTLP spans as Zipkin's JSON; links become tags."""

from __future__ import annotations

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from shared.telemetry.otlp_decode import spans_in, traced
from shared.telemetry.traced import TracedSpan


def zipkin_spans(request: ExportTraceServiceRequest) -> list[dict[str, object]]:
    """Return the spans of an ExportTraceServiceRequest for `POST /api/v2/spans`."""
    return [_zipkin(traced(resource, span)) for resource, span in spans_in(request)]


def _zipkin(span: TracedSpan) -> dict[str, object]:
    tags = {name: str(value) for name, value in span.attributes.items()}
    links = ((f"link.{n}", f"{to.trace_id}/{to.span_id}") for n, to in enumerate(span.links))
    started_us = span.start_ns // 1000
    return {
        "traceId": span.trace_id,
        "id": span.span_id,
        **({"parentId": span.parent_span_id} if span.parent_span_id else {}),
        "name": span.name,
        "timestamp": started_us,
        "duration": max(1, span.end_ns // 1000 - started_us),
        "localEndpoint": {"serviceName": span.service},
        "tags": {**tags, **dict(links), **({"error": "true"} if span.failed else {})},
    }
