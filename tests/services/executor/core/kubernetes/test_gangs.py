"""A gang as a job of the engine, by what its record says and which pods are there."""

from __future__ import annotations

from dataclasses import replace

from services.executor.core.engines.contract import EnginePhase
from services.executor.core.kubernetes.gangs import (
    Pods,
    failed_pods,
    foreign_jobs,
    is_adopted,
    job_of,
    progress_of,
)
from services.executor.core.kubernetes.pods import pod_of
from services.executor.core.kubernetes.records import FORBIDDEN, LOST, OPEN, STARTED
from tests.services.executor.core.kubernetes.objects import (
    GANG,
    NAMESPACE,
    ended_pod,
    gang,
    gang_pod,
    pod_row,
)
from tests.services.executor.core.kubernetes.user_pods import user_pod

FIRST, SECOND = gang_pod(0, node="", phase="Pending"), gang_pod(1, node="", phase="Pending")


def test_a_gang_stands_ready_when_all_of_its_pods_are_there() -> None:
    part = gang(OPEN, FIRST)
    assert job_of(part).is_partial and job_of(part).phase is EnginePhase.PENDING
    assert progress_of(part, {}).ready == ""
    whole = gang(OPEN, FIRST, SECOND)
    assert job_of(whole).phase is EnginePhase.RUNNING and not job_of(whole).is_refused
    assert progress_of(whole, {}).ready == job_of(whole).ref == GANG
    assert not progress_of(whole, {}).is_begun


def test_a_gang_of_which_a_pod_was_deleted_before_its_start_is_refused() -> None:
    job = job_of(gang(OPEN, FIRST, gang_pod(1, node="", phase="Pending", deleted=True)))
    assert job.is_refused and "deleted in Kubernetes" in job.waits_for


def test_a_start_is_carried_out_again_until_every_pod_is_bound() -> None:
    half = gang(STARTED, gang_pod(0), SECOND)
    assert progress_of(half, {}).is_begun and progress_of(half, {}).needs_start
    assert job_of(half).nodes == ("n1",) and not job_of(half).has_failed
    assert not progress_of(gang(STARTED, gang_pod(0), gang_pod(1)), {}).needs_start


def test_a_gang_of_which_another_bound_a_pod_to_another_node_is_refused() -> None:
    started = gang(STARTED, gang_pod(0), gang_pod(1, node="n2"))
    nodes = replace(started.record, nodes=("n1", "n2"))
    assert not job_of(started._replace(record=nodes)).is_refused
    job = job_of(started._replace(record=replace(nodes, nodes=("n1", "n3"))))
    assert job.is_refused and "was bound to node n2 by another" in job.waits_for
    assert not job_of(started).is_refused, "a record of an earlier release names no nodes"
    assert [pod.node for pod in started.strays({0: "n1", 1: "n3"})] == ["n2"]
    assert not any(gang(OPEN, FIRST, SECOND).strays({0: "n1", 1: "n3"}))


def test_a_gang_that_is_forbidden_is_there_as_long_as_its_pods() -> None:
    assert progress_of(gang(FORBIDDEN, FIRST), {}).is_forbidden
    assert job_of(gang(FORBIDDEN, FIRST)).phase is EnginePhase.RUNNING
    over = job_of(gang(FORBIDDEN))
    assert over.phase is EnginePhase.ENDED and over.is_kept


def test_one_failed_worker_fails_its_gang_and_a_gang_ends_with_its_last_worker() -> None:
    assert job_of(gang(STARTED, ended_pod(0, 3), gang_pod(1))).has_failed
    assert not job_of(gang(STARTED, ended_pod(0, 0), gang_pod(1))).has_failed
    ended = gang(STARTED, ended_pod(0, 0), ended_pod(1, 0))
    assert job_of(ended).phase is EnginePhase.ENDED and not job_of(ended).lost_node
    assert {end.exit_code for end in progress_of(ended, {}).ends.values()} == {0}


def test_a_gang_ends_once_the_last_lines_of_its_failed_workers_are_read() -> None:
    failed = ended_pod(1, 3)
    ended = gang(STARTED, ended_pod(0, 0), failed)
    assert failed_pods(ended) == [failed]
    assert failed_pods(gang(STARTED, gang_pod(0), failed)) == [], "one lives"
    assert job_of(ended, {failed.uid}).phase is EnginePhase.ENDING
    assert job_of(ended).phase is EnginePhase.ENDED


def test_a_pod_that_is_gone_or_given_up_may_run_on() -> None:
    assert job_of(gang(STARTED, ended_pod(0, 0))).lost_node, "that of rank 1 is gone"
    condition = {"type": "DisruptionTarget", "reason": "DeletionByPodGC"}
    lost = gang(STARTED, ended_pod(0, 0), gang_pod(1, phase="Failed", conditions=[condition]))
    assert job_of(lost).lost_node and job_of(lost).failure.reason == "step_lost"
    assert set(progress_of(lost, {}).ends) == {0}


