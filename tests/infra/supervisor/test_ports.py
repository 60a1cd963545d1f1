"""Ports of a stack over restarts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cli.stack.addresses import node_lines
from infra.supervisor.ports import choose_ports, earlier_ports
from infra.supervisor.running import Broker, RunningStack, save

WANTED = [("gateway", "http"), ("gateway", "metrics"), ("executor-agents", "http")]


def test_a_restart_has_the_ports_of_before_but_one_that_is_taken() -> None:
    first = choose_ports(WANTED, {})
    assert len({port for ports in first.values() for port in ports.values()}) == 3
    assert choose_ports(WANTED, first) == first
    taken = first["gateway"]["metrics"]
    with socket.create_server(("127.0.0.1", taken)):
        again = choose_ports([*WANTED, ("new", "http")], first)
    assert again["gateway"]["http"] == first["gateway"]["http"]
    assert again["gateway"]["metrics"] != taken
    assert len({port for ports in again.values() for port in ports.values()}) == 4


@pytest.fixture
def stack(tmp_path: Path) -> RunningStack:
    return RunningStack(
        data_dir=tmp_path,
        broker="kafka",
        partitions=1,
        kafka="127.0.0.1:1",
        postgres="",
        gateway="http://127.0.0.1:2",
        llm="",
        otlp="",
        state=tmp_path,
        work=tmp_path,
        ports={"gateway": {"http": 2}, "executor-agents": {"http": 3}},
    )


@pytest.mark.parametrize(
    ("before", "now", "keeps"),
    [
        ("kafka", "kafka", True),
        ("external", "external", True),
        ("kafka", "embedded", False),
        ("embedded", "embedded", False),
    ],
)
def test_ports_are_kept_with_the_data(
    stack: RunningStack, before: Broker, now: Broker, keeps: bool
) -> None:
    assert earlier_ports(stack.data_dir, now) == {}
    save(stack.model_copy(update={"broker": before}))
    assert earlier_ports(stack.data_dir, now) == (stack.ports if keeps else {})


def test_the_addresses_that_nodes_use_are_shown(stack: RunningStack) -> None:
    assert node_lines(stack) == ["gateway   http://127.0.0.1:2", "executor  http://127.0.0.1:3"]
    distant = stack.model_copy(update={"host": "10.0.0.1", "tls": True})
    assert node_lines(distant)[1] == "executor  https://10.0.0.1:3"
