"""Hosts as network namespaces: each has its own interfaces and loopback, joined by a bridge.

The namespaces belong to idle processes that end with this one, and with them every interface.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

Direction = Literal["from_host", "to_host"]
"""A direction of a host's link."""

RUN_S = 180.0
"""Limit of a program on a host: it only ends one that hangs."""
READY = "from sys import stdin; print(flush=True); stdin.read()"
NETWORK = "10.77.0"


@dataclass(frozen=True, slots=True)
class Host:
    """A namespace, by the pid of its idle process, with one address in the common network."""

    name: str
    pid: int
    address: str

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` on this host."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *argv]

    def run(
        self, argv: Sequence[str], env: Mapping[str, str] | None = None, timeout_s: float = RUN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end on this host, whatever its exit code."""
        return subprocess.run(
            self.command(argv),
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


@dataclass(frozen=True, slots=True)
class Network:
    """Hosts behind one bridge; `switch` is the pid of the bridge's namespace."""

    switch: int
    hosts: Mapping[str, Host]

    def cut(self, name: str) -> None:
        """Set the link of a host down: packets are lost in both directions."""
        self._set(name, "down")

    def restore(self, name: str) -> None:
        """Set the link of a host up again."""
        self._set(name, "up")

    def lose(self, name: str, direction: Direction) -> None:
        """Lose all packets of one direction of a host's link; the sender gets no error."""
        self._queue(name, direction, "add", "blackhole")

    def lose_no_more(self, name: str, direction: Direction) -> None:
        """Let the packets of that direction pass again."""
        self._queue(name, direction, "delete")

    def _queue(self, name: str, direction: Direction, action: str, *kind: str) -> None:
        """Change the queue of the interface that sends in that direction."""
        if direction == "from_host":
            pid, interface = self.hosts[name].pid, "eth0"
        else:
            pid, interface = self.switch, f"port-{name}"
        _run(pid, "tc", "qdisc", action, "dev", interface, "root", *kind)

    def _set(self, name: str, state: str) -> None:
        _ip(self.switch, "link", "set", f"port-{name}", state)


def missing() -> str:
    """Return why namespaces cannot be made here, empty if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with _namespace() as pid:
            _ip(pid, "link", "add", "port", "type", "veth", "peer", "name", "eth0")
            _ip(pid, "link", "add", "bridge", "type", "bridge")
            _run(pid, "tc", "qdisc", "add", "dev", "eth0", "root", "blackhole")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces are not permitted: {getattr(error, 'stderr', None) or error}"
    return ""


def in_new_namespace(argv: Sequence[str]) -> list[str]:
    """Return the command that runs `argv` in a network namespace of its own."""
    return ["unshare", "--net", "--", *argv]


@contextmanager
def network(names: Sequence[str], own: str = "") -> Iterator[Network]:
    """Make hosts of these names, with the addresses 10.77.0.1 and up.

    The host `own` is the namespace of this process, which must be new: see `in_new_namespace`.
    """
    with ExitStack() as stack:
        switch = stack.enter_context(_namespace())
        _ip(switch, "link", "add", "bridge", "type", "bridge")
        _ip(switch, "link", "set", "bridge", "up")
        hosts = {}
        for number, name in enumerate(names, start=1):
            pid = os.getpid() if name == own else stack.enter_context(_namespace())
            host = Host(name, pid, f"{NETWORK}.{number}")
            _connect(switch, host)
            hosts[name] = host
        yield Network(switch, hosts)


def _connect(switch: int, host: Host) -> None:
    port = f"port-{host.name}"
    peer = ("peer", "name", "eth0", "netns", str(host.pid))
    _ip(switch, "link", "add", port, "type", "veth", *peer)
    _ip(switch, "link", "set", port, "master", "bridge", "up")
    _ip(host.pid, "address", "add", f"{host.address}/24", "dev", "eth0")
    for interface in ("lo", "eth0"):
        _ip(host.pid, "link", "set", interface, "up")


@contextmanager
def _namespace() -> Iterator[int]:
    """Yield the pid of a process in a network namespace of its own, which ends with the block."""
    command = in_new_namespace([sys.executable, "-I", "-c", READY])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None and holder.stdout is not None and holder.stderr is not None
        if not holder.stdout.readline():
            raise OSError(holder.stderr.read().decode().strip())
        try:
            yield holder.pid
        finally:
            holder.stdin.close()


def _ip(pid: int, *arguments: str) -> None:
    _run(pid, "ip", *arguments)


def _run(pid: int, *argv: str) -> None:
    """Run a program in the namespace of a process. Raises CalledProcessError, OSError."""
    command = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *argv]
    subprocess.run(command, check=True, capture_output=True, text=True)