def test_a_gang_of_a_start_that_the_api_has_lost_binds_nothing_and_ends_as_lost() -> None:
    restored = gang(LOST, FIRST, SECOND)
    assert job_of(restored).has_failed and job_of(restored).phase is EnginePhase.RUNNING
    progress = progress_of(restored, {})
    assert progress.is_begun and progress.settle_s and not (progress.needs_start or progress.ready)
    over = job_of(gang(LOST))
    assert over.phase is EnginePhase.ENDED and over.is_kept and over.lost_node
    assert over.failure.reason == "step_lost" and "restore of etcd" in over.failure.detail


def test_an_image_that_cannot_be_pulled_is_a_refusal() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not there"}}
    job = job_of(gang(STARTED, gang_pod(0, state=waiting), gang_pod(1)))
    assert job.is_refused and "not there" in job.waits_for
    creating = {"waiting": {"reason": "ContainerCreating"}}
    assert not job_of(gang(STARTED, gang_pod(0, state=creating), gang_pod(1))).is_refused


def test_a_pod_of_the_name_with_another_identity_is_none_of_the_gang() -> None:
    forged = pod_of(pod_row(FIRST.name))
    assert gang(OPEN, forged, SECOND).pods.keys() == {1}


def test_a_gang_that_is_started_is_known_by_the_uids_of_its_pods() -> None:
    record = replace(gang(STARTED).record, uids=("uid-" + FIRST.name, "uid-of-an-earlier-pod"))
    bare = pod_of(pod_row(FIRST.name))
    assert bare.identity == ""
    pods = {pod.key: pod for pod in (bare, gang_pod(1))}
    assert Pods(pods).of(record).pods == {0: bare}, "what it carries may be changed, not its uid"


def test_pods_without_a_record_are_a_gang_that_is_submitted_again_or_ends() -> None:
    pods = Pods({pod.key: pod for pod in (FIRST, gang_pod(1), pod_of(pod_row("other")))})
    [lost] = pods.orphaned(())
    assert lost.pods.keys() == {0, 1} and lost.is_orphaned and lost.has_begun
    job = job_of(lost)
    assert (job.ref, job.is_partial, job.phase) == (GANG, True, EnginePhase.RUNNING)
    assert job.gpu_counts == {"n1": 1} and progress_of(lost, {}).ready == ""
    assert list(pods.orphaned({GANG})) == []
    [waits] = Pods({FIRST.key: FIRST}).orphaned(())
    assert job_of(waits).phase is EnginePhase.PENDING and not waits.has_begun


def test_a_pod_that_has_not_the_name_of_its_identity_is_in_no_gang() -> None:
    annotations = {"berth/identity": FIRST.identity, "berth/rank": "0"}
    forged = pod_of(pod_row("berth-other-0", metadata={"annotations": annotations}))
    assert list(Pods({forged.key: forged}).orphaned(())) == []


def test_a_gang_that_was_forbidden_before_it_was_submitted_has_late_pods_all_the_same() -> None:
    record = replace(gang(FORBIDDEN).record, namespace="", workers=0)
    late = Pods({FIRST.key: FIRST}).of(record)
    assert late.pods == {0: FIRST} and job_of(late).phase is EnginePhase.RUNNING


def test_pods_of_others_are_counted_while_they_hold_gpus() -> None:
    rows = [
        pod_row("b", gpus=2),
        pod_row("a", gpus=1),
        pod_row("over", phase="Succeeded"),
        pod_row("waits", node=""),
        pod_row("cpu", gpus=0),
    ]
    pods = [*map(pod_of, rows), gang_pod(0)]
    first, second = foreign_jobs(pods, [gang_pod(0).key])
    assert (first.owner, first.gpu_counts) == (f"pod {NAMESPACE}/a", {"n1": 1})
    assert (second.identity, second.gpu_counts) == ("", {"n1": 2})
    assert Pods({}).of(gang(OPEN).record).pods == {}


def test_an_adopted_pod_without_a_record_is_in_a_gang_with_its_own_name() -> None:
    annotations = {"berth/identity": FIRST.identity, "berth/rank": "1"}
    adopted = user_pod("a", annotations=annotations)
    [gang] = Pods({adopted.key: adopted}).orphaned(())
    assert gang.pods == {1: adopted} and gang.adopted == ("-", "a")
    assert is_adopted(adopted) and not is_adopted(gang_pod(1))
    assert list(Pods({adopted.key: adopted}).orphaned((gang.record.name,))) == []
