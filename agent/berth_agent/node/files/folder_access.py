"""Folders that users of tenants pass through to what is theirs, without a look at the rest."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from berth_agent import file_names
from berth_agent.node.config import Config, ConfigError
from berth_agent.step import child

LIMIT_S = 15.0


def make_passable(folder: str) -> None:
    """Make a folder, and those above it, that others may pass; one that is there stays as it is.

    Raises OSError.
    """
    for path in (*reversed(Path(folder).parents), Path(folder)):
        if not path.is_dir():
            path.mkdir(exist_ok=True)
            path.chmod(0o711)


def check_passage(config: Config) -> None:
    """Raise ConfigError where the first tenant's uid could not reach the folders of its workers.

    Each job would fail otherwise. Nothing is checked where workers run as the agent does.
    """
    if os.geteuid() != 0 or not config.uid_first:
        return
    for folder in (config.work_folder, f"{config.run}/{file_names.TELEMETRY}"):
        path = Path(folder).resolve()
        try:
            _, output = child.run(partial(_pass, config.uid_first, path), LIMIT_S)
        except child.TimedOut as error:
            raise ConfigError(f"{path}: {error}; a local disk is allowed") from None
        if output:
            raise ConfigError(output.decode("utf-8", errors="replace").strip())


def _pass(uid: int, folder: Path) -> None:
    """Write why a user without rights of its own does not pass; runs in a child."""
    os.setgroups([])
    try:
        os.setgid(uid)
        os.setuid(uid)
    except OSError as error:
        os.write(
            1, f"uid_first: {uid}: {error.strerror}; a uid of this machine is allowed".encode()
        )
        return
    for path in (*reversed(folder.parents), folder):
        try:
            os.chdir(path)
        except OSError as error:
            problem = f"{path}: {error.strerror} for uid {uid} of the first tenant"
            os.write(1, f"{problem}; chmod o+x, or uid_first = 0 (root) is allowed".encode())
            return
