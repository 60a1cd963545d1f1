"""Reads the environment of a login shell, in a process of its own below the agent.

A profile is code of the tenant. It runs as a worker does, in a pid namespace and in control
groups; what it starts ends with the shell.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

from berth_agent.linux import cgroups, syscalls
from berth_agent.step.outcome import Outcome
from berth_agent.step.spec import Spec
from berth_agent.step.sweep import sweep
from berth_agent.step.worker import Worker

SHELL = "/bin/bash"
MARK = "\\0berth-environment\\0"
COMMAND = [SHELL, "-lc", f"printf '{MARK}'; exec env -0"]
"""A profile may print; its variables follow the mark."""
MAX_BYTES = 256 * 1024
CHUNK_BYTES = 64 * 1024
KILL_S = 5.0
"""Longest time in which processes that were killed may end."""
SWEEP_S = 0.02
SHOWN_CHARS = 200


class LoginFailed(Exception):
    """The shell did not print an environment: why, and the end of its output."""


def read_variables(spec: Spec) -> dict[str, str]:
    """Run the shell and return its variables; all of it is dead then.

    Raises LoginFailed, OSError.
    """
    output = bytearray()
    worker = Worker(spec)
    worker.release()
    try:
        _collect(worker, output, spec.hook_s)
    finally:
        outcome = _end(worker, spec)
    noise, mark, content = bytes(output).rpartition(MARK.replace("\\0", "\0").encode())
    if outcome.reason or not mark:
        shown = " ".join(bytes(output).decode(errors="replace").split())[-SHOWN_CHARS:]
        raise LoginFailed(f"{outcome.detail or 'it printed no environment'}: {shown}".rstrip(": "))
    pairs = (entry.partition("=") for entry in content.decode(errors="replace").split("\0"))
    return {name: value for name, sign, value in pairs if sign}


def _collect(worker: Worker, output: bytearray, limit_s: float) -> None:
    """Read until the shell has ended. Raises LoginFailed where it takes too long or too much."""
    poll = select.poll()
    init = os.pidfd_open(worker.pid)
    poll.register(init, select.POLLIN)
    poll.register(worker.output, select.POLLIN)
    deadline_s = time.monotonic() + limit_s
    try:
        while (left_s := deadline_s - time.monotonic()) > 0:
            ready = [descriptor for descriptor, _ in poll.poll(left_s * 1000)]
            if worker.output in ready:
                chunk = os.read(worker.output, CHUNK_BYTES)
                output += chunk
                if not chunk:
                    poll.unregister(worker.output)
            elif init in ready:
                return
            if len(output) > MAX_BYTES:
                raise LoginFailed(f"its output is larger than {MAX_BYTES} bytes")
        raise LoginFailed(f"no end within {limit_s:g} s")
    finally:
        os.close(init)


def _end(worker: Worker, spec: Spec) -> Outcome:
    """Kill whatever lives, and return how the shell ended."""
    outcome = Outcome()
    worker.kill()
    _, status = os.waitpid(worker.pid, 0)
    outcome.take_messages(_messages(worker))
    outcome.take_init_status(status)
    deadline_s = time.monotonic() + KILL_S
    while not spec.pid_namespace and sweep(spec.cgroups) and time.monotonic() < deadline_s:
        time.sleep(SWEEP_S)
    outcome.judge("", spec, cgroups.oom_kills(spec.cgroups) > 0)
    return outcome


def _messages(worker: Worker) -> str:
    """Return the messages of the init; a process that it forked may still hold the pipe."""
    try:
        return os.read(worker.status, CHUNK_BYTES).decode()
    except BlockingIOError:
        return ""


def main() -> int:
    """Answer a specification on standard input by `variables` or `problem` on standard output."""
    answer = os.dup(1)
    request = json.loads(sys.stdin.buffer.read())
    # The worker inherits these two; the answer is held by this process alone.
    os.dup2(os.open("/dev/null", os.O_RDWR), 0)
    os.dup2(0, 1)
    syscalls.become_subreaper()
    try:
        document: dict[str, object] = {"variables": read_variables(Spec(request))}
    except (LoginFailed, OSError) as error:
        document = {"problem": str(error)}
    with os.fdopen(answer, "w", encoding="ascii") as file:
        json.dump(document, file)
    return 0
