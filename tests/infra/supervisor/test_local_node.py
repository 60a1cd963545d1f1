"""The identity and the settings of the node that a stack makes of its own machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.node.config import load
from berth_agent.node.credentials.identity import read_identity
from infra.machine.folders import LONGEST_SOCKET, LONGEST_TELEMETRY, agent_run_dir
from infra.supervisor import control, local_node
from infra.supervisor.local_node import LocalNode
from infra.supervisor.running import Broker, RunningStack
from infra.supervisor.stack import AGENT, AGENT_EXECUTOR
from shared.contracts.keys import hash_secret

NODE = LocalNode("local", "slot", 2, 4.0, 8.0)


def a_stack(folder: Path, broker: Broker = "embedded", port: int = 7001) -> RunningStack:
    return RunningStack(
        data_dir=folder,
        broker=broker,
        partitions=4,
        kafka="127.0.0.1:1",
        postgres="",
        gateway="http://127.0.0.1:7000",
        llm="",
        otlp="",
        state=folder / broker / "state",
        work=folder / broker / "work",
        agent_run=folder / "run",
        ports={AGENT_EXECUTOR: {"http": port}},
    )


@pytest.mark.parametrize(("broker", "keeps"), [("embedded", False), ("kafka", True)])
def test_the_agent_accepts_its_settings_and_keeps_workers_where_the_log_is_kept(
    tmp_path: Path, broker: Broker, keeps: bool
) -> None:
    stack = a_stack(tmp_path, broker)
    local_node.prepare(stack, replace(NODE, settings={"rack": 'r"1'}))
    config = load(stack.agent / "config.toml", {})
    assert (config.gpu_type, config.gpus, config.cpus, config.mem_gib) == ("slot", 2, 4.0, 8.0)
    assert (config.keep_workers, config.cgroups, config.rack) == (keeps, False, 'r"1')
    assert (config.state, config.run) == (str(stack.agent), str(stack.agent_run))


def test_access_gets_the_hash_of_the_secret_and_a_name_of_the_folder(tmp_path: Path) -> None:
    identity, token, enrolment = local_node.new_identity(a_stack(tmp_path), "local")
    assert enrolment.credential_sha256 == hash_secret(identity.secret)
    assert (enrolment.token_id, token.pool, token.approve) == (token.token_id, "local", True)
    again, _, _ = local_node.new_identity(a_stack(tmp_path), "local")
    other, _, _ = local_node.new_identity(a_stack(tmp_path / "other"), "local")
    assert identity.node_id == again.node_id != other.node_id
    assert identity.secret != again.secret


def test_a_later_start_keeps_the_identity_and_gives_it_the_present_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(control, "start", lambda data_dir, name: started.append(name))
    stack = a_stack(tmp_path)
    local_node.prepare(stack, NODE)
    assert not local_node.has_identity(stack)
    identity, _, _ = local_node.new_identity(stack, "local")
    local_node.store_identity(stack, identity)
    assert local_node.has_identity(stack)
    local_node.start_agent(a_stack(tmp_path, port=7009))
    kept = read_identity(str(stack.agent))
    assert (kept.node_id, kept.secret) == (identity.node_id, identity.secret)
    assert (identity.executors, kept.executors) == (
        ("http://127.0.0.1:7001",),
        ("http://127.0.0.1:7009",),
    )
    assert started == [AGENT]


def test_only_the_running_process_can_be_ready(tmp_path: Path) -> None:
    stack = a_stack(tmp_path)
    local_node.prepare(stack, NODE)
    assert not local_node.is_ready(stack, 7)
    run = stack.agent_run
    assert run is not None
    status = '{"pid": 7, "state": "active", "executor": "http://127.0.0.1:7001"}'
    (run / "status.json").write_text(status)
    assert local_node.is_ready(stack, 7)
    assert not local_node.is_ready(stack, 8)
    (run / "status.json").write_text(status.replace("active", "registering"))
    assert not local_node.is_ready(stack, 7)


def test_sockets_of_a_deep_data_folder_are_elsewhere(tmp_path: Path) -> None:
    deep = agent_run_dir(tmp_path / ("x" * 120))
    assert not deep.is_relative_to(tmp_path)
    assert len(str(deep / LONGEST_TELEMETRY)) <= LONGEST_SOCKET
