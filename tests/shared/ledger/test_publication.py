"""An event that leaves the installation has no private field."""

from __future__ import annotations

from shared.ledger.cloudevents import decode
from shared.ledger.publication import encode_public


def test_a_preemption_does_not_name_the_job_of_another_tenant() -> None:
    event = decode(
        encode_public(
            id="placement/0/7/0",
            ledger="placement",
            kind="job.preempted.v1",
            data=b'{"job_id":"mine","by_job_id":"foreign"}',
            at_ms=1_700_000_000_000,
            subject="mine",
            traceparent="",
            tenant="ada",
            pool="gpu",
            link="https://berth.example.org/v1/jobs/mine",
        )
    )
    assert (event.source, event.type) == ("/berth/placement/gpu", "job.preempted.v1")
    assert event.body == b'{"job_id":"mine"}'
    assert event.link == "https://berth.example.org/v1/jobs/mine"
