"""The jobs by which Ray runs a gang: pinned, known by their metadata, and without a variable."""

from __future__ import annotations

import shlex

import pytest

from services.executor.core.ray.submission import RayOptions, job_requests, wrapper_inputs
from tests.services.executor.core.engines.looks import gang_of, placed_history

ADDRESSES = {"n1": "10.0.0.1", "n2": "10.0.0.2"}
OPTIONS = RayOptions("http://head:8265", 30.0)


def test_each_worker_is_a_job_pinned_to_its_node() -> None:
    gang = gang_of(placed_history())
    requests = job_requests(gang, "/s/g", ADDRESSES)
    assert list(requests) == [0, 1, 2]
    pinned = [set(r["entrypoint_resources"]) for r in requests.values()]
    assert pinned == [{"node:10.0.0.2"}, {"node:10.0.0.1"}, {"node:10.0.0.1"}]
    assert {r["metadata"]["berth.identity"] for r in requests.values()} == {gang.identity}
    assert requests[2]["submission_id"].endswith(".2")
    assert requests[0]["entrypoint_num_gpus"] == len(gang.workers[0].launch.gpus)


def test_a_folder_of_any_name_is_one_word_of_the_command() -> None:
    request = job_requests(gang_of(placed_history()), "/s/it's; g", ADDRESSES)[1]
    words = ["exec", "python3", "/s/it's; g/worker.py", "1"]
    assert shlex.split(request["entrypoint"]) == words


def test_workers_meet_where_ray_has_the_first_node_now() -> None:
    moved = {**ADDRESSES, "n2": "10.0.0.9"}
    inputs = wrapper_inputs(gang_of(placed_history()), OPTIONS, moved)
    assert {given["environment"]["MASTER_ADDR"] for given in inputs.values()} == {"10.0.0.9"}


def test_what_ray_shows_of_a_job_has_no_variable_of_it() -> None:
    gang = gang_of(placed_history())
    assert "env" not in str(job_requests(gang, "/s/g", ADDRESSES)[0]).lower()


def test_a_node_that_ray_does_not_show_has_no_address() -> None:
    with pytest.raises(KeyError):
        job_requests(gang_of(placed_history()), "/s/g", {})


def test_a_wrapper_renews_by_its_own_job() -> None:
    gang = gang_of(placed_history())
    given = wrapper_inputs(gang, OPTIONS, ADDRESSES)[1]
    assert given["job"] == "http://head:8265/api/jobs/berth~here~gpu~1-5-0.1"
    assert given["begins"] == "job-berth~here~gpu~1-5-0"
    assert given["environment"]["RANK"] == "1"
