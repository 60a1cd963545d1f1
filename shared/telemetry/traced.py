"""A span as it is read back: by the waterfall, the REST API and the console."""

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
    """What a tenant may see of a job of its own: no foreign spans, no links to foreign traces.

    A tenant chooses the trace of its submission, so it could choose one that it was told of.
    """
    said = [span.attributes for span in spans if span.attributes.get("tenant.id") == tenant]
    jobs = {job_id, *(each.get("job.id") for each in said)}
    own = [span for span in spans if _is_of(span, tenant, jobs)]
    traces = {span.trace_id for span in own}
    return [
        replace(span, links=tuple(link for link in span.links if link.trace_id in traces))
        for span in own
    ]


def _is_of(span: TracedSpan, tenant: str, jobs: Container[AttributeValue | None]) -> bool:
    """A span that names no tenant is that of its job's."""
    named = span.attributes.get("tenant.id")
    return span.attributes.get("job.id") in jobs if named is None else named == tenant


def spans_to_json(spans: Iterable[TracedSpan]) -> list[dict[str, object]]:
    """Plain objects that any JSON encoder takes."""
    return [msgspec.to_builtins(span) for span in spans]


def spans_from_json(objects: Sequence[object]) -> list[TracedSpan]:
    """The inverse; ValueError (with the path of what is wrong) for anything else."""
    try:
        return msgspec.convert(list(objects), list[TracedSpan])
    except msgspec.ValidationError as error:
        raise ValueError(f"not a list of spans: {error}") from None
