"""Finding and killing all that a worker started, by what Linux says in /proc."""

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
    """The part of /proc/<pid>/stat that matters."""

    pid: int
    state: str
    group: int
    session: int
    started_ticks: int


def status(pid: int) -> ProcessStatus | None:
    """None: there is no such process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    rest = text.rpartition(")")[2].split()
    return ProcessStatus(pid, rest[0], int(rest[2]), int(rest[3]), int(rest[19]))


def left_behind(token: str, leader: int | None = None) -> list[int]:
    """Living processes of a worker: in its leader's group or session, or bearing its token.

    The token also finds those that began a session of their own.
    """
    mark = f"{TOKEN}={token}".encode()
    return [s.pid for s in _living() if leader in (s.group, s.session) or _bears(s.pid, mark)]


def leader_is(pid: int, started_ticks: int) -> bool:
    """Whether the process is the very one that was started, not a later one of that number."""
    found = status(pid)
    return found is not None and found.started_ticks == started_ticks


def signal_group(leader: int, number: signal.Signals) -> None:
    """The caller has not reaped the leader yet, so the number cannot be anybody else's."""
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
            found = status(int(entry))
            if found is not None and found.state not in DEAD:
                yield found


def _bears(pid: int, mark: bytes) -> bool:
    try:
        return mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
