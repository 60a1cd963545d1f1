"""Code blocks of pages, and the commands among them as an operator runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE_S = 600
"""Limit of the commands of one page."""


def blocks(page: str, language: str = "sh") -> list[str]:
    """Return the contents of the page's code blocks in that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def environment(home: Path) -> dict[str, str]:
    """Return the environment of an operator's shell in the virtual environment."""
    names = ("HOME", "LANG", "TMPDIR", "PYTHONPATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "BERTH_HOME": str(home)}


def shell(script: str) -> list[str]:
    """Return the command that runs a script, which ends at the first error."""
    return ["bash", "-eu", "-o", "pipefail", "-c", script]


def run_shell(
    script: str,
    env: Mapping[str, str],
    folder: Path,
    limit_s: float = PAGE_S,
    on: Callable[[list[str]], list[str]] = list,
) -> str:
    """Run a script in a folder, where it has to succeed; return what it prints.

    `on` returns the command that runs one elsewhere, as `Host.command` does.
    """
    done = subprocess.run(
        on(shell(f"set -x\n{script}")),
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
