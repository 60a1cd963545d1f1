"""Refusals of images, and the command of their engine."""

from __future__ import annotations

from typing import Any

import pytest

from berth_agent.messages import Launch
from berth_agent.node.config import Config
from berth_agent.node.launch.containers import Containers, find_engine
from berth_agent.node.launch.images import Engine
from berth_agent.node.system import machine
from berth_agent.node.system.machine import Kernel
from berth_agent.node.system.users import WorkerUser
from berth_agent.step.checks import StartRefused
from berth_agent.token_names import TOKEN
from tests.agent.node_bench import launch

USER = WorkerUser(70_004, 70_004, (70_004, 70_100), "", "")


ENGINE = Engine("/usr/bin/podman", "overlay", "/images")


def specify(devices: object = "2,5", **fields: object) -> dict[str, Any]:
    order = Launch.from_json(launch(["python", "train.py"], image="torch:2", **fields))
    containers = Containers(Config(image_mounts={"/data": "ro"}), ENGINE)
    folders = ("/run/berth-agent/telemetry", "/private/j1.1.0")
    own = {"RANK": "0", "CUDA_VISIBLE_DEVICES": str(devices), TOKEN: "token"}
    return containers.specify(order, "0123", USER, *folders, own)


def command(**fields: object) -> list[str]:
    return list(specify(**fields)["argv"])


def test_a_container_gets_the_user_of_its_job_and_its_variables_by_a_file() -> None:
    spec = specify(env={"KEY": "value-90b2"})
    words = spec["argv"]
    assert words[-2:] == ['--entrypoint=["python", "train.py"]', "0123"]
    assert {"--user=70004:70004", "--group-add=70100", "--workdir=/private/j1.1.0"} <= set(words)
    assert "--volume=/data:/data:ro" in words and "--volume=/tmp:/tmp:rw" in words
    assert {"--no-healthcheck", "--image-volume=ignore", "--systemd=false"} <= set(words)
    assert not any("90b2" in word for word in (*words, *spec["env"].values()))
    known = {"KEY": "value-90b2", "RANK": "0", "CUDA_VISIBLE_DEVICES": "2,5"}
    assert known.items() <= spec["variables"].items()
    assert "PATH" not in spec["variables"], "that of the image holds"


def test_a_container_gets_the_gpus_of_its_allocation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpu_uuids", lambda: [f"GPU-{n}" for n in range(8)])
    spec = specify(gpus=[2, 5])
    devices = [word for word in spec["argv"] if word.startswith("--device")]
    assert devices == ["--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=5"]
    assert spec["variables"]["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert not [word for word in specify("", gpus=[])["argv"] if word.startswith("--device")]


@pytest.mark.parametrize("gpus", [[], [2, 5]])
def test_a_hook_of_the_node_gives_a_container_no_other_gpus(gpus: list[int]) -> None:
    spec = specify(gpus=gpus, env={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert spec["variables"]["NVIDIA_VISIBLE_DEVICES"] == "void"


def test_a_container_gets_an_instance_of_mig_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpu_uuids", lambda: ["GPU-0"])
    spec = specify("MIG-0a", gpus=[3])
    devices = [word for word in spec["argv"] if word.startswith("--device")]
    assert devices == ["--device=nvidia.com/gpu=MIG-0a"]
    assert spec["variables"]["CUDA_VISIBLE_DEVICES"] == "MIG-0a"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"workdir": "/etc"}, "workdir_missing"),
        ({"workdir": "/database"}, "workdir_missing"),
        ({"workdir": "/tmp/of-the-node"}, "workdir_missing"),
        ({"workdir": "/run/berth-agent/telemetry"}, "workdir_missing"),
        ({"env": {"TWO": "a\nb"}}, "command_unusable"),
        ({"env": {"A B": "c"}}, "command_unusable"),
    ],
)
def test_a_container_is_refused_what_it_cannot_have(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(StartRefused) as refusal:
        command(**fields)
    assert (refusal.value.reason, refusal.value.permanent) == (reason, True)
    for workdir in ("/data/run", "/tmp", "/private/j1.1.0/sub"):
        assert f"--workdir={workdir}" in command(workdir=workdir)


def test_a_machine_without_namespaces_has_no_engine() -> None:
    assert find_engine(Config(), Kernel(pids=False, mounts=True)) is None
