"""Gangs of pods, their ranks, and the job of each."""

from __future__ import annotations

from services.executor.core.kubernetes.pod_groups import FreePod, PodGroup, groups_of, submission_of
from services.executor.core.kubernetes.pods import PodSeen
from tests.services.executor.core.kubernetes.user_pods import uid_of, user_pod

INDEX = "batch.kubernetes.io/job-completion-index"


def groups(*pods: PodSeen) -> list[PodGroup]:
    return list(groups_of(FreePod(pod, pod.request) for pod in pods if pod.request is not None))


def names(group: PodGroup) -> list[str]:
    return [pod.name for pod in group.pods]


def test_each_pod_without_a_group_is_a_gang() -> None:
    first, second = groups(user_pod("a"), user_pod("b"))
    assert (first.name, first.is_whole, names(second)) == ("a", True, ["b"])


def test_a_group_is_whole_once_all_are_there_and_those_of_namespaces_are_apart() -> None:
    here = user_pod("a", group="g", size=2)
    elsewhere = user_pod("b", group="g", size=2, namespace="berth-bob")
    assert [group.is_whole for group in groups(here, elsewhere)] == [False, False]
    [whole] = groups(here, user_pod("b", group="g", size=2))
    assert whole.is_whole


def test_ranks_follow_the_index_and_then_the_numbers_in_names() -> None:
    pods = [user_pod(f"a-{number}", group="g", size=3) for number in (10, 9, 2)]
    assert names(groups(*pods)[0]) == ["a-2", "a-9", "a-10"]
    indexed = [
        user_pod(name, group="g", size=2, labels={INDEX: index})
        for name, index in (("a", "1"), ("b", "0"))
    ]
    assert names(groups(*indexed)[0]) == ["b", "a"]


def test_the_oldest_pods_of_a_group_are_together() -> None:
    pods = [
        user_pod(name, group="g", size=2, created=created)
        for name, created in (("a", 5), ("b", 1), ("c", 2))
    ]
    first, second = groups(*pods)
    assert names(first) == ["b", "c"] and names(second) == ["a"] and not second.is_whole


def test_the_job_has_what_its_pods_request() -> None:
    one = user_pod("a", group="g", size=2, gpus=1, activeDeadlineSeconds=60)
    two = user_pod(
        "b",
        group="g",
        size=2,
        gpus=2,
        activeDeadlineSeconds=90,
        annotations={"berth/priority-class": "high"},
    )
    [group] = groups(one, two)
    submission = submission_of(group, "ada", "cloud", 2.0)
    spec = submission.spec
    assert (spec.name, spec.gang.workers, spec.gang.gpus_per_worker) == ("g", 2, 2)
    assert (spec.gang.cpus_per_worker, spec.gang.mem_gib_per_worker) == (0.5, 2)
    assert (spec.priority_class, spec.grace_s, spec.walltime_s) == ("high", 30, 180)
    assert spec.pods == (uid_of("a"), uid_of("b"))
    assert len(submission.key) <= 128


def test_a_pod_without_a_deadline_leaves_the_gang_without_a_walltime() -> None:
    timed = user_pod("a", group="g", size=2, activeDeadlineSeconds=60)
    [group] = groups(timed, user_pod("b", group="g", size=2))
    assert submission_of(group, "ada", "cloud", 1.0).spec.walltime_s is None


def test_a_pod_that_requests_nothing_takes_something() -> None:
    [group] = groups(user_pod("a", containers=[{"name": "main"}]))
    assert submission_of(group, "ada", "cloud", 1.0).spec.gang.has_resources


def test_the_same_pods_are_the_same_job_and_others_are_another() -> None:
    [group], [again], [other] = groups(user_pod("a")), groups(user_pod("a")), groups(user_pod("b"))
    first = submission_of(group, "ada", "cloud", 1.0)
    assert first == submission_of(again, "ada", "cloud", 1.0)
    assert first.job_id != submission_of(other, "ada", "cloud", 1.0).job_id
    assert first.job_id != submission_of(group, "bob", "cloud", 1.0).job_id
