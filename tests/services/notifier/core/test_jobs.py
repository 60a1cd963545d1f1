"""A user gets a mail per state change that the job names, and one for a whole array."""

from __future__ import annotations

from services.notifier.core.jobs import WatchedJob, note, row_of, watched
from shared.contracts.admission import ArrayAccepted, JobAdmitted, JobDeferred
from shared.contracts.job_spec import JobSpec
from tests.services.notifier.changes import change

SPEC = JobSpec(name="train", user="alice", notify=("succeeded", "failed"))


def test_a_job_is_watched_from_its_specification() -> None:
    job = WatchedJob("j1", "ada", "alice", "train", ("succeeded", "failed"))
    admitted = JobAdmitted(job_id="j1", tenant="ada", submitted_at=1, spec=SPEC)
    deferred = JobDeferred(job_id="j1", tenant="ada", reason="quota", spec=SPEC)
    assert watched(change(admitted)) == watched(change(deferred)) == job


def test_a_job_without_mails_or_user_is_not() -> None:
    for spec in (JobSpec(name="x", user="alice"), JobSpec(name="x", notify=("failed",))):
        admitted = JobAdmitted(job_id="j1", tenant="ada", submitted_at=1, spec=spec)
        assert watched(change(admitted)) is None
    assert watched(change(JobDeferred(job_id="j1", tenant="ada", reason="quota"))) is None


def test_an_array_is_watched_as_a_whole() -> None:
    array = ArrayAccepted(job_id="a1", tenant="ada", array_size=3, spec=SPEC)
    member = JobAdmitted(job_id="a1.0", tenant="ada", submitted_at=1, spec=SPEC, array_index=0)
    job = watched(change(array, "admission"))
    assert job is not None and job.size == 3
    assert watched(change(member)) is None and row_of("a1.0") == "a1"


def test_a_named_state_change_is_mailed_and_an_end_is_the_last() -> None:
    job = WatchedJob("j1", "ada", "alice", "train", ("preempted", "failed"))
    assert note(job, "started") is None and note(job, "preempted") == "preempted"
    assert not job.is_over
    assert note(job, "failed") == "failed" and job.is_over


def test_an_array_is_mailed_once_by_its_worst_end() -> None:
    job = WatchedJob("a1", "ada", "alice", "sweep", ("succeeded", "failed"), 3)
    assert [note(job, "started"), note(job, "failed"), note(job, "succeeded")] == [None] * 3
    assert note(job, "succeeded") == "failed"
    assert job.is_over and job.ended == {"failed": 1, "succeeded": 2}
