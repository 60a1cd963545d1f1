"""The model of the fencing protocol: its rules suffice, and each of them is necessary.

`fence_model.cpp` searches all interleavings of one faulty node and a healthy one (or two), with
late, lost and repeated messages. Two searches of minutes are left to those who change a rule: run
the program without arguments.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONG = ("H7", "H12", "H15", "H16", "H17")
"""Configurations that take more than ten seconds."""
HONEST = tuple(name for name in (f"H{n}" for n in range(1, 19)) if name not in LONG)
REDUNDANT = ("R19b", "R27")
"""Removals that another rule covers: the agent stays, or the step refuses late extensions too."""

pytestmark = [pytest.mark.parts, pytest.mark.process]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    program = tmp_path_factory.mktemp("model") / "fence_model"
    source = HERE / "fence_model.cpp"
    subprocess.run([compiler, "-O2", "-std=c++17", "-o", program, source], check=True)
    return program


def results(model: Path, prefix: str) -> dict[str, str]:
    """Return the line of each configuration whose name begins with the prefix, by its number."""
    command = [str(model), prefix]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    return {line.split()[0]: line for line in finished.stdout.splitlines()}


@pytest.mark.parametrize("name", HONEST)
def test_the_rules_suffice(model: Path, name: str) -> None:
    line = results(model, f"{name} ")[name]
    assert " OK" in line and "RED" not in line and "LIMIT" not in line, line


def test_each_rule_is_necessary(model: Path) -> None:
    lines = results(model, "R")
    assert len(lines) > 30
    green = {name for name, line in lines.items() if "RED" not in line}
    assert green == set(REDUNDANT)
