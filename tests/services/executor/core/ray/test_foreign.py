"""Work in Ray that Berth did not start, each GPU counted once."""

from __future__ import annotations

from services.executor.core.ray.foreign import foreign_jobs, node_names

NAMES = {"aa": "n1", "bb": "n2"}
ACTOR = {
    "actor_id": "a1",
    "class_name": "Trainer",
    "state": "ALIVE",
    "job_id": "02",
    "name": "",
    "node_id": "aa",
    "placement_group_id": None,
    "required_resources": {"GPU": 1.5},
}
SUPERVISOR = {**ACTOR, "actor_id": "a2", "name": "_ray_internal_job_actor_mine.0"}
TASK = {
    "task_id": "t1",
    "type": "NORMAL_TASK",
    "state": "RUNNING",
    "name": "step",
    "job_id": "02",
    "node_id": "bb",
    "required_resources": {"GPU": 2.0},
}
GROUP = {
    "placement_group_id": "p1",
    "name": "big",
    "state": "CREATED",
    "bundles": [
        {"node_id": "aa", "unit_resources": {"GPU": 2.0}},
        {"node_id": "aa", "unit_resources": {"GPU": 1.0, "CPU": 1.0}},
        {"node_id": "bb", "unit_resources": {"CPU": 1.0}},
    ],
}


def test_actors_tasks_and_groups_are_counted_and_named() -> None:
    jobs = foreign_jobs([ACTOR], [TASK], [GROUP], NAMES, set())
    assert [(job.owner, job.gpu_counts) for job in jobs] == [
        ("Ray actor Trainer of job 02", {"n1": 2}),
        ("Ray placement group big", {"n1": 3}),
        ("Ray task step of job 02", {"n2": 2}),
    ]
    assert {job.identity for job in jobs} == {""}


def test_what_runs_in_a_group_is_counted_with_it() -> None:
    inside = {**ACTOR, "placement_group_id": "p1"}
    [group] = foreign_jobs([inside], [{**TASK, "placement_group_id": "p1"}], [GROUP], NAMES, set())
    assert group.ref == "p1"


def test_a_job_of_berth_is_no_work_of_others() -> None:
    assert foreign_jobs([SUPERVISOR], [], [], NAMES, {"mine.0"}) == ()
    [job] = foreign_jobs([SUPERVISOR], [], [], NAMES, {"mine.1"})
    assert job.owner == "Ray job mine.0"


def test_what_holds_no_gpu_of_a_living_node_does_not_count() -> None:
    away = {**ACTOR, "node_id": "cc"}
    none = {**ACTOR, "required_resources": {"CPU": 1.0}}
    ended = {**ACTOR, "state": "DEAD"}
    assert (
        foreign_jobs([away, none, ended], [{**TASK, "type": "ACTOR_TASK"}], [], NAMES, set()) == ()
    )
    rows = [
        {"node_id": "aa", "node_name": "n1", "node_ip": "", "state": "ALIVE"},
        {"node_id": "cc", "node_name": "n1", "node_ip": "", "state": "DEAD"},
    ]
    assert node_names(rows) == {"aa": "n1"}
