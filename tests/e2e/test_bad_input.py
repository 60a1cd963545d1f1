"""Whatever comes in: a clear answer, nothing lost, nobody delayed, `verify` green at the end."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.main import app
from shared.contracts.access import RegisterTenant
from shared.contracts.identity import derive_job_id
from shared.contracts.jobs import CancelJob, JobSpec, RejectSubmission, SubmitJob
from shared.contracts.reports import ExecutorReported, Heartbeats, WorkerExited
from tests.e2e.stand import POOL, Json, Stand, a_command, a_spec, a_wish, an_event, eventually

pytestmark = pytest.mark.stack
MINE = "submissions.ada"
YEARS_OFF = ("1970-01-01T00:00:01Z", "9999-12-31T23:59:59Z")


@pytest.fixture(scope="module")
def stand(shared_stand: Stand) -> Stand:
    shared_stand.pids_at_start = shared_stand.pids()
    return shared_stand


SUBMISSIONS = {
    "noise": (b"\xff\xfe\x00 no json", "not JSON"),
    "nothing": (b"", "not JSON"),
    "half_a_record": (a_wish("half")[:-20], "not JSON"),
    "a_list": (b"[1, 2]", "Expected `object`"),
    "deep": (b"[" * 20_000, "got `array`"),
    "old_envelope": (an_event({}, specversion="0.3"), "specversion is not 1.0"),
    "no_time": (an_event({}, time="yesterday"), "time is not RFC 3339"),
    "unknown_type": (an_event({"job_id": "x"}, "job.destroy.v1"), "must be job.submit.v1 or"),
    "future_version": (an_event({"spec": a_spec()}, "job.submit.v9"), "must be job.submit.v1 or"),
    "no_object": (an_event([1]), "expected a JSON object"),
    "no_name": (an_event({"spec": {}}), "spec.name: Field required"),
    "unknown_field": (a_wish("u", gpuz=8), "spec.gpuz: unknown field"),
    "negative": (a_wish("n", gang={"workers": -1}), "spec.gang.workers = -1: "),
    "absurd": (a_wish("a", gang={"workers": 10**30}), "spec.gang.workers"),
    "infinite": (
        a_wish("i", gang={"gpus_per_worker": 0}).replace(b": 0}", b": 1e400}"),
        "Number out of range",
    ),
    "split_gpus": (a_wish("s", gang={"gpus_per_worker": 1.5}), "gpus_per_worker = 1.5: "),
    "a_nul": (a_wish("z", name="a\x00b"), "NUL characters are not allowed"),
    "a_password": (a_wish("p", env={"DB_PASSWORD": "hunter2"}), "use secret://name"),
    "another_tenant": (
        an_event({"tenant": "bob", "spec": a_spec()}),
        "tenant = 'bob': must be the sender's own tenant",
    ),
    "another_tenants_envelope": (
        an_event({"spec": a_spec()}, tenant="bob"),
        "tenant = 'bob': must be the sender's own tenant",
    ),
    "another_pool": (an_event({"pool": "moon", "spec": a_spec()}), "pool = 'moon': no such pool"),
    "too_long": (a_wish("l", name="x" * 70_000), "at most 65536 are read"),
    "cancel_of_nothing": (an_event({}, "job.cancel.v1"), "job_id: Field required"),
}


@pytest.fixture(scope="module")
def published(stand: Stand) -> dict[str, Json]:
    """Dead letters of all the cases, each of them published with a good job right behind it."""
    return stand.bad(MINE, 1, {case: value for case, (value, _) in SUBMISSIONS.items()})


@pytest.mark.parametrize("case", SUBMISSIONS)
def test_what_a_tenant_publishes_and_nobody_can_read_is_dead_with_its_reason(
    published: dict[str, Json], case: str
) -> None:
    value, reason = SUBMISSIONS[case]
    row = published[case]
    assert reason in row["reason"]
    assert "hunter2" not in row["reason"]
    assert row["tenant"] == "ada"
    assert row["sha256"] == hashlib.sha256(value).hexdigest()


def _submit(**spec: object) -> SubmitJob:
    known = JobSpec.model_validate(a_spec())
    return SubmitJob(
        job_id=str(uuid4()),
        tenant="ada",
        pool=POOL,
        idempotency_key="k",
        spec=known.model_copy(update=spec),
    )


def _data(**changed: object) -> Json:
    return {**json.loads(_submit().model_dump_json(exclude_none=True)), **changed}


SEEDS = {
    path.name: path.read_bytes()
    for path in (Path(__file__).parents[1] / "fuzz" / "seeds" / "cloudevent").iterdir()
}
"""Each of them ended every decider that read it, once."""

COMMANDS = {
    "noise": (b"\x80\x81\x82", "not JSON"),
    "unknown_type": (an_event({}, "job.destroy.v1"), "unknown type job.destroy.v1"),
    "future_version": (an_event(_data(), "job.submit.v9"), "unknown type job.submit.v9"),
    "negative": (an_event(_data(array_size=-1)), "array_size: "),
    "absurd": (an_event(_data(spec=a_spec(grace_s=1e300))), "spec.grace_s: "),
    "a_nul_in_the_id": (an_event(_data(), id="a\x00b"), "id: may not hold a NUL"),
    "a_nul_in_the_type": (an_event(_data(), "job\x00"), "type: may not hold a NUL"),
    "a_nul_in_the_body": (an_event(_data(idempotency_key="\x00")), "NUL"),
    "a_nul_in_the_tenant": (an_event(_data(), tenant="a\x00b"), "tenant: may not hold a NUL"),
    "an_endless_id": (an_event(_data(), id="x" * 500_000), "id: "),
    "an_endless_tenant": (an_event(_data(), tenant="x" * 500_000), "tenant: "),
    "an_absurd_place": (
        an_event(
            {
                "tenant": "ada",
                "topic": MINE,
                "partition": 0,
                "offset": 10**30,
                "reason": "x",
                "sha256": "",
            },
            RejectSubmission.TYPE,
        ),
        "offset: ",
    ),
    "a_nul_beside_noise": (SEEDS["nul-beside-bad-utf8"], "data: not JSON"),
    "a_nul_beside_infinity": (SEEDS["nul-beside-a-number-out-of-range"], "data: "),
    "deep_within": (b'{"data":' + b"[" * 9_000 + b"]" * 9_000 + b"}", "not JSON"),
    "somebody_elses": (a_command(RegisterTenant(tenant="eve", default_pool=POOL)), "is for access"),
}


@pytest.fixture(scope="module")
def in_commands(stand: Stand) -> dict[str, Json]:
    return stand.bad("commands", stand.lane, {case: value for case, (value, _) in COMMANDS.items()})


@pytest.mark.parametrize("case", COMMANDS)
def test_what_lies_in_commands_and_is_none_is_dead_with_its_reason(
    in_commands: dict[str, Json], case: str
) -> None:
    row, reason = in_commands[case], COMMANDS[case][1]
    assert reason in row["reason"]
    assert row["ledger"] == "admission"


REPORTS = {
    "noise": (b"\x00\x01", "not JSON"),
    "unknown_type": (an_event({}, "executor.reported.v9"), "unknown type executor.reported.v9"),
    "a_command": (a_command(CancelJob(job_id="x")), "unknown type job.cancel.v1"),
    "unknown_kind": (
        an_event(
            {"executor_id": "e", "reports": [{"kind": "node_exploded"}]}, ExecutorReported.TYPE
        ),
        "reports.0",
    ),
    "absurd_code": (
        an_event(
            {
                "executor_id": "e",
                "reports": [
                    {
                        "kind": "worker_exited",
                        "allocation_id": "0/1/0/0",
                        "job_id": "x",
                        "exit_code": 10**30,
                    }
                ],
            },
            ExecutorReported.TYPE,
        ),
        "exit_code",
    ),
    "negative_gpus": (
        an_event(
            {
                "executor_id": "e",
                "reports": [
                    {
                        "kind": "node_registered",
                        "node_id": "evil",
                        "incarnation": "1",
                        "backend": "virtual",
                        "gpu_type": "a100",
                        "gpus": -8,
                        "cpus": 1,
                        "mem_gib": 1,
                    }
                ],
            },
            ExecutorReported.TYPE,
        ),
        "gpus",
    ),
    "a_nul": (
        an_event(
            {
                "executor_id": "e",
                "reports": [
                    {
                        "kind": "node_registered",
                        "node_id": "evil",
                        "incarnation": "a\x00b",
                        "backend": "virtual",
                        "gpu_type": "a100",
                        "gpus": 8,
                        "cpus": 1,
                        "mem_gib": 1,
                    }
                ],
            },
            ExecutorReported.TYPE,
        ),
        "NUL",
    ),
}


@pytest.fixture(scope="module")
def in_reports(stand: Stand) -> dict[str, Json]:
    return stand.bad("reports", stand.lane, {case: value for case, (value, _) in REPORTS.items()})


@pytest.mark.parametrize("case", REPORTS)
def test_what_lies_in_reports_and_is_none_is_dead_with_its_reason(
    in_reports: dict[str, Json], case: str
) -> None:
    row, reason = in_reports[case], REPORTS[case][1]
    assert reason in row["reason"]
    assert row["ledger"] == "placement"


@pytest.mark.parametrize(
    ("topic", "ledger"), [("access.commands", "access"), ("llm.requests", "throttle")]
)
def test_every_other_input_topic_has_somebody_who_says_it(
    stand: Stand, topic: str, ledger: str
) -> None:
    values = {"noise": b"\xde\xad", "future": an_event({}, "job.submit.v9")}
    rows = stand.bad(topic, 0, values)
    assert [row["ledger"] for row in rows.values()] == [ledger, ledger]
    assert "job.submit.v9" in rows["future"]["reason"]


def test_a_report_of_a_worker_that_nobody_placed_changes_nothing(stand: Stand) -> None:
    ghost = WorkerExited(allocation_id="0/999999/0/0", job_id="ghost", exit_code=0)
    stand.publish(
        "reports", stand.lane, a_command(ExecutorReported(executor_id="e", reports=(ghost,)))
    )
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"
    assert stand.job("ghost") is None


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
def test_a_bad_request_is_answered_at_once_with_field_value_and_rule(
    stand: Stand, case: str
) -> None:
    body, status, reason, named = REST[case]
    answered, problem = stand.call("POST", "/v1/jobs", body, who="ada")
    assert (answered, problem["reason"]) == (status, reason)
    for fault in problem.get("errors", ()):
        assert f"{fault['field']} {fault.get('value')}".startswith(named)
        assert fault["rule"]
    assert bool(problem.get("errors")) == bool(named)
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"


def test_an_unknown_tenant_is_refused_at_the_door_and_behind_it(stand: Stand) -> None:
    body = {"tenant": "nobody", "spec": a_spec()}
    assert stand.call("POST", "/v1/jobs", body)[1]["reason"] == "unknown_tenant"
    wish = _submit().model_copy(update={"tenant": "nobody"})
    stand.publish("commands", stand.lane, a_command(wish, id="from-nobody"))
    answer = stand.answer("from-nobody")
    assert (answer["accepted"], answer["reason"]) == (False, "unknown_tenant")
    assert "nobody" in answer["detail"]
    assert stand.ended(wish.job_id)["phase"] == "rejected"


def test_a_tenant_that_is_retired_submits_no_more(stand: Stand) -> None:
    status, ticket = stand.call("DELETE", "/v1/tenants/gone")
    assert status == 202
    assert stand.answer(ticket["command_id"])["accepted"]
    value = a_wish("too-late")
    (offset,) = stand.publish("submissions.gone", 0, value)
    stand.sent["submissions.gone", 0, offset] = value
    row = eventually(lambda: stand.dead("submissions.gone", 0, offset))
    assert "not registered or retired" in row["reason"]
    refused = stand.call("POST", "/v1/jobs", {"spec": a_spec()}, who="gone")
    assert (refused[0], refused[1]["reason"]) == (403, "unknown_tenant")


def test_a_job_that_can_never_fit_is_rejected_with_the_numbers(stand: Stand) -> None:
    huge = stand.submit(gang={"workers": 5, "gpus_per_worker": 8})
    strange = stand.submit(gpu_types=["h900"])
    good = stand.submit()
    for ticket in (huge, strange):
        row = stand.ended(ticket["job_id"])
        assert (row["phase"], row["reason"]) == ("rejected", "infeasible")
        assert row["detail"] == stand.answer(ticket["command_id"])["detail"]
    assert "gang.workers: 5: " in stand.ended(huge["job_id"])["detail"]
    assert "could hold 4 of 8 GPUs" in stand.ended(huge["job_id"])["detail"]
    assert "h900" in stand.ended(strange["job_id"])["detail"]
    assert stand.ended(good["job_id"])["phase"] == "succeeded"


def test_the_same_wish_twice_is_one_job(stand: Stand) -> None:
    first, second = (stand.submit(key="twice") for _ in range(2))
    assert first["job_id"] == second["job_id"]
    answers = [stand.answer(ticket["command_id"]) for ticket in (first, second)]
    assert [answer["accepted"] for answer in answers] == [True, True]
    assert [answer["duplicate"] for answer in answers] == [False, True]
    stand.publish(MINE, 0, *(a_wish("twice") for _ in range(3)))
    assert stand.ended(first["job_id"])["attempt"] == 1


def test_a_key_used_again_for_another_body_is_refused_and_the_job_lives_on(stand: Stand) -> None:
    first = stand.submit(key="mine", simulated={"duration_s": 1.0})
    second = stand.submit(key="mine", name="another")
    answer = stand.answer(second["command_id"])
    assert (answer["accepted"], answer["reason"]) == (False, "idempotency_conflict")
    assert stand.ended(first["job_id"])["phase"] == "succeeded"
    third = stand.submit(key="mine", name="another")
    assert stand.answer(third["command_id"])["reason"] == "idempotency_conflict"
    assert stand.ended(first["job_id"])["name"] == "job"


def test_a_dependency_that_is_missing_is_said(stand: Stand) -> None:
    ticket = stand.submit(depends_on=["no-such-job"])
    row = stand.ended(ticket["job_id"])
    assert (row["phase"], row["reason"]) == ("rejected", "dependency_missing")
    assert "no-such-job" in row["detail"]


def test_another_tenants_job_is_as_good_as_none(stand: Stand) -> None:
    theirs = stand.submit(who="bob")["job_id"]
    row = stand.ended(stand.submit(depends_on=[theirs])["job_id"])
    assert (row["phase"], row["reason"]) == ("rejected", "dependency_missing")
    assert stand.call("POST", f"/v1/jobs/{theirs}/cancel", {}, who="ada")[0] == 404


def test_a_job_behind_one_that_fails_is_rejected_before_and_after(stand: Stand) -> None:
    bad = stand.submit(simulated={"duration_s": 1.0, "exit_code": 3})["job_id"]
    early = stand.submit(depends_on=[bad])["job_id"]
    assert stand.until(early, "deferred")["reason"] == "dependency"
    assert stand.ended(bad)["phase"] == "failed"
    late = stand.submit(depends_on=[bad])["job_id"]
    for job_id in (early, late):
        row = stand.ended(job_id)
        assert (row["phase"], row["reason"]) == ("rejected", "dependency_failed")
        assert bad in row["detail"]


def test_a_cycle_of_dependencies_ends_with_a_reason(stand: Stand) -> None:
    own, a, b = (derive_job_id("ada", POOL, key) for key in ("own", "cycle-a", "cycle-b"))
    stand.submit(key="own", depends_on=[own])
    stand.submit(key="cycle-a", depends_on=[b])
    stand.submit(key="cycle-b", depends_on=[a])
    assert stand.ended(own)["reason"] == "dependency_cycle"
    assert stand.ended(a)["reason"] == "dependency_missing"
    assert stand.ended(b)["reason"] == "dependency_failed"


def test_a_cancel_of_what_has_ended_or_never_was_is_refused(stand: Stand) -> None:
    job_id = stand.submit()["job_id"]
    assert stand.ended(job_id)["phase"] == "succeeded"
    status, ticket = stand.call("POST", f"/v1/jobs/{job_id}/cancel", {}, who="ada")
    assert status == 202
    assert stand.answer(ticket["command_id"])["reason"] == "already_finished"
    assert stand.call("POST", "/v1/jobs/never-was/cancel", {}, who="ada")[0] == 404
    wish = CancelJob(job_id="never-was", tenant="ada")
    stand.publish("commands", stand.lane, a_command(wish, id="cancel-of-nothing"))
    assert stand.answer("cancel-of-nothing")["reason"] == "unknown_job"
    assert stand.ended(job_id)["phase"] == "succeeded"


def test_a_cancel_that_races_a_finish_has_one_winner(stand: Stand) -> None:
    """Jobs of 0 to 2.4 s, and one of a minute, all cancelled once the first has ended."""
    keys = [f"race-{number}" for number in range(60)]
    takes_s = [*(n * 0.04 for n in range(59)), 60.0]
    ids = [derive_job_id("ada", POOL, key) for key in keys]
    stand.publish(
        MINE,
        2,
        *(
            a_wish(key, gang={"gpus_per_worker": 0.25}, simulated={"duration_s": duration_s})
            for key, duration_s in zip(keys, takes_s, strict=True)
        ),
    )
    assert stand.ended(ids[0])["phase"] == "succeeded"
    stand.publish(
        "commands",
        stand.lane,
        *(a_command(CancelJob(job_id=job_id, tenant="ada"), id=f"stop-{job_id}") for job_id in ids),
    )
    found = set()
    for job_id in ids:
        phase, answer = stand.ended(job_id)["phase"], stand.answer(f"stop-{job_id}")
        found.add(phase)
        known = {"cancelled": (True, ""), "succeeded": (False, "already_finished")}
        assert (answer["accepted"], answer["reason"]) == known[phase]
    assert found == {"cancelled", "succeeded"}


def test_one_cancel_ends_a_whole_array(stand: Stand) -> None:
    """Of 300 jobs on 32 GPUs eight run, the rest wait; none of them is forgotten or starts anew."""
    body = {
        "spec": a_spec(gang={"gpus_per_worker": 4}, simulated={"duration_s": 3600}),
        "array_size": 300,
    }
    status, array = stand.call("POST", "/v1/jobs", body, who="ada")
    assert status == 202
    stand.until(array["job_ids"][0], "running")
    _, ticket = stand.call("DELETE", f"/v1/jobs/{array['job_id']}", who="ada")
    answer = stand.answer(ticket["command_id"])
    assert (answer["accepted"], answer["of"]) == (True, array["job_id"])
    listed = stand.get(f"/v1/jobs?array={array['job_id']}&limit=1000")
    assert listed and {row["phase"] for row in listed["items"]} == {"cancelled"}
    _, ticket = stand.call("DELETE", f"/v1/jobs/{array['job_id']}", who="ada")
    assert stand.answer(ticket["command_id"])["reason"] == "already_finished"


@pytest.mark.parametrize("time_", YEARS_OFF)
def test_a_clock_that_is_years_off_delays_nobody(stand: Stand, time_: str) -> None:
    before = time.time() * 1000
    key = f"skewed-{time_}"
    data = {"idempotency_key": key, "spec": a_spec()}
    stand.publish(MINE, 3, an_event(data, time=time_), a_wish(f"behind-{time_}"))
    for each in (key, f"behind-{time_}"):
        row = stand.ended(derive_job_id("ada", POOL, each))
        assert row["phase"] == "succeeded"
        assert before - 1000 < row["submitted_at"] <= row["ended_at"] < time.time() * 1000 + 1000
    wish = _submit()
    value = an_event(_data(job_id=wish.job_id), id=f"direct-{time_}", time=time_)
    stand.publish("commands", stand.lane, value)
    assert stand.answer(f"direct-{time_}")["accepted"]
    assert abs(stand.ended(wish.job_id)["submitted_at"] - time.time() * 1000) < 60_000


@pytest.mark.parametrize("time_", YEARS_OFF)
def test_heartbeats_of_another_year_neither_kill_nor_revive_a_node(
    stand: Stand, time_: str
) -> None:
    at = 1000 if time_.startswith("1970") else 253_402_300_799_000
    beat = Heartbeats(executor_id="e", at=at, nodes={"a100-0": "of-old", "no-such-node": "1"})
    data = json.loads(beat.model_dump_json())
    stand.publish("heartbeats", stand.lane, *[an_event(data, Heartbeats.TYPE, time=time_)] * 20)
    stand.publish("heartbeats", stand.lane, b"\xff", b"", an_event({}, Heartbeats.TYPE))
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"
    nodes = stand.get("/v1/nodes")
    assert nodes is not None
    virtual = [row for row in nodes["items"] if row["pool"] == POOL]
    assert {row["node_id"] for row in virtual} == {f"a100-{n}" for n in range(4)}
    assert all(row["alive"] for row in virtual)


@pytest.mark.parametrize("command", [("replay",), ("demo", "--check", "--trace")])
def test_a_trace_without_a_column_is_named_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    path = tmp_path / "short.parquet"
    pq.write_table(pa.table({"job_id": ["a"], "submit_s": [0.0], "gpus": [1.0]}), path)
    with pytest.raises(SystemExit) as ended:
        app([*command, str(path)])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "short.parquet" in said
    assert "duration_s" in said
    assert "Traceback" not in said


def test_after_all_of_it_nobody_has_died_and_the_bytes_are_kept(stand: Stand) -> None:
    assert stand.pids() == stand.pids_at_start
    kept = {place: hashlib.sha256(value).hexdigest() for place, value in stand.sent.items()}
    assert stand.dead_topic() == kept


def test_after_all_of_it_verify_is_green(stand: Stand) -> None:
    found = stand.verify()
    assert found.violations == []
    assert found.counts["undecodable"] == len(stand.sent)
