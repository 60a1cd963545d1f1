"""Sampling keeps or drops whole jobs, equally in every process, and always keeps errors."""

from __future__ import annotations

import pytest

from shared.contracts.attempts import JobPreempted
from shared.telemetry.metrics import Metrics
from shared.telemetry.names import AttributeValue, SpanName
from shared.telemetry.sampling import hash_share, is_kept, missed_objective, sampling_key
from shared.telemetry.spans import Spans
from shared.telemetry.trace_ids import child_of, new_traceparent
from tests.patience import PATIENCE_S

from .conftest import Sink, held, placed
from .test_job_traces import fact


def kept(share: float, name: SpanName = "place", **fields: AttributeValue) -> bool:
    attributes = {key.replace("__", "."): value for key, value in fields.items()}
    return is_kept(share, name, new_traceparent(), attributes)


def test_about_that_share_of_the_jobs_is_kept() -> None:
    kept_jobs = sum(kept(0.05, job__id=f"job-{n}") for n in range(20_000))
    assert 850 <= kept_jobs <= 1150


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.999])
def test_all_spans_of_a_job_share_its_fate_whatever_service_draws(share: float) -> None:
    names: tuple[SpanName, ...] = ("submit", "admit", "rank", "place", "start", "finish")
    for n in range(300):
        assert len({kept(share, name, job__id=f"j{n}") for name in names}) == 1


def test_an_array_is_kept_or_dropped_as_one() -> None:
    assert (
        len({kept(0.5, job__id=f"array.{n}") for n in range(100)} | {kept(0.5, job__id="array")})
        == 1
    )


def test_the_draw_is_the_same_in_every_version() -> None:
    assert hash_share("job-1") == pytest.approx(0.00741903, abs=1e-7)
    assert sampling_key("00-" + "a" * 32 + "-" + "b" * 16 + "-01", {}) == "a" * 32


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("preempt", {}),
        ("reject_input", {}),
        ("fault", {}),
        ("submit", {"error__type": "Refusal"}),
        ("finish", {"event__type": "job.failed.v1"}),
        ("place", {"decision__waited_ms": 600_001}),
        ("llm", {"decision__waited_ms": 30_001}),
    ],
)
def test_what_somebody_will_ask_for_is_always_kept(
    name: SpanName, fields: dict[str, AttributeValue]
) -> None:
    assert kept(0.0, name, job__id="j", **fields)


def test_an_objective_that_was_met_is_not_missed() -> None:
    assert not missed_objective("place", {"decision.waited_ms": 600_000})
    assert not missed_objective("finish", {"decision.waited_ms": 10**9})
    assert not kept(0.0, "finish", job__id="j", event__type="job.succeeded.v1")


def test_unsampled_spans_are_counted_and_not_sent(sink: Sink) -> None:
    metrics = Metrics("placement")
    spans = Spans("placement", sink.url, "p1", metrics, share=0.0)
    stop = JobPreempted(job_id="j1", tenant="vision", attempt=1, reason="outranked")
    facts = [placed(traceparent=child_of(new_traceparent())), held(traceparent=new_traceparent())]
    spans.record_decisions([*facts, fact(stop)], ["", "", ""], 1, 2)
    spans.shutdown(PATIENCE_S)
    assert [span.name for span in sink.spans()] == ["preempt"]
    sampled_out = metrics.registry.get_sample_value("berth_spans_unsampled_total")
    assert sampled_out == 2
