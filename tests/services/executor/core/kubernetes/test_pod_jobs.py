"""Jobs of pods that wait, or ended, by the ledgers."""

from __future__ import annotations

from typing import Any

from services.executor.core.kubernetes.pod_jobs import CONSUMED, ENDS_KEPT, PodJobs, fold
from shared.contracts.admission import JobAdmitted, JobDeferred, JobRejected
from shared.contracts.attempts import JobCancelled, JobFailed, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandRefused
from shared.contracts.failures import WorkerFailure
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import JobEnqueued, JobHeld
from shared.ledger.decider import Fact
from tests.services.executor.core.kubernetes.user_pods import uid_of

PODS = (uid_of("a"),)
SPEC = JobSpec(name="train", pods=PODS)
ENQUEUED = JobEnqueued(job_id="j", tenant="ada", submitted_at=0, spec=SPEC)


def folded(*events: Event) -> PodJobs:
    state = PodJobs()
    for event in events:
        assert event.TYPE in CONSUMED
        fold(state, Fact(event, "placement", 0, 1, 0, 0))
    return state


def refused(reason: str, **fields: Any) -> CommandRefused:
    values = {"command_id": "c", "command_type": "job.submit.v1", "of": "j", **fields}
    return CommandRefused(reason=reason, **values)


def test_a_job_without_pods_is_not_kept() -> None:
    plain = ENQUEUED.model_copy(update={"spec": JobSpec(name="train")})
    held = JobHeld(job_id="j", tenant="ada", reason="no_capacity")
    state = folded(plain, held, JobSucceeded(job_id="j", tenant="ada", attempt=1))
    assert state == PodJobs()


def test_a_job_has_the_words_of_its_last_hold() -> None:
    detail = {"free_gpus": 2.0, "protected_until": 1.0}
    held = JobHeld(job_id="j", tenant="ada", reason="no_capacity", short_gpus=2, detail=detail)
    state = folded(ENQUEUED, held)
    assert state.waiting["j"].words == "too few GPUs are free; free gpus 2, short gpus 2"
    assert folded(ENQUEUED).waiting["j"].words == "it is in the queue"


def test_admission_holds_a_job_until_it_is_admitted() -> None:
    first = JobDeferred(job_id="j", tenant="ada", reason="quota", spec=SPEC)
    again = JobDeferred(job_id="j", tenant="ada", reason="dependency")
    assert "dependency" in folded(first, again).waiting["j"].words
    admitted = JobAdmitted(job_id="j", tenant="ada", submitted_at=0, spec=SPEC)
    assert not folded(first, again, admitted).waiting


def test_an_end_is_kept_with_its_words() -> None:
    for event, words in (
        (JobSucceeded(job_id="j", tenant="ada", attempt=1), "it succeeded"),
        (JobCancelled(job_id="j", tenant="ada"), "it was cancelled"),
    ):
        state = folded(ENQUEUED, event)
        assert not state.waiting
        assert (state.ended["j"].pods, state.ended["j"].words) == (PODS, words)
    failure = WorkerFailure(reason="engine_refused", detail="no", rank=0, node_id="n1")
    failed = JobFailed(
        job_id="j", tenant="ada", attempt=1, reason="engine_refused", failure=failure
    )
    assert folded(ENQUEUED, failed).ended["j"].words.startswith("it failed: engine refused")


def test_a_rejection_is_final_and_its_words_stay() -> None:
    rejected = JobRejected(job_id="j", tenant="ada", reason="infeasible", detail="gpus")
    state = folded(refused("infeasible"), rejected, refused("already_rejected"))
    assert state.refused["j"].is_final
    assert state.refused["j"].words.startswith("it was rejected: no pool capacity")


def test_a_refusal_for_now_is_not_final_and_one_of_a_cancel_is_none() -> None:
    assert not folded(refused("unknown_pool")).refused["j"].is_final
    assert not folded(refused("ended", command_type="job.cancel.v1")).refused


def test_only_the_latest_ends_are_kept() -> None:
    state = folded(
        *(
            JobRejected(job_id=f"j{number}", tenant="ada", reason="quota")
            for number in range(ENDS_KEPT + 1)
        )
    )
    assert len(state.refused) == ENDS_KEPT and "j0" not in state.refused
