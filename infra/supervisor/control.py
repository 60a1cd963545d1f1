"""Talks to a stack's supervisor over its unix socket."""

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
    """The supervisor answers, but only that it is about to end."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process as the supervisor sees it; `pid` is 0 when there is none."""

    name: str
    state: str
    pid: int
    uptime_s: int


def socket_path(data_dir: Path) -> Path:
    """Where the supervisor listens."""
    return socket_dir(data_dir) / SOCKET


def is_up(data_dir: Path) -> bool:
    """Does a supervisor, be it one that is stopping, listen for this folder?"""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(socket_path(data_dir))) == 0


def processes(data_dir: Path) -> list[ProcessState]:
    """All processes, in the order of the configuration; none where no supervisor runs, or stops."""
    try:
        found = cast("list[dict[str, Any]]", _call(data_dir, "getAllProcessInfo"))
    except (*AWAY, Stopping):
        return []
    return [
        ProcessState(
            str(each["name"]),
            str(each["statename"]).lower(),
            int(each["pid"]),
            int(each["now"]) - int(each["start"]) if each["pid"] else 0,
        )
        for each in found
    ]


def supervisor_pid(data_dir: Path) -> int:
    """Of the supervisor itself; 0 where none runs, or stops."""
    try:
        return cast("int", _call(data_dir, "getPID"))
    except (*AWAY, Stopping):
        return 0


def start(data_dir: Path, name: str) -> None:
    """Begin to start a service, without waiting for it."""
    _call(data_dir, "startProcess", f"{GROUP}:{name}", False)


def stop(data_dir: Path, name: str) -> None:
    """Stop a service, and wait until it has ended."""
    try:
        _call(data_dir, "stopProcess", f"{GROUP}:{name}", True)
    except Fault as fault:
        if fault.faultCode != Faults.NOT_RUNNING:
            raise


def shut_down(data_dir: Path) -> None:
    """Ask the supervisor to stop everything and itself; returns at once."""
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
