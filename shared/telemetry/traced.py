"""A span as the waterfall, the REST API and the CLI read it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from shared.telemetry.names import AttributeValue


@dataclass(frozen=True, slots=True)
class SpanLink:
    """A span in another trace that this one follows from."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class TracedSpan:
    """Ids are lower-case hex; a root's `parent_span_id` is empty."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    service: str
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    links: tuple[SpanLink, ...] = ()
    failed: bool = False


def spans_visible_to(spans: Sequence[TracedSpan], tenant: str, job_id: str) -> list[TracedSpan]:
    """Return the spans of a tenant's own job without those, and links to those, of other tenants.

    A tenant chooses the trace id of its submission, so it may choose that of another tenant.
    """
    tenant_spans = [span for span in spans if span.attributes.get("tenant.id") == tenant]
    jobs = {job_id, *(span.attributes.get("job.id") for span in tenant_spans)}
    own = [span for span in spans if _is_of(span, tenant, jobs)]
    traces = {span.trace_id for span in own}
    return [
        replace(span, links=tuple(link for link in span.links if link.trace_id in traces))
        for span in own
    ]


def _is_of(span: TracedSpan, tenant: str, jobs: Container[AttributeValue | None]) -> bool:
    """True for a span of the tenant; one that names no tenant belongs to that of its job."""
    span_tenant = span.attributes.get("tenant.id")
    return span.attributes.get("job.id") in jobs if span_tenant is None else span_tenant == tenant


def spans_to_json(spans: Iterable[TracedSpan]) -> list[dict[str, object]]:
    """Return the spans as plain JSON objects."""
    return [msgspec.to_builtins(span) for span in spans]


def spans_from_json(objects: Sequence[object]) -> list[TracedSpan]:
    """Return the spans of JSON objects; raises ValueError with the path of the error."""
    try:
        return msgspec.convert(list(objects), list[TracedSpan])
    except msgspec.ValidationError as error:
        raise ValueError(f"not a list of spans: {error}") from None
