"""Forks short-lived children of a step: checks as the worker's user, prologs and epilogs."""

from __future__ import annotations

import os
import select
import time

from berth_agent.linux import seccomp
from berth_agent.linux.signals import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from berth_agent.step.spec import Spec

OUTPUT_BYTES = 64 * 1024
OPEN_FILES = 4096


class TimedOut(Exception):
    """A child did not end in its time; it was killed."""


def run(body: Callable[[], None], limit_s: float) -> tuple[int, bytes]:
    """Run `body` in a child; return its exit code and the begin of what it wrote.

    Raises TimedOut: the child was killed, and is left behind if it waits uninterruptibly.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run_child(writer, body)
    os.close(writer)
    os.set_blocking(reader, False)
    output = bytearray()
    try:
        ended = wait_for_end(pid, reader, output, limit_s)
    finally:
        os.close(reader)
    if not ended:
        os.killpg(pid, signal.SIGKILL)
        raise TimedOut(f"no end within {limit_s:g} s")
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), bytes(output)


def take_identity(spec: Spec) -> None:
    """Give the process the worker's user, for good. Raises OSError."""
    become(spec.uid, spec.gid, spec.groups, spec.umask)


def become(uid: int | None, gid: int, groups: Sequence[int], umask: int) -> None:
    """Give the process a user, for good; None: it keeps its own. Raises OSError."""
    if uid is not None:
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    os.umask(umask)


def confine(spec: Spec) -> None:
    """Give the process what a program of the worker is: its user, and its filter of calls.

    Raises OSError.
    """
    take_identity(spec)
    if spec.seccomp:
        seccomp.install()


def reset_signals() -> None:
    """Undo what the step ignores, or whoever started the agent: a program would inherit it."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)


def _run_child(writer: int, body: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        # A child that hangs must not keep the locks of the step.
        os.closerange(3, OPEN_FILES)
        reset_signals()
        body()
        code = 0
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(code)


def wait_for_end(pid: int, reader: int, output: bytearray, limit_s: float) -> bool:
    """Read until the child ends; return whether it did."""
    process = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.register(reader, select.POLLIN)
    deadline = time.monotonic() + limit_s
    try:
        while (left_s := deadline - time.monotonic()) > 0:
            ready = [descriptor for descriptor, _ in poll.poll(left_s * 1000)]
            if reader in ready and not _read(reader, output):
                poll.unregister(reader)
            if process in ready:
                _read(reader, output)
                return True
        return False
    finally:
        os.close(process)


def _read(reader: int, output: bytearray) -> bool:
    """Take what the pipe holds, once: a child that prints endlessly has no more time than others.

    Returns whether more may come.
    """
    try:
        chunk = os.read(reader, OUTPUT_BYTES)
    except BlockingIOError:
        return True
    output += chunk[: OUTPUT_BYTES - len(output)]
    return bool(chunk)
