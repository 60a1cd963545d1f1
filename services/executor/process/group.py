"""Lists and kills all processes that a worker started, from Linux's /proc."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.executor.process.environment import TOKEN

PROC = Path("/proc")
DEAD = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The relevant part of /proc/<pid>/stat."""

    pid: int
    state: str
    group: int
    session: int
    started_ticks: int


def status(pid: int) -> ProcessStatus | None:
    """Return the status of a process, None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    rest = text.rpartition(")")[2].split()
    return ProcessStatus(pid, rest[0], int(rest[2]), int(rest[3]), int(rest[19]))


def left_behind(token: str, leader: int | None = None) -> list[int]:
    """Return living processes of a worker: in its leader's group or session, or with its token.

    The token also identifies those that began a session of their own.
    """
    mark = f"{TOKEN}={token}".encode()
    return [s.pid for s in _living() if leader in (s.group, s.session) or _has_token(s.pid, mark)]


def leader_is(pid: int, started_ticks: int) -> bool:
    """Return whether the process is the one that was started, not a later one of its number."""
    present = status(pid)
    return present is not None and present.started_ticks == started_ticks


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal a group whose leader is not reaped yet, so that its number is not reused."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return


def kill_each(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _living() -> Iterator[ProcessStatus]:
    for entry in os.listdir(PROC):
        if entry.isdecimal():
            process = status(int(entry))
            if process is not None and process.state not in DEAD:
                yield process


def _has_token(pid: int, mark: bytes) -> bool:
    try:
        return mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
