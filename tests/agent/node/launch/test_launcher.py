"""The specification of a worker; its start has tests with real agents."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux.hierarchies import Hierarchies
from berth_agent.messages import Order
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.node.files.folders import Folders
from berth_agent.node.files.scratch import Scratch
from berth_agent.node.launch import launcher
from berth_agent.node.launch.bundles import Bundles
from berth_agent.node.launch.containers import Containers
from berth_agent.node.launch.images import Engine
from berth_agent.node.launch.launcher import Launcher, free_port
from berth_agent.node.launch.spare_step import SpareStep
from berth_agent.node.system.inventory import Inventory
from berth_agent.node.system.login import LoginEnvironments
from berth_agent.node.system.machine import Kernel
from berth_agent.step.spec import Spec
from berth_agent.tokens import NodeTokens
from tests.agent.node_bench import launch

pytestmark = pytest.mark.process
PODMAN = """#!/bin/sh
echo '[{"Id": "1", "RepoTags": ["r.example/train:1"]}]'
"""


class Bench:
    """A launcher whose engine has one image."""

    def __init__(self, folder: Path) -> None:
        program = folder / "podman"
        program.write_text(PODMAN)
        program.chmod(0o755)
        self.config = Config(
            state=str(folder / "state"), run=str(folder / "run"), image_mounts={"/data": "ro"}
        )
        self.folders = Folders(self.config)
        containers = Containers(self.config, Engine(str(program), "overlay", "/images"))
        tokens = NodeTokens("n1", "0a1b2c3d4e5f")
        self.launcher = Launcher(
            self.config,
            "n1",
            self.folders,
            Hierarchies([], ""),
            Kernel(pids=True, mounts=True),
            Scratch(self.config),
            SpareStep(self.config.state, lambda: tokens),
            containers,
            Bundles(self.config, lambda: None),
            Inventory(self.config),
        )

    def specify(self, **fields: object) -> Spec:
        document = {
            "kind": "prepare",
            "position": {"seq": 1, "index": 0},
            "incarnation": "0" * 32,
            "allocation_id": "0/1/0/0",
            "launch": launch("true", **fields),
        }
        order = Order.from_json(document)
        path = self.folders.path_of(order.allocation_id)
        allocation = AllocationFolder(path, order, "token")
        allocation.write_order()
        return self.launcher._specify(allocation, f"{self.config.run}/telemetry/0-1-0-0")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    for note in Path(bench.config.work_folder).glob(".scratch/*/memory"):
        shutil.rmtree(note.read_text(), ignore_errors=True)


def test_a_container_gets_no_environment_of_a_login_shell(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result was discarded: a profile that hangs only made the start longer."""
    read = []

    def of_user(*arguments: object) -> tuple[dict[str, str], str]:
        read.append(arguments)
        return {"FROM": "profile"}, "a problem"

    monkeypatch.setattr(LoginEnvironments, "of_user", of_user)
    spec = bench.specify(image="r.example/train:1")
    assert not read and spec.notes == [] and spec.image
    assert bench.specify().env["FROM"] == "profile"


def test_of_the_machine_a_container_keeps_what_the_operator_allows_and_no_workdir(
    bench: Bench,
) -> None:
    spec = bench.specify(image="r.example/train:1", workdir="/data/../data/run")
    private = f"{bench.config.work_folder}/j1.1.0"
    assert spec.kept == [private, f"{bench.config.run}/telemetry", "/data"]
    assert (spec.workdir, spec.cwd, spec.uid) == ("/data/run", "/", None)
    spec = bench.specify(workdir="/tmp/run")
    assert "/tmp/run" in spec.kept and spec.workdir == spec.cwd == "/tmp/run"
    assert spec.owner == spec.uid


def test_a_port_of_a_gang_is_one_that_the_kernel_lends_to_no_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lent = tmp_path / "range"
    monkeypatch.setattr(launcher, "LENT", str(lent))
    lent.write_text("20100\t60999\n")
    assert {free_port(20_000, 10_000, ()) or 0 for _ in range(20)} <= {*range(20_000, 20_100)}
    lent.write_text("1024\t65535\n")
    assert free_port(20_000, 100, ()) in range(20_000, 20_100)
    lent.unlink()
    assert free_port(20_000, 2, {20_000}) in (20_001, None)
