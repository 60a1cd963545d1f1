"""CPU per span of Berth's own OTLP exporter and of the OpenTelemetry SDK's, over the same spans.

Three comparisons in interleaved rounds: the encoder alone; the SDK's batch processor with either
exporter, up to the acknowledgement of an endpoint; and reading a `traceparent`. The endpoint is a
process of its own; what is counted is the CPU of this process with all its threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from benchmarks.parts.command import Json, serve
from benchmarks.parts.otlp_sink import otlp_sink
from shared.contracts.placement import Allocation, JobPlaced
from shared.ledger.decider import Fact
from shared.process.progress import ReportLine
from shared.telemetry.event_attributes import attributes_of
from shared.telemetry.otlp_encode import Encoder
from shared.telemetry.otlp_export import OtlpExporter
from shared.telemetry.span_sink import BATCH_SPANS, EXPORT_EVERY_MS, QUEUE_SPANS
from shared.telemetry.trace_ids import parse

NAMES = {
    "service.name": "placement",
    "service.namespace": "berth",
    "service.instance.id": "placement-1",
}
RESOURCE = Resource(NAMES)
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
PROPAGATOR = TraceContextTextMapPropagator()
NO_METERS = NoOpMeterProvider()


@dataclass(frozen=True, slots=True)
class TelemetryBenchOptions:
    """The defaults are those of decision 0018."""

    spans: int = 5_000
    rounds: int = 15


async def run(options: TelemetryBenchOptions, report_line: ReportLine) -> Json:
    """Return median CPU microseconds per span, and the ratio of SDK to own with its quartiles."""
    spans = [make_span(number) for number in range(options.spans)]
    traceparents = [f"00-{1 + n:032x}-{1 + n:016x}-01" for n in range(options.spans)]
    encoder = Encoder(NAMES)
    with otlp_sink() as url:
        pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "encode": (
                lambda: [encoder.encode(batch) for batch in batches(spans)],
                lambda: [encode_spans(batch).SerializeToString() for batch in batches(spans)],
            ),
            "export": (
                lambda: export_all(OtlpExporter(url, encoder, lambda count, sent: None), spans),
                lambda: export_all(OTLPSpanExporter(f"{url}/v1/traces"), spans),
            ),
            "parse_traceparent": (
                lambda: [parse(text) for text in traceparents],
                lambda: [parse_by_sdk(text) for text in traceparents],
            ),
        }
        comparisons: Json = {}
        for name, (own, sdk) in pairs.items():
            report_line(f"{name}: {options.rounds} rounds of {options.spans} spans")
            comparisons[name] = compare(own, sdk, options)
    return {
        "bench": "telemetry",
        "spans": options.spans,
        "rounds": options.rounds,
        "comparisons": comparisons,
    }


def compare(
    own: Callable[[], object], sdk: Callable[[], object], options: TelemetryBenchOptions
) -> Json:
    """Time both in turn, after one round that is not counted."""
    rounds = [
        (cpu_us(own, options.spans), cpu_us(sdk, options.spans)) for _ in range(1 + options.rounds)
    ][1:]
    ratios = [sdk_us / own_us for own_us, sdk_us in rounds]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "own_us": round(statistics.median(own_us for own_us, _ in rounds), 2),
        "sdk_us": round(statistics.median(sdk_us for _, sdk_us in rounds), 2),
        "ratio": round(ratio, 2),
        "ratio_quartiles": [round(low, 2), round(high, 2)],
        "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
    }


def cpu_us(work: Callable[[], object], spans: int) -> float:
    begin_s = time.process_time()
    work()
    return 1e6 * (time.process_time() - begin_s) / spans


def make_span(number: int) -> ReadableSpan:
    """Return the span of one placement as `SpanSink` makes it: a parent, a link, its attributes."""
    event = JobPlaced(
        job_id=f"job-{number}",
        tenant=f"tenant-{number % 20}",
        attempt=1,
        allocations=(Allocation(rank=0, node_id=f"node-{number % 64}", gpus=(0, 1)),),
        waited_ms=number,
        policy="best_fit",
        score=number / 7,
        terms={"waiting": 120.0, "objective": 3.5, "position": 4.0},
    )
    fact = Fact(event, "placement", 2, number, 0, 1_000, f"commands/2/{number}/0", "")
    return ReadableSpan(
        name="place",
        context=SpanContext(1 + number, 2 + number, False, SAMPLED),
        parent=SpanContext(1 + number, 3 + number, True, SAMPLED),
        resource=RESOURCE,
        attributes=attributes_of(fact),
        links=(Link(SpanContext(7 + number, 4 + number, True, SAMPLED)),),
        kind=SpanKind.CONSUMER,
        start_time=1_700_000_000_000_000_000 + number,
        end_time=1_700_000_000_001_000_000 + number,
    )


def batches(spans: Sequence[ReadableSpan]) -> Iterator[Sequence[ReadableSpan]]:
    for start in range(0, len(spans), BATCH_SPANS):
        yield spans[start : start + BATCH_SPANS]


def export_all(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> None:
    """Hand the spans to a batch processor and wait until it has exported them all."""
    processor = BatchSpanProcessor(
        exporter, QUEUE_SPANS, EXPORT_EVERY_MS, BATCH_SPANS, meter_provider=NO_METERS
    )
    for span in spans:
        processor.on_end(span)
    shut_down: Callable[[], None] = processor.shutdown
    shut_down()


def parse_by_sdk(traceparent: str) -> SpanContext:
    context = PROPAGATOR.extract({"traceparent": traceparent})
    return get_current_span(context).get_span_context()


if __name__ == "__main__":
    serve(run, TelemetryBenchOptions, __doc__ or "")
