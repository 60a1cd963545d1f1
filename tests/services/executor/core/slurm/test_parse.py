"""Answers of Slurm 22.05, as it wrote them, and of later releases."""

from __future__ import annotations

from typing import Any

from services.executor.core.engines.contract import EnginePhase
from services.executor.core.slurm.parse import jobs_of, nodes_of, number, states_of

NODE: dict[str, Any] = {
    "name": "g1",
    "address": "127.0.0.1",
    "boot_time": 1795835521,
    "cpus": 16,
    "gres": "gpu:h100:8",
    "partitions": ["main"],
    "real_memory": 64000,
    "reason": "",
    "state": "mixed",
    "state_flags": [],
}
JOB: dict[str, Any] = {
    "job_id": 12,
    "comment": "berth:a:b:0/1/2",
    "exit_code": 0,
    "gres_detail": ["gpu:h100:2(IDX:0-1)", "gpu:h100:2(IDX:3,5)"],
    "job_state": "RUNNING",
    "nodes": "g[1-2]",
    "restart_cnt": 0,
    "state_reason": "None",
    "user_name": "ada",
}


def node(**fields: Any) -> Any:
    [made] = nodes_of({"nodes": [{**NODE, **fields}]}, "main").values()
    return made


FOLDERS = {"/shared/berth+a+b+0-1-2": "berth:a:b:0/1/2"}


def job(**fields: Any) -> Any:
    [made] = jobs_of({"jobs": [{**JOB, **fields}]}, {"ada"}, FOLDERS)
    return made


def test_a_node_has_what_slurm_says() -> None:
    made = node()
    assert (made.node_id, made.gpus, made.gpu_type, made.cpus) == ("g1", 8, "h100", 16.0)
    assert (made.mem_gib, made.address) == (62.5, "127.0.0.1")
    assert (made.responds, made.drained) == (True, "")


def test_gpus_of_several_types_and_none() -> None:
    assert (node(gres="gpu:A100:4(S:0-1),gpu:t4:2").gpu_type, node(gres="gpu:2").gpu_type) == (
        "a100",
        "gpu",
    )
    assert node(gres="gpu:A100:4(S:0-1),gpu:t4:2").gpus == 6
    assert (node(gres="").gpu_type, node(gres="shard:gpu:8").gpus) == ("cpu", 0)


def test_a_silent_and_a_drained_node_differ() -> None:
    assert not node(state="down").responds
    assert not node(state_flags=["NOT_RESPONDING"]).responds
    assert not node(state=["IDLE", "NOT_RESPONDING"]).responds
    drained = node(state="idle", state_flags=["DRAIN"], reason="fan")
    assert drained.responds and drained.drained == "Slurm: DRAIN, fan"


def test_nodes_of_other_partitions_and_names_that_berth_lacks_are_not_served() -> None:
    rows = {"nodes": [NODE, {**NODE, "name": "G2"}, {**NODE, "name": "g3", "partitions": ["cpu"]}]}
    assert list(nodes_of(rows, "main")) == ["g1"]
    assert list(nodes_of(rows, "")) == ["g1", "g3"]


def test_a_job_has_its_gpus_by_node() -> None:
    made = job()
    assert (made.ref, made.identity, made.phase) == ("12", "berth:a:b:0/1/2", EnginePhase.RUNNING)
    assert made.gpus == {"g1": (0, 1), "g2": (3, 5)}
    assert made.owner == "Slurm job 12 of ada"


def test_a_waiting_job_has_its_reason() -> None:
    waiting = job(job_state="PENDING", nodes="", gres_detail=[], state_reason="Resources")
    assert (waiting.phase, waiting.waits_for, waiting.is_refused) == (
        EnginePhase.PENDING,
        "Resources",
        False,
    )
    assert job(job_state="PENDING", state_reason="PartitionDown").is_refused


def test_jobs_are_ordered_by_their_age() -> None:
    rows = {"jobs": [{**JOB, "job_id": 12}, {**JOB, "job_id": 9}]}
    assert [made.ref for made in jobs_of(rows, {"ada"}, FOLDERS)] == ["9", "12"]


def test_later_releases_write_objects_and_lists() -> None:
    later = job(
        job_id=12,
        job_state=["FAILED", "COMPLETING"],
        restart_cnt={"set": True, "number": 1},
        exit_code={"return_code": {"set": True, "number": 3}, "signal": {"id": {"number": 0}}},
    )
    assert (later.phase, later.restarts, later.exit_code) == (EnginePhase.ENDING, 1, 3)
    assert number({"set": False, "number": 7}) == 0 and number(None) == 0
    assert states_of("IDLE+DRAIN*") == {"IDLE", "DRAIN"}


def test_a_job_in_the_folder_of_a_gang_is_that_gangs_whatever_its_user_makes_its_comment() -> None:
    [folder] = FOLDERS
    for comment in ("", "mine", "berth:a:b:0/9/9"):
        changed = job(comment=comment, current_working_directory=folder)
        assert changed.identity == FOLDERS[folder]
    assert job(comment="mine", current_working_directory="/home/ada").identity == "mine"
    assert job(user_name="eve", current_working_directory=folder).identity == ""


def test_the_comment_of_a_user_as_whom_berth_submits_nothing_is_not_believed() -> None:
    forged = job(user_name="eve")
    assert (forged.identity, forged.user, forged.owner) == ("", "eve", "Slurm job 12 of eve")
    assert job().identity == JOB["comment"]
    assert job(user_name="", user_id=1234).identity == ""
