"""A waiting job leaves its pool once, at admission or at placement, and its cancels follow it."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from services.admission.core.state import AdmissionState
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.job_commands import SubmitJob
from shared.contracts.transfers import (
    JobTransferRequested,
    TransferJob,
    TransferTarget,
    transferred_job_id,
)
from shared.ledger.decider import Input
from tests.services.admission.core.cases import (
    POOL,
    cancel,
    command,
    placed,
    pool,
    quota,
    submit,
    succeeded,
    summarize,
    when,
)

FINISHED = POOL.model_copy(update={"release": 1})
POOLS = ("main", "other")


def several(*history: Event) -> AdmissionState:
    return pool(FINISHED, *history)


def transfer(job_id: str, to: str = "other", id_: str = "") -> Input:
    return command(TransferJob(job_id=job_id, pool=to), id_)


def target(job_id: str, **more: object) -> TransferTarget:
    there = transferred_job_id("acme", "other", job_id)
    return TransferTarget.model_validate({"pool": "other", "job_id": there, **more})


def left(job_id: str) -> JobCancelled:
    return JobCancelled(job_id=job_id, tenant="acme", transferred_to=target(job_id))


def test_a_deferred_job_leaves_at_once_with_all_that_it_had_brought() -> None:
    state = several(quota(0))
    before = {
        "from_job_id": "j0",
        "from_pool": "first",
        "first_job_id": "j0",
        "transfers": 1,
        "failures": 2,
        "resumes": True,
        "done_s": 7.5,
    }
    when(state, submit("j1", pools=POOLS, transferred=before))
    accepted, end = when(state, transfer("j1", id_="c1"))
    assert summarize([accepted]) == ["command.accepted c1"]
    assert isinstance(end, JobCancelled)
    assert end.transferred_to == target("j1", failures=2, resumes=True, done_s=7.5)
    assert not state.deferred
    assert state.open_jobs.get("acme", 0) == 0


def test_placement_decides_on_an_admitted_job_and_its_quota_is_released_then() -> None:
    state = several()
    when(state, submit("j1", pools=POOLS))
    _, request = when(state, transfer("j1"))
    assert request == JobTransferRequested(job_id="j1", tenant="acme", to_pool="other")
    assert state.quota_use.regular == {"acme": 1000}
    assert summarize(when(state, placed(left("j1")))) == ["jobs.released main"]
    assert state.quota_use.regular == {}


def test_a_submission_of_a_job_that_left_is_a_duplicate() -> None:
    state = several(quota(0))
    item = submit("j1", pools=POOLS)
    when(state, item)
    when(state, transfer("j1"))
    assert isinstance(item.message, SubmitJob)
    (answer,) = when(state, command(item.message, "c2"))
    assert summarize([answer]) == ["command.accepted c2"]
    assert getattr(answer, "duplicate", False)


def test_a_cancel_that_meets_a_transfer_is_accepted_and_recorded_to_follow_the_job() -> None:
    state = several()
    when(state, submit("j1", pools=POOLS))
    when(state, transfer("j1"), cancel("j1", id_="c1"))
    assert summarize(when(state, placed(left("j1"))))[1:] == ["command.accepted c1"]
    assert summarize(when(state, cancel("j1", id_="c2"))) == [
        "command.accepted c2",
        "job.cancel-requested j1",
    ]


@pytest.mark.parametrize(
    ("prepared", "reason"),
    [
        ([], "unknown_job"),
        ([submit("j1", pools=POOLS), cancel("j1")], "not_transferable"),
        ([submit("j1", pools=POOLS), placed(succeeded("j1"))], "not_transferable"),
        ([submit("j1", pools=POOLS), submit("j2", depends_on=["j1"])], "not_transferable"),
        ([submit("j1", size=3)], "not_transferable"),
    ],
    ids=["unknown", "cancelled", "ended", "others depend on it", "array"],
)
def test_a_transfer_is_refused_where_others_count_on_the_job_here(
    prepared: list[Input], reason: str
) -> None:
    state = several()
    for item in prepared:
        when(state, item)
    assert summarize(when(state, transfer("j1", id_="c9"))) == [f"command.refused c9 {reason}"]


@pytest.mark.parametrize("to", ["main", "third"])
def test_a_deferred_job_goes_to_another_of_its_pools_alone(to: str) -> None:
    state = several(quota(0))
    when(state, submit("j1", pools=POOLS))
    (refusal,) = when(state, transfer("j1", to))
    assert getattr(refusal, "reason", "") == "not_transferable"


def test_a_job_that_waits_for_another_stays() -> None:
    state = several()
    when(state, submit("j0"), submit("j1", pools=POOLS, depends_on=["j0"]))
    assert summarize(when(state, transfer("j1", id_="c1"))) == [
        "command.refused c1 not_transferable"
    ]


def test_no_job_has_several_pools_before_the_upgrade_is_finished() -> None:
    state = pool()
    refused, rejected = when(state, submit("j1", pools=POOLS))
    assert getattr(refused, "reason", "") == "invalid_spec"
    assert "berth upgrade finish" in getattr(rejected, "detail", "")


@pytest.mark.parametrize("spec", [{"size": 2}, {"pools": ("other", "third")}])
def test_arrays_and_jobs_of_other_pools_are_rejected(spec: dict[str, object]) -> None:
    state = several()
    refused, _ = when(state, submit("j1", **{"pools": POOLS, **spec}))  # type: ignore[arg-type]
    assert getattr(refused, "reason", "") == "invalid_spec"


STEPS = ("transfer", "cancel", "left", "ended")


@examples(st.booleans(), st.lists(st.sampled_from(STEPS), max_size=8))
def test_a_job_leaves_or_ends_once_and_charges_nothing_then(
    deferred: bool, steps: list[str]
) -> None:
    state = several(*([quota(0)] if deferred else []))
    when(state, submit("j1", pools=POOLS))
    made = {
        "transfer": lambda: transfer("j1"),
        "cancel": lambda: cancel("j1"),
        "left": lambda: placed(left("j1")),
        "ended": lambda: placed(succeeded("j1")),
    }
    ends = 0
    for step in steps:
        for event in when(state, made[step]()):
            ends += isinstance(event, JobCancelled) or event.TYPE == "jobs.released.v1"
    assert ends <= 1
    if ends:
        assert not (state.deferred or state.admitted or state.quota_use.regular)
        assert state.open_jobs.get("acme", 0) == 0
