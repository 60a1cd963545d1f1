"""Of fail-slow admission takes jobs that measure the nodes of a slow job, and their cancels."""

from __future__ import annotations

from typing import Any

import pytest

from services.admission.core.state import AdmissionState
from shared.contracts.admission import JobAdmitted, JobDeferred
from shared.contracts.base import Event, Model
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import CancelJob, SetQuota, SubmitJob
from shared.contracts.job_spec import JobSpec
from tests.harness.decider import an_input, given, run
from tests.services.admission.core.cases import ACME, ADMISSION, NODES, NOW, POOL, quota

PLAN = "j1/1/validate/1"
SPEC: dict[str, Any] = {
    "name": "validate-nodes",
    "validates": ("n1", "n2"),
    "measures": "j1",
    "command": ("python3", "-c", "pass", "{}"),
    "walltime_s": 120,
    "priority_class": "system",
    "gang": {"workers": 2, "gpus_per_worker": 1},
}


def lane(*history: Event) -> AdmissionState:
    return given(ADMISSION, POOL.model_copy(update={"release": 1}), ACME, NODES, *history)


def measuring(key: str = PLAN, job_id: str = "", **changed: Any) -> SubmitJob:
    return SubmitJob(
        job_id=job_id or derive_job_id("acme", "main", key),
        tenant="acme",
        pool="main",
        idempotency_key=key,
        spec=JobSpec.model_validate(SPEC | changed),
        by_operator=True,
    )


def sent(state: AdmissionState, message: Model, principal: str = "failslow") -> list[Event]:
    return run(ADMISSION, state, [an_input(message, principal=principal)], NOW)


def test_a_measurement_is_admitted_above_the_quota_as_its_job_stops_for_it() -> None:
    state = lane(quota(0))
    accepted, admitted = sent(state, measuring())
    assert isinstance(accepted, CommandAccepted) and isinstance(admitted, JobAdmitted)
    others = sent(state, measuring("k", measures=None), "operator:ada")
    assert isinstance(others[-1], JobDeferred) and others[-1].reason == "quota"


@pytest.mark.parametrize(
    "message",
    [
        measuring(measures=None),
        measuring(validates=(), measures=None),
        measuring(walltime_s=3600),
        measuring(command=("sh", "-c", "true")),
        measuring(image="busybox"),
        measuring(env={"LD_PRELOAD": "x"}),
        measuring(depends_on=("other",)),
        measuring("a-key-of-acme"),
        measuring(job_id="j2"),
        CancelJob(job_id="j1", tenant="acme", reason=PLAN),
        CancelJob(job_id=derive_job_id("acme", "main", "k"), tenant="acme", reason="k"),
        CancelJob(job_id=derive_job_id("acme", "main", PLAN), reason=PLAN),
        SetQuota(tenant="acme", guaranteed_gpus=1),
    ],
)
def test_all_else_of_fail_slow_is_refused(message: Model) -> None:
    (refused,) = sent(lane(), message)
    assert isinstance(refused, CommandRefused) and refused.reason == "forbidden"


def test_fail_slow_cancels_its_own_job() -> None:
    state, command = lane(), measuring()
    sent(state, command)
    cancel = CancelJob(job_id=command.job_id, tenant="acme", reason=PLAN)
    assert not any(isinstance(event, CommandRefused) for event in sent(state, cancel))


def test_a_job_that_measures_another_one_names_its_nodes() -> None:
    refused = sent(lane(), measuring("k", validates=()), "operator:ada")[0]
    assert isinstance(refused, CommandRefused)
    assert "must be absent without `validates`" in refused.detail
