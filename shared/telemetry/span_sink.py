"""Builds SDK spans from traceparents and hands them to the SDK's batch processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from shared.telemetry.event_attributes import Attributes
from shared.telemetry.metrics import Metrics
from shared.telemetry.names import SpanName
from shared.telemetry.otlp_encode import Encoder
from shared.telemetry.otlp_export import OtlpExporter
from shared.telemetry.sampling import ALL, is_kept
from shared.telemetry.trace_ids import parse

QUEUE_SPANS = 20_000
BATCH_SPANS = 512
EXPORT_EVERY_MS = 500

SAMPLED = TraceFlags(TraceFlags.SAMPLED)
OK = Status(StatusCode.UNSET)
FAILED = Status(StatusCode.ERROR)


class SpanSink:
    """Queues spans for export and counts those that a full queue rejects."""

    def __init__(
        self,
        service: str,
        otlp_url: str,
        instance: str,
        counters: Metrics | None,
        share: float = ALL,
        ca: Path | None = None,
    ) -> None:
        names = {
            "service.name": service,
            "service.namespace": "berth",
            "service.instance.id": instance or service,
        }
        self._resource = Resource(names)
        self._counters = counters
        self._share = share
        self._closed = False
        self._queued = self._exported = 0
        self._exporter = OtlpExporter(otlp_url, Encoder(names), self._on_batch, ca)
        self._processor = BatchSpanProcessor(
            self._exporter,
            QUEUE_SPANS,
            EXPORT_EVERY_MS,
            BATCH_SPANS,
            meter_provider=NoOpMeterProvider(),
        )

    def keeps(self, name: SpanName, own: str, attributes: Attributes) -> bool:
        """Return whether `put` would keep a span, by `sampled_by` alone; one that it would not is
        counted."""
        is_sampled = is_kept(self._share, name, own, attributes)
        if not is_sampled:
            self._unsampled()
        return is_sampled

    def put(
        self,
        name: SpanName,
        own: str,
        parent: str,
        attributes: Attributes,
        started_ns: int,
        ended_ns: int,
        is_server: bool = False,
        links: Sequence[str] = (),
    ) -> None:
        """Queue a span; a `parent` in another trace is linked, as `links` are."""
        if not is_kept(self._share, name, own, attributes):
            return self._unsampled()
        context = _context(own, is_remote=False)
        if context is None:
            return self._dropped(1, "malformed_traceparent")
        if self._closed or self._queued - self._exported >= QUEUE_SPANS:
            return self._dropped(1, "shut_down" if self._closed else "queue_full")
        cause = _context(parent, is_remote=True)
        is_child = cause is not None and cause.trace_id == context.trace_id
        span = ReadableSpan(
            name=name,
            context=context,
            parent=cause if is_child else None,
            resource=self._resource,
            attributes=attributes,
            links=_links(context.trace_id, links if is_child else (*links, parent)),
            kind=SpanKind.SERVER if is_server else SpanKind.CONSUMER,
            status=FAILED if "error.type" in attributes else OK,
            start_time=started_ns,
            end_time=max(started_ns, ended_ns),
        )
        self._queued += 1
        self._processor.on_end(span)

    def shutdown(self, timeout_s: float) -> None:
        self._exporter.close_within(timeout_s)
        self._closed = True
        shut_down: Callable[[], None] = self._processor.shutdown
        shut_down()

    def _on_batch(self, spans: int, sent: bool) -> None:
        self._exported += spans
        if not sent:
            self._dropped(spans, "export_failed")
        elif self._counters is not None:
            self._counters.spans_exported(spans)

    def _unsampled(self) -> None:
        if self._counters is not None:
            self._counters.spans_unsampled(1)

    def _dropped(self, spans: int, reason: str) -> None:
        if self._counters is not None:
            self._counters.spans_dropped(spans, reason)


def _links(own_trace: int, traceparents: Sequence[str]) -> tuple[Link, ...]:
    """Return one link per other trace, to the first of its spans that is given."""
    links: dict[int, Link] = {}
    for traceparent in traceparents:
        context = _context(traceparent, is_remote=True)
        if context is not None and context.trace_id != own_trace:
            links.setdefault(context.trace_id, Link(context))
    return tuple(links.values())


def _context(traceparent: str, *, is_remote: bool) -> SpanContext | None:
    """Return the context, always as sampled: the processor skips other spans."""
    ids = parse(traceparent)
    if ids is None:
        return None
    return SpanContext(int(ids.trace_id, 16), int(ids.span_id, 16), is_remote, SAMPLED)
