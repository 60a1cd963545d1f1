"""Each recipe of the contributors' page applies to this code, and its commands succeed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text()
COPIED = (
    "benchmarks",
    "cli",
    "docs",
    "infra",
    "services",
    "shared",
    "simulator",
    "tests",
    "training",
    "pyproject.toml",
)
RECIPES = {
    section.partition("\n")[0]: section
    for section in PAGE.split("\n## ")[1:]
    if section.startswith("Add ")
}

pytestmark = [pytest.mark.parts, pytest.mark.process]


def blocks(section: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path)
    return tmp_path


def run(command: list[str], folder: Path, text: str | None = None) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**env, "PYTHONPATH": str(folder)},
        input=text,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_page_has_the_six_recipes() -> None:
    wanted = {"a pool setting", "a CLI verb", "a policy", "an event", "a read model", "a service"}
    assert {name.removeprefix("Add ") for name in RECIPES} == wanted


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_works_as_it_stands(name: str, copy: Path) -> None:
    for diff in blocks(RECIPES[name], "diff"):
        run(["git", "apply", "-C1", "--recount", "-"], copy, diff)
    commands = "".join(blocks(RECIPES[name], "sh")).strip().splitlines()
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "python"
        run([sys.executable, *arguments], copy)
