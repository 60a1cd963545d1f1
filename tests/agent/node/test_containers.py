"""Refusals of images, and the command of their engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from berth_agent.messages import Launch
from berth_agent.node import machine
from berth_agent.node.config import Config
from berth_agent.node.containers import Containers, find_engine
from berth_agent.node.machine import Kernel
from berth_agent.node.users import WorkerUser
from berth_agent.step.checks import StartRefused
from tests.agent.node_bench import launch

USER = WorkerUser(70_004, 70_004, (70_004, 70_100), "", "")


def command(tmp_path: Path, **fields: object) -> list[str]:
    order = Launch.from_json(launch(["python", "train.py"], image="torch:2", **fields))
    private = "/work/j1.1.0"
    folders = ("/run/berth-agent/telemetry", private, order.workdir or private)
    config = Config(image_mounts={"/data": "ro"})
    return Containers(config, "/usr/bin/podman").command(
        order, "0123", USER, str(tmp_path), *folders, {"RANK": "0", "CUDA_VISIBLE_DEVICES": "2,5"}
    )


def test_a_container_gets_the_user_and_the_variables_of_its_job_in_a_closed_file(
    tmp_path: Path,
) -> None:
    words = command(tmp_path, env={"KEY": "secret"})
    assert words[-2:] == ['--entrypoint=["python", "train.py"]', "0123"]
    assert {"--user=70004:70004", "--group-add=70100", "--workdir=/work/j1.1.0"} <= set(words)
    assert "--volume=/data:/data:ro" in words and "--volume=/tmp:/tmp:rw" in words
    written = tmp_path / "env"
    assert written.stat().st_mode & 0o777 == 0o600 and not any("secret" in word for word in words)
    lines = written.read_text().splitlines()
    assert {"KEY=secret", "RANK=0", "CUDA_VISIBLE_DEVICES=2,5"} <= set(lines)
    assert not any(line.startswith("PATH=") for line in lines), "that of the image holds"


def test_a_container_gets_the_gpus_of_its_allocation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "gpu_uuids", lambda: [f"GPU-{n}" for n in range(8)])
    words = command(tmp_path, gpus=[2, 5])
    devices = [word for word in words if word.startswith("--device")]
    assert devices == ["--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=5"]
    assert "CUDA_VISIBLE_DEVICES=0,1" in (tmp_path / "env").read_text().splitlines()


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
def test_a_container_is_refused_what_it_cannot_have(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(StartRefused) as refusal:
        command(tmp_path, **fields)
    assert (refusal.value.reason, refusal.value.permanent) == (reason, True)
    for workdir in ("/data/run", "/tmp", "/work/j1.1.0/sub"):
        assert f"--workdir={workdir}" in command(tmp_path, workdir=workdir)


def test_a_machine_without_namespaces_has_no_engine() -> None:
    assert find_engine(Config(), Kernel(pids=False, mounts=True)) == ""
