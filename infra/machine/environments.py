"""Virtual environments of packages that the project does not depend on, in the user's cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.machine.maven import cache_dir

INSTALL_S = 900.0


class EnvironmentMissing(Exception):
    """The environment cannot be made here; the text says why."""


def environment(name: str, packages: Sequence[str]) -> Path:
    """Return the folder of the environment, made on first use. Raises EnvironmentMissing."""
    folder = cache_dir(name)
    done = folder / "installed"
    if done.is_file():
        return folder
    commands = [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python_of(folder)), "-m", "pip", "install", "-q", *packages],
    ]
    for command in commands:
        _run(command, name)
    done.touch()
    return folder


def python_of(folder: Path) -> Path:
    return folder / "bin/python"


def _run(command: Sequence[str], name: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_S, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise EnvironmentMissing(f"{name} cannot be installed: {lines[-1]}") from None
