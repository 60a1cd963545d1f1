"""The installation that a command talks to: a local stack, or an address and a key."""

from __future__ import annotations

import os
from pathlib import Path

from berth_client import installation
from berth_client.installation import (
    CA,
    DATA,
    DATA_VARIABLE,
    DEMO_DATA,
    KEY_FILE,
    SIMULATION_DATA,
    STACK_FILE,
    URL,
    find_installation,
    read_stack,
)
from berth_client.installation import InstallationAddress as Target
from berth_client.installation import stack_folder as data_dir
from cli.api.failures import cli_errors

__all__ = [
    "CA",
    "DATA",
    "DATA_VARIABLE",
    "DEMO_DATA",
    "SIMULATION_DATA",
    "STACK_FILE",
    "Target",
    "data_dir",
    "is_in_memory",
    "key_of",
    "no_stack",
    "store_key",
    "target",
]


def target(data: Path | None) -> Target:
    """Return the target from `BERTH_URL` and `BERTH_KEY`, else from the stack's files."""
    with cli_errors():
        return find_installation(data)


def no_stack(folder: Path) -> str:
    """Return the text about a folder in which no stack runs."""
    return f"no stack is running in {folder}; `berth up` starts one"


def key_of(folder: Path) -> str:
    """Return the key in the folder of a stack, empty without one."""
    with cli_errors():
        return installation.key_of(folder)


def store_key(folder: Path, key: str) -> Path:
    """Store the key in a file of mode 0600."""
    path = folder / KEY_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(key + "\n")
    return path


def is_in_memory(data: Path | None) -> bool:
    """Return whether the target is a local stack that keeps its data in memory alone."""
    if data is None and os.environ.get(URL):
        return False
    try:
        return read_stack(data_dir(data)).get("broker") == "embedded"
    except (OSError, ValueError):
        return False
