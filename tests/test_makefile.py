"""Installations by make are announced, since they take minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.process


@pytest.mark.parametrize(("target", "lines"), [("demo", 1), ("lint", 2)])
def test_a_long_installation_is_announced_before_it_begins(target: str, lines: int) -> None:
    command = ["make", "--dry-run", "--always-make", "--no-print-directory", target]
    recipe = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    before, _, _ = recipe.partition("-r requirements.lock")
    assert "into .venv" in before and "minutes" in before
    announced = [line for line in recipe.splitlines() if line.startswith('echo "Installing')]
    assert len(announced) >= lines
