"""Launchers get what the gang has, and run the program in the Python that the command names."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from berth_client import frameworks
from berth_client.frameworks import (
    BadFramework,
    jax_command,
    launched,
    mpi_command,
    ray_command,
    torchrun_command,
)
from shared.contracts.job_spec import Gang, JobSpec

GANG = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "n1", "MASTER_PORT": "7000"}
WITH_KEY = {"GANG_KEY": "secret://gang"}
OF_THE_GANG = [
    *("-m", "torch.distributed.run", "--nnodes", "3", "--node_rank", "1"),
    *("--master_addr", "n1", "--master_port", "7000"),
]
ECHO = """#!/bin/sh
printf '%s\\n' "$0" "$@"
"""
JAX = """
import os

class distributed:
    def initialize(*place, local_device_ids):
        assert "PLACE" not in os.environ, "joined once"
        os.environ["PLACE"] = f"{place} {local_device_ids}"
"""
PROGRAM = """
import os, sys
import jax
jax.distributed.initialize()
import beside
print(__name__, sys.argv, os.environ["PLACE"])
sys.exit(7)
"""


def test_the_defaults_of_a_worker_are_those_of_the_contract() -> None:
    gang = Gang()
    assert gang.gpus_per_worker == frameworks.GPUS_PER_WORKER
    assert gang.cpus_per_worker == frameworks.CPUS_PER_WORKER
    assert gang.mem_gib_per_worker == frameworks.MEM_GIB_PER_WORKER


def test_a_launched_job_is_an_ordinary_one_with_another_command() -> None:
    gang = {"workers": 2, "gpus_per_worker": 4}
    spec = {"name": "a", "command": ["train.py"], "gang": gang, "env": WITH_KEY}
    for framework in frameworks.FRAMEWORKS:
        changed = JobSpec.model_validate(launched(framework, spec))
        before = JobSpec.model_validate(spec)
        assert changed.model_copy(update={"command": before.command}) == before
        assert changed.command != before.command


@pytest.mark.parametrize(("gpus", "processes"), [(4, "4"), (0.5, "1"), (0, "1"), (None, "1")])
def test_a_process_is_started_for_each_gpu_and_one_at_least(
    gpus: float | None, processes: str
) -> None:
    gang = {} if gpus is None else {"gpus_per_worker": gpus}
    command = launched("torchrun", {"command": ["train.py"], "gang": gang})["command"]
    assert command[4:] == ["--nproc_per_node", processes, "train.py"]


@pytest.mark.process
def test_torchrun_gets_rank_and_address_and_the_words_of_the_command_as_they_are(
    tmp_path: Path,
) -> None:
    python = tmp_path / "python3"
    python.write_text(ECHO)
    python.chmod(0o755)
    cases = {
        ("train.py", "--name", "a b", "$RANK"): ["train.py"],
        ("python3", "-u", "train.py", "--name", "a b", "$RANK"): ["--no_python", "python3"],
        (str(python), "train.py", "--name", "a b", "$RANK"): ["--no_python", str(python)],
        ("./train", "--name", "a b", "$RANK"): ["--no_python", "./train"],
    }
    for command, first in cases.items():
        done = subprocess.run(
            torchrun_command(command, 2),
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **GANG},
            capture_output=True,
            text=True,
            check=True,
        )
        words = done.stdout.splitlines()
        launch = [*OF_THE_GANG, "--nproc_per_node", "2", *first, *command[1:]]
        assert words == [str(python), *launch]


@pytest.mark.process
@pytest.mark.parametrize("program", [["train.py"], ["-m", "train"]])
def test_a_jax_program_begins_in_its_cluster_and_may_ask_to_join_it_again(
    tmp_path: Path, program: list[str]
) -> None:
    for name, text in (("jax", JAX), ("beside", ""), ("train", PROGRAM)):
        (tmp_path / f"{name}.py").write_text(text)
    done = subprocess.run(
        jax_command([sys.executable, *program, "--steps", "5"], 2),
        env=GANG,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert "__main__" in done.stdout and "'--steps', '5']" in done.stdout
    assert "('n1:7000', 3, 1) [0, 1]" in done.stdout


@pytest.mark.process
@pytest.mark.parametrize(
    ("framework", "module"), [("torchrun", "torch"), ("jax", "jax"), ("ray", "ray")]
)
def test_a_framework_that_is_not_installed_is_named(framework: str, module: str) -> None:
    if find_spec(module):
        pytest.skip(f"{module} is installed here")
    command = launched(framework, {"command": [sys.executable, "train.py"]})["command"]
    isolated = {"PATH": os.environ["PATH"], **GANG, "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(command, env=isolated, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"No module named '{module}'" in done.stderr


@pytest.mark.parametrize(
    ("framework", "command", "rule"),
    [
        ("horovod", ["train.py"], "'horovod'; torchrun or jax or ray or mpi is allowed"),
        ("ray", [], "ray needs a command"),
        ("torchrun", [], "torchrun needs a command"),
        ("jax", ["python3", "-u", "train.py"], "without options of Python"),
        ("jax", ["python3"], "a Python file"),
        ("jax", ["-m"], "a Python file"),
    ],
)
def test_what_cannot_be_launched_is_refused(framework: str, command: list[str], rule: str) -> None:
    with pytest.raises(BadFramework, match=rule):
        launched(framework, {"command": command})


@pytest.mark.parametrize(
    ("gang", "resources"),
    [
        ({}, ["1", "1", "1"]),
        ({"gpus_per_worker": 0.5, "cpus_per_worker": 0.5}, ["1", "1", "1"]),
        ({"gpus_per_worker": 0, "cpus_per_worker": 3.5, "mem_gib_per_worker": 0}, ["0", "3", "0"]),
        ({"gpus_per_worker": 8, "mem_gib_per_worker": 1.5}, ["8", "1", "1.5"]),
    ],
)
def test_a_node_of_ray_has_the_resources_of_its_worker(
    gang: dict[str, float], resources: list[str]
) -> None:
    command = ray_command(["/opt/bin/python", "train.py"], gang)
    assert command[0] == "/opt/bin/python"
    assert command[command.index("--") + 1 :] == [*resources, "/opt/bin/python", "train.py"]


def test_a_file_is_run_by_python_on_a_cluster_and_anything_else_as_it_stands() -> None:
    assert ray_command(["train.py", "--x"], {})[-3:] == ["python3", "train.py", "--x"]
    assert ray_command(["./train"], {})[-2:] == ["1", "./train"]


@pytest.mark.parametrize("several", [{"gang": {"workers": 2}}, {"elastic": {"min_workers": 1}}])
def test_workers_that_run_what_rank_0_sends_need_a_secret(several: dict[str, object]) -> None:
    spec = {"command": ["train.py"], **several}
    with pytest.raises(BadFramework, match="GANG_KEY=secret://NAME"):
        launched("ray", spec)
    with pytest.raises(BadFramework, match="is a secret"):
        launched("ray", {**spec, "env": {"GANG_KEY": "sesame"}})
    launched("ray", {**spec, "env": WITH_KEY})
    launched("ray", {**spec, "env": {"GANG_KEY_FILE": "/home/ada/key"}})
    launched("ray", {"command": ["train.py"]})


@pytest.mark.parametrize(
    ("gang", "processes"),
    [({"gpus_per_worker": 4, "cpus_per_worker": 8}, "4"), ({"gpus_per_worker": 0}, "1")],
)
def test_mpi_has_a_process_per_gpu_or_per_core(gang: dict[str, float], processes: str) -> None:
    assert mpi_command(["./solve", "--x"], gang)[-3:] == [processes, "./solve", "--x"]
    without = {**gang, "gpus_per_worker": 0, "cpus_per_worker": 8.5}
    assert mpi_command(["./solve"], without)[-2:] == ["8", "./solve"]


def test_commands_stay_within_the_bounds_of_the_contract() -> None:
    for framework in frameworks.FRAMEWORKS:
        JobSpec.model_validate(launched(framework, {"name": "a", "command": ["train.py"]}))
