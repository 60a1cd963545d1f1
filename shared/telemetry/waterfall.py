"""A job's spans as text: the trace of its start as a waterfall, later decisions listed below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from shared.telemetry.names import AttributeValue
from shared.telemetry.traced import TracedSpan

START_SPANS = ("submit", "admit", "enqueue", "place")
SHOWN_PREFIXES = ("decision.", "error.type", "node.id", "allocation.id")
BAR_CHARS = 24
NAME_CHARS = 18
SERVICE_CHARS = 10
SECOND_NS = 1_000_000_000


def waterfall(spans: Sequence[TracedSpan]) -> list[str]:
    """Return plain lines without markup; print them with Rich's `markup=False`."""
    unique = {(span.trace_id, span.span_id): span for span in spans}
    if not unique:
        return ["no spans: tracing is off, or they have expired"]
    ordered = sorted(unique.values(), key=_order)
    start_trace = _start_trace(ordered)
    first = [span for span in ordered if span.trace_id == start_trace]
    later = [span for span in ordered if span.trace_id != start_trace]
    return [*_start(first), *_later(later, first[0].start_ns, unique)]


def _order(span: TracedSpan) -> tuple[int, int, str, str]:
    return span.start_ns, span.end_ns, span.trace_id, span.span_id


def _start_trace(ordered: Sequence[TracedSpan]) -> str:
    starts = (span.trace_id for span in ordered if span.name in START_SPANS)
    return next(starts, ordered[0].trace_id)


def _start(spans: Sequence[TracedSpan]) -> Iterator[str]:
    origin_ns = spans[0].start_ns
    total_ns = max(1, max(span.end_ns for span in spans) - origin_ns)
    yield f"trace {spans[0].trace_id}  {len(spans)} spans  {_time(total_ns)}"
    for depth, span in _tree(spans):
        name = "  " * depth + _clean(span.name)
        offset_ns, duration_ns = span.start_ns - origin_ns, max(0, span.end_ns - span.start_ns)
        line = (
            f"{_clean(span.service):<{SERVICE_CHARS}} {name:<{NAME_CHARS}} "
            f"{_time(offset_ns):>10} {_time(duration_ns):>10} "
            f"|{_bar(offset_ns, duration_ns, total_ns)}| {_decision(span.attributes)}"
        )
        yield line.rstrip()


def _tree(spans: Sequence[TracedSpan]) -> Iterator[tuple[int, TracedSpan]]:
    """Yield depth and span, depth first; a missing parent and a cycle of parents give a root."""
    ids = {span.span_id for span in spans}
    children: defaultdict[str, list[TracedSpan]] = defaultdict(list)
    for span in spans:
        children[span.parent_span_id].append(span)
    roots = [span for span in spans if span.parent_span_id not in ids]
    seen: set[str] = set()
    for root in [*roots, *spans]:
        pending = [(0, root)]
        while pending:
            depth, span = pending.pop()
            if span.span_id in seen:
                continue
            seen.add(span.span_id)
            yield depth, span
            pending += [(depth + 1, child) for child in reversed(children[span.span_id])]


def _bar(offset_ns: int, duration_ns: int, total_ns: int) -> str:
    first = min(BAR_CHARS - 1, max(0, offset_ns * BAR_CHARS // total_ns))
    chars = min(BAR_CHARS - first, max(1, round(duration_ns * BAR_CHARS / total_ns)))
    return " " * first + "█" * chars + " " * (BAR_CHARS - first - chars)


def _later(
    spans: Sequence[TracedSpan], origin_ns: int, spans_by_id: Mapping[tuple[str, str], TracedSpan]
) -> Iterator[str]:
    if spans:
        yield "later decisions"
    for span in spans:
        line = (
            f"{_clean(span.service):<{SERVICE_CHARS}} {_clean(span.name):<{NAME_CHARS}} "
            f"{_time(span.start_ns - origin_ns, '+'):>10} {_decision(span.attributes)}"
        )
        yield " ".join([line.rstrip(), *_causes(span, spans_by_id)])


def _causes(span: TracedSpan, spans_by_id: Mapping[tuple[str, str], TracedSpan]) -> Iterator[str]:
    for link in span.links:
        cause = spans_by_id.get((link.trace_id, link.span_id))
        if cause is None:
            yield f"<- trace {link.trace_id}"
        else:
            yield f"<- {_clean(cause.service)} {_clean(cause.name)}"


def _decision(attributes: Mapping[str, AttributeValue]) -> str:
    """Return the deciding values, such as `reason=no_capacity`, without ids of records."""
    keys = sorted(
        key for key in attributes if key.startswith(SHOWN_PREFIXES) and key != "decision.id"
    )
    return " ".join(f"{key.removeprefix('decision.')}={_short(attributes[key])}" for key in keys)


def _short(value: AttributeValue) -> str:
    return f"{value:g}" if isinstance(value, float) else _clean(str(value))


def _clean(text: str) -> str:
    """Replace control characters, as spans are untrusted input to a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _time(span_ns: int, sign: str = "-") -> str:
    """Return the duration; `sign` is the sign option of a format, "+" marks positive values."""
    if abs(span_ns) < 10 * SECOND_NS:
        return f"{span_ns / 1e6:{sign}.1f} ms"
    if abs(span_ns) < 1000 * SECOND_NS:
        return f"{span_ns / SECOND_NS:{sign}.1f} s"
    return f"{span_ns / SECOND_NS / 3600:{sign}.2f} h"
