"""Nodes and gangs as Ray's dashboard shows them, release 2.60."""

from __future__ import annotations

from typing import Any

import pytest

from services.executor.core.engines.contract import EnginePhase, GangProgress, RankEnd
from services.executor.core.ray.names import ref_of
from services.executor.core.ray.parse import jobs_of, nodes_of, own_rows, unproven

GANG = "berth:here:gpu:1/5/0"
BEGUN = GangProgress(is_begun=True)
FORBIDDEN = GangProgress(is_forbidden=True)
DIED = {"status": "FAILED", "error_type": "JOB_SUPERVISOR_ACTOR_DIED", "message": "node died"}


def row(rank: int, status: str = "RUNNING", **more: Any) -> dict[str, Any]:
    metadata = {
        "berth.identity": GANG,
        "berth.rank": str(rank),
        "berth.world": "2",
        "berth.node": f"n{rank}",
        "berth.gpus": "4",
    }
    return {
        "submission_id": f"{ref_of(GANG)}.{rank}",
        "status": status,
        "metadata": metadata,
        "message": "",
        "error_type": None,
        "driver_exit_code": None,
        **more,
    }


def job(*rows: dict[str, Any], noted: GangProgress = BEGUN, held: bool = False) -> Any:
    gangs = own_rows(rows)
    [made] = jobs_of(gangs, {GANG: noted}, {GANG} if held else set())
    return made


def a_node(name: str, node_id: str, **more: Any) -> dict[str, Any]:
    resources = {"CPU": 8.0, "GPU": 4.0, "memory": 2.0**34, "accelerator_type:H100": 1.0}
    return {
        "node_id": node_id,
        "node_ip": "10.0.0.3",
        "node_name": name,
        "state": "ALIVE",
        "start_time_ms": 5,
        "resources_total": resources,
        **more,
    }


def test_a_node_is_as_it_last_joined() -> None:
    old = a_node("n1", "aa", state="DEAD", start_time_ms=1)
    nodes = nodes_of([a_node("n1", "bb"), old])
    assert list(nodes) == ["n1"]
    node = nodes["n1"]
    assert (node.gpus, node.gpu_type, node.cpus, node.mem_gib) == (4, "h100", 8, 16)
    assert (node.address, node.boot_id, node.responds) == ("10.0.0.3", "bb", True)
    assert not nodes_of([a_node("n1", "bb", state="DEAD")])["n1"].responds


def test_of_two_nodes_of_one_name_the_living_one_counts() -> None:
    later = a_node("n1", "bb", state="DEAD", start_time_ms=9)
    assert nodes_of([later, a_node("n1", "aa")])["n1"].boot_id == "aa"


def test_a_head_without_cores_is_no_node() -> None:
    assert nodes_of([a_node("head", "aa", resources_total={"memory": 1.0})]) == {}


def test_a_gang_runs_when_all_of_its_jobs_do() -> None:
    running = job(row(1), row(0))
    assert running.phase is EnginePhase.RUNNING and running.gpu_counts == {"n0": 4, "n1": 4}
    assert running.ref == "berth~here~gpu~1-5-0" and not running.is_partial
    waiting = job(row(0), row(1, "PENDING", message="waiting for resources"), noted=GangProgress())
    assert waiting.phase is EnginePhase.PENDING and waiting.waits_for == "waiting for resources"
    assert job(row(0), noted=GangProgress()).is_partial


def test_what_is_forbidden_holds_nothing_while_it_waits_in_ray() -> None:
    waits = job(row(0, "PENDING"), noted=FORBIDDEN)
    assert waits.phase is EnginePhase.ENDED and not waits.is_kept
    assert job(row(0, "PENDING"), row(1), noted=FORBIDDEN).phase is EnginePhase.RUNNING


def test_a_failed_worker_is_one_of_a_gang_that_has_failed() -> None:
    failed = row(1, "FAILED", error_type="JOB_ENTRYPOINT_COMMAND_ERROR", driver_exit_code=5)
    one = job(row(0), failed)
    assert one.has_failed and one.exit_code == 5 and one.phase is EnginePhase.RUNNING
    assert one.failure.reason == ""
    before = job(failed, row(0, "SUCCEEDED"), noted=GangProgress())
    assert before.failure.reason == "engine_refused"
    assert job(row(0, "STOPPED"), row(1, "STOPPED")).failure.reason == "engine_cancelled"


def test_a_gang_that_ray_lost_is_held_until_its_wrappers_have_ended_it() -> None:
    rows = (row(0, **DIED), row(1, "SUCCEEDED"))
    assert unproven(own_rows(rows), {GANG: BEGUN}) == {GANG}
    assert job(*rows, held=True).phase is EnginePhase.ENDING
    over = job(*rows)
    assert over.phase is EnginePhase.ENDED and over.failure.reason == "step_lost"
    assert over.is_kept, "until it is forgotten, Ray lists it"


def test_a_gang_of_which_ray_forgot_one_job_is_held_for_that_worker() -> None:
    ended = row(1, "SUCCEEDED")
    assert unproven(own_rows([ended]), {GANG: BEGUN}) == {GANG}
    noted = GangProgress(is_begun=True, ends={0: RankEnd(0, 1, 1)})
    assert unproven(own_rows([ended]), {GANG: noted}) == set()


def test_a_worker_that_noted_its_end_proves_it() -> None:
    noted = GangProgress(is_begun=True, ends={0: RankEnd(137, 1, 1)})
    assert unproven(own_rows([row(0, **DIED), row(1, "SUCCEEDED")]), {GANG: noted}) == set()
    assert unproven(own_rows([row(0, **DIED), row(1, **DIED)]), {GANG: noted}) == {GANG}


def test_a_gang_that_ray_forgot_is_held_as_well() -> None:
    assert unproven({}, {GANG: BEGUN}) == {GANG}
    assert unproven({}, {GANG: GangProgress()}) == set()
    [held] = jobs_of({}, {GANG: BEGUN}, {GANG})
    [over] = jobs_of({}, {GANG: BEGUN}, set())
    assert (held.phase, over.phase) == (EnginePhase.ENDING, EnginePhase.ENDED)
    assert over.failure.reason == "step_lost"


def test_a_job_without_the_metadata_of_berth_is_none_of_its_own() -> None:
    assert own_rows([{"submission_id": "x", "metadata": None}, {"metadata": {"a": "b"}}]) == {}


@pytest.mark.parametrize(
    "forged",
    [
        {"berth.identity": "mine"},
        {"berth.rank": "1"},
        {"berth.rank": "x"},
        {"berth.world": "-2"},
        {"berth.gpus": None},
        {"berth.node": ""},
    ],
)
def test_metadata_that_others_wrote_makes_no_job_of_berth(forged: dict[str, Any]) -> None:
    own = row(0)
    assert list(own_rows([own])) == [GANG]
    assert own_rows([{**own, "metadata": {**own["metadata"], **forged}}]) == {}
    assert own_rows([{**own, "submission_id": "theirs.0"}]) == {}
