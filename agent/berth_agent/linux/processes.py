"""Identifies, lists and kills processes by Linux's /proc."""

from __future__ import annotations

import os

from berth_agent.linux.signals import signal
from berth_agent.token_names import TOKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEAD = "ZXx"


def started_ticks(pid: int) -> int:
    """Return the time at which a living process started, 0 if there is none.

    Together with the pid it names a process: numbers are used again.
    """
    fields = _stat(pid)
    return 0 if fields is None or fields[0] in DEAD else int(fields[19])


def is_alive(pid: int, ticks: int) -> bool:
    """Return whether the process still lives; a later one of its number does not count."""
    return pid > 0 and ticks > 0 and started_ticks(pid) == ticks


def kill(pid: int, ticks: int, number: int = signal.SIGKILL) -> None:
    """Signal the process if it still lives."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Checked after it was opened: from here on the descriptor means this process alone.
        if started_ticks(pid) == ticks:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return
    finally:
        os.close(descriptor)


def children() -> list[int]:
    """Return the children of this process, also those that ended and are not reaped."""
    own = os.getpid()
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())
    return [pid for pid in pids if (fields := _stat(pid)) is not None and int(fields[1]) == own]


def descendants(spared: int = 0) -> list[int]:
    """Return all living processes below this one, without the child `spared` and those below it."""
    return below((os.getpid(),), spared)


def below(roots: Iterable[int], spared: int = 0) -> list[int]:
    """Return all living processes below others, without `spared` and those below it."""
    children_of: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        fields = _stat(int(entry)) if entry.isdecimal() else None
        if fields is not None and fields[0] not in DEAD:
            children_of.setdefault(int(fields[1]), []).append(int(entry))
    listed, pending = [], [*roots]
    while pending:
        pids = [pid for pid in children_of.get(pending.pop(), ()) if pid != spared]
        listed += pids
        pending += pids
    return listed


def handles(pid: int, number: int) -> bool:
    """Return whether the process has a handler for a signal; another one may end it."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigCgt:")]
    except OSError:
        return False
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def with_token(prefix: str, names: Iterable[str] = (TOKEN,)) -> Iterator[int]:
    """Yield living processes in whose environment a token begins with the prefix."""
    marks = [f"{name}={prefix}".encode() for name in names]
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and _has_mark(int(entry), marks):
            yield int(entry)


def token_of(pid: int, names: Iterable[str] = (TOKEN,)) -> str:
    """Return the token in the environment of a process, empty if there is none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            values = file.read().decode(errors="replace").split("\0")
    except OSError:
        return ""
    prefixes = tuple(f"{name}=" for name in names)
    return next((v.partition("=")[2] for v in values if v.startswith(prefixes)), "")


def written_bytes(pids: Iterable[int]) -> int:
    """Return what the processes, with the children that they have reaped, wrote to disks."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/io", encoding="ascii") as file:
                counts = dict(line.split(": ") for line in file)
        except (OSError, ValueError):
            continue
        total += int(counts.get("write_bytes", 0))
    return total


def kill_each(pids: Iterable[int], number: int = signal.SIGKILL) -> None:
    """Signal processes that were just listed.

    One that ended meanwhile is passed over, and one whose user an agent without root may not
    signal: a program that changes its user.
    """
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _has_mark(pid: int, marks: list[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            values = file.read().split(b"\0")
    except OSError:
        return False
    if not any(value.startswith(mark) for value in values for mark in marks):
        return False
    fields = _stat(pid)
    return fields is not None and fields[0] not in DEAD


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat after the name."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None
