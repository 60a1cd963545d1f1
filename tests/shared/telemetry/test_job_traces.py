"""Later decisions lead back to what caused them and to the job's start."""

from __future__ import annotations

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.contracts.admission import JobAdmitted, JobRejected
from shared.contracts.attempts import JobMigrated, JobPreempted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.bookkeeping import AttemptNoted, JobEnd, JobsReleased
from shared.contracts.job_spec import JobSpec
from shared.contracts.nodes import NodeHealthNoted
from shared.contracts.placement import Allocation
from shared.ledger.decider import Fact
from shared.telemetry.job_traces import JobTraces
from shared.telemetry.spans import Spans
from shared.telemetry.trace_ids import child_of, new_traceparent
from tests.patience import PATIENCE_S

from .conftest import Sink, placed

START, OTHER = new_traceparent(), new_traceparent()


def fact(event: Event, traceparent: str = "", seq: int = 20) -> Fact:
    return Fact(event, "placement", 2, seq, 0, 1_000, "", traceparent or new_traceparent())


def preempted(by: str = "") -> JobPreempted:
    return JobPreempted(job_id="j1", tenant="vision", attempt=1, reason="outranked", by_job_id=by)


def succeeded() -> JobSucceeded:
    return JobSucceeded(job_id="j1", tenant="vision", attempt=1)


def migrated(reason: str = "slow_node") -> JobMigrated:
    return JobMigrated(
        job_id="j1",
        tenant="vision",
        attempt=1,
        reason=reason,
        from_nodes=("n1",),
        to_nodes=("n2",),
        target=(Allocation(rank=0, node_id="n2"),),
    )


def linked(span: Span) -> list[str]:
    return [f"00-{link.trace_id.hex()}-{link.span_id.hex()}-01" for link in span.links]


def test_a_preemption_links_to_the_jobs_start_and_to_that_of_the_job_it_made_room_for(
    sink: Sink,
) -> None:
    place = placed(traceparent=child_of(START))
    winner = placed("j2", traceparent=child_of(OTHER), seq=8)
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions([place, winner, fact(preempted("j2"))], [START, OTHER, START], 1, 2)
    spans.shutdown(PATIENCE_S)
    [span] = [span for span in sink.spans() if span.name == "preempt"]
    assert linked(span) == [place.traceparent, winner.traceparent]


def test_an_end_links_to_the_decision_before_it_and_to_the_start(sink: Sink) -> None:
    place, stop = placed(traceparent=child_of(START)), fact(preempted())
    spans = Spans("placement", sink.url, "p1")
    spans.record_decisions([place, stop, fact(succeeded())], [START, START, START], 1, 2)
    spans.shutdown(PATIENCE_S)
    [span] = [span for span in sink.spans() if span.name == "finish"]
    assert linked(span) == [stop.traceparent, place.traceparent]


def test_after_a_restart_the_start_is_known_from_the_state(sink: Sink) -> None:
    spans = Spans("placement", sink.url, "p1")
    spans.remember_job("j1", START)
    spans.record_decisions([fact(succeeded())], [""], 1, 2)
    spans.shutdown(PATIENCE_S)
    [span] = sink.spans()
    assert linked(span) == [START]


def test_a_move_from_a_slow_node_links_to_the_verdict(sink: Sink) -> None:
    verdict = new_traceparent()
    noted = NodeHealthNoted(node_id="n1", fault_id="f", slowdown=2.0, health=0.5)
    spans = Spans("placement", sink.url, "p1")
    facts = [placed(traceparent=child_of(START)), fact(noted), fact(migrated())]
    spans.record_decisions(facts, [START, verdict, START], 1, 2)
    spans.shutdown(PATIENCE_S)
    [span] = [span for span in sink.spans() if span.name == "migrate"]
    assert linked(span) == [verdict, facts[0].traceparent]


def test_what_belongs_to_the_start_has_no_links() -> None:
    traces = JobTraces()
    traces.remember("j1", START)
    assert traces.links(placed(traceparent=child_of(START)), START) == []


def test_an_ended_job_and_the_oldest_of_too_many_are_forgotten() -> None:
    traces = JobTraces(max_jobs=2)
    for job_id in ("a", "j1", "c"):
        traces.links(placed(job_id, traceparent=child_of(START)), START)
    assert traces.links(fact(succeeded()), "")
    assert traces.links(fact(succeeded()), "") == []
    lost = JobSucceeded(job_id="a", tenant="vision", attempt=1)
    assert traces.links(fact(lost), "") == []


def test_a_rejected_job_and_an_ended_job_are_removed() -> None:
    traces = JobTraces()
    admitted = JobAdmitted(job_id="j1", tenant="vision", submitted_at=1, spec=JobSpec(name="a"))
    noted = AttemptNoted(job_id="j1", attempt=1, not_before=5)
    traces.links(fact(admitted), "")
    assert traces.links(fact(noted), "")
    traces.links(fact(JobRejected(job_id="j1", tenant="vision", reason="too_large")), "")
    assert traces.links(fact(noted), "") == []
    traces.links(fact(admitted), "")
    traces.links(fact(JobsReleased(ends=(JobEnd(job_id="j1", outcome="failed"),))), "")
    assert traces.links(fact(noted), "") == []
