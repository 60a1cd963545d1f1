"""The job that validates nodes, and its program as an argument of a command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.api.http import Json
from cli.errors import BadInput
from cli.input.validation import validation_spec
from services.failslow.validation_job import compact, program
from shared.contracts.job_spec import JobSpec


def node(name: str, gpus: int = 8, gpu_type: str = "a100", cpus: float = 64) -> Json:
    return {"node_id": name, "gpus": gpus, "gpu_type": gpu_type, "cpus": cpus}


def spec(*nodes: Json) -> Any:
    return JobSpec.model_validate(validation_spec(nodes, ("measure", "--all"), 120.0, "high"))


def test_each_worker_takes_its_whole_node() -> None:
    made = spec(node("a"), node("b"), node("c"))
    assert made.validates == ("a", "b", "c")
    assert (made.gang.workers, made.gang.gpus_per_worker, made.gang.cpus_per_worker) == (3, 8, 1)
    assert (made.command, made.walltime_s, made.priority_class) == (
        ("measure", "--all"),
        120.0,
        "high",
    )
    assert spec(node("a", 0, cpus=8), node("b", 0, cpus=6)).gang.cpus_per_worker == 6


@pytest.mark.parametrize(
    ("nodes", "rule"),
    [
        ([node("a")], "2 to 64 different nodes"),
        ([node("a"), node("a")], "2 to 64 different nodes"),
        ([node("a"), node("b", 4)], "a has 8 a100, b has 4 a100"),
        ([node("a"), node("b", gpu_type="h100")], "b has 8 h100"),
    ],
)
def test_only_nodes_that_are_alike_are_compared(nodes: list[Json], rule: str) -> None:
    with pytest.raises(BadInput, match=rule):
        validation_spec(nodes, (), 120.0, "normal")


def test_the_program_and_its_rounds_fit_the_arguments_of_a_command() -> None:
    *_, text, plan = program(64)
    assert len(text) <= 8192 >= len(plan)
    assert json.loads(plan)["rounds"][0][:2] == [[0, 1], [2, 3]]
    assert json.loads(plan)["token"] != json.loads(program(64)[3])["token"]


def test_a_compact_program_does_the_same() -> None:
    text = compact(
        '"""Words."""\ndef double(number: int) -> int:\n    """More."""\n    return 2 * number\n'
    )
    assert text == "def double(number):\n return 2 * number"
