"""The readiness of the processes of a stack, and the reason where one is not ready."""

from __future__ import annotations

import json
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from infra.machine.process import DidNotStart
from infra.supervisor import control, local_node
from infra.supervisor.logs import last_log_lines, path_of
from infra.supervisor.running import RunningStack, load
from infra.supervisor.stack import AGENT
from infra.supervisor.supervisord import STOPPED

POLL_S = 0.05
LOOK_S = 1.0
ENDED = "exited"


def why_stopped(data_dir: Path) -> str:
    """Return the reason why a stack stopped by itself, else an empty string."""
    path = data_dir / STOPPED
    return path.read_text().strip() if path.exists() else ""


def is_ready(port: int) -> bool:
    """Return whether the service with this metrics port is ready."""
    return not why_not_ready(port)


def why_not_ready(port: int) -> str:
    """Return the service's own reason why it is not ready, empty if it is."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        return "" if answer.status == 200 else _reason_of(answer.read())
    except (OSError, HTTPException):
        return "its process does not answer"
    finally:
        connection.close()


def _reason_of(raw: bytes) -> str:
    try:
        report = json.loads(raw)
    except ValueError:
        report = None
    reason = report.get("reason") if isinstance(report, dict) else None
    return str(reason or "no reason given")


def wait_ready(data_dir: Path, names: tuple[str, ...], timeout_s: float) -> None:
    """Wait until these services are ready. Raises DidNotStart with the end of the log."""
    stack = load(data_dir.resolve())
    ends = time.monotonic() + timeout_s
    for name in names:
        looked = time.monotonic()
        while not is_serving(stack, name):
            now = time.monotonic()
            if now > ends or not control.is_up(stack.data_dir):
                raise DidNotStart(_not_ready(stack, name, timeout_s))
            if now > looked + LOOK_S:
                looked = now
                refuse_ended(stack.data_dir)
            time.sleep(POLL_S)


def _not_ready(stack: RunningStack, name: str, timeout_s: float) -> str:
    """Return the service's own reason, the end of its log since the start, and what to do."""
    if control.is_up(stack.data_dir):
        port = stack.ports.get(name, {}).get("metrics", 0)
        reason = f"after {timeout_s:g} s: {why_not_ready(port) if port else 'it says no reason'}"
    else:
        reason = f"as the stack has ended: {why_stopped(stack.data_dir) or 'by a stop'}"
    log, words = path_of(stack.data_dir, name), last_log_lines(stack.data_dir, name)
    return (
        f"{name} is not ready {reason}; its log {log}: {words}; mend what it names, then run "
        "`berth up` again"
    )


def refuse_ended(data_dir: Path) -> None:
    """Raise DidNotStart if a service has ended for good, as after a broken ledger."""
    for state in control.processes(data_dir):
        if state.state == ENDED:
            raise DidNotStart(f"{state.name} has ended: {last_log_lines(data_dir, state.name)}")


def is_serving(stack: RunningStack, name: str) -> bool:
    """Return whether a process that runs does its work; a part counts as doing it."""
    if name == AGENT:
        pids = {process.name: process.pid for process in control.processes(stack.data_dir)}
        return local_node.is_ready(stack, pids.get(name, 0))
    port = stack.ports.get(name, {}).get("metrics", 0)
    return not port or is_ready(port)
