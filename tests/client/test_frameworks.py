"""Launchers get what the gang has, and run the program in the Python that the command names."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from berth_client import frameworks
from berth_client.frameworks import BadFramework, jax_command, launched, torchrun_command
from shared.contracts.job_spec import Gang, JobSpec

GANG = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "n1", "MASTER_PORT": "7000"}
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


def test_the_default_of_gpus_is_that_of_the_contract() -> None:
    assert Gang().gpus_per_worker == frameworks.GPUS_PER_WORKER


def test_a_launched_job_is_an_ordinary_one_with_another_command() -> None:
    spec = {"name": "a", "command": ["train.py"], "gang": {"workers": 2, "gpus_per_worker": 4}}
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
@pytest.mark.parametrize(("framework", "module"), [("torchrun", "torch"), ("jax", "jax")])
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
        ("ray", ["train.py"], "ray is not built yet; torchrun or jax is allowed"),
        ("mpi", ["train.py"], "mpi is not built yet; torchrun or jax is allowed"),
        ("horovod", ["train.py"], "'horovod'; torchrun or jax is allowed"),
        ("torchrun", [], "torchrun needs a command"),
        ("jax", ["python3", "-u", "train.py"], "without options of Python"),
        ("jax", ["python3"], "a Python file"),
        ("jax", ["-m"], "a Python file"),
    ],
)
def test_what_cannot_be_launched_is_refused(framework: str, command: list[str], rule: str) -> None:
    with pytest.raises(BadFramework, match=rule):
        launched(framework, {"command": command})


def test_commands_stay_within_the_bounds_of_the_contract() -> None:
    for framework in frameworks.FRAMEWORKS:
        JobSpec.model_validate(launched(framework, {"name": "a", "command": ["train.py"]}))
