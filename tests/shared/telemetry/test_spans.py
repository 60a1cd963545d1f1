"""Spans go over a real socket to a real OTLP endpoint, and come out as they were meant."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from infra.security import certificates
from shared.contracts.ranking import QueueChanged, QueueEntry, QueueRanked, Ranked, Running
from shared.contracts.reranking import QueueReranked
from shared.ledger.decider import Fact
from shared.telemetry import span_sink
from shared.telemetry.metrics import Metrics
from shared.telemetry.ring import OtlpRing
from shared.telemetry.spans import Spans
from shared.telemetry.trace_ids import child_of, new_traceparent, parse
from shared.telemetry.waterfall import waterfall
from tests.patience import PATIENCE_S

from .conftest import Sink, held, placed

STARTED_NS, ENDED_NS = 1_700_000_000_000_000_000, 1_700_000_000_040_000_000


def attributes(span: Span) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, str(pair.value.WhichOneof("value")))
        for pair in span.attributes
    }


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_decision_is_a_child_of_its_cause(sink: Sink) -> None:
    cause = new_traceparent()
    fact = placed(traceparent=child_of(cause))
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions([fact], [cause], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [span] = sink.spans()
    own, parent = parse(fact.traceparent), parse(cause)
    assert own is not None and parent is not None
    assert span.trace_id.hex() == own.trace_id == parent.trace_id
    assert span.span_id.hex() == own.span_id
    assert span.parent_span_id.hex() == parent.span_id
    assert (span.name, span.kind, len(span.links)) == ("place", Span.SPAN_KIND_CONSUMER, 0)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (STARTED_NS, ENDED_NS)


def test_a_span_says_what_was_decided_and_why(sink: Sink) -> None:
    fact = placed(traceparent=new_traceparent())
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions([fact], [""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [span] = sink.spans()
    assert attributes(span) == {
        "allocation.id": "2/7/0",
        "cause.id": "admission/2/4/0",
        "decision.id": "placement/2/7",
        "decision.nodes": "n1",
        "decision.policy": "best_fit",
        "decision.score": 0.5,
        "decision.waited_ms": 40,
        "event.id": "placement/2/7/0",
        "event.type": "job.placed.v1",
        "job.id": "j1",
        "messaging.destination.name": "placement",
        "messaging.destination.partition.id": "2",
        "messaging.operation.name": "decide",
        "messaging.operation.type": "process",
        "messaging.system": "kafka",
        "tenant.id": "vision",
    }
    [resource] = sink.requests()[0].resource_spans
    fields = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert fields == {
        "service.name": "placement",
        "service.namespace": "berth",
        "service.instance.id": "p1",
    }


def test_a_later_decision_is_a_root_with_a_link_to_its_cause(sink: Sink) -> None:
    cause, own = new_traceparent(), new_traceparent()
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions([held(traceparent=own)], [cause], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [span] = sink.spans()
    [link] = span.links
    assert span.parent_span_id == b""
    assert f"00-{link.trace_id.hex()}-{link.span_id.hex()}-01" == cause


def test_a_root_without_a_cause_has_no_link_and_a_fact_without_a_trace_no_span(sink: Sink) -> None:
    facts = [held(traceparent=new_traceparent()), held(traceparent="")]
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions(facts, ["garbage", ""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [span] = sink.spans()
    assert len(span.links) == 0


def test_a_malformed_own_id_is_counted_and_does_no_harm(sink: Sink) -> None:
    metrics = Metrics("placement")
    facts = [held(traceparent="00-zz"), held(traceparent=new_traceparent())]
    spans = Spans("placement", sink.url, "p1", metrics)
    spans.record_decisions(facts, ["", ""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    assert len(sink.spans()) == 1
    assert value(metrics, "berth_spans_dropped_total", reason="malformed_traceparent") == 1
    assert value(metrics, "berth_spans_exported_total") == 1


def test_a_request_is_a_span_and_its_traceparent_is_passed_on(sink: Sink) -> None:
    caller = new_traceparent()
    spans = Spans("gateway", sink.url, "g1")
    with spans.span("submit", caller, {"tenant.id": "vision"}) as span:
        span.set("job.id", "j1")
        span.set("http.response.status_code", 202)
    spans.shutdown(PATIENCE_S)
    [sent] = sink.spans()
    assert sent.span_id.hex() == span.traceparent[36:52]
    assert sent.parent_span_id.hex() == caller[36:52]
    assert sent.kind == Span.SPAN_KIND_SERVER
    assert attributes(sent) == {
        "tenant.id": "vision",
        "job.id": "j1",
        "http.response.status_code": 202,
    }


def test_a_request_that_raises_is_a_failed_span_and_still_raises(sink: Sink) -> None:
    spans = Spans("gateway", sink.url, "g1")
    with pytest.raises(KeyError), spans.span("submit"):
        raise KeyError("pool")
    spans.shutdown(PATIENCE_S)
    [sent] = sink.spans()
    assert sent.status.code == Status.STATUS_CODE_ERROR
    assert attributes(sent) == {"error.type": "KeyError"}


def test_without_an_address_nothing_happens_but_ids_are_real() -> None:
    spans = Spans("gateway", "", "g1")
    spans.record_decisions([placed(traceparent=new_traceparent())], [""], 1, 2)
    with spans.span("submit") as span:
        assert parse(span.traceparent) is not None
    spans.shutdown(PATIENCE_S)


def test_every_value_type_and_size_survives_the_wire(sink: Sink) -> None:
    fields = {
        "decision.reason": "ü" * 500,
        "decision.score": -1.5,
        "decision.waited_ms": -(2**40),
        "http.response.status_code": 2**33,
        "error.type": "",
        "job.id": "x" * 115,
        "node.id": "a\ud800b",
    }
    spans = Spans("gateway", sink.url, "g1")
    with spans.span("submit", "", fields):  # type: ignore[arg-type]
        pass
    spans.shutdown(PATIENCE_S)
    assert attributes(sink.spans()[0]) == fields | {"node.id": "a?b"}


def test_a_busy_endpoint_is_asked_again(sink: Sink) -> None:
    sink.answers = [503, 503]
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    spans.record_decisions([placed(traceparent=new_traceparent())], [""], STARTED_NS, ENDED_NS)
    until = time.monotonic() + PATIENCE_S
    while not sink.bodies and time.monotonic() < until:
        time.sleep(0.05)
    spans.shutdown(PATIENCE_S)
    assert len(sink.spans()) == 1
    assert value(metrics, "berth_spans_exported_total") == 1


def test_spans_are_exported_to_an_endpoint_of_the_configured_authority(
    sink: Sink, tmp_path: Path
) -> None:
    certificates.make(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "api.pem")
    sink.socket = tls.wrap_socket(sink.socket, server_side=True)
    url, metrics = sink.url.replace("http:", "https:"), Metrics("placement")
    for ca in (None, tmp_path / "ca.crt"):
        spans = Spans("placement", url, "p1", metrics, ca=ca)
        spans.record_decisions([placed(traceparent=new_traceparent())], [""], STARTED_NS, ENDED_NS)
        spans.shutdown(PATIENCE_S)
    assert len(sink.spans()) == 1
    assert value(metrics, "berth_spans_dropped_total", reason="export_failed") == 1
    for bad in (tmp_path / "absent", tmp_path / "api.key"):
        with pytest.raises(ValueError, match=bad.name):
            Spans("placement", url, "p1", metrics, ca=bad)


def test_a_refusal_is_final_and_counted(sink: Sink) -> None:
    sink.answers = [400]
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    spans.record_decisions([placed(traceparent=new_traceparent())], [""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    assert sink.bodies == []
    assert value(metrics, "berth_spans_dropped_total", reason="export_failed") == 1


def test_shutdown_ends_in_time_though_the_endpoint_hangs(sink: Sink) -> None:
    sink.delay_s = 60.0
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    facts = [placed(traceparent=new_traceparent(), seq=seq) for seq in range(1500)]
    spans.record_decisions(facts, [""] * 1500, STARTED_NS, ENDED_NS)
    started = time.monotonic()
    spans.shutdown(timeout_s=0.3)
    assert time.monotonic() - started < sink.delay_s
    assert value(metrics, "berth_spans_dropped_total", reason="export_failed") == 1500


def test_a_full_queue_refuses_and_every_span_is_accounted_for(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_sink, "QUEUE_SPANS", 600)
    sink.delay_s = 0.3
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    facts = [placed(traceparent=new_traceparent(), seq=seq) for seq in range(2000)]
    spans.record_decisions(facts, [""] * 2000, STARTED_NS, ENDED_NS)
    spans.shutdown(timeout_s=PATIENCE_S)
    sent = value(metrics, "berth_spans_exported_total") or 0
    dropped = value(metrics, "berth_spans_dropped_total", reason="queue_full") or 0
    assert len(sink.spans()) == sent >= 600
    assert sent + dropped == 2000


def test_after_shutdown_spans_are_counted_as_lost(sink: Sink) -> None:
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    spans.shutdown(PATIENCE_S)
    spans.record_decisions([placed(traceparent=new_traceparent())], [""], STARTED_NS, ENDED_NS)
    assert value(metrics, "berth_spans_dropped_total", reason="shut_down") == 1


def test_a_batch_that_cannot_be_encoded_is_counted_and_the_next_one_goes(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics)
    with spans.span("submit", "", {"job.id": object()}):  # type: ignore[dict-item]
        pass
    until = time.monotonic() + PATIENCE_S
    while not value(metrics, "berth_spans_dropped_total", reason="export_failed"):
        assert time.monotonic() < until
        time.sleep(0.02)
    spans.record_decisions([placed(traceparent=new_traceparent())], [""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    assert [span.name for span in sink.spans()] == ["place"]
    assert "unsupported attribute type: object" in caplog.text


def test_what_a_service_sends_the_gateway_keeps_and_draws(sink: Sink) -> None:
    submit = new_traceparent()
    gateway, placement = Spans("gateway", sink.url, "g1"), Spans("placement", sink.url, "p1")
    with gateway.span("submit", "", {"job.id": "j1"}) as span:
        submit = span.traceparent
    now_ns = time.time_ns()
    place = placed(traceparent=child_of(submit))
    placement.record_decisions([place], [submit], now_ns, now_ns + 1_000_000)
    gateway.shutdown(PATIENCE_S)
    placement.shutdown(PATIENCE_S)
    ring = OtlpRing(100)
    assert sum(ring.ingest(body, "application/x-protobuf") for body in sink.bodies) == 2
    header, first, second = waterfall(ring.by_job("j1"))
    assert submit[3:35] in header
    assert first.split()[:2] == ["gateway", "submit"]
    assert second.startswith("placement    place")
    assert "policy=best_fit score=0.5" in second


def priority(event: QueueChanged | QueueRanked | QueueReranked, seq: int) -> Fact:
    return Fact(event, "priority", 1, seq, 0, 1_000, "", new_traceparent())


def entry(job_id: str, traceparent: str) -> QueueEntry:
    return QueueEntry(
        job_id=job_id, tenant="vision", submitted_at=1, gpus=1, traceparent=traceparent
    )


def test_each_job_of_an_order_has_a_rank_span_once_in_its_own_trace(sink: Sink) -> None:
    trace = new_traceparent()
    ranked = QueueRanked(base_policy="fcfs", ranked=(Ranked(job_id="j1", score=3.5),), waiting=7)
    facts = [
        priority(QueueChanged(entered=(entry("j1", trace),)), 1),
        priority(ranked, 2),
        priority(ranked, 3),
    ]
    spans = Spans("priority", sink.url, "r1")
    spans.record_decisions(facts, [""] * 3, STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [rank] = [span for span in sink.spans() if span.name == "rank"]
    fields = attributes(rank)
    assert rank.parent_span_id.hex() == trace[36:52]
    assert rank.trace_id.hex() == trace[3:35]
    assert (fields["job.id"], fields["decision.score"], fields["decision.policy"]) == (
        "j1",
        3.5,
        "fcfs",
    )
    assert (fields["decision.position"], fields["decision.waiting"]) == (1, 7)


def test_a_rank_says_which_model_decided(sink: Sink) -> None:
    ranked = QueueRanked(
        base_policy="fcfs",
        learned="berth",
        model_sha256="ab" * 32,
        ranked=(Ranked(job_id="j0", score=4), Ranked(job_id="j1", score=3.5)),
    )
    spans = Spans("priority", sink.url, "r1")
    spans.remember_waiting([entry("j1", new_traceparent())])
    spans.record_decisions([priority(ranked, 1)], [""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [rank] = [span for span in sink.spans() if span.name == "rank"]
    fields = attributes(rank)
    assert (fields["decision.learned"], fields["decision.model_sha256"]) == ("berth", "ab" * 32)
    assert fields["decision.position"] == 2


def test_a_job_that_comes_by_changes_has_the_policy_of_the_whole_order(sink: Sink) -> None:
    changes = QueueReranked(
        number=1, ranked=(Ranked(job_id="j1", score=3.5),), places=(4,), waiting=7
    )
    spans = Spans("priority", sink.url, "r1")
    spans.remember_waiting([entry("j1", new_traceparent())])
    spans.remember_policy("fcfs", "berth", "ab" * 32)
    spans.record_decisions([priority(changes, 1)], [""], STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [rank] = [span for span in sink.spans() if span.name == "rank"]
    fields = attributes(rank)
    assert (fields["decision.policy"], fields["decision.learned"]) == ("fcfs", "berth")
    assert (fields["decision.position"], fields["decision.waiting"]) == (5, 7)


def test_a_job_that_runs_before_it_was_ranked_says_so(sink: Sink) -> None:
    running = (Running(job_id="j1", tenant="vision", gpus=1, since=2),)
    facts = [
        priority(QueueChanged(entered=(entry("j1", new_traceparent()),)), 1),
        priority(QueueChanged(running=running), 2),
    ]
    spans = Spans("priority", sink.url, "r1")
    spans.record_decisions(facts, [""] * 2, STARTED_NS, ENDED_NS)
    spans.shutdown(PATIENCE_S)
    [rank] = [span for span in sink.spans() if span.name == "rank"]
    assert attributes(rank)["decision.reason"] == "not_ranked"
