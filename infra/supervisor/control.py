"""Client of a stack's supervisor over its unix socket."""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from infra.machine.folders import socket_dir
from infra.supervisor.configuration import GROUP

SOCKET = "supervisor.sock"
AWAY = (ConnectionError, FileNotFoundError, http.client.HTTPException)


class Stopping(Exception):
    """The supervisor is shutting down."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    """State of a process in the supervisor; `pid` is 0 if it does not run."""

    name: str
    state: str
    pid: int
    uptime_s: int


def socket_path(data_dir: Path) -> Path:
    """Return the path of the supervisor's socket."""
    return socket_dir(data_dir) / SOCKET


def is_up(data_dir: Path) -> bool:
    """Return whether a supervisor, also one that is stopping, listens for this directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(socket_path(data_dir))) == 0


def processes(data_dir: Path) -> list[ProcessState]:
    """Return all processes in configuration order; empty without a running supervisor."""
    try:
        rows = cast("list[dict[str, Any]]", _call(data_dir, "getAllProcessInfo"))
    except (*AWAY, Stopping):
        return []
    return [
        ProcessState(
            str(row["name"]),
            str(row["statename"]).lower(),
            int(row["pid"]),
            int(row["now"]) - int(row["start"]) if row["pid"] else 0,
        )
        for row in rows
    ]


def supervisor_pid(data_dir: Path) -> int:
    """Return the pid of the supervisor; 0 if none runs."""
    try:
        return cast("int", _call(data_dir, "getPID"))
    except (*AWAY, Stopping):
        return 0


def start(data_dir: Path, name: str) -> None:
    """Start a service without waiting for it."""
    _call(data_dir, "startProcess", f"{GROUP}:{name}", False)


def stop(data_dir: Path, name: str) -> None:
    """Stop a service and wait for its end."""
    try:
        _call(data_dir, "stopProcess", f"{GROUP}:{name}", True)
    except Fault as fault:
        if fault.faultCode != Faults.NOT_RUNNING:
            raise


def shut_down(data_dir: Path) -> None:
    """Request the shutdown of the supervisor and all processes; return at once."""
    try:
        _call(data_dir, "shutdown")
    except (*AWAY, Stopping):
        return


def _call(data_dir: Path, method: str, *arguments: object) -> object:
    transport = SupervisorTransport(None, None, f"unix://{socket_path(data_dir)}")
    with ServerProxy("http://127.0.0.1", transport=transport) as server:
        try:
            return cast("object", getattr(server.supervisor, method)(*arguments))
        except Fault as fault:
            if fault.faultCode == Faults.SHUTDOWN_STATE:
                raise Stopping from None
            raise
