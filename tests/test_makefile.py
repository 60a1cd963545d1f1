"""Installations by make are announced, since they take minutes."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
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


def test_the_readme_has_the_size_of_the_installed_packages() -> None:
    locked = re.findall(
        r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.lock").read_text(), re.M
    )
    size_bytes = sum(map(installed_bytes, locked))
    stated = re.search(r"\(([0-9.]+) GB\)", (ROOT / "README.md").read_text())
    assert stated is not None
    assert float(stated[1]) * 1e9 == pytest.approx(size_bytes, rel=0.2)
    assert f"({stated[1]} GB, once)" in (ROOT / "Makefile").read_text()


def installed_bytes(package: str) -> int:
    """Return the bytes of a package's files; 0 for one that is not for this platform."""
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        return 0
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file())
