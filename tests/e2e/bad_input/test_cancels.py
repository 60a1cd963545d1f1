"""Cancels that come too late, race a finish or end a whole array."""

from __future__ import annotations

import pytest

from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import CancelJob
from tests.e2e.bad_input.messages import INGRESS
from tests.e2e.stand import POOL, Stand, a_command, a_spec, a_submission

pytestmark = pytest.mark.stack


def test_a_cancel_of_an_ended_or_unknown_job_is_refused(stand: Stand) -> None:
    job_id = stand.submit()["job_id"]
    assert stand.ended(job_id)["phase"] == "succeeded"
    status, ticket = stand.call("POST", f"/v1/jobs/{job_id}/cancel", {}, caller="ada")
    assert status == 202
    assert stand.answer(ticket["command_id"])["reason"] == "already_finished"
    assert stand.call("POST", "/v1/jobs/never-was/cancel", {}, caller="ada")[0] == 404
    command = CancelJob(job_id="never-was", tenant="ada")
    stand.publish("commands", stand.lane, a_command(command, id="cancel-of-nothing"))
    assert stand.answer("cancel-of-nothing")["reason"] == "unknown_job"
    assert stand.ended(job_id)["phase"] == "succeeded"


def test_a_cancel_that_races_a_finish_has_one_outcome(stand: Stand) -> None:
    """Jobs of 0 to 2.4 s, and one of a minute, all cancelled once the first has ended."""
    keys = [f"race-{number}" for number in range(60)]
    durations_s = [*(n * 0.04 for n in range(59)), 60.0]
    ids = [derive_job_id("ada", POOL, key) for key in keys]
    stand.publish(
        INGRESS,
        2,
        *(
            a_submission(key, gang={"gpus_per_worker": 0.25}, simulated={"duration_s": duration_s})
            for key, duration_s in zip(keys, durations_s, strict=True)
        ),
    )
    assert stand.ended(ids[0])["phase"] == "succeeded"
    stand.publish(
        "commands",
        stand.lane,
        *(a_command(CancelJob(job_id=job_id, tenant="ada"), id=f"stop-{job_id}") for job_id in ids),
    )
    phases = set()
    for job_id in ids:
        phase, answer = stand.ended(job_id)["phase"], stand.answer(f"stop-{job_id}")
        phases.add(phase)
        outcomes = {"cancelled": (True, ""), "succeeded": (False, "already_finished")}
        assert (answer["accepted"], answer["reason"]) == outcomes[phase]
    assert phases == {"cancelled", "succeeded"}


def test_one_cancel_ends_a_whole_array(stand: Stand) -> None:
    """Of 300 jobs on 32 GPUs eight run and the rest wait; none is forgotten or starts again."""
    body = {
        "spec": a_spec(gang={"gpus_per_worker": 4}, simulated={"duration_s": 3600}),
        "array_size": 300,
    }
    status, array = stand.call("POST", "/v1/jobs", body, caller="ada")
    assert status == 202
    stand.until(array["job_ids"][0], "running")
    _, ticket = stand.call("DELETE", f"/v1/jobs/{array['job_id']}", caller="ada")
    answer = stand.answer(ticket["command_id"])
    assert (answer["accepted"], answer["of"]) == (True, array["job_id"])
    assert len(stand.rows(array["job_id"], "cancelled")) == 300
    _, ticket = stand.call("DELETE", f"/v1/jobs/{array['job_id']}", caller="ada")
    assert stand.answer(ticket["command_id"])["reason"] == "already_finished"
