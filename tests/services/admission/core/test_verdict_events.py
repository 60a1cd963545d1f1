from __future__ import annotations

from services.admission.core.demand import demand_of
from services.admission.core.state import PendingJob
from services.admission.core.verdict import Admit, Defer, Reject
from services.admission.core.verdict_events import verdict_decision, verdict_event
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.job_spec import JobSpec

SPEC = JobSpec(name="train")


def job() -> PendingJob:
    return PendingJob(
        "a.3", "acme", SPEC, demand_of(SPEC), "ab", 7, 3, cause="c1", traceparent="00-aa-bb-01"
    )


def test_each_verdict_has_its_event() -> None:
    assert verdict_event(job(), Admit(borrowed=True)) == JobAdmitted(
        job_id="a.3",
        tenant="acme",
        submitted_at=7,
        array_index=3,
        spec=SPEC,
        borrowed=True,
        digest="ab",
    )
    assert verdict_event(job(), Reject("infeasible", "why")) == JobRejected(
        job_id="a.3",
        tenant="acme",
        name="train",
        reason="infeasible",
        detail="why",
        array_index=3,
        digest="ab",
    )


def test_only_the_first_deferral_carries_the_spec() -> None:
    waiting = job()
    first = verdict_event(waiting, Defer("quota", {"ahead": 1}))
    waiting.reason = "quota"
    second = verdict_event(waiting, Defer("no_nodes", {"nodes": 0}))
    assert isinstance(first, JobDeferred)
    assert isinstance(second, JobDeferred)
    assert (first.spec, first.digest) == (SPEC, "ab")
    assert (second.spec, second.digest) == (None, "")


def test_the_decision_has_the_cause_and_the_trace_of_the_submission() -> None:
    decision = verdict_decision(job(), Admit(borrowed=False))
    assert (decision.cause, decision.traceparent) == ("c1", "00-aa-bb-01")
