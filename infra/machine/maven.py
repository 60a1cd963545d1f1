"""Java programs from Maven, kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from infra.machine.process import DidNotStart


def cache_dir(name: str) -> Path:
    """Return the directory of that name in the cache."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "berth" / name


def missing(fetched: Path) -> str:
    """Return what is missing to run what is fetched to that path, empty if nothing is."""
    if not shutil.which("java"):
        return "Java 17 or later is not installed"
    if not fetched.exists() and not shutil.which("mvn"):
        return "Maven is not installed"
    return ""


def run_tool(command: list[str]) -> None:
    """Run Maven, or a program it has fetched. Raises DidNotStart with its output."""
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise DidNotStart(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise DidNotStart(f"{command[0]}: {(error.stdout + error.stderr).strip()}") from None
