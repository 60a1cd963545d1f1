"""The most recent spans of all services in bounded memory, decoded when they are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.telemetry.otlp_decode import decode_request, spans_in, traced
from shared.telemetry.traced import TracedSpan, spans_to_json

MAX_BYTES = 32 << 20
OVERHEAD_BYTES = 160
"""Memory per body beside its bytes, so that many tiny bodies cannot exhaust it."""

JOB_ID = "job.id"


class OtlpRing:
    """Stores request bodies undecoded. Ids are plain bytes in them, so that a search through the
    raw bodies finds the few to decode. Used from one event loop.
    """

    def __init__(self, max_spans: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_spans, self._max_bytes = max_spans, max_bytes
        self._bodies: deque[tuple[bytes, int]] = deque()
        self.spans = 0
        self.bytes = 0

    def ingest(self, body: bytes, content_type: str, encoding: str = "") -> int:
        """Store the body and return its number of spans; raises ValueError for a malformed body."""
        plain, request = decode_request(body, content_type, encoding)
        spans = sum(
            len(scope.spans)
            for resource in request.resource_spans
            for scope in resource.scope_spans
        )
        if spans > self._max_spans or _cost(plain) > self._max_bytes:
            raise ValueError(f"{spans} spans in {len(plain)} bytes exceed the capacity of the ring")
        if spans:
            self._keep(plain, spans)
        return spans

    def trace(self, trace_id: str) -> list[TracedSpan]:
        """Return the spans of a trace, oldest first; none for a malformed id."""
        try:
            id_bytes = bytes.fromhex(trace_id)
        except ValueError:
            return []
        if len(id_bytes) != 16:
            return []
        return self._find(id_bytes, lambda span: span.trace_id == id_bytes)

    def by_job(self, job_id: str) -> list[TracedSpan]:
        """Return the spans of a job in all traces, oldest first."""
        if not job_id:
            return []
        return self._find(job_id.encode(errors="replace"), lambda span: _is_of_job(span, job_id))

    @staticmethod
    def to_json(spans: Iterable[TracedSpan]) -> list[dict[str, object]]:
        return spans_to_json(spans)

    def _keep(self, plain: bytes, spans: int) -> None:
        self._bodies.append((plain, spans))
        self.spans += spans
        self.bytes += _cost(plain)
        while self.spans > self._max_spans or self.bytes > self._max_bytes:
            oldest, spans_removed = self._bodies.popleft()
            self.spans -= spans_removed
            self.bytes -= _cost(oldest)

    def _find(self, needle: bytes, is_match: Callable[[Span], bool]) -> list[TracedSpan]:
        matches = {
            (span.trace_id, span.span_id): traced(resource, span)
            for body, _ in self._bodies
            if needle in body
            for resource, span in spans_in(ExportTraceServiceRequest.FromString(body))
            if is_match(span)
        }
        return sorted(matches.values(), key=lambda span: (span.start_ns, span.end_ns, span.span_id))


def _cost(body: bytes) -> int:
    return len(body) + OVERHEAD_BYTES


def _is_of_job(span: Span, job_id: str) -> bool:
    return any(pair.key == JOB_ID and pair.value.string_value == job_id for pair in span.attributes)
