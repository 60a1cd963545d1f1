"""Jobs that are submitted and cancelled for the pods that are there, and the messages on these."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.kubernetes.names import IDENTITY, RANK
from services.executor.core.kubernetes.pod_intake import (
    CANCEL_AGAIN_S,
    POST_AFTER_S,
    POST_AGAIN_S,
    REPEAT_S,
    Intake,
    IntakeLook,
    IntakeMemory,
    TenantPods,
    take_in,
)
from services.executor.core.kubernetes.pod_jobs import PodJob, PodJobs, SubmissionRefusal
from services.executor.core.kubernetes.pods import PodSeen
from tests.services.executor.core.kubernetes.user_pods import NAMESPACE, uid_of, user_pod

IDENTITY_TEXT = "berth:here:cloud:1/5/0"
TENANTS = {NAMESPACE: TenantPods("ada", is_default=True)}
DELETED = {"deletionTimestamp": "2026-01-01T00:01:00Z"}


def job_of(*names: str, words: str = "") -> PodJob:
    return PodJob("ada", tuple(map(uid_of, names)), words)


def looked(*pods: PodSeen, **fields: Any) -> Intake:
    values: dict[str, Any] = {
        "pool": "cloud",
        "time_scale": 1.0,
        "tenants": TENANTS,
        "pods": pods,
        "placed": {},
        "working": frozenset(),
        "admission": PodJobs(),
        "placement": PodJobs(),
        "memory": IntakeMemory(waits_since_s={pod.uid: 0.0 for pod in pods}),
        "now_s": 100.0,
    }
    return take_in(IntakeLook(**{**values, **fields}))


def pair(*names: str, **fields: Any) -> list[PodSeen]:
    return [user_pod(name, group="g", size=2, **fields) for name in names]


def worker(name: str, *, deleted: bool = False, marked: bool = False, **fields: Any) -> PodSeen:
    """Return a pod of a gang of two that Berth bound."""
    own = {IDENTITY: IDENTITY_TEXT, RANK: "0", **({"berth/ended": "true"} if marked else {})}
    more = DELETED if deleted or marked else {}
    values = {"node": "n1", "phase": "Running", "annotations": own, "metadata": more}
    return user_pod(name, **{**values, **fields})


def test_a_whole_group_is_submitted_and_one_that_is_not_says_so() -> None:
    partial = looked(*pair("a"))
    assert partial.submissions == []
    assert [message.text for message in partial.messages] == ["1 of 2 pods of group g are there"]
    [submission] = looked(*pair("a", "b")).submissions
    assert (submission.tenant, submission.spec.pods) == ("ada", (uid_of("a"), uid_of("b")))


@pytest.mark.parametrize(
    "pod",
    [
        user_pod("a", namespace="default"),
        user_pod("a", schedulerName="default-scheduler"),
        user_pod("a", schedulingGates=[{"name": "later"}]),
        user_pod("a", labels={"berth/pool": "other"}),
        user_pod("a", node="n1"),
        user_pod("a", metadata=DELETED),
        worker("a", node=""),
    ],
)
def test_other_pods_are_not_submitted(pod: PodSeen) -> None:
    assert looked(pod) == Intake()


def test_a_pod_names_a_pool_or_has_the_default_of_its_tenant() -> None:
    elsewhere = {NAMESPACE: TenantPods("ada", is_default=False)}
    assert looked(user_pod("a"), tenants=elsewhere) == Intake()
    named = user_pod("a", labels={"berth/pool": "cloud"})
    assert len(looked(named, tenants=elsewhere).submissions) == 1


def test_a_submission_is_repeated_only_while_no_ledger_shows_it() -> None:
    memory, pods = IntakeMemory(), pair("a", "b")
    [submission] = looked(*pods, memory=memory).submissions
    job = job_of("a", "b", words="it is submitted")
    memory.submitted[submission.job_id] = job, 100.0
    soon = looked(*pods, memory=memory, now_s=100.0 + REPEAT_S - 1)
    assert soon.submissions == []
    assert looked(*pods, memory=memory, now_s=100.0 + REPEAT_S).submissions == [submission]
    placed = looked(*pods, placed={submission.job_id: job}, now_s=100.0 + REPEAT_S)
    assert placed.submissions == [] and placed.cancels == []


@pytest.mark.parametrize("ledger", ["placed", "admission"])
def test_pods_of_a_job_that_waits_carry_its_words(ledger: str) -> None:
    waiting = PodJobs(waiting={"j": job_of("a", "b", words="too few GPUs are free")})
    fields: dict[str, Any] = {"admission": waiting}
    if ledger == "placed":
        fields = {"placed": {"j": job_of("a", "b")}, "placement": waiting}
    intake = looked(*pair("a", "b"), **fields)
    assert intake.submissions == [] and intake.cancels == []
    [message] = intake.messages
    assert message.text == "job j of Berth: too few GPUs are free" and len(message.pods) == 2


def test_a_message_that_is_there_is_not_written_again_and_others_after_a_while() -> None:
    memory = IntakeMemory(posted_s={uid_of("a"): 100.0})
    assert looked(*pair("a", message="1 of 2 pods of group g are there")).messages == []
    [stale] = pair("a", message="another")
    assert looked(stale, memory=memory, now_s=100.0 + POST_AGAIN_S - 1).messages == []
    assert len(looked(stale, memory=memory, now_s=100.0 + POST_AGAIN_S).messages) == 1


def test_pods_that_get_a_node_soon_get_no_message() -> None:
    memory = IntakeMemory()
    assert looked(*pair("a"), memory=memory).messages == []
    soon = looked(*pair("a"), memory=memory, now_s=100.0 + POST_AFTER_S / 2)
    assert soon.messages == []
    assert len(looked(*pair("a"), memory=memory, now_s=100.0 + POST_AFTER_S).messages) == 1


def test_a_fault_is_posted_and_nothing_submitted() -> None:
    intake = looked(*pair("a", "b", nodeSelector={"a": "b"}))
    assert intake.submissions == []
    assert intake.messages[0].text.startswith("Berth cannot place it: nodeSelector")


def test_a_waiting_job_of_which_a_pod_is_gone_is_cancelled_and_again_later() -> None:
    memory, placed = IntakeMemory(), {"j": job_of("a", "b")}
    [cancel] = looked(*pair("a"), placed=placed, memory=memory).cancels
    assert (cancel.tenant, cancel.job_id) == ("ada", "j")
    memory.cancelled_s["j"] = 100.0
    assert looked(*pair("a"), placed=placed, memory=memory).cancels == []
    later = looked(*pair("a"), placed=placed, memory=memory, now_s=100.0 + CANCEL_AGAIN_S)
    assert len(later.cancels) == 1


def test_pods_of_a_job_that_is_being_cancelled_join_no_other_one_yet() -> None:
    intake = looked(*pair("a", "c"), placed={"j": job_of("a", "b")})
    assert len(intake.cancels) == 1 and intake.submissions == []


def test_of_two_jobs_with_one_pod_the_earlier_stays() -> None:
    placed = {"j1": job_of("a", "b"), "j2": job_of("b", "c")}
    intake = looked(*pair("a", "b", "c"), placed=placed)
    assert [cancel.job_id for cancel in intake.cancels] == ["j2"]


@pytest.mark.parametrize(
    ("pod", "is_cancelled"),
    [
        (worker("b"), False),
        (worker("b", phase="Succeeded"), False),
        (worker("b", deleted=True), True),
        (worker("b", deleted=True, phase="Succeeded"), False),
        (worker("b", marked=True), False),
        (None, True),
    ],
)
def test_a_running_job_is_cancelled_if_others_than_berth_delete_a_pod(
    pod: PodSeen | None, is_cancelled: bool
) -> None:
    pods = [worker("a"), *([pod] if pod is not None else [])]
    intake = looked(*pods, placed={"j": job_of("a", "b")}, working=frozenset({"j"}))
    assert bool(intake.cancels) is is_cancelled and intake.submissions == []


def test_a_preempted_job_is_cancelled_as_its_pods_have_ended() -> None:
    ended = [worker(name, marked=True, phase="Failed") for name in ("a", "b")]
    intake = looked(*ended, *pair("c", "d"), placed={"j": job_of("a", "b")})
    assert [cancel.job_id for cancel in intake.cancels] == ["j"]
    assert intake.submissions[0].spec.pods == (uid_of("c"), uid_of("d"))


def test_pods_of_a_job_that_ended_before_its_start_say_so_and_are_no_other_job() -> None:
    ended = PodJobs(ended={"j": job_of("a", "b", words="it was cancelled")})
    intake = looked(*pair("a", "b"), placement=ended)
    assert intake.submissions == []
    assert intake.messages[0].text == "job j of Berth: it was cancelled; delete the pods"
    replaced = looked(*pair("a", "c"), placement=ended)
    assert len(replaced.submissions) == 1, "with another pod it is another job"


@pytest.mark.parametrize("is_final", [True, False])
def test_a_refused_submission_is_posted_and_repeated_unless_it_is_final(is_final: bool) -> None:
    pods = pair("a", "b")
    [submission] = looked(*pods).submissions
    refused = {submission.job_id: SubmissionRefusal("it was refused: quota", is_final)}
    intake = looked(*pods, admission=PodJobs(refused=refused))
    assert bool(intake.submissions) is not is_final
    assert intake.messages[0].text == f"job {submission.job_id} of Berth: it was refused: quota"


def test_the_memory_is_bounded_by_what_is_there() -> None:
    times = {"gone": 99.0, uid_of("a"): 99.0}
    memory = IntakeMemory({"j": (job_of("a"), 0.0)}, {"j": 0.0}, times, dict(times))
    looked(*pair("a"), memory=memory, now_s=3 * REPEAT_S)
    left = {uid_of("a"): 99.0}
    assert memory == IntakeMemory(posted_s=left, waits_since_s=left)


def test_a_job_that_names_pods_of_another_tenant_holds_none_of_them_back() -> None:
    foreign = PodJob("bob", (uid_of("a"), uid_of("b")), "")
    tenants = {**TENANTS, "berth-bob": TenantPods("bob", is_default=True)}
    intake = looked(*pair("a", "b"), placed={"j": foreign}, tenants=tenants)
    assert [(cancel.tenant, cancel.job_id) for cancel in intake.cancels] == [("bob", "j")]
    assert [submission.tenant for submission in intake.submissions] == ["ada"]


def test_nothing_is_sent_for_a_tenant_that_is_retired() -> None:
    assert looked(*pair("a"), placed={"j": job_of("a", "b")}, tenants={}) == Intake()
