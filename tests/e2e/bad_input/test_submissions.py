"""Submissions that cannot be read: each is a dead letter, and the job behind it runs."""

from __future__ import annotations

import hashlib

import pytest

from tests.e2e.bad_input.messages import INGRESS
from tests.e2e.stand import Json, Stand, a_spec, a_submission, an_event

pytestmark = pytest.mark.stack

SUBMISSIONS = {
    "noise": (b"\xff\xfe\x00 no json", "not JSON"),
    "nothing": (b"", "not JSON"),
    "half_a_record": (a_submission("half")[:-20], "not JSON"),
    "a_list": (b"[1, 2]", "Expected `object`"),
    "deep": (b"[" * 20_000, "got `array`"),
    "old_envelope": (an_event({}, specversion="0.3"), "specversion is not 1.0"),
    "no_time": (an_event({}, time="yesterday"), "time is not RFC 3339"),
    "unknown_type": (an_event({"job_id": "x"}, "job.destroy.v1"), "must be job.submit.v1 or"),
    "future_version": (an_event({"spec": a_spec()}, "job.submit.v9"), "must be job.submit.v1 or"),
    "no_object": (an_event([1]), "expected a JSON object"),
    "no_name": (an_event({"spec": {}}), "spec.name: Field required"),
    "unknown_field": (a_submission("u", gpuz=8), "spec.gpuz: unknown field"),
    "negative": (a_submission("n", gang={"workers": -1}), "spec.gang.workers = -1: "),
    "absurd": (a_submission("a", gang={"workers": 10**30}), "spec.gang.workers"),
    "infinite": (
        a_submission("i", gang={"gpus_per_worker": 0}).replace(b": 0}", b": 1e400}"),
        "Number out of range",
    ),
    "split_gpus": (a_submission("s", gang={"gpus_per_worker": 1.5}), "gpus_per_worker = 1.5: "),
    "a_nul": (a_submission("z", name="a\x00b"), "NUL characters are not allowed"),
    "a_password": (a_submission("p", env={"DB_PASSWORD": "hunter2"}), "use secret://name"),
    "another_tenant": (
        an_event({"tenant": "bob", "spec": a_spec()}),
        "tenant = 'bob': must be the sender's own tenant",
    ),
    "another_tenants_envelope": (
        an_event({"spec": a_spec()}, tenant="bob"),
        "tenant = 'bob': must be the sender's own tenant",
    ),
    "another_pool": (an_event({"pool": "moon", "spec": a_spec()}), "pool = 'moon': no such pool"),
    "too_long": (a_submission("l", name="x" * 70_000), "at most 65536 are read"),
    "cancel_of_nothing": (an_event({}, "job.cancel.v1"), "job_id: Field required"),
}


@pytest.fixture(scope="module")
def published(stand: Stand) -> dict[str, Json]:
    """Dead letters of all cases; each is published with a good job right behind it."""
    return stand.bad(INGRESS, 1, {case: value for case, (value, _) in SUBMISSIONS.items()})


@pytest.mark.parametrize("case", SUBMISSIONS)
def test_a_submission_that_cannot_be_read_is_a_dead_letter_with_its_reason(
    published: dict[str, Json], case: str
) -> None:
    value, reason = SUBMISSIONS[case]
    row = published[case]
    assert reason in row["reason"]
    assert "hunter2" not in row["reason"]
    assert row["tenant"] == "ada"
    assert row["sha256"] == hashlib.sha256(value).hexdigest()
