"""Bad records in the topics of commands, reports and requests: each is a dead letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.contracts.access import RegisterTenant
from shared.contracts.job_commands import CancelJob, RejectSubmission
from shared.contracts.reports import ExecutorReported, WorkerExited
from tests.e2e.bad_input.messages import INGRESS, submit_data
from tests.e2e.stand import POOL, Json, Stand, a_command, a_spec, an_event

pytestmark = pytest.mark.stack

SEEDS = {
    path.name: path.read_bytes()
    for path in (Path(__file__).parents[2] / "fuzz" / "seeds" / "cloudevent").iterdir()
}
"""Bytes that once ended every decider that read them."""


COMMANDS = {
    "noise": (b"\x80\x81\x82", "not JSON"),
    "unknown_type": (an_event({}, "job.destroy.v1"), "unknown type job.destroy.v1"),
    "future_version": (an_event(submit_data(), "job.submit.v9"), "unknown type job.submit.v9"),
    "negative": (an_event(submit_data(array_size=-1)), "array_size: "),
    "absurd": (an_event(submit_data(spec=a_spec(grace_s=1e300))), "spec.grace_s: "),
    "a_nul_in_the_id": (an_event(submit_data(), id="a\x00b"), "id: may not hold a NUL"),
    "a_nul_in_the_type": (an_event(submit_data(), "job\x00"), "type: may not hold a NUL"),
    "a_nul_in_the_body": (an_event(submit_data(idempotency_key="\x00")), "NUL"),
    "a_nul_in_the_tenant": (an_event(submit_data(), tenant="a\x00b"), "tenant: may not hold a NUL"),
    "an_endless_id": (an_event(submit_data(), id="x" * 500_000), "id: "),
    "an_endless_tenant": (an_event(submit_data(), tenant="x" * 500_000), "tenant: "),
    "an_absurd_place": (
        an_event(
            {
                "tenant": "ada",
                "topic": INGRESS,
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
def test_a_bad_record_in_commands_is_a_dead_letter_with_its_reason(
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
def test_a_bad_record_in_reports_is_a_dead_letter_with_its_reason(
    in_reports: dict[str, Json], case: str
) -> None:
    row, reason = in_reports[case], REPORTS[case][1]
    assert reason in row["reason"]
    assert row["ledger"] == "placement"


@pytest.mark.parametrize(
    ("topic", "ledger"), [("access.commands", "access"), ("llm.requests", "throttle")]
)
def test_every_other_input_topic_has_a_ledger_that_rejects_bad_records(
    stand: Stand, topic: str, ledger: str
) -> None:
    values = {"noise": b"\xde\xad", "future": an_event({}, "job.submit.v9")}
    rows = stand.bad(topic, 0, values)
    assert [row["ledger"] for row in rows.values()] == [ledger, ledger]
    assert "job.submit.v9" in rows["future"]["reason"]


def test_a_report_of_a_worker_that_was_never_placed_changes_nothing(stand: Stand) -> None:
    ghost = WorkerExited(allocation_id="0/999999/0/0", job_id="ghost", exit_code=0)
    stand.publish(
        "reports", stand.lane, a_command(ExecutorReported(executor_id="e", reports=(ghost,)))
    )
    assert stand.ended(stand.submit()["job_id"])["phase"] == "succeeded"
    assert stand.job("ghost") is None
