"""Starts a Ray cluster of the gang's workers, and the program on rank 0 when all are in it.

    GPUS CPUS MEM_GIB COMMAND...

The head is on rank 0. Every process of Ray has its ports from the kernel, as several clusters may
have workers on one node, and Ray's own defaults (6379, 8265, 10001, 10002-19999) collide there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec

from berth_client.launch_gang import TERMINATED, Gang, hold, read_key
from berth_client.launch_program import Program, exit_status, free_port, new_folder, stop, terminate

POLL_S, STARTS = 0.2, 3
MISSING = 127
"""Exit status of a shell whose command cannot be started."""
GIB = 1 << 30
OBJECTS, OBJECTS_MIN = 0.3, 80_000_000
"""Ray's own share of the memory for objects, but of a worker's and not of its node's; the least
bytes that it takes."""
DEFAULTS = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Nothing is left to drain when the program has ended.
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    # The head would wait 60 s for its dashboard, and its server for `ray://` ends it after 30 s.
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "20",
}
# A head on a busy node takes longer to register than `ray.init` waits.
READY = """
import signal, sys, time, ray
while True:
    try:
        ray.init(logging_level="CRITICAL", log_to_driver=False)
        break
    except ConnectionError:
        time.sleep(1)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(0.2)
"""


def main() -> None:
    gpus, cpus, mem_gib, *command = sys.argv[1:]
    if find_spec("ray") is None:
        sys.exit(f"No module named 'ray' in {sys.executable}")
    for name, value in {"RAY_AUTH_TOKEN": read_key(), **DEFAULTS}.items():
        os.environ.setdefault(name, value)
    if os.environ["RANK"] != "0":
        sys.exit(hold())
    cluster = Cluster(Gang(), resources(int(gpus), int(cpus), float(mem_gib)))
    try:
        sys.exit(cluster.lead(command))
    finally:
        cluster.close()


class Cluster:
    """Ray on all workers of the gang, as rank 0 has it."""

    def __init__(self, gang: Gang, options: Sequence[str]) -> None:
        self._gang, self._options = gang, options
        self._own = address_for_ray(gang.address)
        self._dashboard, self._shows_dashboard = 0, False
        self._head: Program | None = None

    def lead(self, command: Sequence[str]) -> int:
        """Start Ray on all nodes and, when all are there, the program; return its exit status."""
        # A port may be taken since it was free, and a busy node too slow for Ray's own limits.
        for _ in range(STARTS):
            address = self._start_head()
            code = self._wait_for_nodes(1)
            if code in (0, TERMINATED):
                break
        if code:
            return code
        # A node that came before the head has registered would end with an error.
        for member in self._gang.members.values():
            folder, own = new_folder("ray"), address_for_ray(member.address)
            member.run(self._node([f"--address={address}"], own, folder), folder, _short(folder))
        if self._gang.members and (code := self._wait_for_nodes(self._gang.size)):
            return code
        print(f"Ray has {self._gang.size} nodes, its head at {address}", flush=True)
        return self._run(command)

    def _start_head(self) -> str:
        """Start the head, and return its address for all others."""
        if self._head is not None:
            self._head.close()
        port, client, self._dashboard = (free_port(self._own) for _ in range(3))
        folder = new_folder("ray")
        start = ["--head", f"--port={port}", f"--ray-client-server-port={client}"]
        dashboard = [f"--dashboard-host={self._own}", f"--dashboard-port={self._dashboard}"]
        node = self._node([*start, *dashboard], self._own, folder)
        self._head = Program(node, folder, _short(folder))
        os.environ["RAY_ADDRESS"] = address = f"{self._own}:{port}"
        os.environ["RAY_API_SERVER_ADDRESS"] = f"http://{self._own}:{self._dashboard}"
        return address

    def close(self) -> None:
        self._gang.end()
        if self._head is not None:
            self._head.close()

    def _node(self, start: Sequence[str], own: str, folder: str) -> list[str]:
        """Return the command that is a node of Ray."""
        ports = ["--dashboard-agent-listen-port=0", "--min-worker-port=0", "--max-worker-port=0"]
        place = [f"--node-ip-address={own}", f"--temp-dir={folder}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
        return [*command, *start, *place, *ports, *self._options]

    def _wait_for_nodes(self, nodes: int) -> int:
        """Return 0 when so many are there, else an exit status."""
        return self._run([sys.executable, "-c", READY, str(nodes)])

    def _run(self, command: Sequence[str]) -> int:
        """Run a program until it ends, or until a node of Ray has; return its exit status."""
        try:
            process = subprocess.Popen(command, start_new_session=True)
        except OSError as error:
            print(error, flush=True)
            return MISSING
        signal.signal(signal.SIGTERM, lambda *_: terminate(process))
        while (code := process.poll()) is None:
            if failure := self._gang.failure() or self._failure_here():
                print(f"a node of Ray has ended: {failure}", flush=True)
                stop(process)
                return 1
            self._show_dashboard()
            time.sleep(POLL_S)
        return exit_status(code)

    def _failure_here(self) -> str:
        if self._head is None or self._head.process.poll() is None:
            return ""
        self._head.report()
        return f"rank 0: its program ended with exit code {self._head.process.returncode}"

    def _show_dashboard(self) -> None:
        """Print the address of the dashboard once it answers: Ray may come without one."""
        if not self._shows_dashboard and _listens(self._own, self._dashboard):
            self._shows_dashboard = True
            print(f"Ray's dashboard is at http://{self._own}:{self._dashboard}", flush=True)


def resources(gpus: int, cpus: int, mem_gib: float) -> list[str]:
    """Return the options that bound a node of Ray to its worker; without memory, to its node's."""
    options = [f"--num-gpus={gpus}", f"--num-cpus={cpus}"]
    if mem_gib:
        size = int(mem_gib * GIB)
        objects = max(OBJECTS_MIN, int(size * OBJECTS))
        options += [f"--object-store-memory={objects}", f"--memory={max(0, size - objects)}"]
    return options


def _short(folder: str) -> dict[str, str]:
    """Return the variable without which sockets of the dashboard lie in the worker's own folder.

    The path of that is too long for them, and the dashboard would hang.
    """
    return {"TMPDIR": folder}


def address_for_ray(address: str) -> str:
    """Return the address of a node as Ray takes it: 127.0.0.1 would be one of the network."""
    return "127.0.0.2" if address.startswith("127.") else address


def _listens(address: str, port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex((address, port)) == 0
