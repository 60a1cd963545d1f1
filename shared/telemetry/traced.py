"""A span as it is read back: by the waterfall, the REST API and the console."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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


def spans_to_json(spans: Iterable[TracedSpan]) -> list[dict[str, object]]:
    """Plain objects that any JSON encoder takes."""
    return [msgspec.to_builtins(span) for span in spans]


def spans_from_json(objects: Sequence[object]) -> list[TracedSpan]:
    """The inverse; ValueError (with the path of what is wrong) for anything else."""
    try:
        return msgspec.convert(list(objects), list[TracedSpan])
    except msgspec.ValidationError as error:
        raise ValueError(f"not a list of spans: {error}") from None
