"""A child process in its own group: started, awaited until ready, and stopped as a group."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.05
START_S = 180.0
"""Limit for the start of a part of a stack: far above what a busy machine needs."""
LENT = Path("/proc/sys/net/ipv4/ip_local_port_range")
LEAST_PORT, END_PORT = 10_000, 20_000
"""Ports of stacks, the second one excluded. Those from there on are what agents and engines promise
to jobs, which bind them seconds later (`port_first` of the agent)."""
GIVEN_FOR_S = 600.0
"""How long a port that was given to one process is given to no other of the same user."""


class DidNotStart(Exception):
    """The process ended or was not ready in time; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running process; `stop` ends its whole group."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_ready(self, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until `is_ready()`; stop the process on timeout. Raises DidNotStart."""
        ends = time.monotonic() + timeout_s
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > ends:
                self.stop(grace_s=0)
                raise DidNotStart(f"{self.name}: {_tail(self.log)}")
            time.sleep(POLL_S)

    def stop(self, grace_s: float = 15) -> None:
        """Terminate, wait, then kill the group; idempotent."""
        if self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self.kill()
        self._kill_group()

    def kill(self) -> None:
        self._kill_group()
        self.process.wait()

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


def spawn(
    name: str,
    command: Sequence[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Running:
    """Start `command` with its output in `log`; it ends with the thread that started it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*tied("KILL"), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    return Running(name, process, log, stop_signal)


def free_ports(count: int) -> list[int]:
    """Return `count` different free loopback ports.

    Ports of the system's ephemeral range are left out: an outgoing connection could take one before
    its service binds it. So are those that agents promise to jobs, and those that a process of this
    user was given lately, whose service may not have bound them yet.
    """
    with _handed_out() as times:
        ports = _unused(count, times)
        times.update(dict.fromkeys(ports, time.time()))
    return ports


def keep_ports(ports: Iterable[int]) -> set[int]:
    """Return those loopback ports that nothing listens on; they are given to the caller."""
    with _handed_out() as times:
        kept = {port for port in ports if _is_free(port)}
        times.update(dict.fromkeys(kept, time.time()))
    return kept


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@contextmanager
def _handed_out() -> Iterator[dict[int, float]]:
    """Yield the ports handed out lately, with the time in s since 1970; other processes wait.

    None are known where the file cannot be used, or belongs to another user, who could hold it.
    """
    descriptor = _open_own(Path(tempfile.gettempdir()) / f"berth-ports-{os.getuid()}")
    if descriptor is None:
        yield {}
        return
    with open(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        times: dict[int, float] = {}
        with suppress(ValueError):  # A process that was killed may have left half a line.
            for line in file:
                port, at_s = line.split()
                times[int(port)] = float(at_s)
        now_s = time.time()
        recent = {port: at_s for port, at_s in times.items() if 0 <= now_s - at_s < GIVEN_FOR_S}
        yield recent
        file.seek(0)
        file.truncate()
        file.writelines(f"{port} {at_s}\n" for port, at_s in recent.items())


def _open_own(path: Path) -> int | None:
    """Open or create a regular file of this user; None if what is there is something else."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        return None
    opened = os.fstat(descriptor)
    if stat.S_ISREG(opened.st_mode) and opened.st_uid == os.getuid():
        return descriptor
    os.close(descriptor)
    return None


def _unused(count: int, taken: Container[int]) -> list[int]:
    servers: list[socket.socket] = []
    candidates = (port for port in _unlent() if port not in taken)
    while len(servers) < count:
        candidate = next(candidates, 0)
        try:
            servers.append(socket.create_server(("127.0.0.1", candidate)))
        except OSError:
            if not candidate:
                raise
    ports = [int(server.getsockname()[1]) for server in servers]
    for server in servers:
        server.close()
    return ports


def _unlent() -> Iterator[int]:
    """Yield the ports of stacks below the ephemeral range at random; none if that is unknown."""
    with suppress(OSError):
        lent_from = int(LENT.read_text().split()[0])
        ports = range(LEAST_PORT, min(lent_from, END_PORT))
        yield from random.sample(ports, len(ports))


def is_open(port: int) -> bool:
    """Return whether a server listens on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def tied(end: str) -> list[str]:
    """Return a command prefix: the command gets this signal when its parent ends, even by SIGKILL.

    Linux only; elsewhere the prefix is empty.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, f"--pdeathsig={end}"] if setpriv else []


def _tail(log: Path, size_bytes: int = 2000) -> str:
    text = log.read_bytes()[-size_bytes:].decode(errors="replace").strip()
    return text or "ended without a word"
