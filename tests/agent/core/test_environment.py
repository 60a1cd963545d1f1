"""Variables of workers, as the libraries of distributed training read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.environment import (
    environment,
    master_port_variables,
    own_variables,
    parse_environment,
)
from berth_agent.messages import Launch

GANGS = st.lists(st.integers(1, 8), min_size=1, max_size=6)
"""Workers of each node of a gang."""


def launches(workers_of_nodes: list[int], gpus: int = 1) -> list[Launch]:
    world_size = sum(workers_of_nodes)
    return [
        Launch(
            job_id="j1",
            tenant="vision",
            attempt=2,
            rank=sum(workers_of_nodes[:node]) + local,
            world_size=world_size,
            local_rank=local,
            local_world_size=count,
            node_rank=node,
            nodes=len(workers_of_nodes),
            gpus=tuple(range(local * gpus, (local + 1) * gpus)),
            gpu_milli=1000,
            cpus=1.0,
            mem_gib=1.0,
            grace_s=30.0,
            master_addr="10.0.0.1",
        )
        for node, count in enumerate(workers_of_nodes)
        for local in range(count)
    ]


def variables(launch: Launch, **login: str) -> dict[str, str]:
    return environment(login, launch.env, own_of(launch))


def own_of(launch: Launch) -> dict[str, str]:
    return own_variables(launch, node_id="n1", token="n1:t", telemetry="/run/s")


@given(GANGS, st.integers(0, 8))
def test_each_worker_is_a_node_of_its_own_to_torch(workers: list[int], gpus: int) -> None:
    """Lightning computes the rank, DDP picks its device by LOCAL_RANK: both must be right."""
    for launch in launches(workers, gpus):
        env = variables(launch)
        number = {name: int(env[name]) for name in ("NODE_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")}
        rank = number["NODE_RANK"] * number["LOCAL_WORLD_SIZE"] + number["LOCAL_RANK"]
        assert rank == int(env["RANK"]) < int(env["WORLD_SIZE"])
        visible = [g for g in env["CUDA_VISIBLE_DEVICES"].split(",") if g]
        assert len(visible) == gpus and (not gpus or number["LOCAL_RANK"] < len(visible))
        assert env["GROUP_RANK"] == env["NODE_RANK"]
        assert int(env["GROUP_WORLD_SIZE"]) * number["LOCAL_WORLD_SIZE"] == int(env["WORLD_SIZE"])


@given(GANGS)
def test_torchrun_within_each_worker_sees_one_group(workers: list[int]) -> None:
    """`torchrun --nnodes $WORLD_SIZE --node-rank $RANK`: every node once, one master."""
    envs = [variables(launch) for launch in launches(workers)]
    assert sorted(int(env["RANK"]) for env in envs) == list(range(int(envs[0]["WORLD_SIZE"])))
    assert {env["MASTER_ADDR"] for env in envs} == {"10.0.0.1"}


def test_jax_finds_its_coordinator_and_process() -> None:
    env = {**variables(launches([2])[1]), **master_port_variables(23456)}
    coordinator = f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
    assert (coordinator, env["WORLD_SIZE"], env["RANK"]) == ("10.0.0.1:23456", "2", "1")


def test_where_a_worker_really_is_has_names_of_berth() -> None:
    env = variables(launches([1, 2])[2])
    really = {"BERTH_NODE_RANK": "1", "BERTH_NODES": "2", "BERTH_LOCAL_RANK": "1"}
    assert really.items() <= env.items() and env["BERTH_LOCAL_WORLD_SIZE"] == "2"
    assert env["BERTH_ATTEMPT"] == "2"


def test_a_job_replaces_the_login_and_not_berth() -> None:
    values: dict[str, Any] = launches([1])[0].to_json()
    launch = Launch.from_json({**values, "env": {"PATH": "/job", "RANK": "7", "LR": "0.1"}})
    env = variables(launch, PATH="/login", EDITOR="vi")
    assert (env["PATH"], env["RANK"], env["LR"], env["EDITOR"]) == ("/job", "0", "0.1", "vi")


def test_names_of_berth_are_taken_from_no_job_and_no_login() -> None:
    values: dict[str, Any] = launches([1])[0].to_json()
    names = {"BERTH_ARRAY_INDEX": "9", "BERTH_WORKDIR": "/evil", "BERTH_JOB_ID": "other"}
    launch = Launch.from_json({**values, "env": {**names, "LR": "0.1"}})
    env = variables(launch, **names)
    assert {n: v for n, v in env.items() if n.startswith("BERTH_")}.items() <= own_of(
        launch
    ).items()
    assert env["BERTH_JOB_ID"] == "j1" and env["LR"] == "0.1"


def test_indices_mean_what_nvidia_smi_shows() -> None:
    assert variables(launches([1])[0])["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_the_page_of_nodes_names_every_variable() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations" / "nodes.md").read_text()
    table = page.partition("## What a worker sees")[2].partition("\n\n`NODE_RANK")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    launch = Launch.from_json({**launches([1])[0].to_json(), "array_index": 3})
    own = {**variables(launch), **master_port_variables(1)}
    assert named == own.keys() - {"PATH", "LANG"}


def test_an_unknown_port_is_left_out() -> None:
    assert master_port_variables(None) == {}


def test_etc_environment_is_parsed() -> None:
    text = "# comment\nPATH=\"/usr/bin:/opt/bin\"\nexport A='b c'\nB=x=y\nnot a variable\n1=2\n"
    assert parse_environment(text) == {"PATH": "/usr/bin:/opt/bin", "A": "b c", "B": "x=y"}
