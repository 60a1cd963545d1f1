"""The folders of a stack outside its data directory: sockets, and what other accounts enter."""

from __future__ import annotations

from pathlib import Path

from infra.machine import owned_folders
from infra.supervisor import control, parts
from infra.supervisor.running import RunningStack

LOCK = "lock"
"""File in the data directory that is locked during a start."""


def own(stack: RunningStack, pid: int) -> None:
    """Let the folders go with this process: if it is killed, the start of any stack removes them.

    Those of workers that a later start finds again are kept.
    """
    for folder in _temporary(stack):
        owned_folders.own(folder, pid, str(stack.data_dir / LOCK))


def tidy(stack: RunningStack) -> None:
    """Remove the folders that the next start makes again."""
    for folder in _temporary(stack):
        owned_folders.remove(folder)


def of_workers(stack: RunningStack) -> list[Path]:
    """Return the folders of workers, which may be outside the data directory."""
    return [folder for folder in (stack.work, stack.agent_run) if folder is not None]


def _temporary(stack: RunningStack) -> list[Path]:
    folders = [control.socket_path(stack.data_dir).parent, parts.socket_folder(stack)]
    if stack.broker == "embedded":
        folders += of_workers(stack)
    return [folder for folder in folders if not folder.is_relative_to(stack.data_dir)]
