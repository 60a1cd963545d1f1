"""Bad requests, unknown tenants and keys used twice: each answer names the reason."""

from __future__ import annotations

import pytest

from tests.e2e.bad_input.messages import INGRESS, submit_job
from tests.e2e.stand import Stand, a_command, a_spec, a_submission, eventually

pytestmark = pytest.mark.stack

REST = {
    "malformed": (b"{not json", 400, "malformed", ""),
    "no_object": (b"[]", 400, "malformed", ""),
    "negative": ({"spec": a_spec(gang={"workers": -3})}, 422, "invalid", "spec.gang.workers -3"),
    "absurd": (
        {"spec": a_spec(simulated={"duration_s": 1e300})},
        422,
        "invalid",
        "spec.simulated.duration_s None",
    ),
    "unknown_field": ({"spec": a_spec(), "colour": 1}, 422, "invalid", "colour None"),
    "another_tenant": ({"tenant": "bob", "spec": a_spec()}, 403, "tenant_mismatch", "tenant bob"),
    "unknown_pool": ({"pool": "moon", "spec": a_spec()}, 422, "invalid", "pool moon"),
}


@pytest.mark.parametrize("case", REST)
def test_a_bad_request_is_refused_with_field_value_and_rule(stand: Stand, case: str) -> None:
    body, status, reason, named = REST[case]
    answer_status, problem = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert (answer_status, problem["reason"]) == (status, reason)
    for fault in problem.get("errors", ()):
        assert f"{fault['field']} {fault.get('value')}".startswith(named)
        assert fault["rule"]
    assert bool(problem.get("errors")) == bool(named)
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"


def test_an_unknown_tenant_is_refused_by_the_gateway_and_by_admission(stand: Stand) -> None:
    body = {"tenant": "nobody", "spec": a_spec()}
    assert stand.call("POST", "/v1/jobs", body)[1]["reason"] == "unknown_tenant"
    command = submit_job().model_copy(update={"tenant": "nobody"})
    stand.publish("commands", stand.lane, a_command(command, id="from-nobody"))
    answer = stand.answer("from-nobody")
    assert (answer["accepted"], answer["reason"]) == (False, "unknown_tenant")
    assert "nobody" in answer["detail"]
    assert stand.ended(command.job_id)["phase"] == "rejected"


def test_a_retired_tenant_submits_no_more(stand: Stand) -> None:
    status, ticket = stand.call("DELETE", "/v1/tenants/gone")
    assert status == 202
    assert stand.answer(ticket["command_id"])["accepted"]
    value = a_submission("too-late")
    (offset,) = stand.publish("submissions.gone", 0, value)
    stand.sent["submissions.gone", 0, offset] = value
    row = eventually(lambda: stand.dead("submissions.gone", 0, offset))
    assert "not registered or retired" in row["reason"]
    status, problem = stand.call("POST", "/v1/jobs", {"spec": a_spec()}, caller="gone")
    assert (status, problem["reason"]) == (403, "unknown_tenant")


def test_a_submission_sent_twice_is_one_job(stand: Stand) -> None:
    first, second = (stand.submit(key="twice") for _ in range(2))
    assert first["job_id"] == second["job_id"]
    answers = [stand.answer(ticket["command_id"]) for ticket in (first, second)]
    assert [answer["accepted"] for answer in answers] == [True, True]
    assert [answer["duplicate"] for answer in answers] == [False, True]
    stand.publish(INGRESS, 0, *(a_submission("twice") for _ in range(3)))
    assert stand.ended(first["job_id"])["attempt"] == 1


def test_a_key_of_another_body_is_refused_and_its_job_runs_on(stand: Stand) -> None:
    first = stand.submit(key="mine", simulated={"duration_s": 1.0})
    second = stand.submit(key="mine", name="another")
    answer = stand.answer(second["command_id"])
    assert (answer["accepted"], answer["reason"]) == (False, "idempotency_conflict")
    assert stand.ended(first["job_id"])["phase"] == "succeeded"
    third = stand.submit(key="mine", name="another")
    assert stand.answer(third["command_id"])["reason"] == "idempotency_conflict"
    assert stand.ended(first["job_id"])["name"] == "job"
